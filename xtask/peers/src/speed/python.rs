//! The tokenizers that have a call from Python only: each in a virtual environment of its own below the
//! target folder, which the first run makes.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::files;
use super::side::Start;
use crate::Error;

/// A package of the Python index, and the module `python/peer_NAME.py`.
pub(super) struct Peer {
    pub(super) name: &'static str,
    /// What to install.
    requirements: &'static [&'static str],
    /// The call that is timed.
    call: &'static str,
}

pub(super) const PEERS: &[Peer] = &[
    Peer {
        name: "gigatoken",
        requirements: &["gigatoken==0.10.0"],
        call: "encode_batch(BytesSource), from Python",
    },
    Peer {
        name: "quicktok-v1",
        requirements: &["quicktok-v1==0.4.0", "numpy"],
        call: "encode_batch, from Python",
    },
    Peer {
        name: "tiktoken",
        requirements: &["tiktoken==0.14.0", "numpy"],
        call: "encode_to_numpy, from Python",
    },
    Peer {
        name: "iree-tokenizer",
        requirements: &["iree-tokenizer==0.3.0", "numpy"],
        call: "encode_to_array, from Python",
    },
    Peer {
        name: "tuetoken",
        requirements: &["tuetoken==0.1.3", "numpy"],
        call: "encode_to_bytes, from Python",
    },
];

impl Peer {
    /// How to start it, after installing it where that has not been done.
    pub(super) fn start(&self) -> Result<Start, Error> {
        let python = environment(self.name, self.requirements)?;
        Ok(Start {
            name: self.name.to_owned(),
            call: self.call.to_owned(),
            program: python.into(),
            arguments: vec!["-B".into(), worker().into(), self.name.into()],
        })
    }
}

/// The interpreter of a virtual environment with these packages, made where it is not there yet.
pub(crate) fn environment(name: &str, requirements: &[&str]) -> Result<PathBuf, Error> {
    let environment = files::folder("python")?.join(name);
    let python = environment.join("bin/python");
    let done = environment.join("installed.txt");
    let wanted = requirements.join(" ");
    if std::fs::read_to_string(&done).ok().as_ref() != Some(&wanted) {
        println!("{name}: installing {wanted}");
        quietly(
            Command::new("python3")
                .args(["-m", "venv"])
                .arg(&environment),
        )?;
        let install = ["-m", "pip", "install", "--quiet"];
        quietly(Command::new(&python).args(install).args(requirements))?;
        std::fs::write(&done, wanted)?;
    }
    Ok(python)
}

fn worker() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("python/worker.py")
}

fn quietly(command: &mut Command) -> Result<(), Error> {
    let output = command.output()?;
    match output.status.success() {
        true => Ok(()),
        false => {
            let message = String::from_utf8_lossy(&output.stderr);
            let last = message.lines().last().unwrap_or_default();
            Err(last.to_owned().into())
        }
    }
}

//! `cargo xtask embed`: the embedded vocabularies, from the `.tiktoken` files.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use bpe_core::{CanonicalForm, Dictionary, ReadLimits};

use crate::data;

/// The vocabularies that are embedded.
pub(crate) const NAMES: [&str; 4] = ["r50k_base", "p50k_base", "cl100k_base", "o200k_base"];

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Folder with `tokenizers/NAME/NAME.tiktoken`.
    #[arg(long, env = "BYTEPAIR_DATA")]
    data: PathBuf,
    /// Compare with what is there, and write nothing.
    #[arg(long)]
    check: bool,
}

pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    let mut code = ExitCode::SUCCESS;
    for name in NAMES {
        match embed(name, arguments) {
            Ok(line) => println!("{name}: {line}"),
            Err(error) => {
                eprintln!("{name}: {error}");
                code = ExitCode::FAILURE;
            }
        }
    }
    code
}

fn embed(name: &str, arguments: &Arguments) -> Result<String, String> {
    let file = compact(&tiktoken_path(&arguments.data, name))?;
    let path = embedded_path(name);
    if arguments.check {
        return match data::read(&path)? == file {
            true => Ok(format!("equal, {} bytes", file.len())),
            false => Err(format!("{} is not what embed writes", path.display())),
        };
    }
    std::fs::write(&path, &file).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(format!("{} bytes written", file.len()))
}

/// Where a `.tiktoken` file of the data folder is.
pub(crate) fn tiktoken_path(data: &Path, name: &str) -> PathBuf {
    data.join("tokenizers")
        .join(name)
        .join(format!("{name}.tiktoken"))
}

/// Where the embedded file is.
pub(crate) fn embedded_path(name: &str) -> PathBuf {
    let folder = data::workspace().join("crates/bytepair/vocabularies");
    folder.join(format!("{name}.bpec"))
}

/// The compact form of a `.tiktoken` file.
pub(crate) fn compact(tiktoken: &Path) -> Result<Vec<u8>, String> {
    let file = data::read(tiktoken)?;
    let vocabulary = bpe_core::tiktoken::read(&file, &ReadLimits::default());
    let vocabulary = vocabulary.map_err(|error| error.to_string())?;
    let dictionary = Dictionary::from_ranks(vocabulary).map_err(|error| error.to_string())?;
    let compact = CanonicalForm::new(&dictionary).to_compact();
    compact.map_err(|error| error.to_string())
}

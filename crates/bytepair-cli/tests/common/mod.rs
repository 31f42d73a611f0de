//! Runs the binary. Each test file is a crate of its own and uses what it needs.
#![allow(dead_code)]

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// What a run of the command gave.
pub(crate) struct Run {
    pub(crate) status: i32,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

impl Run {
    /// Standard output as text.
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.stdout).expect("the output is text")
    }
}

/// The command with these arguments.
pub(crate) fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bytepair"));
    command.args(arguments).env_remove("NO_COLOR");
    command
}

/// Runs the command on `stdin`.
pub(crate) fn run(arguments: &[&str], stdin: &[u8]) -> Run {
    let mut command = command(arguments);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().expect("the binary runs");
    let mut pipe = child.stdin.take().expect("a pipe");
    std::thread::scope(|scope| {
        // A command that fails early does not read all; then writing fails, as it may.
        scope.spawn(move || pipe.write_all(stdin));
        let output = child.wait_with_output().expect("the binary ends");
        Run {
            status: output.status.code().expect("it was not killed"),
            stdout: output.stdout,
            stderr: String::from_utf8(output.stderr).expect("messages are text"),
        }
    })
}

/// A file of `bench-data`.
pub(crate) fn data(path: &str) -> String {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../bench-data");
    let path = root.join(path);
    path.to_str().expect("a path that is text").to_owned()
}

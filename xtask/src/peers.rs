//! `cargo xtask peers`: other people's tokenizers, from the workspace `xtask/peers`.

use std::ffi::OsString;
use std::process::{Command, ExitCode};

use crate::data::workspace;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// `oracle` or `ratio` with their options, and `--help` for both.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    rest: Vec<OsString>,
}

/// Passes the arguments on.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    run_with(arguments.rest.iter().cloned())
}

/// Builds the peers and runs them with these arguments.
pub(crate) fn run_with(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    run_with_features("", arguments)
}

/// The same with features, each of which is one more peer.
pub(crate) fn run_with_features(
    features: &str,
    arguments: impl IntoIterator<Item = OsString>,
) -> ExitCode {
    match command_with_features(features, arguments).status() {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("xtask/peers: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The command that builds the peers and runs them with these arguments.
pub(crate) fn command(arguments: impl IntoIterator<Item = OsString>) -> Command {
    command_with_features("", arguments)
}

fn command_with_features(features: &str, arguments: impl IntoIterator<Item = OsString>) -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["run", "--quiet", "--release", "--locked", "--manifest-path"]);
    command.arg(workspace().join("xtask/peers/Cargo.toml"));
    if !features.is_empty() {
        command.args(["--features", features]);
    }
    command.arg("--").args(arguments);
    command
}

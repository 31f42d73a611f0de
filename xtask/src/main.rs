//! The recurring jobs of the project: one module a command.

#![forbid(unsafe_code)]

mod bench;
mod data;
mod embed;
mod peers;
mod plot;
mod stopwatch;
mod verify;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "The recurring jobs of the project")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Write the embedded vocabularies from the `.tiktoken` files, or compare them.
    Embed(embed::Arguments),
    /// Check what the project claims, one line a claim.
    Verify(verify::Arguments),
    /// Measure what things cost.
    Bench(bench::Arguments),
    /// Compare with other people's tokenizers: passed to `xtask/peers`.
    #[command(disable_help_flag = true)]
    Peers(peers::Arguments),
}

fn main() -> ExitCode {
    match Arguments::parse().command {
        Command::Embed(arguments) => embed::run(&arguments),
        Command::Verify(arguments) => verify::run(&arguments),
        Command::Bench(arguments) => bench::run(&arguments),
        Command::Peers(arguments) => peers::run(&arguments),
    }
}

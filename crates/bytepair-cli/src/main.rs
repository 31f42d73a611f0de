//! The `bytepair` command: encode, decode, count, show and compare tokens.
//!
//! `args` has the options and `help` the examples; `load` makes the tokenizer; `input` reads text
//! in blocks that `cuts` allows, `pipeline` sends them through threads; each command is a file of
//! `commands`.

#![forbid(unsafe_code)]

mod args;
mod commands;
mod cuts;
mod encoder;
mod error;
mod help;
mod input;
mod lines;
mod load;
mod out;
mod output;
mod pipeline;
mod unpack;

use std::io::{self, BufWriter, IsTerminal, Write};
use std::process::ExitCode;

use clap::Parser;

use crate::args::Cli;
use crate::error::CliError;
use crate::pipeline::Session;

/// Output is collected to this many bytes before it is written.
const OUTPUT_BYTES: usize = 1 << 16;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let stdout = io::stdout();
    let is_terminal = stdout.is_terminal();
    let mut stdout = BufWriter::with_capacity(OUTPUT_BYTES, stdout.lock());
    let mut session = Session {
        stdin: &mut io::stdin(),
        stdout: &mut stdout,
        warn: &mut |text| say(&format!("warning: {text}")),
        is_watched: !is_terminal && io::stderr().is_terminal(),
        has_colors: is_terminal && wants_colors(),
        block_bytes: None,
    };
    let result = commands::run(&cli.command, &mut session);
    // What was written before an error is worth having.
    let flushed = stdout.flush().map_err(CliError::writing);
    match result.and(flushed) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            if let Some(message) = error.message() {
                say(&format!("error: {message}"));
            }
            ExitCode::from(error.exit_status())
        }
    }
}

/// Writes a line on standard error. If that cannot be, there is no one left to tell.
fn say(text: &str) {
    let _ = writeln!(io::stderr(), "bytepair: {text}");
}

/// <https://no-color.org>: any value but the empty one turns colours off.
fn wants_colors() -> bool {
    let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    !no_color && !is_dumb
}

//! `cargo xtask bench`: what things cost. `docs/benchmarks/README.md` says how to read the results.

mod bytes_per_token;
mod corpora;
mod dfa;
mod divan_text;
mod fast;
mod json_texts;
mod lexers;
mod load;
mod matrix;
mod parallel;
mod plots;
mod stream;
mod train;
mod worst;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use clap::Subcommand;
use serde_json::Value;

use crate::peers;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Every encoder on every lexer, vocabulary and corpus, and the lexers alone.
    Matrix(matrix::Arguments),
    /// Ours and other tokenizers in turn; `--help` for the options.
    #[command(disable_help_flag = true)]
    Ratio {
        /// Passed to `peers ratio`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        rest: Vec<OsString>,
    },
    /// The last-token engine beside mtc-inc-bpe and the `bpe` crate; `--help` for the options.
    #[command(disable_help_flag = true)]
    Incremental {
        /// Passed to `peers incremental`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        rest: Vec<OsString>,
    },
    /// What eager output costs, and 000 Table 8; `--help` for the options.
    #[command(disable_help_flag = true)]
    Eager {
        /// Passed to `peers eager`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        rest: Vec<OsString>,
    },
    /// The plots of docs/benchmarks, from the results there.
    Plots(plots::Arguments),
    /// Bytes a token of each embedded vocabulary on each corpus of bench-data.
    BytesPerToken(bytes_per_token::Arguments),
    /// Time until ready, resident memory and file size of each embedded encoding.
    Load(load::Arguments),
    /// Every training algorithm, at five numbers of merges: time and memory.
    Train(train::Arguments),
    /// Several threads beside one, and beside the ways of 004.
    Parallel(parallel::Arguments),
    /// The lexers alone, all engines in turn, each family and corpus.
    Lexers(lexers::Arguments),
    /// A text in pieces beside the same text at once.
    Stream(stream::Arguments),
    /// Token automata over o200k_base: pair queries, validation, masks, equivalence, the lazy transducer.
    Dfa(dfa::Arguments),
    /// The fast path beside the plain one: cold, half warm, warm, short texts, worst inputs.
    Fast(fast::Arguments),
    /// Every other tokenizer that can be had and ours in turn; `--help` for the options.
    #[command(disable_help_flag = true)]
    Peers {
        /// The peers in Rust to build; without it, all. They are features of `xtask/peers`.
        #[arg(long, value_name = "FEATURES")]
        build: Option<String>,
        /// Passed to `peers speed`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        rest: Vec<OsString>,
    },
    /// The worst inputs with the default engines; fails beyond 2 seconds.
    Worst(worst::Arguments),
}

/// Why a measurement could not be made.
type Error = Box<dyn std::error::Error>;

pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    let done = match &arguments.command {
        Command::Matrix(arguments) => matrix::run(arguments),
        Command::Ratio { rest } => {
            let ratio = OsString::from("ratio");
            return peers::run_with([ratio].into_iter().chain(rest.iter().cloned()));
        }
        Command::Incremental { rest } => {
            let incremental = OsString::from("incremental");
            return peers::run_with([incremental].into_iter().chain(rest.iter().cloned()));
        }
        Command::Eager { rest } => {
            let eager = OsString::from("eager");
            return peers::run_with([eager].into_iter().chain(rest.iter().cloned()));
        }
        Command::Peers { build, rest } => {
            let speed = OsString::from("speed");
            let arguments = [speed].into_iter().chain(rest.iter().cloned());
            return peers::run_with_features(build.as_deref().unwrap_or("peers"), arguments);
        }
        Command::Plots(arguments) => plots::run(arguments),
        Command::BytesPerToken(arguments) => bytes_per_token::run(arguments),
        Command::Load(arguments) => load::run(arguments),
        Command::Train(arguments) => train::run(arguments),
        Command::Lexers(arguments) => lexers::run(arguments),
        Command::Parallel(arguments) => parallel::run(arguments),
        Command::Stream(arguments) => stream::run(arguments),
        Command::Dfa(arguments) => dfa::run(arguments),
        Command::Fast(arguments) => fast::run(arguments),
        Command::Worst(arguments) => worst::run(arguments),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The middle one of these numbers.
fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Writes the results to the file of `--json`, if there is one.
fn write_json(path: Option<&Path>, results: &Value) -> Result<(), Error> {
    if let Some(path) = path {
        let mut text = serde_json::to_string_pretty(results)?;
        text.push('\n');
        std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(())
}

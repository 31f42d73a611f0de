//! Other people's tokenizers beside ours: `oracle` compares ids, `ratio` compares speed.
//!
//! Run by `cargo xtask peers`, `cargo xtask verify` and `cargo xtask bench ratio`; the crate is a
//! workspace of its own, so that no peer enters the product's lock file.

#![forbid(unsafe_code)]

mod corpora;
mod eager;
mod incremental;
mod interleave;
#[cfg(feature = "llguidance")]
#[path = "../../src/bench/json_texts.rs"]
mod json_texts;
mod lexers;
mod load;
#[cfg(feature = "llguidance")]
mod masks;
mod models;
mod one_file;
mod oracle;
mod peer;
mod random;
mod ratio;
mod reduce;
mod rival;
mod speed;
mod training;
mod training_speed;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// What goes wrong outside the comparisons: files, child processes.
type Error = Box<dyn std::error::Error>;

/// Other people's tokenizers, as oracles and as rivals.
#[derive(Parser)]
#[command(name = "peers")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Compare our ids with those of tiktoken-rs, for every embedded encoding.
    Oracle(oracle::Arguments),
    /// Compare what we learn with what the trainer of `tokenizers` learns, and have others read it.
    Training(training::Arguments),
    /// Compare the pipelines of `tokenizer.json` files with `tokenizers`, in ids, offsets and all else.
    Models(models::Arguments),
    /// Compare random small files with added tokens of all flags with the `tokenizers` of Python.
    Added(models::added::Arguments),
    /// Load the `tokenizer.json` of each model, ours and `tokenizers` in turn, each in a process of its own.
    LoadModels(models::load::Arguments),
    /// Time one thread on the text of each model, ours, `tokenizers` and the peers that read the same file in turn.
    SpeedModels(models::speed::Arguments),
    /// One measurement of `load-models`, in the child process that makes it.
    #[command(hide = true)]
    LoadModelsChild(models::load::Child),
    /// Time ours and tiktoken-rs in turn, after comparing their ids.
    Ratio(ratio::Arguments),
    /// Time the last-token engine and the two other incremental encoders in turn.
    Incremental(incremental::Arguments),
    /// Time pre-tokens alone: our engines and other lexers, after comparing what they find.
    Lexers(lexers::Arguments),
    /// Time what eager output costs, and 000 Table 8.
    Eager(eager::Arguments),
    /// Time the masks of a JSON-like expression, ours and those of llguidance.
    #[cfg(feature = "llguidance")]
    Masks(masks::Arguments),
    /// Time ours and every peer that can be had in turn, after comparing their ids.
    Speed(speed::Arguments),
    /// Time our trainer and five others in turn, on a corpus, with the memory of each.
    TrainingSpeed(training_speed::Arguments),
    /// Our trainer, in the child process of `training-speed`.
    #[command(hide = true)]
    TrainingSpeedChild(training_speed::Child),
    /// Time one long file on several threads, ours beside 004's overlap, gigatoken and tokenizers.
    OneFile(one_file::Arguments),
    /// One of our ways, in the child process of `one-file`.
    #[command(hide = true)]
    OneFileChild(one_file::Child),
    /// The process of one tokenizer, which `speed` asks.
    #[command(hide = true)]
    SpeedChild {
        /// `bytepair` or the name of a peer.
        name: String,
        /// The processors it may use.
        #[arg(value_delimiter = ',')]
        cores: Vec<usize>,
    },
    /// One measurement of `incremental`'s building, in the child process that makes it.
    #[command(hide = true)]
    IncrementalChild {
        /// `bpe-incremental`, `mtc-inc-bpe`, or `nothing`.
        side: String,
        /// An encoding, or `pathological`.
        dictionary: String,
    },
    /// One measurement of `ratio --load`, in the child process that makes it.
    #[command(hide = true)]
    LoadChild {
        /// `bytepair`, the name of a peer, or `nothing`.
        side: String,
        /// The encoding to load.
        encoding: String,
    },
}

/// Where the larger corpora are: `--data`, or else the variable `BYTEPAIR_DATA`.
#[derive(Clone, clap::Args)]
struct DataFolder {
    /// A folder with more data: `corpora/*.txt` or `corpora/*.txt.gz`. `bench-data` is always read.
    #[arg(long, value_name = "DIR", env = "BYTEPAIR_DATA")]
    data: Option<PathBuf>,
}

fn main() -> ExitCode {
    let done = match Arguments::parse().command {
        Command::Oracle(arguments) => oracle::run(&arguments),
        Command::Training(arguments) => training::run(&arguments),
        Command::Models(arguments) => models::run(&arguments),
        Command::Added(arguments) => models::added::run(&arguments),
        Command::SpeedModels(arguments) => models::speed::run(&arguments),
        Command::LoadModels(arguments) => models::load::run(&arguments),
        Command::LoadModelsChild(child) => models::load::child(&child),
        Command::Ratio(arguments) => ratio::run(&arguments),
        Command::Incremental(arguments) => incremental::run(&arguments),
        Command::Lexers(arguments) => lexers::run(&arguments),
        Command::Eager(arguments) => eager::run(&arguments),
        #[cfg(feature = "llguidance")]
        Command::Masks(arguments) => masks::run(&arguments),
        Command::Speed(arguments) => speed::run(&arguments),
        Command::TrainingSpeed(arguments) => training_speed::run(&arguments),
        Command::TrainingSpeedChild(child) => training_speed::child(&child).map(|()| true),
        Command::OneFile(arguments) => one_file::run(&arguments),
        Command::OneFileChild(child) => one_file::child(&child).map(|()| true),
        Command::SpeedChild { name, cores } => speed::child(&name, &cores).map(|()| true),
        Command::IncrementalChild { side, dictionary } => {
            incremental::child(&side, &dictionary).map(|()| true)
        }
        Command::LoadChild { side, encoding } => load::child(&side, &encoding).map(|()| true),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("peers: {error}");
            ExitCode::FAILURE
        }
    }
}

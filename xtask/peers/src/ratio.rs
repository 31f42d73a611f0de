//! Our speed beside that of tiktoken-rs, on the same work in the same run.

use std::path::PathBuf;

use bytepair::{Algorithm, Engine, Tokenizer};
use serde_json::{Value, json};

use crate::corpora::{self, Corpus};
use crate::interleave::Rounds;
use crate::peer::{self, Peer};
use crate::{DataFolder, Error, load};

const VOCABULARIES: [&str; 2] = ["cl100k_base", "o200k_base"];
const CORPORA: [&str; 3] = ["english", "code", "chinese"];

#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    data: DataFolder,
    /// Rounds that are counted; in each both sides run once.
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// Bytes taken of each corpus.
    #[arg(long, default_value_t = 4_000_000)]
    bytes: usize,
    /// Fail if the best encoder is not this many times faster on every corpus.
    #[arg(long, value_name = "RATIO")]
    at_least: Option<f64>,
    /// Time until ready and resident memory instead of throughput.
    #[arg(long)]
    load: bool,
    /// Write the results to this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Prints a table of ratios. False if one is below `--at-least`.
pub(crate) fn run(arguments: &Arguments) -> Result<bool, Error> {
    let (results, good) = match arguments.load {
        true => (load::compare(arguments.rounds)?, true),
        false => throughput(arguments)?,
    };
    if let Some(path) = &arguments.json {
        let mut text = serde_json::to_string_pretty(&results)?;
        text.push('\n');
        std::fs::write(path, text)?;
    }
    Ok(good)
}

fn throughput(arguments: &Arguments) -> Result<(Value, bool), Error> {
    let corpora = corpora::named(&CORPORA, arguments.data.data.as_deref(), arguments.bytes)?;
    let mut results = Vec::new();
    let mut lowest = f64::INFINITY;
    println!(
        "one thread, lexer automata, MB/s of the medians; ratio of medians, then of single rounds"
    );
    for vocabulary in VOCABULARIES {
        let peer = peer::tiktoken_rs(vocabulary).ok_or("tiktoken-rs lacks the vocabulary")?;
        let tokenizers = tokenizers(vocabulary)?;
        for corpus in &corpora {
            let mut best: f64 = 0.0;
            for (algorithm, ours) in &tokenizers {
                same_ids(ours, &*peer, corpus)?;
                let text = &*corpus.text;
                let encode = Rounds::time(
                    arguments.rounds,
                    || ours.encode(text),
                    || peer.encode_ordinary(text),
                );
                let count = Rounds::time(
                    arguments.rounds,
                    || ours.count(text),
                    || peer.count_ordinary(text),
                );
                best = best.max(encode.ratio());
                for (task, rounds) in [("encode", encode), ("count", count)] {
                    print(vocabulary, corpus, *algorithm, task, &rounds);
                    results.push(json!({
                        "vocabulary": vocabulary,
                        "corpus": corpus.name,
                        "bytes": corpus.text.len(),
                        "lexer": "automata",
                        "encoder": algorithm.name(),
                        "task": task,
                        "a": "bytepair",
                        "b": peer.name(),
                        "times": rounds.to_json(),
                    }));
                }
            }
            println!("{vocabulary} {}: best encoder {best:.2} times", corpus.name);
            lowest = lowest.min(best);
        }
    }
    println!("lowest ratio of the best encoder, encode: {lowest:.2}");
    let good = arguments.at_least.is_none_or(|ratio| lowest >= ratio);
    if !good {
        println!("FAIL: below --at-least");
    }
    Ok((Value::Array(results), good))
}

/// The embedded vocabulary with each of the encoders, on the automata lexer.
fn tokenizers(vocabulary: &str) -> Result<Vec<(Algorithm, Tokenizer)>, Error> {
    let base = Tokenizer::from_name(vocabulary)?;
    let mut tokenizers = Vec::new();
    for &algorithm in Algorithm::ALL {
        let builder = base.to_builder().lexer(Engine::Automata);
        tokenizers.push((algorithm, builder.encoder(algorithm).build()?));
    }
    Ok(tokenizers)
}

/// Nothing is timed before the two sides have given the same ids.
fn same_ids(ours: &Tokenizer, peer: &dyn Peer, corpus: &Corpus) -> Result<(), Error> {
    let ids = ours.encode(&corpus.text)?;
    let same = ids == peer.encode_ordinary(&corpus.text)
        && ours.count(&corpus.text)? == peer.count_ordinary(&corpus.text);
    match same {
        true => Ok(()),
        false => Err(format!("{}: the ids differ, so nothing is timed", corpus.name).into()),
    }
}

fn print(vocabulary: &str, corpus: &Corpus, algorithm: Algorithm, task: &str, rounds: &Rounds) {
    let speed = |seconds: f64| corpus.text.len() as f64 / seconds / 1e6;
    let (lowest, highest) = rounds.spread();
    println!(
        "{vocabulary:12} {:20} {:15} {task:7} ours {:6.1}  peer {:6.1}  ratio {:5.2} ({lowest:.2} to {highest:.2})",
        corpus.name,
        algorithm.name(),
        speed(rounds.a().median),
        speed(rounds.b().median),
        rounds.ratio(),
    );
}

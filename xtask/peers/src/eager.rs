//! What eager output costs: merges alone, and end to end through a pre-tokenizer (000 section 7.2,
//! Table 8). All sides in turn, after their ids have been compared.

use std::path::PathBuf;
use std::sync::Arc;

use bpe::byte_pair_encoding::BytePairEncoding;
use bpe_core::SpanEncoder;
use bpe_incremental::{EagerEncoder, IncrementalEncoder, LastTokenEngine};
use bpe_lexers::{Engine, Lexer};
use bytepair::Tokenizer;
use serde_json::{Value, json};

use crate::interleave::{Summary, in_turn};
use crate::peer::mtc_inc_bpe::MtcIncBpe;
use crate::peer::tiktoken_rs;
use crate::{DataFolder, Error, corpora};

const VOCABULARIES: [&str; 3] = ["r50k_base", "cl100k_base", "o200k_base"];
const CORPORA: [&str; 3] = ["english", "chinese", "code"];

#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    data: DataFolder,
    /// Rounds that are counted; in each every side runs once.
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// Bytes taken of each corpus.
    #[arg(long, default_value_t = 2_000_000)]
    bytes: usize,
    /// Only this vocabulary.
    #[arg(long)]
    vocabulary: Option<String>,
    /// Write the results to this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

const MTC: &str = "mtc-inc-bpe";

/// A way to make all ids of a text.
type Side<'a> = (&'static str, Box<dyn FnMut(&mut Vec<u32>) + 'a>);

/// Prints and writes both tables. An error where ids differ.
pub(crate) fn run(arguments: &Arguments) -> Result<bool, Error> {
    let corpora = corpora::named(&CORPORA, arguments.data.data.as_deref(), arguments.bytes)?;
    let mut results = Vec::new();
    println!("MB/s of the medians; the cost of eager output beside the same without it");
    for vocabulary in VOCABULARIES {
        let other = |only: &String| only != vocabulary;
        if arguments.vocabulary.as_ref().is_some_and(other) {
            continue;
        }
        let tokenizer = Tokenizer::from_name(vocabulary)?;
        let canonical = Arc::clone(tokenizer.canonical());
        let engine = LastTokenEngine::new(&canonical)?;
        let mtc = MtcIncBpe::new(&canonical)?;
        let tokens = || {
            canonical
                .vocabulary()
                .iter()
                .map(|(_, bytes)| bytes.to_vec())
        };
        let factor = bpe::byte_pair_encoding::find_hash_factor_for_dictionary(tokens());
        let backtracking = BytePairEncoding::from_dictionary(tokens(), Some(factor));
        let tiktoken = tiktoken_rs(vocabulary).ok_or("no tiktoken-rs")?;
        for corpus in &corpora {
            let text = corpus.text.as_str();
            let mut tables = vec![("merges alone", merges_alone(&engine, &mtc, text))];
            for (name, lexer) in [
                ("backtracking regex", Engine::Reference),
                ("fast lexer", Engine::Fast),
            ] {
                let ends = || -> Result<Ends, Error> {
                    let pattern = tokenizer.patterns().first().ok_or("no pattern")?;
                    Ok(Ends::new(pattern.lexer(lexer)?))
                };
                let mut sides = through_a_lexer(&engine, &backtracking, text, &ends)?;
                if name == "backtracking regex" {
                    let encode = || tiktoken.encode_ordinary(text);
                    let side = move |ids: &mut Vec<u32>| *ids = encode();
                    sides.push(("tiktoken-rs", Box::new(side)));
                }
                tables.push((name, sides));
            }
            for (table, sides) in tables {
                let place = format!("{vocabulary} {}, {table}", corpus.name);
                results.extend(time(&place, arguments.rounds, text.len(), sides)?.map(
                    |mut row| {
                        row["vocabulary"] = vocabulary.into();
                        row["corpus"] = corpus.name.as_str().into();
                        row["table"] = table.into();
                        row
                    },
                ));
            }
        }
    }
    if let Some(path) = &arguments.json {
        let mut text = serde_json::to_string_pretty(&Value::from(results))?;
        text.push('\n');
        std::fs::write(path, text)?;
    }
    Ok(true)
}

/// Compares the ids of all sides, times them in turn, prints a line and returns a row for each.
fn time(
    place: &str,
    rounds: usize,
    bytes: usize,
    mut sides: Vec<Side<'_>>,
) -> Result<impl Iterator<Item = Value> + use<>, Error> {
    let mut ids = Vec::new();
    let mut expected: Option<Vec<u32>> = None;
    let mut differing = Vec::new();
    for (name, side) in &mut sides {
        ids.clear();
        side(&mut ids);
        let expected = expected.get_or_insert_with(|| ids.clone());
        if *expected != ids {
            if !name.starts_with(MTC) {
                return Err(format!("{place}: the ids of {name} differ, nothing is timed").into());
            }
            let equal = expected
                .iter()
                .zip(&ids)
                .take_while(|(a, b)| a == b)
                .count();
            println!("{place}: {name} differs from token {equal} on, and is not timed");
            differing.push(*name);
        }
    }
    sides.retain(|(name, _)| !differing.contains(name));
    let mut outputs = vec![ids; sides.len()];
    let mut calls: Vec<Box<dyn FnMut() + '_>> = Vec::new();
    for ((_, side), output) in sides.iter_mut().zip(&mut outputs) {
        calls.push(Box::new(move || {
            output.clear();
            side(output);
        }));
    }
    let times = in_turn(rounds, &mut calls);
    drop(calls);
    let summaries: Vec<Summary> = times
        .iter()
        .map(|times| Summary::of(times.iter().map(std::time::Duration::as_secs_f64)))
        .collect();
    let speed = |summary: &Summary| bytes as f64 / summary.median / 1e6;
    let cells: Vec<String> = sides
        .iter()
        .zip(&summaries)
        .map(|((name, _), summary)| format!("{name} {:.1}", speed(summary)))
        .collect();
    // The first two sides are the plain and the eager one: of each round their quotient.
    let cost = Summary::of(
        times[1]
            .iter()
            .zip(&times[0])
            .map(|(eager, plain)| eager.as_secs_f64() / plain.as_secs_f64()),
    );
    println!(
        "{place}: eager {:+.0} %; {}",
        (cost.median - 1.0) * 100.0,
        cells.join(", ")
    );
    let names: Vec<&str> = sides.iter().map(|(name, _)| *name).collect();
    Ok(names
        .into_iter()
        .zip(summaries)
        .map(move |(name, summary)| {
            json!({
                "side": name,
                "bytes": bytes,
                "seconds": summary.to_json(),
                "eager_over_plain": cost.median,
            })
        }))
}

/// The whole text as one span.
fn merges_alone<'a>(
    engine: &'a LastTokenEngine,
    mtc: &'a MtcIncBpe,
    text: &'a str,
) -> Vec<Side<'a>> {
    let mut history = engine.history();
    let mut eager = EagerEncoder::new(engine);
    let mut span = IncrementalEncoder::new(engine);
    let mut tokenization = mtc.tokenization();
    let text = text.as_bytes();
    vec![
        (
            "pushed",
            Box::new(move |ids| {
                history.clear();
                if history.extend(text).is_ok() {
                    *ids = history.tokens(text.len());
                }
            }),
        ),
        (
            "eager",
            Box::new(move |ids| {
                // An error leaves ids short, which the comparison finds.
                if eager.feed(text, ids).is_ok() {
                    eager.finish(ids);
                }
            }),
        ),
        (
            "span encoder",
            Box::new(move |ids| {
                let _ = span.encode_span(text, ids);
            }),
        ),
        (
            MTC,
            Box::new(move |ids| mtc.encode(&mut tokenization, text, ids)),
        ),
        (
            "mtc-inc-bpe eager",
            Box::new(move |ids| mtc.encode_eagerly(text, ids)),
        ),
    ]
}

/// Every piece by merges alone, without a look-up of whole pieces.
fn through_a_lexer<'a>(
    engine: &'a LastTokenEngine,
    other: &'a BytePairEncoding,
    text: &'a str,
    ends: &dyn Fn() -> Result<Ends, Error>,
) -> Result<Vec<Side<'a>>, Error> {
    let mut plain = IncrementalEncoder::new(engine);
    let mut eager = EagerEncoder::new(engine);
    let [mut a, mut b, mut c, mut d] = [ends()?, ends()?, ends()?, ends()?];
    Ok(vec![
        (
            "ours",
            Box::new(move |ids| {
                a.for_each(text, |piece| {
                    let _ = plain.encode_span(piece, ids);
                });
            }),
        ),
        (
            "eager",
            Box::new(move |ids| {
                b.for_each(text, |piece| {
                    if eager.feed(piece, ids).is_ok() {
                        eager.finish(ids);
                    }
                });
            }),
        ),
        (
            "via backtracking",
            Box::new(move |ids| {
                c.for_each(text, |piece| {
                    ids.extend(other.encode_via_backtracking(piece))
                });
            }),
        ),
        (
            "via table",
            Box::new(move |ids| {
                d.for_each(text, |piece| ids.extend(other.encode_via_table(piece)));
            }),
        ),
    ])
}

/// The pieces that a lexer cuts, some at a time.
struct Ends {
    lexer: Box<dyn Lexer>,
    ends: Vec<usize>,
}

impl Ends {
    fn new(lexer: Box<dyn Lexer>) -> Self {
        Self {
            lexer,
            ends: Vec::new(),
        }
    }

    /// Of a pattern that leaves no gaps; on an error the rest is left out, which the comparison of
    /// ids finds.
    fn for_each(&mut self, text: &str, mut visit: impl FnMut(&[u8])) {
        let mut start = 0;
        loop {
            self.ends.clear();
            let found = self.lexer.pre_token_ends(text, start, 1024, &mut self.ends);
            if found.is_err() || self.ends.is_empty() {
                return;
            }
            for &end in &self.ends {
                visit(&text.as_bytes()[start..end]);
                start = end;
            }
        }
    }
}

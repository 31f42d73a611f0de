//! One thread on the text of models: ours, `tokenizers`, and the peers that load the same file, in turn, in one
//! process, after their ids have been compared.

use std::path::{Path, PathBuf};
use std::time::Duration;

use bytepair::{Pipeline, ReadLimits, Specials};
use serde_json::{Value, json};

use super::{content, models};
use crate::interleave::{Summary, timed};
use crate::peer::quietly;
use crate::speed::files;
use crate::{DataFolder, Error, corpora, peer};

/// Bytes of a document.
const DOCUMENT: usize = 4_800;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Models, by the names of their folders: all by default.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// The corpora.
    #[arg(long, value_delimiter = ',', default_values = ["english", "chinese", "code"])]
    corpus: Vec<String>,
    /// Bytes taken of each corpus.
    #[arg(long, default_value_t = 600_000)]
    bytes: usize,
    /// Rounds behind the first, which is the cold one.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Write the results to this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    #[command(flatten)]
    data: DataFolder,
}

type Encode = Box<dyn Fn(&str) -> Result<Vec<u32>, String>>;

/// A tokenizer with its name.
type Side = (&'static str, Encode);

/// Prints a row for each model and corpus: MB/s in the first round and in the median of the others. False where
/// our ids are not those of `tokenizers`.
pub(crate) fn run(arguments: &Arguments) -> Result<bool, Error> {
    tokenizers::utils::parallelism::set_parallelism(false);
    peer::silence_panics_of_peers();
    let data = arguments.data.data.as_deref().ok_or("no --data")?;
    let names: Vec<&str> = arguments.corpus.iter().map(String::as_str).collect();
    let corpora = corpora::named(&names, Some(data), arguments.bytes)?;
    let (mut results, mut agree) = (Vec::new(), true);
    println!("MB/s, first round / median of the others; documents of {DOCUMENT} bytes");
    for (model, path) in models(&data.join("tokenizers"))? {
        if !arguments.only.is_empty() && !arguments.only.contains(&model) {
            continue;
        }
        for corpus in &corpora {
            // Fresh ones, so that the first round is cold.
            let sides = sides(&model, &path)?;
            let documents = documents(&corpus.text);
            let mut row = format!("{model:20} {:10}", corpus.name);
            for (name, runs) in race(&sides, &documents, arguments.rounds) {
                match runs {
                    Ok(times) => {
                        let speed = |seconds: f64| corpus.text.len() as f64 / seconds / 1e6;
                        let (first, rest) = times.split_first().ok_or("no round")?;
                        let rest = Summary::of(rest.iter().map(Duration::as_secs_f64));
                        let (cold, warm) = (speed(first.as_secs_f64()), speed(rest.median));
                        row += &format!("  {name} {cold:.0} / {warm:.0}");
                        results.push(json!({
                            "model": model, "corpus": corpus.name, "bytes": corpus.text.len(),
                            "side": name, "cold_mb_s": cold, "warm_mb_s": warm,
                            "slowest_mb_s": speed(rest.max), "fastest_mb_s": speed(rest.min),
                        }));
                    }
                    Err(why) => {
                        agree &= name != TOKENIZERS && name != "bytepair";
                        row += &format!("  {name}: {why}");
                        results.push(json!({
                            "model": model, "corpus": corpus.name, "side": name, "not_timed": why,
                        }));
                    }
                }
            }
            println!("{row}");
        }
    }
    if let Some(path) = &arguments.json {
        std::fs::write(
            path,
            serde_json::to_string_pretty(&Value::Array(results))? + "\n",
        )?;
    }
    Ok(agree)
}

const TOKENIZERS: &str = "tokenizers";

fn documents(mut text: &str) -> Vec<&str> {
    let mut documents = Vec::new();
    while !text.is_empty() {
        let (document, rest) = text.split_at(text.ceil_char_boundary(DOCUMENT));
        documents.push(document);
        text = rest;
    }
    documents
}

/// The times of each side, one for each round; or why it was not timed. Ids are compared in the first
/// round, outside the time.
fn race(
    sides: &[Side],
    documents: &[&str],
    rounds: usize,
) -> Vec<(&'static str, Result<Vec<Duration>, String>)> {
    let mut runs: Vec<_> = sides
        .iter()
        .map(|(name, _)| (*name, Ok(Vec::new())))
        .collect();
    let mut expected: Option<Vec<Vec<u32>>> = None;
    for round in 0..=rounds.max(1) {
        for ((_, encode), (_, times)) in sides.iter().zip(&mut runs) {
            let Ok(done) = times else { continue };
            let (time, found) = timed(&mut || {
                quietly(|| documents.iter().map(|document| encode(document)).collect())
            });
            let ids: Result<Vec<Vec<u32>>, String> = match found {
                Ok(ids) => ids,
                Err(_) => Err("it panics".to_owned()),
            };
            match ids {
                Err(error) => *times = Err(error),
                Ok(ids) if round == 0 => {
                    done.push(time);
                    let expected = expected.get_or_insert_with(|| ids.clone());
                    let pairs = ids.iter().zip(&*expected);
                    let differ = pairs.filter(|(ids, expected)| ids != expected).count();
                    if differ > 0 {
                        *times = Err(format!("other ids in {differ} documents"));
                    }
                }
                Ok(_) => done.push(time),
            }
        }
    }
    runs
}

/// Ours first, whose ids the others are compared with.
fn sides(model: &str, path: &Path) -> Result<Vec<Side>, Error> {
    let json = content(path)?;
    let limits = ReadLimits::default();
    let ours = Pipeline::from_tokenizer_json(&json, &limits)?.with_specials(Specials::AllowAll)?;
    let fault = |error: tokenizers::Error| error.to_string();
    let theirs = tokenizers::Tokenizer::from_bytes(&json).map_err(fault)?;
    // What else there is reads a file.
    let unpacked = files::folder("models")?.join(format!("{model}.json"));
    std::fs::write(&unpacked, &json)?;
    let ours: Encode = Box::new(move |text| ours.encode(text).map_err(|error| error.to_string()));
    let theirs: Encode = Box::new(move |text| {
        let encoding = theirs.encode_fast(text, false).map_err(fault)?;
        Ok(encoding.get_ids().to_vec())
    });
    let sides = [
        Some(("bytepair", ours)),
        Some((TOKENIZERS, theirs)),
        fastokens(&unpacked),
        tokie(&unpacked),
    ];
    Ok(sides.into_iter().flatten().collect())
}

/// `None` where this peer was not built or refuses the file.
fn fastokens(_file: &Path) -> Option<Side> {
    #[cfg(feature = "fastokens")]
    if let Ok(peer) = fastokens::Tokenizer::from_file(_file) {
        let encode: Encode =
            Box::new(move |text| peer.encode(text).map_err(|error| error.to_string()));
        return Some(("fastokens", encode));
    }
    None
}

/// As [`fastokens`].
fn tokie(_file: &Path) -> Option<Side> {
    #[cfg(feature = "tokie")]
    if let Ok(peer) = tokie::Tokenizer::from_json(_file) {
        let encode: Encode = Box::new(move |text| Ok(peer.encode_ids(text, false)));
        return Some(("tokie", encode));
    }
    None
}

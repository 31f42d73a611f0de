//! The last-token engine beside mtc-inc-bpe and the `bpe` crate: merges alone, each text one span.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use bpe::byte_pair_encoding::BytePairEncoding;
use bpe_core::{Algorithm, CanonicalForm, Dictionary, SpanEncoder, TokenId, Vocabulary};
use bpe_incremental::{IncrementalEncoder, LastTokenEngine};
use bytepair::Tokenizer;
use serde_json::{Value, json};

use crate::interleave::{Rounds, Summary, waited};
use crate::peer::mtc_inc_bpe::MtcIncBpe;
use crate::random::Random;
use crate::{DataFolder, Error, corpora, load};

const VOCABULARIES: [&str; 3] = ["r50k_base", "cl100k_base", "o200k_base"];
const CORPORA: [&str; 3] = ["english", "chinese", "code"];

#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    data: DataFolder,
    /// Rounds that are counted; in each both sides run once.
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// Bytes taken of each corpus, and of each run.
    #[arg(long, default_value_t = 4_000_000)]
    bytes: usize,
    /// Only this section.
    #[arg(long, value_enum)]
    only: Option<Section>,
    /// Only this vocabulary.
    #[arg(long)]
    vocabulary: Option<String>,
    /// Write the results to this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Section {
    /// Corpora, beside mtc-inc-bpe: by pushed bytes, and as a span encoder.
    Text,
    /// The same for runs: blanks, dashes, newlines, `a`, DNA, base64.
    Runs,
    /// Time a byte from 2^10 to 2^24 bytes.
    Flat,
    /// Building the engine, in a process of its own: time and resident memory.
    Build,
    /// 000 App. J.2, beside all others.
    Pathological,
    /// Truncation and forks at growing lengths.
    Edits,
}

/// Runs the sections. False if a target is missed: see `docs/benchmarks/README.md`.
pub(crate) fn run(arguments: &Arguments) -> Result<bool, Error> {
    let wants = |section| arguments.only.is_none_or(|only| only == section);
    let mut results = serde_json::Map::new();
    if wants(Section::Build) {
        results.insert("build".into(), build(arguments.rounds.min(3))?);
    }
    if wants(Section::Text) {
        results.insert("text".into(), compare(arguments, &corpora(arguments)?)?);
    }
    if wants(Section::Runs) {
        results.insert("runs".into(), compare(arguments, &runs(arguments.bytes))?);
    }
    if wants(Section::Flat) {
        results.insert("flat".into(), flat()?);
    }
    if wants(Section::Edits) {
        results.insert("edits".into(), edits()?);
    }
    if wants(Section::Pathological) {
        results.insert("pathological".into(), pathological()?);
    }
    if let Some(path) = &arguments.json {
        let mut text = serde_json::to_string_pretty(&Value::Object(results))?;
        text.push('\n');
        std::fs::write(path, text)?;
    }
    Ok(true)
}

type Text = (String, Vec<u8>);

fn corpora(arguments: &Arguments) -> Result<Vec<Text>, Error> {
    let corpora = corpora::named(&CORPORA, arguments.data.data.as_deref(), arguments.bytes)?;
    let text = |corpus: corpora::Corpus| (corpus.name, corpus.text.into_bytes());
    Ok(corpora.into_iter().map(text).collect())
}

/// Texts that repeat themselves, or have few letters.
fn runs(bytes: usize) -> Vec<Text> {
    let mut random = Random::new(5);
    let mut from = |alphabet: &[u8]| -> Vec<u8> {
        (0..bytes)
            .map(|_| alphabet[random.below(alphabet.len())])
            .collect()
    };
    let base64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    vec![
        ("blanks".into(), vec![b' '; bytes]),
        ("dashes".into(), vec![b'-'; bytes]),
        ("newlines".into(), vec![b'\n'; bytes]),
        ("a".into(), vec![b'a'; bytes]),
        ("DNA".into(), from(b"ACGT")),
        ("base64".into(), from(base64)),
    ]
}

fn canonical(vocabulary: &str) -> Result<Arc<CanonicalForm>, Error> {
    Ok(Arc::clone(Tokenizer::from_name(vocabulary)?.canonical()))
}

/// Ours by pushed bytes and as a span encoder beside mtc-inc-bpe, after comparing the ids.
fn compare(arguments: &Arguments, texts: &[Text]) -> Result<Value, Error> {
    let mut results = Vec::new();
    println!("MB/s of the medians, mtc-inc-bpe and ours in turn; ratio of medians");
    for vocabulary in VOCABULARIES {
        if arguments
            .vocabulary
            .as_ref()
            .is_some_and(|only| only != vocabulary)
        {
            continue;
        }
        let canonical = canonical(vocabulary)?;
        let engine = LastTokenEngine::new(&canonical)?;
        let mut history = engine.history();
        let mut encoder = IncrementalEncoder::new(&engine);
        let peer = MtcIncBpe::new(&canonical)?;
        let mut tokenization = peer.tokenization();
        for (name, text) in texts {
            let mut expected = Vec::new();
            peer.encode(&mut tokenization, text, &mut expected);
            let mut ids = Vec::new();
            encoder.encode_span(text, &mut ids)?;
            history.clear();
            history.extend(text)?;
            if ids != expected || history.tokens(text.len()) != expected {
                return Err(
                    format!("{vocabulary}, {name}: the ids differ, nothing is timed").into(),
                );
            }
            let push = Rounds::time(
                arguments.rounds,
                || {
                    history.clear();
                    for &byte in text {
                        if history.push(byte).is_err() {
                            return Vec::new();
                        }
                    }
                    history.tokens(text.len())
                },
                || {
                    let mut ids = Vec::new();
                    peer.encode(&mut tokenization, text, &mut ids);
                    ids
                },
            );
            let extend = Rounds::time(
                arguments.rounds,
                || {
                    history.clear();
                    history.extend(text).map(|()| history.tokens(text.len()))
                },
                || {
                    let mut ids = Vec::new();
                    peer.encode(&mut tokenization, text, &mut ids);
                    ids
                },
            );
            let span = Rounds::time(
                arguments.rounds,
                || {
                    ids.clear();
                    encoder.encode_span(text, &mut ids)
                },
                || {
                    expected.clear();
                    peer.encode(&mut tokenization, text, &mut expected);
                },
            );
            let speed = |seconds: f64| text.len() as f64 / seconds / 1e6;
            println!(
                "{vocabulary:12} {name:20} mtc {:6.1}  push {:6.1} ({:5.2} times)  extend {:6.1} ({:5.2} times)  span {:6.1} ({:5.2} times)",
                speed(span.b().median),
                speed(push.a().median),
                push.ratio(),
                speed(extend.a().median),
                extend.ratio(),
                speed(span.a().median),
                span.ratio(),
            );
            for (task, rounds) in [("push", push), ("extend", extend), ("span", span)] {
                results.push(json!({
                    "vocabulary": vocabulary,
                    "text": name,
                    "bytes": text.len(),
                    "task": task,
                    "a": "bpe-incremental",
                    "b": "mtc-inc-bpe",
                    "times": rounds.to_json(),
                }));
            }
        }
    }
    Ok(results.into())
}

/// Nanoseconds a byte at growing lengths, each the best of some rounds.
fn flat() -> Result<Value, Error> {
    const LENGTHS: [u32; 8] = [10, 12, 14, 16, 18, 20, 22, 24];
    let mut results = Vec::new();
    for vocabulary in VOCABULARIES {
        let engine = LastTokenEngine::new(&canonical(vocabulary)?)?;
        let mut history = engine.history();
        let mut encoder = IncrementalEncoder::new(&engine);
        let mut ids = Vec::new();
        for (name, text) in runs(1 << 24) {
            let mut row = [Vec::new(), Vec::new()];
            for length in LENGTHS {
                // Many short texts, so that each figure stands on some milliseconds; not one of them
                // often, whose branches and table entries would be learnt by heart.
                let texts = || {
                    text.chunks_exact(1 << length)
                        .take(1 << 20_u32.saturating_sub(length))
                };
                let bytes: usize = texts().map(<[u8]>::len).sum();
                let mut least = [f64::INFINITY; 2];
                for _ in 0..3 {
                    let (start, before) = (Instant::now(), waited());
                    for text in texts() {
                        history.clear();
                        history.extend(text)?;
                    }
                    let middle = waited();
                    let push = (start.elapsed() + before)
                        .saturating_sub(middle)
                        .as_secs_f64();
                    let start = Instant::now();
                    for text in texts() {
                        ids.clear();
                        encoder.encode_span(text, &mut ids)?;
                    }
                    let span = (start.elapsed() + middle)
                        .saturating_sub(waited())
                        .as_secs_f64();
                    for (least, time) in least.iter_mut().zip([push, span]) {
                        *least = least.min(time / bytes as f64 * 1e9);
                    }
                }
                row[0].push(least[0]);
                row[1].push(least[1]);
            }
            for (task, row) in ["push", "span"].iter().zip(row) {
                let most = row.iter().copied().fold(0.0, f64::max);
                let least = row.iter().copied().fold(f64::INFINITY, f64::min);
                let cells: Vec<String> = row.iter().map(|ns| format!("{ns:5.1}")).collect();
                println!(
                    "{vocabulary:12} {name:9} {task} ns/byte from 2^10 to 2^24: {}  within {:.2}",
                    cells.join(" "),
                    most / least
                );
                results.push(json!({
                    "vocabulary": vocabulary,
                    "text": name,
                    "task": task,
                    "log2_bytes": LENGTHS,
                    "ns_per_byte": row,
                }));
            }
        }
    }
    Ok(results.into())
}

/// Nanoseconds of a fork, and of a byte taken back, at growing lengths.
fn edits() -> Result<Value, Error> {
    let engine = LastTokenEngine::new(&canonical("o200k_base")?)?;
    let corpus = corpora::named(&["english"], None, usize::MAX)?;
    let text: Vec<u8> = corpus
        .iter()
        .flat_map(|corpus| corpus.text.bytes())
        .collect();
    let mut results = Vec::new();
    for length in [10, 12, 14, 16, 18, 20, 22, 24] {
        let mut history = engine.history();
        let mut left = 1 << length;
        while left > 0 {
            let count = left.min(text.len());
            history.extend(&text[..count])?;
            left -= count;
        }
        const TIMES: u32 = 1000;
        let start = Instant::now();
        for _ in 0..TIMES {
            let mut fork = history.fork();
            fork.extend(b" and so on")?;
            std::hint::black_box(&fork);
        }
        let fork = start.elapsed().as_secs_f64() / f64::from(TIMES) * 1e9;
        let mut fork_history = history.fork();
        let start = Instant::now();
        let cut = (1 << length) / 2;
        for len in (cut..1 << length).rev() {
            fork_history.truncate(len);
        }
        let truncate = start.elapsed().as_secs_f64() / cut as f64 * 1e9;
        println!(
            "2^{length} bytes: fork and ten bytes {fork:.0} ns, a byte taken back {truncate:.1} ns"
        );
        results.push(json!({
            "bytes": 1 << length,
            "fork_and_ten_bytes_ns": fork,
            "truncate_byte_ns": truncate,
        }));
    }
    Ok(results.into())
}

const SIDES: [&str; 3] = ["nothing", "bpe-incremental", "mtc-inc-bpe"];
const DICTIONARIES: [&str; 2] = ["o200k_base", "pathological"];

/// Building each side from a canonical form, each in a process of its own, in turn.
fn build(rounds: usize) -> Result<Value, Error> {
    let mut results = Vec::new();
    for dictionary in DICTIONARIES {
        for side in SIDES {
            let mut runs = Vec::new();
            for _ in 0..rounds.max(1) {
                let mut child = Command::new(std::env::current_exe()?);
                let output = child
                    .args(["incremental-child", side, dictionary])
                    .output()?;
                if !output.status.success() {
                    return Err(String::from_utf8_lossy(&output.stderr).into());
                }
                runs.push(serde_json::from_slice::<Value>(&output.stdout)?);
            }
            let summary =
                |field: &str| Summary::of(runs.iter().filter_map(|run| run[field].as_f64())).median;
            println!(
                "{dictionary:12} {side:16} {:7.3} s, {:7.1} MB resident more than the canonical form alone, {:7.1} MB at most",
                summary("seconds"),
                summary("resident_bytes") / 1e6,
                summary("peak_bytes") / 1e6,
            );
            results.push(json!({"dictionary": dictionary, "side": side, "runs": runs}));
        }
    }
    Ok(results.into())
}

/// Builds one side and prints what that took as JSON.
pub(crate) fn child(side: &str, dictionary: &str) -> Result<(), Error> {
    let canonical = match dictionary {
        "pathological" => pathological_dictionary()?.0,
        _ => canonical(dictionary)?,
    };
    let before = load::memory("VmRSS:").unwrap_or(0);
    let (start, waiting) = (Instant::now(), waited());
    let alive: Box<dyn std::any::Any> = match side {
        "nothing" => Box::new(()),
        "bpe-incremental" => Box::new(LastTokenEngine::new(&canonical)?),
        "mtc-inc-bpe" => Box::new(MtcIncBpe::new(&canonical)?),
        _ => return Err(format!("no such side: {side}").into()),
    };
    let seconds = (start.elapsed() + waiting)
        .saturating_sub(waited())
        .as_secs_f64();
    let resident = load::memory("VmRSS:").unwrap_or(0).saturating_sub(before);
    let peak = load::memory("VmHWM:").unwrap_or(0).saturating_sub(before);
    drop(alive);
    println!(
        "{}",
        json!({"seconds": seconds, "resident_bytes": resident, "peak_bytes": peak})
    );
    Ok(())
}

const DEPTH: usize = 4096;
const REPETITIONS: usize = 128;

/// The dictionary and the text of 000 App. J.2: base tokens of two rising bytes, B1 to BK and BK to
/// B1 as the text, the pair in the middle merged first, then all that grows from it to either side.
fn pathological_dictionary() -> Result<(Arc<CanonicalForm>, Vec<u8>), Error> {
    let base: Vec<[u8; 2]> = (0..=255_u8)
        .flat_map(|i| (i..=255).skip(1).map(move |j| [i, j]))
        .take(DEPTH)
        .collect();
    let mut tokens: Vec<Vec<u8>> = (0..=255).map(|byte| vec![byte]).collect();
    let mut merges: Vec<(TokenId, TokenId)> = Vec::new();
    let mut push = |tokens: &mut Vec<Vec<u8>>, left: TokenId, right: TokenId| {
        let token = [&tokens[left as usize][..], &tokens[right as usize]].concat();
        tokens.push(token);
        merges.push((left, right));
        tokens.len() as TokenId - 1
    };
    let base: Vec<TokenId> = base
        .iter()
        .map(|&[i, j]| push(&mut tokens, i.into(), j.into()))
        .collect();
    let last = base[DEPTH - 1];
    push(&mut tokens, last, last);
    let (mut left, mut right) = (last, last);
    for &token in base[..DEPTH - 1].iter().rev() {
        left = push(&mut tokens, token, left);
        right = push(&mut tokens, right, token);
    }
    let there = base.iter().chain(base.iter().rev());
    let text: Vec<u8> = there.flat_map(|&id| tokens[id as usize].clone()).collect();
    let vocabulary = Vocabulary::new((0..).zip(tokens))?;
    let dictionary = Dictionary::from_merges(vocabulary, merges)?;
    let canonical = Arc::new(CanonicalForm::new(&dictionary));
    Ok((canonical, text.repeat(REPETITIONS)))
}

/// 000 App. J.2 for all sides; the ids are compared first.
fn pathological() -> Result<Value, Error> {
    let (canonical, text) = pathological_dictionary()?;
    let engine = LastTokenEngine::new(&canonical)?;
    let mut encoder = IncrementalEncoder::new(&engine);
    let mut history = engine.history();
    let peer = MtcIncBpe::new(&canonical)?;
    let mut tokenization = peer.tokenization();
    let (mut ids, mut expected) = (Vec::new(), Vec::new());
    encoder.encode_span(&text, &mut ids)?;
    peer.encode(&mut tokenization, &text, &mut expected);
    let mut heap = Vec::new();
    let mut priority = Algorithm::PriorityMerge.encoder(&canonical)?;
    priority.encode_span(&text, &mut heap)?;
    if ids != expected || ids != heap {
        return Err("pathological: the ids differ, nothing is timed".into());
    }
    let push = Rounds::time(
        5,
        || {
            history.clear();
            history.extend(&text)
        },
        || {
            expected.clear();
            peer.encode(&mut tokenization, &text, &mut expected);
        },
    );
    let span = Rounds::time(
        5,
        || {
            ids.clear();
            encoder.encode_span(&text, &mut ids)
        },
        || {
            expected.clear();
            peer.encode(&mut tokenization, &text, &mut expected);
        },
    );
    let merge = Rounds::time(
        3,
        || {
            ids.clear();
            encoder.encode_span(&text, &mut ids)
        },
        || {
            heap.clear();
            priority.encode_span(&text, &mut heap)
        },
    );
    println!(
        "000 App. J.2, {} bytes: push {:.1} ms, span {:.1} ms, mtc-inc-bpe {:.1} ms, priority_merge {:.1} ms",
        text.len(),
        push.a().median * 1e3,
        span.a().median * 1e3,
        span.b().median * 1e3,
        merge.b().median * 1e3,
    );
    let mut results = vec![
        json!({"task": "push", "a": "bpe-incremental", "b": "mtc-inc-bpe", "times": push.to_json()}),
        json!({"task": "span", "a": "bpe-incremental", "b": "mtc-inc-bpe", "times": span.to_json()}),
        json!({"task": "span", "a": "bpe-incremental", "b": "priority_merge", "times": merge.to_json()}),
    ];
    // Of the `bpe` crate two repetitions, since it takes as long for each.
    let tokens = || {
        canonical
            .vocabulary()
            .iter()
            .map(|(_, bytes)| bytes.to_vec())
    };
    let start = Instant::now();
    let factor = bpe::byte_pair_encoding::find_hash_factor_for_dictionary(tokens());
    let other = BytePairEncoding::from_dictionary(tokens(), Some(factor));
    println!("bpe: built in {:.1} s", start.elapsed().as_secs_f64());
    let short = &text[..text.len() / REPETITIONS * 2];
    ids.clear();
    encoder.encode_span(short, &mut ids)?;
    type Encode = fn(&BytePairEncoding, &[u8]) -> Vec<u32>;
    let encoders: [(&str, Encode); 2] = [
        ("bpe table", BytePairEncoding::encode_via_table),
        (
            "bpe backtracking",
            BytePairEncoding::encode_via_backtracking,
        ),
    ];
    for (name, encode) in encoders {
        let start = Instant::now();
        if encode(&other, short) != ids {
            return Err(format!("pathological: the ids of {name} differ").into());
        }
        let theirs = start.elapsed().as_secs_f64() * (REPETITIONS / 2) as f64;
        let ours = span.a().median;
        println!(
            "{name}: {theirs:.2} s for all repetitions, from two; {:.0} times ours",
            theirs / ours
        );
        results.push(json!({"task": "span", "a": "bpe-incremental", "b": name,
            "a_seconds": ours, "b_seconds_from_two_repetitions": theirs}));
    }
    Ok(results.into())
}

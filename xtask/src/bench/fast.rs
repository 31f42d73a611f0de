//! The fast path beside the plain one: cold, half warm and warm, short texts, and what is worst for it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use bpe_lexers::{FastLexer, InstructionSet};
use bytepair::{Algorithm, Tokenizer, TokenizerBuilder};
use serde_json::{Value, json};

use super::{Error, corpora, worst, write_json};
use crate::data;
use crate::stopwatch::Stopwatch;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Vocabularies to measure.
    #[arg(long, value_delimiter = ',', default_values = ["o200k_base", "cl100k_base"])]
    vocabulary: Vec<String>,
    /// Folder with `corpora/*.txt.gz`; without it, the small corpora of bench-data.
    #[arg(long, env = "BYTEPAIR_DATA")]
    data: Option<PathBuf>,
    /// Bytes of each corpus at most.
    #[arg(long, default_value_t = 8_000_000)]
    bytes: usize,
    /// Rounds, each with fresh caches; ours and the plain path in turn.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Write the results to this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the tables as Markdown to this file.
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
}

/// The parts of a text are timed one by one, and of each the least of all rounds counts: what other
/// work on the machine takes from one round, it hardly takes from the same part in all of them.
const PART: usize = 1 << 16;

pub(super) fn run(arguments: &Arguments) -> Result<bool, Error> {
    let corpora = texts(arguments)?;
    let mut report = Report::default();
    for name in &arguments.vocabulary {
        let tokenizer = Tokenizer::from_name(name)?;
        throughput(&tokenizer, &corpora, arguments.rounds, &mut report)?;
        instruction_sets(&tokenizer, &corpora, arguments.rounds, &mut report)?;
        calls(&tokenizer, &corpora, arguments.rounds, &mut report)?;
        worst_inputs(&tokenizer, &corpora, arguments.rounds, &mut report)?;
    }
    if let Some(path) = &arguments.markdown {
        let written = std::fs::write(path, &report.markdown);
        written.map_err(|error| format!("{}: {error}", path.display()))?;
    }
    write_json(arguments.json.as_deref(), &report.results.into())?;
    Ok(true)
}

#[derive(Default)]
struct Report {
    markdown: String,
    results: Vec<Value>,
}

impl Report {
    fn line(&mut self, line: &str) {
        println!("{line}");
        self.markdown.push_str(line);
        self.markdown.push('\n');
    }
}

/// A text that is seen first, and another one of its kind.
struct Text {
    name: String,
    first: String,
    second: String,
}

fn texts(arguments: &Arguments) -> Result<Vec<Text>, Error> {
    let all = match &arguments.data {
        None => corpora::all()?,
        Some(folder) => ["english", "code", "chinese", "multilingual", "structured"]
            .into_iter()
            .map(|name| {
                let path = folder.join(format!("corpora/{name}.txt.gz"));
                Ok((name.to_owned(), String::from_utf8(data::read(&path)?)?))
            })
            .collect::<Result<_, Error>>()?,
    };
    let halves = all.into_iter().filter(|(name, _)| name != "adversarial");
    Ok(halves
        .map(|(name, text)| {
            let text = &text[..text.floor_char_boundary(arguments.bytes)];
            let (first, second) = text.split_at(text.floor_char_boundary(text.len() / 2));
            Text {
                name,
                first: first.to_owned(),
                second: second.to_owned(),
            }
        })
        .collect())
}

/// Bytes of a batch.
const BATCH: usize = 16 << 20;

/// Cold, half warm and warm.
const STATES: [&str; 3] = ["cold", "half warm", "warm"];

fn throughput(
    tokenizer: &Tokenizer,
    texts: &[Text],
    rounds: usize,
    report: &mut Report,
) -> Result<(), Error> {
    let plain = tokenizer.to_builder().encoder(Algorithm::PriorityMerge);
    let plain = plain.build()?;
    let name = tokenizer.name().unwrap_or_default();
    report.line("");
    report.line(&format!(
        "{name}: MB/s cold (first half, fresh caches) / half warm (second half after it) / warm \
         (second half again), and in brackets how many times as fast as the plain path"
    ));
    report.line("");
    report.line(
        "| | cold | half warm | warm | pieces alone, ns | cold, half warm, warm, ns a piece |",
    );
    report.line("|---|---|---|---|---|---|");
    for text in texts {
        let expected = plain.encode(&text.second)?;
        if tokenizer.encode(&text.second)? != expected {
            return Err(format!("{name}, {}: the paths differ", text.name).into());
        }
        let mut best = [const { Vec::new() }; 6];
        let mut lexing = Vec::new();
        let mut pieces = [0; 2];
        for _ in 0..rounds.max(1) {
            for (path, tokenizer) in [tokenizer, &plain].into_iter().enumerate() {
                time_states(tokenizer, text, &mut best[3 * path..3 * path + 3])?;
            }
            pieces[1] = 0;
            let mut lexer = tokenizer.patterns()[0].lexer(bytepair::Engine::Auto)?;
            let mut ends = Vec::new();
            time_parts(&text.second, &mut lexing, |part| {
                let mut at = 0;
                while at < part.len() {
                    ends.clear();
                    lexer.pre_token_ends(part, at, 1024, &mut ends)?;
                    at = *ends.last().ok_or("a pattern with gaps")?;
                    pieces[1] += ends.len();
                }
                Ok(())
            })?;
        }
        pieces[0] = pieces[1] * text.first.len() / text.second.len().max(1);
        let seconds = best.map(|parts| parts.iter().sum::<f64>());
        let len = |state: usize| match state {
            0 => text.first.len(),
            _ => text.second.len(),
        } as f64;
        let speed = |state: usize| len(state) / seconds[state] / 1e6;
        let ratio = |state: usize| seconds[3 + state] / seconds[state];
        let each = |state: usize| seconds[state] * 1e9 / pieces[state.min(1)] as f64;
        let lexing = lexing.iter().sum::<f64>() * 1e9 / pieces[1] as f64;
        let cells: Vec<String> = (0..3)
            .map(|state| format!("{:.0} ({:.1})", speed(state), ratio(state)))
            .collect();
        report.line(&format!(
            "| {} | {} | {lexing:.1} | {:.0}, {:.0}, {:.0} |",
            text.name,
            cells.join(" | "),
            each(0),
            each(1),
            each(2)
        ));
        for (state, label) in STATES.into_iter().enumerate() {
            report.results.push(json!({
                "vocabulary": name,
                "corpus": text.name,
                "state": label,
                "bytes": len(state),
                "megabytes_per_second": speed(state),
                "times_plain": ratio(state),
                "nanoseconds_per_piece": each(state),
                "lexing_nanoseconds_per_piece": lexing,
            }));
        }
    }
    Ok(())
}

/// What the instructions of newer processors are worth, in the lexer and in the encoder together.
fn instruction_sets(
    tokenizer: &Tokenizer,
    texts: &[Text],
    rounds: usize,
    report: &mut Report,
) -> Result<(), Error> {
    let name = tokenizer.name().unwrap_or_default();
    let sets = InstructionSet::available();
    let tokenizers = sets
        .iter()
        .map(|&set| {
            let lexer = FastLexer::with_instructions(&tokenizer.patterns()[0], set)?;
            let builder = tokenizer.to_builder().custom_lexers(vec![Box::new(lexer)]);
            Ok(builder.build()?)
        })
        .collect::<Result<Vec<_>, Error>>()?;
    report.line("");
    report.line(&format!(
        "{name}: MB/s half warm and warm with each instruction set"
    ));
    report.line("");
    let labels = sets.iter().map(|set| format!("{set:?}"));
    let labels: Vec<String> = labels.collect();
    report.line(&format!("| | {} |", labels.join(" | ")));
    report.line(&format!("|---|{}", "---|".repeat(sets.len())));
    for text in texts {
        let expected = tokenizer.encode(&text.second)?;
        let mut best = vec![[const { Vec::new() }; 3]; sets.len()];
        for _ in 0..rounds.max(1) {
            for (tokenizer, best) in tokenizers.iter().zip(&mut best) {
                time_states(tokenizer, text, best)?;
            }
        }
        let mut cells = Vec::new();
        for ((tokenizer, best), label) in tokenizers.iter().zip(best).zip(&labels) {
            if tokenizer.encode(&text.second)? != expected {
                return Err(format!("{name}, {}, {label}: the ids differ", text.name).into());
            }
            let [_, half_warm, warm] = best.map(|parts| {
                let seconds: f64 = parts.iter().sum();
                text.second.len() as f64 / seconds / 1e6
            });
            cells.push(format!("{half_warm:.0}, {warm:.0}"));
            report.results.push(json!({
                "vocabulary": name,
                "corpus": text.name,
                "instruction_set": label,
                "half_warm_megabytes_per_second": half_warm,
                "warm_megabytes_per_second": warm,
            }));
        }
        report.line(&format!("| {} | {} |", text.name, cells.join(" | ")));
    }
    Ok(())
}

/// Encodes both halves and the second again by a fresh worker, each as [`time_parts`] does.
fn time_states(tokenizer: &Tokenizer, text: &Text, best: &mut [Vec<f64>]) -> Result<(), Error> {
    let mut worker = tokenizer.worker();
    let halves = [&text.first, &text.second, &text.second];
    for (half, best) in halves.into_iter().zip(best) {
        let mut ids = Vec::with_capacity(half.len());
        time_parts(half, best, |part| Ok(worker.encode_into(part, &mut ids)?))?;
    }
    Ok(())
}

/// Calls `work` for each part of `text`, and keeps the least seconds of each.
fn time_parts(
    text: &str,
    best: &mut Vec<f64>,
    mut work: impl FnMut(&str) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut rest = text;
    let mut number = 0;
    while !rest.is_empty() {
        let (part, after) = rest.split_at(rest.ceil_char_boundary(PART));
        let watch = Stopwatch::start();
        work(part)?;
        let seconds = watch.seconds();
        match best.get_mut(number) {
            Some(best) => *best = best.min(seconds),
            None => best.push(seconds),
        }
        number += 1;
        rest = after;
    }
    Ok(())
}

/// What a call costs: short texts, ranges, counting, two threads.
fn calls(
    tokenizer: &Tokenizer,
    texts: &[Text],
    rounds: usize,
    report: &mut Report,
) -> Result<(), Error> {
    let name = tokenizer.name().unwrap_or_default();
    report.line("");
    report.line(&format!(
        "{name}: calls on the second half in parts, half warm caches kept: MB/s by `encode_into` with \
         messages of 100 bytes and documents of 4,800; times that `encode_with_offsets` and `count` \
         take beside `encode`; two threads beside one, batches of 16 MB in documents of 4,800"
    ));
    report.line("");
    report.line("| | 100 bytes | ns a call | 4,800 bytes | whole | ranges | count | two threads |");
    report.line("|---|---|---|---|---|---|---|---|");
    for text in texts {
        let whole = &text.second[..text.second.floor_char_boundary(2_000_000)];
        let mut speeds = Vec::new();
        for size in [100, 4_800, usize::MAX] {
            let parts = cut(whole, size);
            let mut least = f64::INFINITY;
            for _ in 0..rounds.max(1) {
                let mut ids = Vec::with_capacity(whole.len());
                let watch = Stopwatch::start();
                for part in &parts {
                    ids.clear();
                    tokenizer.encode_into(part, &mut ids)?;
                }
                least = least.min(watch.seconds());
            }
            speeds.push((
                whole.len() as f64 / least / 1e6,
                least * 1e9 / parts.len() as f64,
            ));
        }
        let mut least = [f64::INFINITY; 3];
        let documents = cut(whole, 4_800);
        for _ in 0..rounds.max(1) {
            for (call, least) in least.iter_mut().enumerate() {
                let watch = Stopwatch::start();
                for document in &documents {
                    let tokens = match call {
                        0 => tokenizer.encode(document)?.len(),
                        1 => tokenizer.encode_with_offsets(document)?.byte_ranges.len(),
                        _ => tokenizer.count(document)?,
                    };
                    std::hint::black_box(tokens);
                }
                *least = least.min(watch.seconds());
            }
        }
        let times = BATCH.div_ceil(whole.len().max(1));
        let batch = documents.repeat(times);
        let mut threads = [f64::INFINITY; 2];
        for _ in 0..rounds.max(1) {
            for (number, least) in threads.iter_mut().enumerate() {
                let start = Instant::now();
                tokenizer.encode_batch_with(&batch, number + 1)?;
                *least = least.min(start.elapsed().as_secs_f64());
            }
        }
        let [(short, call), (document, _), (all, _)] = speeds[..] else {
            return Err("three sizes".into());
        };
        let [ranges, count] = [least[1] / least[0], least[2] / least[0]];
        let scaling = threads[0] / threads[1];
        report.line(&format!(
            "| {} | {short:.0} | {call:.0} | {document:.0} | {all:.0} | {ranges:.2} | {count:.2} | \
             {scaling:.2} |",
            text.name
        ));
        report.results.push(json!({
            "vocabulary": name,
            "corpus": text.name,
            "messages_megabytes_per_second": short,
            "nanoseconds_per_message": call,
            "documents_megabytes_per_second": document,
            "ranges_times_encode": ranges,
            "count_times_encode": count,
            "two_threads_times_one": scaling,
        }));
    }
    Ok(())
}

/// Parts of some `size` bytes.
fn cut(text: &str, size: usize) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (part, after) = rest.split_at(rest.ceil_char_boundary(size));
        parts.push(part);
        rest = after;
    }
    parts
}

const MERGES_ALONE: &str = "English, merges alone";

/// The first pass over each of the worst inputs, by fresh caches, beside the first pass over English.
fn worst_inputs(
    tokenizer: &Tokenizer,
    texts: &[Text],
    rounds: usize,
    report: &mut Report,
) -> Result<(), Error> {
    let name = tokenizer.name().unwrap_or_default();
    let english = texts.iter().find(|text| text.name == "english");
    let english = &english.ok_or("no English corpus")?.first;
    let english = &english[..english.floor_char_boundary(1 << 20)];
    let mut inputs = vec![("English".to_owned(), tokenizer.clone(), english.to_owned())];
    for (input, text) in worst::inputs()? {
        inputs.push((input.to_owned(), tokenizer.clone(), text));
    }
    // As if all pieces of a text had been made to collide: a cache of one line.
    let one_line = tokenizer.to_builder().cache_bytes(0).build()?;
    for text in texts {
        let some = &text.first[..text.first.floor_char_boundary(1 << 20)];
        let input = format!("{}, all keys in one line", text.name);
        inputs.push((input, one_line.clone(), some.to_owned()));
    }
    // Without a pre-tokenizer, beside English without one.
    let alone = TokenizerBuilder::from_canonical(Arc::clone(tokenizer.canonical())).build()?;
    inputs.push((MERGES_ALONE.to_owned(), alone, english.to_owned()));
    let (pathological, text) = worst::pathological()?;
    inputs.push(("000 App. J.2, merges alone".to_owned(), pathological, text));
    report.line("");
    report.line(&format!(
        "{name}: worst inputs of 1 MB, first pass by fresh caches, and what part that is of English"
    ));
    report.line("");
    report.line("| | MB/s | of English |");
    report.line("|---|---|---|");
    let mut of_english = None;
    for (input, tokenizer, text) in inputs {
        let mut least = f64::INFINITY;
        for _ in 0..rounds.max(1) {
            let mut worker = tokenizer.worker();
            let mut ids = Vec::with_capacity(text.len());
            let watch = Stopwatch::start();
            worker.encode_into(&text, &mut ids)?;
            least = least.min(watch.seconds());
        }
        let speed = text.len() as f64 / least / 1e6;
        if input == MERGES_ALONE {
            of_english = None;
        }
        let english = *of_english.get_or_insert(speed);
        report.line(&format!(
            "| {input} | {speed:.1} | 1/{:.1} |",
            english / speed
        ));
        report.results.push(json!({
            "vocabulary": name,
            "input": input,
            "megabytes_per_second": speed,
            "english_times": english / speed,
        }));
    }
    Ok(())
}

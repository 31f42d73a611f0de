//! Several threads beside one, and beside the ways of 004: accuracy, latency, stages, and a model.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use bpe_parallel::{Comparison, Workers};
use bytepair::{EncodeError, Parallel, Pipeline, PipelineParallel, TokenId, Tokenizer};
use serde_json::{Value, json};

use super::{Error, corpora, median, write_json};
use crate::{data, verify};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Folder with `corpora/*.txt.gz` and `tokenizers/`.
    #[arg(long, env = "BYTEPAIR_DATA")]
    data: Option<PathBuf>,
    /// How often each pair is measured; the median counts.
    #[arg(long, default_value_t = 7)]
    repeats: usize,
    /// Two threads beside one, and nothing else.
    #[arg(long)]
    two_threads: bool,
    /// Write the results to this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the tables to this file.
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
}

const MB: usize = 1 << 20;

/// How often a pair is measured for each repeat: a turn takes milliseconds.
const TURNS: usize = 8;

/// Processes of 004: a text is cut into so many parts.
const PARTS: usize = 32;

/// Prints all tables. False where a result of ours is not that of one thread.
pub(super) fn run(arguments: &Arguments) -> Result<bool, Error> {
    let texts = texts(arguments.data.as_deref())?;
    let repeats = arguments.repeats.max(1);
    if arguments.two_threads {
        let (tokenizer, data) = (Tokenizer::o200k_base(), arguments.data.as_deref());
        let mut page = String::new();
        let rows = two_threads(&tokenizer, data, &texts, repeats, &mut page)?;
        print(&page, arguments)?;
        write_json(arguments.json.as_deref(), &json!({"two_threads": rows}))?;
        return Ok(true);
    }
    let mut tokenizers = Vec::new();
    for name in ["r50k_base", "cl100k_base", "o200k_base"] {
        tokenizers.push(Tokenizer::from_name(name)?);
    }
    if let Some(data) = &arguments.data {
        tokenizers.extend(verify::parallel::other_models(data)?);
    }
    let mut page = String::new();
    let mut results = serde_json::Map::new();
    let (accuracy, is_exact) = accuracy(&tokenizers, &texts, &mut page)?;
    results.insert("accuracy".to_owned(), accuracy);
    let tokenizer = Tokenizer::o200k_base();
    results.insert(
        "two_threads".to_owned(),
        two_threads(
            &tokenizer,
            arguments.data.as_deref(),
            &texts,
            repeats,
            &mut page,
        )?,
    );
    results.insert("stages".to_owned(), stages(&tokenizer, &texts, &mut page)?);
    results.insert(
        "lengths".to_owned(),
        lengths(&tokenizer, &texts, repeats, &mut page)?,
    );
    results.insert(
        "batches".to_owned(),
        batches(&tokenizer, &texts, &mut page)?,
    );
    results.insert("model".to_owned(), model(&tokenizer, &texts, &mut page)?);
    print(&page, arguments)?;
    write_json(arguments.json.as_deref(), &Value::Object(results))?;
    Ok(is_exact)
}

fn print(page: &str, arguments: &Arguments) -> Result<(), Error> {
    println!("{page}");
    if let Some(path) = &arguments.markdown {
        std::fs::write(path, page).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(())
}

/// The corpora, those of the data folder where there is one.
fn texts(folder: Option<&Path>) -> Result<Vec<(String, String)>, Error> {
    let Some(folder) = folder else {
        return corpora::all();
    };
    let mut texts = Vec::new();
    for path in data::files(&folder.join("corpora"), ".txt.gz")? {
        let text = String::from_utf8(data::read(&path)?)?;
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let name = name.trim_end_matches(".txt.gz").to_owned();
        if name != "train_en" {
            texts.push((name, text));
        }
    }
    Ok(texts)
}

/// A text of `bytes`, repeated where it is shorter.
fn sized(text: &str, bytes: usize) -> String {
    let repeated = text.repeat(bytes.div_ceil(text.len().max(1)));
    let end = repeated.floor_char_boundary(bytes);
    repeated[..end].to_owned()
}

/// 004, Tables 1 and 3: documents of 128 KB in 32 parts on two threads.
fn accuracy(
    tokenizers: &[Tokenizer],
    texts: &[(String, String)],
    page: &mut String,
) -> Result<(Value, bool), Error> {
    let ours = "Synchronised";
    let others = [
        ("Overlap (004, Algorithm 3)", Comparison::Overlap),
        ("delimiter blank", Comparison::Delimiter(b' ')),
        ("delimiter comma", Comparison::Delimiter(b',')),
        ("delimiter full stop", Comparison::Delimiter(b'.')),
        ("ids without places", Comparison::TokenIds),
    ];
    writeln!(
        page,
        "## Accuracy and retries (004, Tables 1 and 3)\n\nDocuments of 128 KB, 8 a corpus, in {PARTS} parts on two threads; \"one letter\": each document replaced \
         by one letter repeated. Accuracy: the share of documents with the ids of one thread. Milliseconds a document, the mean.\n\n\
         | vocabulary | corpus | one thread ms | strategy | ms | accuracy | retries a document |\n|---|---|---|---|---|---|---|"
    )?;
    let mut results = Vec::new();
    let mut is_exact = true;
    let workers = Workers::new(2);
    for tokenizer in tokenizers {
        let parallel = tokenizer.parallel().threads(2);
        let name = tokenizer.name().unwrap_or("");
        let repetitive = ("one letter".to_owned(), String::new());
        for (corpus, text) in texts.iter().chain([&repetitive]) {
            let documents: Vec<String> = (0..8)
                .map(|number| {
                    let letter = char::from(b'a' + 3 * number as u8);
                    if text.is_empty() {
                        return letter.to_string().repeat(128 << 10);
                    }
                    let start = text.len() / 9 * number;
                    let start = text.floor_char_boundary(start);
                    let document = sized(&text[start..], 128 << 10);
                    match tokenizer.patterns() {
                        [] => document.replace(' ', "\u{2581}"),
                        _ => document,
                    }
                })
                .collect();
            let start = Instant::now();
            let mut expected = Vec::new();
            for document in &documents {
                expected.push(tokenizer.encode(document)?);
            }
            let alone = start.elapsed().as_secs_f64() / 8.0 * 1e3;
            let mut row = |strategy: &str, ms: f64, right: usize, retries: f64| {
                let accuracy = right as f64 / 8.0;
                let line = format!(
                    "| {name} | {corpus} | {alone:.2} | {strategy} | {ms:.2} | {accuracy:.3} | {retries:.2} |"
                );
                page.push_str(&line);
                page.push('\n');
                results.push(json!({"vocabulary": name, "corpus": corpus, "one_thread_ms": alone, "strategy": strategy, "ms": ms, "accuracy": accuracy, "retries": retries}));
            };
            let start = Instant::now();
            let mut right = 0;
            for (document, ids) in documents.iter().zip(&expected) {
                let parallel = parallel.clone().part_bytes(document.len() / PARTS);
                right += usize::from(parallel.encode(document)? == *ids);
            }
            is_exact &= right == documents.len();
            row(ours, start.elapsed().as_secs_f64() / 8.0 * 1e3, right, 0.0);
            for (strategy, comparison) in others {
                let (mut right, mut retries) = (0, 0);
                let start = Instant::now();
                for (document, ids) in documents.iter().zip(&expected) {
                    let part = document.len() / PARTS;
                    let (found, _, again) =
                        comparison.encode(tokenizer, document.as_bytes(), part, &workers)?;
                    right += usize::from(found == *ids);
                    retries += again;
                }
                let ms = start.elapsed().as_secs_f64() / 8.0 * 1e3;
                row(strategy, ms, right, retries as f64 / 8.0);
            }
        }
    }
    Ok((results.into(), is_exact))
}

/// What encodes on one thread and on two.
enum OneAndTwo {
    Tokenizer(Tokenizer, Parallel),
    Pipeline(Pipeline, PipelineParallel),
}

impl OneAndTwo {
    fn one(&self, text: &str) -> Result<Vec<TokenId>, EncodeError> {
        match self {
            Self::Tokenizer(tokenizer, _) => tokenizer.encode(text),
            Self::Pipeline(pipeline, _) => pipeline.encode(text),
        }
    }

    fn two(&self, text: &str) -> Result<Vec<TokenId>, EncodeError> {
        match self {
            Self::Tokenizer(_, parallel) => parallel.encode(text),
            Self::Pipeline(_, parallel) => parallel.encode(text),
        }
    }
}

/// One thread and two in turn: wall-clock and processor time.
fn two_threads(
    tokenizer: &Tokenizer,
    data: Option<&Path>,
    texts: &[(String, String)],
    repeats: usize,
    page: &mut String,
) -> Result<Value, Error> {
    // Short turns and many of them: a machine may change its speed from one second to the next.
    let rounds = TURNS * repeats;
    writeln!(
        page,
        "\n## Two threads beside one\n\no200k_base where no other is named, warm, in turn, the median of {rounds}; each text so often in a row that it makes 8 MB. Speed-up: wall-clock time of one thread over two. \
         Processor time: that of both threads over that of one. \"Side by side\": the same for two threads each of which encodes the text by itself, half as often: \
         what it costs that both processors are busy, whatever they do. Their quotient is what cutting, sharing and joining cost. \
         (Measured beside other work where the speed-up is below 1.8 times the processor time side by side.)\n\n\
         | text | bytes | one thread ms | two threads ms | speed-up | best | processor time | side by side | quotient |\n|---|---|---|---|---|---|---|---|---|"
    )?;
    let usual = OneAndTwo::Tokenizer(tokenizer.clone(), tokenizer.parallel().threads(2));
    let mut results = Vec::new();
    let mut cases: Vec<(String, String, &OneAndTwo)> = Vec::new();
    for (name, text) in texts {
        if ["english", "code", "chinese"].contains(&name.as_str()) {
            cases.push((name.clone(), sized(text, 8 * MB), &usual));
            cases.push((name.clone(), sized(text, MB / 4), &usual));
        }
    }
    for letter in ["e", " ", "7"] {
        cases.push((
            format!("{letter:?} repeated"),
            letter.repeat(8 * MB),
            &usual,
        ));
    }
    let mut pipelines = Vec::new();
    for model in ["bert-base-uncased", "llama2"] {
        if let Some(data) = data {
            let pipeline = verify::pipelines::load(model, data)?;
            let parallel = pipeline.parallel().threads(2);
            pipelines.push((model, OneAndTwo::Pipeline(pipeline, parallel)));
        }
    }
    for (model, pipeline) in &pipelines {
        for (name, text) in texts {
            if ["english", "chinese"].contains(&name.as_str()) {
                cases.push((format!("{name}, {model}"), sized(text, 8 * MB), pipeline));
            }
        }
    }
    let side = Workers::new(2);
    for (name, text, tokenizer) in &cases {
        let expected = tokenizer.one(text)?;
        let (mut speedups, mut processor) = (Vec::new(), Vec::new());
        let (mut side_by_side, mut quotients) = (Vec::new(), Vec::new());
        let (mut ones, mut twos) = (Vec::new(), Vec::new());
        // Texts are encoded many times in a row: with threads that are awake.
        let calls = (8 * MB / text.len()).max(1);
        for round in 0..=rounds {
            let before = processor_seconds();
            let start = Instant::now();
            let mut ids = tokenizer.one(text)?;
            for _ in 1..calls {
                ids = tokenizer.one(text)?;
            }
            let one = start.elapsed().as_secs_f64() / calls as f64;
            let between = processor_seconds();
            let start = Instant::now();
            let mut found = tokenizer.two(text)?;
            for _ in 1..calls {
                found = tokenizer.two(text)?;
            }
            let two = start.elapsed().as_secs_f64() / calls as f64;
            let after = processor_seconds();
            let each = calls.div_ceil(2);
            side.run(|team| {
                team.map(&[(), ()], |()| {
                    (0..each).try_for_each(|_| tokenizer.one(text).map(drop))
                })
                .into_iter()
                .collect::<Result<(), _>>()
            })?;
            let last = processor_seconds();
            if found != expected || ids != expected {
                return Err(format!("{name}: the ids differ").into());
            }
            if round == 0 {
                continue; // Engines warm up.
            }
            speedups.push(one / two);
            let [of_one, of_two] = [between - before, after - between];
            let beside = (last - after) * calls as f64 / (2 * each) as f64;
            processor.push(of_two / of_one);
            side_by_side.push(beside / of_one);
            quotients.push(of_two / beside);
            ones.push(one * 1e3);
            twos.push(two * 1e3);
        }
        let best = speedups.iter().copied().fold(0.0, f64::max);
        let (one, two) = (median(&ones), median(&twos));
        let (speedup, processor) = (median(&speedups), median(&processor));
        let (beside, quotient) = (median(&side_by_side), median(&quotients));
        let bytes = text.len();
        writeln!(
            page,
            "| {name} | {bytes} | {one:.2} | {two:.2} | {speedup:.2} | {best:.2} | {processor:.2} | {beside:.2} | {quotient:.2} |"
        )?;
        results.push(json!({"text": name, "bytes": bytes, "one_thread_ms": one, "two_threads_ms": two, "speedup": speedup, "best_speedup": best, "processor_time": processor, "side_by_side": beside, "quotient": quotient}));
    }
    Ok(results.into())
}

/// 004, Table 2: the shares of the stages.
fn stages(
    tokenizer: &Tokenizer,
    texts: &[(String, String)],
    page: &mut String,
) -> Result<Value, Error> {
    writeln!(
        page,
        "\n## Stages (004, Table 2)\n\n8 MB, percent of the time of a call. Matching is part of tokenizing here: at exact cuts there is none. Nothing is converted.\n\n\
         | text | threads | split | tokenize and match | merge | parts |\n|---|---|---|---|---|---|"
    )?;
    let mut results = Vec::new();
    for (name, text) in texts {
        let text = sized(text, 8 * MB);
        for threads in [1, 2] {
            let parallel = tokenizer.parallel().threads(threads).part_bytes(128 << 10);
            parallel.encode(&text)?;
            let (_, report) = parallel.encode_measured(&text)?;
            let total = (report.split + report.tokenize + report.merge).as_secs_f64();
            let share = |part: std::time::Duration| 100.0 * part.as_secs_f64() / total;
            let (split, tokenize, merge) = (
                share(report.split),
                share(report.tokenize),
                share(report.merge),
            );
            let parts = report.parts;
            writeln!(
                page,
                "| {name} | {threads} | {split:.2} | {tokenize:.2} | {merge:.2} | {parts} |"
            )?;
            results.push(json!({"text": name, "threads": threads, "split": split, "tokenize": tokenize, "merge": merge, "parts": parts}));
        }
    }
    Ok(results.into())
}

/// 004, Figures 3, 4, 7 and 8: latency by length, documents, parts and threads.
fn lengths(
    tokenizer: &Tokenizer,
    texts: &[(String, String)],
    repeats: usize,
    page: &mut String,
) -> Result<Value, Error> {
    let (name, text) = texts
        .iter()
        .find(|(name, _)| name == "english")
        .ok_or("there is no English corpus")?;
    let mut results = Vec::new();
    let mut section = |page: &mut String,
                       title: &str,
                       rows: Vec<(String, Vec<f64>)>|
     -> Result<(), Error> {
        writeln!(
            page,
            "\n## {title}\n\n{name}, o200k_base, milliseconds, the median of {repeats}.\n\n| | one thread | two threads |\n|---|---|---|"
        )?;
        for (label, times) in rows {
            let [one, two] = times[..] else { continue };
            writeln!(page, "| {label} | {one:.3} | {two:.3} |")?;
            results.push(
                json!({"figure": title, "at": label, "one_thread_ms": one, "two_threads_ms": two}),
            );
        }
        Ok(())
    };
    let time = |run: &dyn Fn() -> Result<(), Error>| -> Result<f64, Error> {
        run()?;
        let mut times = Vec::new();
        for _ in 0..repeats {
            let start = Instant::now();
            run()?;
            times.push(start.elapsed().as_secs_f64() * 1e3);
        }
        Ok(median(&times))
    };
    let teams = [1, 2].map(|threads| tokenizer.parallel().threads(threads));
    let mut rows = Vec::new();
    for kilobytes in [16, 32, 64, 96, 128, 192, 256, 512, 1024, 2048, 8192] {
        let text = sized(text, kilobytes << 10);
        let mut times = Vec::new();
        for team in &teams {
            times.push(time(&|| {
                team.encode(&text)?;
                Ok(())
            })?);
        }
        rows.push((format!("{kilobytes} KB"), times));
    }
    section(page, "Length of the text (004, Figure 3)", rows)?;
    let mut rows = Vec::new();
    for count in [1, 2, 4, 8, 16, 32, 64] {
        let documents: Vec<String> = (0..count)
            .map(|number| {
                let start = text.floor_char_boundary(text.len() / 65 * number);
                sized(&text[start..], 64 << 10)
            })
            .collect();
        let mut times = Vec::new();
        for team in &teams {
            times.push(time(&|| {
                team.encode_batch(&documents)?;
                Ok(())
            })?);
        }
        rows.push((format!("{count} of 64 KB"), times));
    }
    section(page, "Documents in a batch (004, Figure 4)", rows)?;
    let long = sized(text, 2 * MB);
    let mut rows = Vec::new();
    for kilobytes in [1, 4, 16, 64, 128, 256, 1024] {
        let mut times = Vec::new();
        for team in &teams {
            let team = team.clone().part_bytes(kilobytes << 10);
            times.push(time(&|| {
                team.encode(&long)?;
                Ok(())
            })?);
        }
        rows.push((format!("parts of {kilobytes} KB"), times));
    }
    section(page, "Length of the parts, 2 MB (004, Figure 7)", rows)?;
    writeln!(
        page,
        "\n## Threads, 2 MB (004, Figure 8)\n\n| threads | ms |\n|---|---|"
    )?;
    for threads in [1, 2, 4, 8] {
        let team = tokenizer.parallel().threads(threads);
        let ms = time(&|| {
            team.encode(&long)?;
            Ok(())
        })?;
        writeln!(page, "| {threads} | {ms:.2} |")?;
        results.push(json!({"figure": "Threads", "at": threads, "ms": ms}));
    }
    Ok(results.into())
}

/// Whether a batch takes the same time each time (P23), on as many threads as are asked for.
fn batches(
    tokenizer: &Tokenizer,
    texts: &[(String, String)],
    page: &mut String,
) -> Result<Value, Error> {
    const DOCUMENTS: usize = 256;
    const RUNS: usize = 20;
    writeln!(
        page,
        "\n## A batch, over and over (P23)\n\n{DOCUMENTS} documents of 16 KB of all corpora, o200k_base, {RUNS} runs on {} processors.\n\n\
         | threads | median ms | slowest over median | times one thread |\n|---|---|---|---|",
        std::thread::available_parallelism().map_or(1, usize::from)
    )?;
    let documents: Vec<String> = (0..DOCUMENTS)
        .map(|number| {
            let text = &texts[number % texts.len()].1;
            let start = text.floor_char_boundary(text.len() / (DOCUMENTS + 1) * number);
            sized(&text[start..], 16 << 10)
        })
        .collect();
    let mut results = Vec::new();
    let mut alone = None;
    for threads in [1, 2, 8] {
        let team = tokenizer.parallel().threads(threads);
        team.encode_batch(&documents)?;
        let mut times = Vec::new();
        for _ in 0..RUNS {
            let start = Instant::now();
            team.encode_batch(&documents)?;
            times.push(start.elapsed().as_secs_f64() * 1e3);
        }
        let ms = median(&times);
        let slowest = times.iter().copied().fold(0.0, f64::max) / ms;
        let speedup = *alone.get_or_insert(ms) / ms;
        writeln!(
            page,
            "| {threads} | {ms:.2} | {slowest:.2} | {speedup:.2} |"
        )?;
        results.push(json!({"threads": threads, "ms": ms, "slowest_over_median": slowest, "speedup": speedup}));
    }
    Ok(results.into())
}

/// A model of more workers than there are, from what the parts take one by one.
fn model(
    tokenizer: &Tokenizer,
    texts: &[(String, String)],
    page: &mut String,
) -> Result<Value, Error> {
    writeln!(
        page,
        "\n## A model, no measurement: up to 64 workers\n\n`T(w) = split + max(makespan(w; t_1 + m, ..., t_n + m), n m)`, where t_i are measured \
         times of parts of 128 KB of 8 MB, one by one on one thread, and m is what putting one part behind the others takes; `makespan` gives \
         each part in order to the worker that is free first; one worker at a time puts parts together. Speed-up: `(t_1 + ... + t_n) / T(w)`. \
         Left out: memory bandwidth, caches that workers share, waking them.\n\n| text | 2 | 4 | 8 | 16 | 32 | 64 |\n|---|---|---|---|---|---|---|"
    )?;
    let mut results = Vec::new();
    for (name, text) in texts {
        let text = sized(text, 8 * MB);
        let alone = tokenizer.parallel().threads(1).part_bytes(128 << 10);
        alone.encode(&text)?;
        let (_, report) = alone.encode_measured(&text)?;
        let mut times = Vec::new();
        let mut ids = Vec::new();
        let mut start = 0;
        while start < text.len() {
            let end = text.ceil_char_boundary((start + (128 << 10)).min(text.len()));
            ids.clear();
            let clock = Instant::now();
            tokenizer.encode_into(&text[start..end], &mut ids)?;
            times.push(clock.elapsed().as_secs_f64());
            start = end;
        }
        let (split, merge) = (report.split.as_secs_f64(), report.merge.as_secs_f64());
        let each = merge / times.len().max(1) as f64;
        let total: f64 = times.iter().sum();
        let speedups = [2, 4, 8, 16, 32, 64].map(|workers| {
            let mut free = vec![0.0_f64; workers];
            for time in &times {
                let first = free.iter_mut().min_by(|a, b| a.total_cmp(b));
                if let Some(first) = first {
                    *first += time + each;
                }
            }
            let makespan = free.into_iter().fold(0.0, f64::max);
            total / (split + makespan.max(merge))
        });
        let cells: Vec<String> = speedups
            .iter()
            .map(|speedup| format!("{speedup:.1}"))
            .collect();
        writeln!(page, "| {name} | {} |", cells.join(" | "))?;
        results.push(json!({"text": name, "split_ms": split * 1e3, "merge_ms": merge * 1e3, "parts_ms": total * 1e3, "speedups": speedups}));
    }
    Ok(results.into())
}

/// Seconds that all threads of this process have run, those that have ended too.
#[cfg(unix)]
fn processor_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Not known here.
#[cfg(not(unix))]
fn processor_seconds() -> f64 {
    f64::NAN
}

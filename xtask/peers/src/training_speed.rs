//! `training-speed`: our trainer beside five others, counting included.
//!
//! Each run is a process of its own, pinned to so many processors as it may use; the clock and the
//! memory are read inside it, around the call that takes the corpus and gives the tokens. What a process
//! held before that call, an interpreter and its modules, is said beside the most that it held.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use bpe_core::byte_level;
use bpe_lexers::{Cuts, Engine, Pattern, Spanner, SpecialMatcher};
use bpe_train::{Counter, Ties, TrainOptions, train};
use serde_json::{Value, json};

use crate::corpora;
use crate::speed::{cores, files, pin, python, work};
use crate::{DataFolder, Error, load};

const OURS: &str = "bytepair";

/// The packages, which are the names of the peers in `python/train.py` as well.
const PEERS: [&str; 5] = [
    "gigabpe==0.1.0",
    "rustbpe==0.1.0",
    "bpeasy==0.1.6",
    "gigatoken==0.10.0",
    "tokenizers==0.23.3",
];

/// This one breaks ties as we are asked to, and begins with all bytes: it must learn the same.
const SAME: &str = "gigatoken";

/// At once read by our trainer.
const BLOCK_BYTES: usize = 1 << 20;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    data: DataFolder,
    /// The corpus: `train_en` of the data folder where there is one, else `english` of bench-data.
    #[arg(long)]
    corpus: Option<String>,
    /// Tokens of the vocabulary.
    #[arg(long, default_value_t = 32_000)]
    vocab_size: usize,
    /// Rounds; in each every trainer runs once, and the median counts.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Threads; each number is a table of its own.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 2])]
    threads: Vec<usize>,
    /// Write the results to this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

#[derive(clap::Args)]
pub(crate) struct Child {
    corpus: PathBuf,
    vocab_size: usize,
    /// The processors it may use, a thread for each.
    #[arg(value_delimiter = ',')]
    cores: Vec<usize>,
}

/// Prints a table for each number of threads. False if [`SAME`] learned other tokens, or did not run.
pub(crate) fn run(arguments: &Arguments) -> Result<bool, Error> {
    let data = arguments.data.data.as_deref();
    let name = match (&arguments.corpus, data) {
        (Some(name), _) => name,
        (None, Some(_)) => "train_en",
        (None, None) => "english",
    };
    let corpora = corpora::named(&[name], data, usize::MAX)?;
    let corpus = corpora.first().ok_or("no such corpus")?;
    let path = files::folder("texts")?.join(format!("{name}-whole.txt"));
    std::fs::write(&path, &corpus.text)?;
    let python = python::environment("trainers", &PEERS)?;
    let trainers: Vec<&str> = [OURS]
        .into_iter()
        .chain(PEERS.map(|peer| peer.split("==").next().unwrap_or(peer)))
        .collect();
    println!(
        "{name}: {} bytes, pattern gpt2, {} tokens, {} rounds",
        corpus.text.len(),
        arguments.vocab_size,
        arguments.rounds
    );
    let all_cores = cores();
    let mut tables = Vec::new();
    let mut is_right = true;
    for &threads in &arguments.threads {
        let Some(used) = all_cores.len().checked_sub(threads) else {
            println!(
                "{threads} threads: there are {} processors",
                all_cores.len()
            );
            continue;
        };
        let race = Race {
            corpus: &path,
            size: arguments.vocab_size,
            python: &python,
            cores: &all_cores[used..],
        };
        let mut runs: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
        for _ in 0..arguments.rounds.max(1) {
            for trainer in &trainers {
                match race.run(trainer) {
                    Ok(result) => runs.entry(trainer).or_default().push(result),
                    Err(error) => println!("{trainer}: {error}"),
                }
            }
        }
        let (rows, same) = table(threads, &trainers, &runs)?;
        is_right &= same;
        tables.push(json!({"threads": threads, "rows": rows}));
    }
    if let Some(path) = &arguments.json {
        let results = json!({
            "corpus": name,
            "bytes": corpus.text.len(),
            "vocab_size": arguments.vocab_size,
            "rounds": arguments.rounds,
            "tables": tables,
        });
        std::fs::write(path, format!("{results:#}\n"))?;
    }
    Ok(is_right)
}

struct Race<'a> {
    corpus: &'a Path,
    size: usize,
    python: &'a Path,
    cores: &'a [usize],
}

impl Race<'_> {
    /// Runs a trainer in a new process.
    fn run(&self, trainer: &str) -> Result<Value, Error> {
        let cores: Vec<String> = self.cores.iter().map(usize::to_string).collect();
        let (cores, size) = (cores.join(","), self.size.to_string());
        let mut command;
        if trainer == OURS {
            command = Command::new(std::env::current_exe()?);
            command.arg("training-speed-child").arg(self.corpus);
        } else {
            let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("python/train.py");
            command = Command::new(self.python);
            command.arg("-B").arg(script).arg(trainer).arg(self.corpus);
            command.arg(Pattern::gpt2().as_str());
        }
        let output = command.args([size, cores]).output()?;
        if !output.status.success() {
            let message = String::from_utf8_lossy(&output.stderr);
            return Err(message.lines().last().unwrap_or("no answer").into());
        }
        // Some print lines of their own before it.
        let output = String::from_utf8_lossy(&output.stdout);
        Ok(serde_json::from_str(
            output.lines().last().unwrap_or_default(),
        )?)
    }
}

/// Prints the medians and what is asked of them; also whether [`SAME`] learned what we did.
fn table(
    threads: usize,
    trainers: &[&str],
    runs: &BTreeMap<&str, Vec<Value>>,
) -> Result<(Vec<Value>, bool), Error> {
    println!(
        "\n{:12}{:>9}{:>10}{:>10}{:>8}{:>10}{:>10}{:>9}{:>9}",
        format!("{threads} thread(s)"),
        "version",
        "seconds",
        "work s",
        "times",
        "before MB",
        "peak MB",
        "tokens",
        "shared"
    );
    let median = |trainer: &str, field: &str| {
        let mut values: Vec<f64> = runs
            .get(trainer)?
            .iter()
            .filter_map(|run| run[field].as_f64())
            .collect();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied()
    };
    let ours = median(OURS, "wall").ok_or("ours did not run")?;
    let tokens_of = |trainer: &str| {
        let run = runs.get(trainer).and_then(|runs| runs.first());
        run.map_or(Ok(BTreeSet::new()), tokens)
    };
    let our_tokens = tokens_of(OURS)?;
    let mut rows = Vec::new();
    let mut is_same = true;
    for trainer in trainers {
        let Some(wall) = median(trainer, "wall") else {
            is_same &= *trainer != SAME;
            continue;
        };
        let theirs = tokens_of(trainer)?;
        let shared = theirs.intersection(&our_tokens).count();
        is_same &= *trainer != SAME || theirs == our_tokens;
        let row = json!({
            "trainer": trainer,
            "version": runs[trainer][0]["version"],
            "wall_seconds": wall,
            "work_seconds": median(trainer, "work"),
            "times_ours": wall / ours,
            "before_bytes": median(trainer, "before_bytes"),
            "peak_bytes": median(trainer, "peak_bytes"),
            "tokens": theirs.len(),
            "shared_tokens": shared,
        });
        println!(
            "{trainer:12}{:>9}{wall:>10.3}{:>10.3}{:>8.2}{:>10.1}{:>10.1}{:>9}{shared:>9}",
            row["version"].as_str().unwrap_or("-"),
            row["work_seconds"].as_f64().unwrap_or_default(),
            wall / ours,
            row["before_bytes"].as_f64().unwrap_or_default() / 1e6,
            row["peak_bytes"].as_f64().unwrap_or_default() / 1e6,
            theirs.len(),
        );
        rows.push(row);
    }
    let peers = || rows.iter().skip(1);
    let least = |field: &str| {
        let values = peers().filter_map(|row| row[field].as_f64());
        values.fold(f64::INFINITY, f64::min)
    };
    let slowest = peers().find(|row| row["trainer"] == "tokenizers");
    println!(
        "tokenizers {:.1} times ours (asked: 10), the fastest {:.2} times (asked: 1.5); the leanest {:.1} MB, ours {:.1}",
        slowest
            .and_then(|row| row["times_ours"].as_f64())
            .unwrap_or_default(),
        least("times_ours"),
        least("peak_bytes") / 1e6,
        median(OURS, "peak_bytes").unwrap_or_default() / 1e6,
    );
    if !is_same {
        println!("FAIL {SAME} learned other tokens, or did not run");
    }
    Ok((rows, is_same))
}

/// The tokens of an answer as bytes.
fn tokens(answer: &Value) -> Result<BTreeSet<Vec<u8>>, Error> {
    let tokens = answer["tokens"].as_array().ok_or("no tokens")?;
    let is_byte_level = answer["spelling"] == "byte_level";
    let bytes = tokens.iter().filter_map(Value::as_str).map(|token| {
        if is_byte_level {
            return byte_level::decode(token).map_err(|other| format!("no byte: {other}").into());
        }
        let digits = token.as_bytes().chunks(2);
        let byte = |two| u8::from_str_radix(str::from_utf8(two)?, 16).map_err(Error::from);
        digits.map(byte).collect()
    });
    bytes.collect()
}

/// Trains, and prints what it took.
pub(crate) fn child(child: &Child) -> Result<(), Error> {
    pin(&child.cores)?;
    let before = load::memory("VmRSS:");
    let (start, start_of_work) = (Instant::now(), work());
    let pattern = Pattern::gpt2();
    let cuts = Cuts::new(std::slice::from_ref(&pattern))?;
    let spanner = Spanner::new(vec![pattern.lexer(Engine::Auto)?]);
    let mut counter = Counter::new(spanner, SpecialMatcher::none()).threads(child.cores.len());
    let mut file = File::open(&child.corpus)?;
    let mut rest = Vec::new();
    // The error may be of a reader on another thread.
    type Sendable = Box<dyn std::error::Error + Send + Sync>;
    let next = || {
        let mut block = std::mem::take(&mut rest);
        loop {
            let read = file
                .by_ref()
                .take(BLOCK_BYTES as u64)
                .read_to_end(&mut block)?;
            if read == 0 {
                return Ok((!block.is_empty()).then_some(block));
            }
            if let Some(cut) = cuts.last_cut(&block, block.len() - 1) {
                rest = block.split_off(cut);
                return Ok(Some(block));
            }
        }
    };
    let counted = counter.add_blocks(next, |block, count| count(block));
    counted.map_err(|error: Sendable| error.to_string())?;
    let counts = counter.into_counts()?;
    let options = TrainOptions::new(child.vocab_size).ties(Ties::HuggingFace);
    let dictionary = train(&counts, &options)?.dictionary(0)?;
    let wall = start.elapsed();
    let work = work().saturating_sub(start_of_work);
    let peak = load::memory("VmHWM:");
    let hexadecimal =
        |bytes: &[u8]| -> String { bytes.iter().map(|byte| format!("{byte:02x}")).collect() };
    let tokens: Vec<String> = dictionary
        .vocabulary()
        .iter()
        .map(|(_, bytes)| hexadecimal(bytes))
        .collect();
    let answer = json!({
        "wall": wall.as_secs_f64(),
        "work": work.as_secs_f64(),
        "before_bytes": before,
        "peak_bytes": peak,
        "spelling": "hexadecimal",
        "tokens": tokens,
    });
    println!("{answer}");
    Ok(())
}

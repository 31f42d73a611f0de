//! Training by each algorithm, each run in a process of its own: time, merges a second, memory.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use bpe_lexers::{Engine, Pattern, Spanner, SpecialMatcher};
use bpe_train::{Algorithm, Ties, TrainOptions, Training, WordCounts, train};
use serde_json::{Value, json};

use super::{Error, write_json};
use crate::data;

/// The numbers of merges of 003's tables.
const MERGES: [usize; 5] = [500, 1_000, 2_000, 5_000, 9_743];

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The data folder, whose `corpora/train_en.txt.gz` is taken; without it, the English corpus of
    /// bench-data.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Runs of each algorithm and number of merges, of which the fastest counts.
    #[arg(long, default_value_t = 1)]
    runs: usize,
    /// Write the results to this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Train here and print what it took: how this command calls itself.
    #[arg(long, hide = true, value_names = ["ALGORITHM", "MERGES", "COUNTS"], num_args = 3)]
    child: Vec<String>,
}

/// Prints a table with a row for each algorithm.
pub(super) fn run(arguments: &Arguments) -> Result<bool, Error> {
    if let [algorithm, merges, counts] = &arguments.child[..] {
        return child(algorithm, merges.parse()?, Path::new(counts));
    }
    let corpus = match &arguments.data {
        Some(folder) => folder.join("corpora/train_en.txt.gz"),
        None => data::workspace().join("bench-data/corpora/english.txt"),
    };
    let text = data::read(&corpus)?;
    let start = Instant::now();
    let mut counts = WordCounts::new();
    let mut spanner = Spanner::new(vec![Pattern::gpt2().lexer(Engine::Auto)?]);
    counts.add_text(&mut spanner, &SpecialMatcher::none(), &text)?;
    let counting = start.elapsed().as_secs_f64();
    let folder = std::env::temp_dir().join(format!("bytepair-bench-train-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let saved = folder.join("counts");
    counts.write_to(std::io::BufWriter::new(std::fs::File::create(&saved)?))?;
    println!(
        "{} bytes, {} distinct words, counted in {counting:.3} s",
        text.len(),
        counts.len()
    );
    println!(
        "{:25}{:>8}{:>11}{:>11}{:>13}{:>10}",
        "", "merges", "seconds", "x naive", "merges/s", "MB"
    );
    let mut results = Vec::new();
    for merges in MERGES {
        let mut naive: Option<(f64, String)> = None;
        for algorithm in Algorithm::ALL {
            let result = measure(algorithm.name(), merges, &saved, arguments.runs)?;
            let seconds = result["seconds"].as_f64().unwrap_or_default();
            let learned = result["learned"].to_string();
            let (base, expected) = naive.get_or_insert((seconds, learned.clone()));
            if learned != *expected {
                return Err(format!("{}: other merges than naive", algorithm.name()).into());
            }
            let count = result["merges"].as_f64().unwrap_or_default();
            println!(
                "{:25}{:>8}{seconds:>11.3}{:>11.1}{:>13.0}{:>10.1}",
                algorithm.name(),
                result["merges"],
                *base / seconds,
                count / seconds,
                result["peak_bytes"].as_f64().unwrap_or_default() / 1e6,
            );
            results.push(result);
        }
    }
    std::fs::remove_dir_all(&folder)?;
    let results = json!({
        "corpus_bytes": text.len(),
        "distinct_words": counts.len(),
        "counting_seconds": counting,
        "results": results,
    });
    write_json(arguments.json.as_deref(), &results)?;
    Ok(true)
}

/// The fastest of `runs` processes.
fn measure(algorithm: &str, merges: usize, counts: &Path, runs: usize) -> Result<Value, Error> {
    let mut best: Option<Value> = None;
    for _ in 0..runs.max(1) {
        let output = Command::new(std::env::current_exe()?)
            .args(["bench", "train", "--child", algorithm, &merges.to_string()])
            .arg(counts)
            .output()?;
        if !output.status.success() {
            let error = String::from_utf8_lossy(&output.stderr);
            return Err(format!("{algorithm}: {error}").into());
        }
        let result: Value = serde_json::from_slice(&output.stdout)?;
        let seconds = |result: &Value| result["seconds"].as_f64().unwrap_or(f64::MAX);
        if best
            .as_ref()
            .is_none_or(|best| seconds(&result) < seconds(best))
        {
            best = Some(result);
        }
    }
    best.ok_or_else(|| "no run".into())
}

fn child(algorithm: &str, merges: usize, counts: &Path) -> Result<bool, Error> {
    let algorithm = Algorithm::ALL
        .into_iter()
        .find(|known| known.name() == algorithm);
    let algorithm = algorithm.ok_or("no such algorithm")?;
    let mut words = WordCounts::new();
    let file = std::io::BufReader::new(std::fs::File::open(counts)?);
    words.add_file(file, usize::MAX)?;
    let options = TrainOptions::new(256 + merges)
        .ties(Ties::HuggingFace)
        .algorithm(algorithm);
    let start = Instant::now();
    let training = train(&words, &options)?;
    let seconds = start.elapsed().as_secs_f64();
    let result = json!({
        "algorithm": algorithm.name(),
        "merges": training.merges().len(),
        "seconds": seconds,
        "learned": digest(&training),
        "peak_bytes": peak_bytes(),
    });
    println!("{result}");
    Ok(true)
}

/// A number that other merges would change.
fn digest(training: &Training) -> u64 {
    let bytes = training.merges().flat_map(|merge| {
        let length = merge.left.len() as u8;
        merge.token.iter().copied().chain([length])
    });
    bytes.fold(0xCBF2_9CE4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
    })
}

/// The most memory that this process held, where the system tells it (Linux).
fn peak_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes = line.trim().strip_suffix("kB")?.trim();
    Some(kilobytes.parse::<u64>().ok()? * 1024)
}

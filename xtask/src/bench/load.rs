//! From nothing to a ready tokenizer: time, memory and file size, each in a process of its own.

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use bytepair::{ENCODINGS, Tokenizer};
use serde_json::{Value, json};

use super::{Error, write_json};
use crate::data;

/// What a process holds that loads nothing.
const NOTHING: &str = "nothing";

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Processes for each encoding, of which the fastest counts.
    #[arg(long, default_value_t = 5)]
    runs: usize,
    /// Write the results to this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Load this encoding here and print what it took: how this command calls itself.
    #[arg(long, hide = true, value_name = "NAME")]
    child: Option<String>,
}

/// Prints a table with a row for each encoding.
pub(super) fn run(arguments: &Arguments) -> Result<bool, Error> {
    if let Some(encoding) = &arguments.child {
        return child(encoding);
    }
    println!(
        "{:14}{:>10}{:>16}{:>14}{:>14}",
        "", "ready ms", "first encode ms", "resident MB", "embedded KB"
    );
    let mut results = Vec::new();
    for encoding in std::iter::once(NOTHING).chain(ENCODINGS.iter().copied()) {
        let mut runs = Vec::new();
        for _ in 0..arguments.runs.max(1) {
            runs.push(measure(encoding)?);
        }
        let least = |field: &str| {
            let numbers = runs.iter().filter_map(|run| run[field].as_f64());
            numbers.min_by(f64::total_cmp)
        };
        let embedded = embedded_bytes(encoding);
        let show = |number: Option<f64>| number.map_or("-".to_owned(), |n| format!("{n:.2}"));
        println!(
            "{encoding:14}{:>10}{:>16}{:>14}{:>14}",
            show(least("ready_ms")),
            show(least("first_encode_ms")),
            show(least("resident_bytes").map(|bytes| bytes / 1e6)),
            show(embedded.map(|bytes| bytes as f64 / 1e3)),
        );
        results.push(json!({
            "encoding": encoding,
            "ready_ms": least("ready_ms"),
            "first_encode_ms": least("first_encode_ms"),
            "resident_bytes": least("resident_bytes"),
            "embedded_bytes": embedded,
            "runs": runs,
        }));
    }
    write_json(arguments.json.as_deref(), &results.into())?;
    Ok(true)
}

fn measure(encoding: &str) -> Result<Value, Error> {
    let mut command = Command::new(std::env::current_exe()?);
    let output = command
        .args(["bench", "load", "--child", encoding])
        .output()?;
    match output.status.success() {
        true => Ok(serde_json::from_slice(&output.stdout)?),
        false => Err(format!("{encoding}: {}", String::from_utf8_lossy(&output.stderr)).into()),
    }
}

fn child(encoding: &str) -> Result<bool, Error> {
    let start = Instant::now();
    let tokenizer = match encoding {
        NOTHING => None,
        name => Some(Tokenizer::from_name(name)?),
    };
    let ready = start.elapsed();
    // The first text builds what loading put off.
    let tokens = match &tokenizer {
        Some(tokenizer) => tokenizer.count("The first text, 1st of many: 文字.")?,
        None => 0,
    };
    let first = start.elapsed() - ready;
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    let result = json!({
        "ready_ms": ms(ready),
        "first_encode_ms": ms(first),
        "tokens": tokens,
        "resident_bytes": resident_bytes(),
    });
    println!("{result}");
    Ok(true)
}

/// The size of the file that this encoding embeds into a binary.
fn embedded_bytes(encoding: &str) -> Option<u64> {
    let vocabulary = match encoding {
        "gpt2" => "r50k_base",
        "p50k_edit" => "p50k_base",
        "o200k_harmony" => "o200k_base",
        other => other,
    };
    let path = format!("crates/bytepair/vocabularies/{vocabulary}.bpec");
    let file = std::fs::metadata(data::workspace().join(path)).ok()?;
    Some(file.len())
}

/// The resident memory of this process, where the system tells it (Linux).
fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes = line.trim().strip_suffix("kB")?.trim();
    Some(kilobytes.parse::<u64>().ok()? * 1024)
}

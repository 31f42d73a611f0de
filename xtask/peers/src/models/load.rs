//! From the bytes of a `tokenizer.json` to a ready tokenizer, ours and `tokenizers` in turn, each time in a
//! process of its own.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use bytepair::{Pipeline, ReadLimits};
use serde_json::{Value, json};

use super::{content, models};
use crate::interleave::Summary;
use crate::{DataFolder, Error, load};

const SIDES: [&str; 2] = ["bytepair", "tokenizers"];

/// Loading is to take no longer than this, in milliseconds.
const GOALS: [(&str, f64); 2] = [("qwen3", 150.0), ("gemma3", 400.0)];

/// The first text, whose encoding makes what loading put off.
const FIRST: &str = "The first text, whose encoding builds what loading put off: 123 文字.";

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Processes for each model and side.
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// Models to load, by the names of their folders: all by default.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Write all runs to this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    #[command(flatten)]
    data: DataFolder,
}

/// Loads one file and prints what it took as JSON.
#[derive(clap::Args)]
pub(crate) struct Child {
    side: String,
    file: PathBuf,
}

/// Prints a row for each model. False where ids differ; slow is not wrong.
pub(crate) fn run(arguments: &Arguments) -> Result<bool, Error> {
    let data = arguments.data.data.as_deref().ok_or("no --data")?;
    println!(
        "| model | file (MB) | ready (ms) | of tokenizers | times as fast | first text (ms) | of tokenizers | resident (MB) | of tokenizers | goal (ms) |"
    );
    println!("|---|---:|---:|---:|---:|---:|---:|---:|---:|---|");
    let (mut results, mut agree) = (Vec::new(), true);
    for (name, path) in models(&data.join("tokenizers"))? {
        if !arguments.only.is_empty() && !arguments.only.contains(&name) {
            continue;
        }
        let mut runs: [Vec<Value>; 2] = Default::default();
        for _ in 0..arguments.rounds.max(1) {
            for (side, runs) in SIDES.iter().zip(&mut runs) {
                runs.push(measure(side, &path)?);
            }
        }
        let equal = runs[0][0]["ids"] == runs[1][0]["ids"];
        if !equal {
            println!("{name}: the ids of the first text differ");
            agree = false;
        }
        let median = |side: usize, field: &str| {
            let numbers = runs[side].iter().filter_map(|run| run[field].as_f64());
            Summary::of(numbers).median
        };
        let (ours, theirs) = (median(0, "ready_ms"), median(1, "ready_ms"));
        let goal = GOALS.iter().find(|goal| goal.0 == name).map(|goal| goal.1);
        println!(
            "| {name} | {:.1} | {ours:.0} | {theirs:.0} | {:.2} | {:.2} | {:.2} | {:.0} | {:.0} | {} |",
            median(0, "file_bytes") / 1e6,
            theirs / ours,
            median(0, "first_encode_ms"),
            median(1, "first_encode_ms"),
            median(0, "resident_bytes") / 1e6,
            median(1, "resident_bytes") / 1e6,
            goal.map_or("tokenizers'".to_owned(), |goal| format!("{goal:.0}")),
        );
        results.push(json!({"model": name, "bytepair": runs[0], "tokenizers": runs[1]}));
    }
    if let Some(path) = &arguments.json {
        std::fs::write(path, serde_json::to_string_pretty(&results)? + "\n")?;
    }
    Ok(agree)
}

fn measure(side: &str, path: &Path) -> Result<Value, Error> {
    let mut child = Command::new(std::env::current_exe()?);
    let output = child
        .arg("load-models-child")
        .arg(side)
        .arg(path)
        .output()?;
    match output.status.success() {
        true => Ok(serde_json::from_slice(&output.stdout)?),
        false => Err(format!("{side}: {}", String::from_utf8_lossy(&output.stderr)).into()),
    }
}

/// Loads and prints. The file is in memory, unpacked, when the clock starts.
pub(crate) fn child(arguments: &Child) -> Result<bool, Error> {
    let file = content(&arguments.file)?;
    let bytes = file.len();
    let start = Instant::now();
    // The tokenizer is alive when the memory is read.
    let (ready, first, ids, _alive): (_, _, Vec<u32>, Box<dyn std::any::Any>) =
        match arguments.side.as_str() {
            "bytepair" => {
                let pipeline = Pipeline::from_tokenizer_json(&file, &ReadLimits::default())?;
                let ready = start.elapsed();
                let ids = pipeline.encode(FIRST)?;
                (ready, start.elapsed(), ids, Box::new(pipeline))
            }
            "tokenizers" => {
                let fault = |error: tokenizers::Error| error.to_string();
                let mut tokenizer = tokenizers::Tokenizer::from_bytes(&file).map_err(fault)?;
                let ready = start.elapsed();
                // Ours leaves both off unless they are asked for.
                tokenizer
                    .with_padding(None)
                    .with_truncation(None)
                    .map_err(fault)?;
                let ids = tokenizer.encode(FIRST, false).map_err(fault)?;
                let first = start.elapsed();
                (ready, first, ids.get_ids().to_vec(), Box::new(tokenizer))
            }
            other => return Err(format!("no such side: {other}").into()),
        };
    drop(file);
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    let result = json!({
        "ready_ms": ms(ready),
        "first_encode_ms": ms(first - ready),
        "ids": ids,
        "file_bytes": bytes,
        "resident_bytes": load::memory("VmRSS:"),
    });
    println!("{result}");
    Ok(true)
}

//! Time until ready and resident memory, each measured in a process of its own.

use std::process::Command;
use std::time::Instant;

use bytepair::Tokenizer;
use serde_json::{Value, json};

use crate::interleave::Summary;
use crate::{Error, peer};

const ENCODING: &str = "o200k_base";
const SIDES: [&str; 3] = ["nothing", "bytepair", peer::TIKTOKEN_RS];

/// Prints a table of the sides, which run in turn, `rounds` times each.
pub(crate) fn compare(rounds: usize) -> Result<Value, Error> {
    let mut runs: Vec<(&str, Vec<Value>)> = SIDES.map(|side| (side, Vec::new())).into();
    for _ in 0..rounds.max(1) {
        for (side, results) in &mut runs {
            results.push(measure(side)?);
        }
    }
    println!("{ENCODING}, min and median of {rounds} fresh processes");
    for (side, results) in &runs {
        let summary = |field: &str| {
            let numbers = results.iter().filter_map(|result| result[field].as_f64());
            Summary::of(numbers)
        };
        let (ready, first) = (summary("ready_ms"), summary("first_encode_ms"));
        println!(
            "{side:12} ready {:6.1} ms ({:.1})  first encode {:6.2} ms ({:.2})  resident {:6.1} MB",
            ready.min,
            ready.median,
            first.min,
            first.median,
            summary("resident_bytes").median / 1e6,
        );
    }
    let sides = runs.into_iter();
    let sides = sides.map(|(side, runs)| json!({"side": side, "encoding": ENCODING, "runs": runs}));
    Ok(Value::Array(sides.collect()))
}

fn measure(side: &str) -> Result<Value, Error> {
    let mut child = Command::new(std::env::current_exe()?);
    let output = child.args(["load-child", side, ENCODING]).output()?;
    match output.status.success() {
        true => Ok(serde_json::from_slice(&output.stdout)?),
        false => Err(format!("{side}: {}", String::from_utf8_lossy(&output.stderr)).into()),
    }
}

/// Loads one tokenizer and prints what that took as JSON.
pub(crate) fn child(side: &str, encoding: &str) -> Result<(), Error> {
    let text = "The first text, whose encoding builds what loading put off.";
    let start = Instant::now();
    // The tokenizer is alive when the memory is read.
    let (ready, first, tokens, _alive): (_, _, _, Box<dyn std::any::Any>) = match side {
        "nothing" => (start.elapsed(), start.elapsed(), 0, Box::new(())),
        "bytepair" => {
            let tokenizer = Tokenizer::from_name(encoding)?;
            let ready = start.elapsed();
            let tokens = tokenizer.encode(text)?.len();
            (ready, start.elapsed(), tokens, Box::new(tokenizer))
        }
        peer::TIKTOKEN_RS => {
            // Static data of the peer: alive until the end.
            let tokenizer = peer::tiktoken_rs(encoding).ok_or("no such encoding")?;
            let ready = start.elapsed();
            let tokens = tokenizer.encode_ordinary(text).len();
            (ready, start.elapsed(), tokens, Box::new(()))
        }
        _ => return Err(format!("no such side: {side}").into()),
    };
    let ms = |time: std::time::Duration| time.as_secs_f64() * 1e3;
    let result = json!({
        "ready_ms": ms(ready),
        "first_encode_ms": ms(first - ready),
        "tokens": tokens,
        "resident_bytes": resident_bytes(),
    });
    println!("{result}");
    Ok(())
}

fn resident_bytes() -> Option<u64> {
    memory("VmRSS:")
}

/// A figure of this process's memory in bytes, where the system tells it (Linux): `VmRSS:` is what is
/// resident, `VmHWM:` the most that ever was.
pub(crate) fn memory(field: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    let kilobytes = line.trim().strip_suffix("kB")?.trim();
    Some(kilobytes.parse::<u64>().ok()? * 1024)
}

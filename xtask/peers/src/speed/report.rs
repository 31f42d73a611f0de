//! The results: a line each as they come, and at the end JSON and tables in Markdown.

use std::fmt::Write;
use std::path::Path;

use serde_json::{Value, json};

use super::race::Race;
use crate::Error;
use crate::interleave::Summary;

pub(super) struct Report {
    results: Vec<Ratio>,
    loads: Vec<Load>,
    left_out: Vec<LeftOut>,
    peers: Vec<(String, String, String)>,
}

/// How many times as fast as a peer ours is.
struct Ratio {
    table: String,
    encoding: String,
    corpus: String,
    label: String,
    threads: usize,
    peer: String,
    bytes: usize,
    seconds: Summary,
    /// Of the medians, then of the single rounds.
    ratio: f64,
    rounds: Summary,
    count: usize,
}

/// What it takes one tokenizer to be ready.
struct Load {
    encoding: String,
    peer: String,
    /// Until ready, for the first encode, and both; seconds.
    seconds: [Summary; 3],
    resident: Summary,
    count: usize,
}

/// A peer that has no times, and why.
#[derive(PartialEq, Eq)]
struct LeftOut {
    table: String,
    encoding: String,
    corpus: String,
    peer: String,
    why: String,
}

impl Report {
    pub(super) fn new() -> Self {
        Self {
            results: Vec::new(),
            loads: Vec::new(),
            left_out: Vec::new(),
            peers: Vec::new(),
        }
    }

    /// Takes in a race and prints it.
    pub(super) fn race(
        &mut self,
        table: &str,
        encoding: &str,
        corpus: &str,
        threads: usize,
        race: &Race,
    ) {
        self.note(table, encoding, corpus, race);
        let ours = &race.lanes[0];
        for (number, label) in race.labels.iter().enumerate() {
            let a = Summary::of(ours.seconds[number].iter().copied());
            for lane in &race.lanes {
                let times = &lane.seconds[number];
                if times.is_empty() {
                    continue;
                }
                let b = Summary::of(times.iter().copied());
                let rounds = times.iter().zip(&ours.seconds[number]);
                let result = Ratio {
                    table: table.to_owned(),
                    encoding: encoding.to_owned(),
                    corpus: corpus.to_owned(),
                    label: label.clone(),
                    threads,
                    peer: lane.name.clone(),
                    bytes: race.bytes[number],
                    seconds: b,
                    ratio: b.median / a.median,
                    rounds: Summary::of(rounds.map(|(b, a)| b / a)),
                    count: times.len(),
                };
                println!("{}", result.line());
                self.results.push(result);
            }
        }
    }

    /// Takes in what loading took, and prints it.
    pub(super) fn load(&mut self, encoding: &str, race: &Race) {
        self.note("loading", encoding, "", race);
        for lane in race.lanes.iter().filter(|lane| !lane.resident.is_empty()) {
            let summary = |all: &[f64]| Summary::of(all.iter().copied());
            let load = Load {
                encoding: encoding.to_owned(),
                peer: lane.name.clone(),
                seconds: std::array::from_fn(|label| summary(&lane.seconds[label])),
                resident: summary(&lane.resident),
                count: lane.resident.len(),
            };
            println!("{encoding} loading {}", load.row());
            self.loads.push(load);
        }
    }

    /// Who took part, and who was left out.
    fn note(&mut self, table: &str, encoding: &str, corpus: &str, race: &Race) {
        for lane in &race.lanes {
            let peer = (lane.name.clone(), lane.version.clone(), lane.call.clone());
            if !lane.version.is_empty() && !self.peers.contains(&peer) {
                self.peers.push(peer);
            }
            if let Some(why) = &lane.failure {
                println!("{encoding} {corpus} {table}: {}: {why}", lane.name);
                self.left_out.push(LeftOut {
                    table: table.to_owned(),
                    encoding: encoding.to_owned(),
                    corpus: corpus.to_owned(),
                    peer: lane.name.clone(),
                    why: why.clone(),
                });
            }
        }
    }

    /// Writes the files.
    pub(super) fn write(&self, json: Option<&Path>, markdown: Option<&Path>) -> Result<(), Error> {
        let tables = self.markdown()?;
        println!("{tables}");
        let write = |path: &Path, text: &str| {
            std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
        };
        if let Some(path) = json {
            write(path, &(serde_json::to_string_pretty(&self.json())? + "\n"))?;
        }
        if let Some(path) = markdown {
            write(path, &tables)?;
        }
        Ok(())
    }

    fn json(&self) -> Value {
        let results: Vec<Value> = self.results.iter().map(Ratio::json).collect();
        let left_out = self.left_out.iter().map(|left| {
            json!({
                "table": left.table,
                "encoding": left.encoding,
                "corpus": left.corpus,
                "peer": left.peer,
                "why": left.why,
            })
        });
        let peers = self
            .peers
            .iter()
            .map(|(name, version, call)| json!({"name": name, "version": version, "call": call}));
        json!({
            "machine": machine(),
            "command": command(),
            "peers": peers.collect::<Vec<_>>(),
            "results": results,
            "loading": self.loads.iter().map(Load::json).collect::<Vec<_>>(),
            "left_out": left_out.collect::<Vec<_>>(),
        })
    }

    /// For each encoding, table and label: a row for each peer, a column for each corpus.
    fn markdown(&self) -> Result<String, Error> {
        let mut text = String::new();
        writeln!(text, "`{}`\n\n{}\n", command(), machine_line())?;
        for group in distinct(self.results.iter().map(Ratio::group)) {
            let results: Vec<_> = self.results.iter().filter(|r| r.group() == group).collect();
            let (encoding, table, label, threads) = group;
            let corpora = distinct(results.iter().map(|result| &*result.corpus));
            let peers = distinct(results.iter().map(|result| &*result.peer));
            writeln!(
                text,
                "{encoding}, {table}, {label}, {threads} thread{}: MB/s of ours; then how many times as fast \
                 as each peer it is, by the medians (lowest to highest round)\n",
                if threads == 1 { "" } else { "s" }
            )?;
            writeln!(text, "| | {} |", corpora.join(" | "))?;
            writeln!(text, "|---|{}", "---:|".repeat(corpora.len()))?;
            for (row, peer) in peers.into_iter().enumerate() {
                write!(text, "| {peer} |")?;
                for corpus in &corpora {
                    let found = results
                        .iter()
                        .find(|r| r.peer == peer && r.corpus == *corpus);
                    match found {
                        None => write!(text, " - |")?,
                        Some(result) if row == 0 => write!(text, " {:.0} MB/s |", result.speed())?,
                        Some(result) => write!(text, " {} |", result.cell())?,
                    }
                }
                writeln!(text)?;
            }
            writeln!(text)?;
        }
        for encoding in distinct(self.loads.iter().map(|load| &load.encoding)) {
            writeln!(
                text,
                "{encoding}, fresh processes, medians: until ready, the first encode of a short text, both \
                 (ms), and how many times as long as ours; resident memory of the process (MB)\n"
            )?;
            writeln!(
                text,
                "| | ready | first encode | both | times ours | resident |"
            )?;
            writeln!(text, "|---|---:|---:|---:|---:|---:|")?;
            let mut loads = self
                .loads
                .iter()
                .filter(|load| load.encoding == *encoding)
                .peekable();
            let ours = loads.peek().map_or(f64::NAN, |load| load.seconds[2].median);
            for load in loads {
                let times = load.seconds[2].median / ours;
                writeln!(text, "| {} |", load.row_with(times))?;
            }
            writeln!(text)?;
        }
        if !self.left_out.is_empty() {
            writeln!(text, "Not timed, or not to the end:\n")?;
            for left in &self.left_out {
                writeln!(
                    text,
                    "- {}, {}, {}, {}: {}",
                    left.peer, left.encoding, left.table, left.corpus, left.why
                )?;
            }
            writeln!(text)?;
        }
        writeln!(text, "| peer | version | call |\n|---|---|---|")?;
        for (name, version, call) in &self.peers {
            writeln!(text, "| {name} | {version} | `{call}` |")?;
        }
        Ok(text)
    }
}

impl Ratio {
    /// What stands in one table together.
    fn group(&self) -> (&str, &str, &str, usize) {
        (&self.encoding, &self.table, &self.label, self.threads)
    }

    fn speed(&self) -> f64 {
        self.bytes as f64 / self.seconds.median / 1e6
    }

    fn cell(&self) -> String {
        format!(
            "{:.2} ({:.2} to {:.2})",
            self.ratio, self.rounds.min, self.rounds.max
        )
    }

    fn line(&self) -> String {
        format!(
            "{:12} {:18} {:10} {:10} {:16} {:7.1} MB/s  ratio {}",
            self.encoding,
            self.corpus,
            self.table,
            self.label,
            self.peer,
            self.speed(),
            self.cell()
        )
    }

    fn json(&self) -> Value {
        json!({
            "encoding": self.encoding,
            "table": self.table,
            "state": self.label,
            "corpus": self.corpus,
            "threads": self.threads,
            "peer": self.peer,
            "bytes": self.bytes,
            "rounds": self.count,
            "seconds": self.seconds.to_json(),
            "megabytes_per_second": self.speed(),
            "ratio_of_medians": self.ratio,
            "lowest_ratio_of_a_round": self.rounds.min,
            "highest_ratio_of_a_round": self.rounds.max,
        })
    }
}

impl Load {
    fn row(&self) -> String {
        let [ready, first, both] = self.seconds.map(|seconds| seconds.median * 1e3);
        let resident = self.resident.median / 1e6;
        format!(
            "{}: ready {ready:.1} ms, first encode {first:.2} ms, both {both:.1} ms, {resident:.1} MB",
            self.peer
        )
    }

    fn row_with(&self, times: f64) -> String {
        let [ready, first, both] = self.seconds.map(|seconds| seconds.median * 1e3);
        let resident = self.resident.median / 1e6;
        format!(
            "{} | {ready:.1} | {first:.2} | {both:.1} | {times:.1} | {resident:.1}",
            self.peer
        )
    }

    fn json(&self) -> Value {
        let [ready, first, both] = self.seconds.map(Summary::to_json);
        json!({
            "encoding": self.encoding,
            "peer": self.peer,
            "processes": self.count,
            "ready_seconds": ready,
            "first_encode_seconds": first,
            "both_seconds": both,
            "resident_bytes": self.resident.to_json(),
        })
    }
}

fn distinct<T: PartialEq>(all: impl Iterator<Item = T>) -> Vec<T> {
    let mut distinct = Vec::new();
    for one in all {
        if !distinct.contains(&one) {
            distinct.push(one);
        }
    }
    distinct
}

/// The command with the path of the program and of `--data` left out.
fn command() -> String {
    let mut words = vec!["cargo xtask bench peers".to_owned()];
    let mut arguments = std::env::args().skip(2);
    while let Some(argument) = arguments.next() {
        match &*argument {
            "--data" => {
                arguments.next();
                words.push("--data DIR".to_owned());
            }
            "--json" | "--markdown" => drop(arguments.next()),
            _ => words.push(argument),
        }
    }
    words.join(" ")
}

fn machine() -> Value {
    json!({
        "processor": processor(),
        "processors": std::thread::available_parallelism().map_or(1, usize::from),
        "load": load(),
    })
}

fn machine_line() -> String {
    let load = load();
    let load = load.map_or(String::new(), |load| {
        format!("; other work at the end: load {load}")
    });
    format!(
        "{}, {} processors{load}",
        processor(),
        std::thread::available_parallelism().map_or(1, usize::from)
    )
}

/// The model of the processor, where the system tells it (Linux).
fn processor() -> String {
    let all = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = all.lines().find(|line| line.starts_with("model name"));
    let model = line.and_then(|line| line.split(": ").nth(1));
    model.unwrap_or(std::env::consts::ARCH).to_owned()
}

/// How many threads want to run, averaged over a minute (Linux).
fn load() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/loadavg").ok()?;
    text.split_whitespace().next()?.parse().ok()
}

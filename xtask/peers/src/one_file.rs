//! `one-file`: one long file on several threads, ours beside others.
//!
//! Each side is a process of its own, pinned to so many processors as it may use. It loads its
//! vocabulary, and is then timed from the file on the disk to the ids in memory, three times over, or
//! once where that takes long: the first pass is cold, the best of the others is warm. The ids of all
//! sides are compared.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use bpe_lexers::Cuts;
use bpe_parallel::{Comparison, Workers};
use bytepair::{Specials, Tokenizer};
use serde_json::{Value, json};

use crate::corpora;
use crate::speed::{cores, files, pin, python, work};
use crate::{DataFolder, Error};

/// Ways of ours; the second is 004's, which is no part of the product.
const SEQUENTIAL: &str = "ours, one thread";
const SYNCHRONISED: &str = "ours";
const OVERLAP: &str = "004's Overlap on our encoder";
const OURS: [&str; 3] = [SYNCHRONISED, SEQUENTIAL, OVERLAP];

/// The functions of `python/one_file.py`, with what they call.
const PEERS: [(&str, &str); 2] = [
    ("gigatoken", "encode_files"),
    ("tokenizers", "encode_batch_fast"),
];
const PACKAGES: [&str; 3] = ["gigatoken==0.10.0", "tokenizers==0.23.3", "numpy"];

/// A part of `Overlap`: 004's chunk length in this use.
const PART_BYTES: usize = 1 << 20;

/// A document of those who take many instead of one: cut where no pre-token goes across.
const DOCUMENT_BYTES: usize = 1 << 16;

const PASSES: usize = 3;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    data: DataFolder,
    /// The encoding.
    #[arg(long, default_value = "o200k_base")]
    encoding: String,
    /// Bytes of the file: all corpora, one behind the other, over and over.
    #[arg(long, default_value_t = 64 << 20)]
    bytes: usize,
    /// Rounds; in each every side runs once, and the median counts.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Threads.
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// Write the results to this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

#[derive(clap::Args)]
pub(crate) struct Child {
    way: String,
    encoding: String,
    file: PathBuf,
    /// Where the ids go.
    ids: PathBuf,
    /// The processors it may use, a thread for each.
    #[arg(value_delimiter = ',')]
    cores: Vec<usize>,
}

/// Prints a table. False if a way of ours but `Overlap` gave other ids than one thread.
pub(crate) fn run(arguments: &Arguments) -> Result<bool, Error> {
    let corpora = corpora::all(arguments.data.data.as_deref(), usize::MAX)?;
    let mut text = String::new();
    for corpus in corpora.iter().cycle() {
        let room = arguments.bytes.saturating_sub(text.len());
        text.push_str(&corpus.text[..corpus.text.floor_char_boundary(room)]);
        if room <= corpus.text.len() || corpus.text.is_empty() {
            break;
        }
    }
    let tokenizer = Tokenizer::from_name(&arguments.encoding)?;
    let cuts = Cuts::new(tokenizer.patterns())?;
    let mut lengths = Vec::new();
    let mut rest = text.as_bytes();
    while !rest.is_empty() {
        let cut = cuts.last_cut(rest, DOCUMENT_BYTES.min(rest.len()));
        let length = cut.unwrap_or(rest.len()).max(1);
        lengths.push(length);
        rest = &rest[length..];
    }
    let folder = files::folder("one-file")?;
    let file = folder.join("text.txt");
    std::fs::write(&file, &text)?;
    std::fs::write(folder.join("lengths.json"), json!(lengths).to_string())?;
    let source = files::source(&arguments.encoding)?;
    let python = python::environment("one-file", &PACKAGES)?;
    let all_cores = cores();
    let used = all_cores.len().saturating_sub(arguments.threads);
    let race = Race {
        encoding: &arguments.encoding,
        vocabularies: [&source.ranks, &source.json],
        folder: &folder,
        python: &python,
        cores: &all_cores[used..],
    };
    let ways: Vec<&str> = OURS.into_iter().chain(PEERS.map(|peer| peer.0)).collect();
    let mut runs = vec![Vec::new(); ways.len()];
    for _ in 0..arguments.rounds.max(1) {
        for (way, runs) in ways.iter().zip(&mut runs) {
            match race.run(way) {
                Ok(run) => runs.push(run),
                Err(error) => println!("{way}: {error}"),
            }
        }
    }
    println!(
        "{} bytes, {}, {} threads, median of {} rounds\n\n{:30}{:>10}{:>10}{:>10}{:>12}{:>10}",
        text.len(),
        arguments.encoding,
        arguments.threads,
        arguments.rounds,
        "",
        "cold MB/s",
        "warm MB/s",
        "work s",
        "tokens",
        "same ids"
    );
    let expected = race.ids(SEQUENTIAL)?;
    let mut rows = Vec::new();
    let mut is_exact = true;
    for (way, runs) in ways.iter().zip(&runs) {
        if runs.is_empty() {
            is_exact &= !OURS.contains(way);
            continue;
        }
        let median = |field: &str| {
            let mut values: Vec<f64> = runs.iter().filter_map(|run| run[field].as_f64()).collect();
            values.sort_by(f64::total_cmp);
            values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
        };
        let speed = |field: &str| text.len() as f64 / 1e6 / median(field);
        let ids = race.ids(way)?;
        let is_same = ids == expected;
        is_exact &= is_same || ![SYNCHRONISED, SEQUENTIAL].contains(way);
        println!(
            "{way:30}{:>10.1}{:>10.1}{:>10.2}{:>12}{:>10}",
            speed("cold"),
            speed("warm"),
            median("work"),
            ids.len() / 4,
            if is_same { "yes" } else { "NO" },
        );
        let call = PEERS.iter().find(|peer| peer.0 == *way).map(|peer| peer.1);
        rows.push(json!({
            "way": way,
            "call": call,
            "cold_seconds": median("cold"),
            "warm_seconds": median("warm"),
            "work_seconds": median("work"),
            "tokens": ids.len() / 4,
            "same_ids": is_same,
        }));
    }
    if let Some(path) = &arguments.json {
        let results = json!({
            "encoding": arguments.encoding,
            "bytes": text.len(),
            "threads": arguments.threads,
            "rounds": arguments.rounds,
            "packages": PACKAGES,
            "rows": rows,
        });
        std::fs::write(path, format!("{results:#}\n"))?;
    }
    Ok(is_exact)
}

struct Race<'a> {
    encoding: &'a str,
    /// As `.tiktoken` and as `tokenizer.json`.
    vocabularies: [&'a Path; 2],
    folder: &'a Path,
    python: &'a Path,
    cores: &'a [usize],
}

impl Race<'_> {
    /// Runs a side in a new process.
    fn run(&self, way: &str) -> Result<Value, Error> {
        let cores: Vec<String> = self.cores.iter().map(usize::to_string).collect();
        let file = self.folder.join("text.txt");
        let mut command;
        if OURS.contains(&way) {
            command = Command::new(std::env::current_exe()?);
            command.args(["one-file-child", way, self.encoding]);
            command.arg(file);
        } else {
            let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("python/one_file.py");
            command = Command::new(self.python);
            command.arg("-B").arg(script).arg(way);
            command.args(self.vocabularies).arg(file);
            command.arg(self.folder.join("lengths.json"));
        }
        command.arg(self.ids_file(way)).arg(cores.join(","));
        let output = command.output()?;
        if !output.status.success() {
            let message = String::from_utf8_lossy(&output.stderr);
            return Err(message.lines().last().unwrap_or("no answer").into());
        }
        let output = String::from_utf8_lossy(&output.stdout);
        let answer: Value = serde_json::from_str(output.lines().last().unwrap_or_default())?;
        let seconds: Vec<f64> = serde_json::from_value(answer["seconds"].clone())?;
        let (cold, warm) = seconds.split_first().ok_or("no times")?;
        Ok(json!({
            "cold": cold,
            "warm": warm.iter().copied().reduce(f64::min).unwrap_or(*cold),
            "work": answer["work"],
        }))
    }

    /// The ids of a side that has run, four bytes each.
    fn ids(&self, way: &str) -> Result<Vec<u8>, Error> {
        Ok(std::fs::read(self.ids_file(way))?)
    }

    fn ids_file(&self, way: &str) -> PathBuf {
        let letters = way.chars().filter(char::is_ascii_alphabetic);
        let name: String = letters.collect();
        self.folder.join(name).with_extension("u32")
    }
}

/// Encodes the file, writes its ids, and prints what it took.
pub(crate) fn child(child: &Child) -> Result<(), Error> {
    pin(&child.cores)?;
    // As the others do: what the text has of special tokens is special.
    let tokenizer = Tokenizer::from_name(&child.encoding)?;
    let tokenizer = tokenizer.with_specials(Specials::AllowAll)?;
    let threads = child.cores.len();
    let parallel = tokenizer.parallel().threads(threads);
    let workers = Workers::new(threads);
    let mut ids = Vec::new();
    let mut seconds = Vec::new();
    let start_of_work = work();
    for _ in 0..PASSES {
        drop(std::mem::take(&mut ids));
        let start = Instant::now();
        let text = std::fs::read_to_string(&child.file)?;
        ids = match &*child.way {
            SEQUENTIAL => tokenizer.encode(&text)?,
            SYNCHRONISED => parallel.encode(&text)?,
            OVERLAP => {
                let done =
                    Comparison::Overlap.encode(&tokenizer, text.as_bytes(), PART_BYTES, &workers);
                done?.0
            }
            way => return Err(format!("no way of ours: {way}").into()),
        };
        seconds.push(start.elapsed().as_secs_f64());
    }
    let work = work().saturating_sub(start_of_work).as_secs_f64() / PASSES as f64;
    let bytes: Vec<u8> = ids.iter().flat_map(|id| id.to_le_bytes()).collect();
    std::fs::write(&child.ids, bytes)?;
    println!("{}", json!({"seconds": seconds, "work": work}));
    Ok(())
}

//! Pipelines of `tokenizer.json` files against `tokenizers`: ids with and without special tokens,
//! offsets, masks, decoded text, pairs, truncation and padding.

pub(crate) mod added;
mod compare;
pub(crate) mod load;
mod mistral;
mod sides;
pub(crate) mod speed;
mod steps;

use std::fmt;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::corpora::{self, Corpus};
use crate::peer;
use crate::random::Random;
use crate::{DataFolder, Error};
use sides::{Ours, Theirs};

/// What `--quick` takes of each corpus.
const QUICK_BYTES: usize = 12_000;
const QUICK_RANDOM: usize = 500;
const FULL_RANDOM: usize = 50_000;
const QUICK_TOKENS: usize = 1000;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The first 12 KB of each corpus, 500 random texts and 1000 tokens: some seconds.
    #[arg(long, conflicts_with = "full")]
    quick: bool,
    /// All of each corpus, 50,000 random texts and each token: some minutes a tokenizer.
    #[arg(long)]
    full: bool,
    /// Tokenizers to compare, by the names of their folders, and `steps` for decoders and post-processors behind
    /// small models: all by default.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Compare with mistral-common and the sentencepiece library too, which are Python: makes a virtual
    /// environment in `target` and installs them there.
    #[arg(long)]
    python: bool,
    #[command(flatten)]
    data: DataFolder,
}

/// Files that are read in another way on purpose (`cases_shared.jsonl` has what is right).
const ON_PURPOSE: [(&str, &str); 2] = [
    (
        "tok/added-gap",
        "the oracle gives added tokens other ids than the file",
    ),
    (
        "tok/dup-vocab-key",
        "a token that is there twice is refused, the oracle takes the last",
    ),
];

/// What is compared on.
pub(crate) struct Texts {
    corpora: Vec<Corpus>,
    random: Vec<String>,
    /// Texts of the shared cases.
    cases: Vec<String>,
    /// Of so many tokens the text alone.
    tokens: usize,
}

/// Prints a line for each claim, and at last `peers models: N claims, M failed, C oracle calls`. False
/// if one failed.
pub(crate) fn run(arguments: &Arguments) -> Result<bool, Error> {
    tokenizers::utils::parallelism::set_parallelism(false);
    peer::silence_panics_of_peers();
    let (bytes, random, tokens) = match arguments.full {
        true => (usize::MAX, FULL_RANDOM, usize::MAX),
        false => (QUICK_BYTES, QUICK_RANDOM, QUICK_TOKENS),
    };
    let data = arguments.data.data.as_deref();
    let mut texts = Random::new(11);
    let texts = Texts {
        corpora: corpora::all(data, bytes)?,
        random: (0..random).map(|_| texts.text()).collect(),
        cases: cases()?,
        tokens,
    };
    let wanted = |name: &str| arguments.only.is_empty() || arguments.only.iter().any(|o| o == name);
    let mut files = small_files()?;
    match data {
        Some(data) => files.extend(models(&data.join("tokenizers"))?),
        None => println!("skipped: the models (no --data)"),
    }
    files.retain(|(name, _)| wanted(name));
    let mut report = Report::default();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    for some in files.chunks(threads) {
        for claims in compare_files(some, &texts) {
            claims.into_iter().for_each(|claim| report.claim(&claim));
        }
    }
    if wanted("steps") {
        for claim in steps::compare(&texts)? {
            report.claim(&claim);
        }
    }
    if let (true, Some(data)) = (arguments.python, data) {
        for claim in mistral::compare(&data.join("tokenizers"), &texts)? {
            report.claim(&claim);
        }
    }
    println!(
        "peers models: {} claims, {} failed, {} oracle calls",
        report.claims, report.failed, report.calls
    );
    Ok(report.failed == 0)
}

/// Compares each file on a thread of its own.
fn compare_files(files: &[(String, PathBuf)], texts: &Texts) -> Vec<Vec<Claim>> {
    std::thread::scope(|scope| {
        let start = |(name, path): &(String, PathBuf)| {
            let (name, path) = (name.clone(), path.clone());
            scope.spawn(move || compare_file(&name, &path, texts))
        };
        let threads: Vec<_> = files.iter().map(start).collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, _>| match thread.join() {
            Ok(claims) => claims,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        threads.into_iter().map(join).collect()
    })
}

fn compare_file(name: &str, path: &Path, texts: &Texts) -> Vec<Claim> {
    let loaded = content(path).map_err(|error| error.to_string());
    if let Some((_, why)) = ON_PURPOSE.iter().find(|(other, _)| *other == name) {
        println!("skipped: {name}: {why}");
        return Vec::new();
    }
    let json = match loaded {
        Ok(json) => json,
        Err(error) => return vec![Claim::failed(format!("{name} is read"), error)],
    };
    let theirs = Theirs::read(&json);
    let ours = Ours::read(&json);
    match (ours, theirs) {
        (Ok(ours), Ok(theirs)) => compare::all(name, &ours, &theirs, texts),
        (Err(ours), Ok(_)) => vec![Claim::failed(format!("{name} is read"), ours)],
        // What both refuse, and what we read and they do not: nothing to compare with.
        (Err(ours), Err(_)) => {
            println!("skipped: {name}: refused by both ({ours})");
            Vec::new()
        }
        (Ok(_), Err(theirs)) => {
            println!("skipped: {name}: refused by the oracle ({theirs})");
            Vec::new()
        }
    }
}

/// The small files among the shared cases.
fn small_files() -> Result<Vec<(String, PathBuf)>, Error> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench-data/cases/tok");
    let mut files = Vec::new();
    for entry in fs::read_dir(&folder)? {
        let path = entry?.path();
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        files.push((format!("tok/{stem}"), path.clone()));
    }
    files.sort();
    Ok(files)
}

/// The models of the data folder: those with a `tokenizer.json`, and GPT-2's two files.
fn models(folder: &Path) -> Result<Vec<(String, PathBuf)>, Error> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default();
        let name = name.to_string_lossy().into_owned();
        for file in ["tokenizer.json", "tokenizer.json.gz", "vocab.json"] {
            if path.join(file).exists() {
                files.push((name.clone(), path.join(file)));
                break;
            }
        }
    }
    files.sort();
    Ok(files)
}

/// A `tokenizer.json`. That of GPT-2 is what `tokenizers` makes of its two files.
fn content(path: &Path) -> Result<Vec<u8>, Error> {
    if path.ends_with("vocab.json") {
        return sides::gpt2(path, &path.with_file_name("merges.txt"));
    }
    let bytes = fs::read(path)?;
    if path.extension().is_some_and(|extension| extension == "gz") {
        let mut unpacked = Vec::new();
        flate2::read::MultiGzDecoder::new(&*bytes).read_to_end(&mut unpacked)?;
        return Ok(unpacked);
    }
    Ok(bytes)
}

/// The texts that shared cases have as they are; those that they make by a rule are run by `cargo xtask
/// verify cases`.
fn cases() -> Result<Vec<String>, Error> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"));
    let path = path.join("../../bench-data/cases/cases_shared.jsonl");
    let mut texts = Vec::new();
    for line in fs::read_to_string(path)?.lines() {
        let case: Value = serde_json::from_str(line)?;
        if let Some(text) = case["text"].as_str() {
            texts.push(text.to_owned());
        }
    }
    texts.sort();
    texts.dedup();
    Ok(texts)
}

#[derive(Default)]
struct Report {
    claims: usize,
    failed: usize,
    calls: u64,
}

impl Report {
    fn claim(&mut self, claim: &Claim) {
        self.claims += 1;
        self.calls += claim.calls;
        self.failed += usize::from(claim.differences > 0);
        println!("{claim}");
    }
}

/// One line of the report.
#[derive(Default)]
pub(crate) struct Claim {
    what: String,
    texts: usize,
    tokens: usize,
    calls: u64,
    refused: usize,
    /// Texts with a character that has no token, which is an error here.
    lacking: usize,
    differences: usize,
    /// The first difference.
    first: String,
}

impl Claim {
    fn new(what: String) -> Self {
        Self {
            what,
            ..Self::default()
        }
    }

    fn failed(what: String, error: String) -> Self {
        Self {
            what,
            differences: 1,
            first: error,
            ..Self::default()
        }
    }
}

impl fmt::Display for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = if self.differences == 0 {
            "ok  "
        } else {
            "FAIL"
        };
        let Self {
            what,
            texts,
            tokens,
            differences,
            ..
        } = self;
        write!(
            f,
            "{verdict} {what}: {texts} texts, {tokens} tokens, {differences} differences"
        )?;
        if self.refused > 0 {
            write!(f, ", {} refused by the oracle", self.refused)?;
        }
        if self.lacking > 0 {
            write!(
                f,
                ", {} refused by us for a character without a token",
                self.lacking
            )?;
        }
        match differences {
            0 => Ok(()),
            _ => write!(f, "\n     {}", self.first),
        }
    }
}

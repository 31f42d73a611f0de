//! Memory: bounded by a multiple of the input, level over time, and bounded for files of any length.

use std::fs::File;
use std::io::{BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use bytepair::Tokenizer;
use serde_json::Value;

use super::support::{Corpus, Random, ensure, text_of};
use super::{Checked, Claims, Outcome, Settings};

pub(super) fn check(claims: &mut Claims) {
    let level = "resident memory levels off over distinct words (P07)";
    let multiple = "one piece of 8 MiB takes at most 48 bytes of memory a byte (P09)";
    let file = "1 GB of text through `bytepair encode --out` takes under 200 MB of memory";
    if resident("VmRSS").is_none() {
        claims.skip(level, "no /proc/self/status");
        claims.skip(multiple, "no /proc/self/status");
        claims.skip(file, "no /proc/self/status");
        return;
    }
    claims.check_alone(level, levels_off);
    claims.check_alone(multiple, one_piece);
    match claims.settings.full {
        true => claims.check(file, one_gigabyte),
        false => claims.skip(file, "it writes 2 GB of files (--full)"),
    }
}

/// A value of /proc/self/status in bytes.
pub(super) fn resident(name: &str) -> Option<usize> {
    resident_of("self", name)
}

/// The same of a process, as long as it runs.
fn resident_of(process: &str, name: &str) -> Option<usize> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with(name))?;
    let kilobytes: usize = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kilobytes * 1024)
}

fn word(random: &mut Random, length: usize) -> String {
    (0..length)
        .map(|_| char::from(b'a' + random.below(26) as u8))
        .collect()
}

fn levels_off(settings: &Settings) -> Outcome {
    let (short, long) = settings.choose((100_000, 100), (1_000_000, 1_000));
    let tokenizer = Tokenizer::o200k_base();
    tokenizer.clear_scratch();
    let mut random = Random::new(7);
    let mut ids = Vec::new();
    let mut notes = Vec::new();
    for (count, length) in [(short, 100), (long, 100_000)] {
        let mut halves = Vec::new();
        for _ in 0..2 {
            for _ in 0..count / 2 {
                ids.clear();
                tokenizer
                    .encode_into(word(&mut random, length), &mut ids)
                    .map_err(text_of)?;
            }
            halves.push(resident("VmRSS").ok_or("no VmRSS")?);
        }
        let growth = halves[1] as f64 / halves[0] as f64;
        notes.push(format!(
            "{count} words of {length} letters {:.0} to {:.0} MB",
            halves[0] as f64 / 1e6,
            halves[1] as f64 / 1e6
        ));
        ensure(growth <= 1.2, || {
            format!(
                "{growth:.2} times after the second half: {}",
                notes.join(", ")
            )
        })?;
    }
    Ok(Checked::with_note(short + long, notes.join(", ")))
}

fn one_piece(settings: &Settings) -> Outcome {
    const BYTES: usize = 8 << 20;
    const MOST: f64 = 48.0;
    let mut texts = vec![("one letter", "a".repeat(BYTES))];
    if settings.full {
        texts.insert(0, ("random letters", word(&mut Random::new(9), BYTES)));
    }
    let names = settings.choose(&["o200k_base"][..], &crate::embed::NAMES);
    let mut notes = Vec::new();
    for name in names {
        let tokenizer = Tokenizer::from_name(name).map_err(text_of)?;
        tokenizer.encode("warm").map_err(text_of)?;
        for (kind, text) in &texts {
            // The growth of the scratch memory is measured too, so none is there before.
            tokenizer.clear_scratch();
            let (ids, bytes) = growth_during(|| tokenizer.encode(text))?;
            let tokens = ids.map_err(text_of)?.len();
            let multiple = bytes as f64 / BYTES as f64;
            ensure(tokens > 0 && multiple <= MOST, || {
                format!("{name}, {kind}: {multiple:.1} bytes a byte")
            })?;
            notes.push(format!("{name}, {kind}: {multiple:.1} bytes a byte"));
        }
        tokenizer.clear_scratch();
    }
    Ok(Checked::with_note(notes.len() as u64, notes.join("; ")))
}

/// What `run` returns, and by how many bytes resident memory was larger at most while it ran, as
/// seen every millisecond.
pub(crate) fn growth_during<T: Send>(run: impl FnOnce() -> T + Send) -> Result<(T, usize), String> {
    let before = resident("VmRSS").ok_or("no VmRSS")?;
    std::thread::scope(|scope| {
        let thread = scope.spawn(run);
        let mut most = before;
        while !thread.is_finished() {
            most = most.max(resident("VmRSS").unwrap_or(0));
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        most = most.max(resident("VmRSS").unwrap_or(0));
        let result = thread.join().map_err(|_| "panic".to_owned())?;
        Ok((result, most - before))
    })
}

/// The English corpus over and over, by the command line with its defaults.
fn one_gigabyte(_: &Settings, corpora: &[Corpus]) -> Outcome {
    const BYTES: usize = 1_000_000_000;
    const MOST: usize = 200_000_000;
    let english = corpora.iter().find(|corpus| corpus.name == "english.txt");
    let text = english.ok_or("there is no English corpus")?.text.trim();
    // Between a line break and a letter pre-tokens end, whatever stands around them.
    let part = format!("{text}\n");
    let tokenizer = Tokenizer::o200k_base();
    let ids = tokenizer.encode(&part).map_err(text_of)?;
    let twice = tokenizer.encode(&part.repeat(2)).map_err(text_of)?;
    ensure(twice == ids.repeat(2), || {
        "the parts are not apart".to_owned()
    })?;
    let times = BYTES.div_ceil(part.len());

    let program = command_line()?;
    let folder = Folder::new()?;
    let (input, out) = (folder.0.join("input.txt"), folder.0.join("ids.u32"));
    let written = (|| {
        let mut file = File::create(&input)?;
        (0..times).try_for_each(|_| file.write_all(part.as_bytes()))
    })();
    written.map_err(text_of)?;
    let mut command = Command::new(program);
    command.arg("encode").arg("--out").args([&out, &input]);
    let start = Instant::now();
    let mut child = command.spawn().map_err(text_of)?;
    // The system keeps the most that a process has had; it is read until the process ends.
    let (process, mut most) = (child.id().to_string(), 0);
    let status = loop {
        most = resident_of(&process, "VmHWM").unwrap_or(most);
        if let Some(status) = child.try_wait().map_err(text_of)? {
            break status;
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    let seconds = start.elapsed().as_secs_f64();
    ensure(status.success(), || status.to_string())?;

    let expected: Vec<u8> = ids.iter().flat_map(|id| id.to_le_bytes()).collect();
    let mut found = BufReader::new(File::open(&out).map_err(text_of)?);
    let mut some = vec![0; expected.len()];
    for number in 0..times {
        found.read_exact(&mut some).map_err(text_of)?;
        ensure(some == expected, || format!("other ids in part {number}"))?;
    }
    let rest = found.read(&mut some).map_err(text_of)?;
    ensure(rest == 0, || "more ids than there should be".to_owned())?;
    let count = ids.len() * times;
    let ends = std::fs::read(folder.0.join("ids.u32.ends")).map_err(text_of)?;
    ensure(ends == (count as u64).to_le_bytes(), || {
        "another end of the document".to_owned()
    })?;
    let note = format!(
        "tokens; {:.1} MB at most, {seconds:.1} s",
        most as f64 / 1e6
    );
    ensure(0 < most && most < MOST, || note.clone())?;
    Ok(Checked::with_note(count as u64, note))
}

/// Builds the command line, and returns its path.
fn command_line() -> Result<PathBuf, String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")));
    command.args(["build", "--quiet", "--release", "--package", "bytepair-cli"]);
    command.args(["--bin", "bytepair", "--message-format", "json"]);
    let output = command.output().map_err(text_of)?;
    let lines = output.stdout.split(|&byte| byte == b'\n');
    let mut paths = lines.filter_map(|line| {
        let message: Value = serde_json::from_slice(line).ok()?;
        Some(PathBuf::from(message.get("executable")?.as_str()?))
    });
    let error = || String::from_utf8_lossy(&output.stderr).into_owned();
    paths.next_back().ok_or_else(error)
}

/// A folder for files that are not kept.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Result<Self, String> {
        let name = format!("bytepair-verify-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir(&folder).map_err(text_of)?;
        Ok(Self(folder))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What cannot be removed is the system's to remove.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

//! What a training that is broken off goes on from.
//!
//! The folder holds `state.json`, which says what counts, and the files that it names, which end in
//! `.checkpoint`: word counts, and the merges so far. A file is complete before the state names it, and the state is replaced as
//! a whole; so whenever the process ends, the folder says something true.

use std::fs::{self, File, TryLockError};
use std::io::{self, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use bpe_core::byte_level;
use bpe_train::{Training, WordCounts};
use serde_json::{Value, json};

use super::texts::Position;
use crate::error::CliError;

const VERSION: u64 = 2;
const STATE: &str = "state.json";
const NEW_STATE: &str = "state.new.checkpoint";
const MERGES: &str = "merges.checkpoint";
const NEW_MERGES: &str = "merges.new.checkpoint";
const LOCK: &str = "lock.checkpoint";

/// So many times what a checkpoint takes passes at least before it, which keeps their cost at 1 %.
const REST: u32 = 100;

/// What the first checkpoint is taken to need, there being none to go by: for the waits for the disk, and
/// for each byte of the counts in memory.
const FIRST: Duration = Duration::from_millis(200);
const FIRST_PER_BYTE: Duration = Duration::from_nanos(5);

/// A pair of tokens.
pub(super) type Merge = (Vec<u8>, Vec<u8>);

/// The folder of a training under way.
pub(super) struct Checkpoint {
    folder: PathBuf,
    interval: Duration,
    /// Held as long as this process works in the folder.
    _lock: File,
    /// What the training is, in all that its result depends on.
    training: Value,
    begun: Instant,
    last: Instant,
    /// What the last one took; none was made yet.
    cost: Option<Duration>,
    /// How many were made by this process, and what they took.
    made: u32,
    spent: Duration,
    number: u64,
    phase: Phase,
}

/// How far the training was.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Phase {
    /// At its beginning.
    New,
    /// Words were counted up to a place.
    Counting(Position),
    /// All were counted.
    Merging,
}

impl Checkpoint {
    /// Takes up what `folder` holds, if it holds anything.
    pub(super) fn open(
        folder: &Path,
        interval: Duration,
        training: Value,
    ) -> Result<Self, CliError> {
        fs::create_dir_all(folder).map_err(|error| cannot_write(folder, error))?;
        let path = folder.join(LOCK);
        let lock = File::create(&path).map_err(|error| cannot_write(&path, error))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let folder = folder.display();
                return Err(CliError::Usage(format!(
                    "--checkpoint: another training is under way in {folder}"
                )));
            }
            // A file system without locks: then two trainings are the user's own business.
            Err(TryLockError::Error(_)) => {}
        }
        let mut checkpoint = Self {
            folder: folder.to_owned(),
            interval,
            _lock: lock,
            training,
            begun: Instant::now(),
            last: Instant::now(),
            cost: None,
            made: 0,
            spent: Duration::ZERO,
            number: 0,
            phase: Phase::New,
        };
        let path = folder.join(STATE);
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(checkpoint),
            Err(error) => return Err(CliError::reading(&path.display().to_string(), error)),
        };
        let state: Value = serde_json::from_slice(&text).map_err(|error| checkpoint.no(&error))?;
        if state["version"] != VERSION {
            return Err(checkpoint.no(&"of another version"));
        }
        checkpoint.compare(&state["training"])?;
        let number = |name: &str| {
            let number = state[name].as_u64();
            number.ok_or_else(|| checkpoint.no(&format!("no {name}")))
        };
        let phase = match state["phase"].as_str() {
            Some("counting") => Phase::Counting(Position {
                input: number("input")? as usize,
                offset: number("offset")?,
                blocks: number("blocks")?,
            }),
            Some("merging") => Phase::Merging,
            _ => return Err(checkpoint.no(&"no phase")),
        };
        let number = number("number")?;
        checkpoint.phase = phase;
        checkpoint.number = number;
        Ok(checkpoint)
    }

    /// How far the training was when it was broken off.
    pub(super) fn phase(&self) -> &Phase {
        &self.phase
    }

    /// Whether it is time for the next one, where the counts are so many bytes: always, at an interval
    /// of 0.
    pub(super) fn is_due(&self, count_bytes: usize) -> bool {
        let expected = self.cost.unwrap_or_else(|| {
            let bytes = u32::try_from(count_bytes).unwrap_or(u32::MAX);
            FIRST.saturating_add(FIRST_PER_BYTE.saturating_mul(bytes))
        });
        let rest = self.interval.max(expected.saturating_mul(REST));
        self.interval.is_zero() || self.last.elapsed() >= rest
    }

    /// What the checkpoints of this process took of its time, for the report.
    pub(super) fn line(&self) -> String {
        let share = self.spent.as_secs_f64() / self.begun.elapsed().as_secs_f64() * 100.0;
        format!(
            "checkpoints: {} in {:.2?}, {share:.2} % of the time",
            self.made, self.spent
        )
    }

    /// The word counts of the state, and those of what is held out.
    pub(super) fn counts(&self) -> Result<[BufReader<File>; 2], CliError> {
        let open = |name: &str| {
            let path = self.numbered(name);
            let file = File::open(&path);
            let file = file.map_err(|error| CliError::reading(&path.display().to_string(), error));
            file.map(BufReader::new)
        };
        Ok([open("counts")?, open("held-out")?])
    }

    /// Saves the word counts up to `phase`, which `write` writes, and those of what is held out.
    pub(super) fn save_counts(
        &mut self,
        phase: Phase,
        mut write: impl FnMut(bool, &mut dyn Write) -> io::Result<()>,
    ) -> Result<(), CliError> {
        let start = Instant::now();
        let old = ["counts", "held-out"].map(|name| self.numbered(name));
        self.number += 1;
        for (name, is_held_out) in [("counts", false), ("held-out", true)] {
            let path = self.numbered(name);
            self.write_file(&path, |output| write(is_held_out, output))?;
        }
        // Those of an earlier training, which someone has taken the state of away.
        if phase == Phase::Merging && self.phase != Phase::Merging {
            let _ = fs::remove_file(self.folder.join(MERGES));
        }
        self.phase = phase;
        self.save_state()?;
        for path in old {
            // Of no use any more; the first time there is none.
            let _ = fs::remove_file(path);
        }
        self.note(start);
        Ok(())
    }

    /// Saves the merges so far, which all words of the text are known for.
    pub(super) fn save_merges(
        &mut self,
        training: &Training,
        counts: &WordCounts,
        held_out: &WordCounts,
    ) -> Result<(), CliError> {
        if self.phase != Phase::Merging {
            self.save_counts(Phase::Merging, |is_held_out, output| match is_held_out {
                true => held_out.write_to(output),
                false => counts.write_to(output),
            })?;
        }
        let start = Instant::now();
        let new = self.folder.join(NEW_MERGES);
        self.write_file(&new, |output| {
            for merge in training.merges() {
                let sides = [merge.left, merge.right].map(byte_level::encode);
                writeln!(output, "{} {}", sides[0], sides[1])?;
            }
            Ok(())
        })?;
        let path = self.folder.join(MERGES);
        fs::rename(&new, &path).map_err(|error| cannot_write(&path, error))?;
        self.note(start);
        Ok(())
    }

    /// The merges that were saved, none where none were.
    pub(super) fn merges(&self) -> Result<Vec<Merge>, CliError> {
        if self.phase != Phase::Merging {
            return Ok(Vec::new());
        }
        let path = self.folder.join(MERGES);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(CliError::reading(&path.display().to_string(), error)),
        };
        let merges = text.lines().enumerate().map(|(index, line)| {
            let pair = line.split_once(' ').and_then(|(left, right)| {
                let sides = [left, right].map(|side| byte_level::decode(side).ok());
                match sides {
                    [Some(left), Some(right)] => Some((left, right)),
                    _ => None,
                }
            });
            pair.ok_or_else(|| self.no(&format!("{MERGES}, line {}: no merge", index + 1)))
        });
        merges.collect()
    }

    /// Removes what is saved: the training is done. Also what a process that was killed has left behind
    /// between two states.
    pub(super) fn clear(self) -> Result<(), CliError> {
        // The state first: without it the others mean nothing.
        let mut paths = vec![self.folder.join(STATE)];
        let entries = fs::read_dir(&self.folder);
        for entry in entries.map_err(|error| cannot_write(&self.folder, error))? {
            let entry = entry.map_err(|error| cannot_write(&self.folder, error))?;
            let name = entry.file_name();
            if is_ours(&name.to_string_lossy()) {
                paths.push(entry.path());
            }
        }
        // The lock at the end: up to then no other training begins here.
        paths.sort_by_key(|path| path.ends_with(LOCK));
        for path in paths {
            match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(cannot_write(&path, error));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Refuses a state of another training.
    fn compare(&self, saved: &Value) -> Result<(), CliError> {
        let Some(training) = self.training.as_object() else {
            return Ok(());
        };
        for (name, value) in training {
            if saved[name] != *value {
                let folder = self.folder.display();
                return Err(CliError::Usage(format!(
                    "--checkpoint: {folder} is of another training: its {name} is {}, not {value}",
                    saved[name]
                )));
            }
        }
        Ok(())
    }

    fn save_state(&self) -> Result<(), CliError> {
        let mut state = json!({
            "version": VERSION,
            "training": self.training,
            "number": self.number,
            "phase": "merging",
        });
        if let Phase::Counting(position) = &self.phase {
            state["phase"] = "counting".into();
            state["input"] = position.input.into();
            state["offset"] = position.offset.into();
            state["blocks"] = position.blocks.into();
        }
        let new = self.folder.join(NEW_STATE);
        self.write_file(&new, |output| write!(output, "{state}"))?;
        let path = self.folder.join(STATE);
        fs::rename(&new, &path).map_err(|error| cannot_write(&path, error))
    }

    /// Writes a file whose bytes are on the disk before this returns.
    fn write_file(
        &self,
        path: &Path,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), CliError> {
        let written = File::create(path).and_then(|file| {
            let mut output = BufWriter::new(file);
            write(&mut output)?;
            output.into_inner()?.sync_data()
        });
        written.map_err(|error| cannot_write(path, error))
    }

    fn note(&mut self, start: Instant) {
        let cost = start.elapsed();
        self.cost = Some(cost);
        self.made += 1;
        self.spent += cost;
        self.last = Instant::now();
    }

    fn numbered(&self, name: &str) -> PathBuf {
        self.folder
            .join(format!("{name}-{}.checkpoint", self.number))
    }

    fn no(&self, what: &dyn std::fmt::Display) -> CliError {
        let folder = self.folder.display();
        CliError::Input(format!("{folder} holds no checkpoint: {what}"))
    }
}

/// Whether a file of this name, beside the state, is of a checkpoint's making.
fn is_ours(name: &str) -> bool {
    let is_numbered = |prefix| {
        let rest = name.strip_prefix(prefix);
        let number = rest.and_then(|rest| rest.strip_suffix(".checkpoint"));
        number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
    };
    [NEW_STATE, MERGES, NEW_MERGES, LOCK].contains(&name)
        || is_numbered("counts-")
        || is_numbered("held-out-")
}

pub(super) fn cannot_write(path: &Path, error: io::Error) -> CliError {
    CliError::Input(format!("cannot write {}: {error}", path.display()))
}

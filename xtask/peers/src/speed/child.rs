//! The process of one tokenizer: it answers a request of one line with one line of JSON.
//!
//! The worker in Python answers the same requests (`python/worker.py`).

use std::collections::HashMap;
use std::io::{BufRead, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::{Value, json};

use crate::rival::{self, Entry, Rival, Source};
use crate::{Error, load};

/// A text that brings into being what loading puts off.
const SHORT: &str = "The first text, whose encoding builds what loading put off.";

#[derive(Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
enum Request {
    /// Load a vocabulary anew, and encode a short text.
    Load {
        encoding: String,
        ranks: PathBuf,
        json: PathBuf,
    },
    /// Read texts: a file, and the bytes of each text in it.
    Texts {
        name: String,
        path: PathBuf,
        lengths: Vec<usize>,
    },
    /// Write the ids of all texts to a file, four bytes each, little end first.
    Ids { texts: String, path: PathBuf },
    /// Encode all texts, each by a call of its own, or all by one call.
    Time { texts: String, batch: bool },
}

/// Answers until the input ends.
pub(crate) fn run(name: &str, cores: &[usize]) -> Result<(), Error> {
    super::pin(cores)?;
    let entry = rival::ALL.iter().find(|entry| entry.name == name);
    let mut child = Child {
        entry: entry.ok_or_else(|| format!("{name} was not built"))?,
        rival: None,
        texts: HashMap::new(),
    };
    let mut output = std::io::stdout();
    for line in std::io::stdin().lock().lines() {
        let answer = match child.answer(serde_json::from_str(&line?)?) {
            Ok(answer) => answer,
            Err(error) => json!({"error": error.to_string()}),
        };
        writeln!(output, "{answer}")?;
        output.flush()?;
    }
    Ok(())
}

struct Child {
    entry: &'static Entry,
    rival: Option<Box<dyn Rival>>,
    texts: HashMap<String, (String, Vec<usize>)>,
}

impl Child {
    fn answer(&mut self, request: Request) -> Result<Value, Error> {
        match request {
            Request::Load {
                encoding,
                ranks,
                json,
            } => self.load(&Source {
                encoding,
                ranks,
                json,
            }),
            Request::Texts {
                name,
                path,
                lengths,
            } => {
                let text = std::fs::read_to_string(path)?;
                self.texts.insert(name, (text, lengths));
                Ok(json!({}))
            }
            Request::Ids { texts, path } => {
                let (rival, texts) = self.rival_and_texts(&texts)?;
                let mut bytes = Vec::new();
                for text in texts {
                    for id in rival.encode(text)? {
                        bytes.extend_from_slice(&id.to_le_bytes());
                    }
                }
                std::fs::write(path, bytes)?;
                Ok(json!({}))
            }
            Request::Time { texts, batch } => {
                let (rival, texts) = self.rival_and_texts(&texts)?;
                let watch = Watch::start();
                let tokens = match batch {
                    false => Some(rival.run(&texts)?),
                    true => rival.run_batch(&texts)?,
                };
                let mut answer = watch.stop();
                answer["tokens"] = tokens.into();
                Ok(answer)
            }
        }
    }

    fn load(&mut self, source: &Source) -> Result<Value, Error> {
        self.rival = None;
        let watch = Watch::start();
        let mut rival = self.entry.load(source)?;
        let ready = watch.stop();
        let watch = Watch::start();
        let tokens = rival.encode(SHORT)?.len();
        let first = watch.stop();
        self.rival = Some(rival);
        Ok(json!({
            "version": self.entry.version(),
            "ready": ready,
            "first": first,
            "tokens": tokens,
            "resident_bytes": load::memory("VmRSS:"),
        }))
    }

    fn rival_and_texts(&mut self, name: &str) -> Result<(&mut dyn Rival, Vec<&str>), Error> {
        let rival = self.rival.as_deref_mut().ok_or("nothing is loaded")?;
        let (text, lengths) = self.texts.get(name).ok_or("no such texts")?;
        let mut rest = &**text;
        let mut texts = Vec::with_capacity(lengths.len());
        for &length in lengths {
            let (text, after) = rest
                .split_at_checked(length)
                .ok_or("a cut in a character")?;
            texts.push(text);
            rest = after;
        }
        Ok((rival, texts))
    }
}

/// Two clocks: that on the wall, and that of the work of this process on all of its threads, from
/// which the time is missing that others had the core.
struct Watch {
    wall: Instant,
    work: Duration,
}

impl Watch {
    fn start() -> Self {
        Self {
            work: super::work(),
            wall: Instant::now(),
        }
    }

    fn stop(&self) -> Value {
        let wall = self.wall.elapsed();
        let work = super::work().saturating_sub(self.work);
        json!({"wall": wall.as_secs_f64(), "work": work.as_secs_f64()})
    }
}

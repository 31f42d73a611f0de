//! A tokenizer in a process of its own, asked over pipes.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use serde_json::{Value, json};

use super::files::Texts;
use crate::Error;
use crate::rival::Source;

/// How to start the process of a tokenizer.
pub(super) struct Start {
    pub(super) name: String,
    pub(super) call: String,
    pub(super) program: OsString,
    pub(super) arguments: Vec<OsString>,
}

/// A running tokenizer.
pub(super) struct Side {
    child: Child,
    requests: ChildStdin,
    answers: Receiver<String>,
}

/// Why a side gave no answer. It is gone then, unless it said itself what went wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Failure {
    /// The time that it may take was over.
    Cut(Duration),
    /// It ended, or could not do it.
    Failed(String),
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Cut(limit) => write!(f, "cut after {} s", limit.as_secs()),
            Self::Failed(why) => f.write_str(why),
        }
    }
}

impl Side {
    /// Starts the process on these processors.
    pub(super) fn start(start: &Start, cores: &[usize]) -> Result<Self, Error> {
        let cores: Vec<String> = cores.iter().map(usize::to_string).collect();
        let mut child = Command::new(&start.program)
            .args(&start.arguments)
            .arg(cores.join(","))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let requests = child.stdin.take().ok_or("no pipe")?;
        let output = BufReader::new(child.stdout.take().ok_or("no pipe")?);
        let (sender, answers) = channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Ok(Self {
            child,
            requests,
            answers,
        })
    }

    /// Loads the vocabulary anew: a fresh instance.
    pub(super) fn load(&mut self, source: &Source) -> Result<Value, Failure> {
        let request = json!({
            "do": "load",
            "encoding": source.encoding,
            "ranks": source.ranks,
            "json": source.json,
        });
        self.ask(&request, Duration::from_secs(120))
    }

    /// Hands over texts.
    pub(super) fn texts(&mut self, texts: &Texts) -> Result<(), Failure> {
        let request = json!({
            "do": "texts",
            "name": texts.name,
            "path": texts.path,
            "lengths": texts.lengths,
        });
        self.ask(&request, Duration::from_secs(60)).map(drop)
    }

    /// The ids of all texts.
    pub(super) fn ids(&mut self, texts: &Texts, limit: Duration) -> Result<Vec<u32>, Failure> {
        let path = texts.path.with_extension("ids");
        let request = json!({"do": "ids", "texts": texts.name, "path": path});
        self.ask(&request, limit)?;
        let bytes = std::fs::read(&path).map_err(|error| Failure::Failed(error.to_string()))?;
        let (ids, _) = bytes.as_chunks::<4>();
        Ok(ids.iter().map(|&id| u32::from_le_bytes(id)).collect())
    }

    /// The answer to "encode all": seconds of `wall` and `work`, and the number of `tokens`.
    pub(super) fn time(
        &mut self,
        texts: &Texts,
        batch: bool,
        limit: Duration,
    ) -> Result<Value, Failure> {
        let request = json!({"do": "time", "texts": texts.name, "batch": batch});
        self.ask(&request, limit)
    }

    fn ask(&mut self, request: &Value, limit: Duration) -> Result<Value, Failure> {
        let failed = |why: String| Failure::Failed(why);
        writeln!(self.requests, "{request}").map_err(|error| failed(error.to_string()))?;
        let line = match self.answers.recv_timeout(limit) {
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout) => {
                self.end();
                return Err(Failure::Cut(limit));
            }
            Err(RecvTimeoutError::Disconnected) => {
                let status = self
                    .child
                    .wait()
                    .map_err(|error| failed(error.to_string()))?;
                return Err(failed(format!("ended with {status}")));
            }
        };
        let answer: Value = serde_json::from_str(&line).map_err(|_| failed(line.clone()))?;
        match answer["error"].as_str() {
            Some(why) => Err(failed(why.lines().next().unwrap_or_default().to_owned())),
            None => Ok(answer),
        }
    }

    fn end(&mut self) {
        // A process that has ended already is as good.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Side {
    fn drop(&mut self) {
        self.end();
    }
}

/// The seconds of work in an answer of [`Side::time`].
pub(super) fn work(answer: &Value) -> f64 {
    answer["work"].as_f64().unwrap_or(f64::INFINITY)
}

/// The seconds on the wall in an answer.
pub(super) fn wall(answer: &Value) -> f64 {
    answer["wall"].as_f64().unwrap_or(f64::INFINITY)
}

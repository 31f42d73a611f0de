//! `cargo xtask verify`: what the project claims, checked, one line a claim.
//!
//! Each claim counts the cases that it really ran; a claim that ran none has failed.

mod analysis;
mod automata;
mod cases;
mod cases_files;
mod cases_pipeline;
mod cases_run;
mod core;
mod cuts;
mod decoding;
pub(crate) mod dfa;
mod eager;
mod engines;
mod fast_lexers;
mod fast_path;
mod fast_stages;
mod last_token;
mod lexers;
mod loaders;
pub(crate) mod memory;
mod models;
pub(crate) mod parallel;
mod peers;
pub(crate) mod pipelines;
mod properize;
mod specials;
mod streaming;
mod streams;
mod support;
mod time;
mod train_memory;
mod train_steps;
mod training;
mod undecided;
mod vocabularies;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use support::Corpus;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Run one file of claims only: `models`, `lexers`, ...
    #[arg(value_name = "CLAIMS", value_parser = clap::builder::PossibleValuesParser::new(GROUPS.map(|(name, _)| name)))]
    group: Option<String>,
    /// A sample that takes a few minutes (the default).
    #[arg(long, conflicts_with = "full")]
    quick: bool,
    /// Everything; takes up to half an hour.
    #[arg(long)]
    full: bool,
    /// Folder with `corpora/*.txt.gz` and `tokenizers/`; without it what needs them is skipped.
    #[arg(long, env = "BYTEPAIR_DATA")]
    data: Option<PathBuf>,
    /// Run only the claims whose line holds this text.
    #[arg(long)]
    only: Option<String>,
    /// Run nothing in a process of its own: this is one.
    #[arg(long, hide = true)]
    alone: bool,
}

/// Runs the claims of a file.
type Check = fn(&mut Claims);

/// The files of claims, in the order in which they are checked.
const GROUPS: [(&str, Check); 30] = [
    ("core", core::check),
    ("last_token", last_token::check),
    ("properize", properize::check),
    ("vocabularies", vocabularies::check),
    ("engines", engines::check),
    ("lexers", lexers::check),
    ("fast_lexers", fast_lexers::check),
    ("fast_stages", fast_stages::check),
    ("fast_path", fast_path::check),
    ("cuts", cuts::check),
    ("parallel", parallel::check),
    ("pipelines", pipelines::check),
    ("analysis", analysis::check),
    ("dfa", dfa::check),
    ("decoding", decoding::check),
    ("streams", streams::check),
    ("streaming", streaming::check),
    ("undecided", undecided::check),
    ("specials", specials::check),
    ("training", training::check),
    ("train_steps", train_steps::check),
    ("train_memory", train_memory::check),
    ("automata", automata::check),
    ("cases", cases::check),
    ("eager", eager::check),
    ("loaders", loaders::check),
    ("models", models::check),
    ("peers", peers::check),
    ("time", time::check),
    ("memory", memory::check),
];

pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    let start = Instant::now();
    let settings = Settings {
        full: arguments.full && !arguments.quick,
        data: arguments.data.clone(),
    };
    let corpora = match arguments.alone {
        true => Ok(Vec::new()),
        false => support::corpora(&settings),
    };
    let corpora = match corpora {
        Ok(corpora) => corpora,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    let mut claims = Claims {
        settings,
        corpora,
        only: arguments.only.clone(),
        alone: arguments.alone,
        run: 0,
        failed: 0,
        skipped: 0,
    };
    for (name, check) in GROUPS {
        if arguments.group.as_deref().is_none_or(|group| group == name) {
            check(&mut claims);
        }
    }
    println!(
        "{} claims hold, {} failed, {} skipped ({:.0} s)",
        claims.run - claims.failed,
        claims.failed,
        claims.skipped,
        start.elapsed().as_secs_f64()
    );
    match claims.failed == 0 && claims.run > 0 {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

/// What was asked for.
struct Settings {
    full: bool,
    data: Option<PathBuf>,
}

impl Settings {
    /// The first value in a quick run, the second in a full one.
    fn choose<T>(&self, quick: T, full: T) -> T {
        if self.full { full } else { quick }
    }
}

/// The number of cases that a check ran, and what else its line says.
struct Checked {
    cases: u64,
    note: String,
}

impl Checked {
    fn with_note(cases: u64, note: impl Into<String>) -> Self {
        let note = note.into();
        Self { cases, note }
    }
}

/// What a check found, or the first counterexample.
type Outcome = Result<Checked, String>;

/// Runs checks and prints a line for each.
struct Claims {
    settings: Settings,
    corpora: Vec<Corpus>,
    only: Option<String>,
    alone: bool,
    run: usize,
    failed: usize,
    skipped: usize,
}

impl Claims {
    /// Checks one claim.
    fn check(&mut self, claim: &str, check: impl FnOnce(&Settings, &[Corpus]) -> Outcome) {
        if self.is_left_out(claim) {
            return;
        }
        self.run += 1;
        let start = Instant::now();
        let outcome = support::catch(|| check(&self.settings, &self.corpora));
        let seconds = start.elapsed().as_secs_f64();
        match outcome.and_then(|outcome| outcome) {
            Ok(checked) if checked.cases == 0 => {
                self.failed += 1;
                println!("FAIL  {claim}: no case was run");
            }
            Ok(Checked { cases, note }) => {
                let cases = support::grouped(cases);
                let note = if note.is_empty() {
                    note
                } else {
                    format!("; {note}")
                };
                println!("ok    {claim}: {cases} cases ({seconds:.1} s){note}");
            }
            Err(counterexample) => {
                self.failed += 1;
                println!("FAIL  {claim} ({seconds:.1} s): {counterexample}");
            }
        }
    }

    /// Checks one claim in a process of its own, where nothing else has taken memory. It gets no
    /// corpora.
    fn check_alone(&mut self, claim: &str, check: impl FnOnce(&Settings) -> Outcome) {
        if self.alone {
            return self.check(claim, |settings, _| check(settings));
        }
        if self.is_left_out(claim) {
            return;
        }
        self.run += 1;
        let mode = self.settings.choose("--quick", "--full");
        let output = std::env::current_exe().and_then(|program| {
            let mut command = std::process::Command::new(program);
            command.args(["verify", mode, "--alone", "--only", claim]);
            command.output()
        });
        let output = output.map(|output| (output.status, output.stdout));
        let failure = match output {
            Ok((status, text)) => {
                let text = String::from_utf8_lossy(&text);
                let line = text.lines().find(|line| line.contains(claim));
                if let Some(line) = line {
                    println!("{line}");
                    self.failed += usize::from(!status.success());
                    return;
                }
                format!("no result, {status}")
            }
            Err(error) => error.to_string(),
        };
        self.failed += 1;
        println!("FAIL  {claim}: {failure}");
    }

    /// Checks one claim with the data folder, or skips it.
    fn check_data(
        &mut self,
        claim: &str,
        check: impl FnOnce(&Settings, &[Corpus], &Path) -> Outcome,
    ) {
        match self.settings.data.clone() {
            Some(data) => self.check(claim, |settings, corpora| check(settings, corpora, &data)),
            None => self.skip(claim, "no data folder (--data)"),
        }
    }

    /// Says that a claim is not checked, and why.
    fn skip(&mut self, claim: &str, reason: &str) {
        if !self.is_left_out(claim) {
            self.skipped += 1;
            println!("skip  {claim}: {reason}");
        }
    }

    fn is_left_out(&self, claim: &str) -> bool {
        let only = self.only.as_ref();
        only.is_some_and(|only| !claim.contains(only.as_str()))
    }
}

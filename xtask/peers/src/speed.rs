//! `speed`: ours beside every other tokenizer that can be had, in one run.
//!
//! Each tokenizer, ours too, lives in a process of its own, so that none shares an allocator or a cache
//! with another, and one that fails or takes too long takes no other with it. The processes are asked in
//! turn; the time is taken inside them. Ids are compared before anything is timed.

mod child;
mod collide;
pub(crate) mod files;
mod load;
pub(crate) mod python;
mod race;
mod report;
mod short;
mod side;
mod throughput;
mod worst;

use std::path::PathBuf;
use std::time::Duration;

pub(crate) use self::child::run as child;
use self::side::Start;
use crate::{DataFolder, Error, corpora, rival};

#[derive(Clone, clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    data: DataFolder,
    /// The peers to time; without it, all that were built, and all in Python.
    #[arg(long, value_delimiter = ',')]
    peers: Option<Vec<String>>,
    /// The vocabularies.
    #[arg(long, value_delimiter = ',', default_values = ["o200k_base", "cl100k_base"])]
    vocabulary: Vec<String>,
    /// The corpora.
    #[arg(long, value_delimiter = ',', default_values = ["english", "code", "chinese", "multilingual", "structured"])]
    corpus: Vec<String>,
    /// Bytes taken of each corpus at most.
    #[arg(long, default_value_t = 8_000_000)]
    bytes: usize,
    /// Rounds; in each every tokenizer runs once.
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// Seconds that a peer may take for one measurement before it is cut, and in all for one corpus.
    #[arg(long, default_value_t = 20)]
    limit: u64,
    /// The tables to make.
    #[arg(long, value_delimiter = ',', value_enum, default_values_t = Table::ALL)]
    table: Vec<Table>,
    /// A smoke run of a minute: little text, two rounds, one vocabulary.
    #[arg(long)]
    quick: bool,
    /// Write the results to this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the tables as Markdown to this file.
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
}

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Table {
    /// Cold, half warm and warm.
    Text,
    /// Documents and messages, on one thread and on two.
    Short,
    /// The worst inputs.
    Worst,
    /// Time until ready, first encode, memory.
    Load,
}

impl Table {
    const ALL: [Self; 4] = [Self::Text, Self::Short, Self::Worst, Self::Load];
}

impl Arguments {
    /// What `--quick` makes of them.
    fn quick(&self) -> Self {
        let mut quick = self.clone();
        quick.vocabulary.truncate(1);
        quick.corpus.truncate(2);
        quick.bytes = quick.bytes.min(400_000);
        quick.rounds = quick.rounds.min(2);
        quick.limit = quick.limit.min(5);
        quick
    }

    fn limit(&self) -> Duration {
        Duration::from_secs(self.limit)
    }
}

/// Prints the tables. False if our own tokenizer failed.
pub(crate) fn run(arguments: &Arguments) -> Result<bool, Error> {
    let quick = arguments.quick.then(|| arguments.quick());
    let arguments = quick.as_ref().unwrap_or(arguments);
    let starts = starts(arguments)?;
    let cores = cores();
    let core = cores.last().ok_or("no processor")?;
    let names: Vec<&str> = arguments.corpus.iter().map(String::as_str).collect();
    let corpora = corpora::named(&names, arguments.data.data.as_deref(), arguments.bytes)?;
    let mut report = report::Report::new();
    for encoding in &arguments.vocabulary {
        let source = files::source(encoding)?;
        let one = race::Track {
            arguments,
            starts: &starts,
            cores: std::slice::from_ref(core),
            source: &source,
        };
        for table in &arguments.table {
            match table {
                Table::Text => throughput::run(&one, &corpora, &mut report)?,
                Table::Short => {
                    short::run(&one, &corpora, &mut report)?;
                    match cores.last_chunk::<2>() {
                        Some(cores) => {
                            short::threads(&race::Track { cores, ..one }, &corpora, &mut report)?
                        }
                        None => println!("two threads: not measured, with one processor"),
                    }
                }
                Table::Worst => worst::run(&one, &mut report)?,
                Table::Load => load::run(&one, &mut report)?,
            }
        }
    }
    report.write(arguments.json.as_deref(), arguments.markdown.as_deref())?;
    Ok(true)
}

/// Ours first, then the chosen peers that can be started.
fn starts(arguments: &Arguments) -> Result<Vec<Start>, Error> {
    let program = std::env::current_exe()?;
    let chosen = |name: &str| {
        name == rival::OURS
            || arguments
                .peers
                .as_ref()
                .is_none_or(|peers| peers.iter().any(|peer| peer == name))
    };
    let mut starts = Vec::new();
    for entry in rival::ALL.iter().filter(|entry| chosen(entry.name)) {
        starts.push(Start {
            name: entry.name.to_owned(),
            call: entry.call.to_owned(),
            program: program.clone().into(),
            arguments: vec!["speed-child".into(), entry.name.into()],
        });
    }
    for peer in python::PEERS.iter().filter(|peer| chosen(peer.name)) {
        match peer.start() {
            Ok(start) => starts.push(start),
            Err(error) => println!("{}: left out: {error}", peer.name),
        }
    }
    for name in arguments.peers.iter().flatten() {
        if !starts.iter().any(|start| start.name == *name) {
            println!("{name}: not among the peers of this build");
        }
    }
    Ok(starts)
}

/// The processors that this process may use.
pub(crate) fn cores() -> Vec<usize> {
    #[cfg(target_os = "linux")]
    if let Ok(set) = rustix::thread::sched_getaffinity(None) {
        let all = 0..rustix::thread::CpuSet::MAX_CPU;
        return all.filter(|&core| set.is_set(core)).collect();
    }
    (0..std::thread::available_parallelism().map_or(1, usize::from)).collect()
}

/// Keeps this process on some processors, where the system lets it (Linux).
pub(crate) fn pin(cores: &[usize]) -> Result<(), Error> {
    #[cfg(target_os = "linux")]
    if !cores.is_empty() {
        let mut set = rustix::thread::CpuSet::new();
        cores.iter().for_each(|&core| set.set(core));
        rustix::thread::sched_setaffinity(None, &set)?;
    }
    Ok(())
}

/// The time that this process has worked, on all of its threads.
pub(crate) fn work() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(
        u64::try_from(time.tv_sec).unwrap_or(0),
        u32::try_from(time.tv_nsec).unwrap_or(0),
    )
}

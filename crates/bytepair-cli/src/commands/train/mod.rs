//! `train`: words are counted, merges learned, and the vocabulary written.

mod checkpoint;
mod counting;
mod progress;
mod report;
mod save;
mod start;
#[cfg(test)]
mod tests;
mod texts;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use bpe_train::{Alphabet, Ties, TrainOptions, Training, WordCounts, train, train_with};
use serde_json::json;

use self::checkpoint::Checkpoint;
use self::counting::count;
use self::progress::{Phases, Progress};
use self::start::Start;
use crate::args::{AlphabetArg, TiesArg, TrainArgs};
use crate::error::CliError;
use crate::input::Input;
use crate::output::write_line;
use crate::pipeline::Session;

pub(crate) fn run(args: &TrainArgs, session: &mut Session<'_>) -> Result<(), CliError> {
    let format = save::Format::of(&args.out, args.alphabet)?;
    let start = Start::new(args)?;
    let size = start.size(args)?;
    let interval = Duration::try_from_secs_f64(args.checkpoint_interval);
    let interval =
        interval.map_err(|error| CliError::Usage(format!("--checkpoint-interval: {error}")))?;
    start.lexer()?;
    let options = options(args, &start, size);
    // What no text can be trained with is known before it is counted.
    let untrained = train(&WordCounts::new(), &options);
    let untrained = untrained.map_err(|error| CliError::Usage(error.to_string()))?;
    save::check(
        &format,
        &untrained,
        &start.all_specials(args),
        &start.pattern,
    )?;
    save::prepare(&format, &args.out)?;
    if let Some(path) = &args.save_counts {
        save::try_writing(path)?;
    }
    let mut checkpoint = match &args.checkpoint {
        Some(folder) => Some(Checkpoint::open(folder, interval, identity(args, &start))?),
        None => None,
    };
    save::warn_about_losses(args, &format, &start, session.warn);
    let progress = Progress::new(session.is_watched, args.progress);
    let mut phases = Phases::default();

    let counted = phases.run("counting", || {
        count(args, &start, &progress, &mut checkpoint, session)
    });
    let (counts, held_out) = counted?;
    report::warn_about_words(&counts, session.warn);
    if args.hold_out.is_some() && held_out.is_empty() {
        (session.warn)("nothing is held out: the text has too few blocks");
    }

    progress.start_phase();
    let training = phases.run("merging", || {
        let first = start.old.as_ref().map_or(0, |old| old.merges.len());
        learn(
            &counts,
            &held_out,
            options,
            size,
            first,
            &progress,
            &mut checkpoint,
        )
    })?;
    progress.start_phase();
    report::warn_about_merges(&training, size, session.warn);

    let dictionary = phases.run("writing", || {
        let dictionary = start.dictionary(args, &training)?;
        let specials = start.specials(args, &dictionary);
        save::save(&format, &args.out, &dictionary, &specials, &start.pattern)?;
        Ok::<_, CliError>(dictionary)
    })?;
    let mut lines = phases.run("report", || {
        report::lines(&counts, &held_out, &training, &dictionary)
    })?;
    lines.extend(phases.lines());
    lines.extend(checkpoint.as_ref().map(Checkpoint::line));
    lines.push(format!("written: {}", args.out.display()));
    if let Some(checkpoint) = checkpoint {
        checkpoint.clear()?;
    }
    write_line(session.stdout, lines.join("\n"))
}

/// All that the result depends on, for the checkpoint. Files are told by their names, sizes and times.
fn identity(args: &TrainArgs, start: &Start) -> serde_json::Value {
    let file = |path: &Path| {
        let data = path.metadata().ok();
        let time = data.as_ref().and_then(|data| data.modified().ok());
        let time = time.and_then(|time| time.duration_since(SystemTime::UNIX_EPOCH).ok());
        json!({
            "name": path.display().to_string(),
            "bytes": data.map(|data| data.len()),
            "changed": time.and_then(|time| u64::try_from(time.as_nanos()).ok()),
        })
    };
    // Of a folder the files that are read.
    let vocabulary = |path: &PathBuf| match path.is_dir() {
        true => ["tokenizer.json", "vocab.json", "merges.txt"]
            .iter()
            .map(|name| file(&path.join(name)))
            .collect(),
        false => file(path),
    };
    let inputs = Input::all(&args.files);
    let inputs = inputs.iter().map(|input| match input {
        Input::Stdin => json!("-"),
        Input::File(path) => file(path),
    });
    json!({
        "pattern": start.pattern.as_str(),
        "files": inputs.collect::<Vec<_>>(),
        "counts": args.counts.iter().map(|path| file(path)).collect::<Vec<_>>(),
        "jsonl": args.jsonl,
        "vocab_size": args.vocab_size,
        "special_tokens": args.special_token,
        "seed_tokens": args.seed_token,
        "continue_from": args.continue_from.as_ref().map(vocabulary),
        "alphabet": format!("{:?} {}", args.alphabet, args.coverage),
        "ties": format!("{:?}", args.ties),
        "min_frequency": args.min_frequency,
        "longest_token": args.longest_token,
        "hold_out": args.hold_out,
    })
}

fn options(args: &TrainArgs, start: &Start, size: usize) -> TrainOptions {
    let options = TrainOptions::new(size)
        .min_frequency(args.min_frequency)
        .longest_token(args.longest_token.unwrap_or(usize::MAX))
        .memory_limit(args.memory_limit.unwrap_or(usize::MAX))
        .seed_tokens(args.seed_token.iter().cloned())
        .alphabet(match args.alphabet {
            AlphabetArg::Bytes => Alphabet::Bytes,
            AlphabetArg::Characters => Alphabet::Characters {
                coverage: args.coverage,
            },
        })
        .ties(match args.ties {
            TiesArg::Lexicographic => Ties::Lexicographic,
            TiesArg::Huggingface => Ties::HuggingFace,
        });
    match &start.old {
        Some(old) => options.first_merges(old.merges.iter().cloned()),
        None => options,
    }
}

/// Learns the merges, after those of the checkpoint.
fn learn(
    counts: &WordCounts,
    held_out: &WordCounts,
    mut options: TrainOptions,
    size: usize,
    first: usize,
    progress: &Progress,
    checkpoint: &mut Option<Checkpoint>,
) -> Result<Training, CliError> {
    let saved = match checkpoint {
        Some(checkpoint) => checkpoint.merges()?,
        None => Vec::new(),
    };
    let before = saved.len();
    // They begin with the merges of the vocabulary that is continued from: where these are not all there
    // yet, all are to be made again.
    if before > first {
        options = options.first_merges(saved);
    }
    let count_bytes = counts.memory_bytes();
    let mut failed = None;
    let training = train_with(counts, &options, |so_far| {
        let merges = so_far.merges().len();
        let left = size.saturating_sub(so_far.vocabulary_size());
        progress.merging(merges, before, merges + left);
        let due = checkpoint
            .as_mut()
            .filter(|due| merges > before && due.is_due(count_bytes));
        let saved = due.map_or(Ok(()), |checkpoint| {
            checkpoint.save_merges(so_far, counts, held_out)
        });
        match saved {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                failed = Some(error);
                ControlFlow::Break(())
            }
        }
    });
    match failed {
        Some(error) => Err(error),
        None => training.map_err(|error| CliError::Input(error.to_string())),
    }
}

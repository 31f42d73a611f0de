//! The words of all inputs, counted from where a checkpoint is.

use std::fs::File;
use std::io::BufReader;
use std::sync::mpsc::channel;

use bpe_lexers::{Spanner, SpecialMatcher};
use bpe_train::{Counter, TrainOptions, WordCounts, train};

use super::checkpoint::{Checkpoint, Phase};
use super::progress::Progress;
use super::save;
use super::start::Start;
use super::texts::{self, Position, Texts};
use crate::args::TrainArgs;
use crate::error::CliError;
use crate::input::{Block, Input};
use crate::pipeline::Session;

/// A longer word in a file of counts is a sign that the file is something else.
const LONGEST_WORD: usize = 1 << 30;

/// Counts the words of the inputs, and adds those that were counted before. Returns those that are
/// learned from, and those that are held out.
pub(super) fn count(
    args: &TrainArgs,
    start: &Start,
    progress: &Progress,
    checkpoint: &mut Option<Checkpoint>,
    session: &mut Session<'_>,
) -> Result<(WordCounts, WordCounts), CliError> {
    let mut spanner = Spanner::new(vec![start.lexer()?]);
    let specials = SpecialMatcher::new(start.all_specials(args));
    let specials =
        specials.map_err(|error| CliError::Usage(format!("--special-token: {error}")))?;
    let mut counter =
        Counter::new(spanner.clone(), specials.clone()).threads(args.threads.number());
    if let Some(limit) = args.memory_limit {
        let folder = std::env::temp_dir();
        let folder = args.checkpoint.as_deref().unwrap_or(&folder);
        counter = counter.memory_limit(limit, folder);
    }
    let mut held_out = WordCounts::new();

    let mut position = Position::default();
    match checkpoint.as_ref().map(Checkpoint::phase) {
        None | Some(Phase::New) => {
            for path in &args.counts {
                let name = path.display().to_string();
                let file = File::open(path).map_err(|error| CliError::reading(&name, error))?;
                let added = counter.add_file(BufReader::new(file), LONGEST_WORD);
                added.map_err(|error| CliError::from(error).in_input(&name))?;
            }
        }
        Some(phase) => {
            let is_counted = *phase == Phase::Merging;
            if let Phase::Counting(place) = phase {
                position = *place;
            }
            if let Some(checkpoint) = checkpoint {
                let [counts, held] = checkpoint.counts()?;
                counter.add_file(counts, LONGEST_WORD)?;
                held_out.add_file(held, LONGEST_WORD)?;
            }
            if is_counted {
                save_counts(args, &mut counter)?;
                return Ok((counter.into_counts()?, held_out));
            }
        }
    }

    let inputs = match args.counts.is_empty() || !args.files.is_empty() {
        true => Input::all(&args.files),
        false => Vec::new(),
    };
    let nothing = train(&WordCounts::new(), &TrainOptions::new(256));
    let nothing = nothing.and_then(|training| training.dictionary(0));
    let nothing = nothing.map_err(|error| CliError::Vocabulary(error.to_string()))?;
    // Which ids special tokens have does not matter to where a text is cut.
    let texts = start.all_specials(args).into_iter().map(str::to_owned);
    let numbered: Vec<_> = texts.zip(256..).collect();
    let bytes = save::tokenizer(&nothing, &numbered, &start.pattern)?;
    let field = args.jsonl.as_deref();
    let cutter = texts::cutter(field, &bytes);
    let (sender, warnings) = channel();
    let mut texts = Texts::new(
        &inputs,
        session.stdin,
        cutter.as_ref().map_err(String::as_str),
        session.block_bytes,
        sender,
        progress,
        position,
    );
    loop {
        let saved = texts.position();
        let bytes = counter.memory_bytes();
        let is_due = || checkpoint.as_ref().is_some_and(|due| due.is_due(bytes));
        let next = || {
            while !(texts.position() != saved && is_due())
                && let Some(next) = texts.next_block()?
            {
                let number = texts.position().blocks;
                if args
                    .hold_out
                    .is_none_or(|every| !number.is_multiple_of(every))
                {
                    return Ok(Some(next));
                }
                texts::texts_of(field, &next, &mut |text| {
                    Ok(held_out.add_text(&mut spanner, &specials, text)?)
                })?;
            }
            Ok(None)
        };
        let texts_of = |block: &(&Input, Block),
                        add: &mut dyn FnMut(&[u8]) -> Result<(), CliError>| {
            texts::texts_of(field, block, add)
        };
        let counted = counter.add_blocks(next, texts_of);
        warnings
            .try_iter()
            .for_each(|warning| (session.warn)(&warning));
        counted?;
        let phase = match texts.is_done() {
            true => Phase::Merging,
            false => Phase::Counting(texts.position()),
        };
        let bytes = counter.memory_bytes();
        if let Some(checkpoint) = checkpoint
            && checkpoint.is_due(bytes)
        {
            checkpoint.save_counts(phase, |is_held_out, output| match is_held_out {
                true => held_out.write_to(output),
                false => counter.write_to(output).map_err(std::io::Error::other),
            })?;
        }
        if texts.is_done() {
            break;
        }
    }
    save_counts(args, &mut counter)?;
    Ok((counter.into_counts()?, held_out))
}

/// Saves the counts where that is asked for, whole or not at all.
fn save_counts(args: &TrainArgs, counter: &mut Counter) -> Result<(), CliError> {
    let Some(path) = &args.save_counts else {
        return Ok(());
    };
    save::replace(path, |file| {
        let written = counter.write_to(file);
        written.map_err(|error| CliError::from(error).in_input(&path.display().to_string()))
    })
}

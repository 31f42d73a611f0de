//! `train`: words are counted, merges learned, and the vocabulary written.

use std::fs::File;
use std::io::{BufReader, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Instant;

use bpe_core::{Dictionary, gpt2, tiktoken};
use bpe_lexers::{Engine, Spanner, SpecialMatcher};
use bpe_train::{StopReason, Ties, TrainOptions, Training, WordCounts, train};
use bytepair::{Pattern, Specials, Tokenizer, TokenizerBuilder};

use crate::args::{TiesArg, TrainArgs};
use crate::cuts::Cutter;
use crate::error::CliError;
use crate::input::{Block, Input};
use crate::load;
use crate::output::write_line;
use crate::pipeline::Session;

/// A longer word in a file of counts is a sign that the file is something else.
const LONGEST_WORD: usize = 1 << 30;

pub(crate) fn run(args: &TrainArgs, session: &mut Session<'_>) -> Result<(), CliError> {
    let format = Format::of(&args.out)?;
    let size = (args.vocab_size as usize).checked_sub(args.special_token.len());
    let size = size.filter(|&size| size >= 256).ok_or_else(|| {
        let least = 256 + args.special_token.len();
        CliError::Usage(format!(
            "--vocab-size is at least {least}: bytes and special tokens"
        ))
    })?;
    let pattern = load::pattern(&args.pattern)?;

    let start = Instant::now();
    let counts = count(args, &pattern, session)?;
    if let Some(path) = &args.save_counts {
        let file = File::create(path).map_err(|error| cannot_write(path, error))?;
        let written = counts.write_to(BufWriter::new(file));
        written.map_err(|error| cannot_write(path, error))?;
    }
    let counted = start.elapsed();

    let start = Instant::now();
    let options = TrainOptions::new(size)
        .min_frequency(args.min_frequency)
        .longest_token(args.longest_token.unwrap_or(usize::MAX))
        .ties(match args.ties {
            TiesArg::Lexicographic => Ties::Lexicographic,
            TiesArg::Huggingface => Ties::HuggingFace,
        });
    let training = train(&counts, &options).map_err(|error| CliError::Input(error.to_string()))?;
    let trained = start.elapsed();
    if training.stopped() == StopReason::NoFrequentPair {
        let tokens = 256 + training.merges().len() + args.special_token.len();
        (session.warn)(&format!(
            "no pair is frequent enough any more: {tokens} tokens instead of {}",
            args.vocab_size
        ));
    }
    save(args, &format, &training, pattern)?;

    let words = counts
        .iter()
        .map(|(_, count)| u128::from(count))
        .sum::<u128>();
    let report = format!(
        "words: {words}, {} distinct ({counted:.2?})\nmerges: {} ({trained:.2?})\nwritten: {}",
        counts.len(),
        training.merges().len(),
        args.out.display()
    );
    write_line(session.stdout, report)
}

/// Counts the words of the inputs, and adds those that were counted before.
fn count(
    args: &TrainArgs,
    pattern: &Pattern,
    session: &mut Session<'_>,
) -> Result<WordCounts, CliError> {
    let mut total = WordCounts::new();
    for path in &args.counts {
        let name = path.display().to_string();
        let file = File::open(path).map_err(|error| CliError::reading(&name, error))?;
        let added = total.add_file(BufReader::new(file), LONGEST_WORD);
        added.map_err(|error| CliError::Input(format!("{name}: {error}")))?;
    }
    if !args.counts.is_empty() && args.files.files.is_empty() {
        return Ok(total);
    }
    let lexer = pattern.lexer(Engine::Auto);
    let lexer = lexer.map_err(|error| CliError::Usage(format!("--pattern: {error}")))?;
    let spanner = Spanner::new(vec![lexer]);
    let specials = SpecialMatcher::new(&args.special_token);
    let specials =
        specials.map_err(|error| CliError::Usage(format!("--special-token: {error}")))?;
    let tokenizer = bytes_alone(args, pattern)?;
    let cutter = Cutter::new(&[&tokenizer]);
    // Each thread takes counts and a spanner, and puts them back after its block.
    let idle: Mutex<Vec<(WordCounts, Spanner)>> = Mutex::default();
    let lock = || {
        idle.lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    };
    for input in &Input::all(&args.files.files) {
        let work = |block: &Block| {
            let taken = lock().pop();
            let (mut counts, mut spanner) =
                taken.unwrap_or_else(|| (WordCounts::new(), spanner.clone()));
            let result = counts.add_text(&mut spanner, &specials, &block.bytes);
            lock().push((counts, spanner));
            result.map_err(|error| CliError::Input(format!("{}: {error}", input.name())))
        };
        session.for_each_block(input, &cutter, args.threads.number(), work, |_, ()| Ok(()))?;
    }
    for (counts, _) in lock().drain(..) {
        let added = match total.is_empty() {
            true => {
                total = counts;
                Ok(())
            }
            false => total.add_all(&counts),
        };
        added.map_err(|error| CliError::Input(error.to_string()))?;
    }
    Ok(total)
}

/// The tokenizer before anything is learned: it knows where a text can be cut.
fn bytes_alone(args: &TrainArgs, pattern: &Pattern) -> Result<Tokenizer, CliError> {
    let nothing = train(&WordCounts::new(), &TrainOptions::new(256));
    let dictionary = nothing.and_then(|training| training.dictionary(0));
    let dictionary = dictionary.map_err(|error| CliError::Vocabulary(error.to_string()))?;
    tokenizer(args, &dictionary, pattern.clone())
}

fn tokenizer(
    args: &TrainArgs,
    dictionary: &Dictionary,
    pattern: Pattern,
) -> Result<Tokenizer, CliError> {
    let first = dictionary.vocabulary().len() as u32;
    let specials = args.special_token.iter().cloned().zip(first..);
    let builder = TokenizerBuilder::new(dictionary)
        .pattern(pattern)
        .special_tokens(specials)
        .specials(Specials::AllowAll);
    let built = builder.build();
    built.map_err(|error| CliError::Usage(error.to_string()))
}

/// What is written.
enum Format {
    TokenizerJson,
    Tiktoken,
    Gpt2,
}

impl Format {
    fn of(path: &Path) -> Result<Self, CliError> {
        let end = path.extension().and_then(|end| end.to_str());
        match end {
            Some("json") => Ok(Self::TokenizerJson),
            Some("tiktoken") => Ok(Self::Tiktoken),
            None => Ok(Self::Gpt2),
            Some(end) => Err(CliError::Usage(format!(
                "--out ends in .json or .tiktoken, or is a folder: there is no format .{end}"
            ))),
        }
    }
}

fn save(
    args: &TrainArgs,
    format: &Format,
    training: &Training,
    pattern: Pattern,
) -> Result<(), CliError> {
    let dictionary = training.dictionary(0);
    let dictionary = dictionary.map_err(|error| CliError::Vocabulary(error.to_string()))?;
    let write = |path: PathBuf, text: String| {
        std::fs::write(&path, text).map_err(|error| cannot_write(&path, error))
    };
    match format {
        Format::TokenizerJson => {
            let text = tokenizer(args, &dictionary, pattern)?.to_tokenizer_json();
            let text = text.map_err(|error| CliError::Vocabulary(error.to_string()))?;
            write(args.out.clone(), text)
        }
        Format::Tiktoken => write(args.out.clone(), tiktoken::write(dictionary.vocabulary())),
        Format::Gpt2 => {
            let created = std::fs::create_dir_all(&args.out);
            created.map_err(|error| cannot_write(&args.out, error))?;
            write(args.out.join("vocab.json"), gpt2::write_vocab(&dictionary))?;
            write(args.out.join("merges.txt"), gpt2::write_merges(&dictionary))
        }
    }
}

fn cannot_write(path: &Path, error: std::io::Error) -> CliError {
    CliError::Input(format!("cannot write {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::testing::run_with;
    use bytepair::ReadLimits;

    const TEXT: &str = "the cat and the hat, and then the bat: 2026 naïve 龘龘龘\n\n  the end<|e|>";

    fn trained(folder: &Path, name: &str, more: &[&str], text: &str, block: usize) -> PathBuf {
        let out = folder.join(name);
        let out_text = out.display().to_string();
        let arguments = [
            "train",
            "--vocab-size",
            "280",
            "--special-token",
            "<|e|>",
            "--out",
        ];
        let arguments = [&arguments[..], &[&out_text], more].concat();
        let (_, result) = run_with(&arguments, text.as_bytes(), block);
        result.expect("trains");
        out
    }

    #[test]
    fn the_three_formats_load_and_give_the_same_ids() {
        let folder = tempfile::tempdir().expect("a folder");
        let text = TEXT.repeat(4);
        let limits = ReadLimits::default();
        let read = |path: &Path| std::fs::read(path).expect("written");
        let json = trained(folder.path(), "t.json", &[], &text, 1 << 20);
        let json = Tokenizer::from_tokenizer_json(&read(&json), &limits).expect("loads");
        let ranks = trained(folder.path(), "t.tiktoken", &[], &text, 1 << 20);
        let none: [(&str, u32); 0] = [];
        let ranks = Tokenizer::from_tiktoken(&read(&ranks), Pattern::o200k(), none, &limits);
        let gpt2 = trained(folder.path(), "gpt2", &[], &text, 1 << 20);
        let gpt2 = Tokenizer::from_gpt2_files(
            &read(&gpt2.join("vocab.json")),
            &read(&gpt2.join("merges.txt")),
            Pattern::o200k(),
            none,
            &limits,
        );
        assert_eq!(json.special_tokens().collect::<Vec<_>>(), [("<|e|>", 279)]);
        let plain = json.with_specials(Specials::AsText).expect("as text");
        let expected = plain.encode(&text).expect("no limit");
        assert!(expected.len() < text.len() / 2);
        assert_eq!(
            ranks.expect("loads").encode(&text).ok(),
            Some(expected.clone())
        );
        assert_eq!(gpt2.expect("loads").encode(&text).ok(), Some(expected));
    }

    #[test]
    fn threads_blocks_and_counts_that_were_saved_change_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let saved = ["a.counts", "b.counts"].map(|name| folder.path().join(name));
        let saved = saved.map(|path| path.display().to_string());
        let whole = trained(folder.path(), "whole.json", &[], &TEXT.repeat(9), 1 << 20);
        let expected = std::fs::read(&whole).expect("written");
        for (threads, block) in [("1", 7), ("3", 7), ("3", 50)] {
            let more = ["--threads", threads];
            let out = trained(folder.path(), "blocks.json", &more, &TEXT.repeat(9), block);
            assert_eq!(std::fs::read(out).expect("written"), expected);
        }
        for (path, repeats) in saved.iter().zip([4, 5]) {
            let more = ["--save-counts", path];
            trained(
                folder.path(),
                "part.json",
                &more,
                &TEXT.repeat(repeats),
                100,
            );
        }
        let more = ["--counts", &saved[1], "--counts", &saved[0]];
        let out = trained(folder.path(), "sum.json", &more, "", 100);
        assert_eq!(std::fs::read(out).expect("written"), expected);
    }

    #[test]
    fn what_cannot_be_asked_for_is_a_usage_error() {
        for (arguments, message) in [
            (&["--out", "x.txt"][..], "no format .txt"),
            (&["--out", "x.json", "--vocab-size", "255"], "at least 256"),
            (
                &["--out", "x.json", "--pattern", "cl100"],
                "no pattern named",
            ),
            (&["--out", "x.json", "--pattern", "("], "--pattern"),
        ] {
            let (_, result) = run_with(&[&["train"], arguments].concat(), b"text", 100);
            let error = result.expect_err("usage");
            assert_eq!(error.exit_status(), 2);
            assert!(error.message().is_some_and(|text| text.contains(message)));
        }
    }
}

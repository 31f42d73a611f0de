//! `train`: words are counted, merges learned, and the vocabulary written.

mod checkpoint;
mod progress;
mod report;
mod save;
mod texts;

use std::fs::File;
use std::io::{BufReader, BufWriter};
use std::ops::ControlFlow;
use std::sync::mpsc::channel;
use std::time::Duration;

use bpe_core::{CanonicalForm, Dictionary};
use bpe_lexers::{Engine, Spanner, SpecialMatcher};
use bpe_train::{Counter, Ties, TrainOptions, Training, WordCounts, train, train_with};
use bytepair::{Pattern, TokenId};
use serde_json::json;

use self::checkpoint::{Checkpoint, Phase, cannot_write};
use self::progress::{Phases, Progress};
use self::texts::{Position, Texts};
use crate::args::{SpecialIds, TiesArg, TrainArgs};
use crate::error::CliError;
use crate::input::{Block, Input};
use crate::load::{self, Named};
use crate::output::write_line;
use crate::pipeline::Session;

/// A longer word in a file of counts is a sign that the file is something else.
const LONGEST_WORD: usize = 1 << 30;

pub(crate) fn run(args: &TrainArgs, session: &mut Session<'_>) -> Result<(), CliError> {
    let format = save::Format::of(&args.out)?;
    let start = Start::new(args)?;
    let size = start.size(args)?;
    let interval = Duration::try_from_secs_f64(args.checkpoint_interval);
    let interval =
        interval.map_err(|error| CliError::Usage(format!("--checkpoint-interval: {error}")))?;
    let mut checkpoint = match &args.checkpoint {
        Some(folder) => Some(Checkpoint::open(folder, interval, what(args, &start))?),
        None => None,
    };
    let progress = Progress::new(session.is_watched, args.progress);
    let mut phases = Phases::default();

    let counted = phases.run("counting", || {
        count(args, &start, &progress, &mut checkpoint, session)
    });
    let (counts, held_out) = counted?;
    report::warn_about_words(&counts, session.warn);

    progress.start_phase();
    let training = phases.run("merging", || {
        let options = options(args, &start, size);
        learn(&counts, options, size, &progress, &mut checkpoint)
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
    lines.push(format!("written: {}", args.out.display()));
    if let Some(checkpoint) = checkpoint {
        checkpoint.clear()?;
    }
    write_line(session.stdout, lines.join("\n"))
}

/// What is there before anything is counted.
struct Start {
    pattern: Pattern,
    /// The vocabulary that is continued from.
    old: Option<Old>,
}

struct Old {
    dictionary: Dictionary,
    merges: Vec<checkpoint::Merge>,
    specials: Vec<(String, TokenId)>,
}

impl Start {
    fn new(args: &TrainArgs) -> Result<Self, CliError> {
        let pattern = args.pattern.as_deref().map(load::pattern).transpose()?;
        let Some(path) = &args.continue_from else {
            return Ok(Self {
                pattern: pattern.unwrap_or_else(Pattern::o200k),
                old: None,
            });
        };
        if args.special_ids == SpecialIds::First {
            return Err(CliError::Usage(
                "--special-ids first does not go with --continue-from, whose ids stay".to_owned(),
            ));
        }
        let dictionary = load::dictionary(path, None)?;
        let name = path.display();
        let is_json = path.extension().is_some_and(|end| end == "json")
            || path.join("tokenizer.json").exists();
        let (pattern, specials) = if is_json {
            let word = path.display().to_string();
            let tokenizer = Named::by_word(&word, &crate::args::SpecialArgs::default())?.tokenizer;
            let specials = tokenizer.special_tokens();
            let specials = specials.map(|(text, id)| (text.to_owned(), id)).collect();
            let pattern = match (pattern, tokenizer.patterns()) {
                (Some(pattern), _) => pattern,
                (None, [pattern]) => pattern.clone(),
                (None, patterns) => {
                    return Err(CliError::Usage(format!(
                        "{name} has {} patterns: say with --pattern where words end",
                        patterns.len()
                    )));
                }
            };
            (pattern, specials)
        } else {
            let missing = format!("{name} does not say its pattern: name it with --pattern");
            (pattern.ok_or(CliError::Usage(missing))?, Vec::new())
        };
        let canonical = CanonicalForm::new(&dictionary);
        let mut rules: Vec<_> = canonical.rules().collect();
        rules.sort_by_key(|rule| rule.priority);
        let bytes = |id| dictionary.vocabulary().token_bytes(id).unwrap_or_default();
        let merges = rules
            .iter()
            .map(|rule| (bytes(rule.left).to_vec(), bytes(rule.right).to_vec()));
        Ok(Self {
            pattern,
            old: Some(Old {
                merges: merges.collect(),
                specials,
                dictionary,
            }),
        })
    }

    /// The size of the alphabet and all merges, with which the vocabulary has the size asked for.
    fn size(&self, args: &TrainArgs) -> Result<usize, CliError> {
        let mut others = args.special_token.len();
        let mut least = 256;
        if let Some(old) = &self.old {
            // Tokens of no merge, which stay, and special tokens.
            let tokens = old.dictionary.vocabulary().len();
            others += tokens.saturating_sub(256 + old.merges.len()) + old.specials.len();
            least += old.merges.len();
        }
        let size = (args.vocab_size as usize).checked_sub(others);
        size.filter(|&size| size >= least).ok_or_else(|| {
            CliError::Usage(format!(
                "--vocab-size is at least {}: bytes, merges to begin with, and special tokens",
                least + others
            ))
        })
    }

    fn dictionary(&self, args: &TrainArgs, training: &Training) -> Result<Dictionary, CliError> {
        let dictionary = match &self.old {
            Some(old) => {
                let last = old.specials.iter().map(|special| special.1);
                let last = last.chain(old.dictionary.vocabulary().max_id()).max();
                let first = last.map_or(0, |last| last.saturating_add(1));
                training.extended(&old.dictionary, first)
            }
            None => training.dictionary(match args.special_ids {
                SpecialIds::First => args.special_token.len() as TokenId,
                SpecialIds::Last => 0,
            }),
        };
        dictionary.map_err(|error| CliError::Vocabulary(error.to_string()))
    }

    /// The special tokens with their ids.
    fn specials(&self, args: &TrainArgs, dictionary: &Dictionary) -> Vec<(String, TokenId)> {
        let mut specials = self
            .old
            .as_ref()
            .map_or_else(Vec::new, |old| old.specials.clone());
        let last = specials.iter().map(|special| special.1);
        let last = last.chain(dictionary.vocabulary().max_id()).max();
        let first = match args.special_ids {
            SpecialIds::First => 0,
            SpecialIds::Last => last.map_or(0, |last| last.saturating_add(1)),
        };
        specials.extend(args.special_token.iter().cloned().zip(first..));
        specials
    }
}

/// All that the result depends on, for the checkpoint.
fn what(args: &TrainArgs, start: &Start) -> serde_json::Value {
    let inputs = Input::all(&args.files);
    let paths = args.counts.iter().map(|path| path.display().to_string());
    json!({
        "pattern": start.pattern.as_str(),
        "files": inputs.iter().map(Input::name).collect::<Vec<_>>(),
        "counts": paths.collect::<Vec<_>>(),
        "jsonl": args.jsonl,
        "vocab_size": args.vocab_size,
        "special_tokens": args.special_token,
        "seed_tokens": args.seed_token,
        "continue_from": args.continue_from.as_ref().map(|path| path.display().to_string()),
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
    mut options: TrainOptions,
    size: usize,
    progress: &Progress,
    checkpoint: &mut Option<Checkpoint>,
) -> Result<Training, CliError> {
    let saved = match checkpoint {
        Some(checkpoint) => checkpoint.merges()?,
        None => Vec::new(),
    };
    let before = saved.len();
    if before > 0 {
        // All merges to begin with are among them, and the seed tokens with them.
        options = options.first_merges(saved);
    }
    let mut failed = None;
    let training = train_with(counts, &options, |so_far| {
        let merges = so_far.merges().len();
        progress.merging(merges, before, size - 256);
        let due = checkpoint
            .as_mut()
            .filter(|due| merges > before && due.is_due());
        match due.map_or(Ok(()), |checkpoint| checkpoint.save_merges(so_far)) {
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

/// Counts the words of the inputs, and adds those that were counted before. Returns those that are
/// learned from, and those that are held out.
fn count(
    args: &TrainArgs,
    start: &Start,
    progress: &Progress,
    checkpoint: &mut Option<Checkpoint>,
    session: &mut Session<'_>,
) -> Result<(WordCounts, WordCounts), CliError> {
    let lexer = start.pattern.lexer(Engine::Auto);
    let lexer = lexer.map_err(|error| CliError::Usage(format!("--pattern: {error}")))?;
    let mut spanner = Spanner::new(vec![lexer]);
    let old = start.old.iter().flat_map(|old| &old.specials);
    let specials = old.map(|special| &special.0).chain(&args.special_token);
    let specials = SpecialMatcher::new(specials);
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
    let old = start.old.iter().flat_map(|old| &old.specials);
    let texts = old.map(|special| &special.0).chain(&args.special_token);
    let numbered: Vec<_> = texts.cloned().zip(256..).collect();
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
        let is_due = || checkpoint.as_ref().is_some_and(Checkpoint::is_due);
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
        if let Some(checkpoint) = checkpoint {
            checkpoint.save_counts(phase, |is_held_out, output| match is_held_out {
                true => held_out.write_to(output),
                false => counter.write_to(output).map_err(std::io::Error::other),
            })?;
        }
        if texts.is_done() {
            break;
        }
    }
    if let Some(path) = &args.save_counts {
        let file = File::create(path).map_err(|error| cannot_write(path, error))?;
        let written = counter.write_to(BufWriter::new(file));
        written.map_err(|error| CliError::from(error).in_input(&path.display().to_string()))?;
    }
    Ok((counter.into_counts()?, held_out))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::path::{Path, PathBuf};

    use super::*;
    use crate::commands::testing::run_with;
    use bytepair::{ReadLimits, Specials, Tokenizer};

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

    fn read_json(path: &Path) -> Tokenizer {
        let text = std::fs::read(path).expect("written");
        Tokenizer::from_tokenizer_json(&text, &ReadLimits::default()).expect("loads")
    }

    #[test]
    fn json_lines_and_packed_files_are_the_texts_that_they_hold() {
        let folder = tempfile::tempdir().expect("a folder");
        let texts = [
            "the cat\nand the hat",
            "and then",
            " the \"bat\" é\u{1F600}, 2026 naïve 龘龘龘 ends",
        ];
        let mut lines = String::new();
        let mut counts = Counter::new(
            Spanner::new(vec![Pattern::o200k().lexer(Engine::Auto).expect("known")]),
            SpecialMatcher::none(),
        );
        for number in 0..40 {
            let text = texts[number % 3];
            let line = json!({ "id": number, "meta": { "text": "no" }, "text": text });
            lines.push_str(&format!("{line}\n\n"));
            counts.add_texts([text]).expect("counts");
        }
        let mut expected = Vec::new();
        counts.write_to(&mut expected).expect("memory");
        let plain = folder.path().join("lines.jsonl");
        std::fs::write(&plain, &lines).expect("a file");
        let packed = folder.path().join("lines");
        let file = File::create(&packed).expect("a file");
        let mut writer = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
        writer.write_all(lines.as_bytes()).expect("packs");
        writer.finish().expect("packs");
        for (file, threads, block) in [
            (&plain, "1", 50),
            (&packed, "3", 1 << 20),
            (&packed, "2", 1),
        ] {
            let saved = folder.path().join("counts").display().to_string();
            let file = file.display().to_string();
            let more = [
                "--jsonl",
                "text",
                "--threads",
                threads,
                "--save-counts",
                &saved,
                &file,
            ];
            trained(folder.path(), "t.json", &more, "", block);
            assert!(std::fs::read(&saved).expect("written") == expected);
        }
    }

    #[test]
    fn a_line_that_is_no_object_with_that_field_is_named_by_its_place() {
        for (text, message) in [
            (
                "{\"text\": \"a\"}\n{\"tex\": 1}\n",
                "byte 14: there is no field \"text\"",
            ),
            ("\n[]\n", "byte 1: this is no JSON object"),
            ("{\"text\": 5}", "byte 0: the field \"text\" is no text"),
            ("{\"text\"", "byte 0: this is no JSON: EOF"),
        ] {
            let arguments = ["train", "--jsonl", "text", "--out", "x.json"];
            let (_, result) = run_with(&arguments, text.as_bytes(), 1000);
            let error = result.expect_err("no text");
            assert_eq!(error.exit_status(), 1);
            assert!(
                error.message().is_some_and(|text| text.contains(message)),
                "{error:?}"
            );
        }
    }

    #[test]
    fn special_tokens_come_first_or_last_and_seed_tokens_are_there() {
        let folder = tempfile::tempdir().expect("a folder");
        let more = [
            "--special-ids",
            "first",
            "--seed-token",
            "zebra",
            "--special-token",
            "<|f|>",
        ];
        let out = trained(folder.path(), "t.json", &more, &TEXT.repeat(4), 100);
        let tokenizer = read_json(&out);
        let specials: Vec<_> = tokenizer.special_tokens().collect();
        assert_eq!(specials, [("<|e|>", 0), ("<|f|>", 1)]);
        assert_eq!(tokenizer.max_id(), Some(279));
        assert_eq!(tokenizer.encode("zebra").expect("encodes").len(), 1);
        let allowed = tokenizer.with_specials(Specials::AllowAll).expect("known");
        assert_eq!(allowed.encode("<|e|>").expect("encodes"), [0]);
    }

    #[test]
    fn a_vocabulary_that_is_continued_from_keeps_its_ids_and_ends_as_if_trained_at_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let text = TEXT.repeat(4);
        let whole = trained(folder.path(), "whole.tiktoken", &[], &text, 100);
        let run = |out: &Path, size: &str, more: &[&str]| {
            let out = out.display().to_string();
            let all = ["train", "--vocab-size", size, "--out", &out];
            let (_, result) = run_with(&[&all[..], more].concat(), text.as_bytes(), 100);
            result.expect("trains");
        };
        for first in ["first.json", "first.tiktoken", "folder"] {
            let first = folder.path().join(first);
            let special = ["--special-token", "<|e|>"];
            run(&first, "270", &special);
            let name = first.display().to_string();
            let more = ["--continue-from", &name, "--pattern", "o200k"];
            let next = folder.path().join("next.tiktoken");
            match first.ends_with("first.json") {
                // Its special token has id 269, which stays.
                true => run(&next, "280", &more),
                false => run(&next, "280", &[&more[..], &special].concat()),
            }
            let lines = |path: &Path| {
                let text = std::fs::read_to_string(path).expect("written");
                let tokens = text
                    .lines()
                    .map(|line| line.split(' ').next().map(str::to_owned));
                tokens.collect::<Vec<_>>()
            };
            assert_eq!(lines(&next), lines(&whole), "{name}");
        }
        let json = folder.path().join("first.json").display().to_string();
        let next = folder.path().join("next.json");
        run(&next, "280", &["--continue-from", &json]);
        let (before, after) = (
            read_json(&folder.path().join("first.json")),
            read_json(&next),
        );
        assert_eq!(after.special_tokens().collect::<Vec<_>>(), [("<|e|>", 269)]);
        for (id, bytes) in before.vocabulary().iter() {
            assert_eq!(after.token_bytes(id), Some(bytes));
        }
    }

    #[test]
    fn what_is_held_out_is_not_learned_from_and_is_reported_on() {
        let folder = tempfile::tempdir().expect("a folder");
        let out = folder.path().join("t.json").display().to_string();
        let text = format!("{}{}", "abc ".repeat(16), "xyz ".repeat(16));
        let all = [
            "train",
            "--vocab-size",
            "258",
            "--hold-out",
            "2",
            "--out",
            &out,
        ];
        let (report, result) = run_with(&all, text.as_bytes(), 64);
        result.expect("trains");
        let report = String::from_utf8(report).expect("text");
        assert!(report.contains("held out: 1.0"), "{report}");
        let tokenizer = read_json(Path::new(&out));
        assert_eq!(tokenizer.token_id(b"xy"), None);
        assert!(tokenizer.token_id(b"abc").is_some());
    }

    #[test]
    fn a_small_limit_of_memory_changes_nothing_but_what_cannot_be_trained_in_it_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let words: String = (0..3000).map(|n| format!(" word{}", n * n)).collect();
        let saved = ["a", "b"].map(|name| folder.path().join(name).display().to_string());
        let plain = ["--save-counts", &saved[0]];
        trained(folder.path(), "t.json", &plain, &words, 1000);
        let out = folder.path().join("u.json").display().to_string();
        let limited = [
            "train",
            "--out",
            &out,
            "--memory-limit",
            "20K",
            "--save-counts",
            &saved[1],
        ];
        let (_, result) = run_with(&limited, words.as_bytes(), 1000);
        let error = result.expect_err("too little to train");
        assert!(
            error
                .message()
                .is_some_and(|text| text.contains("limit of 20480"))
        );
        let [one, other] = saved.map(|path| std::fs::read(path).expect("written"));
        assert!(one == other);
    }

    #[test]
    fn what_usually_goes_wrong_is_warned_about() {
        let warnings = |text: &[u8], size: usize| {
            let mut counts = WordCounts::new();
            let lexer = Pattern::gpt2().lexer(Engine::Auto).expect("known");
            let mut spanner = Spanner::new(vec![lexer]);
            let added = counts.add_text(&mut spanner, &SpecialMatcher::none(), text);
            added.expect("no limit");
            let mut all = String::new();
            let mut warn = |text: &str| all.push_str(text);
            report::warn_about_words(&counts, &mut warn);
            let training = train(&counts, &TrainOptions::new(size)).expect("valid");
            report::warn_about_merges(&training, size, &mut warn);
            all
        };
        let text = "the cat and the hat\n".repeat(100);
        assert_eq!(warnings(text.as_bytes(), 260), "");
        assert!(warnings(text.as_bytes(), 400).contains("text is too small"));
        assert!(warnings(b"a cat\n", 259).contains("last 3 tokens"));
        let giant = [text.as_bytes(), &b"x".repeat(70_000)].concat();
        assert!(warnings(&giant, 260).contains("one word has 70000 bytes"));
        let binary = [text.as_bytes(), b"\0\xFF".repeat(50).as_slice()].concat();
        assert!(warnings(&binary, 260).contains("% of the input is no text"));
        let one_line = "the cat and the hat ".repeat(60_000);
        assert!(warnings(one_line.as_bytes(), 260).contains("no line break"));
    }

    #[test]
    fn what_cannot_be_asked_for_is_a_usage_error() {
        for (arguments, message) in [
            (&["--out", "x.txt"][..], "no format .txt"),
            (&["--out", "x.json", "--vocab-size", "255"], "at least 256"),
            (
                &[
                    "--out",
                    "x.json",
                    "--continue-from",
                    "y",
                    "--special-ids",
                    "first",
                ],
                "whose ids stay",
            ),
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

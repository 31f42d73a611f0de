//! What `train` writes, and what it says.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use bpe_lexers::{Engine, Spanner, SpecialMatcher};
use bpe_train::{Counter, TrainOptions, WordCounts, train};
use bytepair::{Pattern, Pipeline, ReadLimits, Specials, Tokenizer};
use serde_json::json;

use super::report;
use crate::commands::testing::{run_and_warn, run_with};

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
    let is_json = name.ends_with(".json");
    let mut warn =
        |text: &str| assert!(!is_json && text.contains("no place for special"), "{text}");
    let (_, result) = run_and_warn(&arguments, text.as_bytes(), block, &mut warn);
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
        let mut warn = |text: &str| assert!(text.contains("no place for special"), "{text}");
        let all = [&all[..], more].concat();
        let (_, result) = run_and_warn(&all, text.as_bytes(), 100, &mut warn);
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
fn what_could_not_be_read_again_is_said_before_anything_is_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("t.json").display().to_string();
    for (arguments, message) in [
        (&["--special-token", "\u{a7}"][..], "is spelled"),
        (&["--special-token", "a"], "is spelled"),
        (&["--special-token", "\u{120}the"], "\" the\" is spelled"),
        (
            &["--special-token", "the", "--seed-token", "the"],
            "is spelled",
        ),
        (&["--pattern", "x*"], "it can match nothing"),
    ] {
        let all = [&["train", "--out", &out], arguments, &["no such input"]].concat();
        let (_, result) = run_with(&all, b"", 100);
        let error = result.expect_err("no tokenizer");
        assert_eq!(error.exit_status(), 2, "{arguments:?}");
        let text = error.message().unwrap_or_default();
        assert!(text.contains(message), "{arguments:?}: {text}");
    }
    let all = ["train", "--out", &out, "--vocab-size", "258"];
    let special = ["--special-token", "<|the|>"];
    let (_, result) = run_with(&[&all[..], &special].concat(), b"the the", 100);
    result.expect("a special token like others");
}

#[cfg(target_os = "linux")]
#[test]
fn a_pipe_is_written_to() {
    let folder = tempfile::tempdir().expect("a folder");
    let pipe = folder.path().join("t.tiktoken");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.is_ok_and(|status| status.success()));
    let out = pipe.display().to_string();
    let reader = std::thread::spawn(move || std::fs::read(pipe).expect("a pipe"));
    let all = ["train", "--out", &out, "--vocab-size", "258"];
    run_with(&all, b"the the", 100).1.expect("trained");
    assert_eq!(
        reader
            .join()
            .expect("read")
            .split(|&byte| byte == b'\n')
            .count(),
        259
    );
    assert_eq!(
        std::fs::read_dir(folder.path()).expect("a folder").count(),
        1
    );
}

#[cfg(unix)]
#[test]
fn a_link_stays_and_the_file_behind_it_is_replaced() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    // One file is there already, one is not.
    std::fs::write(path("real counts"), "before").expect("written");
    for name in ["t.tiktoken", "counts"] {
        std::os::unix::fs::symlink(format!("real {name}"), path(name)).expect("a link");
    }
    let (out, counts) = (path("t.tiktoken"), path("counts"));
    let all = [
        "train",
        "--out",
        &out,
        "--save-counts",
        &counts,
        "--vocab-size",
        "258",
    ];
    let (_, result) = run_with(&all, b"the the", 100);
    result.expect("trained");
    for name in ["t.tiktoken", "counts"] {
        let link = std::fs::symlink_metadata(path(name)).expect("there");
        assert!(link.is_symlink(), "{name}");
        let real = std::fs::read(path(&format!("real {name}"))).expect("there");
        assert_ne!(real, b"before", "{name}");
    }
    assert_eq!(
        std::fs::read_dir(folder.path()).expect("a folder").count(),
        4
    );
}

#[test]
fn where_the_vocabulary_cannot_be_written_is_said_before_anything_is_read() {
    let folder = tempfile::tempdir().expect("a folder");
    for out in ["missing/t.json", "missing/t.tiktoken", "file/t"] {
        std::fs::write(folder.path().join("file"), "").expect("written");
        let out = folder.path().join(out).display().to_string();
        let (_, result) = run_with(&["train", "--out", &out, "no such input"], b"", 100);
        let error = result.expect_err("no such folder");
        let message = error.message();
        assert!(
            message
                .as_ref()
                .is_some_and(|text| text.contains("cannot write")),
            "{message:?}"
        );
    }
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

#[test]
fn an_alphabet_of_characters_leaves_the_rest_to_bytes_and_loads_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("t.json");
    let name = out.display().to_string();
    // One character in some 3,000 is beyond the share.
    let text = format!("{} ж", TEXT.repeat(40));
    let arguments = [
        "train",
        "--vocab-size",
        "298",
        "--alphabet",
        "characters",
        "--coverage",
        "0.999",
        "--special-token",
        "<|e|>",
        "--out",
        &name,
    ];
    let (report, result) = run_with(&arguments, text.as_bytes(), 500);
    result.expect("trains");
    assert!(String::from_utf8_lossy(&report).contains("bytes per token"));
    let file = std::fs::read(&out).expect("written");
    let read = Pipeline::from_tokenizer_json(&file, &ReadLimits::default()).expect("loads");
    // The bytes have the first ids.
    assert_eq!(read.encode("ж").expect("encodes"), [0xD0, 0xB6]);
    assert_eq!(read.encode("the").expect("encodes").len(), 1);
    assert_eq!(read.encode("龘").expect("encodes").len(), 1);
    for specials in [Specials::AllowAll, Specials::AsText] {
        let read = read.with_specials(specials).expect("known");
        let ids = read.encode(&text).expect("encodes");
        assert!(ids.len() < text.len() / 2);
        assert_eq!(read.decode(&ids).expect("known ids"), text);
    }
}

//! The binary from outside: standard output, standard error, exit status.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::Stdio;

mod common;
use common::{Run, command, data, run};

fn assert_fails(run: &Run, status: i32, message: &str) {
    assert_eq!(run.status, status, "{}", run.stderr);
    assert!(run.stderr.contains(message), "{}", run.stderr);
    assert!(!run.stderr.contains("panicked"), "{}", run.stderr);
}

#[test]
fn encode_prints_ids_and_nothing_else() {
    let run = run(&["encode"], b"Hello, world");
    assert_eq!((run.status, run.text()), (0, "13225 11 2375\n"));
    assert_eq!(run.stderr, "");
}

#[test]
fn no_input_is_no_tokens() {
    assert_eq!(run(&["encode"], b"").text(), "\n");
    assert_eq!(run(&["count"], b"").text(), "0\n");
    assert_eq!(run(&["decode"], b"").text(), "");
    assert_eq!(run(&["show"], b"").text(), "");
    for command in ["encode", "count", "decode", "show"] {
        assert_eq!(run(&[command], b"").status, 0);
    }
}

#[test]
fn bytes_that_are_not_utf8_come_back() {
    let bytes: Vec<u8> = (0..=255).rev().cycle().take(5000).collect();
    let ids = run(&["encode", "--encoding", "cl100k_base"], &bytes);
    assert_eq!(ids.status, 0, "{}", ids.stderr);
    let back = run(&["decode", "--encoding", "cl100k_base"], &ids.stdout);
    assert_eq!(back.status, 0, "{}", back.stderr);
    assert_eq!(back.stdout, bytes);
}

#[test]
fn several_files_give_a_line_each_in_their_order_and_a_dash_is_standard_input() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("text").to_owned();
    let (hello, empty) = (path("hello"), path("empty"));
    std::fs::write(&hello, "Hello").expect("written");
    std::fs::write(&empty, "").expect("written");
    let arguments = ["encode", &hello, "-", &empty, &hello];
    assert_eq!(
        run(&arguments, b"Hello, world").text(),
        "13225\n13225 11 2375\n\n13225\n"
    );
    let counts = run(&["count", &hello, "-"], b"Hello, world");
    assert_eq!(counts.text(), format!("1\t{hello}\n3\t-\n4\ttotal\n"));
    let json = run(&["encode", "--json", &hello, "-"], b", world");
    let lines: Vec<serde_json::Value> = json
        .text()
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let first = serde_json::json!({"file": hello, "tokens": [13225]});
    assert_eq!(
        lines,
        [
            first,
            serde_json::json!({"file": "-", "tokens": [11, 2375]})
        ]
    );
    // A missing file ends the run; what came before is there.
    let missing = run(&["encode", &hello, &path("missing"), &hello], b"");
    assert_fails(&missing, 1, "missing: ");
    assert_eq!(missing.text(), "13225\n");
}

#[test]
fn large_input_on_many_threads_is_that_of_one_thread_and_decodes_to_itself() {
    // Over several blocks of the real size.
    let mut text = Vec::new();
    for name in ["english.txt", "code.txt", "chinese.txt", "mixed.txt"] {
        let part = std::fs::read(data(&format!("corpora/{name}"))).expect("a corpus");
        (0..6).for_each(|_| text.extend_from_slice(&part));
    }
    let one = run(&["encode", "--threads", "1"], &text);
    assert_eq!(one.stderr, "");
    for threads in ["2", "7"] {
        assert!(run(&["encode", "--threads", threads], &text).stdout == one.stdout);
    }
    assert!(run(&["decode"], &one.stdout).stdout == text);
}

#[test]
fn input_that_cannot_be_read_is_status_1() {
    for command in ["encode", "count", "show", "decode"] {
        assert_fails(
            &run(&[command, "no/such/file"], b""),
            1,
            "cannot read no/such/file",
        );
        let folder = data("corpora");
        assert_fails(&run(&[command, &folder], b""), 1, "cannot read ");
    }
}

#[test]
fn bad_ids_are_status_1_with_their_place() {
    let bad = run(&["decode"], b"13225 11\n4000000000 1");
    assert_fails(
        &bad,
        1,
        "\"4000000000\" is the id of no token (word 3, at byte 9)",
    );
    assert_eq!(bad.text(), "Hello,");
    assert_fails(
        &run(&["decode"], b"13225 x"),
        1,
        "\"x\" is no token id (word 2, at byte 6)",
    );
}

#[test]
fn special_tokens_are_text_or_tokens_or_forbidden() {
    let text = b"Hi<|endoftext|>";
    assert_eq!(run(&["count"], b"Hi").text(), "1\n");
    assert_eq!(run(&["encode", "--special"], text).text(), "12194 199999\n");
    assert!(!run(&["encode"], text).text().contains("199999"));
    let forbidden = run(&["encode", "--forbid-special"], text);
    assert_fails(
        &forbidden,
        1,
        "\"<|endoftext|>\", which is forbidden (at byte 2)",
    );
    let own = [
        "encode",
        "--special",
        "--special-token",
        "<|im_start|>=200019",
    ];
    assert_eq!(run(&own, b"<|im_start|>Hi").text(), "200019 12194\n");
}

#[test]
fn wrong_use_is_status_2() {
    let wrong: [&[&str]; 8] = [
        &[],
        &["encrypt"],
        &["encode", "--no-such-option"],
        &["encode", "--threads", "0"],
        &["encode", "--special", "--forbid-special"],
        &["encode", "--encoding", "gpt2", "--model", "gpt-4"],
        &["encode", "--special-token", "no id"],
        &["compare"],
    ];
    for arguments in wrong {
        assert_fails(&run(arguments, b""), 2, "--help");
    }
    let tiktoken = data("cases/load/ok.tiktoken");
    let no_pattern = run(&["encode", "--tokenizer", &tiktoken], b"");
    assert_fails(&no_pattern, 2, "--pattern");
    let typo = ["encode", "--tokenizer", &tiktoken, "--pattern", "gpt3"];
    assert_fails(&run(&typo, b""), 2, "no pattern named \"gpt3\"");
}

#[test]
fn vocabularies_that_are_not_there_are_status_3() {
    assert_fails(
        &run(&["encode", "--encoding", "gpt3_base"], b""),
        3,
        "\"gpt3_base\"",
    );
    assert_fails(&run(&["count", "--model", "eliza"], b""), 3, "\"eliza\"");
    let missing = ["encode", "--tokenizer", "missing.json"];
    assert_fails(&run(&missing, b""), 3, "missing.json");
    let broken = data("cases/load/html.tiktoken");
    let broken = ["encode", "--tokenizer", &broken, "--pattern", "gpt2"];
    assert_fails(&run(&broken, b""), 3, "html.tiktoken");
    let clash = ["encode", "--special-token", "<a>=0"];
    assert_fails(&run(&clash, b""), 3, "<a>");
    assert_fails(
        &run(&["compare", "--with", "gpt3_base"], b""),
        3,
        "\"gpt3_base\"",
    );
}

#[test]
fn vocabularies_are_read_from_files() {
    // The files' own cases say what their tokens are: each has the 256 bytes and a few more.
    let tiktoken = data("cases/load/ok.tiktoken");
    let arguments = [
        "vocab",
        "--json",
        "--tokenizer",
        &tiktoken,
        "--pattern",
        "gpt2",
    ];
    let facts = run(&arguments, b"");
    let facts: serde_json::Value = serde_json::from_str(facts.text()).expect("JSON");
    let lines = std::fs::read_to_string(&tiktoken).expect("readable");
    assert_eq!(facts["tokens"], lines.lines().count());

    let json = data("cases/tok/merges-strings.json");
    let text = "any text: naïve 龘".as_bytes();
    let ids = run(&["encode", "--tokenizer", &json], text);
    assert_eq!(ids.status, 0, "{}", ids.stderr);
    let back = run(&["decode", "--tokenizer", &json], &ids.stdout);
    assert_eq!(back.stdout, text);
}

#[test]
fn gpt2_files_and_a_folder_of_them_are_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("text").to_owned();
    // The byte-level alphabet: printable bytes stand for themselves, the others are numbered from
    // U+0100 on, so that the blank, number 32 of them, is U+0120.
    let is_printable = |byte: &u8| matches!(byte, 0x21..=0x7E | 0xA1..=0xAC | 0xAE..=0xFF);
    let mut others = '\u{100}'..;
    let letters = (0..=255_u8).map(|byte| match is_printable(&byte) {
        true => char::from(byte),
        false => others.next().expect("68 letters"),
    });
    let mut vocab: serde_json::Map<_, _> = letters
        .enumerate()
        .map(|(byte, letter)| (letter.to_string(), byte.into()))
        .collect();
    vocab.insert("ab".to_owned(), 256.into());
    vocab.insert("\u{120}ab".to_owned(), 257.into());
    let vocab = serde_json::Value::from(vocab).to_string();
    std::fs::write(path("vocab.json"), vocab).expect("written");
    let merges = "#version: 0.2\na b\n\u{120} ab\n";
    std::fs::write(path("merges.txt"), merges).expect("written");
    let (vocab, merges) = (path("vocab.json"), path("merges.txt"));
    let by_files = ["encode", "--tokenizer", &vocab, "--merges", &merges];
    let folder = folder.path().to_str().expect("text");
    for arguments in [&by_files[..], &["encode", "--tokenizer", folder]] {
        let ids = run(arguments, b"ab ab ba");
        assert_eq!(ids.text(), "256 257 32 98 97\n", "{}", ids.stderr);
    }
}

#[test]
fn text_that_has_no_token_is_status_1_with_its_place() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("tokenizer.json");
    let model =
        r#"{"model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]}}"#;
    std::fs::write(&path, model).expect("written");
    let path = path.to_str().expect("text");
    assert_eq!(
        run(&["encode", "--tokenizer", path], b"abba").text(),
        "2 1 0\n"
    );
    let missing = run(&["encode", "--tokenizer", path], b"abxa");
    assert_fails(&missing, 1, "no token stands for this text (at byte 2)");
}

#[test]
fn text_that_cannot_be_cut_is_held_in_memory_with_one_warning() {
    let tiktoken = data("cases/load/ok.tiktoken");
    // Where one of these words ends depends on all that stands before it.
    let own = ["count", "--tokenizer", &tiktoken, "--pattern", "(?s).{1,3}"];
    let text = b"word and word ".repeat(700_000);
    let counted = run(&own, &text);
    assert_eq!(counted.status, 0, "{}", counted.stderr);
    assert_eq!(counted.stderr.lines().count(), 1, "{}", counted.stderr);
    assert!(
        counted.stderr.contains("held in memory"),
        "{}",
        counted.stderr
    );
    let short = run(&own, b"word and word ");
    assert_eq!(short.stderr, "");
    for pattern in ["gpt2", r"\w+|\W"] {
        let cut = ["count", "--tokenizer", &tiktoken, "--pattern", pattern];
        assert_eq!(run(&cut, &text).stderr, "");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn long_input_that_can_be_cut_takes_little_memory() {
    const MEBIBYTE: usize = 1 << 20;
    let line = b"It is a truth universally acknowledged, 1813.\n";
    let block = line.repeat(MEBIBYTE / line.len());
    let arguments = ["encode", "--encoding", "gpt2", "--threads", "2"];
    let mut child = command(&arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("starts");
    let mut stdin = child.stdin.take().expect("piped");
    for _ in 0..128 {
        stdin.write_all(&block).expect("it reads on");
    }
    // It waits for more: what it held at most stands there to be read.
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id()));
    let status = status.expect("it still runs");
    drop(stdin);
    assert!(child.wait().expect("ends").success());
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak = peak.and_then(|peak| peak.trim().strip_suffix("kB"));
    let peak: usize = peak
        .and_then(|peak| peak.trim().parse().ok())
        .expect("a number");
    assert!(peak < 48 * 1024, "{peak} kB for {} kB of text", 128 * 1024);
}

#[test]
fn a_reader_that_has_had_enough_ends_the_command_quietly() {
    let english = data("corpora/english.txt");
    for arguments in [
        &["show", &english, &english][..],
        &["encode", "--offsets", &english, &english],
        &["encode", &english, &english],
    ] {
        let mut child = command(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary runs");
        let mut stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut start = [0; 10];
        stdout.read_exact(&mut start).expect("some output");
        drop(stdout);
        let output = child.wait_with_output().expect("the binary ends");
        assert_eq!(output.status.code(), Some(0));
        assert_eq!(output.stderr, b"");
    }
}

#[test]
fn ids_are_decoded_as_they_come() {
    let mut child = command(&["decode"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let mut stdin = child.stdin.take().expect("a pipe");
    let mut stdout = BufReader::new(child.stdout.take().expect("a pipe"));
    // 198 is the newline. The text is there before the input ends.
    stdin.write_all(b"13225 198 ").expect("written");
    let mut line = String::new();
    stdout.read_line(&mut line).expect("read");
    assert_eq!(line, "Hello\n");
    drop(stdin);
    assert!(child.wait().expect("ends").success());
}

#[test]
fn piped_output_has_no_colours_and_always_means_always() {
    let plain = run(&["show"], b"Hello, world");
    assert_eq!(plain.text(), "Hello|13225\n,|11\n world|2375\n");
    let colored = run(&["show", "--color", "always"], b"Hello, world");
    assert!(colored.text().contains("\x1b["));
}

#[test]
fn completions_name_the_commands_and_the_encodings() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = run(&["completions", shell], b"");
        assert_eq!(script.status, 0);
        assert!(script.text().contains("encode"), "{shell}");
        assert!(script.text().contains("bytepair"), "{shell}");
    }
    assert!(
        run(&["completions", "bash"], b"")
            .text()
            .contains("o200k_harmony")
    );
}

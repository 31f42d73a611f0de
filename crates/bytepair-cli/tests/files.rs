//! `encode` and `count` of files: packed, by lines, and into files that appear complete or not at all.

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use bytepair::Tokenizer;

mod common;
use common::{command, data, run};

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
}

fn path(folder: &tempfile::TempDir, name: &str) -> String {
    folder.path().join(name).to_str().expect("text").to_owned()
}

fn read(path: impl AsRef<Path>) -> Vec<u8> {
    std::fs::read(path).expect("the file is there")
}

fn numbers<const N: usize>(bytes: &[u8], number: impl Fn([u8; N]) -> u64) -> Vec<u64> {
    assert_eq!(bytes.len() % N, 0);
    let chunks = bytes.chunks_exact(N);
    chunks
        .map(|chunk| number(chunk.try_into().expect("whole")))
        .collect()
}

#[test]
fn ids_are_written_as_arrays_and_raw_numbers_with_the_ends_of_documents() {
    let folder = folder();
    let texts = [
        read(data("corpora/mixed.txt")),
        Vec::new(),
        b"Hello, world".to_vec(),
    ];
    let files: Vec<String> = (0..3)
        .map(|number| path(&folder, &format!("{number}.txt")))
        .collect();
    for (file, text) in files.iter().zip(&texts) {
        std::fs::write(file, text).expect("written");
    }
    for (encoding, is_small) in [("r50k_base", true), ("o200k_base", false)] {
        let tokenizer = Tokenizer::from_name(encoding).expect("embedded");
        let ids: Vec<Vec<u64>> = texts
            .iter()
            .map(|text| tokenizer.encode_bytes(text).expect("encodes"))
            .map(|ids| ids.into_iter().map(u64::from).collect())
            .collect();
        let mut total = 0;
        let ends: Vec<u64> = ids
            .iter()
            .map(|ids| {
                total += ids.len() as u64;
                total
            })
            .collect();
        for ending in ["u16", "u32", "npy", "txt"] {
            let out = path(&folder, &format!("ids.{ending}"));
            let mut arguments = vec!["encode", "-e", encoding, "--out", &out];
            arguments.extend(files.iter().map(String::as_str));
            let run = run(&arguments, b"");
            if ending == "u16" && !is_small {
                assert_eq!(run.status, 2, "{}", run.stderr);
                assert!(run.stderr.contains("do not fit into 16 bits"));
                continue;
            }
            assert_eq!((run.status, run.stderr.as_str()), (0, ""));
            assert!(run.stdout.is_empty());
            let bytes = read(&out);
            let u16s = |bytes: &[u8]| numbers(bytes, |two: [u8; 2]| u16::from_le_bytes(two).into());
            let u32s =
                |bytes: &[u8]| numbers(bytes, |four: [u8; 4]| u32::from_le_bytes(four).into());
            let found = match (ending, is_small) {
                ("u16", _) => u16s(&bytes),
                ("u32", _) => u32s(&bytes),
                ("npy", _) => {
                    let header = String::from_utf8_lossy(&bytes[10..128]).into_owned();
                    assert!(header.contains(&format!("'shape': ({total},)")), "{header}");
                    assert_eq!(header.contains("<u2"), is_small);
                    match is_small {
                        true => u16s(&bytes[128..]),
                        false => u32s(&bytes[128..]),
                    }
                }
                _ => {
                    let text = String::from_utf8(bytes).expect("text");
                    let lines: Vec<Vec<u64>> = text
                        .lines()
                        .map(|line| {
                            line.split_whitespace()
                                .map(|id| id.parse().expect("an id"))
                                .collect()
                        })
                        .collect();
                    assert_eq!(lines, ids);
                    lines.concat()
                }
            };
            assert_eq!(found, ids.concat());
            let found = numbers(&read(format!("{out}.ends")), u64::from_le_bytes);
            assert_eq!(found, ends);
            // Nothing else is left.
            let parts = std::fs::read_dir(folder.path()).expect("a folder");
            let parts = parts.filter(|entry| {
                let name = entry.as_ref().expect("an entry").file_name();
                name.to_string_lossy().ends_with(".part")
            });
            assert_eq!(parts.count(), 0);
        }
    }
}

#[cfg(unix)]
#[test]
fn what_is_no_file_is_not_replaced_by_one_and_a_link_stays_a_link() {
    let folder = folder();
    let (target, link, nothing) = (
        path(&folder, "target.txt"),
        path(&folder, "link.txt"),
        path(&folder, "nothing.txt"),
    );
    std::fs::write(&target, "older").expect("written");
    std::os::unix::fs::symlink(&target, &link).expect("a link");
    std::os::unix::fs::symlink(path(&folder, "not there"), &nothing).expect("a link");
    let pipe = path(&folder, "pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.expect("mkfifo runs").success());
    let encode = |out: &str| run(&["encode", "-e", "gpt2", "--out", out], b"Hello");

    assert_eq!(encode(&link).status, 0);
    let is_link = std::fs::symlink_metadata(&link)
        .expect("there")
        .is_symlink();
    assert!(is_link);
    assert_eq!(read(&target), b"15496\n");
    assert_eq!(read(format!("{target}.ends")), 1_u64.to_le_bytes());

    for out in [
        &pipe,
        &nothing,
        &folder.path().to_str().expect("text").to_owned(),
    ] {
        let run = encode(out);
        assert_eq!(run.status, 1, "{out}: {}", run.stderr);
        assert!(run.stderr.contains("cannot write"), "{}", run.stderr);
        assert!(!Path::new(&format!("{out}.ends")).exists());
    }
    assert!(!std::fs::symlink_metadata(&pipe).expect("there").is_file());
}

#[test]
fn special_tokens_are_added_to_an_empty_input_too_and_a_stream_refuses_them() {
    let folder = folder();
    let (tokenizer, empty) = (path(&folder, "tokenizer.json"), path(&folder, "empty.txt"));
    let json = r#"{"version": "1.0", "added_tokens": [], "normalizer": null,
        "pre_tokenizer": {"type": "Whitespace"}, "decoder": null,
        "post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 2], "cls": ["[CLS]", 1]},
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "\u0023#",
            "max_input_chars_per_word": 100, "vocab": {"[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "hi": 3}}}"#;
    std::fs::write(&tokenizer, json).expect("written");
    std::fs::write(&empty, "").expect("written");
    let with = |command: &str, more: &[&str], stdin: &[u8]| {
        let mut arguments = vec![command, "-t", &tokenizer];
        arguments.extend(more);
        run(&arguments, stdin)
    };
    assert_eq!(with("encode", &["--add-special"], b"hi").text(), "1 3 2\n");
    for (input, stdin) in [("-", &b""[..]), (&empty, b"hi")] {
        let run = with("encode", &["--add-special", input], stdin);
        assert_eq!((run.status, run.text()), (0, "1 2\n"), "{}", run.stderr);
        let run = with("count", &["--add-special", input], stdin);
        assert!(run.text().starts_with('2'), "{}", run.text());
        assert_eq!(with("encode", &[input], stdin).text(), "\n");
    }
    let run = with("encode", &["--add-special", "--stream"], b"hi");
    assert_eq!((run.status, run.text()), (2, ""));
}

#[test]
fn packed_files_are_unpacked_by_their_names() {
    let folder = folder();
    let text = read(data("corpora/english.txt"));
    let expected = run(&["encode"], &text).stdout;
    let gzip = path(&folder, "english.txt.gz");
    let file = std::fs::File::create(&gzip).expect("a file");
    let mut writer = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
    writer.write_all(&text).expect("written");
    writer.finish().expect("written");
    assert!(run(&["encode", &gzip], b"").stdout == expected);
    // The frame of `printf 'the cat and the hat\n' | zstd`.
    let zstd = path(&folder, "cat.txt.zst");
    let frame = b"(\xB5/\xFD\x04X\xA1\x00\x00the cat and the hat\n\xE1\xCB[g";
    std::fs::write(&zstd, frame).expect("written");
    let expected = run(&["encode"], b"the cat and the hat\n").stdout;
    assert_eq!(run(&["encode", &zstd], b"").stdout, expected);
    // A file that is cut short is an error, and no output file appears.
    let short = path(&folder, "short.gz");
    let packed = read(&gzip);
    std::fs::write(&short, &packed[..packed.len() / 2]).expect("written");
    let out = path(&folder, "out.u32");
    let failed = run(&["encode", "--out", &out, &short], b"");
    assert_eq!(failed.status, 1);
    assert!(failed.stderr.contains("short.gz"), "{}", failed.stderr);
    assert!(!Path::new(&out).exists() && !Path::new(&format!("{out}.ends")).exists());
}

#[test]
fn lines_at_fault_are_named_or_counted_and_keep_their_place() {
    let folder = folder();
    let lines = path(&folder, "lines.jsonl");
    let text =
        "{\"text\":\"Hello, world\"}\n{\"text\":7}\n\n{\"text\":\"Hello\",\"id\":3}\nnothing\n";
    std::fs::write(&lines, text).expect("written");
    let out = path(&folder, "ids.u32");
    let failed = run(&["encode", "--jsonl", "text", "--out", &out, &lines], b"");
    assert_eq!(failed.status, 1);
    assert!(
        failed.stderr.contains("lines.jsonl: line 2: "),
        "{}",
        failed.stderr
    );
    assert!(!Path::new(&out).exists());
    let skipping = [
        "encode",
        "--jsonl",
        "text",
        "--skip-errors",
        "--out",
        &out,
        &lines,
    ];
    let run_of = run(&skipping, b"");
    assert_eq!(run_of.status, 0, "{}", run_of.stderr);
    assert!(
        run_of.stderr.contains("2 lines skipped"),
        "{}",
        run_of.stderr
    );
    assert!(run_of.stderr.contains("line 2: "), "{}", run_of.stderr);
    let ends = numbers(&read(format!("{out}.ends")), u64::from_le_bytes);
    assert_eq!(ends, [3, 3, 4, 4]);
    let counted = run(&["count", "--jsonl", "text", "--skip-errors", &lines], b"");
    assert_eq!(counted.text(), format!("4\t{lines}\n"));
}

/// Killed at any moment, the command leaves the whole output under its name, or none.
#[cfg(unix)]
#[test]
fn a_run_that_is_killed_leaves_nothing_that_looks_finished() {
    let folder = folder();
    let input = path(&folder, "input.txt");
    std::fs::write(&input, read(data("corpora/english.txt")).repeat(8)).expect("written");
    let out = path(&folder, "ids.u32");
    let whole = run(&["encode", "--out", &out, &input], b"");
    assert_eq!(whole.status, 0, "{}", whole.stderr);
    let (ids, ends) = (read(&out), read(format!("{out}.ends")));
    std::fs::remove_file(&out).expect("it is there");
    std::fs::remove_file(format!("{out}.ends")).expect("it is there");
    let start = std::time::Instant::now();
    assert_eq!(run(&["encode", "--out", &out, &input], b"").status, 0);
    let time = start.elapsed();
    let mut state = 1_u64;
    let mut killed = 0;
    for round in 0..20 {
        let _ = std::fs::remove_file(&out);
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        // Some at the very end, where files get their names.
        let share = match round % 2 {
            0 => (state >> 33) as f64 / f64::from(1_u32 << 31),
            _ => 0.9 + 0.2 * (state >> 33) as f64 / f64::from(1_u32 << 31),
        };
        let mut child = command(&["encode", "--out", &out, &input])
            .spawn()
            .expect("runs");
        std::thread::sleep(Duration::from_secs_f64(time.as_secs_f64() * share));
        child.kill().expect("it can be killed");
        let status = child.wait().expect("it ends");
        killed += usize::from(!status.success());
        if Path::new(&out).exists() {
            assert!(read(&out) == ids && read(format!("{out}.ends")) == ends);
        } else {
            assert!(!status.success());
        }
    }
    assert!(killed > 0, "no run was killed before its end");
}

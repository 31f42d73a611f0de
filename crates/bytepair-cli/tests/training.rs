//! A training that is killed goes on where it was, to the same bytes.

mod common;

use std::io::Write;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use common::{command, data, run};

/// How often it is killed.
const KILLS: u32 = 20;

fn is_empty(folder: &Path) -> bool {
    let entries = std::fs::read_dir(folder);
    entries.map_or(true, |mut entries| entries.next().is_none())
}

#[test]
fn killed_at_random_moments_it_goes_on_to_the_same_bytes() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let corpora = ["english", "chinese", "code", "mixed"];
    let corpora = corpora.map(|name| data(&format!("corpora/{name}.txt")));
    let common = [
        "train",
        "--vocab-size",
        "340",
        "--hold-out",
        "7",
        "--threads",
        "2",
    ];
    let arguments = |out: &str, more: &[&str]| -> Vec<String> {
        let mut all: Vec<String> = common.iter().map(|&text| text.to_owned()).collect();
        all.extend(["--out".to_owned(), out.to_owned()]);
        all.extend(more.iter().map(|&text| text.to_owned()));
        // Each file more than once: more moments to be killed at while counting.
        for _ in 0..3 {
            all.extend(corpora.iter().cloned());
        }
        all
    };
    let texts = |all: &[String]| -> Vec<String> { all.to_vec() };
    let run_all = |all: Vec<String>| {
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        let done = run(&all, b"");
        assert_eq!(done.status, 0, "{}", done.stderr);
    };
    let plain = path("plain.json");
    run_all(texts(&arguments(&plain, &[])));
    let expected = std::fs::read(&plain).expect("written");

    let (saved, out) = (path("saved"), path("out.json"));
    let with = ["--checkpoint", &saved, "--checkpoint-interval", "0"];
    let all = arguments(&out, &with);
    let start = Instant::now();
    run_all(texts(&all));
    let whole = start.elapsed();
    assert!(std::fs::read(&out).expect("written") == expected);
    assert!(is_empty(Path::new(&saved)), "it is done");

    let mut state = u64::from(std::process::id());
    let mut random = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f64 / (1_u64 << 24) as f64
    };
    let mut resumed = 0;
    for number in 0..KILLS {
        std::fs::remove_file(&out).expect("written");
        // One in each part of the time, and then one more somewhere in what is left.
        let share = (f64::from(number) + random()) / f64::from(KILLS);
        for share in [share, random() * (1.0 - share)] {
            let texts: Vec<&str> = all.iter().map(String::as_str).collect();
            let mut child = command(&texts)
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .expect("the binary runs");
            std::thread::sleep(whole.mul_f64(share).max(Duration::from_millis(1)));
            child.kill().expect("kills");
            child.wait().expect("ends");
        }
        resumed += u32::from(Path::new(&saved).join("state.json").exists());
        run_all(texts(&all));
        assert!(
            std::fs::read(&out).expect("written") == expected,
            "kill {number}"
        );
        assert!(is_empty(Path::new(&saved)), "it is done");
    }
    assert!(
        resumed > 0,
        "no kill came while there was something to go on with"
    );
}

#[test]
fn killed_among_the_merges_of_an_older_vocabulary_it_loses_none_of_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (old, out, saved) = (path("old.json"), path("out.json"), path("saved"));
    let english = data("corpora/english.txt");
    let done = run(
        &["train", "--vocab-size", "800", "--out", &old, &english],
        b"",
    );
    assert_eq!(done.status, 0, "{}", done.stderr);
    let code = data("corpora/code.txt");
    let size = ["train", "--vocab-size", "900", "--continue-from", &old];
    let all = [&size[..], &["--out", &out, &code]].concat();
    assert_eq!(run(&all, b"").status, 0);
    let expected = std::fs::read(&out).expect("written");
    let counts = path("counts");
    let more = [
        "--checkpoint",
        &saved,
        "--checkpoint-interval",
        "0",
        "--save-counts",
        &counts,
    ];
    let all = [&all[..], &more].concat();
    let merges = Path::new(&saved).join("merges.checkpoint");
    let mut kills = 0;
    for lines in [1, 100, 500, 560] {
        let mut child = command(&all)
            .stdout(Stdio::null())
            .spawn()
            .expect("the binary runs");
        // Up to so many merges, of which the first 544 are those of the old vocabulary.
        loop {
            let text = std::fs::read_to_string(&merges).unwrap_or_default();
            if text.lines().count() >= lines {
                child.kill().expect("kills");
                kills += 1;
                break;
            }
            if child.try_wait().expect("it is there").is_some() {
                break;
            }
        }
        child.wait().expect("ends");
        let _ = std::fs::remove_file(&counts);
        let done = run(&all, b"");
        assert_eq!(done.status, 0, "{}", done.stderr);
        let found = std::fs::read(&out).expect("written");
        assert!(found == expected, "killed at {lines} merges");
        assert!(Path::new(&counts).exists(), "the counts are saved");
        assert!(is_empty(Path::new(&saved)), "it is done");
    }
    assert!(kills > 1, "it was killed {kills} times");
}

#[test]
fn a_folder_of_checkpoints_keeps_what_is_not_theirs_and_serves_one_training() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    for name in ["counts-notes.txt", "merges", "held-out-1"] {
        std::fs::write(path(name), "mine").expect("written");
    }
    let (out, saved) = (path("out.json"), folder.path().display().to_string());
    let with = ["--checkpoint", &saved, "--checkpoint-interval", "0"];
    let size = ["train", "--vocab-size", "300", "--out", &out];
    let all = [&size[..], &with].concat();
    let text = std::fs::read(data("corpora/english.txt")).expect("a corpus");
    let done = run(&all, &text);
    assert_eq!(done.status, 0, "{}", done.stderr);
    let names = std::fs::read_dir(folder.path()).expect("a folder");
    let names = names.map(|entry| entry.expect("an entry").file_name());
    let mut names: Vec<_> = names.collect();
    names.sort();
    assert_eq!(
        names,
        ["counts-notes.txt", "held-out-1", "merges", "out.json"]
    );
    let lock = std::fs::File::create(folder.path().join("lock.checkpoint"));
    let lock = lock.expect("a file");
    lock.lock().expect("a lock");
    let done = run(&all, &text);
    assert_eq!(done.status, 2);
    assert!(done.stderr.contains("another training"), "{}", done.stderr);
}

#[test]
fn a_checkpoint_of_files_that_were_changed_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (input, out, saved) = (path("input.txt"), path("out.json"), path("saved"));
    let english = std::fs::read(data("corpora/english.txt")).expect("a corpus");
    std::fs::write(&input, &english).expect("written");
    let with = ["--checkpoint", &saved, "--checkpoint-interval", "0"];
    let size = ["train", "--vocab-size", "2000", "--out", &out, &input];
    let all = [&size[..], &with].concat();
    let mut child = command(&all)
        .stdout(Stdio::null())
        .spawn()
        .expect("the binary runs");
    while !Path::new(&saved).join("state.json").exists() {
        assert!(child.try_wait().expect("it is there").is_none(), "it ended");
    }
    child.kill().expect("kills");
    child.wait().expect("ends");
    std::fs::write(&input, &english[1..]).expect("written");
    let done = run(&all, b"");
    assert_eq!(done.status, 2);
    assert!(done.stderr.contains("its files is"), "{}", done.stderr);
}

#[test]
fn checkpoints_take_less_than_2_percent_of_the_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (out, saved) = (path("out.json"), path("saved"));
    let all = ["train", "--vocab-size", "2000", "--threads", "1"];
    let with = ["--checkpoint", &saved, "--checkpoint-interval", "1"];
    let mut child = command(&[&all[..], &with, &["--out", &out]].concat())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let mut pipe = child.stdin.take().expect("a pipe");
    let english = std::fs::read(data("corpora/english.txt")).expect("a corpus");
    let start = Instant::now();
    let state = Path::new(&saved).join("state.json");
    // Up to the second checkpoint, each time with other letters, so with other words.
    for rotation in (0..26).cycle() {
        let text = std::fs::read_to_string(&state).unwrap_or_default();
        if text.contains("\"number\":2") || start.elapsed() > Duration::from_secs(300) {
            break;
        }
        let rotated = english.iter().map(|&byte| match byte {
            b'a'..=b'z' => (byte - b'a' + rotation) % 26 + b'a',
            byte => byte,
        });
        let rotated: Vec<u8> = rotated.collect();
        pipe.write_all(&rotated).expect("it reads");
    }
    drop(pipe);
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success());
    let report = String::from_utf8(output.stdout).expect("the report is text");
    let line = report
        .lines()
        .find_map(|line| line.strip_prefix("checkpoints: "))
        .expect("a line of the report");
    let number = |text: &str| text.trim().parse::<f64>().expect("a number");
    let (made, rest) = line.split_once(" in ").expect("the time");
    let (_, share) = rest.split_once(", ").expect("the share");
    let share = share.trim_end_matches(" % of the time");
    assert!(number(made) >= 2.0, "{line}");
    assert!(number(share) < 2.0, "{line}");
    assert!(is_empty(Path::new(&saved)), "it is done");
}

#[test]
fn a_checkpoint_of_another_training_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let saved = folder.path().join("saved");
    std::fs::create_dir(&saved).expect("a folder");
    let saved = saved.display().to_string();
    let out = folder.path().join("out.json").display().to_string();
    let state = Path::new(&saved).join("state.json");
    let arguments = ["train", "--checkpoint", &saved, "--out", &out];
    for (text, message) in [
        ("{}", "of another version"),
        ("no JSON", "holds no checkpoint"),
        (
            r#"{"version": 2, "training": {"vocab_size": 5}}"#,
            "of another training",
        ),
    ] {
        std::fs::write(&state, text).expect("a file");
        let done = run(&arguments, b"text");
        assert_ne!(done.status, 0);
        assert!(done.stderr.contains(message), "{}", done.stderr);
    }
}

#[test]
fn progress_is_said_on_standard_error_where_it_is_asked_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("out.json").display().to_string();
    let text = b"the cat sat on the mat, the bat on the hat".as_slice();
    let all = [
        "train",
        "--vocab-size",
        "260",
        "--pattern",
        "gpt2",
        "--progress",
        "--out",
        &out,
    ];
    let done = run(&all, text);
    assert_eq!(done.status, 0, "{}", done.stderr);
    assert!(done.stderr.contains("merging: 4 of 4, "), "{}", done.stderr);
    assert!(done.stderr.contains(" merges/s, "), "{}", done.stderr);
    assert!(done.text().contains("bytes per token: "));
    assert!(done.text().contains("longest tokens: "));
    assert!(done.text().contains("least used tokens: "));
}

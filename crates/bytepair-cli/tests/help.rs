//! The examples of `--help` and of the README are run, and print what they say.
#![cfg(unix)]

use std::path::Path;
use std::process::Command;

mod common;
use common::{data, run};

/// A command line, and the lines below it.
struct Example {
    line: String,
    expected: String,
}

/// The examples of a text: lines that begin with `$`, each with what follows it up to an empty line
/// or one less indented.
fn examples(text: &str) -> Vec<Example> {
    let mut examples: Vec<Example> = Vec::new();
    let mut indent = None;
    for line in text.lines() {
        let depth = line.len() - line.trim_start().len();
        if let Some(command) = line.trim_start().strip_prefix("$ ") {
            indent = Some(depth);
            examples.push(Example {
                line: command.to_owned(),
                expected: String::new(),
            });
            continue;
        }
        let is_output = !line.trim().is_empty() && !line.starts_with("```");
        match (indent, examples.last_mut()) {
            (Some(inner), Some(example)) if is_output && depth >= inner => {
                example.expected.push_str(&line[inner..]);
                example.expected.push('\n');
            }
            _ => indent = None,
        }
    }
    examples
}

/// Runs the examples in a folder of their own with the file that they name.
fn check(text: &str) -> usize {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("notes.txt"), "Hello, world\n").expect("written");
    let corpus = std::fs::read(data("corpora/english.txt")).expect("a corpus");
    std::fs::write(folder.path().join("english.txt"), corpus).expect("written");
    let binary = Path::new(env!("CARGO_BIN_EXE_bytepair"));
    let binaries = binary.parent().expect("a folder");
    let others = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{others}", binaries.display());
    let examples = examples(text);
    for Example { line, expected } in &examples {
        let output = Command::new("sh")
            .args(["-c", line])
            .current_dir(folder.path())
            .env("PATH", &path)
            .output()
            .expect("a shell");
        let printed = String::from_utf8(output.stdout).expect("text");
        assert_eq!(printed.trim_end(), expected.trim_end(), "{line}");
        assert!(output.stderr.is_empty(), "{line}");
    }
    examples.len()
}

#[test]
fn examples_of_the_help_print_what_they_say() {
    let commands = ["encode", "decode", "count", "show", "vocab", "compare"];
    let general = run(&["--help"], b"");
    assert_eq!(general.status, 0);
    assert!(general.text().contains("Exit status"));
    assert!(check(general.text()) >= 3);
    for command in commands {
        assert!(general.text().contains(command));
        let help = run(&[command, "--help"], b"");
        assert_eq!(help.status, 0);
        assert!(check(help.text()) >= 1, "{command} has an example");
    }
    let help = run(&["completions", "--help"], b"");
    assert!(help.text().contains("Examples"));
}

#[test]
fn examples_of_the_readme_print_what_they_say() {
    assert!(check(include_str!("../README.md")) >= 5);
}

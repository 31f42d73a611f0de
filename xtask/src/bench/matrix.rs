//! Encoder x lexer x vocabulary x corpus, and lexer x vocabulary x corpus, on divan (as seed 001
//! section 8.4): the bench target `benches/matrix.rs` measures, this command chooses and reads.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use clap::builder::PossibleValuesParser;
use serde_json::{Value, json};

use super::divan_text::{self, Record};
use super::{Error, write_json};
use crate::data;

const LEXERS: [&str; 3] = ["automata", "reference", "transcription"];
const ENCODERS: [&str; 5] = [
    "buffer_sweep",
    "tail_sweep",
    "merge_heap",
    "priority_merge",
    "bpe_backtrack",
];
const CORPORA: [&str; 6] = [
    "adversarial",
    "chinese",
    "code",
    "english",
    "mixed",
    "structured",
];

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Vocabularies to measure.
    #[arg(long, value_delimiter = ',', default_values = ["r50k_base", "cl100k_base", "o200k_base"],
        value_parser = PossibleValuesParser::new(bytepair::ENCODINGS))]
    vocabulary: Vec<String>,
    /// Lexers to measure.
    #[arg(long, value_delimiter = ',', default_values = LEXERS,
        value_parser = PossibleValuesParser::new(LEXERS))]
    lexer: Vec<String>,
    /// Encoders to measure.
    #[arg(long, value_delimiter = ',', default_values = ENCODERS,
        value_parser = PossibleValuesParser::new(ENCODERS))]
    encoder: Vec<String>,
    /// Corpora of bench-data to measure on.
    #[arg(long, value_delimiter = ',',
        default_values = ["english", "code", "chinese", "mixed", "structured"],
        value_parser = PossibleValuesParser::new(CORPORA))]
    corpus: Vec<String>,
    /// A fifth of the time for each, and larger errors.
    #[arg(long)]
    quick: bool,
    /// Write the results to this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Runs the bench target, prints its text as it comes, and turns it into records.
pub(super) fn run(arguments: &Arguments) -> Result<bool, Error> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut child = Command::new(cargo)
        .current_dir(data::workspace())
        .args([
            "bench",
            "--quiet",
            "--package",
            "xtask",
            "--bench",
            "matrix",
            "--",
        ])
        .args(["--max-time", if arguments.quick { "0.1" } else { "0.5" }])
        .args(["--bytes-format", "decimal", "--color", "never"])
        .env("BYTEPAIR_BENCH_VOCABULARY", arguments.vocabulary.join(","))
        .env("BYTEPAIR_BENCH_LEXER", arguments.lexer.join(","))
        .env("BYTEPAIR_BENCH_ENCODER", arguments.encoder.join(","))
        .env("BYTEPAIR_BENCH_CORPUS", arguments.corpus.join(","))
        .stdout(Stdio::piped())
        .spawn()?;
    let mut text = String::new();
    if let Some(stdout) = child.stdout.take() {
        for line in BufReader::new(stdout).lines() {
            let line = line?;
            println!("{line}");
            text.push_str(&line);
            text.push('\n');
        }
    }
    if !child.wait()?.success() {
        return Err("the bench target failed".into());
    }
    let mut records = divan_text::parse(&text)?;
    let control = records
        .iter()
        .position(|record| record.path == "matrix/control");
    let control = control.map(|at| records.remove(at));
    let counted = control.and_then(|record| record.allocations.get("alloc").copied());
    if counted.is_none_or(|alloc| (alloc.count, alloc.bytes) != (1.0, 1000.0)) {
        return Err(format!("the control allocates once, 1000 bytes; counted: {counted:?}").into());
    }
    let expected = arguments.vocabulary.len()
        * arguments.lexer.len()
        * arguments.corpus.len()
        * (arguments.encoder.len() + 1);
    if records.len() != expected {
        return Err(format!("{} records read, {expected} expected", records.len()).into());
    }
    let results = records.iter().map(to_json).collect::<Result<Vec<_>, _>>()?;
    write_json(arguments.json.as_deref(), &results.into())?;
    Ok(true)
}

/// The record with the axes that its name spells: `matrix/encode/VOCABULARY/LEXER/ENCODER/CORPUS`
/// or `matrix/spans/VOCABULARY/LEXER/CORPUS`.
fn to_json(record: &Record) -> Result<Value, Error> {
    let parts: Vec<&str> = record.path.split('/').collect();
    let (measured, vocabulary, lexer, encoder, corpus) = match parts[..] {
        [_, "encode", vocabulary, lexer, encoder, corpus] => {
            ("encode", vocabulary, lexer, Some(encoder), corpus)
        }
        [_, "spans", vocabulary, lexer, corpus] => ("spans", vocabulary, lexer, None, corpus),
        _ => return Err(format!("a benchmark of another form: {}", record.path).into()),
    };
    Ok(json!({
        "measured": measured,
        "vocabulary": vocabulary,
        "lexer": lexer,
        "encoder": encoder,
        "corpus": corpus,
        "samples": record.samples,
        "seconds": record.seconds,
        "bytes_per_second": record.bytes_per_second,
        "allocations": record.allocations,
    }))
}

#[cfg(test)]
mod tests {
    use super::{CORPORA, ENCODERS};
    use crate::bench::corpora;

    #[test]
    fn the_encoders_to_choose_from_are_all_there_are() {
        let names = bytepair::Algorithm::ALL.iter().map(|a| a.name());
        assert_eq!(names.collect::<Vec<_>>(), ENCODERS);
    }

    #[test]
    fn the_corpora_to_choose_from_are_those_of_bench_data() {
        let corpora = corpora::all().expect("bench-data is read");
        let names: Vec<_> = corpora.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, CORPORA);
    }
}

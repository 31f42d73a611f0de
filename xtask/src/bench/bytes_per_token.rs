//! Bytes a token: what the capacity constants of the facade come from (seed 001 section 4.1).

use std::path::PathBuf;

use bytepair::{ENCODINGS, Tokenizer};
use serde_json::json;

use super::{Error, corpora, write_json};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Write the results to this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Prints a table: a row for each encoding, a column for each corpus.
pub(super) fn run(arguments: &Arguments) -> Result<bool, Error> {
    let corpora = corpora::all()?;
    print!("{:14}", "");
    for (name, _) in &corpora {
        print!("{name:>12}");
    }
    println!();
    let mut results = Vec::new();
    for &encoding in ENCODINGS {
        let tokenizer = Tokenizer::from_name(encoding)?;
        print!("{encoding:14}");
        for (corpus, text) in &corpora {
            let tokens = tokenizer.count(text)?;
            let ratio = text.len() as f64 / tokens as f64;
            print!("{ratio:12.2}");
            results.push(json!({
                "vocabulary": encoding,
                "corpus": corpus,
                "bytes": text.len(),
                "tokens": tokens,
                "bytes_per_token": ratio,
            }));
        }
        println!();
    }
    write_json(arguments.json.as_deref(), &results.into())?;
    Ok(true)
}

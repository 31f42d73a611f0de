//! Counts the tokens of files under each embedded encoding.
//!
//! Run: `cargo run -p bytepair --example count -- README.md`

use bytepair::{ENCODINGS, Tokenizer};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for path in std::env::args().skip(1) {
        let content = std::fs::read(&path)?;
        for name in ENCODINGS {
            let tokens = Tokenizer::from_name(name)?.count(&content)?;
            let bytes_per_token = content.len() as f64 / tokens.max(1) as f64;
            println!("{path}: {name}: {tokens} tokens, {bytes_per_token:.2} bytes a token");
        }
    }
    Ok(())
}

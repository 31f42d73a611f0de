//! Learns merges from files, and prints the last ones.
//!
//! `cargo run --release -p bpe-train --example train_on_files -- 1000 README.md`

use std::error::Error;
use std::time::Instant;

use bpe_lexers::{Engine, Pattern, Spanner, SpecialMatcher};
use bpe_train::{Ties, TrainOptions, WordCounts, train};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let size = arguments.next().unwrap_or("400".into()).parse()?;
    let mut files: Vec<String> = arguments.collect();
    if files.is_empty() {
        files.push(concat!(env!("CARGO_MANIFEST_DIR"), "/README.md").into());
    }

    let start = Instant::now();
    let mut spanner = Spanner::new(vec![Pattern::gpt2().lexer(Engine::Auto)?]);
    let specials = SpecialMatcher::none();
    let mut counts = WordCounts::new();
    for file in &files {
        counts.add_text(&mut spanner, &specials, &std::fs::read(file)?)?;
    }
    println!("{} distinct words, {:.2?}", counts.len(), start.elapsed());

    let start = Instant::now();
    let options = TrainOptions::new(size).ties(Ties::HuggingFace);
    let training = train(&counts, &options)?;
    println!(
        "{} merges, {:.2?}",
        training.merges().len(),
        start.elapsed()
    );
    for merge in training.merges().rev().take(10) {
        let token = String::from_utf8_lossy(merge.token);
        println!("{:8} {token:?}", merge.frequency);
    }
    Ok(())
}

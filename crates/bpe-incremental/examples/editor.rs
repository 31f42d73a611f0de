//! What an editor does: a text is typed, taken back, and continued in two ways.
//!
//! cargo run -p bpe-incremental --example editor

use std::error::Error;
use std::sync::Arc;

use bpe_core::{CanonicalForm, Dictionary, Vocabulary};
use bpe_incremental::{History, LastTokenEngine};

fn main() -> Result<(), Box<dyn Error>> {
    let tokens = ["a", "b", "c", "ab", "abc", "bc"];
    let vocabulary = Vocabulary::new((0..).zip(tokens))?;
    let dictionary = Dictionary::from_merges(vocabulary, [(0, 1), (3, 2), (1, 2)])?;
    let engine = LastTokenEngine::new(&Arc::new(CanonicalForm::new(&dictionary)))?;

    let show = |what: &str, history: &History| {
        let ids = history.tokens(history.len());
        let words: Vec<&str> = ids.iter().map(|&id| tokens[id as usize]).collect();
        println!("{what:14} {}", words.join(" | "));
    };

    let mut history = engine.history();
    history.extend(b"abcab")?;
    show("typed", &history);
    history.truncate(2);
    show("taken back", &history);
    let mut other = history.fork();
    history.extend(b"cc")?;
    other.extend(b"bc")?;
    show("one way", &history);
    show("the other", &other);
    Ok(())
}

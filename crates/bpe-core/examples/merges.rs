//! Prints each token of a small dictionary with the rule that makes it, and encodes a word.
//!
//! Run: `cargo run -p bpe-core --example merges -- abcbc`

use std::sync::Arc;

use bpe_core::{Algorithm, CanonicalForm, Dictionary, TokenOrigin, Vocabulary};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let tokens = [
        (0, "a"),
        (1, "b"),
        (2, "c"),
        (3, "ab"),
        (4, "abc"),
        (5, "bc"),
    ];
    let dictionary = Dictionary::from_merges(Vocabulary::new(tokens)?, [(0, 1), (3, 2), (1, 2)])?;
    let canonical = Arc::new(CanonicalForm::new(&dictionary));
    for (id, bytes) in canonical.vocabulary().iter() {
        let text = String::from_utf8_lossy(bytes);
        match canonical.origin(id) {
            Some(TokenOrigin::Rule(rule)) => {
                println!(
                    "{id} {text}: {} and {}, priority {}",
                    rule.left, rule.right, rule.priority.0
                );
            }
            _ => println!("{id} {text}: an atom"),
        }
    }
    let word = std::env::args().nth(1).unwrap_or("abcbc".to_owned());
    let mut encoder = Algorithm::PriorityMerge.encoder(&canonical)?;
    let mut ids = Vec::new();
    encoder.encode_span(word.as_bytes(), &mut ids)?;
    println!("{word}: {ids:?}");
    Ok(())
}

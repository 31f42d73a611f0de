//! Which tokens may stand beside each other, in a dictionary small enough to see all of it.

use bpe_core::{CanonicalForm, Dictionary, Vocabulary};
use bpe_dfa::{PairRelation, Validator};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Example 1 of 002.
    let tokens = ["a", "b", "c", "aa", "ab", "bc", "abc", "bcab"];
    let vocabulary = Vocabulary::new((0..).zip(tokens))?;
    let merges = [(0, 0), (0, 1), (1, 2), (4, 2), (5, 4)];
    let canonical = CanonicalForm::new(&Dictionary::from_merges(vocabulary, merges)?);
    let pairs = PairRelation::new(&canonical)?;

    println!("what may follow (*) each token:");
    println!(
        "{:>6} {}",
        "",
        tokens.map(|token| format!("{token:>5}")).join("")
    );
    for (left, token) in (0..).zip(tokens) {
        let mark = |right| {
            if pairs.is_valid(left, right) {
                "*"
            } else {
                "."
            }
        };
        let row: String = (0..8).map(|right| format!("{:>5}", mark(right))).collect();
        println!("{token:>6} {row}");
    }
    println!(
        "{} states, {} valid pairs, {} tokens after which anything may come",
        pairs.state_count(),
        pairs.valid_pairs(),
        pairs.unrestricting_tokens()
    );

    let mut validator = Validator::new(&canonical)?;
    for ids in [&[3, 3, 0, 2, 5, 6][..], &[3, 3, 0, 2, 1, 2, 6]] {
        let texts: Vec<&str> = ids.iter().map(|&id| tokens[id as usize]).collect();
        match validator.validate(ids) {
            None => println!("{}: a tokenization", texts.join("|")),
            Some(mismatch) => println!("{}: {mismatch}", texts.join("|")),
        }
    }
    Ok(())
}

//! Draws the tokenizations of a regular language, as a graph for Graphviz.
//!
//! ```text
//! cargo run -p bpe-dfa --example draw -- '[ab]*' 'a a' 'b a' | dot -Tsvg > figure.svg
//! ```
//!
//! The first argument is a regular expression, the others are merges in the order of their priorities.
//! Single bytes of printable ASCII are tokens. Without arguments it draws figure 3 of 002.
//! With `--transducer` in front it draws the tokenizer that reads each byte once.

use std::collections::BTreeSet;
use std::error::Error;

use bpe_core::{CanonicalForm, Dictionary, Vocabulary};
use bpe_dfa::explicit::{ExplicitDfa, Limits, StringDfa, Transducer};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let as_transducer = arguments
        .first()
        .is_some_and(|first| first == "--transducer");
    if as_transducer {
        arguments.remove(0);
    }
    if arguments.is_empty() {
        arguments = ["[ab]*", "a a", "b a"].map(String::from).to_vec();
    }
    let (pattern, merges) = (&arguments[0], &arguments[1..]);

    let mut sides = Vec::new();
    for merge in merges {
        let merge = merge.split_once(' ');
        sides.push(merge.ok_or("a merge is two tokens with a blank between them")?);
    }
    let mut tokens: BTreeSet<String> = (' '..='~').map(String::from).collect();
    tokens.extend(sides.iter().map(|(left, right)| format!("{left}{right}")));
    let vocabulary = Vocabulary::new((0..).zip(tokens))?;
    let mut pairs = Vec::new();
    for (left, right) in sides {
        let id = |token: &str| {
            let id = vocabulary.id_of(token.as_bytes());
            id.ok_or_else(|| format!("no merge before makes {token:?}"))
        };
        pairs.push((id(left)?, id(right)?));
    }
    let form = CanonicalForm::new(&Dictionary::from_merges(vocabulary, pairs)?);

    let limits = Limits::default();
    let texts = StringDfa::from_regex(pattern, &limits)?;
    let dfa = ExplicitDfa::new(&texts, &form, &limits)?.minimize();
    if as_transducer {
        let transducer = Transducer::new(&dfa, &limits)?.determinize(&limits)?;
        println!("{}", transducer.minimize().dot());
    } else {
        println!("{}", dfa.dot());
    }
    Ok(())
}

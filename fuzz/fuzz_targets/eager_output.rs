//! A small proper dictionary, a text and continuations of it, all from the input: what eager output
//! hands out is in the tokens of each continuation, whatever the pieces, and so is what healing keeps.

#![no_main]

use std::sync::Arc;

use bpe_core::reference::Reference;
use bpe_core::{CanonicalForm, Dictionary, Vocabulary};
use bpe_incremental::{EagerEncoder, LastTokenEngine, TokenHealer, held_bytes_bound};
use libfuzzer_sys::fuzz_target;

/// Which sides the rules take, the text, what follows it, and how long the pieces are.
type Input = (Vec<(u8, u8)>, Vec<u8>, Vec<u8>, u8);

fuzz_target!(|input: Input| {
    let (steps, text, continuation, cut) = input;
    let mut tokens: Vec<Vec<u8>> = vec![b"a".to_vec(), b"b".to_vec(), b"c".to_vec()];
    let mut merges = Vec::new();
    for (left, right) in steps.into_iter().take(24) {
        let sides = [left, right].map(|side| usize::from(side) % tokens.len());
        let product = sides.map(|side| tokens[side].clone()).concat();
        if product.len() <= 12 && !tokens.contains(&product) {
            merges.push((sides[0] as u32, sides[1] as u32));
            tokens.push(product);
        }
    }
    let vocabulary = Vocabulary::new((0..).zip(&tokens)).expect("distinct");
    let dictionary = Dictionary::from_merges(vocabulary, merges).expect("valid");
    let canonical = Arc::new(CanonicalForm::new(&dictionary));
    let engine = LastTokenEngine::new(&canonical).expect("sides come before products");
    let bound = held_bytes_bound(&canonical).expect("proper");
    let reference = Reference::new(&dictionary);
    let letters =
        |bytes: &[u8]| -> Vec<u8> { bytes.iter().take(120).map(|byte| b'a' + byte % 3).collect() };
    let (text, continuation) = (letters(&text), letters(&continuation));
    let whole = [&text[..], &continuation].concat();
    let expected = reference.sentencepiece(&whole).expect("letters");

    let mut encoder = EagerEncoder::new(&engine);
    let mut given = Vec::new();
    for piece in text.chunks(1 + usize::from(cut)) {
        encoder.feed(piece, &mut given).expect("letters");
        assert!(encoder.pending_bytes() <= bound);
        assert!(expected.starts_with(&given));
    }
    let mut fork = encoder.clone();
    let mut forked = given.clone();
    encoder.finish(&mut given);
    assert_eq!(Some(given), reference.sentencepiece(&text));
    fork.feed(&continuation, &mut forked).expect("letters");
    fork.finish(&mut forked);
    assert_eq!(forked, expected);

    let healer = TokenHealer::new(&engine).expect("bytes");
    let healing = healer.heal(&text).expect("letters");
    let kept = healing.certain().len();
    assert_eq!(healing.certain(), &expected[..kept]);
    let mut at = healing.pending().start;
    for token in &expected[kept..] {
        if at > text.len() {
            break;
        }
        assert!(healing.allowed(at).contains(token));
        at += tokens[*token as usize].len();
    }
});

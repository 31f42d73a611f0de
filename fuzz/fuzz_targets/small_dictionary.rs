//! A small dictionary and a text, both from the input: every encoder equals the reference, improper
//! dictionaries included.

#![no_main]

use std::collections::BTreeSet;
use std::sync::Arc;

use bpe_core::reference::Reference;
use bpe_core::{Algorithm, CanonicalForm, Dictionary, Vocabulary};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (bool, Vec<(u8, u8, u8)>, Vec<u8>)| {
    let (by_ranks, steps, text) = input;
    let mut tokens: Vec<Vec<u8>> = vec![b"a".to_vec(), b"b".to_vec(), b"c".to_vec()];
    let mut merges = Vec::new();
    for (left, right, place) in steps.into_iter().take(24) {
        let left = tokens[usize::from(left) % tokens.len()].clone();
        let right = tokens[usize::from(right) % tokens.len()].clone();
        let product = [&left[..], &right].concat();
        if product.len() > 12 {
            continue;
        }
        if !tokens.contains(&product) {
            tokens.push(product);
        }
        merges.insert(usize::from(place) % (merges.len() + 1), (left, right));
    }
    let mut seen = BTreeSet::new();
    merges.retain(|merge| seen.insert(merge.clone()));
    // Ranks: an order that merges would not give.
    if by_ranks {
        tokens.sort_by_key(|token| {
            (
                token.len() > 1,
                token.iter().rev().copied().collect::<Vec<_>>(),
            )
        });
    }
    let entries = tokens
        .iter()
        .enumerate()
        .map(|(id, token)| (2 * id as u32, token));
    let vocabulary = Vocabulary::new(entries).expect("distinct");
    let dictionary = if by_ranks {
        Dictionary::from_ranks(vocabulary)
    } else {
        let ids: Vec<_> = merges
            .iter()
            .map(|(left, right)| (vocabulary.id_of(left), vocabulary.id_of(right)))
            .map(|(left, right)| (left.expect("a token"), right.expect("a token")))
            .collect();
        Dictionary::from_merges(vocabulary, ids)
    }
    .expect("valid");
    let text: Vec<u8> = text.iter().take(200).map(|byte| b'a' + byte % 3).collect();
    let expected = Reference::new(&dictionary)
        .sentencepiece(&text)
        .expect("letters");
    let canonical = Arc::new(CanonicalForm::new(&dictionary));
    for algorithm in Algorithm::ALL {
        let Ok(mut encoder) = algorithm.encoder(&canonical) else {
            continue; // Improper, and the encoder says so.
        };
        let mut tokens = Vec::new();
        encoder.encode_span(&text, &mut tokens).expect("letters");
        assert_eq!(tokens, expected, "{algorithm}");
    }
});

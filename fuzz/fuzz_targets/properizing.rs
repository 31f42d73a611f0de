//! A small dictionary in any order and a text, both from the input: where the order can be made
//! proper, both semantics of the new order and every encoder give what SentencePiece semantics gives
//! in the old one; where it cannot, the dictionary is improper.

#![no_main]

use std::collections::BTreeSet;

use bpe_core::properize::{Properization, Search};
use bpe_core::reference::Reference;
use bpe_core::{Algorithm, Dictionary, Vocabulary};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (Vec<(u8, u8, u8)>, Vec<u8>)| {
    let (steps, text) = input;
    let mut tokens: Vec<Vec<u8>> = vec![b"a".to_vec(), b"b".to_vec(), b"c".to_vec()];
    let mut merges = Vec::new();
    for (left, right, place) in steps.into_iter().take(16) {
        let sides = [left, right].map(|side| usize::from(side) % tokens.len());
        let product = sides.map(|side| tokens[side].clone()).concat();
        if product.len() > 12 {
            continue;
        }
        if !tokens.contains(&product) {
            tokens.push(product);
        }
        let merge = (sides[0] as u32, sides[1] as u32);
        merges.insert(usize::from(place) % (merges.len() + 1), merge);
    }
    let mut seen = BTreeSet::new();
    merges.retain(|merge| seen.insert(*merge));
    let vocabulary = Vocabulary::new((0..).zip(&tokens)).expect("distinct");
    let dictionary = Dictionary::from_merges(vocabulary, merges).expect("valid");
    let text: Vec<u8> = text.iter().take(80).map(|byte| b'a' + byte % 3).collect();
    let old = Reference::new(&dictionary);
    let expected = old.sentencepiece(&text).expect("letters");

    let properization = Properization::new(&dictionary);
    let Some(form) = properization.proper_form() else {
        let problem = properization.not_properizable().expect("one or the other");
        assert!(!properization.original_form().is_proper());
        for cycle in problem.cycles().iter().take(1) {
            if let Search::Found(found) = problem.difference(cycle, 6) {
                assert_eq!(old.sentencepiece(&found.text), Some(found.sentencepiece));
            }
        }
        return;
    };
    let mut rules: Vec<_> = form.rules().collect();
    rules.sort_by_key(|rule| rule.priority);
    let vocabulary = Vocabulary::new(form.vocabulary().iter()).expect("distinct");
    let merges = rules.iter().map(|rule| (rule.left, rule.right));
    let proper = Dictionary::from_merges(vocabulary, merges).expect("valid");
    let new = Reference::new(&proper);
    assert_eq!(new.standard(&text).as_ref(), Some(&expected));
    assert_eq!(new.sentencepiece(&text).as_ref(), Some(&expected));
    let mut ids = Vec::new();
    for algorithm in Algorithm::ALL {
        ids.clear();
        let mut encoder = algorithm.encoder(form).expect("proper");
        encoder.encode_span(&text, &mut ids).expect("letters");
        assert_eq!(ids, expected, "{algorithm:?}");
    }
});

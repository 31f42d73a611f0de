//! The lazy transducer gives the tokens of the reference, each as early as can be.

mod small;

use bpe_core::reference::Reference;
use bpe_core::{SpanEncoder, TokenId};
use bpe_dfa::LazyTransducer;
use small::{Random, canonical, dictionary_of, merge_lists, random_merges};

fn texts(longest: usize) -> Vec<Vec<u8>> {
    let of_length = |length: usize| {
        (0..1_usize << length).map(move |number| {
            let letter = |bit| b'a' + (number >> bit & 1) as u8;
            (0..length).map(letter).collect()
        })
    };
    (0..=longest).flat_map(of_length).collect()
}

#[test]
fn the_lazy_transducer_is_the_encoder_on_all_texts_of_twelve_letters() {
    for list in (0..=3).flat_map(merge_lists).step_by(19) {
        let dictionary = dictionary_of(&list);
        let form = canonical(&dictionary);
        if !form.is_proper() {
            continue;
        }
        let reference = Reference::new(&dictionary);
        // Enough for all states, and so few that the cache is dropped again and again.
        let mut large = LazyTransducer::new(&form, 1 << 12).expect("proper");
        let mut small = LazyTransducer::new(&form, 2).expect("proper");
        let mut tokens = Vec::new();
        for text in texts(12) {
            let expected = reference.sentencepiece(&text).expect("letters");
            for transducer in [&mut large, &mut small] {
                tokens.clear();
                transducer.encode_span(&text, &mut tokens).expect("letters");
                assert_eq!(tokens, expected, "{text:?} of {dictionary:?}");
            }
        }
        assert_eq!(large.stats().resets, 0);
        assert!(small.stats().states <= 3);
    }
}

#[test]
fn tokens_come_as_soon_as_all_continuations_agree_on_them() {
    let continuations = texts(9);
    let mut held = 0;
    for list in merge_lists(3).into_iter().step_by(97) {
        let dictionary = dictionary_of(&list);
        let form = canonical(&dictionary);
        if !form.is_proper() {
            continue;
        }
        let reference = Reference::new(&dictionary);
        let mut transducer = LazyTransducer::new(&form, 1 << 12).expect("proper");
        for text in texts(6) {
            let mut certain: Vec<TokenId> = Vec::new();
            for &byte in &text {
                transducer.push(byte, &mut certain).expect("a letter");
            }
            let pending = transducer.pending().len();
            transducer.finish(&mut Vec::new());
            let mut common = reference.sentencepiece(&text).expect("letters");
            for continuation in &continuations {
                let tokens = reference.sentencepiece(&[&text[..], continuation].concat());
                let tokens = tokens.expect("letters");
                let same = common
                    .iter()
                    .zip(&tokens)
                    .take_while(|(a, b)| a == b)
                    .count();
                common.truncate(same);
            }
            assert_eq!(certain, common, "{text:?} of {dictionary:?}");
            let bytes = dictionary.vocabulary().decode_bytes(&certain);
            assert_eq!(bytes.expect("tokens").len() + pending, text.len());
            held = held.max(pending);
        }
    }
    assert!(held > 2, "{held}");
}

#[test]
fn random_dictionaries_and_long_texts_give_the_tokens_of_the_reference() {
    let mut random = Random(11);
    for trial in 0..300_u32 {
        let merges = random_merges(&mut random, 1 + (trial % 3) as u8, 24);
        let dictionary = dictionary_of(&merges);
        let form = canonical(&dictionary);
        if !form.is_proper() {
            continue;
        }
        let reference = Reference::new(&dictionary);
        let limit = 2 + random.below(100);
        let mut transducer = LazyTransducer::new(&form, limit).expect("proper");
        for _ in 0..10 {
            let letter = |random: &mut Random| b'a' + random.below(2) as u8;
            let text: Vec<u8> = (0..random.below(200))
                .map(|_| letter(&mut random))
                .collect();
            let mut tokens = vec![77];
            transducer.encode_span(&text, &mut tokens).expect("letters");
            assert_eq!(Some(tokens.split_off(1)), reference.sentencepiece(&text));
        }
        let mut tokens = vec![77];
        let error = transducer.encode_span(b"abz", &mut tokens).expect_err("z");
        assert_eq!((error.byte_offset(), tokens), (2, vec![77]));
    }
}

//! The tokens of every prefix are those of the reference.

mod support;

use std::collections::BTreeSet;

use bpe_core::reference::Reference;
use bpe_core::{Atoms, Dictionary, SpanEncoder, TokenId, Vocabulary};
use bpe_incremental::descent::Descent;
use bpe_incremental::{History, IncrementalEncoder, LastTokenEngine};
use proptest::prelude::*;
use support::{Merge, canonical, dictionary_of, merge_lists, tokens_of};

/// Walks all texts over `letters` up to a length, one byte pushed and taken away at a time, and
/// compares the tokens of each.
fn check_all_texts(
    history: &mut History,
    reference: &Reference<'_>,
    text: &mut Vec<u8>,
    left: u32,
) {
    let expected = reference.standard(text).expect("letters are tokens");
    assert_eq!(history.tokens(text.len()), expected, "{text:?}");
    assert_eq!(history.len(), text.len());
    if left == 0 {
        return;
    }
    for letter in *b"ab" {
        text.push(letter);
        let last = history.push(letter).expect("a token");
        assert_eq!(
            history.last_token(text.len()).map(|token| token.id),
            Some(last)
        );
        check_all_texts(history, reference, text, left - 1);
        text.pop();
        history.truncate(text.len());
    }
}

/// The engine in the layout that it chooses, and in the one for every dictionary.
fn both_layouts(dictionary: &Dictionary) -> [LastTokenEngine; 2] {
    let canonical = canonical(dictionary);
    let engines = [
        LastTokenEngine::new(&canonical),
        LastTokenEngine::new_wide(&canonical),
    ];
    engines.map(|engine| engine.expect("proper"))
}

#[test]
fn all_proper_dictionaries_of_three_merges_give_the_tokens_of_the_reference() {
    let mut proper = 0;
    for list in (0..=3).flat_map(merge_lists) {
        let dictionary = dictionary_of(&list);
        if !dictionary.is_proper() {
            continue;
        }
        proper += 1;
        let reference = Reference::new(&dictionary);
        let descent = Descent::new(&canonical(&dictionary)).expect("proper");
        for number in 0..1 << 9 {
            let letter = |bit: u32| b'a' + (number >> bit & 1) as u8;
            let text: Vec<u8> = (0..9).map(letter).collect();
            let last = descent.last_tokens(&text).expect("tokens");
            for len in 1..=text.len() {
                let expected = reference.standard(&text[..len]).expect("tokens");
                assert_eq!(Some(&last[len - 1]), expected.last());
            }
        }
        for engine in both_layouts(&dictionary) {
            check_all_texts(&mut engine.history(), &reference, &mut Vec::new(), 10);
        }
    }
    // Each merge joins any two of the tokens so far: 2, 3, then 4 of them.
    assert_eq!(proper, 1 + 4 + 4 * (9 - 1) + 4 * (9 - 1) * (16 - 2));
}

/// Merges of random tokens, each a join of two that are there.
fn dictionaries(letters: u8, most: usize) -> impl Strategy<Value = Vec<Merge>> {
    prop::collection::vec((any::<usize>(), any::<usize>()), 0..most).prop_map(move |pairs| {
        let mut tokens: Vec<Vec<u8>> = (0..letters).map(|letter| vec![b'a' + letter]).collect();
        let mut merges = Vec::new();
        for (left, right) in pairs {
            // Late tokens more often than early ones: long chains.
            let pick = |number: usize| {
                let wide = number % (2 * tokens.len());
                tokens[wide.min(tokens.len() - 1)].clone()
            };
            let merge = (pick(left), pick(right));
            let product = [&merge.0[..], &merge.1].concat();
            if product.len() <= 40 && !tokens.contains(&product) {
                tokens.push(product);
                merges.push(merge);
            }
        }
        merges
    })
}

fn dictionary_over(letters: u8, merges: &[Merge]) -> Dictionary {
    let mut tokens: BTreeSet<Vec<u8>> = tokens_of(merges);
    tokens.extend((0..letters).map(|letter| vec![b'a' + letter]));
    let id = |token: &[u8]| {
        let place = tokens.iter().position(|other| other == token);
        7 * place.expect("a token") as TokenId
    };
    let vocabulary = Vocabulary::new(tokens.iter().map(|token| (id(token), token)));
    let pairs: Vec<_> = merges
        .iter()
        .map(|(left, right)| (id(left), id(right)))
        .collect();
    Dictionary::from_merges(vocabulary.expect("valid"), pairs).expect("valid")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn larger_dictionaries_give_the_tokens_of_the_reference(
        merges in dictionaries(3, 60),
        text in prop::collection::vec(b'a'..b'd', 0..120),
    ) {
        let dictionary = dictionary_over(3, &merges);
        prop_assert!(dictionary.is_proper());
        let reference = Reference::new(&dictionary);
        for engine in both_layouts(&dictionary) {
            let mut history = engine.history();
            history.extend(&text).expect("letters are tokens");
            let counts = history.token_counts();
            for len in 0..=text.len() {
                let expected = reference.sentencepiece(&text[..len]).expect("tokens");
                prop_assert_eq!(history.tokens(len), &expected[..]);
                prop_assert_eq!(history.token_count(len), expected.len());
                prop_assert_eq!(counts[len], expected.len());
            }
            let mut tokens = vec![99];
            IncrementalEncoder::new(&engine)
                .encode_span(&text, &mut tokens)
                .expect("tokens");
            prop_assert_eq!(&tokens[1..], history.tokens(text.len()));
        }
    }

    #[test]
    fn tokens_made_of_runs_give_the_tokens_of_the_reference(
        merges in dictionaries(1, 40),
        len in 0_usize..200,
    ) {
        let dictionary = dictionary_over(2, &merges);
        let reference = Reference::new(&dictionary);
        let text = vec![b'a'; len];
        for engine in both_layouts(&dictionary) {
            let mut history = engine.history();
            history.extend(&text).expect("tokens");
            for len in 0..=len {
                let expected = reference.standard(&text[..len]).expect("tokens");
                prop_assert_eq!(history.tokens(len), expected);
            }
        }
    }

    #[test]
    fn the_depth_covers_every_later_token_and_grows_by_one_at_most(
        merges in dictionaries(3, 40),
        text in prop::collection::vec(b'a'..b'd', 0..60),
    ) {
        let dictionary = dictionary_over(3, &merges);
        let canonical = canonical(&dictionary);
        let [flat, wide] = both_layouts(&dictionary);
        let mut history = flat.history();
        let mut of_wide = wide.history();
        let mut before = 0;
        for (at, &byte) in text.iter().enumerate() {
            history.push(byte).expect("a token");
            of_wide.push(byte).expect("a token");
            prop_assert_eq!(history.depth(), of_wide.depth());
            let text = &text[..=at];
            // The longest suffix that a canonical token goes on from, by looking at all tokens.
            let goes_on = |suffix: &[u8]| {
                canonical.vocabulary().iter().any(|(id, token)| {
                    canonical.origin(id) != Some(bpe_core::TokenOrigin::Unreachable)
                        && token.len() > suffix.len()
                        && token.starts_with(suffix)
                })
            };
            let longest = (0..=text.len()).rev().find(|len| goes_on(&text[text.len() - len..]));
            prop_assert_eq!(Some(history.depth()), longest);
            prop_assert!(history.depth() <= before + 1);
            prop_assert_eq!(history.depth_at(at + 1), Some(history.depth()));
            before = history.depth();
        }
    }
}

/// A dictionary over characters: `known` are tokens, `merges` join them, and the bytes in `fallback`
/// have fallback tokens.
fn over_characters(fallback: &[u8], fuse_unknown: bool, unknown: bool) -> Dictionary {
    let known = ["<unk>", "a", "é", "世", "🎉", "aé", "é世", "aé世", "世世"];
    let tokens = (0..).zip(known);
    let fallback = fallback.iter().map(|&byte| (100 + u32::from(byte), byte));
    let vocabulary = Vocabulary::with_byte_fallback(tokens, fallback).expect("valid");
    Dictionary::from_merges(vocabulary, [(1, 2), (2, 3), (5, 3), (3, 3)])
        .and_then(|dictionary| {
            dictionary.with_atoms(Atoms::Characters {
                unknown: unknown.then_some(0),
                fuse_unknown,
            })
        })
        .expect("valid")
}

#[test]
fn every_prefix_of_characters_is_what_the_reference_makes_of_its_bytes() {
    let all: Vec<u8> = (0..=255).collect();
    let some: Vec<u8> = "世è".bytes().chain([0xF0, b'x']).collect();
    let pieces: [&[u8]; 12] = [
        b"a",
        "é".as_bytes(),
        "世".as_bytes(),
        "🎉".as_bytes(),
        b"x",
        "è".as_bytes(),
        "丗".as_bytes(),
        b"\xFF",
        b"\xE4\xB8",
        b"\xC3",
        b"\xF0\x9F\x8E",
        b"<unk>",
    ];
    let mut random = support::Random(3);
    let mut prefixes = 0;
    for (fallback, fuse, unknown) in [
        (&all[..], false, false),
        (&all, true, true),
        (&some, true, true),
        (&some, false, true),
        (&[], true, true),
        (&[], false, true),
    ] {
        let dictionary = over_characters(fallback, fuse, unknown);
        let reference = Reference::new(&dictionary);
        for engine in both_layouts(&dictionary) {
            let mut encoder = IncrementalEncoder::new(&engine);
            let mut history = engine.history();
            for _ in 0..300 {
                let count = random.below(9);
                let text: Vec<u8> = (0..count)
                    .flat_map(|_| pieces[random.below(pieces.len())])
                    .copied()
                    .collect();
                history.clear();
                history.extend(&text).expect("complete");
                for len in 0..=text.len() {
                    let expected = reference.sentencepiece(&text[..len]).expect("complete");
                    assert_eq!(history.tokens(len), expected, "{:?} {fuse}", &text[..len]);
                    assert_eq!(history.token_counts()[len], expected.len());
                    prefixes += 1;
                }
                let mut start = 0;
                for token in history.placed_tokens(text.len()) {
                    assert_eq!(token.start, start);
                    start = token.end;
                }
                assert_eq!(start, text.len());
                let mut tokens = Vec::new();
                encoder.encode_span(&text, &mut tokens).expect("complete");
                assert_eq!(tokens, history.tokens(text.len()));
                let cut = random.below(text.len() + 1);
                history.truncate(cut);
                history.extend(&text[cut..]).expect("complete");
                assert_eq!(tokens, history.tokens(text.len()));
            }
        }
    }
    assert!(prefixes > 10_000);
    let incomplete = over_characters(&some, false, false);
    let error = LastTokenEngine::new(&canonical(&incomplete)).expect_err("incomplete");
    assert!(!error.is_improper() && !error.is_too_large());
}

#[test]
fn a_byte_that_is_no_token_is_an_error_that_changes_nothing() {
    let dictionary = dictionary_of(&[(b"a".to_vec(), b"b".to_vec())]);
    let engine = LastTokenEngine::new(&canonical(&dictionary)).expect("proper");
    let mut history = engine.history();
    history.extend(b"ba").expect("tokens");
    assert_eq!(history.push(b'x').expect_err("no token").byte_offset(), 2);
    assert_eq!(
        history.extend(b"bax").expect_err("no token").byte_offset(),
        4
    );
    assert_eq!(history.len(), 2);
    history.push(b'b').expect("a token");
    let reference = Reference::new(&dictionary);
    assert_eq!(Some(history.tokens(3)), reference.sentencepiece(b"bab"));

    let mut tokens = vec![5];
    let mut encoder = IncrementalEncoder::new(&engine);
    let error = encoder
        .encode_span(b"abxa", &mut tokens)
        .expect_err("no token");
    assert_eq!((error.byte_offset(), &tokens[..]), (2, &[5][..]));
    encoder.encode_span(b"bab", &mut tokens).expect("tokens");
    assert_eq!(tokens[1..], history.tokens(3));
}

#[test]
fn improper_dictionaries_are_refused() {
    let (a, b) = (b"a".to_vec(), b"b".to_vec());
    let dictionary = dictionary_of(&[(b"ab".to_vec(), a.clone()), (a, b)]);
    let error = LastTokenEngine::new(&canonical(&dictionary)).expect_err("improper");
    assert!(error.is_improper());
}

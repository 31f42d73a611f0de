//! A token automaton accepts the canonical tokenizations of its language and nothing else.

mod small;

use std::sync::Arc;

use bpe_core::reference::Reference;
use bpe_core::{Atoms, CanonicalForm, Dictionary, TokenId};
use bpe_dfa::explicit::{ExplicitDfa, Limits, StringDfa, WindowValidator};
use bpe_dfa::{LazyTransducer, RelationError, TokenDfa, TokenState, Validator};
use small::{Random, canonical, dictionary_of, random_merges};

const PATTERNS: [&str; 8] = [
    "(a|b)*",
    "(ab)*",
    "a*b*",
    "a{3}b|b+a",
    "(aab|b)*a?",
    "",
    "(a|b){4}",
    "b(a|bb)*b",
];

/// All texts over a and b of up to `longest` letters.
fn texts(longest: usize) -> Vec<Vec<u8>> {
    let of_length = |length: usize| {
        (0..1_usize << length).map(move |number| {
            (0..length)
                .map(|bit| b'a' + (number >> bit & 1) as u8)
                .collect()
        })
    };
    (0..=longest).flat_map(of_length).collect()
}

#[test]
fn the_canonical_tokenizations_of_the_language_are_accepted_and_no_other_sequence() {
    let mut random = Random(61);
    let (mut accepted, mut refused) = (0, 0);
    for round in 0..200 {
        let dictionary = dictionary_of(&random_merges(&mut random, 2, 10));
        let form = canonical(&dictionary);
        if !form.is_proper() {
            continue;
        }
        let language = StringDfa::from_regex(PATTERNS[round % 8], &Limits::default());
        let language = language.expect("small");
        let mut dfa = TokenDfa::new(&form, language.clone()).expect("proper");
        // State by state, by the construction of 002: the same automaton.
        let limits = Limits::default();
        let merged = ExplicitDfa::new(&language, &form, &limits).expect("small");
        let explored = dfa.explicit(&limits).expect("small");
        assert_eq!(explored, merged.trim().minimize());
        let reference = Reference::new(&dictionary);
        for text in texts(8) {
            let tokens = reference.sentencepiece(&text).expect("letters");
            assert_eq!(dfa.accepts(&tokens), language.accepts(&text));
            accepted += u32::from(language.accepts(&text));
        }
        // Random walks: the mask says what may come, and what is reached is canonical.
        let ids: Vec<TokenId> = dictionary
            .vocabulary()
            .iter()
            .map(|token| token.0)
            .collect();
        for _ in 0..30 {
            let mut state = dfa.start();
            let mut tokens = Vec::new();
            for _ in 0..6 {
                let allowed = dfa.allowed_tokens(&state);
                let possible: Vec<TokenId> = ids
                    .iter()
                    .copied()
                    .filter(|&id| dfa.next(&state, id).is_some())
                    .collect();
                assert_eq!(allowed, possible);
                refused += ids.len() - allowed.len();
                let text = dictionary
                    .vocabulary()
                    .decode_bytes(&tokens)
                    .expect("tokens");
                assert_eq!(reference.sentencepiece(&text), Some(tokens.clone()));
                assert_eq!(dfa.is_accepting(&state), language.accepts(&text));
                if allowed.is_empty() {
                    break;
                }
                let token = allowed[random.below(allowed.len())];
                state = dfa.next(&state, token).expect("allowed");
                tokens.push(token);
            }
        }
    }
    assert!(
        accepted > 10_000 && refused > 10_000,
        "{accepted} {refused}"
    );
}

/// 002 section 5: where k tokens decide the state, windows of k + 1 decide the sequence.
#[test]
fn windows_of_k_and_one_tokens_decide_k_local_languages() {
    let mut random = Random(71);
    let limits = Limits::default();
    let (mut wide, mut not_local, mut invalid) = (0, 0, 0);
    for round in 0..80 {
        let dictionary = dictionary_of(&random_merges(&mut random, 2, 5));
        let form = canonical(&dictionary);
        let language = StringDfa::from_regex(PATTERNS[round % 8], &limits).expect("small");
        let dfa = ExplicitDfa::new(&language, &form, &limits);
        let dfa = dfa.expect("small").trim().minimize();
        let Some(validator) = WindowValidator::new(&dfa, &limits).expect("small") else {
            not_local += 1;
            continue;
        };
        wide += u32::from(validator.window() > 2);
        let ids: Vec<TokenId> = dictionary
            .vocabulary()
            .iter()
            .map(|token| token.0)
            .collect();
        let mut sequences = vec![Vec::new()];
        for _ in 0..5 {
            for tokens in &sequences {
                assert_eq!(
                    validator.accepts(tokens),
                    dfa.accepts(tokens.iter().copied())
                );
                let dies = |&count: &usize| {
                    let beginning = tokens.iter().copied().take(count + 1);
                    dfa.walk(dfa.start(), beginning).is_none()
                };
                let expected = (0..tokens.len()).find(dies);
                assert_eq!(validator.first_invalid(tokens), expected, "{tokens:?}");
                invalid += u32::from(expected.is_some());
            }
            // Those that die early do so with whatever follows.
            sequences.retain(|tokens| dfa.walk(dfa.start(), tokens.iter().copied()).is_some());
            let longer = |tokens: &Vec<TokenId>| {
                let tokens = tokens.clone();
                ids.iter().map(move |&id| [&tokens[..], &[id]].concat())
            };
            sequences = sequences.iter().flat_map(longer).collect();
        }
    }
    assert!(
        wide > 10 && not_local > 0 && invalid > 1_000,
        "{wide} {not_local} {invalid}"
    );
}

#[test]
fn sequences_are_counted_and_sampled_by_length() {
    let mut random = Random(67);
    let mut samples = 0;
    for round in 0..60 {
        let dictionary = dictionary_of(&random_merges(&mut random, 2, 8));
        let form = canonical(&dictionary);
        if !form.is_proper() {
            continue;
        }
        let language = StringDfa::from_regex(PATTERNS[round % 8], &Limits::default());
        let language = language.expect("small");
        let mut dfa = TokenDfa::new(&form, language).expect("proper");
        let ids: Vec<TokenId> = dictionary
            .vocabulary()
            .iter()
            .map(|token| token.0)
            .collect();
        let mut sequences = vec![Vec::new()];
        for length in 0..=3 {
            let accepted = sequences
                .iter()
                .filter(|tokens| dfa.accepts(tokens))
                .count();
            assert_eq!(
                dfa.count(&dfa.start(), length, 1 << 20),
                Some(accepted as u128)
            );
            samples += check_samples(&mut dfa, &sequences, length, &mut random);
            sequences = sequences
                .iter()
                .flat_map(|tokens: &Vec<TokenId>| {
                    ids.iter().map(|&id| [&tokens[..], &[id]].concat())
                })
                .collect();
        }
    }
    assert!(samples > 5_000, "{samples}");
}

/// Each accepted sequence is drawn, all of them about as often. Returns how many were drawn.
fn check_samples(
    dfa: &mut TokenDfa,
    sequences: &[Vec<TokenId>],
    length: usize,
    random: &mut Random,
) -> usize {
    let accepted: Vec<&Vec<TokenId>> = sequences
        .iter()
        .filter(|tokens| dfa.accepts(tokens))
        .collect();
    let drawn = dfa.sequences(&dfa.start(), length, 1 << 20).expect("few");
    let mut bits = || {
        let half = |random: &mut Random| random.below(1 << 31) as u64;
        half(random) << 62 | half(random) << 31 | half(random)
    };
    if accepted.is_empty() {
        assert_eq!(drawn.sample(bits), None);
        return 0;
    }
    const EACH: usize = 40;
    let mut counts = std::collections::HashMap::new();
    for _ in 0..EACH * accepted.len().min(30) {
        let tokens = drawn.sample(&mut bits).expect("one");
        assert!(accepted.contains(&&tokens));
        *counts.entry(tokens).or_insert(0) += 1;
    }
    if accepted.len() <= 30 {
        assert_eq!(counts.len(), accepted.len());
        // Six standard deviations of about 40.
        assert!(
            counts.values().all(|&count| (2..=80).contains(&count)),
            "{counts:?}"
        );
    }
    counts.values().sum()
}

#[test]
fn an_automaton_beyond_the_limits_is_an_error() {
    let dictionary = dictionary_of(&[(b"a".to_vec(), b"b".to_vec())]);
    let language = StringDfa::from_regex("(a|b){50}", &Limits::default()).expect("small");
    let mut dfa = TokenDfa::new(&canonical(&dictionary), language).expect("proper");
    let limits = Limits {
        states: 20,
        ..Limits::default()
    };
    assert_eq!(
        dfa.explicit(&limits).expect_err("50 letters").limit(),
        Some(20)
    );
    assert_eq!(dfa.count(&dfa.start(), 40, 1), None);
}

#[test]
fn what_must_come_is_forced_and_dead_ends_are_found() {
    let dictionary = dictionary_of(&[(b"a".to_vec(), b"b".to_vec())]);
    let form = canonical(&dictionary);
    let id = |text: &str| {
        dictionary
            .vocabulary()
            .id_of(text.as_bytes())
            .expect("a token")
    };
    let language = StringDfa::from_regex("abb", &Limits::default()).expect("small");
    let mut dfa = TokenDfa::new(&form, language).expect("proper");
    let start: TokenState = dfa.start();
    assert_eq!(dfa.can_complete(&start, 0), None);
    assert_eq!(dfa.can_complete(&start, 100), Some(true));
    // After "a" the text could go on with "b", but "ab" is one token.
    let dead = dfa.next(&start, id("a")).expect("a prefix of the text");
    assert_eq!(dfa.can_complete(&dead, 100), Some(false));
    let ab = dfa.next(&start, id("ab")).expect("a token");
    assert_eq!(dfa.forced(&ab, 10), [id("b")]);
    // The empty language.
    let language = StringDfa::new(1, 0, [], [], &Limits::default()).expect("a state");
    let mut dfa = TokenDfa::new(&form, language).expect("proper");
    assert!(dfa.allowed_tokens(&dfa.start()).is_empty());
    assert_eq!(dfa.can_complete(&dfa.start(), 100), Some(false));
    assert!(!dfa.accepts(&[]));
}

/// The mask without dead ends against the automaton of 002, trimmed: what is left of it leads to an end.
#[test]
fn tokens_that_lead_to_a_dead_end_are_left_out_where_that_is_asked_for() {
    let mut random = Random(73);
    let limits = Limits::default();
    let (mut kept, mut dropped) = (0, 0);
    for round in 0..200 {
        let dictionary = dictionary_of(&random_merges(&mut random, 2, 8));
        let form = canonical(&dictionary);
        if !form.is_proper() {
            continue;
        }
        let language = StringDfa::from_regex(DEAD_ENDS[round % 4], &limits).expect("small");
        let explicit = ExplicitDfa::new(&language, &form, &limits);
        let explicit = explicit.expect("small").trim();
        let mut dfa = TokenDfa::new(&form, language).expect("proper");
        let ids: Vec<TokenId> = dictionary
            .vocabulary()
            .iter()
            .map(|token| token.0)
            .collect();
        let mut mask = vec![0; dfa.words()];
        for _ in 0..20 {
            let mut state = dfa.start();
            let mut tokens: Vec<TokenId> = Vec::new();
            for _ in 0..5 {
                assert!(dfa.allowed_to_complete(&state, &mut mask, 1_000));
                let before = explicit.walk(explicit.start(), tokens.iter().copied());
                for &id in &ids {
                    let found = mask[id as usize / 64] >> (id % 64) & 1 == 1;
                    let expected = before
                        .filter(|_| !explicit.is_empty())
                        .and_then(|before| explicit.walk(before, [id]));
                    assert_eq!(found, expected.is_some(), "{tokens:?} {id}");
                    kept += u32::from(found);
                    dropped += u32::from(!found && dfa.next(&state, id).is_some());
                }
                let allowed = dfa.allowed_tokens(&state);
                if allowed.is_empty() {
                    break;
                }
                let token = allowed[random.below(allowed.len())];
                state = dfa.next(&state, token).expect("allowed");
                tokens.push(token);
            }
        }
    }
    assert!(kept > 5_000 && dropped > 500, "{kept} {dropped}");
    // Where the search may not go anywhere, what it would have found is left in.
    let dictionary = dictionary_of(&[(b"a".to_vec(), b"b".to_vec())]);
    let language = StringDfa::from_regex("abbabb", &limits).expect("small");
    let mut dfa = TokenDfa::new(&canonical(&dictionary), language).expect("proper");
    let ab = dictionary.vocabulary().id_of(b"ab").expect("a token");
    let mut mask = vec![0; dfa.words()];
    assert!(!dfa.allowed_to_complete(&dfa.start(), &mut mask, 0));
    assert_eq!(mask[ab as usize / 64] >> (ab % 64) & 1, 1);
}

/// Languages in which merges make dead ends.
const DEAD_ENDS: [&str; 4] = [
    "abb|aab|bab",
    "(ab|ba)?(aab|bba){2}",
    "a?b(ab)*a",
    "(aab|abb){1,3}",
];

/// Characters that no token stands for, and byte tokens for them, take no part in merges.
#[test]
fn dictionaries_over_characters_are_refused() {
    let dictionary = dictionary_of(&[(b"a".to_vec(), b"b".to_vec())]);
    let vocabulary = dictionary.vocabulary().as_ref().clone();
    let id = |text: &[u8]| vocabulary.id_of(text).expect("a token");
    let merges = [(id(b"a"), id(b"b"))];
    let atoms = Atoms::Characters {
        unknown: None,
        fuse_unknown: false,
    };
    let dictionary = Dictionary::from_merges(vocabulary, merges).expect("merges");
    let dictionary = dictionary.with_atoms(atoms).expect("characters");
    let form = Arc::new(CanonicalForm::new(&dictionary));
    let language = StringDfa::universal();
    let refused = |error: RelationError| {
        assert!(
            error.is_over_characters() && !error.is_improper(),
            "{error}"
        );
        assert!(error.to_string().contains("unknown characters"), "{error}");
    };
    refused(TokenDfa::new(&form, language).expect_err("over characters"));
    refused(bpe_dfa::equivalent(&form, &form).expect_err("over characters"));
    refused(Validator::new(&form).expect_err("over characters"));
    refused(LazyTransducer::new(&form, 100).expect_err("over characters"));
}

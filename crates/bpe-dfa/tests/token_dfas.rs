//! A token automaton accepts the canonical tokenizations of its language and nothing else.

mod small;

use bpe_core::TokenId;
use bpe_core::reference::Reference;
use bpe_dfa::explicit::{ExplicitDfa, Limits, StringDfa};
use bpe_dfa::{TokenDfa, TokenState};
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
                let allowed = dfa.allowed_tokens(state);
                let possible: Vec<TokenId> = ids
                    .iter()
                    .copied()
                    .filter(|&id| dfa.next(state, id).is_some())
                    .collect();
                assert_eq!(allowed, possible);
                refused += ids.len() - allowed.len();
                let text = dictionary
                    .vocabulary()
                    .decode_bytes(&tokens)
                    .expect("tokens");
                assert_eq!(reference.sentencepiece(&text), Some(tokens.clone()));
                assert_eq!(dfa.is_accepting(state), language.accepts(&text));
                if allowed.is_empty() {
                    break;
                }
                let token = allowed[random.below(allowed.len())];
                state = dfa.next(state, token).expect("allowed");
                tokens.push(token);
            }
        }
    }
    assert!(
        accepted > 10_000 && refused > 10_000,
        "{accepted} {refused}"
    );
}

#[test]
fn sequences_are_counted_by_length() {
    let mut random = Random(67);
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
                dfa.count(dfa.start(), length, 1 << 20),
                Some(accepted as u128)
            );
            sequences = sequences
                .iter()
                .flat_map(|tokens: &Vec<TokenId>| {
                    ids.iter().map(|&id| [&tokens[..], &[id]].concat())
                })
                .collect();
        }
    }
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
    assert_eq!(dfa.count(dfa.start(), 40, 1), None);
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
    assert_eq!(dfa.can_complete(start, 100), Some(true));
    // After "a" the text could go on with "b", but "ab" is one token.
    let dead = dfa.next(start, id("a")).expect("a prefix of the text");
    assert_eq!(dfa.can_complete(dead, 100), Some(false));
    let ab = dfa.next(start, id("ab")).expect("a token");
    assert_eq!(dfa.forced(ab, 10), [id("b")]);
    assert_eq!(dfa.can_complete(start, 0), None);
    // The empty language.
    let language = StringDfa::new(1, 0, [], [], &Limits::default()).expect("a state");
    let mut dfa = TokenDfa::new(&form, language).expect("proper");
    assert!(dfa.allowed_tokens(dfa.start()).is_empty());
    assert_eq!(dfa.can_complete(dfa.start(), 100), Some(false));
    assert!(!dfa.accepts(&[]));
}

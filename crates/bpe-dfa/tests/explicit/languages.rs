//! Theorem 1 against the reference tokenizer: language equality, both directions; Theorem 2's bound.

use std::collections::BTreeSet;

use bpe_core::{Atoms, CanonicalForm, Dictionary, Vocabulary};
use bpe_dfa::explicit::{ExplicitDfa, Limits, StringDfa};
use proptest::prelude::*;
use regex_automata::nfa::thompson::pikevm::PikeVM;
use regex_automata::util::syntax;
use regex_automata::{Input, nfa::thompson};

use super::definitions::languages;
use super::oracle::{Fixture, accepted, fixtures, words};

fn limits() -> Limits {
    Limits::default()
}

/// The tokenizations of the texts, by the reference, are exactly what the automaton accepts; it has no
/// more states than Theorem 2 allows.
fn check(fixture: &Fixture, letters: &str, texts: &StringDfa, longest: usize) {
    let dfa = ExplicitDfa::new(texts, &fixture.form, &limits()).expect("small");
    let mut words = words(letters, longest);
    words.retain(|text| texts.accepts(text));
    let expected = fixture.references(words.iter().map(|text| &text[..]));
    let expected = BTreeSet::from_iter(expected);
    assert_eq!(
        accepted(&dfa, longest),
        expected,
        "{:?}",
        fixture.dictionary.rules()
    );
    let base = ExplicitDfa::base(texts, &fixture.form, &limits()).expect("small");
    let degree = base.locality_degree(1, &limits()).expect("small");
    assert!(dfa.state_count() <= base.state_count() + fixture.form.rule_count() * degree);
    assert!(dfa.trim().state_count() >= dfa.minimize().state_count());
}

const PATTERNS: [&str; 12] = [
    "(?:a|b)*",
    "",
    "a*",
    "(?:ab)*",
    "[ab]*aa[ab]*",
    "(?:a|ba)*b?",
    "a{3,7}",
    "[ab]{0,9}b",
    "(?:aab|b)*a?",
    "[ab]*[^ab]",
    "(?:a|b|ab)*bab",
    "[a&&b]",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn a_regular_expression_gives_the_reference_tokenizations(fixture in fixtures("ab", 7)) {
        for pattern in PATTERNS {
            check(&fixture, "ab", &StringDfa::from_regex(pattern, &limits()).expect("a pattern"), 9);
        }
    }

    #[test]
    fn an_automaton_gives_the_reference_tokenizations(fixture in fixtures("ab", 7), texts in languages()) {
        check(&fixture, "ab", &texts, 9);
        check(&fixture, "ab", &texts.minimize(), 9);
    }

    #[test]
    fn three_letters_give_the_reference_tokenizations(fixture in fixtures("abc", 6)) {
        check(&fixture, "abc", &StringDfa::universal(), 6);
        check(&fixture, "abc", &StringDfa::from_regex("(?:ab*c|cb)*", &limits()).expect("a pattern"), 7);
    }

    #[test]
    fn trimming_after_each_merge_changes_no_language(fixture in fixtures("ab", 6), texts in languages()) {
        let whole = ExplicitDfa::new(&texts, &fixture.form, &limits()).expect("small");
        let base = ExplicitDfa::base(&texts, &fixture.form, &limits()).expect("small");
        let mut trimmed = base.trim();
        for rule in fixture.dictionary.rules() {
            trimmed.apply_merge(rule, &limits()).expect("context-invariant");
            trimmed = trimmed.trim();
        }
        prop_assert_eq!(trimmed.minimize(), whole.minimize());
        prop_assert_eq!(trimmed.state_count(), trimmed.trim().state_count());
    }

    #[test]
    fn a_string_automaton_is_as_small_as_can_be_and_equal_where_languages_are(
        one in languages(), other in languages()
    ) {
        let words = words("ab", 10);
        let language = |dfa: &StringDfa| words.iter().map(|text| dfa.accepts(text)).collect::<Vec<_>>();
        let (small_one, small_other) = (one.minimize(), other.minimize());
        prop_assert_eq!(language(&one), language(&small_one));
        prop_assert_eq!(language(&one), language(&one.trim()));
        // Automata of up to four states that differ do so on a text of at most seven letters.
        prop_assert_eq!(language(&one) == language(&other), small_one == small_other);
    }
}

#[test]
fn an_automaton_of_a_pattern_accepts_what_another_engine_matches_as_a_whole() {
    let words = words("abc", 6);
    let more =
        ["\u{e4}", "\u{e4}b", "\u{4e00}", "a\nb", "ab\n"].map(|text| text.as_bytes().to_vec());
    let broken = [b"\xff".to_vec(), b"a\x80".to_vec()];
    let patterns = PATTERNS.into_iter().chain([
        "a|ab",
        "(?:a|ab)(?:c|bcc)",
        "a*?",
        "(?:)|a+?b",
        "^a$",
        "(?m:^b$)|(?m:a$\n^b)",
        r"(?-u:\b)ab(?-u:\b)",
        ".*",
        r"\w+",
        "(?s-u:.)*",
        r"[^a]\w?",
        "(?i)AB+",
    ]);
    for pattern in patterns {
        let dfa = StringDfa::from_regex(pattern, &limits()).expect("a pattern");
        let whole = format!(r"\A(?:{pattern})\z");
        let oracle = PikeVM::builder()
            .syntax(syntax::Config::new().utf8(false))
            .thompson(thompson::Config::new().utf8(false))
            .build(&whole)
            .expect("a pattern");
        let mut cache = oracle.create_cache();
        for text in words.iter().chain(&more).chain(&broken) {
            let expected = oracle.is_match(&mut cache, Input::new(text));
            assert_eq!(dfa.accepts(text), expected, "{pattern} on {text:?}");
        }
        assert_eq!(dfa, dfa.minimize(), "{pattern}");
    }
}

#[test]
fn a_text_whose_bytes_are_no_tokens_is_left_out() {
    let fixture = Fixture::new("ab", &["a b"]);
    let dfa = ExplicitDfa::new(
        &StringDfa::from_regex("a[bc]|c*", &limits()).expect("a pattern"),
        &fixture.form,
        &limits(),
    );
    let expected = BTreeSet::from([vec![], fixture.ids("ab")]);
    assert_eq!(accepted(&dfa.expect("small"), 5), expected);
}

#[test]
fn characters_as_atoms_give_the_reference_tokenizations() {
    // An atom of two bytes that begin like another atom's; no unknown token.
    let tokens = [
        (0, "a"),
        (1, "\u{e4}"),
        (2, "\u{f6}"),
        (3, "\u{e4}a"),
        (4, "\u{e4}\u{f6}"),
        (5, "a\u{e4}\u{f6}"),
    ];
    let vocabulary = Vocabulary::new(tokens).expect("valid");
    let atoms = Atoms::Characters {
        unknown: None,
        fuse_unknown: false,
    };
    let dictionary = Dictionary::from_merges(vocabulary, [(1, 2), (1, 0), (0, 4)])
        .and_then(|dictionary| dictionary.with_atoms(atoms))
        .expect("valid");
    let form = CanonicalForm::new(&dictionary);
    let dfa = ExplicitDfa::universal(&form, &limits()).expect("small");
    let reference = bpe_core::reference::Reference::new(&dictionary);
    let mut expected = BTreeSet::new();
    let mut texts = vec![String::new()];
    while let Some(text) = texts.pop() {
        for letter in ["a", "\u{e4}", "\u{f6}"] {
            if text.len() + letter.len() <= 9 {
                texts.push(format!("{text}{letter}"));
            }
        }
        expected.insert(
            reference
                .standard(text.as_bytes())
                .expect("letters are tokens"),
        );
    }
    assert_eq!(accepted(&dfa, 9), expected);
}

#[test]
fn ranks_give_the_reference_tokenizations_and_their_tokens_without_a_way_never_come() {
    // abc has no split into two tokens, so that no merge makes it.
    let tokens = [
        (0, "a"),
        (1, "b"),
        (2, "c"),
        (3, "ba"),
        (4, "cc"),
        (5, "bac"),
        (6, "bacc"),
        (9, "abca"),
    ];
    let dictionary =
        Dictionary::from_ranks(Vocabulary::new(tokens).expect("valid")).expect("valid");
    let form = CanonicalForm::new(&dictionary);
    assert_eq!(form.unreachable_tokens().collect::<Vec<_>>(), [9]);
    let dfa = ExplicitDfa::universal(&form, &limits()).expect("proper");
    let reference = bpe_core::reference::Reference::new(&dictionary);
    let expected: BTreeSet<_> = words("abc", 8)
        .iter()
        .map(|text| reference.sentencepiece(text).expect("letters"))
        .collect();
    assert_eq!(accepted(&dfa, 8), expected);
    assert!(dfa.tokens().all(|token| token != 9));
}

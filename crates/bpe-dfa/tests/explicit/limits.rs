//! What is too large, malformed or empty has a stated answer.

use bpe_core::{Atoms, CanonicalForm, Dictionary, Vocabulary};
use bpe_dfa::explicit::{ExplicitDfa, ExplicitError, Limits, StringDfa, Transducer};
use proptest::prelude::*;

use super::oracle::{Fixture, accepted};

#[test]
fn a_pattern_that_explodes_ends_with_the_limit_it_met() {
    let states = Limits {
        states: 500,
        ..Limits::default()
    };
    let bytes = Limits {
        bytes: 100_000,
        ..Limits::default()
    };
    let pattern = "[ab]*a[ab]{14}";
    assert_eq!(
        StringDfa::from_regex(pattern, &states)
            .expect_err("2^15 states")
            .limit(),
        Some(500)
    );
    assert_eq!(
        StringDfa::from_regex(pattern, &bytes)
            .expect_err("32 MiB")
            .limit(),
        Some(100_000)
    );
    // Before any automaton is made, when the pattern alone is too large.
    let error = StringDfa::from_regex(r"\w{1000}", &bytes).expect_err("too large");
    assert_eq!(error.limit(), Some(100_000));
    // Within the limits it is what it should be.
    let dfa = StringDfa::from_regex("[ab]*a[ab]{3}", &states).expect("16 states");
    assert_eq!(dfa.state_count(), 16);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn no_pattern_makes_it_panic(pattern in r"[ab().*+?{}|^$\\\[\]\-&,1-3BwWdp:=<!ä]{0,24}") {
        let limits = Limits { states: 200, bytes: 1 << 20 };
        if let Ok(texts) = StringDfa::from_regex(&pattern, &limits) {
            let fixture = Fixture::new("ab", &["a b", "ab a"]);
            let dfa = ExplicitDfa::new(&texts, &fixture.form, &limits);
            if let Ok(transducer) = dfa.and_then(|dfa| Transducer::new(&dfa, &limits)) {
                let _ = transducer.determinize(&limits).map(|tokenizer| tokenizer.minimize());
            }
        }
    }
}

#[test]
fn a_pattern_that_is_malformed_or_beyond_automata_is_a_typed_error() {
    for pattern in ["(", "a{2,1}", r"\b", r"(a)\1", "(?=a)", r"\p{Nonsense}"] {
        let error = StringDfa::from_regex(pattern, &Limits::default()).expect_err(pattern);
        assert_eq!(error.limit(), None);
        let text = error.to_string();
        assert!(
            text.contains("regular expression") && text.len() > 50,
            "{text}"
        );
    }
}

#[test]
fn an_empty_language_gives_one_state_that_accepts_nothing() {
    let fixture = Fixture::new("ab", &["a b", "ab a"]);
    let limits = Limits::default();
    // No text at all; texts of bytes that are no tokens.
    for pattern in ["[a&&b]", "[cd]+"] {
        let texts = StringDfa::from_regex(pattern, &limits).expect("a pattern");
        let dfa = ExplicitDfa::new(&texts, &fixture.form, &limits).expect("small");
        assert!(dfa.is_empty() && accepted(&dfa, 6).is_empty());
        for small in [dfa.trim(), dfa.minimize()] {
            assert_eq!((small.state_count(), small.tokens().len()), (1, 0));
            assert!(!small.is_accepting(small.start()));
            assert_eq!(small.locality(&limits), Ok(Some(0)));
            assert_eq!(small.context_ambiguity(&limits), Ok(None));
        }
        let tokenizer = Transducer::new(&dfa, &limits)
            .expect("small")
            .determinize(&limits)
            .expect("none");
        for tokenizer in [tokenizer.earliest(), tokenizer.minimize(), tokenizer] {
            assert_eq!(tokenizer.apply(b""), None);
            assert_eq!(tokenizer.apply(b"ab"), None);
        }
    }
    assert!(
        StringDfa::from_regex("[a&&b]", &limits)
            .expect("a pattern")
            .is_empty()
    );
    // The empty text is a text.
    let texts = StringDfa::from_regex("", &limits).expect("a pattern");
    let dfa = ExplicitDfa::new(&texts, &fixture.form, &limits).expect("small");
    assert!(!dfa.is_empty() && dfa.accepts([]));
}

#[test]
fn every_construction_and_search_stops_at_its_limit() {
    let side = |power: usize| "a".repeat(1 << power);
    let merges: Vec<String> = (0..6)
        .map(|power| format!("{0} {0}", side(power)))
        .collect();
    let fixture = Fixture::new("a", &merges);
    let default = Limits::default();
    let states = |states| Limits { states, ..default };
    let limit = |error: ExplicitError| error.limit();
    // Seven states: the automaton with six merges.
    assert!(ExplicitDfa::universal(&fixture.form, &states(7)).is_ok());
    assert_eq!(
        ExplicitDfa::universal(&fixture.form, &states(6)).map_err(limit),
        Err(Some(6))
    );
    // Seven columns of seven states of four bytes.
    let bytes = |bytes| Limits { bytes, ..default };
    assert!(ExplicitDfa::universal(&fixture.form, &bytes(2048)).is_ok());
    assert_eq!(
        ExplicitDfa::universal(&fixture.form, &bytes(195)).map_err(limit),
        Err(Some(195))
    );
    let dfa = ExplicitDfa::universal(&fixture.form, &default).expect("small");
    assert_eq!(dfa.locality(&states(20)).map_err(limit), Err(Some(20)));
    assert_eq!(dfa.locality(&states(21)), Ok(Some(1)));
    assert_eq!(
        dfa.locality_degree(2, &states(1)).map_err(limit),
        Err(Some(1))
    );
    assert_eq!(
        dfa.context_ambiguity(&states(1)).map_err(limit),
        Err(Some(1))
    );
    assert_eq!(
        dfa.accepted_ambiguity(&states(1)).map_err(limit),
        Err(Some(1))
    );
    assert_eq!(
        dfa.difference(&dfa, &states(1)).map_err(limit),
        Err(Some(1))
    );
    assert_eq!(
        Transducer::new(&dfa, &states(9)).map_err(limit).map(drop),
        Err(Some(9))
    );
    let transducer = Transducer::new(&dfa, &default).expect("small");
    assert_eq!(
        dfa.locality_degree(2, &bytes(8)).map_err(limit),
        Err(Some(8))
    );
    assert_eq!(
        dfa.context_ambiguity(&bytes(8)).map_err(limit),
        Err(Some(8))
    );
    assert_eq!(
        transducer.determinize(&bytes(99)).map_err(limit).map(drop),
        Err(Some(99))
    );
    assert_eq!(
        transducer.check_twinning(&states(9)).map_err(limit),
        Err(Some(9))
    );
    assert_eq!(
        transducer.determinize(&states(9)).map_err(limit).map(drop),
        Err(Some(9))
    );
    let tokenizer = transducer.determinize(&default).expect("twinned");
    // 64 states: how many a are waiting.
    assert_eq!(tokenizer.state_count(), 64);
    let all = StringDfa::universal();
    assert_eq!(
        tokenizer
            .compose(&all, &states(63))
            .map_err(limit)
            .map(drop),
        Err(Some(63))
    );
    assert_eq!(
        tokenizer
            .compose(&all, &states(64))
            .map(|t| t.state_count()),
        Ok(64)
    );
}

#[test]
fn a_merge_that_meets_a_limit_changes_nothing() {
    let fixture = Fixture::new("ab", &["a b"]);
    let default = Limits::default();
    let mut dfa =
        ExplicitDfa::base(&StringDfa::universal(), &fixture.form, &default).expect("small");
    let before = dfa.clone();
    let one = Limits {
        states: 1,
        ..default
    };
    assert!(
        dfa.apply_merge(&fixture.dictionary.rules()[0], &one)
            .is_err()
    );
    assert_eq!(dfa, before);
    assert_eq!(dfa.tokens().len(), 2);
}

#[test]
fn parts_that_do_not_fit_are_refused() {
    let fixture = Fixture::new("ab", &["a b"]);
    let limits = Limits::default();
    let a = fixture.id("a");
    let make = |states, start, accepting: &[u32], transitions: &[(u32, u32, u32)]| {
        ExplicitDfa::from_transitions(
            fixture.vocabulary(),
            states,
            start,
            accepting.iter().copied(),
            transitions.iter().copied(),
            &limits,
        )
        .map_err(|error| error.to_string())
        .map(drop)
    };
    assert_eq!(make(2, 0, &[1], &[(0, a, 1)]), Ok(()));
    for (states, start, accepting, transitions) in [
        (0, 0, &[][..], &[][..]),
        (1, 1, &[], &[]),
        (1, 0, &[1], &[]),
        (1, 0, &[], &[(0, a, 1)]),
        (1, 0, &[], &[(1, a, 0)]),
    ] {
        let error = make(states, start, accepting, transitions).expect_err("no such state");
        assert!(error.contains("is none of the"), "{error}");
    }
    assert!(make(1, 0, &[], &[(0, 999, 0)]).is_err_and(|error| error.contains("999")));
    assert!(
        make(2, 0, &[], &[(0, a, 0), (0, a, 1)])
            .is_err_and(|error| error.contains("two transitions"))
    );
    let twice = StringDfa::new(2, 0, [1], [(0, b'a', 0), (0, b'a', 1)], &limits);
    assert!(twice.expect_err("two").to_string().contains("0x61"));
    assert!(StringDfa::new(0, 0, [], [], &limits).is_err());
    // Numbers of no state are no error where they are asked about.
    let dfa = ExplicitDfa::universal(&fixture.form, &limits).expect("small");
    assert_eq!(
        (dfa.next(99, a), dfa.is_accepting(99), dfa.next(0, 999)),
        (None, false, None)
    );
}

#[test]
fn dictionaries_whose_tokens_are_not_their_texts_are_refused() {
    let tokens = [(0, "?"), (1, "a")];
    let with = |vocabulary: Vocabulary, unknown| {
        let atoms = Atoms::Characters {
            unknown,
            fuse_unknown: false,
        };
        let dictionary = Dictionary::from_merges(vocabulary, [])
            .and_then(|dictionary| dictionary.with_atoms(atoms))
            .expect("valid");
        ExplicitDfa::universal(&CanonicalForm::new(&dictionary), &Limits::default())
    };
    let plain = || Vocabulary::new(tokens).expect("valid");
    assert!(with(plain(), None).is_ok());
    assert!(with(plain(), Some(0)).is_err());
    let fallback = (0..=255).map(|byte| (10 + u32::from(byte), byte));
    let vocabulary = Vocabulary::with_byte_fallback(tokens, fallback).expect("valid");
    let error = with(vocabulary, None).expect_err("fallback");
    assert!(error.to_string().contains("byte fallback"), "{error}");
}

#[test]
fn automata_over_other_vocabularies_are_not_compared() {
    let (one, other) = (Fixture::new("ab", &["a b"]), Fixture::new("ab", &["b a"]));
    let limits = Limits::default();
    let [a, b] = [one, other].map(|f| ExplicitDfa::universal(&f.form, &limits).expect("small"));
    assert!(a.difference(&b, &limits).is_err());
}

#[test]
fn drawings_show_states_arrows_and_outputs() {
    let fixture = Fixture::new("ab\"", &["a a", "\" a"]);
    let limits = Limits::default();
    let dfa = ExplicitDfa::universal(&fixture.form, &limits).expect("small");
    let drawing = dfa.dot().to_string();
    assert!(drawing.starts_with("digraph {\n") && drawing.ends_with("}\n"));
    assert!(drawing.contains("start -> q0 "));
    assert!(drawing.contains("q1 [shape=doublecircle];"));
    // A quotation mark and a backslash in labels do not end them.
    assert!(drawing.contains("\\\""), "{drawing}");
    let tokenizer = Transducer::new(&dfa, &limits)
        .expect("small")
        .determinize(&limits)
        .expect("twinned");
    let drawing = tokenizer.dot().to_string();
    assert!(
        drawing.contains("a|aa") && drawing.contains("b|a\u{b7}b"),
        "{drawing}"
    );
    assert!(
        drawing.contains("-> end"),
        "final outputs have arrows: {drawing}"
    );
    let texts = StringDfa::from_regex("[a-d]|z", &limits).expect("a pattern");
    assert!(texts.dot().to_string().contains("[label=\"a-d, z\"]"));
}

#[test]
fn values_can_be_shared_between_threads() {
    fn check<T: Send + Sync + std::panic::UnwindSafe + 'static>() {}
    check::<StringDfa>();
    check::<ExplicitDfa>();
    check::<Transducer>();
    check::<bpe_dfa::explicit::SubsequentialTransducer>();
    check::<ExplicitError>();
}

//! Transducers: Observation 3 and Lemma 6, the twinning property, determinization, composition.

use std::collections::{BTreeMap, BTreeSet};

use bpe_core::TokenId;
use bpe_dfa::explicit::{
    ExplicitDfa, Limits, State, StringDfa, SubsequentialTransducer, Transducer, TransducerEdge,
};
use proptest::prelude::*;

use super::definitions::languages;
use super::oracle::{Fixture, fixtures, words};

fn limits() -> Limits {
    Limits::default()
}

fn transducer(fixture: &Fixture, texts: &StringDfa) -> Transducer {
    let dfa = ExplicitDfa::new(texts, &fixture.form, &limits()).expect("small");
    Transducer::new(&dfa, &limits()).expect("small")
}

/// What has been written after a text, and the state.
fn written(tokenizer: &SubsequentialTransducer, text: &[u8]) -> (Vec<TokenId>, State) {
    let mut output = tokenizer.initial_output().to_vec();
    let mut state = tokenizer.start();
    for &byte in text {
        let (tokens, next) = tokenizer.step(state, byte).expect("a step");
        output.extend(tokens);
        state = next;
    }
    (output, state)
}

/// Transducers of up to four states over a and b, their outputs a, b or nothing.
fn any_transducer() -> impl Strategy<Value = Transducer> {
    (1_usize..5).prop_flat_map(|states| {
        let output = prop_oneof![Just(None), Just(Some("a")), Just(Some("b"))];
        let step = (0..states as State, 0_u8..2, output, 0..states as State);
        let steps = proptest::collection::vec(step, 0..=7);
        let finals = proptest::collection::vec(0_u8..4, states);
        (steps, finals).prop_map(move |(steps, finals)| {
            let fixture = Fixture::new("ab", &[] as &[&str]);
            let finals = finals.iter().map(|&number| match number {
                0 | 1 => None,
                2 => Some(Vec::new()),
                _ => Some(fixture.ids("a")),
            });
            let edges = steps.iter().map(|&(from, letter, output, to)| {
                let byte = b"ab"[usize::from(letter)];
                let output = output.map(|token| fixture.id(token));
                (from, TransducerEdge { byte, output, to })
            });
            Transducer::from_edges(fixture.vocabulary(), 0, finals.collect(), edges).expect("valid")
        })
    })
}

/// The runs over a text from the start: where they end and what they write.
fn runs(transducer: &Transducer, from: State, text: &[u8]) -> BTreeSet<(State, Vec<TokenId>)> {
    let mut runs = BTreeSet::from([(from, Vec::new())]);
    for &byte in text {
        let mut next = BTreeSet::new();
        for (state, output) in runs {
            for edge in transducer
                .edges_from(state)
                .iter()
                .filter(|edge| edge.byte == byte)
            {
                let mut output = output.clone();
                output.extend(edge.output);
                next.insert((edge.to, output));
            }
        }
        runs = next;
    }
    runs
}

/// What two outputs have beyond their common beginning.
fn delay(x: &[TokenId], y: &[TokenId]) -> (Vec<TokenId>, Vec<TokenId>) {
    let common = x.iter().zip(y).take_while(|(a, b)| a == b).count();
    (x[common..].to_vec(), y[common..].to_vec())
}

/// Whether two runs over `prefix` can each come back to where they are over `cycle` with another delay.
fn changes_a_delay(transducer: &Transducer, prefix: &[u8], cycle: &[u8]) -> bool {
    let first = runs(transducer, transducer.start(), prefix);
    first.iter().any(|(p, x)| {
        let around = |state: State| {
            let all = runs(transducer, state, cycle).into_iter();
            all.filter(move |(end, _)| *end == state)
                .map(|(_, output)| output)
        };
        first.iter().any(|(q, y)| {
            around(*p).any(|u| {
                around(*q)
                    .any(|v| delay(x, y) != delay(&[&x[..], &u].concat(), &[&y[..], &v].concat()))
            })
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn the_transducer_maps_each_text_of_the_language_to_its_tokenization_and_no_other(
        fixture in fixtures("ab", 6), texts in languages()
    ) {
        let transducer = transducer(&fixture, &texts);
        let tokenizer = transducer.determinize(&limits()).expect("twinned");
        for text in words("ab", 7) {
            let expected = texts.accepts(&text).then(|| fixture.reference(&text));
            prop_assert_eq!(transducer.outputs(&text), BTreeSet::from_iter(expected.clone()));
            prop_assert_eq!(transducer.trim().outputs(&text), BTreeSet::from_iter(expected.clone()));
            prop_assert_eq!(tokenizer.apply(&text), expected);
        }
    }

    #[test]
    fn the_subsequential_transducer_is_the_encoder(fixture in fixtures("ab", 8)) {
        let tokenizer = transducer(&fixture, &StringDfa::universal()).determinize(&limits()).expect("twinned");
        let minimal = tokenizer.minimize();
        let texts = words("ab", 9);
        let expected = fixture.references(texts.iter().map(|text| &text[..]));
        for (text, expected) in texts.into_iter().zip(expected) {
            let expected = Some(expected);
            prop_assert_eq!(&tokenizer.apply(&text), &expected);
            prop_assert_eq!(&minimal.apply(&text), &expected);
        }
    }

    #[test]
    fn restricting_texts_before_or_after_the_transducer_is_made_is_the_same(
        fixture in fixtures("ab", 6), texts in languages()
    ) {
        let all = transducer(&fixture, &StringDfa::universal()).determinize(&limits()).expect("twinned");
        let composed = all.compose(&texts, &limits()).expect("small");
        let direct = transducer(&fixture, &texts).determinize(&limits()).expect("twinned");
        prop_assert!(composed.is_equivalent(&direct));
        let (earliest, minimal) = (composed.earliest(), composed.minimize());
        let words = words("ab", 8);
        let expected = fixture.references(words.iter().map(|text| &text[..]));
        for (text, expected) in words.into_iter().zip(expected) {
            let expected = texts.accepts(&text).then_some(expected);
            prop_assert_eq!(composed.apply(&text), expected.clone());
            prop_assert_eq!(earliest.apply(&text), expected.clone());
            prop_assert_eq!(minimal.apply(&text), expected);
        }
    }

    #[test]
    fn a_state_is_a_pending_text(fixture in fixtures("ab", 6)) {
        // Two texts lead to one state of the minimal transducer exactly if what is not yet written of
        // them is the same text. What can be written is what all continuations have in common; those of
        // up to eight letters are enough for rules of tokens of up to eight.
        let tokenizer = transducer(&fixture, &StringDfa::universal()).determinize(&limits()).expect("twinned");
        prop_assert!(tokenizer.earliest().initial_output().is_empty());
        let minimal = tokenizer.minimize();
        let mut state_of: BTreeMap<Vec<u8>, State> = BTreeMap::new();
        let mut pending_of: BTreeMap<State, Vec<u8>> = BTreeMap::new();
        for text in words("ab", 8) {
            let (output, state) = written(&minimal, &text);
            let done = fixture.vocabulary().decode_bytes(&output).expect("tokens");
            let pending = text.strip_prefix(&done[..]).expect("a beginning").to_vec();
            prop_assert_eq!(*state_of.entry(pending.clone()).or_insert(state), state);
            prop_assert_eq!(pending_of.entry(state).or_insert(pending.clone()), &pending);
        }
        let closed = (0..minimal.state_count() as State).all(|state| pending_of.contains_key(&state));
        prop_assert!(closed || minimal.state_count() > 8);
    }

    #[test]
    fn twinned_is_determinized_and_not_twinned_is_shown(transducer in any_transducer()) {
        let few = Limits { states: 3_000, ..Limits::default() };
        match transducer.check_twinning(&few) {
            Ok(()) => match transducer.determinize(&few) {
                Ok(tokenizer) => {
                    for text in words("ab", 8) {
                        let expected = transducer.outputs(&text);
                        prop_assert!(expected.len() <= 1);
                        prop_assert_eq!(tokenizer.apply(&text), expected.into_iter().next());
                    }
                }
                Err(error) => {
                    // A text with two outputs.
                    prop_assert_eq!(error.limit(), None, "{}", error);
                    let text = error.text_with_two_outputs().expect("the reason");
                    prop_assert!(transducer.outputs(text).len() > 1);
                }
            },
            Err(error) => {
                prop_assert!(error.limit().is_none());
                let (prefix, cycle) = error.untwinned().expect("two texts");
                prop_assert!(changes_a_delay(&transducer.trim(), prefix, cycle), "{}", error);
                prop_assert!(transducer.determinize(&few).is_err());
            }
        }
    }
}

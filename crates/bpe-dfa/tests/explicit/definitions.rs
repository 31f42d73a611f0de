//! Algorithm 2, locality, context-invariance and comparison against literal definitions, on automata
//! that need not come from a dictionary.

use std::collections::{BTreeMap, BTreeSet};

use bpe_core::{MergeRule, Priority, TokenId};
use bpe_dfa::explicit::{ExplicitDfa, Limits, State, StringDfa};
use proptest::prelude::*;

use super::oracle::{Fixture, Literal, accepted, fixtures};

fn limits() -> Limits {
    Limits::default()
}

/// A fixture, and an automaton over its tokens with transitions at random.
fn automata() -> impl Strategy<Value = (Fixture, ExplicitDfa)> {
    (fixtures("ab", 4), 1_usize..5).prop_flat_map(|(fixture, states)| {
        let tokens: Vec<TokenId> = fixture.vocabulary().iter().map(|(id, _)| id).collect();
        let to = prop_oneof![2 => Just(None), 1 => (0..states as State).prop_map(Some)];
        let table = proptest::collection::vec(to, states * tokens.len());
        let accepting = proptest::collection::vec(any::<bool>(), states);
        (table, accepting, 0..states as State).prop_map(move |(table, accepting, start)| {
            let fixture = fixture.clone();
            let transitions = table.iter().enumerate().filter_map(|(cell, to)| {
                let (from, token) = (cell / tokens.len(), tokens[cell % tokens.len()]);
                to.map(|to| (from as State, token, to))
            });
            let accepting = (0..).zip(&accepting).filter(|(_, a)| **a).map(|(s, _)| s);
            let dfa = ExplicitDfa::from_transitions(
                fixture.vocabulary(),
                states,
                start,
                accepting,
                transitions,
                &limits(),
            );
            (fixture, dfa.expect("a valid automaton"))
        })
    })
}

/// An automaton of a fixture's dictionary before or after some of its merges, over a random language.
fn partly_merged() -> impl Strategy<Value = (Fixture, ExplicitDfa, usize)> {
    (fixtures("ab", 5), languages(), any::<u8>()).prop_map(|(fixture, texts, merged)| {
        let rules = fixture.dictionary.rules();
        let merged = usize::from(merged) % (rules.len() + 1);
        let mut dfa = ExplicitDfa::base(&texts, &fixture.form, &limits()).expect("small");
        for rule in &rules[..merged] {
            dfa.apply_merge(rule, &limits()).expect("context-invariant");
        }
        (fixture, dfa, merged)
    })
}

/// Automata over a and b at random.
pub(crate) fn languages() -> impl Strategy<Value = StringDfa> {
    (1_usize..5).prop_flat_map(|states| {
        let to = prop_oneof![1 => Just(None), 4 => (0..states as State).prop_map(Some)];
        let table = proptest::collection::vec(to, states * 2);
        let accepting = proptest::collection::vec(any::<bool>(), states);
        (table, accepting).prop_map(move |(table, accepting)| {
            let transitions = table
                .iter()
                .enumerate()
                .filter_map(|(cell, to)| to.map(|to| ((cell / 2) as State, b"ab"[cell % 2], to)));
            let accepting = (0..).zip(&accepting).filter(|(_, a)| **a).map(|(s, _)| s);
            StringDfa::new(states, 0, accepting, transitions, &limits()).expect("valid")
        })
    })
}

/// All sequences of tokens that have a run from somewhere, of a length.
fn runs(dfa: &ExplicitDfa, length: usize) -> BTreeMap<Vec<TokenId>, BTreeSet<State>> {
    let all = 0..dfa.state_count() as State;
    let mut found = BTreeMap::from([(Vec::new(), all.collect::<BTreeSet<_>>())]);
    for _ in 0..length {
        let mut longer: BTreeMap<Vec<TokenId>, BTreeSet<State>> = BTreeMap::new();
        for (sequence, states) in &found {
            for &state in states {
                for (token, to) in dfa.transitions_from(state) {
                    let mut sequence = sequence.clone();
                    sequence.push(token);
                    longer.entry(sequence).or_default().insert(to);
                }
            }
        }
        found = longer;
    }
    found
}

fn degree(dfa: &ExplicitDfa, k: usize) -> usize {
    runs(dfa, k).values().map(BTreeSet::len).max().unwrap_or(0)
}

fn text(dfa: &ExplicitDfa, sequence: &[TokenId]) -> Vec<u8> {
    dfa.vocabulary().decode_bytes(sequence).expect("tokens")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn a_merge_does_what_algorithm_2_says_line_by_line((fixture, dfa) in automata()) {
        for rule in fixture.dictionary.rules() {
            let mut merged = dfa.clone();
            let mut literal = Literal::of(&dfa);
            literal.apply(rule.left, rule.right, rule.product);
            match merged.apply_merge(rule, &limits()) {
                Ok(summary) => {
                    prop_assert!(literal.is_deterministic());
                    prop_assert_eq!(literal.states.len(), merged.state_count());
                    prop_assert_eq!(summary.fresh_states, merged.state_count() - dfa.state_count());
                    // The order in which fresh states are numbered is free.
                    let (a, b) = (Literal::of(&merged), &literal);
                    prop_assert_eq!(a.accepting.len(), b.accepting.len());
                    prop_assert_eq!(a.transitions.len(), b.transitions.len());
                    prop_assert!(same_up_to_fresh_names(&a, b, dfa.state_count() as State));
                }
                Err(error) => {
                    // Runs on both sides and on the product, which are one text.
                    let ambiguity = error.ambiguity().expect("the reason");
                    for sequence in [&ambiguity.first, &ambiguity.second] {
                        prop_assert!(runs(&dfa, sequence.len()).contains_key(sequence));
                    }
                    prop_assert_eq!(text(&dfa, &ambiguity.first), text(&dfa, &ambiguity.second));
                    prop_assert_eq!(&merged, &dfa);
                }
            }
        }
    }

    #[test]
    fn a_merge_costs_what_theorem_3_allows((fixture, dfa, merged) in partly_merged()) {
        for rule in &fixture.dictionary.rules()[merged..] {
            let mut next = dfa.clone();
            let summary = next.apply_merge(rule, &limits()).expect("context-invariant");
            let (states, tokens) = (dfa.state_count() as u64, dfa.tokens().len() as u64 + 1);
            prop_assert!(summary.cells <= 6 * states + summary.fresh_states as u64 * tokens);
            prop_assert!(summary.fresh_states as u64 <= states);
        }
    }

    #[test]
    fn a_merge_keeps_lemmas_2_4_and_5_and_corollary_2((fixture, dfa, merged) in partly_merged()) {
        let Some(rule) = fixture.dictionary.rules().get(merged) else {
            return Ok(());
        };
        let mut next = dfa.clone();
        let summary = next.apply_merge(rule, &limits()).expect("context-invariant");
        prop_assert_eq!(next.context_ambiguity(&limits()), Ok(None));
        // Not for k = 0: that degree is the number of states.
        for k in 1..4 {
            let degree = |dfa: &ExplicitDfa| dfa.locality_degree(k, &limits()).expect("small");
            prop_assert!(degree(&next) <= degree(&dfa));
        }
        prop_assert_eq!(dfa.locality_degree(1, &limits()), next.locality_degree(1, &limits()));
        if let Some(k) = dfa.locality(&limits()).expect("small") {
            let after = next.locality(&limits()).expect("small");
            prop_assert!(k == 0 || after.is_some_and(|after| after <= k));
        }
        // Lemma 5, in its order.
        let ends = |dfa: &ExplicitDfa, token| dfa.ends(token).len();
        let between = dfa.ends(rule.left).iter().filter(|&&s| dfa.next(s, rule.right).is_some()).count();
        prop_assert_eq!(summary.fresh_states, between);
        prop_assert!(between <= ends(&dfa, rule.left));
        prop_assert_eq!(ends(&next, rule.left), ends(&dfa, rule.left));
        prop_assert!(ends(&next, rule.product) <= ends(&dfa, rule.right));
        for token in dfa.tokens() {
            prop_assert_eq!(ends(&next, token), ends(&dfa, token));
        }
    }

    #[test]
    fn the_degree_of_locality_is_that_of_its_definition((_, dfa) in automata()) {
        for k in 0..4 {
            prop_assert_eq!(dfa.locality_degree(k, &limits()), Ok(degree(&dfa, k)));
        }
    }

    #[test]
    fn locality_is_the_least_k_with_degree_one_and_none_where_there_is_no_such_k((_, dfa) in automata()) {
        let count = dfa.state_count();
        // A path through different pairs of different states has no more steps than there are pairs.
        let longest = count * (count - 1) / 2 + 1;
        let expected = (0..=longest).find(|&k| matches!(dfa.locality_degree(k, &limits()), Ok(0 | 1)));
        prop_assert_eq!(dfa.locality(&limits()), Ok(expected));
        // The end of 002 section 5: windows of k + 1 decide whether a sequence has a run.
        if let Some(k) = expected && k <= 2 {
            let windows = runs(&dfa, k + 1);
            let longer = runs(&dfa, k + 2);
            for first in windows.keys() {
                for second in windows.keys() {
                    if first[1..] == second[..k] {
                        let glued = [&first[..], &second[k..]].concat();
                        prop_assert!(longer.contains_key(&glued));
                    }
                }
            }
        }
    }

    #[test]
    fn an_ambiguity_is_found_where_there_is_one((_, dfa) in automata()) {
        let found = dfa.context_ambiguity(&limits()).expect("small");
        match &found {
            Some(found) => {
                prop_assert!(found.first != found.second);
                prop_assert_eq!(text(&dfa, &found.first), text(&dfa, &found.second));
                for sequence in [&found.first, &found.second] {
                    let mut starts = 0..dfa.state_count() as State;
                    prop_assert!(starts.any(|state| dfa.walk(state, sequence.iter().copied()).is_some()));
                }
            }
            None => {
                let mut by_text = BTreeMap::new();
                for length in 1..5 {
                    for sequence in runs(&dfa, length).into_keys() {
                        let text = text(&dfa, &sequence);
                        prop_assert_eq!(by_text.entry(text).or_insert(sequence.clone()), &sequence);
                    }
                }
            }
        }
        match dfa.accepted_ambiguity(&limits()).expect("small") {
            Some(accepted) => {
                prop_assert!(found.is_some(), "uniqueness is the weaker property");
                prop_assert!(accepted.first != accepted.second);
                prop_assert_eq!(text(&dfa, &accepted.first), text(&dfa, &accepted.second));
                prop_assert!(dfa.accepts(accepted.first) && dfa.accepts(accepted.second));
            }
            None => {
                let mut texts = BTreeSet::new();
                for sequence in accepted(&dfa, 6) {
                    prop_assert!(texts.insert(text(&dfa, &sequence)));
                }
            }
        }
    }

    #[test]
    fn trimming_and_minimising_keep_the_language((_, dfa) in automata()) {
        let language = accepted(&dfa, 6);
        let (trimmed, minimal) = (dfa.trim(), dfa.minimize());
        prop_assert_eq!(&accepted(&trimmed, 6), &language);
        prop_assert_eq!(&accepted(&minimal, 6), &language);
        prop_assert!(minimal.state_count() <= trimmed.state_count());
        prop_assert_eq!(trimmed.difference(&dfa, &limits()), Ok(None));
        prop_assert_eq!(minimal.difference(&dfa, &limits()), Ok(None));
        prop_assert_eq!(trimmed.minimize(), minimal.clone());
        prop_assert_eq!(minimal.minimize(), minimal);
        prop_assert_eq!(dfa.is_empty(), trimmed.state_count() == 1 && language.is_empty());
    }

    #[test]
    fn a_difference_is_a_shortest_one((fixture, one) in automata(), table in proptest::collection::vec(any::<u8>(), 40)) {
        // The same automaton with some transitions turned elsewhere.
        let count = one.state_count();
        let transitions = one.transitions().zip(table).map(|((from, token, to), byte)| {
            let to = if byte < 200 { to } else { State::from(byte) % count as State };
            (from, token, to)
        });
        let accepting: Vec<State> = (0..count as State).filter(|&s| one.is_accepting(s)).collect();
        let other = ExplicitDfa::from_transitions(
            fixture.vocabulary(), count, one.start(), accepting, transitions, &limits(),
        ).expect("valid");
        let difference = one.difference(&other, &limits()).expect("small");
        let same = one.minimize() == other.minimize();
        prop_assert_eq!(difference.is_none(), same);
        if let Some(sequence) = difference {
            prop_assert!(one.accepts(sequence.iter().copied()) != other.accepts(sequence.iter().copied()));
            for length in 0..sequence.len().min(4) {
                for dfa in [&one, &other] {
                    for shorter in runs(dfa, length).into_keys() {
                        let accepts = |dfa: &ExplicitDfa| dfa.accepts(shorter.iter().copied());
                        prop_assert_eq!(accepts(&one), accepts(&other));
                    }
                }
            }
        }
    }
}

/// Whether two automata are the same if states from `old` on may be renamed among themselves.
fn same_up_to_fresh_names(a: &Literal, b: &Literal, old: State) -> bool {
    let fresh: Vec<State> = (old..a.states.len() as State).collect();
    permutations(&fresh).into_iter().any(|names| {
        let name = |state: State| match state.checked_sub(old) {
            Some(place) => names[place as usize],
            None => state,
        };
        let transitions: BTreeSet<_> = a
            .transitions
            .iter()
            .map(|&(p, t, q)| (name(p), t, name(q)))
            .collect();
        let accepting: BTreeSet<State> = a.accepting.iter().map(|&state| name(state)).collect();
        transitions == b.transitions && accepting == b.accepting
    })
}

fn permutations(items: &[State]) -> Vec<Vec<State>> {
    let Some((&first, rest)) = items.split_first() else {
        return vec![Vec::new()];
    };
    let mut all = Vec::new();
    for permutation in permutations(rest) {
        for place in 0..=permutation.len() {
            let mut longer = permutation.clone();
            longer.insert(place, first);
            all.push(longer);
        }
    }
    all
}

#[test]
fn a_rule_whose_product_is_not_its_sides_together_is_refused() {
    let fixture = Fixture::new("ab", &["a b"]);
    let mut dfa =
        ExplicitDfa::base(&StringDfa::universal(), &fixture.form, &limits()).expect("small");
    for (left, right, product) in [("a", "b", "a"), ("b", "a", "ab"), ("ab", "a", "ab")] {
        let [left, right, product] = [left, right, product].map(|token| fixture.id(token));
        let rule = MergeRule {
            left,
            right,
            product,
            priority: Priority(0),
        };
        assert!(dfa.apply_merge(&rule, &limits()).is_err());
    }
    let rule = MergeRule {
        left: 999,
        right: 999,
        product: 999,
        priority: Priority(0),
    };
    assert!(dfa.apply_merge(&rule, &limits()).is_err());
}

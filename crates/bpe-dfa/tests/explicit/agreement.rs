//! What is made for real vocabularies, without any automaton in memory, against the explicit automata.

use bpe_core::TokenId;
use bpe_dfa::explicit::{ExplicitDfa, Limits, Transducer};
use bpe_dfa::{LazyTransducer, PairRelation};
use proptest::prelude::*;

use super::oracle::{Fixture, fixtures};

fn limits() -> Limits {
    Limits::default()
}

fn universal(fixture: &Fixture) -> ExplicitDfa {
    ExplicitDfa::universal(&fixture.form, &limits()).expect("small")
}

/// Texts in which all pairs of neighbouring letters come, at random beyond.
fn texts() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(0_usize..2, 0..200)
        .prop_map(|letters| letters.into_iter().map(|letter| b"ab"[letter]).collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn the_pair_relation_is_the_universal_automaton(fixture in fixtures("ab", 9)) {
        let dfa = universal(&fixture);
        let pairs = PairRelation::new(&fixture.form).expect("proper");
        let mut transitions = 0;
        for (left, _) in fixture.vocabulary().iter() {
            let ends: Vec<_> = dfa.ends(left).into_iter().collect();
            // A token that merging never makes leads nowhere.
            prop_assert_eq!(ends.len(), usize::from(pairs.is_canonical(left)));
            for (right, _) in fixture.vocabulary().iter() {
                let can_follow = ends.iter().any(|&state| dfa.next(state, right).is_some());
                prop_assert_eq!(pairs.is_valid(left, right), can_follow);
                transitions += u64::from(can_follow);
            }
        }
        prop_assert_eq!(pairs.valid_pairs(), transitions);
        prop_assert_eq!(pairs.state_count(), dfa.minimize().state_count());
    }

    #[test]
    fn the_lazy_transducer_writes_at_each_byte_what_the_minimal_one_does(
        fixture in fixtures("ab", 8), texts in proptest::collection::vec(texts(), 4), limit in 2_usize..40
    ) {
        let minimal = Transducer::new(&universal(&fixture), &limits())
            .expect("small")
            .determinize(&limits())
            .expect("twinned")
            .minimize();
        let mut lazy = LazyTransducer::new(&fixture.form, limit).expect("proper");
        let mut found: Vec<TokenId> = Vec::new();
        for text in texts {
            let mut state = minimal.start();
            for byte in text {
                found.clear();
                lazy.push(byte, &mut found).expect("a letter");
                let (expected, next) = minimal.step(state, byte).expect("a step");
                prop_assert_eq!(&found[..], expected);
                state = next;
            }
            found.clear();
            lazy.finish(&mut found);
            prop_assert_eq!(Some(&found[..]), minimal.finish(state));
        }
    }
}

//! Properizing: standard semantics in the new order against SentencePiece semantics in the old one,
//! by the literal references.

use std::collections::BTreeSet;
use std::sync::Arc;

use bpe_core::properize::{Constraint, Search};
use bpe_core::reference::Reference;
use bpe_core::{
    Algorithm, Atoms, CanonicalForm, Dictionary, DropReason, Properization, TokenId, Vocabulary,
};
use proptest::prelude::*;

/// The dictionary of these merges, its ids in descending order of the tokens.
fn dictionary(merges: &[(&str, &str)]) -> Dictionary {
    let mut tokens = BTreeSet::from(["a".to_owned(), "b".to_owned(), "c".to_owned()]);
    tokens.extend(merges.iter().map(|(left, right)| format!("{left}{right}")));
    let tokens: Vec<_> = (0_u32..).step_by(2).zip(tokens.into_iter().rev()).collect();
    let vocabulary = Vocabulary::new(tokens).expect("distinct");
    let merges: Vec<_> = merges
        .iter()
        .map(|(left, right)| [left, right].map(|side| vocabulary.id_of(side.as_bytes())))
        .map(|sides| (sides[0].expect("a token"), sides[1].expect("a token")))
        .collect();
    Dictionary::from_merges(vocabulary, merges).expect("valid")
}

/// The rules of a form, in their order, as a dictionary of their own.
fn in_order(form: &CanonicalForm) -> Dictionary {
    let mut rules: Vec<_> = form.rules().collect();
    rules.sort_by_key(|rule| rule.priority);
    let vocabulary = Vocabulary::new(form.vocabulary().iter()).expect("valid");
    Dictionary::from_merges(vocabulary, rules.iter().map(|rule| (rule.left, rule.right)))
        .expect("valid")
}

/// Checks that a dictionary's proper form has its tokens under standard semantics and for all
/// encoders, or that its cycle is one. Whether it has a proper form.
fn check(dictionary: &Dictionary, texts: &[Vec<u8>]) -> bool {
    let properization = Properization::new(dictionary);
    let old = Reference::new(dictionary);
    let Some(form) = properization.proper_form() else {
        let problem = properization.not_properizable().expect("one or the other");
        assert!(!properization.original_form().is_proper());
        assert!(!problem.cycles().is_empty());
        for cycle in problem.cycles() {
            assert!(cycle.steps().len() > 1 && cycle.steps().len() <= cycle.tree_rules());
            for pair in [cycle.steps(), &cycle.steps()[..1]].concat().windows(2) {
                let (first, second) = (pair[0].rule, pair[1].rule);
                // What a constraint is about: a side that is made, or a token that both take.
                assert!(match pair[0].reason {
                    Constraint::Tree => [second.left, second.right].contains(&first.product),
                    _ => first.right == second.left || first.left == second.right,
                });
            }
            if let Search::Found(found) = problem.difference(cycle, 12) {
                assert!(found.text.len() <= 12);
                assert_eq!(old.sentencepiece(&found.text), Some(found.sentencepiece));
                let attempt = in_order(problem.attempted_form());
                let attempted = Reference::new(&attempt).standard(&found.text);
                assert_ne!(attempted, old.sentencepiece(&found.text));
                assert_eq!(attempted, Some(found.attempted));
            }
        }
        return false;
    };
    assert!(form.is_proper());
    assert_eq!(
        form.is_reordered(),
        !properization.original_form().is_proper()
    );
    let proper = in_order(form);
    assert!(proper.is_proper());
    let new = Reference::new(&proper);
    let mut encoders: Vec<_> = Algorithm::ALL
        .iter()
        .map(|algorithm| algorithm.encoder(form).expect("proper"))
        .collect();
    let mut tokens = Vec::new();
    for text in texts {
        let expected = old.sentencepiece(text).expect("letters");
        let message = || format!("{text:?} with {:?}", dictionary.rules());
        assert_eq!(
            new.standard(text).as_ref(),
            Some(&expected),
            "{}",
            message()
        );
        for encoder in &mut encoders {
            tokens.clear();
            encoder.encode_span(text, &mut tokens).expect("letters");
            assert_eq!(tokens, expected, "{}", message());
        }
    }
    true
}

fn words(longest: usize) -> Vec<Vec<u8>> {
    let mut all = vec![Vec::new()];
    let mut start = 0;
    for _ in 0..longest {
        let end = all.len();
        for index in start..end {
            for letter in *b"ab" {
                all.push([&all[index][..], &[letter]].concat());
            }
        }
        start = end;
    }
    all
}

type Merge = (Vec<u8>, Vec<u8>);

/// Sets of so many merges over a and b whose sides are letters or products of merges of the set.
fn merge_sets(count: usize) -> BTreeSet<BTreeSet<Merge>> {
    let mut sets = BTreeSet::from([BTreeSet::new()]);
    for _ in 0..count {
        let mut larger = BTreeSet::new();
        for set in &sets {
            let mut tokens = BTreeSet::from([b"a".to_vec(), b"b".to_vec()]);
            tokens.extend(
                set.iter()
                    .map(|(left, right): &Merge| [&left[..], right].concat()),
            );
            for left in &tokens {
                for right in &tokens {
                    let mut with_merge = set.clone();
                    if with_merge.insert((left.clone(), right.clone())) {
                        larger.insert(with_merge);
                    }
                }
            }
        }
        sets = larger;
    }
    sets
}

fn permute<T>(items: &mut Vec<T>, from: usize, visit: &mut dyn FnMut(&[T])) {
    if from == items.len() {
        return visit(items);
    }
    for index in from..items.len() {
        items.swap(from, index);
        permute(items, from + 1, visit);
        items.swap(from, index);
    }
}

fn text_of(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("letters")
}

#[test]
fn all_lists_of_up_to_three_merges_over_two_letters_keep_their_tokens() {
    let texts = words(9);
    let (mut reordered, mut failed) = (0, 0);
    for set in (0..=3).flat_map(merge_sets) {
        let mut merges: Vec<_> = set.iter().collect();
        permute(&mut merges, 0, &mut |merges| {
            let merges: Vec<_> = merges
                .iter()
                .map(|(left, right)| (text_of(left), text_of(right)))
                .collect();
            let dictionary = dictionary(&merges);
            if !CanonicalForm::new(&dictionary).is_proper() {
                match check(&dictionary, &texts) {
                    true => reordered += 1,
                    false => failed += 1,
                }
            }
        });
    }
    assert!(reordered > 200, "{reordered} lists");
    assert!(failed > 20, "{failed} lists");
}

/// Up to 12 merges over two or three letters, in an order that has nothing to do with sides.
fn random_merges() -> impl Strategy<Value = Dictionary> {
    prop::collection::vec((any::<u8>(), any::<u8>(), any::<u8>()), 2..13).prop_map(|steps| {
        let mut tokens: Vec<String> = ["a", "b", "c"].map(str::to_owned).into();
        let mut merges: Vec<(String, String)> = Vec::new();
        for (left, right, place) in steps {
            let left = tokens[usize::from(left) % tokens.len()].clone();
            let right = tokens[usize::from(right) % tokens.len()].clone();
            let product = format!("{left}{right}");
            if product.len() > 9 || merges.contains(&(left.clone(), right.clone())) {
                continue;
            }
            if !tokens.contains(&product) {
                tokens.push(product);
            }
            merges.insert(usize::from(place) % (merges.len() + 1), (left, right));
        }
        let merges: Vec<_> = merges.iter().map(|(l, r)| (&l[..], &r[..])).collect();
        dictionary(&merges)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    #[test]
    fn random_merge_lists_keep_their_tokens(
        dictionary in random_merges(),
        texts in prop::collection::vec(prop::collection::vec(b'a'..=b'c', 0..40), 12),
    ) {
        check(&dictionary, &texts);
    }
}

#[test]
fn the_dictionary_of_000_a_6_has_a_cycle_and_a_text_that_shows_it() {
    let dictionary = dictionary(&[("aa", "a"), ("a", "a")]);
    let properization = Properization::new(&dictionary);
    let problem = properization.not_properizable().expect("a cycle");
    let id = |text: &str| {
        dictionary
            .vocabulary()
            .id_of(text.as_bytes())
            .expect("a token")
    };
    let [cycle] = problem.cycles() else {
        panic!("one tree");
    };
    let products: BTreeSet<TokenId> = cycle.steps().iter().map(|step| step.rule.product).collect();
    assert_eq!(products, BTreeSet::from([id("aa"), id("aaa")]));
    assert_eq!(cycle.seed().product, id("aa"));
    let Search::Found(found) = problem.difference(cycle, 12) else {
        panic!("000 names one");
    };
    assert_eq!(found.text, b"aaaa");
    assert_eq!(found.sentencepiece, [id("aaa"), id("a")]);
    assert_eq!(found.attempted, [id("aa"), id("aa")]);
    // No text of three letters shows it.
    assert_eq!(
        problem.difference(cycle, 3),
        Search::NotProvedImpossible { longest: 3 }
    );
}

#[test]
fn a_grown_token_is_taken_from_the_left_before_a_later_seed_is_appended_to_it() {
    // Children of a+b, both growing to the left. 000 App. A.3 and A.4 would have them by priority.
    let listed = dictionary(&[("ab", "ab"), ("b", "ab"), ("a", "b")]);
    let bytes = |tokens: Option<Vec<TokenId>>| -> Vec<String> {
        let tokens = tokens.expect("letters");
        let token = |id: &TokenId| listed.vocabulary().decode(&[*id]).expect("text");
        tokens.iter().map(token).collect()
    };
    // By hand: a+b at the left, b+ab at once, then the other a+b.
    assert_eq!(
        bytes(Reference::new(&listed).sentencepiece(b"babab")),
        ["bab", "ab"]
    );
    let by_priority = dictionary(&[("a", "b"), ("ab", "ab"), ("b", "ab")]);
    assert_eq!(
        bytes(Reference::new(&by_priority).standard(b"babab")),
        ["b", "abab"]
    );
    let properization = Properization::new(&listed);
    let proper = in_order(properization.proper_form().expect("no cycle"));
    assert_eq!(
        bytes(Reference::new(&proper).standard(b"babab")),
        ["bab", "ab"]
    );
}

#[test]
fn the_report_names_improper_and_dropped_rules_and_tokens_of_several_rules() {
    // ab+c stands before a+b; a+bc never fires, since ab comes first; nothing makes cab.
    let merges = [
        ("ab", "c"),
        ("a", "b"),
        ("b", "c"),
        ("a", "bc"),
        ("c", "ab"),
        ("ca", "b"),
        ("c", "a"),
    ];
    let dictionary = dictionary(&merges);
    let properization = Properization::new(&dictionary);
    let id = |text: &str| {
        dictionary
            .vocabulary()
            .id_of(text.as_bytes())
            .expect("a token")
    };
    assert_eq!(properization.rule_count(), 7);
    let improper: Vec<_> = properization.improper_rules().iter().collect();
    assert_eq!(improper.len(), 2);
    assert_eq!(
        (improper[0].rule.product, improper[0].maker.product),
        (id("abc"), id("ab"))
    );
    assert!(improper[0].only_later);
    assert_eq!(
        (improper[1].rule.left, improper[1].maker.product),
        (id("ca"), id("ca"))
    );
    assert_eq!(properization.rules_made_too_late(), 2);
    assert_eq!(properization.improper_canonical_rules(), 1);
    let dropped: Vec<_> = properization
        .dropped_rules()
        .iter()
        .map(|dropped| (dropped.rule.left, dropped.rule.right))
        .collect();
    assert_eq!(dropped, [(id("a"), id("bc")), (id("ca"), id("b"))]);
    assert!(properization.dropped_rules().iter().all(|dropped| {
        matches!(dropped.reason, DropReason::MadeByAnotherRule(kept) if kept.product == dropped.rule.product)
    }));
    let mut several = vec![(id("abc"), 2), (id("cab"), 2)];
    several.sort_unstable();
    assert_eq!(properization.tokens_of_several_rules(), several);
    assert_eq!(
        (properization.growing_trees(), properization.grown_rules()),
        (1, 1)
    );
    let proper = properization.proper_form().expect("proper");
    let priority = |text: &str| proper.rule(id(text)).expect("made").priority;
    assert!(priority("ab") < priority("abc"));
    assert!(priority("abc") < priority("bc")); // The tree stays in the place of its seed.
    assert_eq!(proper.dropped_rules(&dictionary).count(), 2);
}

#[test]
fn characters_with_fallback_and_unknown_characters_keep_their_tokens() {
    let vocabulary = Vocabulary::with_byte_fallback(
        [(0, "<unk>"), (1, "é"), (2, "x"), (3, "éx"), (4, "xéx")],
        [(10, 0xC3), (11, 0xA8)],
    )
    .expect("valid");
    let dictionary = Dictionary::from_merges(vocabulary, [(2, 3), (1, 2)])
        .and_then(|dictionary| {
            dictionary.with_atoms(Atoms::Characters {
                unknown: Some(0),
                fuse_unknown: true,
            })
        })
        .expect("valid");
    let form = Arc::new(CanonicalForm::new(&dictionary));
    assert!(!form.is_proper());
    let proper = form.properize().expect("no cycle");
    let reference = Reference::new(&dictionary);
    let mut encoder = Algorithm::PriorityMerge
        .encoder(&proper)
        .expect("any atoms");
    for text in ["éxéxxéx", "xéxèxéxzz", "zxéxxz"] {
        let mut tokens = Vec::new();
        encoder
            .encode_span(text.as_bytes(), &mut tokens)
            .expect("complete");
        assert_eq!(
            Some(tokens),
            reference.sentencepiece(text.as_bytes()),
            "{text}"
        );
    }
}

//! Dictionaries are called equivalent if no text tells them apart, and a witness is a shortest.

mod small;

use std::sync::Arc;

use bpe_core::reference::Reference;
use bpe_core::{CanonicalForm, Dictionary, Vocabulary};
use bpe_dfa::{Equivalence, equivalent};
use small::{Merge, Random, canonical, dictionary_of, merge_lists, random_merges};

const LONGEST: usize = 9;

/// The tokens of a text as byte strings.
fn cut(dictionary: &Dictionary, text: &[u8]) -> Vec<Vec<u8>> {
    let tokens = Reference::new(dictionary)
        .sentencepiece(text)
        .expect("letters");
    let bytes = |id| {
        dictionary
            .vocabulary()
            .token_bytes(id)
            .expect("a token")
            .to_vec()
    };
    tokens.into_iter().map(bytes).collect()
}

/// The length of a shortest text that tells them apart, up to [`LONGEST`].
fn brute_force(first: &Dictionary, second: &Dictionary) -> Option<usize> {
    (1..=LONGEST).find(|&length| {
        (0..1_u32 << length).any(|number| {
            let text: Vec<u8> = (0..length)
                .map(|bit| b'a' + (number >> bit & 1) as u8)
                .collect();
            cut(first, &text) != cut(second, &text)
        })
    })
}

fn check(first: &[Merge], second: &[Merge]) -> Option<usize> {
    let dictionaries = [dictionary_of(first), dictionary_of(second)];
    let forms = dictionaries.each_ref().map(canonical);
    let [first, second] = &dictionaries;
    let expected = brute_force(first, second);
    match equivalent(&forms[0], &forms[1]).expect("proper") {
        Equivalence::Unknown { text } => panic!("not known: {text:?}"),
        Equivalence::Same { .. } => assert_eq!(expected, None, "{first:?} {second:?}"),
        Equivalence::Different(witness) => {
            let text = &witness.text;
            assert_ne!(cut(first, text), cut(second, text), "{first:?} {second:?}");
            assert_eq!(witness.first, Reference::new(first).sentencepiece(text));
            assert_eq!(witness.second, Reference::new(second).sentencepiece(text));
            match expected {
                Some(expected) => assert_eq!(text.len(), expected, "{first:?} {second:?}"),
                None => assert!(text.len() > LONGEST),
            }
        }
    }
    expected
}

fn proper_lists(count: usize) -> Vec<Vec<Merge>> {
    let is_proper = |list: &Vec<Merge>| canonical(&dictionary_of(list)).is_proper();
    merge_lists(count).into_iter().filter(is_proper).collect()
}

#[test]
fn all_pairs_of_dictionaries_of_two_merges_are_told_apart_by_a_shortest_text() {
    let lists: Vec<Vec<Merge>> = (0..=2).flat_map(proper_lists).collect();
    let (mut same, mut different) = (0, 0);
    for first in &lists {
        for second in &lists {
            match check(first, second) {
                None => same += 1,
                Some(_) => different += 1,
            }
        }
    }
    assert!(same >= lists.len() && different > 900, "{same} {different}");
}

#[test]
fn pairs_of_dictionaries_of_three_merges_are_told_apart_by_a_shortest_text() {
    let lists = proper_lists(3);
    let mut random = Random(5);
    let mut same = 0;
    for _ in 0..800 {
        let first = &lists[random.below(lists.len())];
        // The same merges in another order, or any.
        let mut second = lists[random.below(lists.len())].clone();
        if random.below(3) > 0 {
            second = first.clone();
            second.swap(0, 1 + random.below(2));
        }
        if canonical(&dictionary_of(&second)).is_proper() {
            same += u32::from(check(first, &second).is_none());
        }
    }
    assert!(same > 30, "{same}");
}

#[test]
fn random_dictionaries_with_two_merges_swapped_are_told_apart_by_a_shortest_text() {
    let mut random = Random(17);
    let (mut same, mut different) = (0, 0);
    for _ in 0..600 {
        let first = random_merges(&mut random, 2, 12);
        if first.len() < 2 || !canonical(&dictionary_of(&first)).is_proper() {
            continue;
        }
        let mut second = first.clone();
        second.swap(random.below(first.len()), random.below(first.len()));
        if canonical(&dictionary_of(&second)).is_proper() {
            match check(&first, &second) {
                None => same += 1,
                Some(_) => different += 1,
            }
        }
    }
    assert!(same > 10 && different > 10, "{same} {different}");
}

#[test]
fn other_ids_are_no_difference() {
    let tokens = ["a", "b", "ab"];
    let form = |ids: [u32; 3]| {
        let vocabulary = Vocabulary::new(ids.into_iter().zip(tokens)).expect("a vocabulary");
        let dictionary = Dictionary::from_merges(vocabulary, [(ids[0], ids[1])]);
        Arc::new(CanonicalForm::new(&dictionary.expect("a dictionary")))
    };
    let (first, second) = (form([0, 1, 2]), form([9, 4, 70]));
    let same = |same_ids| Ok(Equivalence::Same { same_ids });
    assert_eq!(equivalent(&first, &first), same(true));
    assert_eq!(equivalent(&first, &second), same(false));
}

#[test]
fn a_byte_that_one_dictionary_lacks_is_a_difference() {
    let form = |tokens: &[(u32, &str)]| {
        let vocabulary = Vocabulary::new(tokens.iter().copied()).expect("a vocabulary");
        Arc::new(CanonicalForm::new(
            &Dictionary::from_merges(vocabulary, []).expect("a dictionary"),
        ))
    };
    let (first, second) = (form(&[(0, "a")]), form(&[(0, "a"), (1, "b")]));
    let Ok(Equivalence::Different(witness)) = equivalent(&first, &second) else {
        panic!("b");
    };
    assert_eq!(witness.text, b"b");
    assert_eq!((witness.first, witness.second), (None, Some(vec![1])));
}

#[test]
fn an_improper_dictionary_is_refused() {
    let vocabulary = Vocabulary::new([(0, "a"), (1, "b"), (2, "ab"), (3, "abb")]).expect("valid");
    let improper = Dictionary::from_merges(vocabulary, [(2, 1), (0, 1)]).expect("valid");
    let improper = canonical(&improper);
    let proper = canonical(&dictionary_of(&[]));
    let error = equivalent(&proper, &improper).expect_err("improper");
    assert!(error.is_improper());
}

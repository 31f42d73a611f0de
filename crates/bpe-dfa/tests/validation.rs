//! The validator reports how many tokens a sequence has in common with the tokenization of its text.

mod small;

use bpe_core::reference::Reference;
use bpe_core::{Dictionary, TokenId, Vocabulary};
use bpe_dfa::{Reason, Validator, repair};
use small::{Random, canonical, dictionary_of, merge_lists, random_merges};

/// The longest common prefix of `ids` and the tokens of their text; `None` where they are the same.
fn oracle(reference: &Reference<'_>, vocabulary: &Vocabulary, ids: &[TokenId]) -> Option<usize> {
    let text = vocabulary.decode_bytes(ids).expect("tokens");
    let expected = reference.sentencepiece(&text).expect("letters are tokens");
    let common = ids
        .iter()
        .zip(&expected)
        .take_while(|(a, b)| a == b)
        .count();
    (expected != ids).then_some(common)
}

/// All sequences of up to `most` tokens.
fn sequences(tokens: &[TokenId], most: usize) -> Vec<Vec<TokenId>> {
    let mut all = vec![Vec::new()];
    let mut from = 0;
    for _ in 0..most {
        let to = all.len();
        for index in from..to {
            for &token in tokens {
                let mut longer = all[index].clone();
                longer.push(token);
                all.push(longer);
            }
        }
        from = to;
    }
    all
}

fn check(dictionary: &Dictionary, ids: &[TokenId], validator: &mut Validator) -> bool {
    let reference = Reference::new(dictionary);
    let vocabulary = dictionary.vocabulary();
    let expected = oracle(&reference, vocabulary, ids);
    let found = validator.validate(ids);
    let place = || format!("{ids:?} of {dictionary:?}");
    assert_eq!(
        found.as_ref().map(|found| found.index),
        expected,
        "{}",
        place()
    );
    // One token at a time; what is found early is what is found in the end.
    for &id in ids {
        if let Some(early) = validator.push(&[id]) {
            assert_eq!(Some(early), found.as_ref(), "{}", place());
        }
    }
    assert_eq!(validator.finish(), found, "{}", place());
    let Some(found) = found else {
        return false;
    };
    let text = vocabulary.decode_bytes(ids).expect("tokens");
    let tokens = reference.sentencepiece(&text).expect("tokens");
    assert_eq!(found.expected, tokens.get(found.index).copied());
    let alone = |ids: &[TokenId]| oracle(&reference, vocabulary, ids).is_some();
    match found.reason {
        Reason::NotCanonical { index } => assert!(alone(&ids[index..=index])),
        Reason::InvalidPair { index } => assert!(alone(&ids[index..index + 2])),
        reason => panic!("{reason:?}"),
    }
    true
}

#[test]
fn every_short_sequence_is_judged_as_the_reference_judges_it() {
    let mut wrong = 0;
    for list in (0..=3).flat_map(merge_lists) {
        let dictionary = dictionary_of(&list);
        let form = canonical(&dictionary);
        if !form.is_proper() {
            continue;
        }
        let mut validator = Validator::new(&form).expect("proper");
        let tokens: Vec<TokenId> = dictionary
            .vocabulary()
            .iter()
            .map(|token| token.0)
            .collect();
        for ids in sequences(&tokens, 4) {
            wrong += u32::from(check(&dictionary, &ids, &mut validator));
        }
    }
    assert!(wrong > 100_000, "{wrong}");
}

#[test]
fn long_sequences_with_one_fault_are_found_at_the_right_index() {
    let mut random = Random(3);
    let (mut right, mut wrong) = (0, 0);
    for trial in 0..400_u32 {
        let merges = random_merges(&mut random, 1 + (trial % 3) as u8, 20);
        let dictionary = dictionary_of(&merges);
        let form = canonical(&dictionary);
        if !form.is_proper() {
            continue;
        }
        let mut validator = Validator::new(&form).expect("proper");
        let reference = Reference::new(&dictionary);
        let tokens: Vec<TokenId> = dictionary
            .vocabulary()
            .iter()
            .map(|token| token.0)
            .collect();
        for _ in 0..20 {
            let text: Vec<u8> = (0..random.below(60))
                .map(|_| b'a' + random.below(2) as u8)
                .collect();
            let mut ids = reference.sentencepiece(&text).expect("tokens");
            if !ids.is_empty() && random.below(4) > 0 {
                let place = random.below(ids.len());
                ids[place] = tokens[random.below(tokens.len())];
            }
            match check(&dictionary, &ids, &mut validator) {
                true => wrong += 1,
                false => right += 1,
            }
            let repaired = repair(&form, &ids).expect("tokens");
            let text = dictionary.vocabulary().decode_bytes(&ids).expect("tokens");
            assert_eq!(Some(&repaired.ids), reference.sentencepiece(&text).as_ref());
            let mut spliced = ids.clone();
            let replacement = repaired.ids[repaired.replacement.clone()].to_vec();
            spliced.splice(repaired.replaced.clone(), replacement);
            assert_eq!(spliced, repaired.ids);
            let is_right = oracle(&reference, dictionary.vocabulary(), &ids).is_none();
            assert_eq!(repaired.is_unchanged(), is_right);
        }
    }
    assert!(right > 1_000 && wrong > 2_000, "{right} {wrong}");
}

#[test]
fn ids_of_no_token_end_the_sequence_that_is_judged() {
    // aa, and ab where aa has left an a.
    let vocabulary = Vocabulary::new([(0, "a"), (1, "b"), (2, "aa"), (3, "ab")]).expect("valid");
    let dictionary = Dictionary::from_merges(vocabulary, [(0, 0), (0, 1)]).expect("valid");
    let mut validator = Validator::new(&canonical(&dictionary)).expect("proper");
    let found = validator.validate(&[2, 9, 2]).expect("9 is no token");
    assert_eq!((found.index, found.expected), (1, None));
    assert_eq!(found.reason, Reason::UnknownId { index: 1 });
    assert_eq!(found.to_string(), "token 1: no token has the id at index 1");
    // a|a is wrong before the id is reached.
    let found = validator.validate(&[1, 0, 0, 9]).expect("wrong");
    assert_eq!((found.index, found.expected), (1, Some(2)));
    assert!(repair(&canonical(&dictionary), &[0, 9]).is_err());
}

#[test]
fn what_is_kept_of_a_long_stream_is_bounded() {
    let mut merges = vec![(b"a".to_vec(), b"a".to_vec())];
    merges.push((b"aa".to_vec(), b"aa".to_vec()));
    merges.push((b"b".to_vec(), b"aaaa".to_vec()));
    let dictionary = dictionary_of(&merges);
    let form = canonical(&dictionary);
    let mut validator = Validator::new(&form).expect("proper");
    let id = |text: &str| {
        dictionary
            .vocabulary()
            .id_of(text.as_bytes())
            .expect("a token")
    };
    // No pair of bytes here is a boundary but b|b.
    for _ in 0..50 {
        assert_eq!(validator.push(&vec![id("aaaa"); 1_000]), None);
        assert!(validator.kept_tokens() <= 3_000);
    }
    assert_eq!(validator.push(&[id("a"), id("a")]), None);
    assert!(validator.is_broken());
    // More a's may still make it aaaa.
    assert_eq!(
        validator.push(&[id("b")]).map(|found| found.index),
        Some(50_000)
    );
    assert_eq!(validator.finish().map(|found| found.index), Some(50_000));
    assert_eq!(validator.finish(), None);
}

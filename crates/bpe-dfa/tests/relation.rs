//! The pair relation is the brute-force definition: a pair is valid if its text is tokenized to it.

mod small;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use bpe_core::reference::Reference;
use bpe_core::{Dictionary, TokenId, Vocabulary};
use bpe_dfa::{CanonicalMasks, PairRelation, Rectangles};
use small::{Random, canonical, dictionary_of, merge_lists, random_merges};

/// Compares all that the relation says with the reference. Returns the number of pairs.
fn check(dictionary: &Dictionary) -> usize {
    let form = canonical(dictionary);
    let reference = Reference::new(dictionary);
    let pairs = Arc::new(PairRelation::new(&form).expect("proper"));
    let vocabulary = dictionary.vocabulary();
    let tokenize = |parts: &[&[u8]]| reference.sentencepiece(&parts.concat()).expect("tokens");
    let all: Vec<(TokenId, &[u8])> = vocabulary.iter().collect();
    let canonical_ids: Vec<TokenId> = all
        .iter()
        .filter(|(id, bytes)| tokenize(&[bytes]) == [*id])
        .map(|token| token.0)
        .collect();
    let mut rows: HashMap<TokenId, Vec<bool>> = HashMap::new();
    let mut valid = 0;
    for &(left, left_bytes) in &all {
        assert_eq!(pairs.is_canonical(left), canonical_ids.contains(&left));
        for &(right, right_bytes) in &all {
            let expected = tokenize(&[left_bytes, right_bytes]) == [left, right];
            assert_eq!(
                pairs.is_valid(left, right),
                expected,
                "{left_bytes:?} {right_bytes:?} of {dictionary:?}"
            );
            assert_eq!(pairs.first_break(&[left, right]).is_none(), expected);
            valid += u64::from(expected);
            rows.entry(left).or_default().push(expected);
        }
    }
    assert_eq!(pairs.len(), canonical_ids.len());
    assert_eq!(pairs.valid_pairs(), valid);
    let mut distinct: HashSet<Vec<bool>> =
        canonical_ids.iter().map(|id| rows[id].clone()).collect();
    let free: Vec<bool> = all
        .iter()
        .map(|(id, _)| canonical_ids.contains(id))
        .collect();
    let unrestricting = canonical_ids.iter().filter(|id| rows[id] == free).count();
    assert_eq!(pairs.unrestricting_tokens(), unrestricting);
    distinct.insert(free); // The start state.
    assert_eq!(pairs.state_count(), distinct.len());
    let rectangles = Rectangles::new(&form).expect("proper");
    let mut gathered = Vec::new();
    for &left in &canonical_ids {
        let state = pairs.state_after(left).expect("canonical");
        let mut forbidden = HashSet::new();
        let mut end = None;
        for interval in pairs.forbidden(state) {
            assert!(end < Some(interval.start) && !interval.is_empty());
            end = Some(interval.end);
            forbidden.extend(interval.map(|number| pairs.token_with_number(number)));
        }
        assert_eq!(pairs.forbidden_count(state), forbidden.len());
        assert!(rectangles.forbidden(left, &mut gathered));
        assert!(gathered.iter().cloned().eq(pairs.forbidden(state)));
        for &right in &canonical_ids {
            let is_valid = pairs.is_valid(left, right);
            assert_eq!(forbidden.contains(&Some(right)), !is_valid);
            assert_eq!(pairs.allows(state, right), is_valid);
            assert!(pairs.allows(pairs.start_state(), right));
            let same = pairs.state_after(right) == Some(state);
            assert_eq!(same, rows[&left] == rows[&right]);
            let number = pairs.number(right).expect("canonical");
            assert_eq!(pairs.token_with_number(number), Some(right));
        }
    }
    for &(id, _) in all.iter().filter(|(id, _)| !canonical_ids.contains(id)) {
        assert!(!rectangles.forbidden(id, &mut gathered) && gathered.is_empty());
    }
    check_masks(&pairs, &canonical_ids);
    all.len() * all.len()
}

/// Masks say what `allows` says.
fn check_masks(pairs: &Arc<PairRelation>, ids: &[TokenId]) {
    for bytes in [0, 100, 1 << 16] {
        let masks = CanonicalMasks::new(Arc::clone(pairs), bytes);
        let states = ids.iter().filter_map(|&id| pairs.state_after(id));
        for state in states.chain([pairs.start_state()]) {
            let mut by_id = vec![u64::MAX; masks.words() + 1];
            masks.fill(state, &mut by_id);
            let mut restricted = vec![u64::MAX; masks.words() + 1];
            masks.restrict(state, &mut restricted);
            assert_eq!(by_id, restricted);
            let mut by_number = vec![u64::MAX; pairs.len().div_ceil(64) + 1];
            pairs.fill_by_number(state, &mut by_number);
            let bit = |mask: &[u64], index: u32| mask[index as usize / 64] >> (index % 64) & 1 == 1;
            let mut allowed = 0;
            for &id in ids {
                let number = pairs.number(id).expect("canonical");
                assert_eq!(bit(&by_id, id), pairs.allows(state, id));
                assert_eq!(bit(&by_number, number), pairs.allows(state, id));
                allowed += u32::from(pairs.allows(state, id));
            }
            for mask in [by_id, by_number] {
                assert_eq!(
                    mask.iter().map(|word| word.count_ones()).sum::<u32>(),
                    allowed
                );
            }
        }
    }
}

#[test]
fn the_relation_is_the_definition_for_all_dictionaries_of_three_merges() {
    let mut checked = 0;
    for list in (0..=3).flat_map(merge_lists) {
        let dictionary = dictionary_of(&list);
        if canonical(&dictionary).is_proper() {
            check(&dictionary);
            checked += 1;
        }
    }
    assert!(checked > 400, "{checked}");
}

#[test]
fn the_relation_is_the_definition_for_random_dictionaries() {
    let mut random = Random(8);
    let (mut proper, mut cases) = (0, 0);
    for trial in 0..1_000_u32 {
        let merges = random_merges(&mut random, 1 + (trial % 3) as u8, 16);
        let dictionary = dictionary_of(&merges);
        if canonical(&dictionary).is_proper() {
            proper += 1;
            cases += check(&dictionary);
        }
    }
    assert!(proper > 700 && cases > 50_000, "{proper} {cases}");
}

#[test]
fn more_tokens_than_blocks_are_numbered_too() {
    // Powers of a up to 2^k a's, and all that is one letter before them.
    let mut merges = Vec::new();
    let mut power = b"a".to_vec();
    for _ in 0..6 {
        merges.push((power.clone(), power.clone()));
        power = [&power[..], &power[..]].concat();
    }
    for letter in b'b'..=b'w' {
        for length in [1, 2, 4, 8] {
            merges.push((vec![letter], vec![b'a'; length]));
        }
    }
    let dictionary = dictionary_of(&merges);
    assert!(dictionary.is_proper());
    assert!(check(&dictionary) > 100 * 100);
}

#[test]
fn improper_dictionaries_are_refused() {
    // ab is a side before it is made.
    let vocabulary =
        Vocabulary::new([(0, "a"), (1, "b"), (2, "ab"), (3, "abb")]).expect("a vocabulary");
    let dictionary = Dictionary::from_merges(vocabulary, [(2, 1), (0, 1)]).expect("a dictionary");
    let error = PairRelation::new(&canonical(&dictionary)).expect_err("improper");
    assert!(error.is_improper());
    assert!(error.to_string().contains("token 3"), "{error}");
}

#[test]
fn ids_of_no_token_are_in_no_valid_pair() {
    let vocabulary = Vocabulary::new([(7, "a"), (4_000_000_000, "b")]).expect("a vocabulary");
    let dictionary = Dictionary::from_merges(vocabulary, []).expect("a dictionary");
    let pairs = PairRelation::new(&canonical(&dictionary)).expect("proper");
    assert!(pairs.is_valid(7, 4_000_000_000));
    for id in [0, 8, u32::MAX] {
        assert!(!pairs.is_valid(7, id) && !pairs.is_valid(id, 7) && !pairs.is_canonical(id));
    }
    assert_eq!(pairs.first_break(&[7, 7, 8]), Some(2));
    assert_eq!(pairs.first_break(&[]), None);
}

#[test]
fn a_vocabulary_without_tokens_has_no_pairs() {
    let vocabulary = Vocabulary::new(Vec::<(TokenId, &str)>::new()).expect("a vocabulary");
    let dictionary = Dictionary::from_merges(vocabulary, []).expect("a dictionary");
    let pairs = PairRelation::new(&canonical(&dictionary)).expect("proper");
    assert!(pairs.is_empty() && !pairs.is_valid(0, 0));
    assert_eq!((pairs.valid_pairs(), pairs.state_count()), (0, 1));
}

//! Every encoder against the literal SentencePiece semantics: exhaustively on small dictionaries,
//! at random on larger ones, improper dictionaries and shuffled ids included.

use std::collections::BTreeSet;
use std::sync::Arc;

use bpe_core::reference::Reference;
use bpe_core::{Algorithm, CanonicalForm, Dictionary, SpanEncoder, TokenId, Vocabulary};
use proptest::prelude::*;

/// All encoders that take the dictionary: all but `BpeBacktrack` always, that one if it is proper.
fn encoders(dictionary: &Dictionary) -> Vec<(Algorithm, Box<dyn SpanEncoder>)> {
    let canonical = Arc::new(CanonicalForm::new(dictionary));
    let encoders: Vec<_> = Algorithm::ALL
        .iter()
        .filter_map(|&algorithm| match algorithm.encoder(&canonical) {
            Ok(encoder) => Some((algorithm, encoder)),
            Err(error) => {
                assert!(error.is_improper() && !canonical.is_proper(), "{error}");
                None
            }
        })
        .collect();
    assert!(encoders.len() >= 4);
    encoders
}

fn check(dictionary: &Dictionary, texts: &[Vec<u8>]) -> usize {
    let reference = Reference::new(dictionary);
    let proper = CanonicalForm::new(dictionary).is_proper();
    let mut encoders = encoders(dictionary);
    let mut tokens = Vec::new();
    for text in texts {
        let expected = reference
            .sentencepiece(text)
            .expect("all letters are tokens");
        if dictionary.is_proper() {
            assert!(proper, "dropping rules cannot make a dictionary improper");
            assert_eq!(reference.standard(text).as_ref(), Some(&expected));
        }
        for (algorithm, encoder) in &mut encoders {
            tokens.clear();
            tokens.push(77); // What is in the vector before must stay.
            encoder.encode_span(text, &mut tokens).expect("complete");
            assert_eq!(
                tokens[1..],
                expected,
                "{algorithm} on {:?} with {:?}",
                String::from_utf8_lossy(text),
                dictionary.rules()
            );
            assert_eq!(tokens[0], 77);
        }
    }
    texts.len() * encoders.len()
}

fn words(letters: &[u8], longest: usize) -> Vec<Vec<u8>> {
    let mut all = vec![Vec::new()];
    let mut start = 0;
    for _ in 0..longest {
        let end = all.len();
        for index in start..end {
            for &letter in letters {
                let mut word = all[index].clone();
                word.push(letter);
                all.push(word);
            }
        }
        start = end;
    }
    all
}

/// The two sides of a merge.
type Sides = (Vec<u8>, Vec<u8>);

/// Calls `visit` for each list of `count` merges over the letters a and b, in every order, so that
/// improper lists and lists with two rules of one product are among them.
fn for_each_merge_list(count: usize, visit: &mut dyn FnMut(&[Sides])) {
    // Sets of merges whose sides are letters or products of other merges of the set.
    let mut sets = BTreeSet::from([BTreeSet::<Sides>::new()]);
    for _ in 0..count {
        let mut larger = BTreeSet::new();
        for set in &sets {
            let mut tokens = BTreeSet::from([b"a".to_vec(), b"b".to_vec()]);
            tokens.extend(set.iter().map(|(left, right)| [&left[..], right].concat()));
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
    for set in sets {
        permute(&mut set.into_iter().collect(), 0, visit);
    }
}

fn permute(merges: &mut Vec<Sides>, from: usize, visit: &mut dyn FnMut(&[Sides])) {
    if from == merges.len() {
        return visit(merges);
    }
    for index in from..merges.len() {
        merges.swap(from, index);
        permute(merges, from + 1, visit);
        merges.swap(from, index);
    }
}

/// The dictionary of a list of merges, its ids given in descending order of the tokens, so that no
/// encoder can take an id for a priority.
fn from_merge_list(merges: &[Sides]) -> Dictionary {
    let mut tokens = BTreeSet::from([b"a".to_vec(), b"b".to_vec()]);
    for (left, right) in merges {
        tokens.insert([&left[..], right].concat());
    }
    let ids: Vec<(TokenId, Vec<u8>)> = tokens
        .into_iter()
        .rev()
        .enumerate()
        .map(|(index, token)| (3 * index as TokenId, token))
        .collect();
    let vocabulary = Vocabulary::new(ids).expect("distinct tokens");
    let pairs: Vec<_> = merges
        .iter()
        .map(|(left, right)| {
            let id = |side: &[u8]| vocabulary.id_of(side).expect("a token");
            (id(left), id(right))
        })
        .collect();
    Dictionary::from_merges(vocabulary, pairs).expect("valid")
}

#[test]
fn all_lists_of_up_to_three_merges_over_two_letters() {
    let texts = words(b"ab", 8);
    let mut lists = 0;
    let mut runs = 0;
    for count in 0..=3 {
        for_each_merge_list(count, &mut |merges| {
            lists += 1;
            runs += check(&from_merge_list(merges), &texts);
        });
    }
    assert!(lists > 1_000, "{lists} lists");
    assert!(runs > 2_000_000, "{runs} runs");
}

/// Tokens of up to five letters with ids that jump about: tokens that nothing makes, tokens made by
/// later ones, several splits of one token.
fn random_ranks() -> impl Strategy<Value = Dictionary> {
    let token = prop::collection::vec(0..3_u8, 2..6);
    let tokens = prop::collection::hash_set(token, 0..40);
    (tokens, any::<u64>()).prop_map(|(tokens, seed)| {
        let mut all: Vec<Vec<u8>> = (0..3).map(|letter| vec![letter]).collect();
        all.extend(tokens);
        let mut state = seed;
        let mut used = BTreeSet::new();
        let entries: Vec<_> = all
            .into_iter()
            .map(|token| {
                let id = loop {
                    state = state
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1_442_695_040_888_963_407);
                    let id = (state >> 40) as TokenId;
                    if used.insert(id) {
                        break id;
                    }
                };
                (id, token)
            })
            .collect();
        Dictionary::from_ranks(Vocabulary::new(entries).expect("valid")).expect("valid")
    })
}

/// The direct loop of a rank tokenizer, on strings: no pair table, no canonical form.
fn rank_loop(dictionary: &Dictionary, text: &[u8]) -> Vec<TokenId> {
    let vocabulary = dictionary.vocabulary();
    let mut parts: Vec<&[u8]> = text.chunks(1).collect();
    let mut starts: Vec<usize> = (0..text.len()).collect();
    loop {
        let best = (1..parts.len())
            .filter_map(|right| {
                let joined = parts[right - 1].len() + parts[right].len();
                let joined = &text[starts[right - 1]..starts[right - 1] + joined];
                Some((vocabulary.id_of(joined)?, right - 1, joined))
            })
            .min_by_key(|(rank, left, _)| (*rank, *left));
        let Some((_, left, joined)) = best else {
            let id = |part: &&[u8]| vocabulary.id_of(part).expect("a token");
            return parts.iter().map(id).collect();
        };
        parts[left] = joined;
        parts.remove(left + 1);
        starts.remove(left + 1);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn random_rank_dictionaries_equal_a_direct_rank_loop(
        dictionary in random_ranks(),
        texts in prop::collection::vec(prop::collection::vec(0..3_u8, 0..40), 8),
    ) {
        let reference = Reference::new(&dictionary);
        for text in &texts {
            let expected = rank_loop(&dictionary, text);
            prop_assert_eq!(reference.sentencepiece(text), Some(expected));
        }
        check(&dictionary, &texts);
    }

    #[test]
    fn long_spans_take_the_other_loop_and_agree(
        dictionary in random_ranks(),
        text in prop::collection::vec(0..3_u8, 20..400),
    ) {
        check(&dictionary, &[text]);
    }

    #[test]
    fn the_canonical_form_as_a_dictionary_encodes_the_same(
        dictionary in random_ranks(),
        text in prop::collection::vec(0..3_u8, 0..60),
    ) {
        let form = CanonicalForm::new(&dictionary);
        let mut rules: Vec<_> = form.rules().collect();
        rules.sort_by_key(|rule| rule.priority);
        let entries: Vec<_> = dictionary.vocabulary().iter().collect();
        let canonical = Dictionary::from_merges(
            Vocabulary::new(entries).expect("valid"),
            rules.iter().map(|rule| (rule.left, rule.right)),
        )
        .expect("valid");
        prop_assert_eq!(
            Reference::new(&canonical).sentencepiece(&text),
            Reference::new(&dictionary).sentencepiece(&text)
        );
        prop_assert_eq!(
            form.rules().count() + form.dropped_rules(&dictionary).count(),
            dictionary.rules().len()
        );
    }
}

#[test]
fn a_missing_byte_is_an_error_with_its_offset_and_the_output_stays() {
    let vocabulary = Vocabulary::new([(0, "a"), (1, "b"), (2, "ab")]).expect("valid");
    let dictionary = Dictionary::from_ranks(vocabulary).expect("valid");
    for (algorithm, mut encoder) in encoders(&dictionary) {
        let mut tokens = vec![9];
        let error = encoder
            .encode_span(b"abxab", &mut tokens)
            .expect_err("no token for x");
        assert_eq!(error.byte_offset(), 2, "{algorithm}");
        assert_eq!(
            error.to_string(),
            "no token stands for the byte 0x78 (at byte 2)"
        );
        assert_eq!(tokens, [9]);
        let mut clone = encoder.clone_box();
        clone.encode_span(b"ab", &mut tokens).expect("known");
        assert_eq!(tokens, [9, 2]);
    }
}

#[test]
fn algorithms_are_found_by_name() {
    for algorithm in Algorithm::ALL {
        assert_eq!(
            algorithm.name().parse::<Algorithm>().as_ref(),
            Ok(algorithm)
        );
    }
    let error = "quick".parse::<Algorithm>().expect_err("no such encoder");
    assert!(error.to_string().contains("priority_merge"));
}

#[test]
fn public_types_can_cross_threads() {
    fn check<T: Send + Sync + std::panic::UnwindSafe>() {}
    check::<Vocabulary>();
    check::<Dictionary>();
    check::<CanonicalForm>();
    check::<bpe_core::BytePairs>();
    check::<bpe_core::EncodeError>();
    check::<bpe_core::DecodeError>();
    fn check_unsized<T: Send + Sync + ?Sized>() {}
    check_unsized::<dyn SpanEncoder>();
}

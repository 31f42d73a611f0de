//! Every algorithm against the definition: all pairs counted afresh before each merge.

use std::collections::BTreeMap;

use bpe_core::{CanonicalForm, byte_level};
use bpe_train::{Algorithm, Alphabet, StopReason, Ties, TrainOptions, Training, WordCounts, train};
use proptest::prelude::*;

type Merge = (Vec<u8>, Vec<u8>, u64);

/// The definition, word for word.
fn by_definition(
    counts: &WordCounts,
    vocabulary_size: usize,
    min_frequency: u64,
    longest: usize,
    ties: Ties,
) -> Vec<Merge> {
    let words = counts
        .iter()
        .map(|(word, count)| (word.iter().map(|&byte| vec![byte]).collect(), count))
        .collect();
    let age = (0..=255_u8)
        .map(|byte| (vec![byte], byte_level::to_char(byte) as u32))
        .collect();
    let merges = vocabulary_size - 256;
    over_atoms(words, age, merges, min_frequency, longest, ties)
}

/// The definition, over words that were cut into what they consist of.
fn over_atoms(
    mut words: Vec<(Vec<Vec<u8>>, u64)>,
    mut age: BTreeMap<Vec<u8>, u32>,
    most: usize,
    min_frequency: u64,
    longest: usize,
    ties: Ties,
) -> Vec<Merge> {
    let mut merges = Vec::new();
    while merges.len() < most {
        let mut pairs = BTreeMap::<(Vec<u8>, Vec<u8>), u64>::new();
        for (word, count) in &words {
            for two in word.windows(2) {
                *pairs.entry((two[0].clone(), two[1].clone())).or_default() += count;
            }
        }
        let allowed = pairs.into_iter().filter(|((left, right), count)| {
            *count >= min_frequency && left.len() + right.len() <= longest
        });
        // The map is in lexicographic order, and `min_by_key` takes the first of equals.
        let best = match ties {
            Ties::Lexicographic => allowed.min_by_key(|&(_, count)| u64::MAX - count),
            Ties::HuggingFace => allowed
                .min_by_key(|((left, right), count)| (u64::MAX - count, age[left], age[right])),
        };
        let Some(((left, right), count)) = best else {
            break;
        };
        for (word, _) in &mut words {
            let mut merged: Vec<Vec<u8>> = Vec::new();
            let mut next = 0;
            while next < word.len() {
                if word.get(next) == Some(&left) && word.get(next + 1) == Some(&right) {
                    merged.push([&left[..], &right[..]].concat());
                    next += 2;
                } else {
                    merged.push(word[next].clone());
                    next += 1;
                }
            }
            *word = merged;
        }
        age.insert(
            [&left[..], &right[..]].concat(),
            0x11_0000 + merges.len() as u32,
        );
        merges.push((left, right, count));
    }
    merges
}

fn learned(training: &Training) -> Vec<Merge> {
    let merges = training.merges();
    merges
        .map(|merge| (merge.left.to_vec(), merge.right.to_vec(), merge.frequency))
        .collect()
}

fn counts_of(words: &[(Vec<u8>, u64)]) -> WordCounts {
    let mut counts = WordCounts::new();
    for (word, count) in words {
        counts.add(word, *count).expect("small counts");
    }
    counts
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn every_algorithm_does_what_the_definition_says(
        words in proptest::collection::vec((proptest::collection::vec(b'a'..b'd', 1..14), 1..6_u64), 0..12),
        merges in 0..24_usize,
        min_frequency in 0..4_u64,
        longest in prop_oneof![Just(usize::MAX), 2..6_usize],
        huggingface in any::<bool>(),
    ) {
        let counts = counts_of(&words);
        let ties = if huggingface { Ties::HuggingFace } else { Ties::Lexicographic };
        let expected = by_definition(&counts, 256 + merges, min_frequency.max(1), longest, ties);
        for algorithm in Algorithm::ALL {
            let options = TrainOptions::new(256 + merges)
                .min_frequency(min_frequency)
                .longest_token(longest)
                .ties(ties)
                .algorithm(algorithm);
            let training = train(&counts, &options).expect("valid options");
            prop_assert_eq!(&learned(&training), &expected, "{}", algorithm.name());
            let is_full = expected.len() == merges;
            prop_assert_eq!(training.stopped() == StopReason::VocabularySize, is_full);
        }
    }

    #[test]
    fn any_bytes_and_any_order_of_words_give_the_same(
        words in proptest::collection::vec((proptest::collection::vec(any::<u8>(), 1..8), 1..1_000_000_000_000_u64), 0..30),
        seed in any::<u64>(),
    ) {
        let mut shuffled = words.clone();
        let mut state = seed;
        for index in (1..shuffled.len()).rev() {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            shuffled.swap(index, (state >> 33) as usize % (index + 1));
        }
        let one = train(&counts_of(&words), &TrainOptions::new(300)).expect("valid");
        let other = train(&counts_of(&shuffled), &TrainOptions::new(300)).expect("valid");
        prop_assert_eq!(learned(&one), learned(&other));
    }

    #[test]
    fn characters_are_merged_as_the_definition_says_and_cut_at_what_is_not_covered(
        words in proptest::collection::vec(("[abcéü龘]{1,9}", 1..6_u64), 0..12),
        merges in 0..24_usize,
        coverage in prop_oneof![Just(1.0), 0.0..1.0_f64],
        longest in prop_oneof![Just(usize::MAX), 2..9_usize],
        huggingface in any::<bool>(),
        broken in any::<bool>(),
    ) {
        let mut counts = WordCounts::new();
        let mut frequencies = BTreeMap::<char, u64>::new();
        for (word, count) in &words {
            let bytes = match broken {
                true => [word.as_bytes(), b"\xFF", word.as_bytes()].concat(),
                false => word.as_bytes().to_vec(),
            };
            counts.add(&bytes, *count).expect("small counts");
            let times = if broken { 2 } else { 1 };
            for character in word.chars() {
                *frequencies.entry(character).or_default() += count * times;
            }
        }
        // The fewest characters that make up the share; ties go to the smaller character.
        let total: u64 = frequencies.values().sum();
        let mut ordered: Vec<_> = frequencies.into_iter().collect();
        ordered.sort_by_key(|&(_, count)| u64::MAX - count);
        let mut alphabet = Vec::new();
        let mut sum = 0;
        for (character, count) in ordered {
            if (sum as f64) < coverage * total as f64 {
                alphabet.push(character);
            }
            sum += count;
        }
        let mut parts = Vec::new();
        for (word, count) in counts.iter() {
            let text = String::from_utf8_lossy(word);
            for part in text.split(|character| !alphabet.contains(&character)) {
                let atoms: Vec<Vec<u8>> = part.chars().map(|c| c.to_string().into_bytes()).collect();
                parts.push((atoms, count));
            }
        }
        let age = alphabet.iter().map(|&c| (c.to_string().into_bytes(), u32::from(c)));
        let ties = if huggingface { Ties::HuggingFace } else { Ties::Lexicographic };
        let expected = over_atoms(parts, age.collect(), merges, 1, longest, ties);
        for algorithm in Algorithm::ALL {
            let options = TrainOptions::new(256 + alphabet.len() + merges)
                .alphabet(Alphabet::Characters { coverage })
                .longest_token(longest)
                .ties(ties)
                .algorithm(algorithm);
            let training = train(&counts, &options).expect("valid options");
            prop_assert_eq!(&learned(&training), &expected, "{}", algorithm.name());
            let dictionary = training.dictionary(5).expect("few ids");
            prop_assert_eq!(dictionary.vocabulary().len(), 256 + alphabet.len() + expected.len());
            prop_assert!(dictionary.is_proper());
        }
    }

    #[test]
    fn seed_tokens_are_tokens_that_their_bytes_encode_to(
        words in proptest::collection::vec((proptest::collection::vec(b'a'..b'd', 1..9), 1..6_u64), 0..6),
        seeds in proptest::collection::vec(proptest::collection::vec(b'a'..b'd', 1..9), 0..6),
        first in 0..4_usize,
        more in 0..8_usize,
    ) {
        let counts = counts_of(&words);
        let before = train(&counts, &TrainOptions::new(256 + first)).expect("valid");
        let merges: Vec<_> = before.merges().map(|merge| (merge.left, merge.right)).collect();
        let sized = |size| {
            let options = TrainOptions::new(size).first_merges(merges.iter().copied());
            options.seed_tokens(seeds.clone())
        };
        let all = train(&WordCounts::new(), &sized(1000)).expect("valid");
        let size = 256 + all.merges().len() + more;
        let training = train(&counts, &sized(size)).expect("valid");
        prop_assert!(training.vocabulary_size() <= size);
        let dictionary = training.dictionary(0).expect("few ids");
        prop_assert!(dictionary.is_proper());
        let canonical = CanonicalForm::new(&dictionary);
        prop_assert_eq!(canonical.unreachable_tokens().count(), 0);
        for seed in &seeds {
            prop_assert!(dictionary.vocabulary().id_of(seed).is_some());
        }
    }

    #[test]
    fn training_goes_on_where_it_stopped_and_the_dictionary_is_proper(
        words in proptest::collection::vec((proptest::collection::vec(b'a'..b'd', 1..14), 1..6_u64), 1..12),
        stop in 0..16_usize,
        min_frequency in 1..4_u64,
    ) {
        let counts = counts_of(&words);
        let options = |merges| TrainOptions::new(256 + merges).min_frequency(min_frequency);
        let whole = train(&counts, &options(20)).expect("valid");
        let part = train(&counts, &options(stop)).expect("valid");
        for algorithm in Algorithm::ALL {
            let first = part.merges().map(|merge| (merge.left, merge.right));
            let on = options(20).first_merges(first).algorithm(algorithm);
            prop_assert_eq!(learned(&train(&counts, &on).expect("valid")), learned(&whole));
        }
        let dictionary = whole.dictionary(3).expect("few ids");
        prop_assert!(dictionary.is_proper());
        let canonical = CanonicalForm::new(&dictionary);
        prop_assert_eq!(canonical.rule_count(), whole.merges().len());
        prop_assert_eq!(canonical.unreachable_tokens().count(), 0);
    }
}

#[test]
fn overlapping_places_count_and_runs_merge_from_the_left() {
    let counts = counts_of(&[(b"aaaa".to_vec(), 2), (b"bc".to_vec(), 5)]);
    for algorithm in Algorithm::ALL {
        let options = TrainOptions::new(256 + 3).algorithm(algorithm);
        let merges = learned(&train(&counts, &options).expect("valid"));
        let expected = [("a", "a", 6), ("b", "c", 5), ("aa", "aa", 2)];
        let expected = expected.map(|(left, right, count)| (left.into(), right.into(), count));
        assert_eq!(merges, expected, "{}", algorithm.name());
    }
}

#[test]
fn merges_of_another_dictionary_come_first_even_where_they_do_not_occur() {
    let counts = counts_of(&[(b"abc".to_vec(), 3)]);
    for algorithm in Algorithm::ALL {
        let options = TrainOptions::new(300)
            .first_merges([("x", "y"), ("b", "c"), ("xy", "a")])
            .algorithm(algorithm);
        let merges = learned(&train(&counts, &options).expect("valid"));
        let expected = [("x", "y", 0), ("b", "c", 3), ("xy", "a", 0), ("a", "bc", 3)];
        let expected = expected.map(|(left, right, count)| (left.into(), right.into(), count));
        assert_eq!(merges, expected, "{}", algorithm.name());
        // `abc` is a token here, though `a` and `bc` are merged only later.
        let options = TrainOptions::new(300)
            .first_merges([("b", "c"), ("a", "b"), ("ab", "c")])
            .algorithm(algorithm);
        let merges = learned(&train(&counts, &options).expect("valid"));
        assert_eq!(merges.len(), 3, "{}", algorithm.name());
    }
}

#[test]
fn what_cannot_be_trained_says_why() {
    let counts = counts_of(&[(b"ab".to_vec(), u64::MAX / 2), (b"c".to_vec(), 2)]);
    let error = |options: TrainOptions| train(&counts, &options).expect_err("invalid").to_string();
    assert!(error(TrainOptions::new(300)).contains("2^64"));
    let counts = counts_of(&[(b"ab".to_vec(), 1)]);
    let error = |options: TrainOptions| train(&counts, &options).expect_err("invalid");
    assert!(error(TrainOptions::new(255)).to_string().contains("256"));
    let unknown = error(TrainOptions::new(300).first_merges([("a", "b"), ("abc", "d")]));
    assert_eq!(unknown.first_merge_index(), Some(1));
    let twice = error(TrainOptions::new(300).first_merges([("a", "b"), ("a", "b")]));
    assert_eq!(twice.first_merge_index(), Some(1));
    for seeds in [&["ab", ""][..], &["ab", "b", ""]] {
        let seed = error(TrainOptions::new(300).seed_tokens(seeds.iter().copied()));
        assert!(seed.to_string().contains("is empty"));
    }
    let seed = error(
        TrainOptions::new(600)
            .alphabet(Alphabet::Characters { coverage: 1.0 })
            .seed_tokens([&b"a"[..], b"\xFF"]),
    );
    assert!(seed.to_string().contains("seed token 1"));
    let large = error(TrainOptions::new(300).memory_limit(10));
    assert!(large.to_string().contains("limit of 10"));
    let nothing = train(&WordCounts::new(), &TrainOptions::new(300)).expect("valid");
    assert_eq!(nothing.merges().len(), 0);
    assert_eq!(nothing.stopped(), StopReason::NoFrequentPair);
}

#[test]
fn a_dictionary_is_extended_by_what_is_learned_after_its_merges() {
    let counts = counts_of(&[(b"abab".to_vec(), 3), (b"cd".to_vec(), 1)]);
    let part = train(&counts, &TrainOptions::new(257)).expect("valid");
    let old = part.dictionary(1000).expect("few ids");
    let first = part.merges().map(|merge| (merge.left, merge.right));
    let whole = train(&counts, &TrainOptions::new(259).first_merges(first)).expect("valid");
    let extended = whole.extended(&old, 5000).expect("free ids");
    let ids = |tokens: &[&[u8]]| -> Vec<_> {
        tokens
            .iter()
            .map(|token| extended.vocabulary().id_of(token))
            .collect()
    };
    let expected = [1000 + 97, 1256, 5000, 5001].map(Some);
    assert_eq!(ids(&[b"a", b"ab", b"abab", b"cd"]), expected);
    assert_eq!(extended.rules().len(), 3);
    assert!(whole.extended(&old, 1100).is_err(), "an id that is taken");
}

#[test]
fn a_million_letters_in_one_word_and_counts_over_32_bits() {
    let mut state = 77_u64;
    let letters = (0..1_000_000).map(|_| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        b"ACGT"[(state >> 62) as usize]
    });
    let counts = counts_of(&[
        (letters.collect(), 1 << 33),
        (b"ab".repeat(100_000), 1 << 40),
    ]);
    let training = train(&counts, &TrainOptions::new(512)).expect("valid");
    assert_eq!(training.merges().len(), 256);
    let first = training.merges().next().expect("some");
    assert_eq!((first.token, first.frequency), (&b"ab"[..], 100_000 << 40));
}

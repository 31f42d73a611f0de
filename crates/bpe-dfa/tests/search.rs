//! Matches in tokens are those in their text.

use std::sync::Arc;

use bpe_core::{TokenId, Vocabulary};
use bpe_dfa::explicit::{Limits, StringDfa};
use bpe_dfa::{TokenMatch, TokenSearch};

mod small;
use small::Random;

const TOKENS: [&str; 8] = ["a", "b", "ab", "ba", "aab", "abab", "bbb", "abba"];

const PATTERNS: [&str; 7] = ["ab", "a+", "(ab)+b?", "b(a|b){3}a", "a|ab|abb", "", "bb?a*"];

/// Leftmost, then longest, not empty, by trying all.
fn brute_force(language: &StringDfa, text: &[u8]) -> Vec<std::ops::Range<usize>> {
    let mut matches = Vec::new();
    let mut start = 0;
    while start < text.len() {
        let ends = (start + 1..=text.len()).rev();
        let longest = ends
            .into_iter()
            .find(|&end| language.accepts(&text[start..end]));
        match longest {
            Some(end) => {
                matches.push(start..end);
                start = end;
            }
            None => start += 1,
        }
    }
    matches
}

#[test]
fn matches_in_any_tokens_are_those_of_their_text_with_the_tokens_they_touch() {
    let vocabulary = Arc::new(Vocabulary::new((0..).zip(TOKENS)).expect("a vocabulary"));
    let mut random = Random(71);
    let mut found = 0;
    for pattern in PATTERNS {
        let language = StringDfa::from_regex(pattern, &Limits::default()).expect("small");
        let search = TokenSearch::new(&vocabulary, language.clone());
        for _ in 0..300 {
            let ids: Vec<TokenId> = (0..random.below(12))
                .map(|_| random.below(8) as u32)
                .collect();
            let text = vocabulary.decode_bytes(&ids).expect("tokens");
            let owner: Vec<usize> = ids
                .iter()
                .enumerate()
                .flat_map(|(index, &id)| vec![index; TOKENS[id as usize].len()])
                .collect();
            let expected: Vec<TokenMatch> = brute_force(&language, &text)
                .into_iter()
                .map(|bytes| TokenMatch {
                    tokens: owner[bytes.start]..owner[bytes.end - 1] + 1,
                    bytes,
                })
                .collect();
            found += expected.len();
            assert_eq!(
                search.find_all(&ids).expect("tokens"),
                expected,
                "{pattern} {ids:?}"
            );
        }
    }
    assert!(found > 3_000, "{found}");
}

#[test]
fn an_id_of_no_token_is_an_error_with_its_index() {
    let vocabulary = Arc::new(Vocabulary::new([(0, "a")]).expect("a vocabulary"));
    let language = StringDfa::from_regex("a", &Limits::default()).expect("small");
    let error = TokenSearch::new(&vocabulary, language)
        .find_all(&[0, 5])
        .expect_err("5");
    assert_eq!((error.id(), error.index()), (Some(5), Some(1)));
}

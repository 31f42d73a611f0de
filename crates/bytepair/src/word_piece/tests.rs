use std::collections::HashMap;
use std::ops::Range;

use bpe_core::TokenId;
use proptest::prelude::*;

use super::WordPiece;

/// The literal loop: for each start the longest end.
struct Literal {
    ids: HashMap<String, TokenId>,
    unknown: TokenId,
    prefix: String,
    most_characters: usize,
}

impl Literal {
    fn tokenize(&self, word: &str) -> Vec<(TokenId, Range<usize>)> {
        if word.is_empty() {
            return Vec::new();
        }
        let unknown = vec![(self.unknown, 0..word.len())];
        if word.chars().count() > self.most_characters {
            return unknown;
        }
        let mut tokens = Vec::new();
        let mut start = 0;
        while start < word.len() {
            let ends = (start + 1..=word.len()).rev();
            let longest = ends
                .filter(|&end| word.is_char_boundary(end))
                .find_map(|end| {
                    let mut text = word[start..end].to_owned();
                    if start > 0 {
                        text.insert_str(0, &self.prefix);
                    }
                    Some((*self.ids.get(&text)?, end))
                });
            let Some((id, end)) = longest else {
                return unknown;
            };
            tokens.push((id, start..end));
            start = end;
        }
        tokens
    }
}

fn both(texts: &[String], prefix: &str, most: usize) -> (WordPiece, Literal) {
    let mut ids = HashMap::new();
    ids.insert("?".to_owned(), 7);
    for (text, id) in texts.iter().zip(100..) {
        ids.entry(text.clone()).or_insert(id);
    }
    let model = WordPiece::new(ids.clone(), "?", prefix, most).expect("a model");
    let literal = Literal {
        ids,
        unknown: 7,
        prefix: prefix.to_owned(),
        most_characters: most,
    };
    (model, literal)
}

fn words(letters: &[char], longest: usize) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut from = 0;
    for _ in 0..longest {
        let to = words.len();
        for index in from..to {
            for letter in letters {
                words.push(format!("{}{letter}", words[index]));
            }
        }
        from = to;
    }
    words
}

#[test]
fn every_small_vocabulary_gives_the_literal_tokens_of_every_short_word() {
    // All sets of texts of up to 3 letters from a few, some continued.
    let texts = ["a", "b", "ab", "aab", "#a", "#b", "#ba", "#bab", "#aa"];
    let words = words(&['a', 'b'], 7);
    for set in 0..1_u32 << texts.len() {
        let chosen = texts.iter().enumerate();
        let chosen: Vec<String> = chosen
            .filter(|(bit, _)| set >> bit & 1 == 1)
            .map(|(_, text)| (*text).to_owned())
            .collect();
        let (model, literal) = both(&chosen, "#", 6);
        for word in &words {
            assert_eq!(
                model.tokenize(word),
                literal.tokenize(word),
                "{chosen:?} {word:?}"
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn random_vocabularies_give_the_literal_tokens(
        texts in proptest::collection::vec("(#|##|)[ab#é]{0,6}", 0..30),
        prefix in "#{0,2}",
        most in 0_usize..20,
        words in proptest::collection::vec("[ab#é]{0,24}", 1..20),
    ) {
        let (model, literal) = both(&texts, &prefix, most);
        for word in &words {
            prop_assert_eq!(model.tokenize(word), literal.tokenize(word));
        }
        for text in &texts {
            prop_assert_eq!(model.token_id(text), literal.ids.get(text).copied());
            prop_assert_eq!(model.token_text(literal.ids[text]), Some(&**text));
        }
    }
}

#[test]
fn text_that_spells_a_continued_token_is_matched_whole_at_the_start_of_a_word() {
    let texts = ["##ing", "#", "###", "##i", "##n", "##g"].map(str::to_owned);
    let (model, literal) = both(&texts, "##", 100);
    for word in ["##ing", "##in", "#ing", "##", "###", "##ingg", "####"] {
        assert_eq!(model.tokenize(word), literal.tokenize(word), "{word}");
    }
    assert_eq!(model.tokenize("##ing"), [(100, 0..5)]);
}

/// Quadratic for the literal loop, and for failure links that are followed one by one: a long token
/// that never matches to its end, and words that begin it over and over.
#[test]
fn long_words_and_long_tokens_take_linear_time() {
    let long = 65_000;
    let texts = [
        "a".to_owned(),
        "##a".to_owned(),
        format!("{}b", "a".repeat(long)),
        format!("##{}b", "a".repeat(long)),
        "##aaa".to_owned(),
    ];
    let (model, _) = both(&texts, "##", usize::MAX);
    let count = |length: usize| model.tokenize(&"a".repeat(length)).len();
    assert_eq!(count(1), 1);
    // One `a`, then `##aaa` as often as it fits, then `##a`.
    assert_eq!(count(1_000_000), 1 + 999_999 / 3);
    assert_eq!(
        model.tokenize(&format!("{}c", "a".repeat(1_000_000))),
        [(7, 0..1_000_001)]
    );
}

#[test]
fn what_is_wrong_with_the_tokens_is_said() {
    let model = |tokens: &[(&str, TokenId)], unknown| {
        let tokens = tokens.iter().map(|&(text, id)| (text.to_owned(), id));
        WordPiece::new(tokens, unknown, "##", 100).map_err(|error| error.to_string())
    };
    assert_eq!(
        model(&[("a", 1), ("b", 1)], "a").expect_err("one id"),
        r#"model.vocab: "a" and "b" have the same id 1"#
    );
    assert_eq!(
        model(&[("a", 1), ("a", 2)], "a").expect_err("one text"),
        r#"model.vocab: "a" is there twice"#
    );
    assert_eq!(
        model(&[("a", 1)], "[UNK]").expect_err("no unknown token"),
        r#"model.unk_token: "[UNK]" is not in the vocabulary"#
    );
}

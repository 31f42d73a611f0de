//! The strategies of others: where they are right, and the texts on which they are not.

mod common;

use bpe_core::{Dictionary, Vocabulary};
use bpe_lexers::Pattern;
use bpe_parallel::{Comparison, Synchronised, Tokenize, Tokens, Wanted, Workers};
use common::{Plain, Random};

fn sequential(plain: &Plain, text: &[u8]) -> Vec<u32> {
    let mut tokens = Tokens::default();
    plain
        .encode(text, Wanted::Ids, &mut tokens)
        .expect("complete");
    tokens.ids
}

fn synchronised(plain: &Plain, text: &[u8], part: usize, workers: &Workers) -> Vec<u32> {
    let strategy = Synchronised::new().part_bytes(part);
    let encoded = strategy.encode(
        plain,
        plain.seams(),
        &plain.specials,
        text,
        Wanted::Ids,
        workers,
    );
    encoded.expect("complete").0.ids
}

#[test]
fn overlap_is_right_without_a_pattern_and_begins_anew_on_periodic_texts() {
    let mut random = Random(1);
    let workers = Workers::new(2);
    let mut retries = 0;
    for _ in 0..10 {
        let plain = Plain::new(random.dictionary(2, 6));
        let text: Vec<u8> = (0..3000).map(|_| b'a' + random.below(2) as u8).collect();
        let encoded = Comparison::Overlap.encode(&plain, &text, 400, &workers);
        assert_eq!(encoded.expect("complete").0, sequential(&plain, &text));
        let same = vec![b'a'; 3001];
        let (ids, _, again) = Comparison::Overlap
            .encode(&plain, &same, 401, &workers)
            .expect("complete");
        assert_eq!(ids, sequential(&plain, &same));
        retries += again;
    }
    assert!(retries > 0);
}

/// docs/theory.md, section 9, "What does not hold", 2. Cut at byte 31 the two parts share 219 characters of
/// tokens, many more than the longest token has, and what is joined behind them is wrong: the lexer on the
/// left ends the pre-token behind `informa`, that on the right goes on.
#[test]
fn overlap_is_wrong_on_a_text_that_two_lexers_of_deepseek_v3_cut_differently() {
    let text = format!(".{}informa\u{e7}\u{e3}o sobre", "the".repeat(100));
    // All bytes, `the`, and a token across the place that the pattern cuts.
    let mut tokens: Vec<Vec<u8>> = (0..=255).map(|byte| vec![byte]).collect();
    tokens.extend([b"th".to_vec(), b"the".to_vec(), b"a\xC3".to_vec()]);
    let id = u32::from;
    let merges = vec![(id(b't'), id(b'h')), (256, id(b'e')), (id(b'a'), 0xC3)];
    let vocabulary = Vocabulary::new((0..).zip(&tokens)).expect("distinct");
    let dictionary = Dictionary::from_merges(vocabulary, merges).expect("valid");
    let mut plain = Plain::new(dictionary);
    plain.patterns = Pattern::deepseek_v3().into();
    let workers = Workers::new(2);
    let expected = sequential(&plain, text.as_bytes());
    assert!(!expected.contains(&258), "the pattern cuts between a and ç");
    let overlap = Comparison::Overlap.encode(&plain, text.as_bytes(), 31, &workers);
    // Parts of 31 bytes share at most as many; the published overlap is longer.
    let longer = Comparison::Overlap.encode(&plain, text.as_bytes(), 290, &workers);
    let wrong = [overlap, longer]
        .into_iter()
        .filter(|encoded| encoded.as_ref().expect("complete").0 != expected);
    assert!(wrong.count() > 0, "the criterion of 004 takes a wrong join");
    for part in 1..text.len() {
        assert_eq!(
            synchronised(&plain, text.as_bytes(), part, &workers),
            expected,
            "{part}"
        );
    }
}

#[test]
fn delimiters_and_ids_without_places_lose_tokens() {
    let mut random = Random(2);
    let workers = Workers::new(2);
    let mut plain = Plain::new(random.dictionary(2, 8));
    let vocabulary = plain.dictionary.vocabulary();
    let mut tokens: Vec<Vec<u8>> = vocabulary.iter().map(|(_, token)| token.to_vec()).collect();
    tokens.extend([b" ".to_vec(), b" a".to_vec()]);
    let merges = plain
        .dictionary
        .rules()
        .iter()
        .map(|rule| (rule.left, rule.right));
    let blank = tokens.len() as u32 - 2;
    let merges: Vec<_> = merges.chain([(blank, 0)]).collect();
    let vocabulary = Vocabulary::new((0..).zip(&tokens)).expect("distinct");
    plain.dictionary = Dictionary::from_merges(vocabulary, merges).expect("valid");
    let text: Vec<u8> = (0..4000)
        .map(|_| [b'a', b'b', b'a', b' '][random.below(4)])
        .collect();
    let expected = sequential(&plain, &text);
    // A part that ends in a blank takes it from the token that begins with it.
    let delimiter = Comparison::Delimiter(b' ').encode(&plain, &text, 300, &workers);
    assert_ne!(delimiter.expect("complete").0, expected);
    // Many places have the same ids.
    let same = vec![b'a'; 3001];
    let by_ids = Comparison::TokenIds.encode(&plain, &same, 700, &workers);
    assert_ne!(by_ids.expect("complete").0, sequential(&plain, &same));
    assert_eq!(synchronised(&plain, &text, 300, &workers), expected);
    assert_eq!(
        synchronised(&plain, &same, 700, &workers),
        sequential(&plain, &same)
    );
}

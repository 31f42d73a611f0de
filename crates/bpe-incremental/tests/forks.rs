//! Truncation and forks: whatever has been shared or taken away, a history is that of its text.

mod support;

use bpe_core::{Dictionary, Vocabulary};
use bpe_incremental::{History, LastTokenEngine};
use support::{Random, canonical, dictionary_of};

/// Deep tokens of both kinds, so that states reach far back.
fn engine() -> LastTokenEngine {
    let mut merges = vec![(b"a".to_vec(), b"b".to_vec())];
    for len in 1..100 {
        merges.push((b"ab".repeat(len), b"ab".to_vec()));
    }
    merges.push((b"b".to_vec(), b"b".to_vec()));
    for len in 1..40 {
        merges.push((b"a".to_vec(), [&b"a".repeat(len - 1)[..], b"bb"].concat()));
    }
    LastTokenEngine::new(&canonical(&dictionary_of(&merges))).expect("proper")
}

fn fresh(engine: &LastTokenEngine, text: &[u8]) -> History {
    let mut history = engine.history();
    history.extend(text).expect("letters are tokens");
    history
}

fn assert_same(history: &History, text: &[u8]) {
    let expected = fresh(history.engine(), text);
    assert_eq!(history.len(), text.len());
    assert_eq!(history.depth(), expected.depth());
    for len in 0..=text.len() {
        assert_eq!(history.last_token(len), expected.last_token(len), "{len}");
        assert_eq!(history.depth_at(len), expected.depth_at(len), "{len}");
    }
    assert_eq!(history.tokens(text.len()), expected.tokens(text.len()));
    assert_eq!(history.last_token(text.len() + 1), None);
}

#[test]
fn any_mix_of_pushes_truncations_and_forks_gives_the_history_of_the_text() {
    let mut random = Random(11);
    for round in 0..40 {
        let engine = match round % 2 {
            0 => engine(),
            _ => LastTokenEngine::new_wide(engine().canonical()).expect("proper"),
        };
        let mut all: Vec<(History, Vec<u8>)> = vec![(engine.history(), Vec::new())];
        for _ in 0..60 {
            let which = random.below(all.len());
            let count = all.len();
            let (history, text) = &mut all[which];
            match random.below(5) {
                0 | 1 => {
                    let bytes = match random.below(3) {
                        0 => b"ab".repeat(random.below(150)),
                        1 => b"a".repeat(random.below(50)),
                        _ => (0..random.below(30))
                            .map(|_| b'a' + random.below(2) as u8)
                            .collect(),
                    };
                    history.extend(&bytes).expect("letters are tokens");
                    text.extend(bytes);
                }
                2 => {
                    let len = random.below(text.len() + 1);
                    text.truncate(len);
                    history.truncate(len);
                }
                3 => {
                    for _ in 0..random.below(20) {
                        text.pop();
                        history.truncate(text.len());
                    }
                }
                _ if count < 12 => {
                    let fork = (history.fork(), text.clone());
                    all.push(fork);
                }
                _ => {
                    all.swap_remove(which);
                }
            }
            if all.is_empty() {
                all.push((engine.history(), Vec::new()));
            }
        }
        for (history, text) in &all {
            assert_same(history, text);
        }
    }
}

#[test]
fn a_long_chain_of_forks_is_read_and_dropped_without_deep_recursion() {
    let engine = engine();
    let mut history = engine.history();
    let mut text = Vec::new();
    for round in 0..20_000 {
        let piece: &[u8] = if round % 3 == 0 {
            b"abababbab"
        } else {
            b"aaaabbbbb"
        };
        let pieces = piece.repeat(8);
        history.extend(&pieces).expect("letters are tokens");
        text.extend(pieces);
        history = history.fork();
    }
    let expected = fresh(&engine, &text);
    assert_eq!(history.tokens(text.len()), expected.tokens(text.len()));
    history.truncate(1000);
    assert_same(&history, &text[..1000]);
    drop(history);
}

#[test]
fn a_cleared_history_begins_again() {
    let engine = engine();
    let mut history = fresh(&engine, b"abababab");
    let fork = history.fork();
    history.clear();
    assert!(history.is_empty());
    assert!(history.tokens(0).is_empty());
    history.extend(b"babb").expect("letters are tokens");
    assert_same(&history, b"babb");
    assert_same(&fork, b"abababab");
}

#[test]
fn public_types_can_be_shared_between_threads() {
    fn check<T: Send + Sync + std::panic::UnwindSafe + std::panic::RefUnwindSafe>() {}
    check::<LastTokenEngine>();
    check::<History>();
    check::<bpe_incremental::IncrementalEncoder>();
    check::<bpe_incremental::EngineError>();
    check::<bpe_incremental::PlacedToken>();
    check::<bpe_incremental::TokensFromEnd<'static>>();
}

#[test]
fn a_dictionary_without_tokens_has_an_engine() {
    let vocabulary = Vocabulary::new([] as [(u32, &[u8]); 0]).expect("valid");
    let dictionary = Dictionary::from_merges(vocabulary, []).expect("valid");
    let engine = LastTokenEngine::new(&canonical(&dictionary)).expect("proper");
    let mut history = engine.history();
    assert!(history.push(b'a').is_err());
    assert!(history.tokens(0).is_empty());
}

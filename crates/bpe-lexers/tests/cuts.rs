//! Derived cuts are safe, on every short text, and are found where ordinary text has them.

mod common;

use std::cell::RefCell;

use bpe_lexers::{Cuts, Engine, Family, Pattern, Spanner, SpecialMatcher};
use common::{EVERY_CLASS, for_each_tuple, lexer, spans};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

/// Patterns in sequence, by a name.
fn sequences() -> Vec<(&'static str, Vec<Pattern>)> {
    let one = |name| (name, vec![Pattern::by_name(name).expect("a known name")]);
    let mut sequences: Vec<_> = ["gpt2", "cl100k", "o200k", "qwen3", "tekken", "digit_groups"]
        .map(one)
        .into();
    let tiktoken = Pattern::of_family(Family::Cl100kOfTiktoken);
    sequences.push(("cl100k of tiktoken", vec![tiktoken]));
    sequences.push(("deepseek_v3", Pattern::deepseek_v3().into()));
    sequences
}

/// The transcriptions of the patterns, which know nothing of automata.
fn spanner(patterns: &[Pattern]) -> Spanner {
    let lexers = patterns.iter();
    Spanner::new(
        lexers
            .map(|pattern| lexer(pattern, Engine::Transcription))
            .collect(),
    )
}

fn cuts(patterns: &[Pattern]) -> Cuts {
    Cuts::new(patterns).expect("they can be analysed")
}

/// Checks every cut of a text.
fn check(name: &str, cuts: &Cuts, spanner: &mut Spanner, text: &[u8]) -> usize {
    let none = SpecialMatcher::none();
    let mut found = 0;
    let mut whole = None;
    let mut from = 0;
    while let Some(cut) = cuts.next_cut(text, from) {
        assert!(0 < cut && cut >= from && cut < text.len());
        assert_eq!(cuts.last_cut(text, cut), Some(cut));
        let (left, right) = text.split_at(cut);
        let mut joined = spans(spanner, left, &none);
        joined.extend(spans(spanner, right, &none));
        let whole = whole.get_or_insert_with(|| spans(spanner, text, &none));
        assert_eq!(&joined, whole, "{name}, {text:?} cut at {cut}");
        found += 1;
        from = cut + 1;
    }
    found
}

/// A character of each class of the patterns, with the letters of two contractions and both cases.
const CLASSES: &[char] = &[
    ' ', '\t', '\n', '\'', '/', '!', '1', 's', 'r', 'e', 'a', 'B', '\u{6F22}', '\u{301}',
];

#[test]
fn cuts_are_safe_in_every_text_of_four_classes() {
    for (name, patterns) in sequences() {
        let (cuts, mut spanner) = (cuts(&patterns), spanner(&patterns));
        let mut found = 0;
        for length in 0..=4 {
            for_each_tuple(CLASSES, length, |text| {
                found += check(name, &cuts, &mut spanner, text.as_bytes());
            });
        }
        assert!(found > 1_000, "only {found} cuts of {name} were checked");
    }
}

#[test]
fn cuts_are_safe_in_every_text_of_three_characters_of_all_categories() {
    for (name, patterns) in sequences() {
        let (cuts, mut spanner) = (cuts(&patterns), spanner(&patterns));
        for_each_tuple(EVERY_CLASS, 3, |text| {
            check(name, &cuts, &mut spanner, text.as_bytes());
        });
    }
}

#[test]
fn no_pair_of_classes_is_missing() {
    // A pair that is no cut has a text that shows it, of three characters around it at most, for most
    // pairs. Here: no boundary, or the left part alone is cut otherwise.
    let patterns = [Pattern::gpt2()];
    let (cuts, mut spanner) = (cuts(&patterns), spanner(&patterns));
    let none = SpecialMatcher::none();
    let mut shown = 0;
    for &a in CLASSES {
        for &b in CLASSES {
            if cuts.is_cut(a, b) {
                continue;
            }
            let around = ["", " ", "\t", "a", "e", "'", "!", "1", "'r"];
            let is_shown = around.iter().any(|before| {
                around.iter().any(|after| {
                    let (left, right) = (format!("{before}{a}"), format!("{b}{after}"));
                    let mut joined = spans(&mut spanner, left.as_bytes(), &none);
                    joined.extend(spans(&mut spanner, right.as_bytes(), &none));
                    let text = left.clone() + &right;
                    joined != spans(&mut spanner, text.as_bytes(), &none)
                })
            });
            assert!(
                is_shown,
                "nothing speaks against a cut between {a:?} and {b:?}"
            );
            shown += 1;
        }
    }
    assert!(shown > 50);
}

#[test]
fn cuts_are_safe_in_any_bytes() {
    let all = RefCell::new(Vec::new());
    for (name, patterns) in sequences() {
        let entry = (name, cuts(&patterns), spanner(&patterns));
        all.borrow_mut().push(entry);
    }
    let piece = prop_oneof![
        4 => proptest::sample::select(EVERY_CLASS).prop_map(|c| c.to_string().into_bytes()),
        1 => proptest::collection::vec(any::<u8>(), 1..4),
        1 => proptest::sample::select(vec![b"\xE6\xBC".to_vec(), b"\xF0\x9F".to_vec(), b"\xA2".to_vec()]),
    ];
    let texts = proptest::collection::vec(piece, 0..20).prop_map(|pieces| pieces.concat());
    let mut runner = TestRunner::new(ProptestConfig::with_cases(2_000));
    let result = runner.run(&texts, |text| {
        for (name, cuts, spanner) in all.borrow_mut().iter_mut() {
            check(name, cuts, spanner, &text);
        }
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
}

#[test]
fn ordinary_text_has_cuts_where_one_expects_them() {
    for name in ["gpt2", "cl100k", "o200k"] {
        let cuts = cuts(&[Pattern::by_name(name).expect("a known name")]);
        let cut = |text: &str| cuts.last_cut(text.as_bytes(), text.len());
        assert_eq!(cut("one two"), Some(3));
        assert_eq!(cut("one, two"), Some(4));
        assert_eq!(cut("one."), Some(3));
        assert_eq!(cut("2026-11"), Some(5));
        // Ideographic comma and full stop, fullwidth comma.
        for stop in ["\u{3001}", "\u{3002}", "\u{FF0C}"] {
            let text = format!("\u{6F22}{stop}\u{6F22}");
            assert_eq!(cut(&text), Some(if name == "gpt2" { 6 } else { 3 }));
        }
        // One word, one run of blanks, nothing: no cut.
        for text in ["word", "    ", "", "\u{6F22}\u{6F22}"] {
            assert_eq!(cut(text), None);
        }
        // Always a boundary, and no cut: two tabs alone are one span.
        assert!(!cuts.is_cut('\t', '1'));
    }
}

#[test]
fn the_nearest_cut_is_the_nearest() {
    let cuts = cuts(&[Pattern::o200k()]);
    let text = "some words, 12 numbers\u{3002} and \u{6F22}\u{5B57}\u{3001}more".as_bytes();
    let mut all = Vec::new();
    let mut from = 0;
    while let Some(cut) = cuts.next_cut(text, from) {
        all.push(cut);
        from = cut + 1;
    }
    assert!(all.len() > 5);
    for near in 0..=text.len() {
        let expected = all.iter().min_by_key(|cut| (cut.abs_diff(near), **cut));
        assert_eq!(
            cuts.nearest_cut(text, near),
            expected.copied(),
            "near {near}"
        );
    }
}

#[test]
fn byte_pairs_cut_between_whole_characters_only() {
    let cuts = Cuts::at_byte_pairs(|_, _| true);
    let text = "a\u{6F22}b".as_bytes();
    assert_eq!(cuts.next_cut(text, 0), Some(1));
    assert_eq!(cuts.next_cut(text, 2), Some(4));
    assert_eq!(cuts.next_cut(text, 5), None);
    assert_eq!(cuts.next_cut(b"a\xFFb", 0), None);
}

#[test]
fn a_character_that_the_end_of_the_text_splits_is_not_cut_at() {
    // The last character is not whole, so nothing is known about the place before it.
    let cuts = cuts(&[Pattern::cl100k()]);
    let text = "one \u{6F22}".as_bytes();
    assert_eq!(cuts.last_cut(&text[..5], 5), Some(3));
    assert_eq!(cuts.last_cut(b"1\xE6\xBC", 3), None);
    assert_eq!(cuts.last_cut("1\u{6F22}".as_bytes(), 3), Some(1));
}

//! Safe cuts are safe, on every short text, and are found where ordinary text has them.

mod common;

use std::cell::RefCell;

use bpe_lexers::{Engine, Family, Spanner, SpecialMatcher, TranscribedLexer, last_safe_cut};
use common::{EVERY_CLASS, KNOWN, for_each_tuple, known, pre_tokens, pre_tokens_into, spans};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

fn family(name: &str) -> Family {
    known(name).family().expect("a known pattern has a family")
}

/// Checks every cut of a text, and that the cut for each `at_most` is the last one up to it.
fn check(lexer: &mut TranscribedLexer, family: Family, text: &str) -> usize {
    let mut whole = Vec::new();
    let mut part = Vec::new();
    let mut last = None;
    let mut cuts = 0;
    for at_most in 0..=text.len() + 1 {
        let cut = last_safe_cut(family, text.as_bytes(), at_most);
        if cut == Some(at_most) {
            assert!(at_most > 0 && at_most < text.len() && text.is_char_boundary(at_most));
            if whole.is_empty() {
                whole = pre_tokens(lexer, text);
            }
            let (left, right) = text.split_at(at_most);
            pre_tokens_into(lexer, left, &mut part);
            let mut joined = part.clone();
            pre_tokens_into(lexer, right, &mut part);
            joined.extend(part.iter().map(|r| r.start + at_most..r.end + at_most));
            assert_eq!(joined, whole, "{text:?} cut at {at_most} for {family:?}");
            last = cut;
            cuts += 1;
        }
        assert_eq!(cut, last, "{text:?} up to {at_most} for {family:?}");
    }
    cuts
}

fn check_all(name: &str, alphabet: &[char], longest: u32) {
    let mut lexer = TranscribedLexer::new(&known(name)).expect("a known pattern");
    let mut cuts = 0;
    for length in 0..=longest {
        for_each_tuple(alphabet, length, |text| {
            cuts += check(&mut lexer, family(name), text);
        });
    }
    assert!(cuts > 50_000, "only {cuts} cuts of {name} were checked");
}

/// A character of each class of the table of cuts, with the letters of two contractions and
/// both cases.
const CLASSES: &[char] = &[
    ' ', '\t', '\n', '\'', '/', '!', '1', 's', 'r', 'e', 'a', 'B', '\u{6F22}', '\u{301}',
];

#[test]
fn cuts_of_gpt2_are_safe_in_every_text_of_five_classes() {
    check_all("gpt2", CLASSES, 5);
}

#[test]
fn cuts_of_cl100k_are_safe_in_every_text_of_five_classes() {
    check_all("cl100k", CLASSES, 5);
}

#[test]
fn cuts_of_o200k_are_safe_in_every_text_of_five_classes() {
    check_all("o200k", CLASSES, 5);
}

#[test]
fn cuts_are_safe_in_every_text_of_three_characters_of_all_categories() {
    for name in KNOWN {
        check_all(name, EVERY_CLASS, 3);
    }
}

#[test]
fn cuts_are_safe_in_any_bytes() {
    let spanners = RefCell::new(KNOWN.map(|name| {
        let lexer = known(name).lexer(Engine::Auto).expect("a known pattern");
        (family(name), Spanner::new(vec![lexer]))
    }));
    let none = SpecialMatcher::none();
    let piece = prop_oneof![
        4 => proptest::sample::select(EVERY_CLASS).prop_map(|c| c.to_string().into_bytes()),
        1 => proptest::collection::vec(any::<u8>(), 1..4),
        1 => proptest::sample::select(vec![b"\xE6\xBC".to_vec(), b"\xF0\x9F".to_vec(), b"\xA2".to_vec()]),
    ];
    let texts = proptest::collection::vec(piece, 0..20).prop_map(|pieces| pieces.concat());
    let mut runner = TestRunner::new(ProptestConfig::with_cases(3_000));
    let result = runner.run(&texts, |text| {
        for (family, spanner) in spanners.borrow_mut().iter_mut() {
            let whole = spans(spanner, &text, &none);
            for at_most in 0..=text.len() {
                let Some(cut) = last_safe_cut(*family, &text, at_most) else {
                    continue;
                };
                let (left, right) = text.split_at(cut);
                let mut joined = spans(spanner, left, &none);
                joined.extend(spans(spanner, right, &none));
                prop_assert_eq!(&joined, &whole, "cut at {} for {:?}", cut, *family);
            }
        }
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
}

#[test]
fn ordinary_text_has_cuts_where_one_expects_them() {
    fn cut<'t>(name: &str, text: &'t str) -> Option<(&'t str, &'t str)> {
        let cut = last_safe_cut(family(name), text.as_bytes(), text.len())?;
        Some(text.split_at(cut))
    }
    for name in KNOWN {
        assert_eq!(cut(name, "one two"), Some(("one", " two")));
        assert_eq!(cut(name, "one, two"), Some(("one,", " two")));
        assert_eq!(cut(name, "one."), Some(("one", ".")));
        assert_eq!(cut(name, "2026-11"), Some(("2026-", "11")));
        // Ideographic comma and full stop, fullwidth comma.
        for stop in ["\u{3001}", "\u{3002}", "\u{FF0C}"] {
            let text = format!("\u{6F22}{stop}\u{6F22}");
            let place = if name == "gpt2" { 6 } else { 3 };
            assert_eq!(cut(name, &text), Some(text.split_at(place)));
        }
        // One word, one run of blanks, nothing: no cut.
        for text in ["word", "    ", "", "\u{6F22}\u{6F22}"] {
            assert_eq!(cut(name, text), None);
        }
    }
    assert_eq!(cut("gpt2", ";\nword"), Some((";", "\nword")));
    assert_eq!(cut("cl100k", ";\nword"), Some((";\n", "word")));
    assert_eq!(cut("o200k", ";\nword"), Some((";\n", "word")));
}

#[test]
fn the_table_of_cuts_is_what_is_found() {
    // Rows and columns of the table in the documentation, for gpt2, cl100k, o200k.
    let (letters, numbers, others) = ("aB\u{6F22}", "1\u{BD}", "!\u{1F600}");
    let (marks, blanks, newlines) = ("\u{301}\u{20DD}", " \t\u{3000}", "\r\n");
    let rows: [(&str, &str, [bool; 3]); 22] = [
        (letters, blanks, [true, true, true]),
        (letters, newlines, [true, true, true]),
        (numbers, blanks, [true, true, true]),
        (numbers, newlines, [true, true, true]),
        (others, blanks, [true, true, true]),
        (marks, blanks, [true, true, true]),
        ("/", blanks, [true, true, true]),
        (letters, numbers, [true, true, true]),
        (letters, others, [true, true, true]),
        (letters, "/", [true, true, true]),
        (letters, marks, [true, true, false]),
        (numbers, letters, [true, true, true]),
        (numbers, others, [true, true, true]),
        (others, numbers, [true, true, true]),
        (newlines, letters, [false, true, true]),
        (newlines, others, [false, true, true]),
        (newlines, "/", [false, true, false]),
        (others, letters, [true, false, false]),
        (others, newlines, [true, false, false]),
        // In no row of the table: an apostrophe, white space before anything else.
        ("'", "a1 !", [false, false, false]),
        ("a1 !\n", "'", [false, false, false]),
        (blanks, "a1 \n!", [false, false, false]),
    ];
    for (left, right, expected) in rows {
        for (a, b) in left
            .chars()
            .flat_map(|a| right.chars().map(move |b| (a, b)))
        {
            let text = format!("{a}{b}");
            for (name, expected) in KNOWN.iter().zip(expected) {
                assert_eq!(
                    last_safe_cut(family(name), text.as_bytes(), text.len()),
                    expected.then_some(a.len_utf8()),
                    "{text:?} for {name}"
                );
            }
        }
    }
}

#[test]
fn a_character_that_the_end_of_the_text_splits_is_not_cut_at() {
    // The last character is not whole, so nothing is known about the place before it.
    let text = "one \u{6F22}".as_bytes();
    assert_eq!(last_safe_cut(Family::Cl100k, &text[..5], 5), Some(3));
    assert_eq!(last_safe_cut(Family::Cl100k, b"1\xE6\xBC", 3), None);
    assert_eq!(
        last_safe_cut(Family::Cl100k, "1\u{6F22}".as_bytes(), 3),
        Some(1)
    );
}

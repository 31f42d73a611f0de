//! The spanner: special tokens, invalid bytes, gaps and stages.

mod common;

use std::cell::RefCell;
use std::ops::{ControlFlow, Range};

use bpe_lexers::{Engine, Label, LexError, Lexer, Span, Spanner, SpecialMatcher};
use common::{EVERY_CLASS, KNOWN, known, lexer, pieces, spans};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

fn spanner(name: &str) -> Spanner {
    Spanner::new(vec![lexer(&known(name), Engine::Auto)])
}

fn specials(texts: &[&str]) -> SpecialMatcher {
    SpecialMatcher::new(texts).expect("texts that are neither empty nor there twice")
}

/// The spans as text, a word as itself, a gap in brackets, a special token with its number.
fn shown(spanner: &mut Spanner, text: &str, specials: &SpecialMatcher) -> Vec<String> {
    spans(spanner, text.as_bytes(), specials)
        .into_iter()
        .map(|(bytes, label)| {
            let text = String::from_utf8_lossy(bytes);
            match label {
                Label::Word => text.into_owned(),
                Label::Gap => format!("[{text}]"),
                Label::Special(index) => format!("{index}:{text}"),
            }
        })
        .collect()
}

#[test]
fn of_two_special_tokens_that_start_together_the_longer_is_found() {
    let texts = ["<a>", "<a><b>", "<b>"];
    let mut spanner = spanner("gpt2");
    let found = shown(&mut spanner, "<a><b>x<a>", &specials(&texts));
    assert_eq!(found, ["1:<a><b>", "x", "0:<a>"]);
    // The order of the list does not matter but for the numbers.
    let texts = ["<a><b>", "<b>", "<a>"];
    let found = shown(&mut spanner, "<a><b>x<a>", &specials(&texts));
    assert_eq!(found, ["0:<a><b>", "x", "2:<a>"]);
}

#[test]
fn of_two_special_tokens_that_overlap_the_first_in_the_text_is_found() {
    let mut spanner = spanner("gpt2");
    let found = shown(&mut spanner, "xaabbx", &specials(&["abb", "aab"]));
    assert_eq!(found, ["x", "1:aab", "bx"]);
}

#[test]
fn special_tokens_stand_at_both_ends_and_back_to_back() {
    let texts = ["<s>", "</s>"];
    let mut spanner = spanner("cl100k");
    let found = shown(&mut spanner, "<s>Hi</s><s></s>", &specials(&texts));
    assert_eq!(found, ["0:<s>", "Hi", "1:</s>", "0:<s>", "1:</s>"]);
    let found = shown(&mut spanner, "<s>", &specials(&texts));
    assert_eq!(found, ["0:<s>"]);
}

#[test]
fn blanks_around_a_special_token_are_lexed_without_it() {
    let mut spanner = spanner("o200k");
    // Before it: as at the end of a text, the blanks stay together. After it: as at the start.
    let found = shown(&mut spanner, "a  <s>  b", &specials(&["<s>"]));
    assert_eq!(found, ["a", "  ", "0:<s>", " ", " b"]);
    let found = shown(&mut spanner, "it<s>'s", &specials(&["<s>"]));
    assert_eq!(found, ["it", "0:<s>", "'s"]);
}

#[test]
fn a_special_token_may_hold_white_space_and_part_of_a_word() {
    let mut spanner = spanner("gpt2");
    let found = shown(&mut spanner, "new york", &specials(&["w y"]));
    assert_eq!(found, ["ne", "0:w y", "ork"]);
}

#[test]
fn without_special_tokens_their_text_is_text() {
    let mut spanner = spanner("cl100k");
    let found = shown(&mut spanner, "<|x|>", &SpecialMatcher::none());
    assert_eq!(found, ["<|", "x", "|>"]);
    assert!(SpecialMatcher::none().is_empty());
    assert!(specials(&[]).is_empty());
    assert_eq!(specials(&[]).find(b"abc", 0), None);
}

#[test]
fn special_tokens_that_contradict_each_other_are_errors() {
    let Err(error) = SpecialMatcher::new(["a", ""]) else {
        panic!("the empty text stands everywhere");
    };
    assert_eq!(error.index(), Some(1));
    let Err(error) = SpecialMatcher::new(["a", "b", "a"]) else {
        panic!("two numbers for one text");
    };
    assert_eq!(error.index(), Some(2));
}

#[test]
fn the_longest_special_token_is_known_and_a_search_from_beyond_the_end_finds_nothing() {
    let specials = specials(&["<s>", "<long>"]);
    assert_eq!(specials.max_len(), 6);
    assert!(!specials.is_empty());
    assert_eq!(specials.find(b"<s>", 1), None);
    assert_eq!(specials.find(b"<s>", 4), None);
    assert_eq!(SpecialMatcher::none().max_len(), 0);
}

#[test]
fn each_invalid_part_is_a_word_and_ends_the_segment_before_it() {
    let none = SpecialMatcher::none();
    let mut spanner = spanner("gpt2");
    let word = |bytes: &'static [u8]| (bytes, Label::Word);
    // Two bytes that are never valid; a character that breaks off; a lone continuation.
    assert_eq!(
        spans(&mut spanner, b"ab\xFF\xFFcd", &none),
        [word(b"ab"), word(b"\xFF"), word(b"\xFF"), word(b"cd")]
    );
    assert_eq!(
        spans(&mut spanner, b"a\xE6\xBCb\xBC", &none),
        [word(b"a"), word(b"\xE6\xBC"), word(b"b"), word(b"\xBC")]
    );
    // The blanks stay together, as at the end of a text, and what follows starts anew.
    assert_eq!(
        spans(&mut spanner, b"a  \xFF  b", &none),
        [
            word(b"a"),
            word(b"  "),
            word(b"\xFF"),
            word(b" "),
            word(b" b")
        ]
    );
}

#[test]
fn a_special_token_may_be_bytes_that_are_not_utf_8() {
    let specials = SpecialMatcher::new([b"\xFF\xFE".as_slice()]).expect("one text");
    assert_eq!(
        spans(&mut spanner("gpt2"), b"a\xFF\xFEb\xFF", &specials),
        [
            (b"a".as_slice(), Label::Word),
            (b"\xFF\xFE", Label::Special(0)),
            (b"b", Label::Word),
            (b"\xFF", Label::Word),
        ]
    );
}

#[test]
fn without_a_stage_each_segment_is_one_word() {
    let found = shown(
        &mut Spanner::new(Vec::new()),
        "a b<s> c",
        &specials(&["<s>"]),
    );
    assert_eq!(found, ["a b", "0:<s>", " c"]);
    assert_eq!(
        spans(
            &mut Spanner::new(Vec::new()),
            b"a \xFFb",
            &SpecialMatcher::none()
        ),
        [
            (b"a ".as_slice(), Label::Word),
            (b"\xFF", Label::Word),
            (b"b", Label::Word)
        ]
    );
}

#[cfg(any(feature = "automata", feature = "reference"))]
mod patterns_of_a_user {
    use bpe_lexers::Pattern;

    use super::*;

    fn stages(sources: &[&str]) -> Spanner {
        let stage = |source: &&str| lexer(&Pattern::new(source), Engine::Auto);
        Spanner::new(sources.iter().map(stage).collect())
    }

    #[test]
    fn what_the_pattern_does_not_match_is_a_gap() {
        let none = SpecialMatcher::none();
        let found = shown(&mut stages(&[r"\d+"]), "ab12c3", &none);
        assert_eq!(found, ["[ab]", "12", "[c]", "3"]);
        let found = shown(&mut stages(&[r"\d+"]), "12ab", &none);
        assert_eq!(found, ["12", "[ab]"]);
        let found = shown(&mut stages(&[r"\d+"]), "ab", &none);
        assert_eq!(found, ["[ab]"]);
    }

    #[test]
    fn empty_matches_are_no_pre_tokens() {
        let none = SpecialMatcher::none();
        let found = shown(&mut stages(&["a*"]), "baac", &none);
        assert_eq!(found, ["[b]", "aa", "[c]"]);
        let found = shown(&mut stages(&["|a"]), "\u{E9}a", &none);
        assert_eq!(found, ["[\u{E9}a]"]);
    }

    #[test]
    fn the_pieces_of_a_stage_are_the_segments_of_the_next() {
        let none = SpecialMatcher::none();
        // Numbers by threes first, then words: gaps of the first stage go on too.
        let found = shown(&mut stages(&[r"\d{1,3}", r"\w+"]), "ab1234 c!", &none);
        assert_eq!(found, ["ab", "123", "4", "[ ]", "c", "[!]"]);
        // `$` and a look-ahead of the second stage see the end of the piece, not of the text.
        let found = shown(&mut stages(&[r"\d", r"a$|\s+(?!\S)|\s+"]), "ba  1a", &none);
        assert_eq!(found, ["[ba]", "  ", "[1]", "a"]);
    }

    #[test]
    fn the_last_stage_gives_the_label() {
        let none = SpecialMatcher::none();
        // The first stage matches everything, the second nothing, and the other way round.
        let found = shown(&mut stages(&["(?s).+", "x"]), "ab", &none);
        assert_eq!(found, ["[ab]"]);
        let found = shown(&mut stages(&["x", "(?s).+"]), "ab", &none);
        assert_eq!(found, ["ab"]);
    }

    #[cfg(feature = "reference")]
    #[test]
    fn an_error_says_where_in_the_whole_text_the_lexer_gave_up() {
        let source = r"(?:a|aa)+(?<=b)|<|.";
        let lexer = bpe_lexers::ReferenceLexer::new(&Pattern::new(source)).expect("a pattern");
        let mut spanner = Spanner::new(vec![Box::new(lexer)]);
        let text = format!("\u{FF}<s>\u{FF}<{}", "a".repeat(60));
        let mut seen = 0;
        let error = spanner
            .for_each_span(text.as_bytes(), &specials(&["<s>"]), |span| {
                seen = span.end;
                ControlFlow::<()>::Continue(())
            })
            .expect_err("sixty times a have more ways than steps");
        assert_eq!((error.offset(), seen), (8, 8));
        assert!(error.to_string().contains("byte 8"), "{error}");
    }
}

#[test]
fn a_visitor_can_stop_at_any_span() {
    let text = b"a b<s>\xFF c";
    let specials = specials(&["<s>"]);
    let mut spanner = spanner("gpt2");
    let all = spans(&mut spanner, text, &specials).len();
    assert_eq!(all, 5);
    for stop_at in 0..all {
        let mut seen = 0;
        let flow = spanner.for_each_span(text, &specials, |span: Span| {
            if seen == stop_at {
                return ControlFlow::Break(span.start);
            }
            seen += 1;
            ControlFlow::Continue(())
        });
        assert!(matches!(flow, Ok(ControlFlow::Break(_))), "at {stop_at}");
        assert_eq!(seen, stop_at);
    }
}

#[test]
fn a_lexer_that_breaks_its_contract_is_an_error_and_no_panic() {
    #[derive(Clone)]
    struct Wrong(Range<usize>);
    impl Lexer for Wrong {
        fn next_pre_token(&mut self, _: &str, _: usize) -> Result<Option<Range<usize>>, LexError> {
            Ok(Some(self.0.clone()))
        }
        fn clone_box(&self) -> Box<dyn Lexer> {
            Box::new(self.clone())
        }
    }
    // Inside a character, beyond the end, backwards, empty, before the start.
    #[allow(clippy::reversed_empty_ranges)]
    for range in [0..1, 0..9, 3..1, 0..0, 0..3] {
        let mut spanner = Spanner::new(vec![Box::new(Wrong(range.clone()))]);
        let flow = spanner.for_each_span("\u{6F22}a".as_bytes(), &SpecialMatcher::none(), |_| {
            ControlFlow::<()>::Continue(())
        });
        assert!(flow.is_err(), "{range:?}");
    }
}

/// The special tokens of the random texts: prefixes and suffixes of each other.
const TANGLED: [&str; 5] = ["<s>", "<s", "s><", "<s><s>", "\u{6F22}"];

/// The leftmost-longest special token, by trying everything.
fn find_by_trying(text: &[u8], from: usize) -> Option<(usize, Range<usize>)> {
    (from..text.len()).find_map(|start| {
        let fits = |special: &&(usize, &str)| text[start..].starts_with(special.1.as_bytes());
        let list: Vec<(usize, &str)> = TANGLED.into_iter().enumerate().collect();
        let longest = list
            .iter()
            .filter(fits)
            .max_by_key(|special| special.1.len());
        longest.map(|(index, special)| (*index, start..start + special.len()))
    })
}

#[test]
fn spans_of_any_bytes_cover_them_with_the_parts_that_a_plain_search_finds() {
    let piece = prop_oneof![
        3 => proptest::sample::select(EVERY_CLASS).prop_map(|c| c.to_string().into_bytes()),
        2 => proptest::sample::select(TANGLED.to_vec()).prop_map(|s| s.as_bytes().to_vec()),
        1 => proptest::collection::vec(any::<u8>(), 1..4),
        1 => proptest::sample::select(vec![b"\xE6\xBC".to_vec(), b"\xF0\x9F".to_vec()]),
    ];
    let texts = proptest::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat());
    let specials = specials(&TANGLED);
    let spanners = RefCell::new(KNOWN.map(|name| (name, spanner(name))));
    let mut runner = TestRunner::new(ProptestConfig::with_cases(5_000));
    let result = runner.run(&texts, |text| {
        for (name, spanner) in spanners.borrow_mut().iter_mut() {
            let mut lexer = lexer(&known(name), Engine::Transcription);
            let mut expected = Vec::new();
            let mut from = 0;
            loop {
                let special = find_by_trying(&text, from);
                let end = special
                    .as_ref()
                    .map_or(text.len(), |(_, range)| range.start);
                for part in parts(&text[from..end]) {
                    match std::str::from_utf8(part) {
                        Ok(segment) => expected.extend(
                            pieces(lexer.as_mut(), segment)
                                .into_iter()
                                .map(|piece| (piece.as_bytes(), Label::Word)),
                        ),
                        Err(_) => expected.push((part, Label::Word)),
                    }
                }
                let Some((index, range)) = special else { break };
                expected.push((&text[range.clone()], Label::Special(index)));
                from = range.end;
            }
            // `spans` checks that they cover the text.
            prop_assert_eq!(spans(spanner, &text, &specials), expected, "with {}", name);
        }
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
}

/// Cuts bytes into the longest valid stretches and, one by one, the invalid parts between them,
/// by the rule of the Unicode standard: an invalid part is the longest beginning of a character
/// that breaks off there, or one byte.
fn parts(mut bytes: &[u8]) -> Vec<&[u8]> {
    let mut parts = Vec::new();
    while !bytes.is_empty() {
        let length = match std::str::from_utf8(bytes) {
            Ok(_) => bytes.len(),
            Err(error) if error.valid_up_to() > 0 => error.valid_up_to(),
            Err(error) => error.error_len().unwrap_or(bytes.len()),
        };
        let (part, rest) = bytes.split_at(length);
        parts.push(part);
        bytes = rest;
    }
    parts
}

#[test]
fn there_are_as_many_invalid_words_as_replacement_characters() {
    let texts = proptest::collection::vec(
        proptest::sample::select(b"a \xE6\xBC\xA2\xF0\x9F\x98\x80\xC3\xA9\xFF\xED".to_vec()),
        0..24,
    );
    let none = SpecialMatcher::none();
    let spanner = RefCell::new(Spanner::new(Vec::new()));
    let mut runner = TestRunner::new(ProptestConfig::with_cases(5_000));
    let result = runner.run(&texts, |text| {
        let invalid = spans(&mut spanner.borrow_mut(), &text, &none)
            .iter()
            .filter(|(bytes, _)| std::str::from_utf8(bytes).is_err())
            .count();
        let replaced = String::from_utf8_lossy(&text).matches('\u{FFFD}').count();
        prop_assert_eq!(invalid, replaced);
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
}

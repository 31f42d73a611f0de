//! A stream has the spans of the whole text, however the text is cut into pieces, and hands them out
//! as soon as they are certain.

mod common;

use bpe_lexers::{
    Analysis, Engine, Family, Label, Pattern, Spanner, SpecialMatcher, StreamError, StreamEvent,
    StreamSpanner,
};
use common::{EVERY_CLASS, for_each_tuple, lexer, spans};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

fn sequences() -> Vec<(String, Vec<Pattern>)> {
    let one = |family: Family| (format!("{family:?}"), vec![Pattern::of_family(family)]);
    let mut sequences: Vec<_> = Family::ALL.into_iter().map(one).collect();
    sequences.push(("deepseek_v3".to_owned(), Pattern::deepseek_v3().into()));
    sequences.push(("none".to_owned(), Vec::new()));
    sequences
}

/// The readings that a stream has told of.
#[derive(Clone, Debug, PartialEq)]
struct Collected {
    readings: Vec<Vec<(Vec<u8>, Label, bool)>>,
    most: usize,
}

impl Collected {
    fn new() -> Self {
        Self {
            readings: vec![Vec::new()],
            most: 1,
        }
    }

    fn take(&mut self, event: StreamEvent<'_>) -> Result<(), StreamError> {
        match event {
            StreamEvent::Readings(from) => {
                assert!(!from.is_empty());
                let readings = from.iter().map(|&number| self.readings[number].clone());
                self.readings = readings.collect();
                self.most = self.most.max(from.len());
            }
            StreamEvent::Start { reading, label } => {
                let spans = &mut self.readings[reading];
                assert!(spans.last().is_none_or(|last| last.2), "two open spans");
                spans.push((Vec::new(), label, false));
            }
            StreamEvent::Text(bytes) => {
                assert!(!bytes.is_empty() && bytes.len() < 5_000);
                for spans in &mut self.readings {
                    let open = spans.last_mut().expect("an open span");
                    assert!(!open.2);
                    open.0.extend_from_slice(bytes);
                }
            }
            StreamEvent::End { reading } => {
                let last = self.readings[reading].last_mut().expect("an open span");
                assert!(!last.2 && !last.0.is_empty());
                last.2 = true;
            }
        }
        Ok(())
    }

    /// The spans of the lone reading, all ended.
    fn spans(&self) -> Vec<(&[u8], Label)> {
        let [spans] = self.readings.as_slice() else {
            panic!("several readings are left");
        };
        spans
            .iter()
            .map(|(bytes, label, ended)| {
                assert!(ended);
                (bytes.as_slice(), *label)
            })
            .collect()
    }
}

/// Streams a text in pieces.
fn streamed<'t>(
    stream: &mut StreamSpanner,
    pieces: impl IntoIterator<Item = &'t [u8]>,
) -> Collected {
    let mut collected = Collected::new();
    for piece in pieces {
        let pushed = stream.push(piece, &mut |event| collected.take(event));
        pushed.expect("few readings");
        assert!(stream.held_bytes() < 64);
    }
    let finished = stream.finish(&mut |event| collected.take(event));
    finished.expect("few readings");
    collected
}

fn oracle(patterns: &[Pattern]) -> Spanner {
    let lexers = patterns.iter();
    Spanner::new(
        lexers
            .map(|pattern| lexer(pattern, Engine::Transcription))
            .collect(),
    )
}

#[test]
fn every_short_text_streamed_byte_by_byte_has_its_spans() {
    let alphabet = [
        ' ', '\t', '\n', 's', 'L', 'a', 'B', '\u{6F22}', '\u{301}', '1', '\'', '/', '!',
    ];
    let none = SpecialMatcher::none();
    for (name, patterns) in sequences() {
        let mut oracle = oracle(&patterns);
        let mut stream = StreamSpanner::new(&patterns, &none).expect("it can be analysed");
        let mut check = |text: &str| {
            let collected = streamed(&mut stream, text.as_bytes().chunks(1));
            assert_eq!(
                collected.spans(),
                spans(&mut oracle, text.as_bytes(), &none),
                "{name}"
            );
        };
        for length in 0..=4 {
            for_each_tuple(&alphabet, length, &mut check);
        }
        for_each_tuple(EVERY_CLASS, 2, &mut check);
    }
}

#[test]
fn any_bytes_with_special_tokens_in_any_pieces_have_their_spans() {
    let specials = ["<s>", "<s>>", "s><", "\n \n", "\u{6F22}A", " <", "\u{FF}"];
    let specials = SpecialMatcher::new(specials).expect("they differ");
    let mut all: Vec<_> = sequences()
        .into_iter()
        .map(|(name, patterns)| {
            let stream = StreamSpanner::new(&patterns, &specials).expect("it can be analysed");
            (name, oracle(&patterns), stream)
        })
        .collect();
    let piece = prop_oneof![
        4 => proptest::sample::select(EVERY_CLASS).prop_map(|c| c.to_string().into_bytes()),
        2 => proptest::sample::select(vec!["<s>", "<s", ">", "<", "s>", "\n ", "  ", "AB", "\u{6F22}"])
            .prop_map(|text| text.as_bytes().to_vec()),
        1 => proptest::collection::vec(any::<u8>(), 1..4),
        1 => proptest::sample::select(vec![b"\xE6\xBC".to_vec(), b"\xF0\x9F".to_vec(), b"\xA2".to_vec()]),
    ];
    let texts = proptest::collection::vec(piece, 0..25).prop_map(|pieces| pieces.concat());
    let cases = (texts, proptest::collection::vec(1_usize..6, 25));
    let all = std::cell::RefCell::new(&mut all);
    let mut runner = TestRunner::new(ProptestConfig::with_cases(2_000));
    let result = runner.run(&cases, |(text, sizes)| {
        for (name, oracle, stream) in all.borrow_mut().iter_mut() {
            let mut rest = text.as_slice();
            let mut pieces = Vec::new();
            for size in sizes.iter().cycle() {
                let (piece, later) = rest.split_at(rest.len().min(*size));
                pieces.push(piece);
                rest = later;
                if rest.is_empty() {
                    break;
                }
            }
            let collected = streamed(stream, pieces);
            let expected = spans(oracle, &text, &specials);
            prop_assert_eq!(collected.spans(), expected, "{}", name);
        }
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
}

#[test]
fn undecided_boundaries_are_told_with_their_readings_and_long_spans_are_not_kept() {
    let none = SpecialMatcher::none();
    let texts = [
        ("\n".to_owned() + &" ".repeat(300_000), 2),
        ("\n".to_owned() + &" ".repeat(300_000) + "a", 2),
        ("\n".to_owned() + &" ".repeat(300_000) + "\n", 2),
        ("\u{6F22}".to_owned() + &"A".repeat(300_000), 2),
        ("\u{6F22}".to_owned() + &"A".repeat(300_000) + "a", 2),
        ("a".repeat(300_000), 1),
    ];
    let patterns = [Pattern::o200k()];
    let mut stream = StreamSpanner::new(&patterns, &none).expect("it can be analysed");
    for (text, most) in texts {
        let collected = streamed(&mut stream, text.as_bytes().chunks(4_000));
        assert_eq!(collected.most, most);
        assert_eq!(
            collected.spans(),
            spans(&mut oracle(&patterns), text.as_bytes(), &none)
        );
    }
}

#[test]
fn spans_are_handed_out_as_soon_as_no_continuation_can_change_them() {
    // Whatever is handed out in a lone reading is in every continuation; and what is held back is
    // what some continuation changes, up to the look-ahead of the pattern.
    let none = SpecialMatcher::none();
    let patterns = [Pattern::cl100k()];
    let mut stream = StreamSpanner::new(&patterns, &none).expect("it can be analysed");
    let mut collected = Collected::new();
    let mut push = |text: &str| {
        let pushed = stream.push(text.as_bytes(), &mut |event| collected.take(event));
        pushed.expect("few readings");
        let spans = collected.readings[0].iter();
        spans
            .map(|span| String::from_utf8_lossy(&span.0).into_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(push("it"), ["it"]);
    assert_eq!(push("'"), ["it", "'"]);
    // A contraction, or a word with an apostrophe before it.
    assert_eq!(push("r"), ["it", "'r"]);
    assert_eq!(push("e"), ["it", "'re"]);
    assert_eq!(push("  "), ["it", "'re", " "]);
    assert_eq!(push("x"), ["it", "'re", " ", " x"]);
}

#[test]
fn what_cannot_be_analysed_is_refused_and_readings_with_many_boundaries_are_right() {
    let none = SpecialMatcher::none();
    let error = StreamSpanner::new(&[Pattern::new("(?<=a)b")], &none).expect_err("look-behind");
    assert!(error.is_unsupported());
    // Each letter may be alone, or be the first of the match that an exclamation mark ends.
    let pattern = Pattern::new("[a-z]+!|[a-z]");
    assert!(Analysis::new(std::slice::from_ref(&pattern)).is_ok());
    let mut stream =
        StreamSpanner::new(std::slice::from_ref(&pattern), &none).expect("it can be analysed");
    let text = "ab".repeat(10) + "!ab";
    let collected = streamed(&mut stream, text.as_bytes().chunks(1));
    let mut oracle = Spanner::new(vec![lexer(&pattern, Engine::Auto)]);
    assert_eq!(
        collected.spans(),
        spans(&mut oracle, text.as_bytes(), &none)
    );
}

//! The engines agree: on every short text, on random text, on patterns of a user.

mod common;

use std::cell::RefCell;
use std::ops::Range;

use bpe_lexers::{Engine, Lexer};
use common::{
    ENGINES, EVERY_CLASS, KNOWN, classes_of, for_each_tuple, known, lexer, pre_tokens,
    pre_tokens_into,
};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

/// Compares the engines of this build with the transcription, text by text.
struct Comparison {
    name: &'static str,
    lexers: Vec<(Engine, Box<dyn Lexer>)>,
    expected: Vec<Range<usize>>,
    found: Vec<Range<usize>>,
}

impl Comparison {
    fn new(name: &'static str) -> Self {
        let lexers = ENGINES
            .iter()
            .map(|engine| (*engine, lexer(&known(name), *engine)))
            .collect();
        Self {
            name,
            lexers,
            expected: Vec::new(),
            found: Vec::new(),
        }
    }

    fn check(&mut self, text: &str) {
        let Some(((_, oracle), others)) = self.lexers.split_first_mut() else {
            panic!("there is an engine");
        };
        pre_tokens_into(oracle.as_mut(), text, &mut self.expected);
        for (engine, other) in others {
            pre_tokens_into(other.as_mut(), text, &mut self.found);
            assert_eq!(
                self.found, self.expected,
                "{engine:?} on {text:?} with {}",
                self.name
            );
        }
        // The known patterns match everything.
        let mut covered = 0;
        for range in &self.expected {
            assert_eq!(range.start, covered, "{text:?} with {}", self.name);
            covered = range.end;
        }
        assert_eq!(covered, text.len(), "{text:?} with {}", self.name);
    }
}

#[test]
fn engines_agree_on_every_text_of_up_to_three_characters_of_all_categories() {
    for name in KNOWN {
        let mut comparison = Comparison::new(name);
        for length in 0..=3 {
            for_each_tuple(EVERY_CLASS, length, |text| comparison.check(text));
        }
    }
}

#[test]
fn engines_agree_on_every_text_of_up_to_five_classes_of_gpt2() {
    agree_on_classes("gpt2", 5);
}

#[test]
fn engines_agree_on_every_text_of_up_to_five_classes_of_cl100k() {
    agree_on_classes("cl100k", 5);
}

#[test]
fn engines_agree_on_every_text_of_up_to_four_classes_of_o200k() {
    agree_on_classes("o200k", 4);
}

fn agree_on_classes(name: &'static str, longest: u32) {
    let mut comparison = Comparison::new(name);
    for length in 4..=longest {
        for_each_tuple(classes_of(name), length, |text| comparison.check(text));
    }
}

#[test]
fn engines_agree_on_long_runs() {
    let runs = [
        " ".repeat(1 << 16),
        " ".repeat(1 << 16) + "x",
        "\n ".repeat(1 << 15),
        "a".repeat(1 << 16),
        "A".repeat(1 << 16),
        "\u{6F22}AAAA".repeat(1 << 14),
        "1".repeat(1 << 16),
        "!\n".repeat(1 << 15),
        "\u{301}".repeat(1 << 15),
        "'s".repeat(1 << 15),
    ];
    for name in KNOWN {
        let mut comparison = Comparison::new(name);
        for run in &runs {
            comparison.check(run);
        }
    }
}

#[test]
fn engines_agree_on_random_unicode() {
    agree_on_random(any::<String>());
}

#[test]
fn engines_agree_on_random_mixtures_of_all_categories() {
    let characters = proptest::collection::vec(proptest::sample::select(EVERY_CLASS), 0..40);
    agree_on_random(characters.prop_map(|characters| characters.into_iter().collect()));
}

fn agree_on_random(texts: impl Strategy<Value = String>) {
    let comparisons = RefCell::new(KNOWN.map(Comparison::new));
    run(5_000, texts, |text| {
        for comparison in comparisons.borrow_mut().iter_mut() {
            comparison.check(&text);
        }
    });
}

/// Runs a property whose failure is a panic. (The macro of proptest would make new lexers for
/// each case.)
fn run<S: Strategy>(cases: u32, strategy: S, property: impl Fn(S::Value)) {
    let mut runner = TestRunner::new(ProptestConfig::with_cases(cases));
    let result = runner.run(&strategy, |value| {
        property(value);
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
}

#[cfg(all(feature = "automata", feature = "reference"))]
#[test]
fn automata_find_what_the_reference_finds_with_patterns_of_a_user() {
    let alphabet = [
        'a', 'b', 's', 'K', ' ', '\n', '!', '1', '\u{E9}', '\u{6F22}',
    ];
    for source in common::CUSTOM {
        let pattern = bpe_lexers::Pattern::new(source);
        assert_eq!(pattern.family(), None);
        let mut reference = lexer(&pattern, Engine::Reference);
        let mut automata = lexer(&pattern, Engine::Automata);
        let (mut expected, mut found) = (Vec::new(), Vec::new());
        for length in 0..=4 {
            for_each_tuple(&alphabet, length, |text| {
                pre_tokens_into(reference.as_mut(), text, &mut expected);
                pre_tokens_into(automata.as_mut(), text, &mut found);
                assert_eq!(found, expected, "{source:?} on {text:?}");
            });
        }
    }
}

#[cfg(all(feature = "automata", feature = "reference"))]
#[test]
fn automata_find_what_the_reference_finds_on_random_text() {
    for source in common::CUSTOM {
        let pattern = bpe_lexers::Pattern::new(source);
        let lexers = RefCell::new((
            lexer(&pattern, Engine::Reference),
            lexer(&pattern, Engine::Automata),
        ));
        let texts = prop_oneof![any::<String>(), "[ab s\n!1\u{E9}\u{6F22}]{0,60}"];
        run(300, texts, |text| {
            let (reference, automata) = &mut *lexers.borrow_mut();
            assert_eq!(
                pre_tokens(automata.as_mut(), &text),
                pre_tokens(reference.as_mut(), &text),
                "{source:?} on {text:?}"
            );
        });
    }
}

#[test]
fn a_start_inside_a_character_counts_as_the_next_boundary() {
    for engine in ENGINES {
        let mut lexer = lexer(&known("gpt2"), *engine);
        // U+6F22 takes the bytes 0..3.
        for start in 1..=3 {
            assert_eq!(lexer.next_pre_token("\u{6F22}!", start), Ok(Some(3..4)));
        }
    }
}

#[test]
fn nothing_is_found_at_or_beyond_the_end() {
    for engine in ENGINES {
        let mut lexer = lexer(&known("o200k"), *engine);
        assert_eq!(lexer.next_pre_token("", 0), Ok(None));
        assert_eq!(lexer.next_pre_token("ab", 2), Ok(None));
        assert_eq!(lexer.next_pre_token("ab", usize::MAX), Ok(None));
    }
}

#[test]
fn a_clone_finds_the_same_and_can_go_to_another_thread() {
    let text = "Over there, 3 clones' clones!\n\n  ";
    for engine in ENGINES {
        let mut lexer = lexer(&known("o200k"), *engine);
        let expected = pre_tokens(lexer.as_mut(), text);
        let mut clone = lexer.clone_box();
        let found = std::thread::spawn(move || pre_tokens(clone.as_mut(), text)).join();
        assert_eq!(found.ok(), Some(expected));
    }
}

//! The engine of masks: what matters to it and to no other, the place of a text in a window.

mod common;

use std::ops::Range;

use bpe_lexers::{Engine, Family, FastLexer, InstructionSet, Lexer, Pattern};
use common::{EVERY_CLASS, classes_of, for_each_tuple, known, lexer, pre_tokens_at_once};

const FAMILIES: [Family; 6] = [
    Family::Gpt2,
    Family::Cl100k,
    Family::Cl100kOfTiktoken,
    Family::Qwen2,
    Family::O200k,
    Family::Tekken,
];

/// The fast lexer with each instruction set, beside the transcription.
struct Comparison {
    family: Family,
    oracle: Box<dyn Lexer>,
    sets: Vec<FastLexer>,
}

impl Comparison {
    fn new(family: Family) -> Self {
        let pattern = Pattern::of_family(family);
        let sets = InstructionSet::available()
            .into_iter()
            .map(|set| FastLexer::with_instructions(&pattern, set))
            .map(|made| made.expect("an available instruction set"))
            .collect();
        Self {
            family,
            oracle: lexer(&pattern, Engine::Transcription),
            sets,
        }
    }

    fn check(&mut self, text: &str) {
        let expected: Vec<Range<usize>> =
            pre_tokens_at_once(self.oracle.as_mut(), text, usize::MAX);
        for fast in &mut self.sets {
            let found = pre_tokens_at_once(fast, text, 100);
            assert_eq!(found, expected, "{fast:?} of {:?} on {text:?}", self.family);
        }
    }
}

#[test]
fn short_texts_have_the_same_pre_tokens_wherever_they_stand_in_a_window() {
    for family in FAMILIES {
        let mut comparison = Comparison::new(family);
        for_each_tuple(classes_of("o200k"), 2, |text| {
            for before in (0..8).chain(54..66) {
                for filler in ["a", "!", "1"] {
                    comparison.check(&format!("{}{text}", filler.repeat(before)));
                    comparison.check(&format!(
                        "{}{text}{}",
                        "a ".repeat(before),
                        filler.repeat(70)
                    ));
                }
            }
        });
    }
}

#[test]
fn long_runs_of_every_class_end_where_they_should() {
    for family in FAMILIES {
        let mut comparison = Comparison::new(family);
        for first in EVERY_CLASS {
            for second in EVERY_CLASS {
                for length in [20, 21, 22, 31, 32, 33, 63, 64, 65, 130, 200] {
                    let run = String::from_iter(vec![*first; length]);
                    comparison.check(&format!("{run}{second}"));
                    comparison.check(&format!(" {second}{run}{second}A"));
                }
            }
        }
    }
}

#[test]
fn random_texts_of_all_classes_have_the_same_pre_tokens() {
    // A generator of its own, so that a failure can be repeated without a file.
    let mut state = 0x2545_F491_4F6C_DD1D_u64;
    let mut below = move |limit: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 33) as usize % limit
    };
    for family in FAMILIES {
        let mut comparison = Comparison::new(family);
        for _ in 0..20_000 {
            let mut text = String::new();
            let few: Vec<char> = (0..1 + below(6))
                .map(|_| EVERY_CLASS[below(EVERY_CLASS.len())])
                .collect();
            for _ in 0..below(90) {
                match below(8) {
                    0 => text.push(EVERY_CLASS[below(EVERY_CLASS.len())]),
                    1 => text
                        .push_str(["'s", "'LL", "'ſ", "\r\n", "  ", "//", "don't", " A"][below(8)]),
                    2 => text.extend(std::iter::repeat_n(few[below(few.len())], below(5))),
                    _ => text.push(few[below(few.len())]),
                }
            }
            comparison.check(&text);
        }
    }
}

#[test]
fn an_instruction_set_that_is_there_is_used() {
    let sets = InstructionSet::available();
    assert_eq!(sets.first(), Some(&InstructionSet::Portable));
    for set in &sets {
        let lexer = FastLexer::with_instructions(&known("o200k"), *set).expect("available");
        assert_eq!(lexer.instructions(), *set);
    }
    let best = FastLexer::new(&known("o200k")).expect("a known pattern");
    assert_eq!(sets.last(), Some(&best.instructions()));
}

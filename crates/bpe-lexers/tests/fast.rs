//! The engine of masks: what matters to it and to no other, the place of a text in a window.

mod common;

use bpe_lexers::{
    Engine, Family, FastLexer, InstructionSet, Lexer, Pattern, Spanner, SpecialMatcher,
};
use common::{EVERY_CLASS, classes_of, for_each_tuple, known, lexer, spans};

/// What the fast engine runs alone, and what it runs in one pass.
fn sequences() -> Vec<Vec<Pattern>> {
    let alone = Family::ALL.into_iter().map(|family| vec![family]);
    let together = [
        vec![Family::DigitGroups, Family::HanAndKana, Family::DeepseekV3],
        vec![Family::DigitGroups, Family::Gpt2],
        vec![Family::SingleDigits, Family::Gpt2],
    ];
    let all = alone.chain(together);
    all.map(|families| families.into_iter().map(Pattern::of_family).collect())
        .collect()
}

/// A character of each class that the stages of deepseek_v3 can tell apart.
const OF_DEEPSEEK: &[char] = &[
    ' ',
    '\t',
    '\u{3000}',
    '\n',
    'a',
    '\u{E9}',
    '\u{301}',
    '1',
    '\u{BD}',
    '!',
    '\u{FF0C}',
    '\u{7}',
    '\u{200D}',
    '\u{E0001}',
    '\u{6F22}',
    '\u{9FA6}',
    '\u{30A2}',
    '\u{30FB}',
    '\u{3099}',
    '\u{3040}',
];

/// The fast engine with each instruction set, beside the transcription.
struct Comparison {
    oracle: Spanner,
    sets: Vec<(InstructionSet, Spanner)>,
    patterns: Vec<Pattern>,
    none: SpecialMatcher,
}

impl Comparison {
    fn new(patterns: Vec<Pattern>) -> Self {
        let oracle = patterns
            .iter()
            .map(|pattern| lexer(pattern, Engine::Transcription));
        let with = |set| {
            let lexers = patterns.iter().map(|pattern| {
                let made = FastLexer::with_instructions(pattern, set);
                Box::new(made.expect("an available instruction set")) as Box<dyn Lexer>
            });
            (set, Spanner::new(lexers.collect()))
        };
        Self {
            oracle: Spanner::new(oracle.collect()),
            sets: InstructionSet::available().into_iter().map(with).collect(),
            none: SpecialMatcher::none(),
            patterns,
        }
    }

    fn check(&mut self, text: &str) {
        let expected = spans(&mut self.oracle, text.as_bytes(), &self.none);
        for (set, spanner) in &mut self.sets {
            let found = spans(spanner, text.as_bytes(), &self.none);
            assert_eq!(
                found, expected,
                "{set:?} of {:?} on {text:?}",
                self.patterns
            );
        }
    }
}

#[test]
fn short_texts_have_the_same_pre_tokens_wherever_they_stand_in_a_window() {
    for patterns in sequences() {
        let classes = match patterns.len() {
            1 => classes_of("o200k"),
            _ => OF_DEEPSEEK,
        };
        let mut comparison = Comparison::new(patterns);
        for_each_tuple(classes, 2, |text| {
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
fn stages_in_one_pass_cut_texts_of_four_characters_as_one_after_the_other() {
    for patterns in sequences() {
        if patterns.len() > 1 {
            let mut comparison = Comparison::new(patterns);
            for length in 1..=4 {
                for_each_tuple(OF_DEEPSEEK, length, |text| comparison.check(text));
            }
        }
    }
}

#[test]
fn long_runs_of_every_class_end_where_they_should() {
    for patterns in sequences() {
        let mut comparison = Comparison::new(patterns);
        for first in EVERY_CLASS.iter().chain(OF_DEEPSEEK) {
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
    let classes: Vec<char> = EVERY_CLASS.iter().chain(OF_DEEPSEEK).copied().collect();
    for patterns in sequences() {
        let mut comparison = Comparison::new(patterns);
        for _ in 0..20_000 {
            let mut text = String::new();
            let few: Vec<char> = (0..1 + below(6))
                .map(|_| classes[below(classes.len())])
                .collect();
            for _ in 0..below(90) {
                match below(8) {
                    0 => text.push(classes[below(classes.len())]),
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

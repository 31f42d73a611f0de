//! Arbitrary text: the fast lexer with each instruction set, `unsafe` and safe, finds the spans that the
//! transcription finds, from every start, and several stages in one pass those of one after the other.

#![no_main]

use std::ops::ControlFlow;

use bpe_lexers::{
    Engine, Family, FastLexer, InstructionSet, Label, Lexer, Pattern, Spanner, SpecialMatcher,
};
use libfuzzer_sys::fuzz_target;

const STAGES: [&[Family]; 13] = [
    &[Family::Gpt2],
    &[Family::Cl100k],
    &[Family::Cl100kOfTiktoken],
    &[Family::Qwen2],
    &[Family::O200k],
    &[Family::Tekken],
    &[Family::DigitGroups],
    &[Family::SingleDigits],
    &[Family::HanAndKana],
    &[Family::DeepseekV3],
    &[Family::DigitGroups, Family::HanAndKana, Family::DeepseekV3],
    &[Family::DigitGroups, Family::Gpt2],
    &[Family::SingleDigits, Family::Gpt2],
];

fuzz_target!(|input: (u8, u8, String)| {
    let (stages, start, text) = input;
    let start = text.ceil_char_boundary(usize::from(start).min(text.len()));
    let text = &text[start..];
    let stages = STAGES[usize::from(stages) % STAGES.len()];
    let expected = spans(text, stages, |pattern| {
        pattern
            .lexer(Engine::Transcription)
            .expect("a known family")
    });
    for set in InstructionSet::available() {
        let found = spans(text, stages, |pattern| {
            let lexer = FastLexer::with_instructions(pattern, set);
            Box::new(lexer.expect("an available set"))
        });
        assert_eq!(found, expected, "{set:?}, {stages:?}");
    }
});

fn spans(
    text: &str,
    stages: &[Family],
    lexer: impl Fn(&Pattern) -> Box<dyn Lexer>,
) -> Vec<(usize, Label)> {
    let lexers = stages
        .iter()
        .map(|&family| lexer(&Pattern::of_family(family)));
    let mut found = Vec::new();
    let flow = Spanner::new(lexers.collect()).for_each_span(
        text.as_bytes(),
        &SpecialMatcher::none(),
        |span| {
            found.push((span.end, span.label));
            ControlFlow::<()>::Continue(())
        },
    );
    assert!(flow.expect("these engines never give up").is_continue());
    found
}

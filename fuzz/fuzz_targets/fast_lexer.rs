//! Arbitrary text: the fast lexer with each instruction set, `unsafe` and safe, finds what the
//! transcription finds, from every start.

#![no_main]

use bpe_lexers::{Engine, Family, FastLexer, InstructionSet, Lexer, Pattern};
use libfuzzer_sys::fuzz_target;

const FAMILIES: [Family; 6] = [
    Family::Gpt2,
    Family::Cl100k,
    Family::Cl100kOfTiktoken,
    Family::Qwen2,
    Family::O200k,
    Family::Tekken,
];

fuzz_target!(|input: (u8, u8, String)| {
    let (family, start, text) = input;
    let start = text.ceil_char_boundary(usize::from(start).min(text.len()));
    let pattern = Pattern::of_family(FAMILIES[usize::from(family) % FAMILIES.len()]);
    let mut oracle = pattern
        .lexer(Engine::Transcription)
        .expect("a known family");
    let expected = ends(oracle.as_mut(), &text, start);
    for set in InstructionSet::available() {
        let mut fast = FastLexer::with_instructions(&pattern, set).expect("an available set");
        assert_eq!(ends(&mut fast, &text, start), expected, "{fast:?}");
    }
});

fn ends(lexer: &mut dyn Lexer, text: &str, start: usize) -> Vec<usize> {
    let mut ends = Vec::new();
    loop {
        let (count, from) = (ends.len(), ends.last().copied().unwrap_or(start));
        let beyond = lexer.pre_token_ends(text, from, 20, &mut ends);
        assert_eq!(beyond, Ok(None));
        if ends.len() == count {
            return ends;
        }
    }
}

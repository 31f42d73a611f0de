//! Decoders of `tokenizer.json`: from the texts of tokens back to text.
//!
//! A decoder is a list of steps, and each step takes a list of strings and gives another; at the end
//! they are joined. Here the strings go through all steps one by one, so that text comes out as soon
//! as it is certain; decoding at once is the same with all tokens pushed. A step that makes one string
//! of all (`Fuse`, `ByteLevel`) hands it on in parts.
//!
//! What is held back: of `ByteLevel` up to three bytes; of `ByteFallback` a run of byte tokens, since
//! one that is not UTF-8 turns all of them into U+FFFD; of `Strip` what may be at the end; of
//! `Replace` what may begin a match; of `BPEDecoder` one token. `WordPiece` with `cleanup`, `CTC`, and
//! `Replace` with a pattern look at whole strings: after `Fuse` these come at the end only.

mod read;
mod steps;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use bpe_core::byte_level;

use crate::sentencepiece::SentencePieceModel;
use steps::{Part, State, Step};

/// The steps of a decoder.
#[derive(Debug, Clone)]
pub(crate) struct Decoder {
    steps: Vec<Step>,
}

/// What a token is to a decoder.
#[derive(Debug, Clone)]
pub(crate) enum TokenText<'a> {
    /// Its text in the file.
    Text(Cow<'a, str>),
    /// The bytes of a token that the file spells in the byte-level alphabet.
    Bytes(&'a [u8]),
}

impl Decoder {
    /// No decoder: texts with a blank between them.
    pub(crate) fn none() -> Self {
        Self {
            steps: vec![Step::Blanks],
        }
    }

    /// The decoder of a `.model` file.
    pub(crate) fn sentencepiece(model: &SentencePieceModel) -> Self {
        let controls = model.controls.iter().map(|(text, _)| text.clone());
        let mut controls: Vec<String> = controls.collect();
        controls.sort();
        Self {
            steps: vec![Step::SentencePiece {
                controls,
                unknown: model.unknown_piece.clone(),
                unknown_surface: model.unknown_surface.clone(),
                drops_blank: model.drops_blank,
                drops_blanks: model.drops_blanks,
            }],
        }
    }

    /// Whether the first step is `ByteLevel`, for which bytes need not be spelled.
    fn takes_bytes(&self) -> bool {
        matches!(self.steps.first(), Some(Step::ByteLevel))
    }

    /// Before the first token.
    pub(crate) fn start(&self) -> Decoding {
        Decoding {
            states: self.steps.iter().map(|_| State::default()).collect(),
        }
    }
}

/// How far a decoder has come.
#[derive(Debug, Clone)]
pub(crate) struct Decoding {
    states: Vec<State>,
}

impl Decoding {
    /// Appends the text that one more token makes certain. `decoder` is the one that started this.
    pub(crate) fn push(&mut self, decoder: &Decoder, token: TokenText<'_>, text: &mut String) {
        match token {
            TokenText::Bytes(bytes) if decoder.takes_bytes() => {
                let [step, steps @ ..] = &decoder.steps[..] else {
                    return;
                };
                let [state, states @ ..] = &mut self.states[..] else {
                    return;
                };
                let lossy = step.push_bytes(state, bytes);
                run(steps, states, Part::open(&lossy), text);
            }
            TokenText::Bytes(bytes) => {
                let spelled = byte_level::encode(bytes);
                run(
                    &decoder.steps,
                    &mut self.states,
                    Part::whole(&spelled),
                    text,
                );
            }
            TokenText::Text(token) => {
                run(&decoder.steps, &mut self.states, Part::whole(&token), text);
            }
        }
    }

    /// Appends the rest.
    pub(crate) fn finish(mut self, decoder: &Decoder, text: &mut String) {
        for index in 0..decoder.steps.len() {
            let (Some([step, steps @ ..]), Some([state, states @ ..])) =
                (decoder.steps.get(index..), self.states.get_mut(index..))
            else {
                return;
            };
            step.finish(state, &mut |part| run(steps, states, part, text));
        }
    }
}

/// One part through all of the steps.
fn run(steps: &[Step], states: &mut [State], part: Part<'_>, text: &mut String) {
    match (steps, states) {
        ([step, steps @ ..], [state, states @ ..]) => {
            step.push(state, part, &mut |part| run(steps, states, part, text));
        }
        _ => text.push_str(part.text),
    }
}

//! A text on its way through a pipeline.

use std::ops::Range;

use bpe_core::TokenId;

use crate::error::EncodeError;
use crate::offsets::Encoding;
use crate::pipeline::Pipeline;
use crate::pipeline::added::{Finder, Part};
use crate::pipeline::blanks::Blanks;
use crate::pipeline::model::{Running, Sink};
use crate::pipeline::normalized::Normalized;
use crate::pipeline::normalizers::Normalizer;
use crate::pipeline::splitting::Pieces;
use crate::specials::Specials;

/// What stands between two added tokens, or a part of it.
pub(crate) struct Segment<'t> {
    pub(crate) text: &'t str,
    /// Where it begins in the whole text.
    pub(crate) start: usize,
    /// Whether it goes on with what stands before a cut.
    pub(crate) goes_on: bool,
}

impl Pipeline {
    /// The tokens of `text`, without those that a post-processor sets around it. O(bytes).
    ///
    /// # Errors
    ///
    /// As [`Tokenizer::encode`](crate::Tokenizer::encode), with the place in `text` as it is given.
    pub fn encode(&self, text: &str) -> Result<Vec<TokenId>, EncodeError> {
        let mut ids = Vec::with_capacity(text.len() / 4 + 8);
        self.encode_into(text, &mut ids)?;
        Ok(ids)
    }

    /// Appends the tokens of `text` to `ids`. O(bytes).
    ///
    /// # Errors
    ///
    /// As [`Pipeline::encode`]; `ids` is then as it was.
    pub fn encode_into(&self, text: &str, ids: &mut Vec<TokenId>) -> Result<(), EncodeError> {
        let start = ids.len();
        let encoded = self.run(text, Sink::of_ids(ids));
        encoded.map_err(|error| {
            ids.truncate(start);
            // Places are kept track of only where they are asked for.
            self.encode_with_offsets(text).err().unwrap_or(error)
        })
    }

    /// The tokens of `text` with the bytes of it that each stands for. O(bytes).
    ///
    /// The ranges are those of `tokenizers`, in bytes: of whole characters, so that tokens inside one
    /// share it. A token of text that the normalizer has put in stands for a character beside it.
    ///
    /// # Errors
    ///
    /// As [`Pipeline::encode`].
    pub fn encode_with_offsets(&self, text: &str) -> Result<Encoding, EncodeError> {
        let mut encoding = Encoding::default();
        self.run(text, Sink::of(&mut encoding))?;
        Ok(encoding)
    }

    /// The number of tokens of `text`, without those that a post-processor sets around it. O(bytes).
    ///
    /// # Errors
    ///
    /// As [`Pipeline::encode`].
    pub fn count(&self, text: &str) -> Result<usize, EncodeError> {
        match self.direct_for(text) {
            Some(tokenizer) => tokenizer.count(text),
            None => Ok(self.encode(text)?.len()),
        }
    }

    /// The inner tokenizer, where it does all that `text` needs.
    pub(crate) fn direct_for(&self, text: &str) -> Option<&crate::Tokenizer> {
        let tokenizer = self.policy.direct.as_ref()?;
        let leaves = |step: &Normalizer| step.leaves(text);
        self.parts
            .normalizers
            .iter()
            .all(leaves)
            .then_some(tokenizer)
    }

    pub(crate) fn run(&self, text: &str, sink: Sink<'_>) -> Result<(), EncodeError> {
        if let Some(tokenizer) = self.direct_for(text) {
            let Some(ranges) = sink.ranges else {
                return tokenizer.encode_into(text, sink.ids);
            };
            let encoding = tokenizer.encode_with_offsets(text)?;
            sink.ids.extend(encoding.ids);
            ranges.extend(encoding.byte_ranges.into_iter().map(|range| {
                text.floor_char_boundary(range.start)..text.ceil_char_boundary(range.end)
            }));
            return Ok(());
        }
        self.run_steps(text, 0, sink)
    }

    /// The tokens of a part of a text that begins at byte `start` of it, at its start or at a cut; places are
    /// those in the text.
    pub(crate) fn run_part(
        &self,
        part: &str,
        start: usize,
        sink: Sink<'_>,
    ) -> Result<(), EncodeError> {
        match start {
            0 => self.run(part, sink),
            _ => self.run_steps(part, start, sink),
        }
    }

    fn run_steps(&self, part: &str, start: usize, mut sink: Sink<'_>) -> Result<(), EncodeError> {
        self.parts.model.run(|model| {
            self.policy.first.for_each_part(part, |found| match found {
                Part::Token {
                    index,
                    range,
                    blanks,
                } => {
                    let range = start + range.start..start + range.end;
                    self.push_added(index, range, blanks, &mut sink)
                }
                Part::Text(range) => {
                    let segment = Segment {
                        text: part.get(range.clone()).unwrap_or_default(),
                        start: start + range.start,
                        goes_on: start > 0 && range.start == 0,
                    };
                    self.run_segment(model, segment, &mut sink)
                }
            })
        })
    }

    /// What stands between two added tokens that are found in the text as it is, or a part of it.
    pub(crate) fn run_segment(
        &self,
        model: &mut Running<'_>,
        segment: Segment<'_>,
        sink: &mut Sink<'_>,
    ) -> Result<(), EncodeError> {
        let parts = &*self.parts;
        let Segment {
            text,
            start,
            goes_on,
        } = segment;
        let tracked = sink.ranges.is_some() || parts.needs_places;
        let normalized = Normalized::new(text, start, tracked);
        let normalized = match goes_on {
            false => Normalizer::apply_all(&parts.normalizers, normalized),
            true => Normalizer::apply_all_behind(&parts.normalizers, normalized),
        };
        let normalized = normalized.map_err(|error| EncodeError::from(error).placed(start))?;
        let second: &Finder = &self.policy.second;
        second.for_each_part(normalized.text(), |part| match part {
            Part::Token {
                index,
                range,
                blanks,
            } => self.push_added(index, normalized.original(&range), blanks, sink),
            Part::Text(range) if parts.by_hand.is_empty() && !parts.alphabet => {
                model.encode_text(&normalized, range, sink)
            }
            Part::Text(range) => {
                let goes_on = goes_on && range.start == 0;
                let pieces = Pieces::new(&normalized, range, goes_on)
                    .cut_all(&parts.by_hand)
                    .map_err(|error| EncodeError::from(error).placed(start))?;
                let alphabet = parts.alphabet;
                model.encode_pieces(&pieces, alphabet, sink)
            }
        })
    }

    /// Appends an added token with this white space at its ends, unless it is forbidden.
    pub(crate) fn push_added(
        &self,
        index: usize,
        range: Range<usize>,
        blanks: Blanks,
        sink: &mut Sink<'_>,
    ) -> Result<(), EncodeError> {
        let Some(token) = self.parts.added.tokens.get(index) else {
            return Ok(());
        };
        if token.special && self.policy.specials == Specials::Forbid {
            return Err(EncodeError::forbidden(
                &token.content,
                token.id,
                range.start,
            ));
        }
        sink.push_found(token.id, range, blanks);
        Ok(())
    }
}

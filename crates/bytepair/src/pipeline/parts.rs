//! A text in parts: where it is cut, and what a part is encoded to.

use std::ops::Range;

use bpe_core::TokenId;
use bpe_parallel::{Divide, PartSizes, PieceReport, Tokens, Wanted};

use crate::error::EncodeError;
use crate::offsets::Encoding;
use crate::pipeline::Pipeline;
use crate::pipeline::added::Part;
use crate::pipeline::blanks::Blanks;
use crate::pipeline::cuts::Seams;
use crate::pipeline::model::Sink;
use crate::pipeline::run::Segment;
use crate::stream_error::StreamError;

/// How far from the wished place a cut is looked for. In ordinary text it is found after some bytes.
const REACH: usize = 1024;

/// Places where a text of a [`Pipeline`] can be cut, and the tokens of the parts: for texts that are read in blocks,
/// or that several machines share.
///
/// ```
/// use bytepair::{Pipeline, ReadLimits};
///
/// let file = r#"{
///     "normalizer": { "type": "Lowercase" },
///     "pre_tokenizer": { "type": "Whitespace" },
///     "model": {
///         "type": "WordPiece", "unk_token": "?", "continuing_subword_prefix": "@",
///         "max_input_chars_per_word": 100, "vocab": { "?": 0, "one": 1, "two": 2, "@s": 3 }
///     }
/// }"#;
/// let pipeline = Pipeline::from_tokenizer_json(file.as_bytes(), &ReadLimits::default())?;
/// let cuts = pipeline.cuts()?;
/// let text = "One twos one";
/// let place = cuts.last_cut(text).expect("a blank");
/// assert_eq!(place, 9);
/// let mut ids = cuts.encode(&text[..place], 0)?;
/// ids.extend(cuts.encode(&text[place..], place)?);
/// assert_eq!(ids, pipeline.encode(text)?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct PipelineCuts {
    pub(crate) pipeline: Pipeline,
}

impl Pipeline {
    /// Where texts of this pipeline can be cut, whatever they are. The first call costs some milliseconds.
    ///
    /// # Errors
    ///
    /// No place of any text is known to be one, and why
    /// ([`StreamError::is_unsupported`]): see [`PipelineParallel`](crate::PipelineParallel); or an added token
    /// looks at what stands beside it, or takes blanks there, so that it must be seen whole with them.
    pub fn cuts(&self) -> Result<PipelineCuts, StreamError> {
        if self.policy.first.looks_around() {
            return Err(StreamError::steps(LOOKS_AROUND));
        }
        self.seams().map_err(StreamError::steps)?;
        Ok(PipelineCuts {
            pipeline: self.clone(),
        })
    }

    /// What is known of places where a text can be cut, or why there is none.
    pub(crate) fn seams(&self) -> Result<&Seams, &str> {
        if self.policy.second.looks_around() {
            return Err(LOOKS_AROUND);
        }
        let seams = &self.parts.later.seams;
        let seams = seams.get_or_init(|| Seams::new(&self.parts));
        seams.as_ref().map_err(String::as_str)
    }

    fn is_cut(&self, seams: &Seams, text: &str, place: usize) -> bool {
        let Some((before, behind)) = text.split_at_checked(place) else {
            return false;
        };
        match (before.chars().next_back(), behind.chars().next()) {
            (Some(before), Some(after)) => {
                seams.is_cut(&self.parts, &self.policy.spellings, before, after)
            }
            _ => false,
        }
    }
}

const LOOKS_AROUND: &str =
    "an added token looks at what stands beside it (single_word, lstrip or rstrip)";

impl PipelineCuts {
    /// The last place inside `text` at which it can be cut, whatever follows `text`. What stands before it begins
    /// at the start of the whole, or at a cut. O(bytes).
    pub fn last_cut(&self, text: &str) -> Option<usize> {
        let pipeline = &self.pipeline;
        let seams = pipeline.seams().ok()?;
        let first = &pipeline.policy.first;
        // An added token that begins before this place is seen whole, and so is every longer one.
        let seen = text.len().checked_sub(first.longest().saturating_sub(1))?;
        let mut last = None;
        // Added tokens in a row are searched for once; only the last text before `seen` is looked at twice.
        let visited = first.for_each_part(text, |part| {
            match part {
                Part::Text(range) if range.start >= seen => return Err(()),
                Part::Text(range) => {
                    let is_cut = |&place: &usize| match place == range.end {
                        // An added token begins there.
                        true => true,
                        false => pipeline.is_cut(seams, text, place),
                    };
                    let end = range.end.min(seen).min(text.len().saturating_sub(1));
                    if let Some(place) = (range.start + 1..=end).rev().find(is_cut) {
                        last = Some(place);
                    }
                }
                Part::Token { .. } => {}
            }
            Ok(())
        });
        // Left off early or not: the last one is known.
        let (Ok(()) | Err(())) = visited;
        last
    }

    /// The tokens of a part that begins at byte `start` of the whole text, which is 0 or a cut. O(bytes).
    ///
    /// # Errors
    ///
    /// As [`Pipeline::encode`], with the place in the whole text.
    pub fn encode(&self, part: &str, start: usize) -> Result<Vec<TokenId>, EncodeError> {
        let mut ids = Vec::with_capacity(part.len() / 4 + 8);
        self.encode_into(part, start, &mut ids)?;
        Ok(ids)
    }

    /// Appends the tokens of a part to `ids`, else as [`PipelineCuts::encode`].
    ///
    /// # Errors
    ///
    /// As [`PipelineCuts::encode`]; `ids` is then as it was.
    pub fn encode_into(
        &self,
        part: &str,
        start: usize,
        ids: &mut Vec<TokenId>,
    ) -> Result<(), EncodeError> {
        let before = ids.len();
        let encoded = self.pipeline.run_part(part, start, Sink::of_ids(ids));
        encoded.map_err(|error| {
            ids.truncate(before);
            // Places are kept track of only where they are asked for.
            self.encode_with_offsets(part, start).err().unwrap_or(error)
        })
    }

    /// The tokens of a part, with the bytes of the whole text that each stands for. O(bytes).
    ///
    /// # Errors
    ///
    /// As [`PipelineCuts::encode`].
    pub fn encode_with_offsets(&self, part: &str, start: usize) -> Result<Encoding, EncodeError> {
        let mut encoding = Encoding::default();
        let sink = Sink::of(&mut encoding);
        self.pipeline.run_part(part, start, sink)?;
        Ok(encoding)
    }
}

/// What one thread does of a text: added tokens, and what stands between them, or a part of it.
pub(crate) enum Stretch {
    Added { index: usize, range: Range<usize> },
    Text { range: Range<usize>, goes_on: bool },
}

/// Texts of a pipeline, as the scheduler sees them.
pub(crate) struct Texts<'p> {
    pub(crate) pipeline: &'p Pipeline,
    /// Of ends of tokens, the starts too.
    pub(crate) wanted: Wanted,
}

impl<S: AsRef<str> + Sync> Divide<S> for Texts<'_> {
    type Part = Vec<Stretch>;
    type Error = EncodeError;

    fn bytes(&self, text: &S) -> usize {
        text.as_ref().len()
    }

    fn parts(&self, text: &S, sizes: PartSizes) -> Vec<Vec<Stretch>> {
        self.pipeline.in_parts(text.as_ref(), sizes)
    }

    fn encode(&self, text: &S, tokens: &mut Tokens) -> Result<(), EncodeError> {
        let (pipeline, text) = (self.pipeline, text.as_ref());
        match self.wanted {
            Wanted::Count => tokens.count += pipeline.count(text)?,
            Wanted::Ids => {
                let before = tokens.ids.len();
                pipeline.encode_into(text, &mut tokens.ids)?;
                tokens.count += tokens.ids.len() - before;
            }
            Wanted::Ends => append(tokens, pipeline.encode_with_offsets(text)?),
        }
        Ok(())
    }

    fn encode_part(
        &self,
        text: &S,
        part: &Vec<Stretch>,
        _: usize,
        mut tokens: Tokens,
        _: &mut PieceReport,
    ) -> Result<Vec<Tokens>, EncodeError> {
        let text = text.as_ref();
        if self.wanted == Wanted::Ends {
            append(&mut tokens, self.pipeline.encode_stretches(text, part)?);
            return Ok(vec![tokens]);
        }
        let sink = Sink::of_ids(&mut tokens.ids);
        if let Err(error) = self.pipeline.run_stretches(text, part, sink) {
            // Places are kept track of only where they are asked for.
            let placed = self.pipeline.encode_stretches(text, part).err();
            return Err(placed.unwrap_or(error));
        }
        tokens.count = tokens.ids.len();
        if self.wanted == Wanted::Count {
            tokens.ids.clear();
        }
        Ok(vec![tokens])
    }
}

fn append(tokens: &mut Tokens, encoding: Encoding) {
    tokens.count += encoding.ids.len();
    tokens.ids.extend(encoding.ids);
    let ranges = encoding.byte_ranges.iter();
    tokens
        .starts
        .extend(ranges.clone().map(|range| range.start));
    tokens.ends.extend(ranges.map(|range| range.end));
}

impl Pipeline {
    /// `text` in parts of about these sizes, longer where there is no cut. Added tokens are found over the whole of
    /// it.
    fn in_parts(&self, text: &str, sizes: PartSizes) -> Vec<Vec<Stretch>> {
        let mut parts = Vec::new();
        let (mut part, mut bytes) = (Vec::new(), 0);
        let seams = self.seams().ok();
        let mut size = sizes.at(0);
        let visited: Result<(), std::convert::Infallible> =
            self.policy.first.for_each_part(text, |found| {
                let end = match found {
                    Part::Token { index, range, .. } => {
                        let end = range.end;
                        bytes += range.len();
                        part.push(Stretch::Added { index, range });
                        end
                    }
                    Part::Text(range) => {
                        let mut start = range.start;
                        let mut wish = start + size.saturating_sub(bytes);
                        // The last part is up to half longer than the others, rather than a tiny one behind it.
                        while let Some(seams) = seams.filter(|_| wish + size / 2 < range.end) {
                            let room = start..range.end;
                            match self.nearest_cut(seams, text, wish, size / 2, room) {
                                Some(cut) => {
                                    part.push(Stretch::Text {
                                        range: start..cut,
                                        goes_on: start > range.start,
                                    });
                                    parts.push(std::mem::take(&mut part));
                                    size = sizes.at(cut);
                                    (start, wish, bytes) = (cut, cut + size, 0);
                                }
                                None => wish += size,
                            }
                        }
                        bytes += range.end - start;
                        part.push(Stretch::Text {
                            range: start..range.end,
                            goes_on: start > range.start,
                        });
                        range.end
                    }
                };
                if bytes >= size {
                    parts.push(std::mem::take(&mut part));
                    (bytes, size) = (0, sizes.at(end));
                }
                Ok(())
            });
        let Ok(()) = visited;
        if !part.is_empty() {
            parts.push(part);
        }
        parts
    }

    /// A cut near `wish`, inside `room`.
    fn nearest_cut(
        &self,
        seams: &Seams,
        text: &str,
        wish: usize,
        reach: usize,
        room: Range<usize>,
    ) -> Option<usize> {
        let reach = reach.clamp(1, REACH);
        let low = (room.start + 1).max(wish.saturating_sub(reach));
        let high = (wish + reach).min(room.end.saturating_sub(1));
        let is_cut = |&place: &usize| self.is_cut(seams, text, place);
        let down = (low..=wish.min(high)).rev().find(is_cut);
        down.or_else(|| (wish.max(low)..=high).find(is_cut))
    }

    fn encode_stretches(&self, text: &str, part: &[Stretch]) -> Result<Encoding, EncodeError> {
        let mut encoding = Encoding::default();
        let sink = Sink::of(&mut encoding);
        self.run_stretches(text, part, sink)?;
        Ok(encoding)
    }

    fn run_stretches(
        &self,
        text: &str,
        part: &[Stretch],
        mut sink: Sink<'_>,
    ) -> Result<(), EncodeError> {
        self.parts.model.run(|model| {
            part.iter().try_for_each(|stretch| match stretch {
                Stretch::Added { index, range } => {
                    self.push_added(*index, range.clone(), Blanks::default(), &mut sink)
                }
                Stretch::Text { range, goes_on } => {
                    let segment = Segment {
                        text: text.get(range.clone()).unwrap_or_default(),
                        start: range.start,
                        goes_on: *goes_on,
                    };
                    self.run_segment(model, segment, &mut sink)
                }
            })
        })
    }
}

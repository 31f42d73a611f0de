//! The model behind the pre-tokenizer, and pieces on their way to it.

use std::borrow::Cow;
use std::ops::Range;

use bpe_core::{TokenId, Vocabulary, byte_level};

use crate::error::EncodeError;
use crate::offsets::Encoding;
use crate::pipeline::affix::AffixModel;
use crate::pipeline::blanks::Blanks;
use crate::pipeline::decoders::TokenText;
use crate::pipeline::normalized::Normalized;
use crate::pipeline::splitting::Pieces;
use crate::pool::Engines;
use crate::tokenizer::Tokenizer;
use crate::word_piece::WordPiece;

/// What makes tokens of pieces.
pub(crate) enum Model {
    /// A tokenizer without special tokens, with the patterns that the plan leaves to it.
    Bpe(Tokenizer),
    /// BPE by the spelling of tokens.
    Affix(Box<AffixModel>),
    /// BERT's.
    WordPiece(WordPiece),
}

/// Tokens as they come.
pub(crate) struct Sink<'o> {
    pub(crate) ids: &'o mut Vec<TokenId>,
    /// The bytes of the original that each token stands for, where they are asked for.
    pub(crate) ranges: Option<&'o mut Vec<Range<usize>>>,
    /// White space at the ends of what was found of added tokens, by the index of the token, where it is
    /// asked for.
    pub(crate) found: Option<&'o mut Vec<(usize, Blanks)>>,
}

impl<'o> Sink<'o> {
    /// Takes tokens alone.
    pub(crate) fn of_ids(ids: &'o mut Vec<TokenId>) -> Self {
        Self {
            ids,
            ranges: None,
            found: None,
        }
    }

    /// Takes tokens and what they stand for.
    pub(crate) fn of(encoding: &'o mut Encoding) -> Self {
        Self {
            ids: &mut encoding.ids,
            ranges: Some(&mut encoding.byte_ranges),
            found: None,
        }
    }

    /// Appends a token that stands for these bytes of the original.
    pub(crate) fn push(&mut self, id: TokenId, range: Range<usize>) {
        self.ids.push(id);
        if let Some(ranges) = &mut self.ranges {
            ranges.push(range);
        }
    }

    /// Appends an added token that stands for these bytes of the original, with this white space at its ends.
    pub(crate) fn push_found(&mut self, id: TokenId, range: Range<usize>, blanks: Blanks) {
        if let Some(found) = &mut self.found {
            found.push((self.ids.len(), blanks));
        }
        self.push(id, range);
    }

    /// The number of ranges so far.
    fn ranges(&self) -> usize {
        self.ranges.as_ref().map_or(0, |ranges| ranges.len())
    }

    /// Makes what `original` says of the ranges from number `first` on.
    fn map_ranges(&mut self, first: usize, original: impl Fn(&Range<usize>) -> Range<usize>) {
        let ranges = self.ranges.iter_mut().flat_map(|ranges| ranges.iter_mut());
        for range in ranges.skip(first) {
            *range = original(range);
        }
    }
}

/// A model that one thread is working with.
pub(crate) enum Running<'m> {
    Bpe(&'m Tokenizer, &'m mut Engines),
    Affix(&'m AffixModel),
    WordPiece(&'m WordPiece),
}

impl Model {
    /// Calls `work` with what no one else uses meanwhile.
    pub(crate) fn run<R>(&self, work: impl FnOnce(&mut Running<'_>) -> R) -> R {
        match self {
            Self::Bpe(tokenizer) => {
                let pool = &tokenizer.inner.pool;
                pool.with(|engines| work(&mut Running::Bpe(tokenizer, engines)))
            }
            Self::Affix(model) => work(&mut Running::Affix(model)),
            Self::WordPiece(model) => work(&mut Running::WordPiece(model)),
        }
    }

    /// The tokens, where they are bytes.
    pub(crate) fn vocabulary(&self) -> Option<&Vocabulary> {
        match self {
            Self::Bpe(tokenizer) => Some(tokenizer.vocabulary()),
            Self::Affix(_) | Self::WordPiece(_) => None,
        }
    }

    /// The largest id.
    pub(crate) fn max_id(&self) -> Option<TokenId> {
        match self {
            Self::Bpe(tokenizer) => tokenizer.vocabulary().max_id(),
            Self::Affix(model) => model.max_id(),
            Self::WordPiece(model) => model.tokens().map(|(id, _)| id).max(),
        }
    }

    /// The bytes of a token, or its text where tokens are spelled.
    pub(crate) fn token(&self, id: TokenId) -> Option<TokenText<'_>> {
        let text = |text| TokenText::Text(Cow::Borrowed(text));
        match self {
            Self::Bpe(tokenizer) => {
                let bytes = tokenizer.vocabulary().token_bytes(id);
                bytes.map(TokenText::Bytes)
            }
            Self::Affix(model) => model.token_text(id).map(text),
            Self::WordPiece(model) => model.token_text(id).map(text),
        }
    }
}

impl Running<'_> {
    /// Appends the tokens of the bytes `range` of `text`, which nothing has cut yet.
    pub(crate) fn encode_text(
        &mut self,
        text: &Normalized<'_>,
        range: Range<usize>,
        sink: &mut Sink<'_>,
    ) -> Result<(), EncodeError> {
        let Self::Bpe(tokenizer, engines) = self else {
            let pieces = Pieces::new(text, range, false);
            return self.encode_pieces(&pieces, false, sink);
        };
        encode_text(tokenizer, engines, text, range, sink)
    }

    /// Appends the tokens of pieces; they are in the byte-level alphabet if `alphabet`.
    pub(crate) fn encode_pieces(
        &mut self,
        pieces: &Pieces<'_, '_>,
        alphabet: bool,
        sink: &mut Sink<'_>,
    ) -> Result<(), EncodeError> {
        match self {
            Self::Affix(model) => encode_spelled(pieces, sink, |piece, ids, ends| {
                let encoded = model.encode_piece(piece, ids, ends);
                encoded.map_err(|(offset, character)| missing(character, offset))
            }),
            Self::WordPiece(model) => {
                let mut tokens = Vec::new();
                encode_spelled(pieces, sink, |piece, ids, ends| {
                    tokens.clear();
                    model.tokenize_into(piece, &mut tokens);
                    ids.extend(tokens.iter().map(|&(id, _)| id));
                    ends.extend(tokens.iter().map(|&(_, end)| end));
                    Ok(())
                })
            }
            Self::Bpe(tokenizer, engines) if alphabet => {
                encode_alphabet(tokenizer, engines, pieces, sink)
            }
            Self::Bpe(tokenizer, engines) if tokenizer.inner.lexers.is_empty() => {
                encode_runs(tokenizer, engines, pieces, sink)
            }
            Self::Bpe(tokenizer, engines) => {
                let mut ranges = pieces.ranges.iter();
                ranges.try_for_each(|range| {
                    encode_text(tokenizer, engines, &pieces.text, range.clone(), sink)
                })
            }
        }
    }
}

/// A text that the tokenizer cuts itself.
fn encode_text(
    tokenizer: &Tokenizer,
    engines: &mut Engines,
    text: &Normalized<'_>,
    range: Range<usize>,
    sink: &mut Sink<'_>,
) -> Result<(), EncodeError> {
    let start = range.start;
    let part = text.text().get(range).unwrap_or_default().as_bytes();
    let Some(ranges) = &mut sink.ranges else {
        return tokenizer
            .encode_with(engines, part, sink.ids)
            .map_err(|error| placed(error.moved_by(start), text));
    };
    let first = ranges.len();
    tokenizer
        .encode_ranges_with(engines, part, sink.ids, ranges)
        .map_err(|error| placed(error.moved_by(start), text))?;
    sink.map_ranges(first, |range| {
        text.original(&(range.start + start..range.end + start))
    });
    Ok(())
}

/// Pieces that stand side by side at once.
fn encode_runs(
    tokenizer: &Tokenizer,
    engines: &mut Engines,
    pieces: &Pieces<'_, '_>,
    sink: &mut Sink<'_>,
) -> Result<(), EncodeError> {
    let text = &pieces.text;
    let mut ends = Vec::new();
    for run in pieces.ranges.chunk_by(|a, b| a.end == b.start) {
        let Some(start) = run.first().map(|range| range.start) else {
            continue;
        };
        ends.clear();
        ends.extend(run.iter().map(|range| range.end));
        let bytes = text.text().as_bytes();
        let first = sink.ranges();
        let ranges = sink.ranges.as_deref_mut();
        tokenizer
            .encode_pieces(engines, bytes, start, &ends, sink.ids, ranges)
            .map_err(|error| placed(error, text))?;
        sink.map_ranges(first, |range| text.original(range));
    }
    Ok(())
}

/// Pieces, one by one, by a model that knows tokens as they are spelled.
fn encode_spelled(
    pieces: &Pieces<'_, '_>,
    sink: &mut Sink<'_>,
    mut encode: impl FnMut(&str, &mut Vec<TokenId>, &mut Vec<usize>) -> Result<(), EncodeError>,
) -> Result<(), EncodeError> {
    let text = &pieces.text;
    let mut ends = Vec::new();
    for range in &pieces.ranges {
        let piece = text.text().get(range.clone()).unwrap_or_default();
        ends.clear();
        encode(piece, sink.ids, &mut ends)
            .map_err(|error| placed(error.moved_by(range.start), text))?;
        if let Some(ranges) = &mut sink.ranges {
            let mut start = range.start;
            for end in &ends {
                let end = range.start + end;
                let mut original = text.original(&(start..end));
                if start == end && start > range.start {
                    // A token of nothing stands behind the one before, whatever comes behind the piece.
                    let before = text.original(&(start - 1..start)).end;
                    original = before..before;
                }
                ranges.push(original);
                start = end;
            }
        }
    }
    Ok(())
}

/// The error that no token stands for `character`.
fn missing(character: char, offset: usize) -> EncodeError {
    bpe_core::EncodeError::missing_character(character, offset).into()
}

/// Pieces whose characters stand for bytes.
fn encode_alphabet(
    tokenizer: &Tokenizer,
    engines: &mut Engines,
    pieces: &Pieces<'_, '_>,
    sink: &mut Sink<'_>,
) -> Result<(), EncodeError> {
    let text = &pieces.text;
    // Where the character stands that each byte is spelled as.
    let mut places = Vec::new();
    for range in &pieces.ranges {
        let piece = text.text().get(range.clone()).unwrap_or_default();
        // All characters are of the alphabet: they have gone through it.
        let bytes = byte_level::decode(piece).unwrap_or_default();
        places.clear();
        places.extend(piece.char_indices().map(|(index, _)| range.start + index));
        places.push(range.end);
        let first = sink.ranges();
        let ranges = sink.ranges.as_deref_mut();
        let place = |byte: usize| places.get(byte).copied().unwrap_or(range.end);
        tokenizer
            .encode_pieces(engines, &bytes, 0, &[bytes.len()], sink.ids, ranges)
            .map_err(|error| {
                let start = place(error.byte_offset());
                error.placed(text.original(&(start..start + 1)).start)
            })?;
        sink.map_ranges(first, |range| {
            text.original(&(place(range.start)..place(range.end)))
        });
    }
    Ok(())
}

/// The same error, with the place in the original.
fn placed(error: EncodeError, text: &Normalized<'_>) -> EncodeError {
    let at = error.byte_offset();
    let place = text.original(&(at..at + 1)).start;
    error.placed(place)
}

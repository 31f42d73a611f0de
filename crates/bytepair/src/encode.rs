//! Encoding: the loop over spans, and the calls around it.

use std::ops::{ControlFlow, Range};

use bpe_core::{SpanEncoder, TokenId};
use bpe_lexers::Label;

use crate::error::EncodeError;
use crate::offsets::Encoding;
use crate::pool::Engines;
use crate::tokenizer::{PieceLookup, Tokenizer};
use crate::worker::Worker;

impl Tokenizer {
    /// The tokens of `text`. O(bytes).
    ///
    /// # Errors
    ///
    /// A forbidden special token ([`Specials::Forbid`](crate::Specials::Forbid)); a byte or
    /// character that no token stands for, in vocabularies of a file that lack some; a pattern of
    /// the user that took too many steps. The embedded vocabularies give the first only. The error
    /// says where.
    pub fn encode(&self, text: &str) -> Result<Vec<TokenId>, EncodeError> {
        self.encode_bytes(text.as_bytes())
    }

    /// The tokens of any bytes. Each maximal part that is not UTF-8 is a span of its own; decoding
    /// gives back what went in. O(bytes).
    ///
    /// # Errors
    ///
    /// As [`Tokenizer::encode`].
    pub fn encode_bytes(&self, bytes: &[u8]) -> Result<Vec<TokenId>, EncodeError> {
        let mut ids = Vec::with_capacity(self.expected_tokens(bytes.len()));
        self.encode_into(bytes, &mut ids)?;
        Ok(ids)
    }

    /// Appends the tokens of `text`, a string or any bytes, to `ids`. O(bytes). With a vector that
    /// is long enough, and after this thread's first texts, nothing is allocated.
    ///
    /// # Errors
    ///
    /// As [`Tokenizer::encode`]; `ids` is then as it was.
    pub fn encode_into(
        &self,
        text: impl AsRef<[u8]>,
        ids: &mut Vec<TokenId>,
    ) -> Result<(), EncodeError> {
        let pool = &self.inner.pool;
        pool.with(|engines| self.encode_with(engines, text.as_ref(), ids))
    }

    /// The tokens of `text` with the bytes that each covers. O(bytes).
    ///
    /// # Errors
    ///
    /// As [`Tokenizer::encode`].
    ///
    /// ```
    /// let tokenizer = bytepair::Tokenizer::o200k_base();
    /// let encoding = tokenizer.encode_with_offsets("naïve café")?;
    /// assert_eq!(encoding.byte_ranges, [0..2, 2..4, 4..6, 6..12]);
    /// assert_eq!(encoding.char_ranges("naïve café"), [0..2, 2..3, 3..5, 5..10]);
    /// # Ok::<(), bytepair::EncodeError>(())
    /// ```
    pub fn encode_with_offsets(&self, text: impl AsRef<[u8]>) -> Result<Encoding, EncodeError> {
        let text = text.as_ref();
        let mut ids = Vec::with_capacity(self.expected_tokens(text.len()));
        let mut byte_ranges = Vec::with_capacity(ids.capacity());
        self.inner.pool.with(|engines| {
            self.for_each_piece(engines, text, &mut ids, |ids, first, piece| {
                self.append_ranges(&ids[first..], text, piece, &mut byte_ranges);
                ControlFlow::Continue(())
            })
        })?;
        Ok(Encoding { ids, byte_ranges })
    }

    /// The number of tokens of `text`, without a vector of them. O(bytes).
    ///
    /// # Errors
    ///
    /// As [`Tokenizer::encode`].
    pub fn count(&self, text: impl AsRef<[u8]>) -> Result<usize, EncodeError> {
        let pool = &self.inner.pool;
        pool.with(|engines| self.count_with(engines, text.as_ref()))
    }

    /// The number of tokens of `text` if it is at most `limit`, else `None`. Stops at the pre-token
    /// that goes beyond the limit: of a long text the rest is looked at only for UTF-8 and special
    /// tokens, at the speed of a search. O(bytes).
    ///
    /// # Errors
    ///
    /// As [`Tokenizer::encode`], up to where it stops.
    pub fn count_up_to(
        &self,
        text: impl AsRef<[u8]>,
        limit: usize,
    ) -> Result<Option<usize>, EncodeError> {
        self.inner.pool.with(|engines| {
            let mut tokens = std::mem::take(&mut engines.tokens);
            tokens.clear();
            let mut count = 0;
            let counted = self.for_each_piece(engines, text.as_ref(), &mut tokens, |ids, _, _| {
                count += ids.len();
                ids.clear();
                match count > limit {
                    true => ControlFlow::Break(()),
                    false => ControlFlow::Continue(()),
                }
            });
            engines.tokens = tokens;
            counted.map(|()| (count <= limit).then_some(count))
        })
    }

    /// The first `limit` tokens of `text` at most, and the number of bytes they cover. Tokens at the
    /// end that would cut a character of the text are left out. Stops as [`Tokenizer::count_up_to`].
    /// O(bytes).
    ///
    /// # Errors
    ///
    /// As [`Tokenizer::encode`], up to where it stops.
    pub fn encode_up_to(
        &self,
        text: impl AsRef<[u8]>,
        limit: usize,
    ) -> Result<(Vec<TokenId>, usize), EncodeError> {
        let text = text.as_ref();
        let mut prefix = self.encode_prefix(text, limit)?;
        while !is_char_boundary(text, prefix.covered()) {
            prefix.ids.pop();
            prefix.byte_ranges.pop();
        }
        let covered = prefix.covered();
        Ok((prefix.ids, covered))
    }

    /// As [`Tokenizer::encode_up_to`], but it may end inside a character.
    ///
    /// # Errors
    ///
    /// As [`Tokenizer::encode`], up to where it stops.
    pub fn encode_up_to_bytes(
        &self,
        text: impl AsRef<[u8]>,
        limit: usize,
    ) -> Result<(Vec<TokenId>, usize), EncodeError> {
        let prefix = self.encode_prefix(text.as_ref(), limit)?;
        let covered = prefix.covered();
        Ok((prefix.ids, covered))
    }

    /// The longest prefix of `text` that the first `limit` tokens cover, cut back to a whole
    /// character, and such that its own count is at most `limit`: a text that fits into a window.
    ///
    /// Cost: twice that of [`Tokenizer::encode_up_to`]. Where a prefix has more tokens alone than
    /// inside the text (its last pre-token may end elsewhere), one token less is tried, and so on,
    /// so a pattern made for it costs O(limit) times as much.
    ///
    /// # Errors
    ///
    /// As [`Tokenizer::encode`], up to where it stops.
    pub fn truncate<'t>(&self, text: &'t str, limit: usize) -> Result<&'t str, EncodeError> {
        let prefix = self.encode_prefix(text.as_bytes(), limit)?;
        for range in prefix.byte_ranges.iter().rev() {
            let shorter = &text[..text.floor_char_boundary(range.end)];
            if self.count_up_to(shorter, limit)?.is_some() {
                return Ok(shorter);
            }
        }
        Ok("")
    }

    /// Engines of a thread's own, for loops over many small texts.
    pub fn worker(&self) -> Worker {
        Worker::new(self.clone())
    }

    /// The number of tokens to reserve room for; see `TokenizerBuilder::bytes_per_token`.
    pub(crate) fn expected_tokens(&self, bytes: usize) -> usize {
        (bytes as f32 / self.inner.bytes_per_token) as usize + 8
    }

    pub(crate) fn encode_with(
        &self,
        engines: &mut Engines,
        text: &[u8],
        ids: &mut Vec<TokenId>,
    ) -> Result<(), EncodeError> {
        let start = ids.len();
        let encoded = self.for_each_piece(engines, text, ids, |_, _, _| ControlFlow::Continue(()));
        if encoded.is_err() {
            ids.truncate(start);
        }
        encoded
    }

    pub(crate) fn count_with(
        &self,
        engines: &mut Engines,
        text: &[u8],
    ) -> Result<usize, EncodeError> {
        let mut tokens = std::mem::take(&mut engines.tokens);
        tokens.clear();
        let mut count = 0;
        let counted = self.for_each_piece(engines, text, &mut tokens, |ids, _, _| {
            count += ids.len();
            ids.clear();
            ControlFlow::Continue(())
        });
        engines.tokens = tokens;
        counted.map(|()| count)
    }

    /// Appends the tokens of each span to `ids`, and calls `after` behind each, with the number of
    /// tokens before it and where the span stands, until it breaks. This is the one place where
    /// spans become tokens.
    fn for_each_piece(
        &self,
        engines: &mut Engines,
        text: &[u8],
        ids: &mut Vec<TokenId>,
        mut after: impl FnMut(&mut Vec<TokenId>, usize, Range<usize>) -> ControlFlow<()>,
    ) -> Result<(), EncodeError> {
        let Engines {
            spanner, encoder, ..
        } = engines;
        let policy = &*self.policy;
        let flow = spanner.for_each_span(text, &policy.matcher, |span| {
            let first = ids.len();
            let piece = &text[span.range()];
            match span.label {
                Label::Special(number) => {
                    let special = policy.matched[number];
                    if special.forbidden {
                        let text = &self.inner.specials.tokens()[special.token].text;
                        let error = EncodeError::forbidden(text, special.id, span.start);
                        return ControlFlow::Break(Some(error));
                    }
                    ids.push(special.id);
                }
                Label::Word | Label::Gap => {
                    if let Err(error) = self.encode_piece(&mut **encoder, piece, ids) {
                        return ControlFlow::Break(Some(error.shifted(span.start).into()));
                    }
                }
            }
            match after(ids, first, span.range()) {
                ControlFlow::Continue(()) => ControlFlow::Continue(()),
                ControlFlow::Break(()) => ControlFlow::Break(None),
            }
        })?;
        match flow {
            ControlFlow::Break(Some(error)) => Err(error),
            ControlFlow::Break(None) | ControlFlow::Continue(()) => Ok(()),
        }
    }

    /// The first `limit` tokens of `text` with their ranges.
    fn encode_prefix(&self, text: &[u8], limit: usize) -> Result<Encoding, EncodeError> {
        let mut ids = Vec::new();
        let mut byte_ranges = Vec::new();
        if limit > 0 {
            self.inner.pool.with(|engines| {
                self.for_each_piece(engines, text, &mut ids, |ids, first, piece| {
                    self.append_ranges(&ids[first..], text, piece, &mut byte_ranges);
                    match ids.len() >= limit {
                        true => ControlFlow::Break(()),
                        false => ControlFlow::Continue(()),
                    }
                })
            })?;
        }
        ids.truncate(limit);
        byte_ranges.truncate(limit);
        Ok(Encoding { ids, byte_ranges })
    }

    /// Appends the tokens of the pieces that stand side by side in `text`: the first begins at byte
    /// `start`, each ends at one of `ends`. Calls `after` behind each as [`Tokenizer::for_each_piece`].
    pub(crate) fn encode_pieces(
        &self,
        engines: &mut Engines,
        text: &[u8],
        start: usize,
        ends: &[usize],
        ids: &mut Vec<TokenId>,
        mut after: impl FnMut(&mut Vec<TokenId>, usize, Range<usize>),
    ) -> Result<(), EncodeError> {
        let mut start = start;
        for &end in ends {
            let first = ids.len();
            let piece = text.get(start..end).unwrap_or_default();
            self.encode_piece(&mut *engines.encoder, piece, ids)
                .map_err(|error| error.shifted(start))?;
            after(ids, first, start..end);
            start = end;
        }
        Ok(())
    }

    /// Appends the tokens of one piece.
    fn encode_piece(
        &self,
        encoder: &mut dyn SpanEncoder,
        piece: &[u8],
        ids: &mut Vec<TokenId>,
    ) -> Result<(), bpe_core::EncodeError> {
        let vocabulary = self.vocabulary();
        let whole = match piece.len() <= vocabulary.longest_token() {
            true => vocabulary.id_of(piece),
            false => None,
        };
        match whole {
            Some(id) if self.inner.piece_lookup == PieceLookup::Always || self.is_reachable(id) => {
                ids.push(id);
                Ok(())
            }
            _ => encoder.encode_span(piece, ids),
        }
    }

    /// Appends the range of each of the tokens of one span. A token covers as many bytes as it has,
    /// but for the unknown token, which covers what is no token, and for special tokens.
    pub(crate) fn append_ranges(
        &self,
        ids: &[TokenId],
        text: &[u8],
        piece: Range<usize>,
        ranges: &mut Vec<Range<usize>>,
    ) {
        let mut start = piece.start;
        for (index, &id) in ids.iter().enumerate() {
            let rest = &text[start..piece.end];
            let len = match self.unknown() {
                _ if index + 1 == ids.len() => rest.len(),
                Some((unknown, fused)) if unknown == id => self.unknown_len(rest, unknown, fused),
                _ => self.token_bytes(id).map_or(0, <[u8]>::len),
            };
            let end = (start + len).min(piece.end);
            ranges.push(start..end);
            start = end;
        }
    }

    /// How many bytes at the start of `text` the unknown token covers: one character that is no
    /// token, or all such characters in a row where they fuse; or the character that it spells itself.
    fn unknown_len(&self, text: &[u8], unknown: TokenId, fused: bool) -> usize {
        let vocabulary = self.vocabulary();
        let mut len = 0;
        while len < text.len() {
            // A character, or a maximal part that is none, has at most four bytes.
            let window = &text[len..text.len().min(len + 4)];
            let Some(chunk) = window.utf8_chunks().next() else {
                break;
            };
            let (part, is_token) = match chunk.valid().chars().next() {
                Some(character) => {
                    let part = &window[..character.len_utf8()];
                    let token = vocabulary.id_of(part);
                    if token == Some(unknown) && len == 0 {
                        return part.len();
                    }
                    (part, token.is_some())
                }
                None => (chunk.invalid(), false),
            };
            let has_fallback = |&byte: &u8| vocabulary.byte_fallback(byte).is_some();
            if is_token || part.iter().all(has_fallback) {
                break;
            }
            len += part.len();
            if !fused {
                break;
            }
        }
        len
    }
}

/// Whether `offset` is no place inside a character of `text`.
fn is_char_boundary(text: &[u8], offset: usize) -> bool {
    // A character has at most four bytes: look whether one that begins before reaches over.
    (1..=3.min(offset)).all(|back| {
        let start = offset - back;
        let around = &text[start..text.len().min(start + 4)];
        let first = around
            .utf8_chunks()
            .next()
            .and_then(|chunk| chunk.valid().chars().next());
        first.is_none_or(|character| character.len_utf8() <= back)
    })
}

#[cfg(test)]
mod tests {
    use super::is_char_boundary;

    #[test]
    fn boundaries_are_those_of_str_and_bytes_that_are_no_character_are_free() {
        let text = "aé中😀z";
        for offset in 0..=text.len() {
            assert_eq!(
                is_char_boundary(text.as_bytes(), offset),
                text.is_char_boundary(offset),
                "{offset}"
            );
        }
        let cut = b"a\xE4\xB8z\xFF\x80\x80";
        assert!((0..=cut.len()).all(|offset| is_char_boundary(cut, offset)));
    }
}

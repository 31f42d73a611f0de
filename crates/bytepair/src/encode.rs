//! Encoding: the loop over runs of pieces, and the calls around it.

use std::ops::{ControlFlow, Range};

use bpe_core::TokenId;
use bpe_lexers::Run;

use crate::error::EncodeError;
use crate::offsets::Encoding;
use crate::pieces::Pieces;
use crate::pool::Engines;
use crate::tokenizer::Tokenizer;
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
        let pool = &self.inner.pool;
        pool.with(|engines| self.encode_ranges_with(engines, text, &mut ids, &mut byte_ranges))?;
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

    /// The number of tokens of `text` if it is at most `limit`, else `None`. Stops some hundred
    /// pre-tokens beyond the limit at most: of a long text the rest is looked at only for UTF-8 and special
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
        let pool = &self.inner.pool;
        let count = pool.with(|engines| self.count_until(engines, text.as_ref(), limit))?;
        Ok((count <= limit).then_some(count))
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
        let go_on = |_: &mut Vec<TokenId>, _, _: EncodedRun<'_>| ControlFlow::Continue(());
        let encoded = self.for_each_run(engines, text, ids, false, go_on);
        if encoded.is_err() {
            ids.truncate(start);
        }
        encoded
    }

    /// Appends tokens and their ranges.
    pub(crate) fn encode_ranges_with(
        &self,
        engines: &mut Engines,
        text: &[u8],
        ids: &mut Vec<TokenId>,
        ranges: &mut Vec<Range<usize>>,
    ) -> Result<(), EncodeError> {
        self.for_each_run(engines, text, ids, true, |ids, first, run| {
            self.append_ranges(&ids[first..], text, run, ranges);
            ControlFlow::Continue(())
        })
    }

    pub(crate) fn count_with(
        &self,
        engines: &mut Engines,
        text: &[u8],
    ) -> Result<usize, EncodeError> {
        self.count_until(engines, text, usize::MAX)
    }

    /// The number of tokens of `text`, or a number above `limit` where there are more.
    fn count_until(
        &self,
        engines: &mut Engines,
        text: &[u8],
        limit: usize,
    ) -> Result<usize, EncodeError> {
        let mut tokens = std::mem::take(&mut engines.tokens);
        tokens.clear();
        let mut count = 0;
        let counted = self.for_each_run(engines, text, &mut tokens, false, |ids, _, _| {
            count += ids.len();
            ids.clear();
            match count > limit {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        });
        engines.tokens = tokens;
        counted.map(|()| count)
    }

    /// Appends the tokens of each run to `ids`, and calls `after` behind each, with the number of
    /// tokens before it, until it breaks. The run has the numbers of tokens if `counted`.
    fn for_each_run(
        &self,
        engines: &mut Engines,
        text: &[u8],
        ids: &mut Vec<TokenId>,
        counted: bool,
        mut after: impl FnMut(&mut Vec<TokenId>, usize, EncodedRun<'_>) -> ControlFlow<()>,
    ) -> Result<(), EncodeError> {
        let Engines {
            spanner,
            pieces: encoder,
            counts,
            ..
        } = engines;
        let policy = &*self.policy;
        let flow = spanner.for_each_run(text, &policy.matcher, |run| {
            let first = ids.len();
            counts.clear();
            let (pieces, error) = match run {
                Run::Special { index, range } => {
                    let special = policy.matched[index];
                    if special.forbidden {
                        let text = &self.inner.specials.tokens()[special.token].text;
                        let error = EncodeError::forbidden(text, special.id, range.start);
                        return ControlFlow::Break(Some(error));
                    }
                    ids.push(special.id);
                    counts.push(1);
                    let pieces = Pieces {
                        offset: range.start,
                        start: 0,
                        ends: &[range.len()],
                    };
                    let run = EncodedRun { pieces, counts };
                    return flow_of(after(ids, first, run));
                }
                Run::Pieces {
                    offset,
                    start,
                    ends,
                } => {
                    let pieces = Pieces {
                        offset,
                        start,
                        ends,
                    };
                    let counts = counted.then_some(&mut *counts);
                    match encoder.encode(text, pieces, ids, counts) {
                        Ok(()) => (pieces, None),
                        Err((encoded, error)) => {
                            let ends = ends.get(..encoded).unwrap_or_default();
                            (Pieces { ends, ..pieces }, Some(error.shifted(offset)))
                        }
                    }
                }
            };
            match (after(ids, first, EncodedRun { pieces, counts }), error) {
                (ControlFlow::Continue(()), Some(error)) => ControlFlow::Break(Some(error.into())),
                (flow, _) => flow_of(flow),
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
                self.for_each_run(engines, text, &mut ids, true, |ids, first, run| {
                    self.append_ranges(&ids[first..], text, run, &mut byte_ranges);
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
    /// `start`, each ends at one of `ends`. To `ranges`, if there are any, the range of each token.
    pub(crate) fn encode_pieces(
        &self,
        engines: &mut Engines,
        text: &[u8],
        start: usize,
        ends: &[usize],
        ids: &mut Vec<TokenId>,
        ranges: Option<&mut Vec<Range<usize>>>,
    ) -> Result<(), EncodeError> {
        let pieces = Pieces {
            offset: 0,
            start,
            ends,
        };
        let Engines {
            pieces: encoder,
            counts,
            ..
        } = engines;
        let first = ids.len();
        counts.clear();
        let wanted = ranges.is_some().then_some(&mut *counts);
        let encoded = encoder.encode(text, pieces, ids, wanted);
        encoded.map_err(|(_, error)| error)?;
        if let Some(ranges) = ranges {
            self.append_ranges(&ids[first..], text, EncodedRun { pieces, counts }, ranges);
        }
        Ok(())
    }

    /// Appends the range of each of the tokens of one run.
    fn append_ranges(
        &self,
        ids: &[TokenId],
        text: &[u8],
        run: EncodedRun<'_>,
        ranges: &mut Vec<Range<usize>>,
    ) {
        let Pieces {
            offset,
            start,
            ends,
        } = run.pieces;
        let first = ranges.len();
        // Filling places takes less time than appending one by one.
        ranges.resize(first + ids.len(), 0..0);
        let places = ranges.get_mut(first..).unwrap_or_default();
        let mut start = offset + start;
        let mut at = 0;
        for (&end, &count) in ends.iter().zip(run.counts) {
            let (end, next) = (offset + end, at + count as usize);
            if count == 1 {
                if let Some(place) = places.get_mut(at) {
                    *place = start..end;
                }
            } else if let (Some(ids), Some(places)) = (ids.get(at..next), places.get_mut(at..next))
            {
                self.fill_ranges_of_piece(ids, text, start..end, places);
            }
            at = next;
            start = end;
        }
    }

    /// Fills in the range of each of the tokens of one piece. A token covers as many bytes as it has,
    /// but for the unknown token, which covers what is no token, and for special tokens.
    pub(crate) fn fill_ranges_of_piece(
        &self,
        ids: &[TokenId],
        text: &[u8],
        piece: Range<usize>,
        places: &mut [Range<usize>],
    ) {
        let unknown = self.unknown();
        let vocabulary = self.vocabulary();
        let mut start = piece.start;
        let Some((last, others)) = places.split_last_mut() else {
            return;
        };
        for (&id, place) in ids.iter().zip(others) {
            let len = match unknown {
                Some((unknown, fused)) if unknown == id => {
                    self.unknown_len(&text[start..piece.end], unknown, fused)
                }
                _ => vocabulary.token_bytes(id).map_or(0, <[u8]>::len),
            };
            let end = (start + len).min(piece.end);
            *place = start..end;
            start = end;
        }
        *last = start..piece.end;
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

/// Pieces that have become tokens.
struct EncodedRun<'r> {
    pieces: Pieces<'r>,
    /// Of each piece the number of its tokens, where that was asked for.
    counts: &'r [u32],
}

fn flow_of<B>(flow: ControlFlow<()>) -> ControlFlow<Option<B>> {
    match flow {
        ControlFlow::Continue(()) => ControlFlow::Continue(()),
        ControlFlow::Break(()) => ControlFlow::Break(None),
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

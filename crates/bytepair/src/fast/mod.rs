//! The fast path: the tokens of many pieces at once.
//!
//! A run of pieces is taken block by block, each in three loops over flat arrays:
//!
//! 1. *Keys*: the first 15 bytes of each piece and its length, its hash, the line of the cache.
//! 2. *Probes*: the tokens from the line, and a list of the pieces that are not there. Those are
//!    settled: by a look-up in the vocabulary, or by merging. What merging gives is kept.
//! 3. *Emission*: the tokens of all pieces, one after the other.
//!
//! A loop has no branch that depends on a piece, but for pieces that the cache does not have. The
//! tokens of a piece depend on nothing but its bytes, so what the cache says is what merging would
//! say, whatever the dictionary.

mod cache;
mod characters;
mod hash;
mod merge;

use std::sync::Arc;

use bpe_core::{CanonicalForm, EncodeError, SpanEncoder, TokenId};

use self::cache::{COUNT_SHIFT, Cache, ID_BITS, LONG, LONG_TOKENS, LongKey, SHORT, Tokens};
use self::characters::Characters;
use self::hash::Secret;
use self::merge::MOST_UNITS;
use crate::pieces::{Pieces, WholePieces, encode_plainly};

/// Pieces that are dealt with at once: their keys, lines and tokens fit a first-level cache.
const BLOCK: usize = 256;

/// The number of tokens of a piece whose tokens are in the overflow.
const OVERFLOW: u32 = 15;

/// The key of a piece that is too long for one: no piece of 255 bytes has a key.
const NO_KEY: u128 = 0xFF << 120;

/// Encodes pieces for one thread.
pub(crate) struct FastEncoder {
    tables: Arc<Tables>,
    /// For pieces of more than some units.
    encoder: Box<dyn SpanEncoder>,
    cache_bytes: usize,
    /// Made when the first piece comes.
    state: Option<Box<State>>,
}

/// What all threads share.
struct Tables {
    whole: Arc<WholePieces>,
    canonical: Arc<CanonicalForm>,
    /// Where merging may start from characters, or at least goes in arrays.
    characters: Option<Characters>,
}

struct State {
    cache: Cache,
    keys: [u128; BLOCK],
    lines: [u32; BLOCK],
    tokens: [Tokens; BLOCK],
    misses: [u32; BLOCK],
    /// Tokens of this block, and room for a last piece.
    emitted: [TokenId; 4 * BLOCK + 4],
    /// Tokens of the pieces of this block that have more than four.
    overflow: Vec<TokenId>,
}

impl FastEncoder {
    /// An encoder over `whole` and `encoder`; `None` where ids leave no room for a number of tokens.
    pub(crate) fn new(
        whole: &Arc<WholePieces>,
        canonical: &Arc<CanonicalForm>,
        encoder: Box<dyn SpanEncoder>,
        cache_bytes: usize,
    ) -> Option<Self> {
        let most = whole.vocabulary().max_id().unwrap_or(0);
        (most <= ID_BITS).then(|| Self {
            tables: Arc::new(Tables {
                whole: Arc::clone(whole),
                canonical: Arc::clone(canonical),
                characters: Characters::new(canonical),
            }),
            encoder,
            cache_bytes,
            state: None,
        })
    }

    /// What merges pieces that are not in the cache.
    pub(crate) fn span_encoder(&self) -> Box<dyn SpanEncoder> {
        self.encoder.clone_box()
    }

    /// Appends the tokens that merging `span` gives.
    pub(crate) fn encode_span(
        &mut self,
        span: &[u8],
        ids: &mut Vec<TokenId>,
    ) -> Result<(), EncodeError> {
        self.encoder.encode_span(span, ids)
    }

    /// Another one over the same tables.
    pub(crate) fn duplicate(&self) -> Self {
        Self {
            tables: Arc::clone(&self.tables),
            encoder: self.encoder.clone_box(),
            cache_bytes: self.cache_bytes,
            state: None,
        }
    }

    /// Appends the tokens of all pieces, and to `counts`, if there is one, their numbers.
    ///
    /// # Errors
    ///
    /// As `PieceEncoder::encode`.
    pub(crate) fn encode(
        &mut self,
        text: &[u8],
        pieces: Pieces<'_>,
        ids: &mut Vec<TokenId>,
        mut counts: Option<&mut Vec<u32>>,
    ) -> Result<(), (usize, EncodeError)> {
        let last = pieces.ends.last().copied().unwrap_or(0);
        if u32::try_from(last).is_err() {
            // Places in the overflow have 32 bits, and such texts are rare.
            let (whole, encoder) = (&self.tables.whole, &mut *self.encoder);
            return encode_plainly(whole, encoder, text, pieces, ids, counts);
        }
        let text = text.get(pieces.offset..).unwrap_or_default();
        let mut state = self
            .state
            .take()
            .unwrap_or_else(|| Box::new(State::new(self.cache_bytes)));
        let mut start = pieces.start;
        let mut done = 0;
        let mut result = Ok(());
        for ends in pieces.ends.chunks(BLOCK) {
            state.find_keys(text, start, ends);
            let missed = state.probe(ends.len());
            let settled = match missed {
                0 => Ok(()),
                _ => state.settle(&self.tables, &mut *self.encoder, text, start, ends, missed),
            };
            let count = match settled {
                Ok(()) => ends.len(),
                Err((piece, _)) => piece,
            };
            state.emit(count, ids, counts.as_deref_mut());
            if let Err((piece, error)) = settled {
                result = Err((done + piece, error));
                break;
            }
            done += ends.len();
            start = ends.last().copied().unwrap_or(start);
        }
        self.state = Some(state);
        result
    }
}

impl Tables {
    /// Appends the tokens that merging gives.
    fn merge(
        &self,
        encoder: &mut dyn SpanEncoder,
        bytes: &[u8],
        tokens: &mut Vec<TokenId>,
    ) -> Result<(), EncodeError> {
        // A character has at most four bytes.
        if let Some(characters) = &self.characters
            && bytes.len() <= 4 * MOST_UNITS
        {
            let mut units = [0; MOST_UNITS];
            if let Some(count) = characters.units(bytes, &mut units) {
                let left = merge::merge(&self.canonical, &mut units, count);
                tokens.extend_from_slice(units.get(..left).unwrap_or_default());
                return Ok(());
            }
        }
        encoder.encode_span(bytes, tokens)
    }
}

impl State {
    fn new(cache_bytes: usize) -> Self {
        Self {
            cache: Cache::new(cache_bytes, Secret::get()),
            keys: [0; BLOCK],
            lines: [0; BLOCK],
            tokens: [[0; 4]; BLOCK],
            misses: [0; BLOCK],
            emitted: [0; 4 * BLOCK + 4],
            overflow: Vec::new(),
        }
    }

    /// Fills in `keys` and `lines`.
    #[inline(always)]
    fn find_keys(&mut self, text: &[u8], start: usize, ends: &[usize]) {
        let lines = self.cache.short_lines();
        let mut start = start;
        for ((&end, key), line) in ends.iter().zip(&mut self.keys).zip(&mut self.lines) {
            *key = short_key(text, start, end - start);
            *line = lines.line(*key);
            start = end;
        }
    }

    /// Fills in `tokens` of what the cache has, and `misses`; returns how many these are.
    #[inline(always)]
    fn probe(&mut self, count: usize) -> usize {
        let lines = self.cache.short_lines();
        let mut missed = 0;
        let pieces = self.keys.iter().zip(&self.lines).zip(&mut self.tokens);
        for (piece, ((&key, &line), tokens)) in pieces.take(count).enumerate() {
            let (found, there) = lines.tokens(line, key);
            *tokens = found;
            self.misses[missed % BLOCK] = piece as u32;
            missed += usize::from(!there);
        }
        missed
    }

    /// Fills in `tokens` of the pieces in `misses`.
    fn settle(
        &mut self,
        tables: &Tables,
        encoder: &mut dyn SpanEncoder,
        text: &[u8],
        first: usize,
        ends: &[usize],
        missed: usize,
    ) -> Result<(), (usize, EncodeError)> {
        self.overflow.clear();
        for miss in 0..missed {
            let piece = self.misses[miss % BLOCK] as usize % BLOCK;
            let start = match piece.checked_sub(1) {
                Some(before) => ends.get(before).copied().unwrap_or(first),
                None => first,
            };
            let end = ends.get(piece).copied().unwrap_or(start);
            let bytes = text.get(start..end).unwrap_or_default();
            self.tokens[piece] = self
                .settle_one(tables, encoder, bytes, piece)
                .map_err(|error| (piece, error.shifted(start)))?;
        }
        Ok(())
    }

    fn settle_one(
        &mut self,
        tables: &Tables,
        encoder: &mut dyn SpanEncoder,
        bytes: &[u8],
        piece: usize,
    ) -> Result<Tokens, EncodeError> {
        let (key, line) = (self.keys[piece], self.lines[piece]);
        if bytes.len() <= SHORT {
            // It may have come before in this block.
            if let (tokens, true) = self.cache.short_lines().tokens(line, key) {
                return Ok(tokens);
            }
            if let Some(id) = tables.whole.token(bytes) {
                let tokens = [id | 1 << COUNT_SHIFT, 0, 0, 0];
                self.cache.short_lines().keep(line, key, tokens);
                return Ok(tokens);
            }
        }
        let long_key = (bytes.len() <= LONG).then(|| LongKey::of(bytes));
        if let Some([first, second]) = long_key.and_then(|key| self.cache.long_tokens(key)) {
            let count = first[0] >> COUNT_SHIFT;
            if count <= 4 {
                return Ok(*first);
            }
            let start = self.overflow.len();
            let all = first.iter().chain(second).take(count as usize);
            self.overflow.extend(all.map(|token| token & ID_BITS));
            // The number of tokens stands in the first one's highest bits.
            return Ok(overflowed(start, self.overflow.len()));
        }
        let start = self.overflow.len();
        let is_short = bytes.len() <= SHORT; // Then it has been looked up.
        let whole = (!is_short).then(|| tables.whole.token(bytes)).flatten();
        match whole {
            Some(id) => self.overflow.push(id),
            None => tables.merge(encoder, bytes, &mut self.overflow)?,
        }
        let tokens = self.overflow.get(start..).unwrap_or_default();
        if tokens.is_empty() || tokens.len() > 4 {
            if let Some(key) = long_key
                && tokens.len() <= LONG_TOKENS
                && !tokens.is_empty()
            {
                self.cache.keep_long(key, tokens);
            }
            return Ok(overflowed(start, self.overflow.len()));
        }
        let mut found = [0; 4];
        for (place, &token) in found.iter_mut().zip(tokens) {
            *place = token;
        }
        found[0] |= (tokens.len() as u32) << COUNT_SHIFT;
        if bytes.len() <= SHORT {
            self.cache.short_lines().keep(line, key, found);
        } else if let Some(key) = long_key {
            self.cache.keep_long(key, tokens);
        }
        self.overflow.truncate(start);
        Ok(found)
    }

    /// Appends the tokens of the first `count` pieces.
    #[inline(always)]
    fn emit(&mut self, count: usize, ids: &mut Vec<TokenId>, counts: Option<&mut Vec<u32>>) {
        let mut at = 0;
        if let Some(counts) = counts {
            counts.extend(self.tokens.iter().take(count).map(|tokens| {
                match tokens[0] >> COUNT_SHIFT {
                    OVERFLOW => tokens[2] - tokens[1],
                    few => few,
                }
            }));
        }
        for &[head, second, third, fourth] in self.tokens.iter().take(count) {
            let number = head >> COUNT_SHIFT;
            if number == OVERFLOW {
                ids.extend_from_slice(self.emitted.get(..at).unwrap_or_default());
                at = 0;
                let range = second as usize..third as usize;
                ids.extend_from_slice(self.overflow.get(range).unwrap_or_default());
                continue;
            }
            if let Some(room) = self.emitted.get_mut(at..at + 4) {
                room.copy_from_slice(&[head & ID_BITS, second, third, fourth]);
            }
            at += number as usize;
        }
        ids.extend_from_slice(self.emitted.get(..at).unwrap_or_default());
    }
}

/// Says where in the overflow the tokens of a piece stand.
fn overflowed(start: usize, end: usize) -> Tokens {
    [OVERFLOW << COUNT_SHIFT, start as u32, end as u32, 0]
}

/// The bytes of a piece, zeros, and its length in the last byte; [`NO_KEY`] where it is too long.
#[inline(always)]
fn short_key(text: &[u8], start: usize, len: usize) -> u128 {
    let bytes = match text.get(start..start + 16).and_then(<[u8]>::first_chunk) {
        Some(bytes) => u128::from_le_bytes(*bytes),
        None => last_bytes(text, start),
    };
    let (mask, length) = KEYS[len.min(SHORT + 1)];
    bytes & mask | length
}

/// The bytes from `start` to the end of the text, 16 at most.
#[cold]
fn last_bytes(text: &[u8], start: usize) -> u128 {
    let mut bytes = [0; 16];
    let rest = text.get(start..).unwrap_or_default();
    for (place, &byte) in bytes.iter_mut().zip(rest) {
        *place = byte;
    }
    u128::from_le_bytes(bytes)
}

/// Of each length the bits of a key that are bytes of the piece, and the length as the last byte.
static KEYS: [(u128, u128); SHORT + 2] = {
    let mut keys = [(0, NO_KEY); SHORT + 2];
    let mut len = 0;
    while len <= SHORT {
        keys[len] = ((1 << (8 * len)) - 1, (len as u128) << 120);
        len += 1;
    }
    keys
};

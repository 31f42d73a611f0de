//! What one thread remembers of pieces: two caches of fixed size.
//!
//! Both are arrays of lines of 64 bytes, chosen by a keyed hash. A new entry takes the place of an
//! old one; nothing grows and nothing is wiped. A collision costs one miss, so the worst that a
//! text can do is to miss always.
//!
//! ```text
//! short pieces  key 15 bytes, length | another key | 4 tokens of the one | 4 of the other
//! long pieces   key 31 bytes, length               | 8 tokens
//! ```
//!
//! The first token of an entry has the number of tokens in its highest bits.

use super::hash::Secret;

/// Tokens of an entry; the number of them in the highest bits of the first.
pub(super) type Tokens = [u32; 4];

/// Where the number of tokens stands in the first of them.
pub(super) const COUNT_SHIFT: u32 = 28;
/// The bits of a token's id.
pub(super) const ID_BITS: u32 = (1 << COUNT_SHIFT) - 1;

/// The bytes of a line, and of a line of the processor's caches.
const LINE: usize = 64;

/// The longest piece that fits a short key.
pub(super) const SHORT: usize = 15;
/// The longest piece that fits a long key.
pub(super) const LONG: usize = 31;
/// The most tokens of an entry for a long piece.
pub(super) const LONG_TOKENS: usize = 8;

/// Two ways: the keys, then the tokens of each.
pub(super) type ShortLine = [[u32; 4]; 4];
/// The key in two halves, then the tokens.
type LongLine = [[u32; 4]; 4];

pub(super) struct Cache {
    /// One line more than there are, so that the first can start at a line of memory.
    short: Vec<[u32; 4]>,
    short_from: usize,
    short_shift: u32,
    long: Vec<[u32; 4]>,
    long_from: usize,
    long_shift: u32,
    secret: Secret,
}

impl Cache {
    /// A cache of at most `bytes`, or of two lines where that is less. Memory that is never used
    /// is never touched.
    pub(super) fn new(bytes: usize, secret: Secret) -> Self {
        // Two thirds for short pieces.
        let short_bits = (bytes / 3 * 2 / LINE).max(1).ilog2();
        let long_bits = (bytes / 3 / LINE).max(1).ilog2();
        let (short, short_from) = lines(1 << short_bits);
        let (long, long_from) = lines(1 << long_bits);
        Self {
            short,
            short_from,
            short_shift: 64 - short_bits,
            long,
            long_from,
            long_shift: 64 - long_bits,
            secret,
        }
    }

    /// The lines for short pieces, and what finds the line of a key.
    #[inline(always)]
    pub(super) fn short_lines(&mut self) -> ShortLines<'_> {
        let (lines, _) = self.short[self.short_from..].as_chunks_mut();
        ShortLines {
            lines,
            shift: self.short_shift,
            secret: self.secret,
        }
    }

    /// The tokens of the piece with this key, if they are there.
    #[inline(always)]
    pub(super) fn long_tokens(&self, key: LongKey) -> Option<&[[u32; 4]; 2]> {
        let line = self.long_line(key);
        let line: &LongLine = self.long.get(line..line + 4)?.first_chunk()?;
        let [low, high, tokens @ ..] = line;
        (*low == words(key.low) && *high == words(key.high)).then_some(tokens)
    }

    /// Keeps `tokens`, at most [`LONG_TOKENS`].
    #[inline(always)]
    pub(super) fn keep_long(&mut self, key: LongKey, tokens: &[u32]) {
        let line = self.long_line(key);
        let line: Option<&mut LongLine> = self
            .long
            .get_mut(line..line + 4)
            .and_then(<[_]>::first_chunk_mut);
        if let (Some(line), Some(&first)) = (line, tokens.first()) {
            let mut all = [0; LONG_TOKENS];
            for (place, &token) in all.iter_mut().zip(tokens) {
                *place = token;
            }
            all[0] = first | (tokens.len() as u32) << COUNT_SHIFT;
            let [a, b, c, d, e, f, g, h] = all;
            *line = [words(key.low), words(key.high), [a, b, c, d], [e, f, g, h]];
        }
    }

    #[inline(always)]
    fn long_line(&self, key: LongKey) -> usize {
        let hash = self
            .secret
            .hash(key.low ^ u128::from(self.secret.hash(key.high)));
        self.long_from + 4 * hash.checked_shr(self.long_shift).unwrap_or(0) as usize
    }
}

pub(super) struct ShortLines<'c> {
    lines: &'c mut [ShortLine],
    shift: u32,
    secret: Secret,
}

impl ShortLines<'_> {
    /// The number of the line of a key.
    #[inline(always)]
    pub(super) fn line(&self, key: u128) -> u32 {
        self.secret.hash(key).checked_shr(self.shift).unwrap_or(0) as u32
    }

    /// The tokens of `key` in its line, and whether they are there; if not, any tokens.
    #[inline(always)]
    pub(super) fn tokens(&self, line: u32, key: u128) -> (Tokens, bool) {
        let Some(line) = self.lines.get(line as usize) else {
            return ([0; 4], false);
        };
        let [first, second, of_first, of_second] = line;
        let in_first = same(*first, key);
        let in_second = same(*second, key);
        let tokens = if in_second { of_second } else { of_first };
        (*tokens, in_first | in_second)
    }

    /// Keeps the tokens of `key` in the first way; what was there goes to the second.
    #[inline(always)]
    pub(super) fn keep(&mut self, line: u32, key: u128, tokens: Tokens) {
        if let Some(line) = self.lines.get_mut(line as usize) {
            let [first, _, of_first, _] = *line;
            *line = [words(key), first, tokens, of_first];
        }
    }
}

/// The key of a long piece: its bytes, zeros, and its length in the last byte.
#[derive(Clone, Copy)]
pub(super) struct LongKey {
    low: u128,
    high: u128,
}

impl LongKey {
    /// The key of a piece of at most [`LONG`] bytes.
    pub(super) fn of(piece: &[u8]) -> Self {
        let mut bytes = [0; 32];
        for (place, &byte) in bytes.iter_mut().zip(piece) {
            *place = byte;
        }
        bytes[LONG] = piece.len() as u8;
        let (halves, _) = bytes.as_chunks::<16>();
        let half =
            |index: usize| u128::from_le_bytes(halves.get(index).copied().unwrap_or_default());
        Self {
            low: half(0),
            high: half(1),
        }
    }
}

/// Empty lines, and where the first one starts: at a line of memory, so that a line is one.
fn lines(count: usize) -> (Vec<[u32; 4]>, usize) {
    let quarters = vec![[0; 4]; 4 * (count + 1)];
    let from = quarters.as_ptr().align_offset(LINE);
    // An allocator that does not align to 16 bytes costs time, not more.
    (quarters, if from < 4 { from } else { 0 })
}

#[inline(always)]
fn words(key: u128) -> [u32; 4] {
    [
        key as u32,
        (key >> 32) as u32,
        (key >> 64) as u32,
        (key >> 96) as u32,
    ]
}

#[inline(always)]
fn same(words: [u32; 4], key: u128) -> bool {
    let low = u64::from(words[0]) | u64::from(words[1]) << 32;
    let high = u64::from(words[2]) | u64::from(words[3]) << 32;
    (low ^ key as u64) | (high ^ (key >> 64) as u64) == 0
}

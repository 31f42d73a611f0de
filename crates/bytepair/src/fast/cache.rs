//! What one thread remembers of pieces: three caches of fixed size.
//!
//! All are arrays of entries, chosen by a keyed hash, of one line of 64 bytes or of three. A new entry takes
//! the place of an old one; nothing grows and nothing is wiped. A collision costs one miss, so the worst
//! that a text can do is to miss always.
//!
//! ```text
//! short pieces    key 15 bytes, length | another key | 4 tokens of the one | 4 of the other
//! long pieces     key 31 bytes, length               | 8 tokens
//! longest pieces  key 127 bytes, length                                 | 15 tokens
//! ```
//!
//! The longest are few, runs of one character most of them, and take the longest to merge.
//!
//! The first token of an entry has the number of tokens in its highest bits.

use std::ops::Range;

use super::hash::Secret;
use super::machine::{Tier, prefer_large_pages, prefetch};

/// Tokens of an entry; the number of them in the highest bits of the first.
pub(super) type Tokens = [u32; 4];

/// Where the number of tokens stands in the first of them.
pub(super) const COUNT_SHIFT: u32 = 28;
/// The bits of a token's id.
pub(super) const ID_BITS: u32 = (1 << COUNT_SHIFT) - 1;

/// The bytes of a line, and of a line of the processor's caches.
const LINE: usize = 64;

/// The key of a piece that is too long for one: no piece of 255 bytes has a key.
const NO_KEY: u128 = 0xFF << 120;

/// The longest piece that fits a short key.
pub(super) const SHORT: usize = 15;
/// The longest piece that fits a long key.
const LONG: usize = 31;
/// The most tokens of an entry for a long piece.
const LONG_TOKENS: usize = 8;
/// The longest piece that is kept.
const LONGEST: usize = 127;
/// The most tokens of any entry: their number has four bits.
const MOST_TOKENS: usize = 15;
/// The most entries for such pieces.
const LONGEST_ENTRIES: usize = 1024;

/// Two ways: the keys, then the tokens of each.
pub(super) type ShortLine = [[u32; 4]; 4];
/// The key in two halves, then the tokens.
type LongLine = [[u32; 4]; 4];
/// The key, then the tokens.
type LongestEntry = [[u32; 16]; 3];

pub(super) struct Cache {
    /// The lines in quarters: those for short pieces, then those for long ones. One line more than there
    /// are, so that the first can start at a line of memory.
    quarters: Vec<[u32; 4]>,
    short: Range<usize>,
    long_lines: u64,
    longest: Vec<LongestEntry>,
}

impl Cache {
    /// A cache of at most `bytes`, or of five entries where that is less. Memory that is never used
    /// is never touched.
    pub(super) fn new(bytes: usize) -> Self {
        // At most a sixteenth for the longest pieces, three quarters of the rest for short ones.
        let longest = (bytes / 16 / size_of::<LongestEntry>()).clamp(1, LONGEST_ENTRIES);
        let bytes = bytes.saturating_sub(longest * size_of::<LongestEntry>());
        let long_lines = (bytes / 4 / LINE).max(2);
        let short_lines = (bytes / LINE).saturating_sub(long_lines).max(2);
        let quarters = vec![[0; 4]; 4 * (short_lines + long_lines + 1)];
        prefer_large_pages(&quarters);
        // An allocator that does not align to 16 bytes costs time, not more.
        let from = match quarters.as_ptr().align_offset(LINE) {
            from @ 0..4 => from,
            _ => 0,
        };
        Self {
            quarters,
            short: from..from + 4 * short_lines,
            long_lines: long_lines as u64,
            longest: vec![[[0; 16]; 3]; longest],
        }
    }

    /// The lines for short pieces, and what finds the line of a key.
    #[inline(always)]
    pub(super) fn short_lines(&mut self) -> ShortLines<'_> {
        let (lines, _) = self.quarters[self.short.clone()].as_chunks_mut();
        ShortLines { lines }
    }

    /// Asks for the entry of a piece of `len` bytes, more than [`SHORT`], with this hash.
    #[inline(always)]
    pub(super) fn prefetch_long(&self, hash: u64, len: usize) {
        match len {
            ..=LONG => prefetch(&self.quarters, self.long_line(hash)),
            _ => prefetch(&self.longest, self.longest_entry(hash)),
        }
    }

    /// The tokens of a piece of more than [`SHORT`] bytes, if they are there, and anything behind them.
    #[inline(always)]
    pub(super) fn long_tokens(&self, hash: u64, key: LongKey, piece: &[u8]) -> Option<&[u32]> {
        if piece.len() > LONG {
            return self.longest_tokens(hash, piece);
        }
        let line = self.long_line(hash);
        let line: &LongLine = self.quarters.get(line..line + 4)?.first_chunk()?;
        let [low, high, tokens @ ..] = line;
        (same(*low, key.low) && same(*high, key.high)).then_some(tokens.as_flattened())
    }

    fn longest_tokens(&self, hash: u64, piece: &[u8]) -> Option<&[u32]> {
        let key = longest_key(piece)?;
        let [low, high, tokens] = self.longest.get(self.longest_entry(hash))?;
        (*low == key[0] && *high == key[1]).then_some(tokens)
    }

    /// Keeps the tokens of a piece of more than [`SHORT`] bytes, if neither are too many.
    #[inline(always)]
    pub(super) fn keep_long(&mut self, hash: u64, key: LongKey, piece: &[u8], tokens: &[u32]) {
        if piece.len() > LONG {
            self.keep_longest(hash, piece, tokens);
            return;
        }
        let line = self.long_line(hash);
        let line: Option<&mut LongLine> = self
            .quarters
            .get_mut(line..line + 4)
            .and_then(<[_]>::first_chunk_mut);
        if let (Some(line), Some(all)) = (line, packed::<LONG_TOKENS>(tokens)) {
            let [a, b, c, d, e, f, g, h] = all;
            *line = [words(key.low), words(key.high), [a, b, c, d], [e, f, g, h]];
        }
    }

    fn keep_longest(&mut self, hash: u64, piece: &[u8], tokens: &[u32]) {
        let place = self.longest_entry(hash);
        let entry = self.longest.get_mut(place);
        if let (Some(entry), Some([low, high]), Some(all)) =
            (entry, longest_key(piece), packed(tokens))
        {
            *entry = [low, high, all];
        }
    }

    #[inline(always)]
    fn longest_entry(&self, hash: u64) -> usize {
        scaled(hash, self.longest.len() as u64)
    }

    #[inline(always)]
    fn long_line(&self, hash: u64) -> usize {
        self.short.end + 4 * scaled(hash, self.long_lines)
    }
}

/// Tokens as an entry holds them; `None` where there are none, too many for the room, or for the bits of their number.
#[inline(always)]
pub(super) fn packed<const ROOM: usize>(tokens: &[u32]) -> Option<[u32; ROOM]> {
    let mut all = [0; ROOM];
    if tokens.len() > MOST_TOKENS {
        return None;
    }
    for (place, &token) in all.get_mut(..tokens.len())?.iter_mut().zip(tokens) {
        *place = token;
    }
    *all.first_mut()? = *tokens.first()? | (tokens.len() as u32) << COUNT_SHIFT;
    Some(all)
}

pub(super) struct ShortLines<'c> {
    lines: &'c mut [ShortLine],
}

impl ShortLines<'_> {
    /// The number of the line of a key with this hash.
    #[inline(always)]
    pub(super) fn line(&self, hash: u64) -> u32 {
        scaled(hash, self.lines.len() as u64) as u32
    }

    /// Asks for a line.
    #[inline(always)]
    pub(super) fn prefetch(&self, line: u32) {
        prefetch(self.lines, line as usize);
    }

    /// Writes the tokens of `key` in its line to `tokens`, and returns whether they are there; if not,
    /// it writes any tokens.
    #[inline(always)]
    pub(super) fn read(&self, tier: impl Tier, line: u32, key: &u128, tokens: &mut Tokens) -> bool {
        let Some(line) = self.lines.get(line as usize) else {
            return false;
        };
        let (quarter, is_there) = tier.find(line, key);
        *tokens = line[quarter % 4];
        is_there
    }

    /// Keeps the tokens of `key` in the first way; what was there goes to the second. A piece that came
    /// twice in one block is kept once.
    #[inline(always)]
    pub(super) fn keep(&mut self, line: u32, key: u128, tokens: Tokens) {
        if let Some(line) = self.lines.get_mut(line as usize) {
            let [first, _, of_first, _] = *line;
            if same(first, key) {
                return;
            }
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
    pub(super) const EMPTY: Self = Self { low: 0, high: 0 };

    /// The key of the piece of `len` bytes, at least 16, that starts at `start`. That of a piece of more
    /// than [`LONG`] bytes is good for a hash only: it has the first of them, and some of the length.
    #[inline(always)]
    pub(super) fn of(text: &[u8], start: usize, len: usize) -> Self {
        let half = |start: usize| match text.get(start..start + 16).and_then(<[_]>::first_chunk) {
            Some(bytes) => u128::from_le_bytes(*bytes),
            None => last_bytes(text, start),
        };
        let high = 8 * (len - SHORT - 1).min(SHORT) as u32;
        Self {
            low: half(start),
            high: half(start + 16) & ((1 << high) - 1) | (len.min(0xFF) as u128) << 120,
        }
    }

    #[inline(always)]
    pub(super) fn hash(self, secret: Secret) -> u64 {
        secret.hash(self.low ^ u128::from(secret.hash(self.high)))
    }
}

/// The bytes of a piece, zeros, and its length in the last byte; `None` where it is too long.
fn longest_key(piece: &[u8]) -> Option<[[u32; 16]; 2]> {
    let mut bytes = [0; LONGEST + 1];
    bytes.get_mut(..piece.len())?.copy_from_slice(piece);
    bytes[LONGEST] = match piece.len() {
        0..=LONGEST => piece.len() as u8,
        _ => return None,
    };
    let (words, _) = bytes.as_chunks::<4>();
    let (halves, _) = words.as_chunks::<16>();
    let half = |half: usize| halves.get(half).map(|half| half.map(u32::from_le_bytes));
    Some([half(0)?, half(1)?])
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

/// A number below `count`, at most 2^32, by the highest bits of a hash.
#[inline(always)]
fn scaled(hash: u64, count: u64) -> usize {
    (((hash >> 32) * count) >> 32) as usize
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
pub(super) fn same(words: [u32; 4], key: u128) -> bool {
    words == self::words(key)
}

/// The bytes of a piece, zeros, and its length in the last byte; a key of none where it is too long.
#[inline(always)]
pub(super) fn short_key(text: &[u8], start: usize, len: usize) -> u128 {
    let key = short_key_inside(text, start, len);
    key.unwrap_or_else(|| masked(last_bytes(text, start), len))
}

/// The same, if the text goes on for as many bytes as a key has.
#[inline(always)]
pub(super) fn short_key_inside(text: &[u8], start: usize, len: usize) -> Option<u128> {
    let bytes = text.get(start..)?.first_chunk()?;
    Some(masked(u128::from_le_bytes(*bytes), len))
}

#[inline(always)]
fn masked(bytes: u128, len: usize) -> u128 {
    let (mask, length) = KEYS[len.min(SHORT + 1)];
    bytes & mask | length
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

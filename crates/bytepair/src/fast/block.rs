//! The loops over the pieces of a block.
//!
//! 1. *Keys*: the first 15 bytes of each piece and its length, its hash; and the line of the cache is
//!    asked for.
//! 2. *Probes*: the tokens from the line, and a list of the pieces that are not there.
//! 3. *Misses*: those are settled together, step by step: by the cache for long pieces, by the
//!    vocabulary, by merging. What comes of it is kept.
//! 4. *Emission*: the tokens of all pieces, one after the other.
//!
//! The first, the second and the last have no branch that depends on a piece, but for long outputs.

use bpe_core::{EncodeError, SpanEncoder, TokenId};

use super::Tables;
use super::cache::{
    COUNT_SHIFT, Cache, ID_BITS, LONG, LONG_TOKENS, LongKey, SHORT, Tokens, short_key,
};
use super::hash::Secret;
use super::merge::Merging;
use super::seed::Slot;

/// Pieces that are dealt with at once: their keys, lines and tokens fit a first-level cache.
pub(super) const BLOCK: usize = 256;

/// Pieces that are merged in turn.
const AT_ONCE: usize = 8;

/// The number of tokens of a piece whose tokens are in the overflow.
const OVERFLOW: u32 = 15;

/// The work of one thread on one block, and what it remembers from block to block.
pub(super) struct Block {
    secret: Secret,
    cache: Cache,
    keys: [u128; BLOCK],
    hashes: [u64; BLOCK],
    tokens: [Tokens; BLOCK],
    misses: [u32; BLOCK],
    /// Of each miss what may be its token, and its key if it is long.
    found: [Option<(Slot, TokenId)>; BLOCK],
    long_keys: [LongKey; BLOCK],
    merging: [Merging; AT_ONCE],
    /// Tokens of this block, and room for a last piece.
    emitted: [TokenId; 4 * BLOCK + 4],
    /// Tokens of the pieces of this block that have more than four.
    overflow: Vec<TokenId>,
}

impl Block {
    pub(super) fn new(cache_bytes: usize) -> Self {
        Self {
            secret: Secret::get(),
            cache: Cache::new(cache_bytes),
            keys: [0; BLOCK],
            hashes: [0; BLOCK],
            tokens: [[0; 4]; BLOCK],
            misses: [0; BLOCK],
            found: [None; BLOCK],
            long_keys: [LongKey::EMPTY; BLOCK],
            merging: [const { Merging::NOTHING }; AT_ONCE],
            emitted: [0; 4 * BLOCK + 4],
            overflow: Vec::new(),
        }
    }

    /// Fills in `keys` and `hashes`, and asks for the lines.
    #[inline(always)]
    pub(super) fn find_keys(&mut self, text: &[u8], start: usize, ends: &[usize]) {
        let secret = self.secret;
        let lines = self.cache.short_lines();
        let mut start = start;
        for ((&end, key), hash) in ends.iter().zip(&mut self.keys).zip(&mut self.hashes) {
            *key = short_key(text, start, end - start);
            *hash = secret.hash(*key);
            lines.prefetch(*hash);
            start = end;
        }
    }

    /// Fills in `tokens` of what the cache has, and `misses`; returns how many these are.
    #[inline(always)]
    pub(super) fn probe(&mut self, count: usize) -> usize {
        let lines = self.cache.short_lines();
        let mut missed = 0;
        for piece in 0..count.min(BLOCK) {
            let (hash, key) = (self.hashes[piece], self.keys[piece]);
            let there = lines.read(hash, key, &mut self.tokens[piece]);
            self.misses[missed % BLOCK] = piece as u32;
            missed += usize::from(!there);
        }
        missed
    }

    /// Fills in `tokens` of the pieces in `misses`: all through one step, then all that are left through
    /// the next, so that what they wait for comes together.
    pub(super) fn settle(
        &mut self,
        tables: &Tables,
        encoder: &mut dyn SpanEncoder,
        text: &[u8],
        first: usize,
        ends: &[usize],
        missed: usize,
    ) -> Result<(), (usize, EncodeError)> {
        self.overflow.clear();
        let secret = self.secret;
        let range = |piece: usize| {
            let start = match piece.checked_sub(1) {
                Some(before) => ends.get(before).copied().unwrap_or(first),
                None => first,
            };
            (start, ends.get(piece).copied().unwrap_or(start))
        };
        for miss in 0..missed {
            let piece = self.misses[miss % BLOCK] as usize % BLOCK;
            let (start, end) = range(piece);
            let len = end - start;
            if len > SHORT {
                let key = LongKey::of(text, start, len);
                let hash = key.hash(secret);
                self.long_keys[miss % BLOCK] = key;
                self.hashes[piece] = hash;
                self.cache.prefetch_long(hash);
            }
            tables.seed.prefetch_slot(self.hashes[piece]);
        }
        for miss in 0..missed {
            let piece = self.misses[miss % BLOCK] as usize % BLOCK;
            self.found[miss % BLOCK] = tables.seed.first(self.hashes[piece]);
        }
        let mut left = 0;
        for miss in 0..missed {
            let miss = miss % BLOCK;
            let piece = self.misses[miss] as usize % BLOCK;
            let (start, end) = range(piece);
            let (hash, found) = (self.hashes[piece], self.found[miss]);
            if end - start <= SHORT {
                let key = self.keys[piece];
                if let Some(id) = tables.seed.short(found, hash, key) {
                    let tokens = [id | 1 << COUNT_SHIFT, 0, 0, 0];
                    self.tokens[piece] = tokens;
                    self.cache.short_lines().keep(hash, key, tokens);
                    continue;
                }
            } else {
                let is_kept = end - start <= LONG;
                if is_kept && self.find_long(piece, self.long_keys[miss]) {
                    continue;
                }
                let bytes = text.get(start..end).unwrap_or_default();
                let vocabulary = tables.whole.vocabulary();
                if let Some(id) = tables.seed.long(vocabulary, found, hash, bytes) {
                    self.tokens[piece] = [id | 1 << COUNT_SHIFT, 0, 0, 0];
                    if is_kept {
                        self.cache.keep_long(hash, self.long_keys[miss], &[id]);
                    }
                    continue;
                }
            }
            self.misses[left % BLOCK] = piece as u32;
            self.long_keys[left % BLOCK] = self.long_keys[miss];
            left += 1;
        }
        self.merge_all(tables, encoder, text, range, left)
    }

    /// Fills in the tokens of the first `left` of `misses`, which are in no cache and no token.
    fn merge_all(
        &mut self,
        tables: &Tables,
        encoder: &mut dyn SpanEncoder,
        text: &[u8],
        range: impl Fn(usize) -> (usize, usize),
        left: usize,
    ) -> Result<(), (usize, EncodeError)> {
        let table = tables.canonical.pair_table();
        // The first `running` of these are the numbers of those at work.
        let mut order: [usize; AT_ONCE] = std::array::from_fn(|number| number);
        let mut running = 0;
        let mut next = 0;
        loop {
            while running < AT_ONCE && next < left {
                let miss = next % BLOCK;
                next += 1;
                let piece = self.misses[miss] as usize % BLOCK;
                let (start, end) = range(piece);
                let bytes = text.get(start..end).unwrap_or_default();
                if self.is_known(piece, miss, bytes.len()) {
                    continue;
                }
                let merging = &mut self.merging[order[running % AT_ONCE] % AT_ONCE];
                if tables.start(bytes, merging) {
                    merging.miss = miss;
                    running += 1;
                } else {
                    let start_of = self.overflow.len();
                    encoder
                        .encode_span(bytes, &mut self.overflow)
                        .map_err(|error| (piece, error.shifted(start)))?;
                    self.tokens[piece] = overflowed(start_of, self.overflow.len());
                    self.keep(piece, miss, bytes.len());
                }
            }
            if running == 0 {
                return Ok(());
            }
            let mut number = 0;
            while number < running {
                let merging = &mut self.merging[order[number % AT_ONCE] % AT_ONCE];
                if merging.step(table) {
                    number += 1;
                    continue;
                }
                let miss = merging.miss % BLOCK;
                let piece = self.misses[miss] as usize % BLOCK;
                let (from, to) = range(piece);
                let start = self.overflow.len();
                merging.append_to(&mut self.overflow);
                self.tokens[piece] = overflowed(start, self.overflow.len());
                self.keep(piece, miss, to - from);
                running -= 1;
                order.swap(number % AT_ONCE, running % AT_ONCE);
            }
        }
    }

    /// Fills in the tokens of a piece of `len` bytes if the cache has them: it may have come before in
    /// this block.
    fn is_known(&mut self, piece: usize, miss: usize, len: usize) -> bool {
        let hash = self.hashes[piece];
        if len <= SHORT {
            let lines = self.cache.short_lines();
            lines.read(hash, self.keys[piece], &mut self.tokens[piece])
        } else {
            len <= LONG && self.find_long(piece, self.long_keys[miss])
        }
    }

    /// Keeps the tokens of a piece, which are at the end of the overflow, and takes them from there if they
    /// are few.
    fn keep(&mut self, piece: usize, miss: usize, len: usize) {
        let hash = self.hashes[piece];
        let start = self.tokens[piece][1] as usize;
        let tokens = self.overflow.get(start..).unwrap_or_default();
        if (SHORT + 1..=LONG).contains(&len) && tokens.len() <= LONG_TOKENS {
            self.cache
                .keep_long(hash, self.long_keys[miss % BLOCK], tokens);
        }
        if tokens.is_empty() || tokens.len() > 4 {
            return;
        }
        let mut found = [0; 4];
        for (place, &token) in found.iter_mut().zip(tokens) {
            *place = token;
        }
        found[0] |= (tokens.len() as u32) << COUNT_SHIFT;
        if len <= SHORT {
            self.cache.short_lines().keep(hash, self.keys[piece], found);
        }
        self.tokens[piece] = found;
        self.overflow.truncate(start);
    }

    /// Fills in the tokens of a piece with this long key, if the cache has them.
    fn find_long(&mut self, piece: usize, key: LongKey) -> bool {
        let Some([first, second]) = self.cache.long_tokens(self.hashes[piece], key) else {
            return false;
        };
        let count = first[0] >> COUNT_SHIFT;
        self.tokens[piece] = if count <= 4 {
            *first
        } else {
            let start = self.overflow.len();
            let [head, rest @ ..] = *first;
            self.overflow.push(head & ID_BITS);
            let rest = rest.iter().chain(second).take(count as usize - 1);
            self.overflow.extend(rest);
            overflowed(start, self.overflow.len())
        };
        true
    }

    /// Appends the tokens of the first `count` pieces.
    #[inline(always)]
    pub(super) fn emit(
        &mut self,
        count: usize,
        ids: &mut Vec<TokenId>,
        counts: Option<&mut Vec<u32>>,
    ) {
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

//! The loops over the pieces of a block.
//!
//! 1. *Keys*: the first 15 bytes of each piece and its length, its hash; and the line of the cache is
//!    asked for.
//! 2. *Probes*: the tokens from the line, and a list of the pieces that are not there.
//! 3. *Misses*: those are settled together, step by step: by the caches for longer pieces, by the
//!    vocabulary, by merging. What comes of it is kept.
//! 4. *Emission*: the tokens of all pieces, one after the other.
//!
//! The first, the second and the last have no branch that depends on a piece, but for long outputs.

use bpe_core::{EncodeError, SpanEncoder, TokenId};

use super::Tables;
use super::cache::{
    COUNT_SHIFT, Cache, ID_BITS, LongKey, SHORT, Tokens, packed, short_key, short_key_inside,
};
use super::hash::Secret;
use super::machine::{Portable, Tier};
use super::merge::Merging;
use super::seed::Slot;

/// Pieces whose misses are settled together: with few of them most of the time goes into waiting.
pub(super) const BLOCK: usize = 512;
/// Pieces that are looked for together: their lines of the cache fit a first-level cache.
const PART: usize = 256;

/// Pieces that are merged in turn.
const AT_ONCE: usize = 8;

/// As many tokens are copied at once.
const FEW: usize = 16;

/// The number of tokens of a piece whose tokens are in the overflow.
const OVERFLOW: u32 = 15;

/// The work of one thread on one block, and what it remembers from block to block.
pub(super) struct Block {
    secret: Secret,
    cache: Cache,
    keys: [u128; BLOCK],
    /// Of each key its line of the cache.
    lines: [u32; BLOCK],
    /// Of the pieces in `misses`.
    hashes: [u64; BLOCK],
    tokens: [Tokens; BLOCK],
    misses: [u32; BLOCK],
    /// Of each miss what may be its token, and its key if it is long.
    found: [Option<(Slot, TokenId)>; BLOCK],
    long_keys: [LongKey; BLOCK],
    merging: [Merging; AT_ONCE],
    emitted: Emitted,
    /// Tokens of the pieces of this block that have more than four.
    overflow: Vec<TokenId>,
}

impl Block {
    pub(super) fn new(cache_bytes: usize) -> Self {
        Self {
            secret: Secret::get(),
            cache: Cache::new(cache_bytes),
            keys: [0; BLOCK],
            lines: [0; BLOCK],
            hashes: [0; BLOCK],
            tokens: [[0; 4]; BLOCK],
            misses: [0; BLOCK],
            found: [None; BLOCK],
            long_keys: [LongKey::EMPTY; BLOCK],
            merging: [const { Merging::NOTHING }; AT_ONCE],
            emitted: Emitted {
                tokens: [0; FEW * (PART + 1)],
            },
            overflow: Vec::new(),
        }
    }

    /// Fills in `tokens` of what the cache has, and `misses`; returns how many these are.
    #[inline(always)]
    pub(super) fn look_up(
        &mut self,
        tier: impl Tier,
        text: &[u8],
        mut start: usize,
        ends: &[usize],
    ) -> usize {
        let mut missed = 0;
        for (part, ends) in ends.chunks(PART).enumerate() {
            self.find_keys(text, start, part * PART, ends);
            missed = self.probe(tier, part * PART, ends.len(), missed);
            start = ends.last().copied().unwrap_or(start);
        }
        missed
    }

    /// Fills in `keys` and `lines` from the piece `first` on, and asks for the lines.
    #[inline(always)]
    fn find_keys(&mut self, text: &[u8], mut start: usize, first: usize, ends: &[usize]) {
        let secret = self.secret;
        let lines = self.cache.short_lines();
        let (keys, numbers) = (&mut self.keys[first..], &mut self.lines[first..]);
        let mut done = 0;
        let places = keys.iter_mut().zip(&mut *numbers);
        for (&end, (key, line)) in ends.iter().zip(places) {
            let Some(found) = short_key_inside(text, start, end - start) else {
                break;
            };
            *key = found;
            *line = lines.line(secret.hash(found));
            lines.prefetch(*line);
            start = end;
            done += 1;
        }
        // The last pieces of a text.
        let places = keys.iter_mut().zip(numbers).skip(done);
        for (&end, (key, line)) in ends.iter().skip(done).zip(places) {
            *key = short_key(text, start, end - start);
            *line = lines.line(secret.hash(*key));
            lines.prefetch(*line);
            start = end;
        }
    }

    /// Fills in `tokens` of `count` pieces from `first` on, if the cache has them, and appends the others to the
    /// first `missed` of `misses`; returns how many these are then.
    #[inline(always)]
    fn probe(&mut self, tier: impl Tier, first: usize, count: usize, mut missed: usize) -> usize {
        let lines = self.cache.short_lines();
        let part = first..first + count;
        let (keys, numbers) = (&self.keys[part.clone()], &self.lines[part.clone()]);
        let tokens = &mut self.tokens[part];
        for (piece, ((key, &line), tokens)) in keys.iter().zip(numbers).zip(tokens).enumerate() {
            let is_there = lines.read(tier, line, key, tokens);
            self.misses[missed % BLOCK] = (first + piece) as u32;
            missed += usize::from(!is_there);
        }
        missed
    }

    /// Fills in `tokens` of the pieces in `misses`: all through one step, then all that are left through
    /// the next, so that what they wait for comes together.
    #[inline(always)]
    pub(super) fn settle(
        &mut self,
        tables: &Tables,
        encoder: &mut dyn SpanEncoder,
        text: &[u8],
        first: usize,
        ends: &[usize],
        missed: usize,
    ) -> Result<(), (usize, EncodeError)> {
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
                self.cache.prefetch_long(hash, len);
            } else {
                self.hashes[piece] = secret.hash(self.keys[piece]);
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
                    let line = self.lines[piece];
                    self.cache.short_lines().keep(line, key, tokens);
                    continue;
                }
            } else {
                let bytes = text.get(start..end).unwrap_or_default();
                if self.find_long(piece, self.long_keys[miss], bytes) {
                    continue;
                }
                let vocabulary = tables.whole.vocabulary();
                if let Some(id) = tables.seed.long(vocabulary, found, hash, bytes) {
                    self.tokens[piece] = [id | 1 << COUNT_SHIFT, 0, 0, 0];
                    let key = self.long_keys[miss];
                    self.cache.keep_long(hash, key, bytes, &[id]);
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
    #[inline(always)]
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
                if self.is_known(piece, miss, bytes) {
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
                    self.keep(piece, miss, bytes);
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
                self.keep(piece, miss, text.get(from..to).unwrap_or_default());
                running -= 1;
                order.swap(number % AT_ONCE, running % AT_ONCE);
            }
        }
    }

    /// Fills in the tokens of a piece if the cache has them: it may have come before in this block.
    fn is_known(&mut self, piece: usize, miss: usize, bytes: &[u8]) -> bool {
        if bytes.len() <= SHORT {
            let (line, key) = (self.lines[piece], &self.keys[piece]);
            let lines = self.cache.short_lines();
            lines.read(Portable, line, key, &mut self.tokens[piece])
        } else {
            self.find_long(piece, self.long_keys[miss], bytes)
        }
    }

    /// Keeps the tokens of a piece, which are at the end of the overflow, and takes them from there if they
    /// are few.
    fn keep(&mut self, piece: usize, miss: usize, bytes: &[u8]) {
        let start = self.tokens[piece][1] as usize;
        let tokens = self.overflow.get(start..).unwrap_or_default();
        let few = packed(tokens);
        if bytes.len() > SHORT {
            let (hash, key) = (self.hashes[piece], self.long_keys[miss % BLOCK]);
            self.cache.keep_long(hash, key, bytes, tokens);
        } else if let Some(few) = few {
            let (line, key) = (self.lines[piece], self.keys[piece]);
            self.cache.short_lines().keep(line, key, few);
        }
        if let Some(few) = few {
            self.tokens[piece] = few;
            self.overflow.truncate(start);
        }
    }

    /// Fills in the tokens of a piece of more than [`SHORT`] bytes, if the cache has them.
    fn find_long(&mut self, piece: usize, key: LongKey, bytes: &[u8]) -> bool {
        let hash = self.hashes[piece];
        let found = self.cache.long_tokens(hash, key, bytes);
        let Some(&[head, second, third, fourth, ..]) = found else {
            return false;
        };
        let count = head >> COUNT_SHIFT;
        self.tokens[piece] = if count <= 4 {
            [head, second, third, fourth]
        } else {
            let start = self.overflow.len();
            let rest = found.unwrap_or_default().iter().take(count as usize);
            self.overflow.push(head & ID_BITS);
            self.overflow.extend(rest.skip(1));
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
        if let Some(counts) = counts {
            counts.extend(self.tokens.iter().take(count).map(|tokens| {
                match tokens[0] >> COUNT_SHIFT {
                    OVERFLOW => tokens[2] - tokens[1],
                    few => few,
                }
            }));
        }
        // So that a few can be copied as many, whichever they are.
        self.overflow.extend([0; FEW]);
        for part in self.tokens[..count.min(BLOCK)].chunks(PART) {
            let mut left = part;
            loop {
                let (pieces, tokens) = self.emitted.fill(left, &self.overflow);
                ids.extend_from_slice(self.emitted.tokens.get(..tokens).unwrap_or_default());
                let Some((&[_, start, end, _], rest)) =
                    left.get(pieces..).and_then(<[_]>::split_first)
                else {
                    break;
                };
                let range = start as usize..end as usize;
                ids.extend_from_slice(self.overflow.get(range).unwrap_or_default());
                left = rest;
            }
        }
        self.overflow.clear();
    }
}

/// The tokens of the pieces of a part, and room for a last piece.
struct Emitted {
    tokens: [TokenId; FEW * (PART + 1)],
}

impl Emitted {
    /// Writes the tokens of `pieces`, up to the first that has more than [`FEW`]; returns how many pieces
    /// these are and how many tokens.
    #[inline(always)]
    fn fill(&mut self, pieces: &[Tokens], overflow: &[TokenId]) -> (usize, usize) {
        let mut at = 0;
        for (piece, &[head, second, third, fourth]) in pieces.iter().enumerate() {
            let number = head >> COUNT_SHIFT;
            if number == OVERFLOW {
                let few = overflow.get(second as usize..);
                let few = few.and_then(<[_]>::first_chunk::<FEW>);
                let room = self.tokens.get_mut(at..);
                let room = room.and_then(<[_]>::first_chunk_mut::<FEW>);
                let number = (third - second) as usize;
                let (Some(few), Some(room), 0..=FEW) = (few, room, number) else {
                    return (piece, at);
                };
                *room = *few;
                at += number;
                continue;
            }
            if let Some(room) = self.tokens.get_mut(at..at + 4) {
                room.copy_from_slice(&[head & ID_BITS, second, third, fourth]);
            }
            at += number as usize;
        }
        (pieces.len(), at)
    }
}

/// Says where in the overflow the tokens of a piece stand.
fn overflowed(start: usize, end: usize) -> Tokens {
    [OVERFLOW << COUNT_SHIFT, start as u32, end as u32, 0]
}

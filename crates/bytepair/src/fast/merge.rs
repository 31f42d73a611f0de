//! Merging the few units of short pieces, in arrays, several pieces in turn.
//!
//! What a pair merges to is mostly in memory that is not in a near cache. So a piece that needs to
//! know asks for that memory, and while it comes other pieces go on.

use bpe_core::{Merge, PairTable, TokenId};

use super::machine::prefetch;

/// The most units that are merged here: the steps are quadratic in them. A bit each, and a power of two,
/// so that the arrays need no check.
pub(super) const ROOM: usize = 64;

/// No rule: no rule has this priority.
pub(super) const NEVER: u64 = u64::MAX;

/// What bytes of ASCII are, and what two of them merge to: most of what English asks.
pub(super) struct Ascii {
    bytes: [TokenId; 128],
    pairs: Vec<[u64; 128]>,
}

impl Ascii {
    pub(super) fn new(table: &PairTable, bytes: &[TokenId; 256]) -> Self {
        let pair = |left: usize, right: usize| merged(table.get(bytes[left], bytes[right]));
        Self {
            bytes: std::array::from_fn(|byte| bytes[byte]),
            pairs: (0..128)
                .map(|left| std::array::from_fn(|right| pair(left, right)))
                .collect(),
        }
    }
}

/// The priority of a merge above its product.
#[inline(always)]
pub(super) fn merged(merge: Option<Merge>) -> u64 {
    match merge {
        Some(merge) => u64::from(merge.priority.0) << 32 | u64::from(merge.product),
        None => NEVER,
    }
}

/// A piece that is being merged.
#[derive(Clone)]
pub(super) struct Merging {
    units: [TokenId; ROOM],
    /// Of the units in `mergeable`, what they and the next merge to: the priority above the product.
    pairs: [u64; ROOM],
    /// Where in the table that stands, for those in `asked`.
    places: [u32; ROOM],
    /// The units that are there, as bits: a merge leaves its product at its left side's place.
    alive: u64,
    /// The units that have a rule with the next, and those of which it is not known yet, as bits.
    mergeable: u64,
    asked: u64,
    /// Which of the misses this is, for the caller.
    pub(super) miss: usize,
}

impl Merging {
    pub(super) const NOTHING: Self = Self {
        units: [0; ROOM],
        pairs: [NEVER; ROOM],
        places: [0; ROOM],
        alive: 0,
        mergeable: 0,
        asked: 0,
        miss: 0,
    };

    /// Room for the units to start from.
    pub(super) fn units_mut(&mut self) -> &mut [TokenId; ROOM] {
        &mut self.units
    }

    /// Appends what is left of the units.
    #[inline(always)]
    pub(super) fn append_to(&self, tokens: &mut Vec<TokenId>) {
        let mut alive = self.alive;
        while alive != 0 {
            tokens.push(self.units[bit(alive)]);
            alive &= alive - 1;
        }
    }

    /// Starts with the bytes of a piece that is ASCII.
    #[inline(always)]
    pub(super) fn start_ascii(&mut self, ascii: &Ascii, piece: &[u8]) {
        self.alive = lowest(piece.len());
        self.asked = 0;
        self.mergeable = 0;
        let mut before = 0;
        for (index, &byte) in piece.iter().enumerate().take(ROOM) {
            let byte = usize::from(byte % 128);
            self.units[index] = ascii.bytes[byte];
            let pair = ascii.pairs[before][byte];
            // Of the first byte there is no pair: its bit falls off at the end.
            self.pairs[index.wrapping_sub(1) % ROOM] = pair;
            self.mergeable |= (u64::from(pair != NEVER) << index) >> 1;
            before = byte;
        }
    }

    /// Starts with the first `count` units.
    #[inline(always)]
    pub(super) fn start(&mut self, table: &PairTable, count: usize) {
        self.alive = lowest(count);
        self.asked = 0;
        self.mergeable = 0;
        for left in 1..count.min(ROOM) {
            self.ask(table, left - 1, left);
        }
    }

    /// Makes one merge, of the pair of best priority, the leftmost first; `false` where there is none.
    #[inline(always)]
    pub(super) fn step(&mut self, table: &PairTable) -> bool {
        while self.asked != 0 {
            let left = bit(self.asked);
            self.asked &= self.asked - 1;
            self.answer(table, left);
        }
        let mut mergeable = self.mergeable;
        let mut best = NEVER;
        let mut left = 0;
        while mergeable != 0 {
            let index = bit(mergeable);
            mergeable &= mergeable - 1;
            let pair = self.pairs[index];
            if pair < best {
                best = pair;
                left = index;
            }
        }
        if best == NEVER {
            return false;
        }
        let behind = self.alive & !((2 << left) - 1);
        let right = bit(behind);
        self.units[left] = best as u32;
        self.alive &= !(1 << right);
        self.mergeable &= !(1 << left | 1 << right);
        let behind = behind & (behind - 1);
        if behind != 0 {
            self.ask(table, left, bit(behind));
        }
        let before = self.alive & ((1 << left) - 1);
        if before != 0 {
            let before = 63 - before.leading_zeros() as usize;
            self.mergeable &= !(1 << before);
            self.ask(table, before, left);
        }
        true
    }

    /// Asks what two neighbours merge to. No branch: whether a pair may have a rule is hard to foresee.
    #[inline(always)]
    fn ask(&mut self, table: &PairTable, left: usize, right: usize) {
        let place = table.place(self.units[left], self.units[right]);
        let may_be = place.is_some();
        let place = place.unwrap_or(0);
        prefetch(table.slots(), place);
        self.places[left] = place as u32;
        self.asked |= u64::from(may_be) << left;
    }

    #[inline(always)]
    fn answer(&mut self, table: &PairTable, left: usize) {
        let place = self.places[left] as usize;
        let right = bit(self.alive & !((2 << left) - 1));
        let pair = merged(table.get_at(place, self.units[left], self.units[right]));
        self.pairs[left] = pair;
        self.mergeable |= u64::from(pair != NEVER) << left;
    }
}

/// The number of the lowest bit, which is that of a unit.
#[inline(always)]
fn bit(bits: u64) -> usize {
    (bits.trailing_zeros() as usize) % ROOM
}

/// The bits of the first `count` units, at least one and at most [`ROOM`].
#[inline(always)]
fn lowest(count: usize) -> u64 {
    u64::MAX >> (ROOM - count.clamp(1, ROOM))
}

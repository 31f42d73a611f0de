//! The vocabulary as pieces: which pieces are one token, found by the hash that the cache uses.
//!
//! ```text
//! slots   by the lowest bits of the hash, then one by one: some bits of the hash, id + 1 (0: free)
//! keys    by id: the key of a token of at most 15 bytes
//! ```
//!
//! It is shared by all threads, never changes, and is read only for pieces that no cache has. A piece
//! that is no token costs one load, since its bits of the hash are in no slot; one that is, costs two.

use bpe_core::{TokenId, Vocabulary};

use super::cache::{LongKey, SHORT, short_key};
use super::hash::Secret;
use super::machine::{prefer_large_pages, prefetch};
use crate::pieces::WholePieces;

/// Tokens that are inserted together.
const AT_ONCE: usize = 64;

/// Where a search goes on: the number of a slot.
#[derive(Clone, Copy)]
pub(super) struct Slot(u32);

/// The tokens that a piece becomes without merging.
pub(super) struct Seed {
    slots: Vec<u32>,
    keys: Vec<u128>,
    /// The number of bits of a slot that hold an id and one.
    id_bits: u32,
}

impl Seed {
    /// O(bytes of the vocabulary).
    pub(super) fn new(whole: &WholePieces, secret: Secret) -> Self {
        let vocabulary = whole.vocabulary();
        let largest = vocabulary.max_id().unwrap_or(0);
        let mut seed = Self {
            // At most half full.
            slots: vec![0; (2 * vocabulary.len() + 2).next_power_of_two()],
            keys: vec![0; largest as usize + 1],
            id_bits: u32::BITS - (largest + 1).leading_zeros(),
        };
        prefer_large_pages(&seed.slots);
        prefer_large_pages(&seed.keys);
        // Some at a time, so that what they wait for comes together.
        let mut hashes = Vec::with_capacity(AT_ONCE);
        for (id, token) in vocabulary.iter() {
            if whole.is_found(id, token) {
                let hash = seed.hash(id, token, secret);
                seed.prefetch_slot(hash);
                hashes.push((id, hash));
            }
            if hashes.len() == AT_ONCE {
                hashes
                    .drain(..)
                    .for_each(|(id, hash)| seed.insert(id, hash));
            }
        }
        hashes
            .into_iter()
            .for_each(|(id, hash)| seed.insert(id, hash));
        seed
    }

    /// The hash of a token, whose key is written to its place.
    fn hash(&mut self, id: TokenId, token: &[u8], secret: Secret) -> u64 {
        if token.len() > SHORT {
            return LongKey::of(token, 0, token.len()).hash(secret);
        }
        let key = short_key(token, 0, token.len());
        if let Some(place) = self.keys.get_mut(id as usize) {
            *place = key;
        }
        secret.hash(key)
    }

    fn insert(&mut self, id: TokenId, hash: u64) {
        let mask = self.slots.len() - 1;
        let mut slot = hash as usize & mask;
        // At least half of the slots stay free.
        while self.slots[slot & mask] != 0 {
            slot += 1;
        }
        self.slots[slot & mask] = self.tag(hash) | (id + 1);
    }

    /// The bits of a hash that a slot holds, in their places.
    #[inline(always)]
    fn tag(&self, hash: u64) -> u32 {
        // The lowest bits chose the slot, the highest choose a line of the cache.
        ((hash >> 24) as u32).checked_shl(self.id_bits).unwrap_or(0)
    }

    /// Asks for the first slot of a hash.
    #[inline(always)]
    pub(super) fn prefetch_slot(&self, hash: u64) {
        prefetch(&self.slots, hash as usize & (self.slots.len() - 1));
    }

    /// The first slot that may hold the token with this hash, and asks for that token's key.
    #[inline(always)]
    pub(super) fn first(&self, hash: u64) -> Option<(Slot, TokenId)> {
        let found = self.next(hash, hash as usize)?;
        prefetch(&self.keys, found.1 as usize);
        Some(found)
    }

    #[inline(always)]
    fn next(&self, hash: u64, from: usize) -> Option<(Slot, TokenId)> {
        let mask = self.slots.len() - 1;
        let ids = 1_u32.checked_shl(self.id_bits).unwrap_or(0).wrapping_sub(1);
        let tag = self.tag(hash);
        let mut slot = from & mask;
        loop {
            let held = self.slots[slot & mask];
            if held == 0 {
                return None;
            }
            if held & !ids == tag {
                return Some((Slot(slot as u32), (held & ids) - 1));
            }
            slot = (slot + 1) & mask;
        }
    }

    /// The token of a short key, if it is `found` or comes after it.
    #[inline(always)]
    pub(super) fn short(
        &self,
        mut found: Option<(Slot, TokenId)>,
        hash: u64,
        key: u128,
    ) -> Option<TokenId> {
        while let Some((slot, id)) = found {
            if self.keys.get(id as usize) == Some(&key) {
                return Some(id);
            }
            found = self.next(hash, slot.0 as usize + 1);
        }
        None
    }

    /// As [`Seed::short`], for a longer piece.
    pub(super) fn long(
        &self,
        vocabulary: &Vocabulary,
        mut found: Option<(Slot, TokenId)>,
        hash: u64,
        piece: &[u8],
    ) -> Option<TokenId> {
        while let Some((slot, id)) = found {
            if vocabulary.token_bytes(id) == Some(piece) {
                return Some(id);
            }
            found = self.next(hash, slot.0 as usize + 1);
        }
        None
    }
}

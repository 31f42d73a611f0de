//! Building a vocabulary, and its index by bytes.

use alloc::vec::Vec;
use core::hash::BuildHasher;

use hashbrown::HashTable;

use super::{HOLE, Kind, Positions, RandomState, TokenId, Vocabulary, VocabularyError};

/// Builds a vocabulary token by token, ids ascending.
pub(crate) struct VocabularyBuilder {
    pub(super) vocabulary: Vocabulary,
}

impl VocabularyBuilder {
    pub(crate) fn with_capacity(tokens: usize, bytes: usize) -> Self {
        Self {
            vocabulary: Vocabulary {
                arena: Vec::with_capacity(bytes),
                ends: Vec::with_capacity(tokens),
                ids: Vec::with_capacity(tokens),
                positions: Positions::Search,
                by_bytes: HashTable::with_capacity(tokens),
                hasher: RandomState::default(),
                byte_fallback: Vec::new(),
                longest: 0,
            },
        }
    }

    /// Number of tokens so far.
    pub(crate) fn len(&self) -> usize {
        self.vocabulary.len()
    }

    /// Adds the token `id` with the bytes of the tokens at two earlier positions; returns how many
    /// these are.
    pub(crate) fn push_joined(
        &mut self,
        id: TokenId,
        left: usize,
        right: usize,
    ) -> Result<usize, VocabularyError> {
        let vocabulary = &mut self.vocabulary;
        let before = vocabulary.arena.len();
        for position in [left, right] {
            let start = match position {
                0 => 0,
                _ => vocabulary.ends[position - 1] as usize,
            };
            let end = vocabulary.ends[position] as usize;
            vocabulary.arena.extend_from_within(start..end);
        }
        let length = vocabulary.arena.len() - before;
        self.finish_token(id)?;
        Ok(length)
    }

    /// Adds the token `id` with `bytes`.
    pub(crate) fn push(&mut self, id: TokenId, bytes: &[u8]) -> Result<(), VocabularyError> {
        if bytes.is_empty() {
            return Err(VocabularyError(Kind::EmptyToken { id }));
        }
        self.vocabulary.arena.extend_from_slice(bytes);
        self.finish_token(id)
    }

    /// Makes a token of what was appended to the arena since the last one.
    fn finish_token(&mut self, id: TokenId) -> Result<(), VocabularyError> {
        let Vocabulary {
            arena,
            ends,
            ids,
            longest,
            ..
        } = &mut self.vocabulary;
        let start = ends.last().map_or(0, |&end| end as usize);
        let end = u32::try_from(arena.len()).map_err(|_| VocabularyError(Kind::TooLarge { id }))?;
        ends.push(end);
        ids.push(id);
        *longest = (*longest).max(end as usize - start);
        Ok(())
    }

    /// Fills in what follows from the tokens.
    ///
    /// # Errors
    ///
    /// The first token that has the bytes of one before it.
    pub(crate) fn finish(self) -> Result<Vocabulary, VocabularyError> {
        let mut vocabulary = self.vocabulary;
        let table_len = vocabulary.max_id().map_or(0, |id| u64::from(id) + 1);
        if table_len <= 4 * vocabulary.len() as u64 + (1 << 16) {
            let table_len = table_len as usize;
            let mut table = alloc::vec![HOLE; table_len];
            for (position, &id) in vocabulary.ids.iter().enumerate() {
                table[id as usize] = position as u32;
            }
            vocabulary.positions = Positions::Table(table);
        }
        vocabulary.index_bytes()?;
        Ok(vocabulary)
    }
}

impl Vocabulary {
    /// Fills `by_bytes` part by part of the table, each of which fits a first-level cache: in the order
    /// of the ids nearly every insertion would wait for memory, and so would much of a load.
    fn index_bytes(&mut self) -> Result<(), VocabularyError> {
        const PARTS_LOG: u32 = 8;
        // A table finds a place by the lowest bits of the hash.
        let places_log = self.by_bytes.capacity().max(1).ilog2() + 1;
        let shift = places_log.saturating_sub(PARTS_LOG);
        let part = |hash: u64| (hash >> shift) as usize % (1 << PARTS_LOG);
        let hashes: Vec<u64> = (0..self.len())
            .map(|position| self.hasher.hash_one(self.bytes_at(position)))
            .collect();
        // A counting sort: it keeps the order of tokens that share a part.
        let mut ends = [0_usize; 1 << PARTS_LOG];
        for &hash in &hashes {
            ends[part(hash)] += 1;
        }
        let mut start = 0;
        for end in &mut ends {
            start += core::mem::replace(end, start);
        }
        let mut sorted = alloc::vec![0_u32; self.len()];
        for (position, &hash) in hashes.iter().enumerate() {
            let next = &mut ends[part(hash)];
            sorted[*next] = position as u32;
            *next += 1;
        }
        let mut by_bytes = core::mem::take(&mut self.by_bytes);
        let mut duplicate: Option<(u32, u32)> = None;
        let is_fallback = |position: usize| match self.bytes_at(position) {
            &[byte] => self.byte_fallback(byte) == Some(self.ids[position]),
            _ => false,
        };
        for position in sorted {
            // What can be done without the bytes is done without waiting for them.
            if !self.byte_fallback.is_empty() && is_fallback(position as usize) {
                continue;
            }
            let entry = by_bytes.entry(
                hashes[position as usize],
                |&other| self.bytes_at(other as usize) == self.bytes_at(position as usize),
                |&other| hashes[other as usize],
            );
            match entry {
                hashbrown::hash_table::Entry::Occupied(first) => {
                    let found = (position, *first.get());
                    duplicate = Some(duplicate.map_or(found, |other| other.min(found)));
                }
                hashbrown::hash_table::Entry::Vacant(place) => {
                    place.insert(position);
                }
            }
        }
        self.by_bytes = by_bytes;
        match duplicate {
            Some((position, first)) => Err(VocabularyError(Kind::DuplicateToken {
                first: self.ids[first as usize],
                id: self.ids[position as usize],
            })),
            None => Ok(()),
        }
    }
}

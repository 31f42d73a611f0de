//! The tokens of a training under way, and how words become symbols.

use core::cmp::Ordering;
use std::collections::{HashMap, HashSet};
use std::hash::BuildHasher;

use bpe_core::byte_level;
use foldhash::fast::RandomState;
use hashbrown::HashTable;

use crate::counts::WordCounts;
use crate::options::{Alphabet, Ties};

/// Stands between words, and for what the alphabet does not have.
pub(crate) const BREAK: u32 = u32::MAX;

/// The tokens so far, by symbol: first the alphabet, in the order that decides ties, then one for each
/// merge.
#[derive(Clone)]
pub(crate) struct Tokens {
    arena: Vec<u8>,
    ends: Vec<usize>,
    by_bytes: HashTable<u32>,
    hasher: RandomState,
    ties: Ties,
    atoms: Atoms,
}

/// From what a word consists of to symbols.
#[derive(Clone)]
enum Atoms {
    Bytes(Box<[u32; 256]>),
    Characters(HashMap<char, u32, RandomState>),
}

impl Tokens {
    /// The alphabet alone. Of characters, those of `always` are in it whether they occur or not.
    pub(crate) fn new<'a>(
        alphabet: Alphabet,
        ties: Ties,
        counts: &WordCounts,
        always: impl Iterator<Item = &'a [u8]>,
    ) -> Self {
        let mut tokens = Self {
            arena: Vec::new(),
            ends: Vec::new(),
            by_bytes: HashTable::new(),
            hasher: RandomState::default(),
            ties,
            atoms: Atoms::Characters(HashMap::default()),
        };
        match alphabet {
            Alphabet::Bytes => {
                let mut bytes: Vec<u8> = (0..=255).collect();
                if ties == Ties::HuggingFace {
                    bytes.sort_by_key(|&byte| byte_level::to_char(byte));
                }
                let mut symbols = Box::new([0; 256]);
                for byte in bytes {
                    symbols[usize::from(byte)] = tokens.len() as u32;
                    tokens.arena.push(byte);
                    tokens.finish();
                }
                tokens.atoms = Atoms::Bytes(symbols);
            }
            Alphabet::Characters { coverage } => {
                let mut symbols = HashMap::default();
                for character in covered(counts, coverage, always) {
                    symbols.insert(character, tokens.len() as u32);
                    let mut utf8 = [0; 4];
                    let utf8 = character.encode_utf8(&mut utf8);
                    tokens.arena.extend_from_slice(utf8.as_bytes());
                    tokens.finish();
                }
                tokens.atoms = Atoms::Characters(symbols);
            }
        }
        tokens
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Number of symbols that were there before the first merge.
    pub(crate) fn alphabet_len(&self) -> usize {
        match &self.atoms {
            Atoms::Bytes(_) => 256,
            Atoms::Characters(symbols) => symbols.len(),
        }
    }

    pub(crate) fn has_bytes(&self) -> bool {
        matches!(self.atoms, Atoms::Bytes(_))
    }

    #[inline]
    pub(crate) fn bytes(&self, symbol: u32) -> &[u8] {
        let symbol = symbol as usize;
        let start = match symbol {
            0 => 0,
            _ => self.ends[symbol - 1],
        };
        &self.arena[start..self.ends[symbol]]
    }

    /// Appends the symbols of a word to `output`, and [`BREAK`] for each part that is none.
    #[inline]
    pub(crate) fn push_atoms(&self, word: &[u8], output: &mut Vec<u32>) {
        match &self.atoms {
            Atoms::Bytes(symbols) => {
                output.extend(word.iter().map(|&byte| symbols[usize::from(byte)]));
            }
            Atoms::Characters(symbols) => {
                for chunk in word.utf8_chunks() {
                    let symbol = |character| symbols.get(&character).copied().unwrap_or(BREAK);
                    output.extend(chunk.valid().chars().map(symbol));
                    if !chunk.invalid().is_empty() {
                        output.push(BREAK);
                    }
                }
            }
        }
    }

    pub(crate) fn symbol_of(&self, bytes: &[u8]) -> Option<u32> {
        let hash = self.hasher.hash_one(bytes);
        let same = |&symbol: &u32| self.bytes(symbol) == bytes;
        self.by_bytes.find(hash, same).copied()
    }

    /// Adds the token of a pair; false where it is there already.
    pub(crate) fn join(&mut self, left: u32, right: u32) -> bool {
        let start = self.arena.len();
        for symbol in [left, right] {
            let end = self.ends[symbol as usize];
            let length = self.bytes(symbol).len();
            self.arena.extend_from_within(end - length..end);
        }
        if self.symbol_of(&self.arena[start..]).is_some() {
            self.arena.truncate(start);
            return false;
        }
        self.finish();
        true
    }

    /// Makes a token of what was appended to the arena since the last one.
    fn finish(&mut self) {
        let symbol = self.ends.len() as u32;
        self.ends.push(self.arena.len());
        let hash = self.hasher.hash_one(self.bytes(symbol));
        let (ends, arena, hasher) = (&self.ends, &self.arena, &self.hasher);
        self.by_bytes.insert_unique(hash, symbol, |&symbol| {
            let end = ends[symbol as usize];
            let start = (symbol as usize)
                .checked_sub(1)
                .map_or(0, |before| ends[before]);
            hasher.hash_one(&arena[start..end])
        });
    }

    /// Which of two pairs of the same count comes first: `Less` where `one` does.
    #[inline]
    pub(crate) fn compare(&self, one: (u32, u32), other: (u32, u32)) -> Ordering {
        match self.ties {
            Ties::HuggingFace => one.cmp(&other),
            Ties::Lexicographic => self
                .bytes(one.0)
                .cmp(self.bytes(other.0))
                .then_with(|| self.bytes(one.1).cmp(self.bytes(other.1))),
        }
    }
}

/// The characters of the alphabet, in ascending order: as many of the most frequent ones as make up
/// that share of all, of two that are equally frequent the smaller one first; and those of `always`.
fn covered<'a>(
    counts: &WordCounts,
    coverage: f64,
    always: impl Iterator<Item = &'a [u8]>,
) -> Vec<char> {
    let mut frequencies = HashMap::<char, u64, RandomState>::default();
    for (word, count) in counts.iter() {
        for character in word.utf8_chunks().flat_map(|chunk| chunk.valid().chars()) {
            *frequencies.entry(character).or_default() += count;
        }
    }
    let total: u64 = frequencies.values().sum();
    let mut ordered: Vec<(char, u64)> = frequencies.into_iter().collect();
    ordered.sort_unstable_by_key(|&(character, count)| (u64::MAX - count, character));
    let mut sum = 0;
    let kept = ordered.iter().take_while(|&&(_, count)| {
        let is_short = coverage >= 1.0 || (sum as f64) < coverage * total as f64;
        sum += count;
        is_short
    });
    let mut characters: HashSet<char> = kept.map(|&(character, _)| character).collect();
    characters
        .extend(always.flat_map(|text| text.utf8_chunks().flat_map(|chunk| chunk.valid().chars())));
    let mut characters: Vec<char> = characters.into_iter().collect();
    characters.sort_unstable();
    characters
}

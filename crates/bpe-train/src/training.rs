//! From options to a result: what all algorithms share.

use core::cmp::Ordering;
use core::fmt;
use std::hash::BuildHasher;

use bpe_core::{Dictionary, DictionaryError, Vocabulary, VocabularyError, byte_level};
use foldhash::fast::RandomState;
use hashbrown::HashTable;

use crate::counts::WordCounts;
use crate::options::{Algorithm, Ties, TrainOptions};
use crate::{fast, indexed};

/// Learns merges from `counts`.
///
/// Cost: see [`Algorithm`]. Memory of the default: some 40 bytes for each byte of the distinct words.
///
/// # Errors
///
/// A vocabulary smaller than its 256 bytes and the merges to begin with; counts whose sum over all
/// bytes is beyond 2^64 - 1; or one of the merges to begin with whose side is no token, or whose
/// product is one already.
pub fn train(counts: &WordCounts, options: &TrainOptions) -> Result<Training, TrainError> {
    let total = counts.iter().try_fold(0_u64, |total, (word, count)| {
        total.checked_add(count.checked_mul(word.len() as u64)?)
    });
    if total.is_none() {
        return Err(TrainError(TrainKind::CountsTooLarge));
    }
    let mut tokens = Tokens::new(options.ties);
    let mut first_merges = Vec::new();
    for (index, (left, right)) in options.first_merges.iter().enumerate() {
        let sides = [left, right].map(|side| tokens.symbol_of(side));
        let [Some(left), Some(right)] = sides else {
            return Err(TrainError(TrainKind::UnknownSide { index }));
        };
        if !tokens.join(left, right) {
            return Err(TrainError(TrainKind::DuplicateToken { index }));
        }
        first_merges.push((left, right));
    }
    if tokens.len() > options.vocabulary_size {
        return Err(TrainError(TrainKind::TooSmall {
            least: tokens.len(),
        }));
    }
    let mut run = Run {
        tokens: Tokens::new(options.ties),
        frequencies: Vec::new(),
        merges: Vec::new(),
        options,
        first_merges,
    };
    let stopped = match options.algorithm {
        Algorithm::Positions => fast::run(counts, &mut run),
        _ => indexed::run(counts, &mut run),
    };
    Ok(Training {
        tokens: run.tokens,
        merges: run.merges,
        frequencies: run.frequencies,
        stopped,
    })
}

/// A training under way: what an algorithm reads and writes.
pub(crate) struct Run<'a> {
    pub(crate) tokens: Tokens,
    merges: Vec<(u32, u32)>,
    frequencies: Vec<u64>,
    pub(crate) options: &'a TrainOptions,
    first_merges: Vec<(u32, u32)>,
}

impl Run<'_> {
    /// The pair that is merged next whatever its count is.
    pub(crate) fn forced(&self) -> Option<(u32, u32)> {
        self.first_merges.get(self.merges.len()).copied()
    }

    /// Whether such pairs are left, so that rare ones must be known too.
    pub(crate) fn has_forced(&self) -> bool {
        self.merges.len() < self.first_merges.len()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.tokens.len() >= self.options.vocabulary_size
    }

    /// Whether the pair may become a token at all.
    pub(crate) fn is_allowed(&self, left: u32, right: u32) -> bool {
        self.tokens.bytes(left).len() + self.tokens.bytes(right).len() <= self.options.longest_token
    }

    /// Makes the token of a pair, and returns its symbol; `None` where it is a token already, which
    /// happens only after foreign merges to begin with.
    pub(crate) fn learn(&mut self, left: u32, right: u32, frequency: u64) -> Option<u32> {
        if !self.tokens.join(left, right) {
            return None;
        }
        self.merges.push((left, right));
        self.frequencies.push(frequency);
        Some(self.tokens.len() as u32 - 1)
    }
}

/// The tokens so far, by symbol: first the 256 bytes, in the order that decides ties, then one for
/// each merge.
pub(crate) struct Tokens {
    arena: Vec<u8>,
    ends: Vec<usize>,
    by_bytes: HashTable<u32>,
    hasher: RandomState,
    ties: Ties,
}

impl Tokens {
    fn new(ties: Ties) -> Self {
        let mut bytes: Vec<u8> = (0..=255).collect();
        if ties == Ties::HuggingFace {
            bytes.sort_by_key(|&byte| byte_level::to_char(byte));
        }
        let mut tokens = Self {
            arena: Vec::new(),
            ends: Vec::new(),
            by_bytes: HashTable::new(),
            hasher: RandomState::default(),
            ties,
        };
        for byte in bytes {
            tokens.arena.push(byte);
            tokens.finish();
        }
        tokens
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
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

    /// The symbol of each byte.
    pub(crate) fn of_bytes(&self) -> [u32; 256] {
        let mut symbols = [0; 256];
        for symbol in 0..256_u32 {
            symbols[usize::from(self.bytes(symbol)[0])] = symbol;
        }
        symbols
    }

    fn symbol_of(&self, bytes: &[u8]) -> Option<u32> {
        let hash = self.hasher.hash_one(bytes);
        let same = |&symbol: &u32| self.bytes(symbol) == bytes;
        self.by_bytes.find(hash, same).copied()
    }

    /// Adds the token of a pair; false where it is there already.
    fn join(&mut self, left: u32, right: u32) -> bool {
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

/// What was learned.
pub struct Training {
    tokens: Tokens,
    merges: Vec<(u32, u32)>,
    frequencies: Vec<u64>,
    stopped: StopReason,
}

/// One step of a training.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LearnedMerge<'a> {
    /// Bytes of the left token.
    pub left: &'a [u8],
    /// Bytes of the right token.
    pub right: &'a [u8],
    /// Bytes of the token that they make.
    pub token: &'a [u8],
    /// At how many places the pair stood, weighted by the counts of the words.
    pub frequency: u64,
}

/// Why a training ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    /// The vocabulary has the size asked for.
    VocabularySize,
    /// No pair that may become a token occurs as often as the minimum.
    NoFrequentPair,
}

impl Training {
    /// The merges, in the order in which they were learned.
    pub fn merges(
        &self,
    ) -> impl DoubleEndedIterator<Item = LearnedMerge<'_>> + ExactSizeIterator<Item = LearnedMerge<'_>>
    {
        let learned = self.merges.iter().zip(&self.frequencies).enumerate();
        learned.map(|(index, (&(left, right), &frequency))| LearnedMerge {
            left: self.tokens.bytes(left),
            right: self.tokens.bytes(right),
            token: self.tokens.bytes(256 + index as u32),
            frequency,
        })
    }

    /// Why it ended.
    pub fn stopped(&self) -> StopReason {
        self.stopped
    }

    /// The dictionary: ids count up from `first_id`, the 256 bytes first, in the order of [`Ties`],
    /// then the merges as they were learned. It is proper, and every token is canonical.
    ///
    /// # Errors
    ///
    /// Ids or rules beyond 32 bits.
    pub fn dictionary(&self, first_id: u32) -> Result<Dictionary, TrainError> {
        let last = first_id.checked_add(self.tokens.len() as u32);
        if last.is_none() {
            return Err(TrainError(TrainKind::TooManyIds));
        }
        let tokens = (0..self.tokens.len() as u32)
            .map(|symbol| (first_id + symbol, self.tokens.bytes(symbol)));
        let vocabulary = Vocabulary::new(tokens)?;
        let merges = self.merges.iter();
        let merges = merges.map(|&(left, right)| (first_id + left, first_id + right));
        Ok(Dictionary::from_merges(vocabulary, merges)?)
    }
}

impl fmt::Debug for Training {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Training")
            .field("merges", &self.merges.len())
            .field("stopped", &self.stopped)
            .finish_non_exhaustive()
    }
}

/// Why there was nothing to train, or no dictionary of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrainError(TrainKind);

#[derive(Debug, Clone, PartialEq, Eq)]
enum TrainKind {
    TooSmall { least: usize },
    CountsTooLarge,
    UnknownSide { index: usize },
    DuplicateToken { index: usize },
    TooManyIds,
    Vocabulary(VocabularyError),
    Dictionary(DictionaryError),
}

impl From<VocabularyError> for TrainError {
    fn from(error: VocabularyError) -> Self {
        Self(TrainKind::Vocabulary(error))
    }
}

impl From<DictionaryError> for TrainError {
    fn from(error: DictionaryError) -> Self {
        Self(TrainKind::Dictionary(error))
    }
}

impl TrainError {
    /// Index of the merge to begin with that is at fault, where one is.
    pub fn first_merge_index(&self) -> Option<usize> {
        match self.0 {
            TrainKind::UnknownSide { index } | TrainKind::DuplicateToken { index } => Some(index),
            _ => None,
        }
    }
}

impl fmt::Display for TrainError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            TrainKind::TooSmall { least } => write!(
                f,
                "a vocabulary of bytes, with the merges to begin with, has at least {least} tokens"
            ),
            TrainKind::CountsTooLarge => {
                f.write_str("the counts, each times the bytes of its word, add up to over 2^64 - 1")
            }
            TrainKind::UnknownSide { index } => {
                write!(f, "first merge {index}: a side is no token before it")
            }
            TrainKind::DuplicateToken { index } => {
                write!(
                    f,
                    "first merge {index}: an earlier one makes the same token"
                )
            }
            TrainKind::TooManyIds => f.write_str("ids over 32 bits"),
            TrainKind::Vocabulary(error) => error.fmt(f),
            TrainKind::Dictionary(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for TrainError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.0 {
            TrainKind::Vocabulary(error) => Some(error),
            TrainKind::Dictionary(error) => Some(error),
            _ => None,
        }
    }
}

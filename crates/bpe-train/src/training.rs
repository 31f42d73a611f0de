//! From options to a result: what all algorithms share.

use core::fmt;
use std::ops::ControlFlow;

use bpe_core::{Atoms, Dictionary, TokenId, Vocabulary};

use crate::counts::WordCounts;
use crate::error::{TrainError, TrainKind};
use crate::options::{Algorithm, TrainOptions};
use crate::seeds::FirstMerges;
use crate::tokens::Tokens;
use crate::{fast, indexed};

/// Learns merges from `counts`.
///
/// Cost: see [`Algorithm`]. Memory of the default: some 50 bytes for each byte of the distinct words.
///
/// # Errors
///
/// A vocabulary smaller than its alphabet and the merges to begin with; counts whose sum over all
/// bytes is beyond 2^64 - 1; more memory than [`TrainOptions::memory_limit`]; one of the merges to begin
/// with whose side is no token, or whose product is one already; or a seed token that is empty, or that
/// can be no token.
pub fn train(counts: &WordCounts, options: &TrainOptions) -> Result<Training, TrainError> {
    train_with(counts, options, |_| ControlFlow::Continue(()))
}

/// As [`train`], and calls `observe` after each merge with what has been learned so far: to show how
/// far it is, to save it, or to end it with a `Break`.
///
/// A training that was ended, or whose process was, is gone on with by [`TrainOptions::first_merges`],
/// and learns then what it would have learned.
///
/// # Errors
///
/// As [`train`].
///
/// ```
/// use std::ops::ControlFlow;
/// use bpe_train::{StopReason, TrainOptions, WordCounts, train, train_with};
///
/// let mut counts = WordCounts::new();
/// counts.add(b"abcdefgh", 1)?;
/// let options = TrainOptions::new(300);
/// let part = train_with(&counts, &options, |so_far| match so_far.merges().len() {
///     3 => ControlFlow::Break(()),
///     _ => ControlFlow::Continue(()),
/// })?;
/// assert_eq!(part.stopped(), StopReason::Ended);
/// let first = part.merges().map(|merge| (merge.left, merge.right));
/// let whole = train(&counts, &options.clone().first_merges(first))?;
/// assert!(whole.merges().eq(train(&counts, &options)?.merges()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn train_with(
    counts: &WordCounts,
    options: &TrainOptions,
    mut observe: impl FnMut(&Training) -> ControlFlow<()>,
) -> Result<Training, TrainError> {
    let total = counts.iter().try_fold(0_u64, |total, (word, count)| {
        total.checked_add(count.checked_mul(word.len() as u64)?)
    });
    if total.is_none() {
        return Err(TrainError(TrainKind::CountsTooLarge));
    }
    let symbols = counts.distinct_bytes().saturating_add(counts.len());
    let needed = symbols.saturating_mul(BYTES_A_SYMBOL);
    let limit = options.memory_limit;
    if needed > limit {
        return Err(TrainError(TrainKind::MemoryLimit { needed, limit }));
    }
    let sides = options
        .first_merges
        .iter()
        .flat_map(|(left, right)| [left, right]);
    let always = sides.chain(&options.seed_tokens).map(Vec::as_slice);
    let alphabet = Tokens::new(options.alphabet, options.ties, counts, always);
    let mut tokens = alphabet.clone();
    let first_merges = first_merges(options, &mut tokens)?;
    let others = match alphabet.has_bytes() {
        true => 0,
        false => BYTE_FALLBACK,
    };
    let least = tokens.len() + others;
    let Some(free) = options.vocabulary_size.checked_sub(least) else {
        return Err(TrainError(TrainKind::TooSmall { least }));
    };
    let mut run = Run {
        wanted: tokens.len() + free,
        training: Training {
            tokens: alphabet,
            merges: Vec::new(),
            frequencies: Vec::new(),
            stopped: StopReason::Ended,
        },
        options,
        first_merges,
        observe: &mut observe,
        is_ended: false,
    };
    let stopped = match options.algorithm {
        Algorithm::Positions => fast::run(counts, &mut run),
        _ => indexed::run(counts, &mut run),
    };
    run.training.stopped = stopped;
    Ok(run.training)
}

/// What the default algorithm takes for each byte of distinct words and each word, measured on natural
/// text: 40 and something.
const BYTES_A_SYMBOL: usize = 50;

/// Tokens for single bytes, beside the characters of an alphabet.
const BYTE_FALLBACK: usize = 256;

/// The merges to begin with, as symbols; `tokens` gets the tokens that they make.
fn first_merges(
    options: &TrainOptions,
    tokens: &mut Tokens,
) -> Result<Vec<(u32, u32)>, TrainError> {
    let mut first = FirstMerges::new(tokens);
    for (index, (left, right)) in options.first_merges.iter().enumerate() {
        let sides = [left, right].map(|side| first.symbol_of(side));
        let [Some(left), Some(right)] = sides else {
            return Err(TrainError(TrainKind::UnknownSide { index }));
        };
        if !first.add(left, right) {
            return Err(TrainError(TrainKind::DuplicateToken { index }));
        }
    }
    for (index, seed) in options.seed_tokens.iter().enumerate() {
        if !first.add_seed(seed) {
            return Err(TrainError(TrainKind::SeedToken { index }));
        }
    }
    Ok(first.into_pairs())
}

/// A training under way: what an algorithm reads and writes.
pub(crate) struct Run<'a> {
    training: Training,
    pub(crate) options: &'a TrainOptions,
    first_merges: Vec<(u32, u32)>,
    /// Number of symbols at the end.
    wanted: usize,
    observe: &'a mut dyn FnMut(&Training) -> ControlFlow<()>,
    is_ended: bool,
}

impl Run<'_> {
    pub(crate) fn tokens(&self) -> &Tokens {
        &self.training.tokens
    }

    /// The pair that is merged next whatever its count is.
    pub(crate) fn forced(&self) -> Option<(u32, u32)> {
        self.first_merges.get(self.training.merges.len()).copied()
    }

    /// Whether such pairs are left, so that rare ones must be known too.
    pub(crate) fn has_forced(&self) -> bool {
        self.training.merges.len() < self.first_merges.len()
    }

    /// Why no further merge is learned, where none is.
    pub(crate) fn end(&self) -> Option<StopReason> {
        if self.tokens().len() >= self.wanted {
            return Some(StopReason::VocabularySize);
        }
        self.is_ended.then_some(StopReason::Ended)
    }

    /// Whether the pair may become a token at all.
    pub(crate) fn is_allowed(&self, left: u32, right: u32) -> bool {
        let length = self.tokens().bytes(left).len() + self.tokens().bytes(right).len();
        length <= self.options.longest_token
    }

    /// Makes the token of a pair, and returns its symbol; `None` where it is a token already, which
    /// happens only after foreign merges to begin with.
    pub(crate) fn learn(&mut self, left: u32, right: u32, frequency: u64) -> Option<u32> {
        if !self.training.tokens.join(left, right) {
            return None;
        }
        self.training.merges.push((left, right));
        self.training.frequencies.push(frequency);
        self.is_ended = (self.observe)(&self.training).is_break();
        Some(self.tokens().len() as u32 - 1)
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
    /// The function that [`train_with`] was given has ended it.
    Ended,
}

impl Training {
    /// The merges, in the order in which they were learned.
    pub fn merges(
        &self,
    ) -> impl DoubleEndedIterator<Item = LearnedMerge<'_>> + ExactSizeIterator<Item = LearnedMerge<'_>>
    {
        let first = self.tokens.alphabet_len() as u32;
        let learned = self.merges.iter().zip(&self.frequencies).enumerate();
        learned.map(move |(index, (&(left, right), &frequency))| LearnedMerge {
            left: self.tokens.bytes(left),
            right: self.tokens.bytes(right),
            token: self.tokens.bytes(first + index as u32),
            frequency,
        })
    }

    /// Why it ended.
    pub fn stopped(&self) -> StopReason {
        self.stopped
    }

    /// Number of tokens of [`Training::dictionary`].
    pub fn vocabulary_size(&self) -> usize {
        match self.tokens.has_bytes() {
            true => self.tokens.len(),
            false => self.tokens.len() + BYTE_FALLBACK,
        }
    }

    /// The dictionary: ids count up from `first_id`, the alphabet first, in the order of
    /// [`Ties`](crate::Ties), then the merges as they were learned; before an alphabet of characters
    /// 256 fallback tokens, in the order of their bytes. Where no merge was given to begin with, it is
    /// proper and every token is canonical.
    ///
    /// # Errors
    ///
    /// Ids or rules beyond 32 bits.
    ///
    /// ```
    /// use bpe_train::{Alphabet, TrainOptions, WordCounts, train};
    ///
    /// let mut counts = WordCounts::new();
    /// counts.add("ééü".as_bytes(), 3)?;
    /// let options = TrainOptions::new(256 + 4).alphabet(Alphabet::Characters { coverage: 1.0 });
    /// let dictionary = train(&counts, &options)?.dictionary(10)?;
    /// let ids = ["é", "ü", "éé", "ééü"].map(|token| dictionary.vocabulary().id_of(token.as_bytes()));
    /// assert_eq!(ids, [266, 267, 268, 269].map(Some));
    /// assert_eq!(dictionary.vocabulary().byte_fallback(b'a'), Some(10 + 97));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn dictionary(&self, first_id: TokenId) -> Result<Dictionary, TrainError> {
        let size = TokenId::try_from(self.vocabulary_size()).ok();
        if size.and_then(|size| first_id.checked_add(size)).is_none() {
            return Err(TrainError(TrainKind::TooManyIds));
        }
        let has_bytes = self.tokens.has_bytes();
        let fallback = match has_bytes {
            true => 0..0,
            false => 0..BYTE_FALLBACK as TokenId,
        };
        let first = first_id + fallback.end;
        let tokens =
            (0..self.tokens.len() as u32).map(|symbol| (first + symbol, self.tokens.bytes(symbol)));
        let fallback = fallback.map(|byte| (first_id + byte, byte as u8));
        let vocabulary = Vocabulary::with_byte_fallback(tokens, fallback)?;
        let merges = self.merges.iter();
        let merges = merges.map(|&(left, right)| (first + left, first + right));
        let dictionary = Dictionary::from_merges(vocabulary, merges)?;
        match has_bytes {
            true => Ok(dictionary),
            false => Ok(dictionary.with_atoms(Atoms::Characters {
                unknown: None,
                fuse_unknown: false,
            })?),
        }
    }

    /// `dictionary`, whose merges were the [`TrainOptions::first_merges`] of this training, with what
    /// was learned after them: its ids stay, new tokens have ids from `first_id` on.
    ///
    /// # Errors
    ///
    /// A `dictionary` that is not over bytes or lacks a token of a merge; an id that is taken; ids or
    /// rules beyond 32 bits.
    pub fn extended(
        &self,
        dictionary: &Dictionary,
        first_id: TokenId,
    ) -> Result<Dictionary, TrainError> {
        if dictionary.atoms() != Atoms::Bytes || !self.tokens.has_bytes() {
            return Err(TrainError(TrainKind::OtherAlphabet));
        }
        let old = dictionary.vocabulary();
        let mut tokens: Vec<(TokenId, &[u8])> = old.iter().collect();
        let mut ids = Vec::with_capacity(self.tokens.len());
        let mut next = Some(first_id);
        for symbol in 0..self.tokens.len() as u32 {
            let bytes = self.tokens.bytes(symbol);
            let id = match old.id_of(bytes) {
                Some(id) => id,
                None => {
                    let id = next.ok_or(TrainError(TrainKind::TooManyIds))?;
                    next = id.checked_add(1);
                    tokens.push((id, bytes));
                    id
                }
            };
            ids.push(id);
        }
        let vocabulary = Vocabulary::new(tokens)?;
        let merges = self.merges.iter();
        let merges = merges.map(|&(left, right)| (ids[left as usize], ids[right as usize]));
        let extended = Dictionary::from_merges(vocabulary, merges)?;
        Ok(extended.with_whole_piece_lookup(dictionary.whole_piece_lookup()))
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

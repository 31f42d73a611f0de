//! Is a stream of tokens what the tokenizer makes?

use std::collections::VecDeque;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use bpe_core::encoder::PriorityMerge;
use bpe_core::{BytePairs, CanonicalForm, DecodeError, EncodeError, SpanEncoder, TokenId};

use crate::error::RelationError;
use crate::pairs::PairRelation;
use crate::pending::{PendingText, Tables};

/// Tokens that may be kept before some are given up as certain.
const KEPT: usize = 1 << 10;

/// Where a sequence of tokens stops being what the tokenizer makes, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatch {
    /// How many tokens the sequence has in common with the tokenization of its text: the index of the
    /// first token that differs.
    pub index: usize,
    /// The token that the tokenizer has there; `None` where the id at that index is that of no token, or
    /// the text has no tokenization.
    pub expected: Option<TokenId>,
    /// What gave it away.
    pub reason: Reason,
}

/// What gives away that a sequence of tokens is no tokenization. What follows can make the tokenizer
/// differ earlier, so the place may stand behind [`Mismatch::index`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// No token has the id at this index. What stands before is judged as if the text ended there.
    UnknownId {
        /// Index of the id.
        index: usize,
    },
    /// The token at this index is not what its own bytes are tokenized to.
    NotCanonical {
        /// Index of the token.
        index: usize,
    },
    /// The tokens at this index and the next are not the tokenization of their text.
    InvalidPair {
        /// Index of the left token.
        index: usize,
    },
    /// The pre-tokenizer cuts elsewhere, or the whole pre-token is one token; a tokenizer says so.
    Boundary {
        /// Index of the token.
        index: usize,
    },
    /// A special token stands for text that is text here, or text for a special token; a tokenizer says
    /// so.
    Special {
        /// Index of the token.
        index: usize,
    },
    /// The steps of a pipeline make another token of the text.
    Steps {
        /// Index of the token.
        index: usize,
    },
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let index = self.index;
        match self.expected {
            Some(expected) => write!(f, "token {index} is not {expected}: ")?,
            None => write!(f, "token {index}: ")?,
        }
        match self.reason {
            Reason::UnknownId { index } => write!(f, "no token has the id at index {index}"),
            Reason::NotCanonical { index } => {
                write!(
                    f,
                    "the token at index {index} is not what its bytes are tokenized to"
                )
            }
            Reason::InvalidPair { index } => write!(
                f,
                "the tokens at index {index} and {} are not what their bytes are tokenized to",
                index + 1
            ),
            Reason::Boundary { index } => write!(
                f,
                "the text is cut elsewhere than at the token at index {index}"
            ),
            Reason::Special { index } => {
                write!(f, "the token at index {index} is special, or should be")
            }
            Reason::Steps { index } => write!(
                f,
                "the steps of the file make another token at index {index}"
            ),
        }
    }
}

/// Checks that a stream of tokens is the tokenization of its text, as one span: without a
/// pre-tokenizer, special tokens, and whole-piece look-up.
///
/// A window of two tokens decides (002 Observation 2), at some nanoseconds a token. Where it finds
/// something wrong, the text is tokenized from the last place that is certain, and compared, until the
/// first token that differs is certain: no later than an exact stream of tokens could hand it out.
///
/// Memory: the tables, shared by clones; and the last tokens, back to a pair of bytes that no token
/// contains, or to what is certain.
///
/// ```
/// use bpe_core::{CanonicalForm, Dictionary, Vocabulary};
/// use bpe_dfa::{Reason, Validator};
///
/// let vocabulary = Vocabulary::new([(0, "a"), (1, "b"), (2, "ab"), (3, "aba")])?;
/// let dictionary = Dictionary::from_merges(vocabulary, [(0, 1), (2, 0)])?;
/// let mut validator = Validator::new(&CanonicalForm::new(&dictionary))?;
/// assert_eq!(validator.validate(&[2, 3, 3]), None); // abab... is ab|aba|aba
/// let mismatch = validator.validate(&[2, 3, 1]).expect("ababab is ab|ab|ab");
/// assert_eq!((mismatch.index, mismatch.expected), (1, Some(2)));
/// assert_eq!(mismatch.reason, Reason::InvalidPair { index: 1 });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Validator {
    shared: Arc<Shared>,
    /// Tokens so far.
    position: usize,
    /// The last tokens so far, valid, which begin at a place that is certain.
    kept: Vec<TokenId>,
    /// Kept tokens beyond which some are given up: doubles where that is of no avail.
    trim_at: usize,
    /// From the first break on.
    settling: Option<Settling>,
    found: Option<Mismatch>,
}

struct Shared {
    tables: Arc<Tables>,
    byte_pairs: BytePairs,
}

/// The text is tokenized, and compared with the tokens.
#[derive(Clone)]
struct Settling {
    pending: PendingText,
    /// Tokens that are not compared yet.
    waiting: VecDeque<TokenId>,
    /// Index of the first that waits.
    index: usize,
    reason: Reason,
    released: Vec<TokenId>,
    /// The text cannot go on: it has a byte that is no token.
    has_ended: bool,
}

impl Validator {
    /// A validator for a proper dictionary over bytes.
    ///
    /// # Errors
    ///
    /// An improper dictionary, or one over characters.
    pub fn new(canonical: &CanonicalForm) -> Result<Self, RelationError> {
        Self::with_relation(canonical, Arc::new(PairRelation::new(canonical)?))
    }

    /// A validator for a relation that is there; `canonical` is what it was made of.
    ///
    /// # Errors
    ///
    /// A dictionary over characters.
    pub fn with_relation(
        canonical: &CanonicalForm,
        pairs: Arc<PairRelation>,
    ) -> Result<Self, RelationError> {
        let shared = Shared {
            tables: Tables::new(canonical, pairs)?,
            byte_pairs: BytePairs::new(canonical.vocabulary()),
        };
        Ok(Self {
            shared: Arc::new(shared),
            position: 0,
            kept: Vec::new(),
            trim_at: KEPT,
            settling: None,
            found: None,
        })
    }

    /// The first mismatch of a whole sequence. O(bytes) in practice; some nanoseconds a token where
    /// there is none.
    pub fn validate(&mut self, ids: &[TokenId]) -> Option<Mismatch> {
        self.reset();
        self.push(ids);
        self.finish()
    }

    /// Takes the next tokens. Returns the first mismatch as soon as no continuation can change it.
    pub fn push(&mut self, ids: &[TokenId]) -> Option<&Mismatch> {
        if self.found.is_some() {
            return self.found.as_ref();
        }
        let mut rest = ids;
        if self.settling.is_none() {
            match self.first_break(ids) {
                None => {
                    self.position += ids.len();
                    self.keep(ids);
                    return None;
                }
                Some(at) => {
                    let (before, after) = ids.split_at(at);
                    self.position += at;
                    self.kept.extend_from_slice(before);
                    self.settle(after.first().copied());
                    rest = after;
                }
            }
        }
        for &id in rest {
            self.compare(id);
            if self.found.is_some() {
                break;
            }
        }
        self.found.as_ref()
    }

    /// Ends the stream, and returns its first mismatch. The validator is then as new.
    pub fn finish(&mut self) -> Option<Mismatch> {
        if self.found.is_none()
            && let Some(settling) = &mut self.settling
        {
            settling.pending.finish(&mut settling.released);
            self.found = settling.compare();
        }
        let found = self.found.take();
        self.reset();
        found
    }

    /// Whether a mismatch is certain to come: some tokens are no tokenization, and only the index of
    /// the first that differs is open.
    pub fn is_broken(&self) -> bool {
        self.settling.is_some() || self.found.is_some()
    }

    /// Number of tokens that are kept: what memory grows with.
    pub fn kept_tokens(&self) -> usize {
        let settling = self.settling.as_ref();
        self.kept.len() + settling.map_or(0, |settling| settling.waiting.len())
    }

    /// The relation that it asks.
    pub fn relation(&self) -> &Arc<PairRelation> {
        &self.shared.tables.pairs
    }

    fn reset(&mut self) {
        self.position = 0;
        self.kept.clear();
        self.trim_at = KEPT;
        self.settling = None;
        self.found = None;
    }

    fn first_break(&self, ids: &[TokenId]) -> Option<usize> {
        let pairs = &self.shared.tables.pairs;
        let first = *ids.first()?;
        let after_last = match self.kept.last() {
            Some(&last) => pairs.is_valid(last, first),
            None => pairs.is_canonical(first),
        };
        match after_last {
            true => pairs.first_break(ids),
            false => Some(0),
        }
    }

    /// Keeps what is not certain of tokens that are valid.
    fn keep(&mut self, ids: &[TokenId]) {
        let order = &self.shared.tables.order;
        let is_cut = |pair: &[TokenId]| {
            let (left, right) = (order.bytes(pair[0]), order.bytes(pair[1]));
            match (left.last(), right.first()) {
                (Some(&left), Some(&right)) => !self.shared.byte_pairs.in_a_token(left, right),
                _ => false,
            }
        };
        let cut = ids.windows(2).rposition(is_cut);
        match cut {
            Some(cut) => {
                self.kept.clear();
                self.kept.extend_from_slice(&ids[cut + 1..]);
            }
            None => self.kept.extend_from_slice(ids),
        }
        if self.kept.len() > self.trim_at {
            let mut pending = PendingText::new();
            let mut certain = Vec::new();
            for &id in &self.kept {
                for &byte in order.bytes(id) {
                    // Never an error: the token is canonical.
                    let _ = pending.push(&self.shared.tables, byte, &mut certain);
                }
            }
            self.kept.drain(..certain.len().min(self.kept.len()));
            self.trim_at = KEPT.max(2 * self.kept.len());
        }
    }

    /// Goes over to comparing, at a token that does not fit.
    fn settle(&mut self, id: Option<TokenId>) {
        let tables = &self.shared.tables;
        let index = self.position;
        let reason = match id {
            Some(id) if !tables.pairs.is_canonical(id) => Reason::NotCanonical { index },
            _ => Reason::InvalidPair {
                index: index.saturating_sub(1),
            },
        };
        let mut settling = Settling {
            pending: PendingText::new(),
            waiting: VecDeque::new(),
            index: index - self.kept.len(),
            reason,
            released: Vec::new(),
            has_ended: false,
        };
        for id in self.kept.drain(..) {
            settling.waiting.push_back(id);
            settling.feed(tables, id);
        }
        self.found = settling.compare();
        self.settling = Some(settling);
    }

    fn compare(&mut self, id: TokenId) {
        let Some(settling) = &mut self.settling else {
            return;
        };
        let tables = &self.shared.tables;
        let index = self.position;
        self.position += 1;
        if tables.order.vocabulary().token_bytes(id).is_none() {
            settling.pending.finish(&mut settling.released);
            self.found = settling.compare().or(Some(Mismatch {
                index,
                expected: None,
                reason: Reason::UnknownId { index },
            }));
            return;
        }
        settling.waiting.push_back(id);
        settling.feed(tables, id);
        self.found = settling.compare();
    }
}

impl Settling {
    fn feed(&mut self, tables: &Tables, id: TokenId) {
        for &byte in tables.order.bytes(id) {
            if self.pending.push(tables, byte, &mut self.released).is_err() {
                // An unreachable token with a byte that is no token: the text has no tokenization.
                // What stands before is judged as if the text ended there.
                self.pending.finish(&mut self.released);
                self.has_ended = true;
                return;
            }
        }
    }

    /// Compares what is certain.
    fn compare(&mut self) -> Option<Mismatch> {
        for expected in self.released.drain(..) {
            let found = self.waiting.pop_front();
            if found != Some(expected) {
                return Some(Mismatch {
                    index: self.index,
                    expected: Some(expected),
                    reason: self.reason,
                });
            }
            self.index += 1;
        }
        self.has_ended.then_some(Mismatch {
            index: self.index,
            expected: None,
            reason: self.reason,
        })
    }
}

impl fmt::Debug for Validator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Validator")
            .field("position", &self.position)
            .field("kept", &self.kept.len())
            .field("is_broken", &self.is_broken())
            .finish_non_exhaustive()
    }
}

/// What [`repair`] changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repair {
    /// The tokenization of the text of the sequence.
    pub ids: Vec<TokenId>,
    /// The tokens of the sequence that were replaced; empty where it was right.
    pub replaced: Range<usize>,
    /// The tokens of `ids` that replaced them.
    pub replacement: Range<usize>,
}

impl Repair {
    /// What turns `before` into `ids`: all but the longest common beginning, and the longest common end
    /// of what is left.
    pub fn between(before: &[TokenId], ids: Vec<TokenId>) -> Self {
        let common = |pair: &(&TokenId, &TokenId)| pair.0 == pair.1;
        let start = before.iter().zip(&ids).take_while(common).count();
        let left = before[start..].iter().rev();
        let end = left
            .zip(ids[start..].iter().rev())
            .take_while(common)
            .count();
        Self {
            replaced: start..before.len() - end,
            replacement: start..ids.len() - end,
            ids,
        }
    }

    /// True where nothing was changed.
    pub fn is_unchanged(&self) -> bool {
        self.replaced.is_empty() && self.replacement.is_empty()
    }
}

/// The canonical tokens of the text of `ids`, as one span, and what they changed. O(n log n).
///
/// # Errors
///
/// An id of no token, or a byte that no token stands for.
pub fn repair(canonical: &Arc<CanonicalForm>, ids: &[TokenId]) -> Result<Repair, RepairError> {
    let bytes = canonical.vocabulary().decode_bytes(ids);
    let bytes = bytes.map_err(RepairError::Decode)?;
    let mut repaired = Vec::with_capacity(ids.len());
    PriorityMerge::new(Arc::clone(canonical))
        .encode_span(&bytes, &mut repaired)
        .map_err(RepairError::Encode)?;
    Ok(Repair::between(ids, repaired))
}

/// A sequence cannot be repaired.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum RepairError {
    /// An id is that of no token.
    Decode(DecodeError),
    /// The text has no tokens.
    Encode(EncodeError),
}

impl fmt::Display for RepairError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Decode(error) => error.fmt(f),
            Self::Encode(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for RepairError {}

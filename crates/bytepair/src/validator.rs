//! Tokens that come in pieces: are they what the tokenizer makes of their text?

use std::collections::VecDeque;
use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;

use bpe_core::{CanonicalForm, DecodeError, TokenId};
use bpe_dfa::{Mismatch, PairRelation, Reason, Repair};
use bpe_lexers::{Spanner, SpecialMatcher};

use crate::error::EncodeError;
use crate::pieces::WholePieces;
use crate::stream::{StreamError, TokenStream};
use crate::tokenizer::Tokenizer;

/// Ids that are decoded and looked at together.
const BLOCK: usize = 4096;

impl Tokenizer {
    /// A validator for tokens that come in pieces: do they equal the tokens of their text, and if not,
    /// from where on?
    ///
    /// The first call builds what validators and streams share: the automaton of the patterns, the tables
    /// of the eager engine, and the relation of valid pairs, up to a second and 70 MB for 200,000 tokens.
    ///
    /// # Errors
    ///
    /// As [`Tokenizer::stream`]: the tokenizer has lexers of the caller's own, or a pattern that cannot
    /// be analysed.
    ///
    /// ```
    /// let tokenizer = bytepair::Tokenizer::o200k_base();
    /// let mut validator = tokenizer.validator()?;
    /// let ids = tokenizer.encode("Hello, world")?;
    /// assert_eq!(validator.validate(&ids)?, None);
    /// // "He" and "llo" are tokens, and not what "Hello" is.
    /// let parts = ["He", "llo", ", world"].map(|part| tokenizer.encode(part));
    /// let parts: Vec<u32> = parts.into_iter().collect::<Result<Vec<_>, _>>()?.concat();
    /// let mismatch = validator.validate(&parts)?.expect("other tokens");
    /// assert_eq!((mismatch.index, mismatch.expected), (0, Some(ids[0])));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn validator(&self) -> Result<TokenValidator, StreamError> {
        let stream = self.stream()?;
        let check = self
            .pair_relation()
            .and_then(|pairs| PieceCheck::new(self, pairs));
        Ok(TokenValidator {
            stream,
            check,
            index: 0,
            previous: None,
            waiting: VecDeque::new(),
            is_open: false,
            released: Vec::new(),
            text: Vec::new(),
            found: None,
        })
    }

    /// Which pairs of tokens are valid inside a pre-token; `None` where the dictionary is improper. The
    /// first call builds it, some tenths of a second for 200,000 tokens.
    pub fn pair_relation(&self) -> Option<&Arc<PairRelation>> {
        let canonical = &self.inner.canonical;
        let build = || PairRelation::new(canonical).ok().map(Arc::new);
        self.inner.pairs.get_or_init(build).as_ref()
    }

    /// The tokens of the text of `ids`, and which of `ids` they replace. O(bytes).
    ///
    /// # Errors
    ///
    /// An id of no token; or as [`Tokenizer::encode_bytes`].
    ///
    /// ```
    /// let tokenizer = bytepair::Tokenizer::o200k_base();
    /// let ids = tokenizer.encode("Hello, world")?;
    /// let parts = [tokenizer.encode("He")?, tokenizer.encode("llo")?, ids[1..].to_vec()].concat();
    /// let repair = tokenizer.repair(&parts)?;
    /// assert_eq!((repair.replaced, repair.replacement), (0..2, 0..1));
    /// assert_eq!(repair.ids, ids);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn repair(&self, ids: &[TokenId]) -> Result<Repair, RepairError> {
        let text = self.decode_bytes(ids).map_err(RepairError::Decode)?;
        let repaired = self.encode_bytes(&text).map_err(RepairError::Encode)?;
        Ok(Repair::between(ids, repaired))
    }
}

/// Ids in, in any pieces; out, where they stop being the tokens of their text. See
/// [`Tokenizer::validator`].
///
/// It reports the length of the longest common prefix of the ids and `encode_bytes(decode_bytes(ids))`,
/// with special tokens as the tokenizer treats them, and no later than a [`TokenStream`] over the text
/// would have released the token that differs. Bytes that are not UTF-8 are as in
/// [`Tokenizer::encode_bytes`]. An id of no token ends the text: what stands before is judged as if
/// nothing followed, and if all of it is right, the mismatch is at that id.
///
/// # How
///
/// The ids are decoded, and their text is cut at places where no token of any text can stand across
/// ([`bpe_lexers::Cuts`]). Between cuts the lexer gives the pieces; inside a piece each pair of
/// neighbours must be valid, and at its ends a token must end. Nothing is merged. Where that fails, and
/// behind the last cut, the text goes through a [`TokenStream`], whose tokens are compared.
///
/// # Cost
///
/// O(bytes): the lexer's, and some nanoseconds a token. Improper dictionaries, whose neighbours do not
/// decide, cost what the stream costs.
pub struct TokenValidator {
    stream: TokenStream,
    /// None where the dictionary is improper.
    check: Option<PieceCheck>,
    /// Index of the first token that is not known to be right.
    index: usize,
    /// The token before it.
    previous: Option<TokenId>,
    /// Tokens from there on, whose text the stream has.
    waiting: VecDeque<TokenId>,
    /// The stream has text of an open segment.
    is_open: bool,
    /// Tokens that the stream has released.
    released: Vec<TokenId>,
    /// Text of a block.
    text: Vec<u8>,
    found: Option<Mismatch>,
}

impl TokenValidator {
    /// The first mismatch of a whole sequence. O(bytes).
    ///
    /// # Errors
    ///
    /// As [`TokenValidator::push`].
    pub fn validate(&mut self, ids: &[TokenId]) -> Result<Option<Mismatch>, StreamError> {
        self.reset()?;
        self.push(ids)?;
        self.finish()
    }

    /// Takes the next ids. Returns the first mismatch as soon as no continuation can change it.
    /// O(bytes).
    ///
    /// # Errors
    ///
    /// As [`TokenStream::push`]: the text has no tokens, by a special token that is forbidden or a byte
    /// that no token stands for, or cannot be streamed within its limit.
    pub fn push(&mut self, ids: &[TokenId]) -> Result<Option<&Mismatch>, StreamError> {
        for block in ids.chunks(BLOCK) {
            if self.found.is_some() {
                break;
            }
            self.block(block)?;
        }
        Ok(self.found.as_ref())
    }

    /// Ends the stream, and returns its first mismatch. The validator is then as new.
    ///
    /// # Errors
    ///
    /// As [`TokenValidator::push`].
    pub fn finish(&mut self) -> Result<Option<Mismatch>, StreamError> {
        if self.found.is_none() {
            self.finish_stream()?;
        }
        let found = self.found.take();
        self.reset()?;
        Ok(found)
    }

    /// Number of tokens that are known to be right.
    pub fn confirmed(&self) -> usize {
        self.index
    }

    /// The tokenizer.
    pub fn tokenizer(&self) -> &Tokenizer {
        self.stream.tokenizer()
    }

    fn reset(&mut self) -> Result<(), StreamError> {
        self.index = 0;
        self.previous = None;
        self.waiting.clear();
        self.released.clear();
        self.found = None;
        if std::mem::take(&mut self.is_open) {
            self.stream = self.tokenizer().stream()?;
        }
        Ok(())
    }

    fn block(&mut self, ids: &[TokenId]) -> Result<(), StreamError> {
        let mut text = std::mem::take(&mut self.text);
        text.clear();
        let tokenizer = self.stream.tokenizer();
        let mut known = ids.len();
        for (index, &id) in ids.iter().enumerate() {
            match tokenizer.token_bytes(id) {
                Some(bytes) => text.extend_from_slice(bytes),
                None => {
                    known = index;
                    break;
                }
            }
        }
        let checked = self.known(&ids[..known], &text);
        self.text = text;
        checked?;
        if known < ids.len() && self.found.is_none() {
            self.finish_stream()?;
            let index = self.index;
            self.found.get_or_insert(Mismatch {
                index,
                expected: None,
                reason: Reason::UnknownId { index },
            });
        }
        Ok(())
    }

    /// Takes ids and their text.
    fn known(&mut self, ids: &[TokenId], text: &[u8]) -> Result<(), StreamError> {
        let (mut ids, mut text) = (ids, text);
        let plain = self.stream.plain(text);
        if self.is_open {
            // The stream has text: on to the first cut.
            let first = self.stream.first_cut(&text[..plain]);
            let split =
                first.and_then(|cut| Some((cut, self.check.as_ref()?.tokens_to(ids, cut)?)));
            let Some((cut, count)) = split else {
                return self.compare(ids, text);
            };
            self.compare(&ids[..count], &text[..cut])?;
            self.finish_stream()?;
            if self.found.is_some() {
                return Ok(());
            }
            (ids, text) = (&ids[count..], &text[cut..]);
            return self.fresh(ids, text, plain - cut);
        }
        self.fresh(ids, text, plain)
    }

    /// Takes ids and their text, which begins at a cut; the first `plain` bytes are no part of a special
    /// token.
    fn fresh(&mut self, ids: &[TokenId], text: &[u8], plain: usize) -> Result<(), StreamError> {
        let last = self.stream.last_cut(&text[..plain]);
        if let (Some(cut), Some(check)) = (last, &mut self.check)
            && let Some(count) = check.check(ids, &text[..cut])
        {
            self.index += count;
            self.previous = ids[..count].last().copied().or(self.previous);
            return self.compare(&ids[count..], &text[cut..]);
        }
        self.compare(ids, text)
    }

    /// Gives text to the stream, and compares what it releases.
    fn compare(&mut self, ids: &[TokenId], text: &[u8]) -> Result<(), StreamError> {
        self.is_open |= !text.is_empty();
        self.waiting.extend(ids);
        let pushed = self.stream.push(text, &mut self.released);
        self.compare_released();
        match self.found {
            Some(_) => Ok(()),
            None => pushed,
        }
    }

    fn finish_stream(&mut self) -> Result<(), StreamError> {
        self.is_open = false;
        let finished = self.stream.finish(&mut self.released);
        self.compare_released();
        match self.found {
            Some(_) => Ok(()),
            None => finished,
        }
    }

    fn compare_released(&mut self) {
        let mut released = std::mem::take(&mut self.released);
        if self.found.is_some() {
            released.clear();
        }
        for expected in released.drain(..) {
            let found = self.waiting.pop_front();
            if found != Some(expected) {
                self.found = Some(Mismatch {
                    index: self.index,
                    expected: Some(expected),
                    reason: self.reason(found, expected),
                });
                break;
            }
            self.index += 1;
            self.previous = found;
        }
        self.released = released;
    }

    /// What is wrong with the token at the index.
    fn reason(&self, found: Option<TokenId>, expected: TokenId) -> Reason {
        let index = self.index;
        let tokenizer = self.stream.tokenizer();
        let is_ordinary = |id| tokenizer.vocabulary().token_bytes(id).is_some();
        let Some(found) = found.filter(|&found| is_ordinary(found) && is_ordinary(expected)) else {
            return Reason::Special { index };
        };
        if !tokenizer.is_reachable(found) {
            return Reason::NotCanonical { index };
        }
        let Some(pairs) = tokenizer.pair_relation() else {
            return Reason::Boundary { index };
        };
        let is_valid =
            |left, right: Option<&TokenId>| right.is_none_or(|&right| pairs.is_valid(left, right));
        if !is_valid(found, self.waiting.front()) {
            return Reason::InvalidPair { index };
        }
        match self.previous {
            Some(previous) if !is_valid(previous, Some(&found)) => Reason::InvalidPair {
                index: index.saturating_sub(1),
            },
            _ => Reason::Boundary { index },
        }
    }
}

impl fmt::Debug for TokenValidator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenValidator")
            .field("tokenizer", self.tokenizer())
            .field("confirmed", &self.index)
            .finish_non_exhaustive()
    }
}

/// Checks tokens piece by piece, without merging.
struct PieceCheck {
    canonical: Arc<CanonicalForm>,
    pairs: Arc<PairRelation>,
    spanner: Spanner,
    none: SpecialMatcher,
    /// Of each id its length, and whether it may be in a piece.
    lengths: Vec<u32>,
    /// Some tokens are made by whole-piece look-up alone.
    has_unreachable: bool,
    /// Longest token that is.
    longest_unreachable: usize,
}

/// The token is what its bytes are tokenized to, so it may stand beside others.
const MERGED: u32 = 1 << 31;

/// The token may be a whole piece.
const WHOLE: u32 = 1 << 30;

const LENGTH: u32 = WHOLE - 1;

impl PieceCheck {
    /// None where ids are too far apart for a table.
    fn new(tokenizer: &Tokenizer, pairs: &Arc<PairRelation>) -> Option<Self> {
        let canonical = Arc::clone(&tokenizer.inner.canonical);
        if canonical.atoms() != bpe_core::Atoms::Bytes {
            return None;
        }
        let vocabulary = canonical.vocabulary();
        let largest = vocabulary.max_id()? as usize;
        if largest > 4 * vocabulary.len() + (1 << 16) {
            return None;
        }
        // Without patterns the piece is the whole text, of which a part is looked at here.
        let looks_up = WholePieces::are_all(&canonical) && !tokenizer.inner.patterns.is_empty();
        let mut lengths = vec![0; largest + 1];
        let mut longest_unreachable = 0;
        for (id, bytes) in vocabulary.iter() {
            let is_merged = pairs.is_canonical(id);
            let mut entry = bytes.len() as u32 & LENGTH;
            if is_merged {
                entry |= MERGED | WHOLE;
            } else if looks_up {
                entry |= WHOLE;
                longest_unreachable = longest_unreachable.max(bytes.len());
            }
            lengths[id as usize] = entry;
        }
        Some(Self {
            has_unreachable: longest_unreachable > 0,
            longest_unreachable,
            pairs: Arc::clone(pairs),
            spanner: tokenizer.inner.pool.prototype().spanner.clone(),
            none: SpecialMatcher::none(),
            lengths,
            canonical,
        })
    }

    /// How many of `ids` make up the first `bytes` bytes of their text; `None` where a token stands
    /// across, or is none that this checks.
    fn tokens_to(&self, ids: &[TokenId], bytes: usize) -> Option<usize> {
        let mut at = 0;
        let mut count = 0;
        while at < bytes {
            let entry = *self.lengths.get(*ids.get(count)? as usize)?;
            if entry & LENGTH == 0 {
                return None;
            }
            at += (entry & LENGTH) as usize;
            count += 1;
        }
        (at == bytes).then_some(count)
    }

    /// How many of `ids` are exactly the tokens of `text`, which stands between two cuts; `None` where
    /// they are not.
    fn check(&mut self, ids: &[TokenId], text: &[u8]) -> Option<usize> {
        let (lengths, pairs) = (&self.lengths[..], &*self.pairs);
        let entry_of = |id: TokenId| lengths.get(id as usize).copied().unwrap_or(0);
        let mut tokens = ids.iter();
        let mut at = 0;
        let flow = self.spanner.for_each_span(text, &self.none, |span| {
            let Some(&first) = tokens.next() else {
                return ControlFlow::Break(());
            };
            let entry = entry_of(first);
            at += (entry & LENGTH) as usize;
            if at == span.end && entry & WHOLE != 0 {
                return ControlFlow::Continue(());
            }
            if entry & MERGED == 0 {
                return ControlFlow::Break(());
            }
            let mut left = first;
            while at < span.end {
                let Some(&right) = tokens.next() else {
                    return ControlFlow::Break(());
                };
                at += (entry_of(right) & LENGTH) as usize;
                if !pairs.is_valid(left, right) {
                    return ControlFlow::Break(());
                }
                left = right;
            }
            if at > span.end {
                return ControlFlow::Break(());
            }
            if self.has_unreachable && span.range().len() <= self.longest_unreachable {
                // Merging does not give it, but the whole piece is a token.
                let piece = self.canonical.vocabulary().id_of(&text[span.range()]);
                if piece.is_some() {
                    return ControlFlow::Break(());
                }
            }
            ControlFlow::Continue(())
        });
        match flow {
            Ok(ControlFlow::Continue(())) => Some(ids.len() - tokens.len()),
            _ => None,
        }
    }
}

/// A sequence of ids cannot be repaired.
#[derive(Debug, Clone)]
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

impl std::error::Error for RepairError {}

#[cfg(all(test, feature = "o200k_base"))]
mod tests {
    use super::*;

    #[test]
    fn text_between_cuts_is_checked_without_the_stream() {
        let tokenizer = Tokenizer::o200k_base();
        let text = "It's 2026, isn't it? A text of some words,\n\n\tand lines.  ".repeat(100);
        let ids = tokenizer.encode(&text).expect("text");
        let mut validator = tokenizer.validator().expect("a known pattern");
        let cut = validator.stream.last_cut(text.as_bytes()).expect("a cut");
        assert!(cut + 20 > text.len());
        let check = validator.check.as_mut().expect("proper");
        let count = check.tokens_to(&ids, cut);
        assert!(count.is_some());
        assert_eq!(check.check(&ids, &text.as_bytes()[..cut]), count);
        // In parts: only what stands behind the last cut waits.
        for part in ids.chunks(100) {
            validator.push(part).expect("text");
            assert!(validator.waiting.len() < 20);
        }
    }
}

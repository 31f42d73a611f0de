//! Tokens that come in pieces: are they what the tokenizer makes of their text?

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use bpe_core::{DecodeError, TokenId};
use bpe_dfa::{Mismatch, PairRelation, Reason, Repair};

use crate::error::EncodeError;
use crate::piece_check::PieceCheck;
use crate::stream::TokenStream;
use crate::stream_error::StreamError;
use crate::tokenizer::Tokenizer;

/// Ids that are given to the stream together, and among which a cut is looked for that ends it.
const BLOCK: usize = 256;

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
/// An automaton over classes of tokens says where pieces start ([`bpe_dfa::PieceWalk`]); inside a piece each
/// pair of neighbours must be valid. Nothing is decoded, lexed or merged. Where some tokens are made of whole
/// pieces alone, or a fault is found, the ids are decoded, and their text is cut at places where no token of
/// any text can stand across ([`bpe_lexers::Cuts`]); between cuts the lexer gives the pieces. Where that fails
/// too, and behind the last cut, the text goes through a [`TokenStream`], whose tokens are compared.
///
/// # Cost
///
/// Some nanoseconds a token; where that does not do, O(bytes), the lexer's, too. Improper dictionaries, whose neighbours do not
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
        let mut ids = ids;
        while !ids.is_empty() && self.found.is_none() {
            let done = match self.check_block(ids) {
                0 => self.stream_block(ids)?,
                done => done,
            };
            ids = ids.get(done..).unwrap_or_default();
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

    /// Checks some of the first ids without the stream, where it has no text: up to the last cut of a
    /// block. Returns how many were right, or 0 if the stream has to look at them.
    fn check_block(&mut self, ids: &[TokenId]) -> usize {
        let (false, Some(check)) = (self.is_open, &mut self.check) else {
            return 0;
        };
        let mut count = check.check_tokens(ids);
        if count == 0 {
            let decoded = check.decode(ids);
            let text = check.text();
            let plain = self.stream.plain(text);
            let cut = self.stream.last_cut(text.get(..plain).unwrap_or_default());
            let checked = cut.and_then(|cut| check.check(ids.get(..decoded)?, cut));
            count = checked.unwrap_or(0);
        }
        self.index += count;
        if let Some(&last) = ids.get(..count).and_then(<[_]>::last) {
            self.previous = Some(last);
        }
        count
    }

    /// Gives the first ids to the stream: a block, or up to the first cut where one is. Returns how many.
    fn stream_block(&mut self, ids: &[TokenId]) -> Result<usize, StreamError> {
        let ids = ids.get(..BLOCK).unwrap_or(ids);
        if let Some(done) = self.close(ids)? {
            return Ok(done);
        }
        let mut text = std::mem::take(&mut self.text);
        text.clear();
        let tokenizer = self.stream.tokenizer();
        let bytes = ids.iter().map_while(|&id| tokenizer.token_bytes(id));
        let known = bytes.map(|bytes| text.extend_from_slice(bytes)).count();
        let (now, rest) = ids.split_at(known);
        let compared = self.compare(now, &text);
        self.text = text;
        compared?;
        if !rest.is_empty() && self.found.is_none() {
            self.finish_stream()?;
            let index = self.index;
            self.found.get_or_insert(Mismatch {
                index,
                expected: None,
                reason: Reason::UnknownId { index },
            });
        }
        Ok(ids.len())
    }

    /// Where the stream has text, gives it what stands before the first cut in that of `ids`, and ends it
    /// there. Returns how many ids it was; `None` where there is no such cut.
    fn close(&mut self, ids: &[TokenId]) -> Result<Option<usize>, StreamError> {
        let (true, Some(check)) = (self.is_open, &mut self.check) else {
            return Ok(None);
        };
        check.decode(ids.get(..BLOCK).unwrap_or(ids));
        let plain = self.stream.plain(check.text());
        let plain = check.text().get(..plain).unwrap_or_default();
        let first = self.stream.first_cut(plain);
        let Some((cut, count)) = first.and_then(|cut| Some((cut, check.tokens_to(cut)?))) else {
            return Ok(None);
        };
        let mut text = std::mem::take(&mut self.text);
        text.clear();
        text.extend_from_slice(plain.get(..cut).unwrap_or_default());
        let compared = self.compare(ids.get(..count).unwrap_or_default(), &text);
        self.text = text;
        compared?;
        self.finish_stream()?;
        Ok(Some(count))
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
        assert_eq!(check.decode(&ids), ids.len());
        assert_eq!(check.text(), text.as_bytes());
        let count = check.tokens_to(cut);
        assert!(count.is_some());
        assert_eq!(check.check(&ids, cut), count);
        // In parts: only what stands behind the last cut waits.
        for part in ids.chunks(100) {
            validator.push(part).expect("text");
            assert!(validator.waiting.len() < 20);
        }
    }
}

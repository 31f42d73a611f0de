//! Token healing: where a prompt may be cut so that a model can go on from it as if it had read on.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;

use bpe_core::{Atoms, CanonicalForm, EncodeError, TokenId};

use crate::engine::LastTokenEngine;
use crate::forest::is_one_atom;
use crate::history::History;

/// Heals prompts: finds the tokens of a prompt that every continuation keeps, and what may follow them.
///
/// A prompt such as `http:` ends in a token that no text has before `//`, where one token stands for
/// `://`. So its last tokens are given up, and the model writes their bytes again, but only with tokens
/// that agree with them ([`Healing::allowed`]). Both answers are exact: a token is certain, or
/// allowed, if and only if some continuation says so (docs/theory.md, end of section 4), within one
/// span, by merges alone.
///
/// Over bytes, and over characters with a fallback token for each byte. There a prompt may end inside a
/// character: its bytes so far are pending, and what comes next may complete it or not.
#[derive(Clone)]
pub struct TokenHealer {
    engine: LastTokenEngine,
    /// The canonical tokens in the order of their bytes.
    sorted: Arc<[TokenId]>,
}

impl TokenHealer {
    /// A healer over `engine`; `None` where its atoms are characters and some byte has no fallback token,
    /// so that the unknown token stands for characters of any bytes. O(n log n) for n tokens.
    pub fn new(engine: &LastTokenEngine) -> Option<Self> {
        let canonical = engine.canonical();
        let vocabulary = canonical.vocabulary();
        let atoms = canonical.atoms();
        if atoms != Atoms::Bytes && (0..=255).any(|byte| vocabulary.byte_fallback(byte).is_none()) {
            return None;
        }
        let is_atom = |id: TokenId, bytes: &[u8]| {
            is_one_atom(bytes, atoms) && vocabulary.id_of(bytes) == Some(id)
        };
        let mut sorted: Vec<(&[u8], TokenId)> = vocabulary
            .iter()
            .filter(|&(id, bytes)| is_atom(id, bytes) || canonical.rule(id).is_some())
            .map(|(id, bytes)| (bytes, id))
            .collect();
        sorted.sort_unstable();
        Some(Self {
            engine: engine.clone(),
            sorted: sorted.into_iter().map(|(_, id)| id).collect(),
        })
    }

    /// Heals a prompt.
    ///
    /// Cost: O(prompt), and for each end of it that can begin a token the tokens that begin with it,
    /// up to the first that fits.
    ///
    /// ```
    /// use bpe_core::{CanonicalForm, Dictionary, Vocabulary};
    /// use bpe_incremental::{LastTokenEngine, TokenHealer};
    ///
    /// let tokens = ["h", "t", "p", ":", "/", "//", "://", "tp"];
    /// let vocabulary = Vocabulary::new((0..).zip(tokens))?;
    /// let dictionary = Dictionary::from_merges(vocabulary, [(4, 4), (3, 5), (1, 2)])?;
    /// let engine = LastTokenEngine::new(&CanonicalForm::new(&dictionary).into())?;
    /// let healer = TokenHealer::new(&engine).unwrap();
    ///
    /// let healing = healer.heal(b"http:")?;
    /// assert_eq!(healing.certain(), [0, 1, 7]); // h t tp
    /// assert_eq!(healing.pending(), 4..5); // The colon is written again,
    /// assert_eq!(healing.allowed(4), [3, 6]); // as : or as ://
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// A byte that no token stands for, with its offset.
    pub fn heal(&self, prompt: &[u8]) -> Result<Healing<'_>, EncodeError> {
        let mut history = self.engine.history();
        history.extend(prompt)?;
        let len = prompt.len();
        let window = len - history.depth().min(len);
        let mut healing = Healing {
            healer: self,
            tail: prompt[window..].to_vec(),
            window,
            fallback: Vec::new(),
            can_follow: Vec::new(),
            certain: Vec::new(),
            certain_len: 0,
            history,
        };
        let possible: Vec<usize> = (window..=len)
            .filter(|&at| at == len || healing.beyond(at).next().is_some())
            .collect();
        // Up from the end: the nodes on the way from a possible place, each once. The last one
        // that all ways go through is where the ways to the first and to each other place meet.
        let mut certain_len = len;
        for &at in &possible {
            certain_len = healing.common_ancestor(certain_len, at);
        }
        for &at in &possible {
            let mut end = at;
            while end > certain_len
                && let Some(token) = healing.history.last_token(end)
            {
                healing.can_follow.push((token.start, end, token.id));
                end = token.start;
            }
        }
        let unfinished = &prompt[len - healing.history.unfinished()..];
        healing.fallback = self.fallback_after(unfinished);
        healing.can_follow.sort_unstable();
        healing.can_follow.dedup();
        healing.certain = healing.history.tokens(certain_len);
        healing.certain_len = certain_len;
        Ok(healing)
    }

    /// The fallback tokens that can follow a text that ends with these bytes of an unfinished character:
    /// those of bytes that need not become part of a character that is a token.
    fn fallback_after(&self, unfinished: &[u8]) -> Vec<TokenId> {
        let canonical = self.engine.canonical();
        let vocabulary = canonical.vocabulary();
        if canonical.atoms() == Atoms::Bytes {
            return Vec::new();
        }
        let mut bytes = unfinished.to_vec();
        let mut can_follow = |byte: u8| {
            bytes.push(byte);
            // A byte that does not go on with the character begins anew.
            let all = match core::str::from_utf8(&bytes) {
                Err(error) if error.error_len().is_some() => &bytes[unfinished.len()..],
                _ => &bytes[..],
            };
            let can = core::str::from_utf8(all).is_err() || vocabulary.id_of(all).is_none();
            bytes.pop();
            can
        };
        (0..=255)
            .filter(|&byte| can_follow(byte))
            .filter_map(|byte| vocabulary.byte_fallback(byte))
            .collect()
    }

    /// The tokens that begin with `bytes` and are longer.
    fn longer_than(&self, bytes: &[u8]) -> &[TokenId] {
        let vocabulary = self.engine.canonical().vocabulary();
        let bytes_of = |id: &TokenId| vocabulary.token_bytes(*id).unwrap_or_default();
        let start = self.sorted.partition_point(|id| bytes_of(id) <= bytes);
        let rest = &self.sorted[start..];
        &rest[..rest.partition_point(|id| bytes_of(id).starts_with(bytes))]
    }
}

/// A healed prompt: what to keep, and what may come next.
pub struct Healing<'h> {
    healer: &'h TokenHealer,
    history: History,
    /// The prompt from `window` on: no token that goes beyond the prompt begins before.
    tail: Vec<u8>,
    window: usize,
    /// The fallback tokens that can follow the whole prompt.
    fallback: Vec<TokenId>,
    /// The tokens inside the pending bytes that some continuation has: start, end, token.
    can_follow: Vec<(usize, usize, TokenId)>,
    certain: Vec<TokenId>,
    certain_len: usize,
}

impl Healing<'_> {
    /// The tokens that the tokens of every text that begins with the prompt begin with.
    pub fn certain(&self) -> &[TokenId] {
        &self.certain
    }

    /// The bytes of the prompt that are to be written again: those after the certain tokens.
    pub fn pending(&self) -> Range<usize> {
        self.certain_len..self.history.len()
    }

    /// The tokens that may come next where the tokens so far stand for the first `len` bytes of the
    /// prompt, in ascending order: exactly those that come next in the tokens of some text that begins
    /// with the prompt. After [`Healing::certain`] that is `allowed(pending().start)`; then go on with the
    /// end of the token chosen, until one ends at or beyond the end of the prompt. Empty where no
    /// text has a token that ends at `len`, and before the pending bytes.
    ///
    /// Cost: O(tokens that begin with the rest of the prompt, times their length).
    pub fn allowed(&self, len: usize) -> Vec<TokenId> {
        let is_reached =
            len == self.certain_len || self.can_follow.iter().any(|&(_, end, _)| end == len);
        if !is_reached {
            return Vec::new();
        }
        let inside = self.can_follow.iter().filter(|token| token.0 == len);
        let mut tokens: Vec<TokenId> = inside.map(|token| token.2).collect();
        if len >= self.window {
            tokens.extend(self.beyond(len));
        }
        if len == self.history.len() {
            tokens.extend_from_slice(&self.fallback);
        }
        tokens.sort_unstable();
        tokens
    }

    /// The tokens that can follow the first `at` bytes and go beyond the prompt.
    fn beyond(&self, at: usize) -> impl Iterator<Item = TokenId> + '_ {
        let canonical = self.healer.engine.canonical();
        let last = self.history.last_token(at).map(|token| token.id);
        let longer = self.healer.longer_than(&self.tail[at - self.window..]);
        longer
            .iter()
            .copied()
            .filter(move |&id| last.is_none_or(|last| is_valid_pair(canonical, last, id)))
    }

    fn common_ancestor(&self, mut a: usize, mut b: usize) -> usize {
        let parent = |len| self.history.last_token(len).map_or(0, |token| token.start);
        while a != b {
            match a > b {
                true => a = parent(a),
                false => b = parent(b),
            }
        }
        a
    }
}

impl fmt::Debug for TokenHealer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenHealer")
            .field("engine", &self.engine)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Healing<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Healing")
            .field("certain", &self.certain)
            .field("pending", &self.pending())
            .finish_non_exhaustive()
    }
}

/// Whether no rule joins anything across the place between two canonical tokens. O(their length).
///
/// Goes back in time: while both parts are whole, a rule for the pair would have to come before they
/// were used up. On the left a part that is used up in the same step has been used before, as steps go
/// from left to right; on the right it has not (docs/theory.md, (L) and Lemma 7).
fn is_valid_pair(canonical: &CanonicalForm, mut left: TokenId, mut right: TokenId) -> bool {
    let mut left_until = None; // Rules before this one find `left`,
    let mut right_until = None; // and up to this one `right`.
    loop {
        if let Some(merge) = canonical.merge(left, right)
            && left_until.is_none_or(|until| merge.priority < until)
            && right_until.is_none_or(|until| merge.priority <= until)
        {
            return false;
        }
        let made_left = canonical.rule(left);
        let made_right = canonical.rule(right);
        match (made_left, made_right) {
            (None, None) => return true,
            (Some(rule), other) if other.is_none_or(|other| rule.priority >= other.priority) => {
                left = rule.right;
                left_until = Some(rule.priority);
            }
            (_, Some(rule)) => {
                right = rule.left;
                right_until = Some(rule.priority);
            }
            (Some(_), None) => return true, // Not reached: the second arm takes it.
        }
    }
}

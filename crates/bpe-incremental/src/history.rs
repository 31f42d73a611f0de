//! A text that grows at its end, and the last token of each of its prefixes.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use bpe_core::{EncodeError, TokenId};

use crate::engine::{EMPTY, LastTokenEngine, Value};
use crate::lanes::{NO_VALUE, Step};
use crate::units::Unit;

/// A token and the bytes it stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PlacedToken {
    /// The token.
    pub id: TokenId,
    /// Offset of its first byte.
    pub start: usize,
    /// Offset of the byte after its last one.
    pub end: usize,
}

/// A growing text's last tokens, from which the tokens of every prefix follow.
///
/// The tokens of a text are those of the text before its last token, and the last token (000
/// section 3.2). So one number a byte holds the tokens of all prefixes, and the prefixes form a tree:
/// the parent of the prefix of length n is the one of length `last_token(n).start`.
///
/// The text itself is not kept. Memory: 8 bytes a byte of text (9 over characters), shared
/// with forks.
///
/// # Bytes that are no token
///
/// Over bytes ([`Atoms::Bytes`](bpe_core::Atoms::Bytes)) a byte that no token stands for is an error of
/// [`History::push`], which then changes nothing; the history goes on as if the byte had not been
/// pushed. Over characters each prefix has the tokens that any encoder gives its bytes: a character
/// that is no token is its fallback tokens or the unknown token, and so is a character that the prefix
/// breaks off. Once the rest of it is pushed, later prefixes see the character.
pub struct History {
    engine: LastTokenEngine,
    /// Length of the shortest prefix in `entries`. Shorter ones are in `shared`.
    start: usize,
    /// One entry for each prefix, from `start` on; never empty. It reaches back as far as the depth
    /// of the last one, so that a push finds here all it asks for.
    entries: Vec<Entry>,
    /// Where each prefix ends in a character; empty over bytes.
    units: Vec<Unit>,
    shared: Option<Arc<Frozen>>,
}

/// What is known of a prefix.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry {
    pub(crate) value: Value,
    pub(crate) state: u32,
}

/// How many entries a history takes over from its shared part beyond those it needs, so that
/// one byte after another can be removed without going back there each time.
const SLACK: usize = 64;

impl History {
    pub(crate) fn new(engine: LastTokenEngine) -> Self {
        let state = engine.tables.start();
        let units = match engine.tables.characters {
            Some(_) => alloc::vec![Unit::BOUNDARY],
            None => Vec::new(),
        };
        Self {
            engine,
            start: 0,
            entries: alloc::vec![Entry {
                value: EMPTY,
                state
            }],
            units,
            shared: None,
        }
    }

    /// Appends a byte and returns the new last token.
    ///
    /// Cost: bounded in the length of the text; see [the crate](crate#cost).
    ///
    /// # Errors
    ///
    /// A byte that no token stands for, with its offset in the text; nothing is changed then. Never for
    /// a complete dictionary ([`CanonicalForm::is_complete`](bpe_core::CanonicalForm::is_complete)).
    #[inline]
    pub fn push(&mut self, byte: u8) -> Result<TokenId, EncodeError> {
        let tables = &*self.engine.tables;
        let Some(flat) = tables.flat_over_bytes() else {
            return self.push_otherwise(byte);
        };
        let entries = &self.entries[..];
        let state = entries[entries.len() - 1].state;
        let (state, value) = flat.view().step(state, state as u8, byte, |back| {
            entries[entries.len() - back].value
        });
        if value == NO_VALUE {
            return Err(tables.error(byte, self.len()));
        }
        self.entries.push(Entry { value, state });
        Ok(tables.flat_id(value))
    }

    /// In the other layout, and over characters.
    #[inline(never)]
    fn push_otherwise(&mut self, byte: u8) -> Result<TokenId, EncodeError> {
        let tables = &*self.engine.tables;
        let entries = &self.entries;
        let state = entries[entries.len() - 1].state;
        let (state, found) = tables.push(state, byte, |back| entries[entries.len() - back].value);
        let value = match (found, &tables.characters) {
            (Some(value), None) => value,
            (None, None) => return Err(tables.error(byte, self.len())),
            (found, Some(characters)) => {
                let unit = self.units.last().copied().unwrap_or(Unit::BOUNDARY);
                let (unit, missing) = characters.push(unit, byte);
                self.units.push(unit);
                found.unwrap_or_else(|| tables.missing(byte, &missing))
            }
        };
        self.entries.push(Entry { value, state });
        Ok(tables.token(value).map_or(0, |(id, _)| id))
    }

    /// Appends bytes. As so many calls of [`History::push`].
    ///
    /// # Errors
    ///
    /// The first byte that no token stands for, with its offset in the text; nothing is changed then.
    pub fn extend(&mut self, bytes: &[u8]) -> Result<(), EncodeError> {
        let before = self.len();
        let tables = &*self.engine.tables;
        if tables.characters.is_none() {
            let mut state = self.entries[self.entries.len() - 1].state;
            let entry = |value, state| Entry { value, state };
            let pushed = tables.push_all(&mut state, bytes, &mut self.entries, |e| e.value, entry);
            let Err(offset) = pushed else {
                return Ok(());
            };
            let error = tables.error(bytes[offset], before + offset);
            self.truncate(before);
            return Err(error);
        }
        self.entries.reserve(bytes.len());
        for &byte in bytes {
            if let Err(error) = self.push(byte) {
                self.truncate(before);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Length of the text in bytes.
    #[inline]
    pub fn len(&self) -> usize {
        self.start + self.entries.len() - 1
    }

    /// True where the text is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The engine.
    pub fn engine(&self) -> &LastTokenEngine {
        &self.engine
    }

    /// The last token of the first `len` bytes; `None` for no bytes, and for more than there are. In
    /// the tree of prefixes its start is the parent of `len`.
    ///
    /// Cost: O(1); O(log f) in the part shared by f forks in a row; and O(run) at the end of a run
    /// of unknown characters that are fused.
    #[inline]
    pub fn last_token(&self, len: usize) -> Option<PlacedToken> {
        let tables = &*self.engine.tables;
        let value = self.entry(len)?.value;
        let (id, bytes) = tables.token(value)?;
        let mut start = len - bytes;
        if tables.fuses(value) {
            while let Some(before) = self.entry(start).map(|entry| entry.value)
                && tables.fuses(before)
                && let Some((_, bytes)) = tables.token(before)
            {
                start -= bytes;
            }
        }
        Some(PlacedToken {
            id,
            start,
            end: len,
        })
    }

    /// The tokens of the first `len` bytes (of the whole text, if that is shorter), the last one first.
    /// Cost of a step: as [`History::last_token`].
    pub fn tokens_from_end(&self, len: usize) -> TokensFromEnd<'_> {
        TokensFromEnd {
            history: self,
            end: len.min(self.len()),
        }
    }

    /// The tokens of the first `len` bytes (of the whole text, if that is shorter). O(tokens).
    pub fn tokens(&self, len: usize) -> Vec<TokenId> {
        let mut len = len.min(self.len());
        let mut tokens = Vec::with_capacity(len / 4 + 8);
        let tables = &*self.engine.tables;
        if tables.characters.is_none() {
            // What is not shared, without asking where each entry is.
            while let Some(index) = len.checked_sub(self.start)
                && let Some((id, bytes)) = tables.token(self.entries[index].value)
            {
                tokens.push(id);
                len -= bytes;
            }
        }
        tokens.extend(self.tokens_from_end(len).map(|token| token.id));
        tokens.reverse();
        tokens
    }

    /// The tokens of the first `len` bytes with the bytes they stand for. O(tokens).
    pub fn placed_tokens(&self, len: usize) -> Vec<PlacedToken> {
        let mut tokens: Vec<PlacedToken> = self.tokens_from_end(len).collect();
        tokens.reverse();
        tokens
    }

    /// The number of tokens of the first `len` bytes. O(tokens); for all prefixes at once take
    /// [`History::token_counts`].
    pub fn token_count(&self, len: usize) -> usize {
        self.tokens_from_end(len).count()
    }

    /// The numbers of tokens of all prefixes, from the empty one to the whole text. O(bytes).
    pub fn token_counts(&self) -> Vec<usize> {
        let mut counts = Vec::with_capacity(self.len() + 1);
        for len in 0..=self.len() {
            let before = |token: PlacedToken| counts.get(token.start).map_or(0, |count| count + 1);
            let count = self.last_token(len).map_or(0, before);
            counts.push(count);
        }
        counts
    }

    /// How many bytes at the end of the text later tokens can have a part in: a token that the bytes
    /// to come make or complete begins at `len() - depth()` or after. The length of the longest
    /// suffix that is a proper prefix of a canonical token, and no less than what belongs to an
    /// unfinished character or to a run of unknown characters that are fused.
    ///
    /// One byte more makes it greater by one at most. (000 section 6.1 takes the longest suffix
    /// that is a prefix of a token, which is longer where a whole token has no continuation.)
    ///
    /// Cost: as [`History::last_token`].
    #[inline]
    pub fn depth(&self) -> usize {
        self.depth_of(self.entries[self.entries.len() - 1], self.len())
    }

    /// [`History::depth`] as it was when the text had `len` bytes; `None` for more than there are.
    pub fn depth_at(&self, len: usize) -> Option<usize> {
        Some(self.depth_of(self.entry(len)?, len))
    }

    #[inline]
    fn depth_of(&self, entry: Entry, len: usize) -> usize {
        let tables = &*self.engine.tables;
        let depth = tables.depth(entry.state);
        if tables.characters.is_none() {
            return depth;
        }
        let mut depth = depth.max(self.unit(len).pending());
        if tables.fuses(entry.value)
            && let Some(token) = self.last_token(len)
        {
            depth = depth.max(token.end - token.start);
        }
        depth
    }

    /// Bytes of the unfinished character at the end; over bytes none.
    pub(crate) fn unfinished(&self) -> usize {
        self.unit(self.len()).pending()
    }

    /// Takes bytes away from the end, so that `len` are left; nothing if there are no more.
    ///
    /// Cost: O(1). Below the place of the last fork amortised O(1) a byte, and O(longest token)
    /// at first.
    pub fn truncate(&mut self, len: usize) {
        if len >= self.len() {
            return;
        }
        if len >= self.start {
            self.entries.truncate(len + 1 - self.start);
            self.units.truncate(len + 1 - self.start);
        }
        let needed = len - self.automaton_depth(len).min(len);
        if needed >= self.start {
            return;
        }
        // Take entries over from the shared part: twice as many as are needed, so that this
        // happens rarely.
        let start = needed.saturating_sub(SLACK.max(len - needed));
        let range = start..=len;
        let entries = range.clone().filter_map(|len| self.entry(len)).collect();
        if !self.units.is_empty() {
            self.units = range.map(|len| self.unit(len)).collect();
        }
        self.entries = entries;
        self.start = start;
        self.shared = match start {
            0 => None,
            _ => self.shared.as_ref().and_then(|shared| shared.find(start)),
        };
    }

    /// Takes all bytes away; the memory is kept, but for what forks share.
    pub fn clear(&mut self) {
        let first = Entry {
            value: EMPTY,
            state: self.engine.tables.start(),
        };
        self.entries.clear();
        self.entries.push(first);
        if !self.units.is_empty() {
            self.units.clear();
            self.units.push(Unit::BOUNDARY);
        }
        self.start = 0;
        self.shared = None;
    }

    /// A second history of the same text, which goes on by itself: what both have so far is shared.
    ///
    /// Cost: O(longest token), whatever the length of the text. (It takes `&mut self` since the entries
    /// so far become the shared part of both.)
    pub fn fork(&mut self) -> Self {
        let len = self.len();
        let kept = len - self.automaton_depth(len).min(len);
        let kept = kept.saturating_sub(SLACK).max(self.start) - self.start;
        if kept > SLACK {
            // What is long enough to be worth it is frozen; a second fork at the same place
            // finds little more than the kept part, and copies it.
            let entries = self.entries[kept..].to_vec();
            let units = self.units.get(kept..).unwrap_or_default().to_vec();
            let frozen = Frozen::new(
                self.start,
                core::mem::replace(&mut self.entries, entries),
                core::mem::replace(&mut self.units, units),
                self.shared.take(),
            );
            self.start += kept;
            self.shared = Some(Arc::new(frozen));
        }
        Self {
            engine: self.engine.clone(),
            start: self.start,
            entries: self.entries.clone(),
            units: self.units.clone(),
            shared: self.shared.clone(),
        }
    }

    /// How far back from `len` the automaton can still reach.
    fn automaton_depth(&self, len: usize) -> usize {
        let depth = |entry: Entry| self.engine.tables.depth(entry.state);
        self.entry(len).map_or(0, depth)
    }

    /// The entry of the prefix of `len` bytes.
    #[inline]
    fn entry(&self, len: usize) -> Option<Entry> {
        match len.checked_sub(self.start) {
            Some(index) => self.entries.get(index).copied(),
            None => {
                let node = self.shared.as_deref()?.node(len)?;
                node.entries.get(len - node.start).copied()
            }
        }
    }

    fn unit(&self, len: usize) -> Unit {
        let unit = match len.checked_sub(self.start) {
            Some(index) => self.units.get(index),
            None => {
                let node = self.shared.as_deref().and_then(|shared| shared.node(len));
                node.and_then(|node| node.units.get(len - node.start))
            }
        };
        unit.copied().unwrap_or(Unit::BOUNDARY)
    }
}

impl fmt::Debug for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("History")
            .field("engine", &self.engine)
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}

/// The tokens of a prefix from its end: [`History::tokens_from_end`].
#[derive(Debug, Clone)]
pub struct TokensFromEnd<'h> {
    history: &'h History,
    end: usize,
}

impl Iterator for TokensFromEnd<'_> {
    type Item = PlacedToken;

    #[inline]
    fn next(&mut self) -> Option<PlacedToken> {
        let token = self.history.last_token(self.end)?;
        self.end = token.start;
        Some(token)
    }
}

/// Entries that several histories share, and what came before them.
struct Frozen {
    start: usize,
    entries: Vec<Entry>,
    units: Vec<Unit>,
    parent: Option<Arc<Frozen>>,
    /// An ancestor further up, so that a place is found in O(log) steps: 1, 3, 7, ... nodes up,
    /// as in a skew-binary random access list.
    jump: Option<Arc<Frozen>>,
    /// Number of ancestors.
    height: usize,
}

impl Frozen {
    fn new(
        start: usize,
        entries: Vec<Entry>,
        units: Vec<Unit>,
        parent: Option<Arc<Frozen>>,
    ) -> Self {
        let height = |node: &Option<Arc<Frozen>>| node.as_ref().map_or(0, |node| node.height + 1);
        let jump = parent.as_ref().and_then(|above| {
            let far = above.jump.as_ref().and_then(|jump| jump.jump.clone());
            let near = height(&parent) - height(&above.jump);
            match near == height(&above.jump) - height(&far) && above.jump.is_some() {
                true => far,
                false => parent.clone(),
            }
        });
        Self {
            start,
            entries,
            units,
            height: height(&parent),
            parent,
            jump,
        }
    }

    /// The nearest node that has the prefix of `len` bytes. Starts only become smaller upwards.
    fn node(&self, len: usize) -> Option<&Self> {
        let mut node = self;
        while node.start > len {
            node = match node.jump.as_deref() {
                Some(jump) if jump.start > len => jump,
                _ => node.parent.as_deref()?,
            };
        }
        Some(node)
    }

    /// As [`Frozen::node`], to be kept.
    fn find(self: &Arc<Self>, len: usize) -> Option<Arc<Self>> {
        let mut node = self;
        while node.start > len {
            node = match node.jump.as_ref() {
                Some(jump) if jump.start > len => jump,
                _ => node.parent.as_ref()?,
            };
        }
        Some(Arc::clone(node))
    }
}

impl Drop for Frozen {
    /// One after the other: a chain of a million forks must not be a million calls deep.
    fn drop(&mut self) {
        // What a node jumps to is above its parent, which holds it.
        self.jump = None;
        let mut next = self.parent.take();
        while let Some(mut node) = next.and_then(Arc::into_inner) {
            node.jump = None;
            next = node.parent.take();
        }
    }
}

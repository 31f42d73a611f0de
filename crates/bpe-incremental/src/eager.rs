//! Tokens as soon as they are certain, from a text that comes in pieces and need never be whole.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

use bpe_core::{EncodeError, SpanEncoder, TokenId};

use crate::engine::{EMPTY, LastTokenEngine, Tables, Value};
use crate::frontier::Frontier;
use crate::units::Unit;

/// Takes a text byte by byte and hands out its tokens as soon as no continuation can change them
/// (000 section 6).
///
/// What is handed out is what all prefixes have in common at which a later token can still begin
/// (docs/theory.md, Theorem 11): never a token that some continuation would not have, and never
/// later than by the rule of 000 App. G. What is held back is bounded for every text, whatever its length:
/// [`held_bytes_bound`](crate::held_bytes_bound). Memory: 4 bytes for each byte that is held, and
/// some 20 KB at most besides, however long the text.
///
/// Useful for spans that are still open, or too long to keep; for the tokens of every prefix,
/// undo and offsets take a [`History`](crate::History).
///
/// ```
/// use bpe_core::{CanonicalForm, Dictionary, Vocabulary};
/// use bpe_incremental::{EagerEncoder, LastTokenEngine};
///
/// // bc comes before ab: "ab" is a token, until a c follows.
/// let vocabulary = Vocabulary::new([(0, "a"), (1, "b"), (2, "c"), (3, "ab"), (4, "bc")])?;
/// let dictionary = Dictionary::from_merges(vocabulary, [(1, 2), (0, 1)])?;
/// let engine = LastTokenEngine::new(&CanonicalForm::new(&dictionary).into())?;
/// let mut encoder = EagerEncoder::new(&engine);
///
/// let mut tokens = Vec::new();
/// encoder.feed(b"cab", &mut tokens)?;
/// assert_eq!(tokens, [2]); // c is certain; a b may become ab, or a bc.
/// assert_eq!((encoder.pending().tokens, encoder.pending().bytes), (1, 2));
/// encoder.push(b'c', &mut tokens)?;
/// assert_eq!(tokens, [2, 0, 4]); // a bc: nothing is made of bc.
/// encoder.push(b'b', &mut tokens)?;
/// encoder.finish(&mut tokens);
/// assert_eq!(tokens, [2, 0, 4, 1]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct EagerEncoder {
    engine: LastTokenEngine,
    state: u32,
    /// Where the text ends in a character, over characters.
    unit: Unit,
    runs: UnknownRuns,
    /// The last token of each prefix from the one of `origin` bytes on; those before `certain` wait to be
    /// dropped. The engine asks for none before `certain`.
    entries: Vec<Value>,
    origin: usize,
    /// Up to here tokens have been handed out.
    certain: usize,
    frontier: Frontier,
}

/// What an encoder holds back: the tokens that the text would end with if it ended now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pending {
    /// Number of those tokens.
    pub tokens: usize,
    /// Bytes that they stand for.
    pub bytes: usize,
}

/// Entries are dropped once so many are of no more use, and at least half of all.
const DEAD: usize = 1024;

/// Bytes that are taken at once where so many are given.
const BLOCK: usize = 1024;

/// Fewer bytes than this part of what is held are taken one by one, so that the cost of a block, in
/// proportion to what is held, stays O(1) for each of its bytes.
const FEW: usize = 8;

impl EagerEncoder {
    /// An encoder at the start of a text. O(1).
    pub fn new(engine: &LastTokenEngine) -> Self {
        Self {
            state: engine.tables.start(),
            engine: engine.clone(),
            unit: Unit::BOUNDARY,
            runs: UnknownRuns::default(),
            entries: alloc::vec![EMPTY],
            origin: 0,
            certain: 0,
            frontier: Frontier::new(),
        }
    }

    /// Takes a byte and appends the tokens that have become certain to `tokens`.
    ///
    /// Cost: [`History::push`](crate::History::push), and amortised O(1).
    ///
    /// # Errors
    ///
    /// A byte that no token stands for, with its offset in the text; nothing is changed then. Never for
    /// a complete dictionary ([`CanonicalForm::is_complete`](bpe_core::CanonicalForm::is_complete)).
    #[inline]
    pub fn push(&mut self, byte: u8, tokens: &mut Vec<TokenId>) -> Result<(), EncodeError> {
        let (parent, window) = self.grow(byte)?;
        if self.frontier.len() + 1 < self.byte_count() {
            // `feed` has left prefixes out, since none was certain.
            self.settle(window, tokens);
            return Ok(());
        }
        let certain = self.frontier.push(parent, window);
        if certain > self.certain {
            self.hand_out(certain, tokens);
        }
        Ok(())
    }

    /// Takes bytes, and appends the tokens that have become certain to `tokens`: as so many calls of
    /// [`EagerEncoder::push`].
    ///
    /// Cost: [`History::push`](crate::History::push) for each byte, and amortised O(1) a byte.
    ///
    /// # Errors
    ///
    /// The first byte that no token stands for, with its offset in the text; the bytes before it have been
    /// taken.
    pub fn feed(&mut self, mut bytes: &[u8], tokens: &mut Vec<TokenId>) -> Result<(), EncodeError> {
        while !bytes.is_empty() {
            let held = self.pending_bytes();
            if bytes.len() < held / FEW {
                return bytes.iter().try_for_each(|&byte| self.push(byte, tokens));
            }
            // What is certain is found once a block: blocks in proportion to what is held keep this
            // O(1) a byte.
            let (first, rest) = bytes.split_at(bytes.len().min(BLOCK.max(held)));
            let (window, fed) = self.grow_block(first);
            // Else no prefix after the certain one has left the window.
            if window > self.certain {
                self.settle(window, tokens);
            }
            fed?;
            bytes = rest;
        }
        Ok(())
    }

    /// Takes bytes into the history, up to the first that no token stands for; where later tokens can
    /// begin after them.
    #[inline]
    fn grow_block(&mut self, bytes: &[u8]) -> (usize, Result<(), EncodeError>) {
        let tables = &*self.engine.tables;
        if tables.characters.is_some() {
            let mut window = self.frontier.window();
            let grown = bytes.iter().try_for_each(|&byte| {
                (_, window) = self.grow(byte)?;
                Ok(())
            });
            return (window, grown);
        }
        let (state, entries) = (&mut self.state, &mut self.entries);
        let grown = tables.push_all(state, bytes, entries, |&value| value, |value, _| value);
        let after = self.byte_count();
        let grown = grown.map_err(|offset| tables.error(bytes[offset], after));
        (after - tables.depth(self.state), grown)
    }

    /// Hands out what is certain of bytes that the frontier has not seen.
    fn settle(&mut self, window: usize, tokens: &mut Vec<TokenId>) {
        let mut frontier = core::mem::take(&mut self.frontier);
        let len = self.byte_count();
        let certain = frontier.extend(len, window, |len| self.token_before(len).1);
        self.frontier = frontier;
        if certain > self.certain {
            self.hand_out(certain, tokens);
        }
    }

    /// Takes a byte into the history; where its last token begins, and where later ones can.
    #[inline]
    fn grow(&mut self, byte: u8) -> Result<(usize, usize), EncodeError> {
        let tables = &*self.engine.tables;
        let entries = &self.entries;
        let (state, found) = tables.push(self.state, byte, |back| entries[entries.len() - back]);
        let len = self.origin + entries.len();
        let mut depth = tables.depth(state);
        let (value, parent) = match (found, &tables.characters) {
            (Some(value), None) => (value, len - len_of(tables, value)),
            (None, None) => return Err(tables.error(byte, len - 1)),
            (found, Some(characters)) => {
                let (unit, missing) = characters.push(self.unit, byte);
                self.unit = unit;
                let value = found.unwrap_or_else(|| tables.missing(byte, &missing));
                let mut parent = len - len_of(tables, value);
                depth = depth.max(unit.pending());
                if tables.fuses(value) {
                    parent = self.runs.push(parent, len, unit.pending() > 0);
                    depth = depth.max(len - parent);
                }
                (value, parent)
            }
        };
        self.state = state;
        self.entries.push(value);
        Ok((parent, len - depth))
    }

    /// Ends the text: appends the tokens that were held back, and begins a new text. O(those tokens).
    pub fn finish(&mut self, tokens: &mut Vec<TokenId>) {
        self.append_pending(tokens);
        self.clear();
    }

    /// Appends the tokens that are held back, as if the text ended here, and goes on holding them
    /// back. O(those tokens).
    pub fn append_pending(&self, tokens: &mut Vec<TokenId>) {
        self.append(self.byte_count(), tokens);
    }

    /// Begins a new text; what was held back is lost, the memory is kept. O(1).
    pub fn clear(&mut self) {
        self.state = self.engine.tables.start();
        self.unit = Unit::BOUNDARY;
        self.runs = UnknownRuns::default();
        self.entries.clear();
        self.entries.push(EMPTY);
        self.origin = 0;
        self.certain = 0;
        self.frontier.clear();
    }

    /// What is held back. O(tokens held back).
    pub fn pending(&self) -> Pending {
        let mut tokens = 0;
        let mut at = self.byte_count();
        while at > self.certain {
            at = self.token_before(at).1;
            tokens += 1;
        }
        Pending {
            tokens,
            bytes: self.pending_bytes(),
        }
    }

    /// Bytes that are held back: those that the tokens handed out so far do not cover. O(1).
    #[inline]
    pub fn pending_bytes(&self) -> usize {
        self.byte_count() - self.certain
    }

    /// Bytes taken since the text began. O(1).
    #[inline]
    pub fn byte_count(&self) -> usize {
        self.origin + self.entries.len() - 1
    }

    /// Bytes of memory that this value takes, without the engine: no more after a long text than after
    /// a short one.
    pub fn memory(&self) -> usize {
        size_of::<Self>() + self.entries.capacity() * size_of::<Value>() + self.frontier.memory()
    }

    /// The engine.
    pub fn engine(&self) -> &LastTokenEngine {
        &self.engine
    }

    #[inline]
    fn hand_out(&mut self, certain: usize, tokens: &mut Vec<TokenId>) {
        self.append(certain, tokens);
        self.certain = certain;
        let dead = certain - self.origin;
        if dead >= DEAD && 2 * dead >= self.entries.len() {
            self.entries.drain(..dead);
            self.origin = certain;
        }
    }

    /// Appends the tokens from the certain ones to the prefix `end`.
    #[inline]
    fn append(&self, end: usize, tokens: &mut Vec<TokenId>) {
        let start = tokens.len();
        let mut at = end;
        while at > self.certain {
            let (id, before) = self.token_before(at);
            tokens.push(id);
            at = before;
        }
        tokens[start..].reverse();
    }

    /// The last token of a prefix that is not certain, and where it begins.
    #[inline]
    fn token_before(&self, end: usize) -> (TokenId, usize) {
        let tables = &*self.engine.tables;
        let value = self.entries[end - self.origin];
        let (id, len) = tables.token(value).unwrap_or((0, end)); // Only the empty prefix has none.
        let mut start = end - len;
        if tables.fuses(value) {
            // A run is certain as a whole or not at all.
            while start > self.certain
                && let before = self.entries[start - self.origin]
                && tables.fuses(before)
            {
                start -= len_of(tables, before);
            }
        }
        (id, start)
    }
}

/// Where runs of unknown characters begin that are fused into one unknown token, so that no run is walked
/// twice. Ends and starts.
#[derive(Debug, Clone, Copy, Default)]
struct UnknownRuns {
    /// The run up to the last whole character, if that is unknown.
    whole: Option<(usize, usize)>,
    /// The run up to the end of the text, if an unfinished character ends there.
    unfinished: Option<(usize, usize)>,
}

impl UnknownRuns {
    /// An unknown character has begun or gone on: from `start` to `end`. Returns where its run starts.
    fn push(&mut self, start: usize, end: usize, is_unfinished: bool) -> usize {
        // What was unfinished before `start` has turned out to be no character at all.
        if self.unfinished.is_some_and(|run| run.0 == start) {
            self.whole = self.unfinished;
        }
        let before = self.whole.filter(|run| run.0 == start);
        let run = (end, before.map_or(start, |run| run.1));
        match is_unfinished {
            true => self.unfinished = Some(run),
            false => (self.whole, self.unfinished) = (Some(run), None),
        }
        run.1
    }
}

/// Bytes of the token that stands for a prefix that is not empty.
#[inline]
fn len_of(tables: &Tables, value: Value) -> usize {
    tables.token(value).map_or(1, |(_, len)| len)
}

impl Clone for EagerEncoder {
    /// A fork: both go on from here by themselves. O(bytes held back): what has been handed out is not
    /// copied.
    fn clone(&self) -> Self {
        Self {
            engine: self.engine.clone(),
            state: self.state,
            unit: self.unit,
            runs: self.runs,
            entries: self.entries[self.certain - self.origin..].to_vec(),
            origin: self.certain,
            certain: self.certain,
            frontier: self.frontier.clone(),
        }
    }
}

/// A span is taken by [`EagerEncoder::feed`], so this costs what eager output costs.
impl SpanEncoder for EagerEncoder {
    fn encode_span(&mut self, span: &[u8], tokens: &mut Vec<TokenId>) -> Result<(), EncodeError> {
        self.clear();
        let start = tokens.len();
        let fed = self.feed(span, tokens);
        match fed {
            Ok(()) => self.finish(tokens),
            Err(_) => tokens.truncate(start),
        }
        fed
    }

    fn clone_box(&self) -> Box<dyn SpanEncoder> {
        Box::new(Self::new(&self.engine))
    }
}

impl fmt::Debug for EagerEncoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EagerEncoder")
            .field("engine", &self.engine)
            .field("bytes", &self.byte_count())
            .field("pending_bytes", &self.pending_bytes())
            .finish_non_exhaustive()
    }
}

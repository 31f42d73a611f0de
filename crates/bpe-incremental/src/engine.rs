//! The tables that all histories and encoders of a dictionary share.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use bpe_core::{BytePairs, CanonicalForm, EncodeError, TokenId, Vocabulary};

use crate::error::{EngineError, Kind};
use crate::flat::{self, Flat};
use crate::forest::Forest;
use crate::history::History;
use crate::lanes::{self, NO_VALUE, Step};
use crate::trie::Trie;
use crate::units::{Characters, Missing};
use crate::wide::Wide;

/// Finds the last token of a text from the last tokens of its prefixes: what a [`History`] and an
/// [`IncrementalEncoder`](crate::IncrementalEncoder) run on.
///
/// Immutable; a clone shares the tables.
///
/// ```
/// use bpe_core::{BytePairs, CanonicalForm, Dictionary, Vocabulary};
/// use bpe_incremental::LastTokenEngine;
///
/// let vocabulary = Vocabulary::new([(0, "a"), (1, "b"), (2, "c"), (3, "ab"), (4, "abc"), (5, "bc")])?;
/// let dictionary = Dictionary::from_merges(vocabulary, [(0, 1), (3, 2), (1, 2)])?;
/// let engine = LastTokenEngine::new(&CanonicalForm::new(&dictionary).into())?;
///
/// let mut history = engine.history();
/// assert_eq!(history.push(b'a')?, 0); // a
/// assert_eq!(history.push(b'b')?, 3); // ab
/// assert_eq!(history.push(b'c')?, 4); // abc
/// assert_eq!(history.push(b'b')?, 1); // abc b
/// history.truncate(2);
/// assert_eq!(history.tokens(2), [3]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct LastTokenEngine {
    pub(crate) tables: Arc<Tables>,
}

/// How the tables lie in memory.
pub(crate) enum Layout {
    /// Fast, for all vocabularies in use.
    Flat(Box<Flat>),
    /// For all others.
    Wide(Box<Wide>),
}

/// What stands for the last token of a prefix: its number, and in the flat layout its length in the
/// lower eight bits.
pub(crate) type Value = u32;

/// The value of the empty prefix. No interval holds it, and it is not the greatest number, which the
/// intervals of atoms end before.
pub(crate) const EMPTY: Value = 0xFFFF_FF00;

/// The most tokens that numbers are left for.
const MOST_TOKENS: usize = 0xFFFF_0000;

pub(crate) struct Tables {
    pub(crate) canonical: Arc<CanonicalForm>,
    /// `None` for dictionaries over bytes.
    pub(crate) characters: Option<Characters>,
    pub(crate) layout: Layout,
    /// The pairs of bytes that canonical tokens contain.
    pairs: BytePairs,
    /// Ids and lengths by number: of tokens, then of the 256 fallback tokens, then of the unknown
    /// token for 0 to 4 bytes.
    ids: Vec<TokenId>,
    lens: Vec<u32>,
    /// Number of tokens.
    count: u32,
}

impl LastTokenEngine {
    /// The engine of a proper dictionary.
    ///
    /// Cost: O(B + n log n) for n tokens of B bytes in all; in the fast layout O(p) more for p places
    /// of its table ([cost](crate#cost)).
    ///
    /// # Errors
    ///
    /// An improper dictionary ([`EngineError::is_improper`]); one over characters that has neither
    /// an unknown token nor a fallback token for each byte, so that a text may have no tokens; and
    /// one whose tokens have more than 2^32 different prefixes.
    pub fn new(canonical: &Arc<CanonicalForm>) -> Result<Self, EngineError> {
        Self::build(canonical, false)
    }

    /// The engine in the layout that takes every dictionary, whatever this one is: for tests that
    /// compare both.
    #[doc(hidden)]
    pub fn new_wide(canonical: &Arc<CanonicalForm>) -> Result<Self, EngineError> {
        Self::build(canonical, true)
    }

    fn build(canonical: &Arc<CanonicalForm>, wide: bool) -> Result<Self, EngineError> {
        let characters = Characters::new(canonical);
        if characters.is_some() && !canonical.is_complete() {
            return Err(EngineError(Kind::Incomplete));
        }
        let forest = Forest::new(canonical)?;
        if forest.len() > MOST_TOKENS {
            return Err(EngineError(Kind::TooLarge));
        }
        let trie = Trie::new(canonical.vocabulary(), &forest)?;
        let (ids, lens) = by_number(canonical, &forest);
        let layout = match Flat::new(&forest, &trie) {
            Some(flat) if !wide => Layout::Flat(Box::new(flat)),
            _ => Layout::Wide(Box::new(Wide::new(&forest, trie))),
        };
        Ok(Self {
            tables: Arc::new(Tables {
                canonical: Arc::clone(canonical),
                characters,
                count: forest.len() as u32,
                pairs: pairs(canonical.vocabulary(), &forest),
                layout,
                ids,
                lens,
            }),
        })
    }

    /// An empty history over this engine. O(1).
    pub fn history(&self) -> History {
        History::new(self.clone())
    }

    /// The dictionary.
    pub fn canonical(&self) -> &Arc<CanonicalForm> {
        &self.tables.canonical
    }

    /// Bytes of memory that the tables take, without the dictionary's own.
    pub fn memory(&self) -> usize {
        let tables = &*self.tables;
        let layout = match &tables.layout {
            Layout::Flat(flat) => flat.memory(),
            Layout::Wide(wide) => wide.memory(),
        };
        layout + size_of_val(&tables.ids[..]) + size_of_val(&tables.lens[..])
    }
}

impl Tables {
    /// The flat layout of a dictionary over bytes: what the fast loops are for.
    #[inline(always)]
    pub(crate) fn flat_over_bytes(&self) -> Option<&Flat> {
        match (&self.layout, &self.characters) {
            (Layout::Flat(flat), None) => Some(flat),
            _ => None,
        }
    }

    /// The id of the token that a value of the flat layout stands for.
    #[inline(always)]
    pub(crate) fn flat_id(&self, value: Value) -> TokenId {
        self.ids.get((value >> 8) as usize).copied().unwrap_or(0)
    }

    /// The state of the automaton before the first byte.
    pub(crate) fn start(&self) -> u32 {
        match &self.layout {
            Layout::Flat(flat) => flat.view().start(),
            Layout::Wide(wide) => wide.start(),
        }
    }

    /// The state and the value after `byte`; no value where no token ends there. `history` as in
    /// [`Step::step`].
    #[inline(always)]
    pub(crate) fn push(
        &self,
        state: u32,
        byte: u8,
        history: impl Fn(usize) -> Value,
    ) -> (u32, Option<Value>) {
        let (state, value) = match &self.layout {
            Layout::Flat(flat) => flat.view().step(state, state as u8, byte, history),
            Layout::Wide(wide) => wide.step(state, 0, byte, history),
        };
        (state, (value != NO_VALUE).then_some(value))
    }

    /// Pushes bytes onto a history: [`lanes::push_all`].
    ///
    /// # Errors
    ///
    /// The offset of the first byte that no token stands for; what comes before it is there.
    #[inline]
    pub(crate) fn push_all<E>(
        &self,
        state: &mut u32,
        bytes: &[u8],
        history: &mut Vec<E>,
        value_of: impl Fn(&E) -> Value,
        entry: impl Fn(Value, u32) -> E,
    ) -> Result<(), usize> {
        match &self.layout {
            Layout::Flat(flat) => {
                let previous = *state as u8;
                lanes::push_all(
                    flat.view(),
                    state,
                    previous,
                    bytes,
                    history,
                    value_of,
                    entry,
                )
            }
            Layout::Wide(wide) => {
                lanes::push_all(&**wide, state, 0, bytes, history, value_of, entry)
            }
        }
    }

    /// The value that stands for what is missing.
    pub(crate) fn missing(&self, byte: u8, missing: &Missing) -> Value {
        let (number, len) = match missing {
            Missing::Fallback => (self.count + u32::from(byte), 1),
            Missing::Unknown(len) => (self.count + 256 + len, *len),
        };
        match &self.layout {
            Layout::Flat(_) => flat::value(number, len),
            Layout::Wide(_) => number,
        }
    }

    /// The length of the longest suffix of the text that can be the beginning of a later token.
    #[inline]
    pub(crate) fn depth(&self, state: u32) -> usize {
        match &self.layout {
            Layout::Flat(flat) => flat.depth(state),
            Layout::Wide(wide) => wide.depth(state),
        }
    }

    /// The id of the token that a value stands for, and how many bytes it has. `None` for the empty
    /// prefix.
    #[inline]
    pub(crate) fn token(&self, value: Value) -> Option<(TokenId, usize)> {
        Some(match &self.layout {
            Layout::Flat(_) => {
                let id = *self.ids.get((value >> 8) as usize)?;
                (id, value as usize & 0xFF)
            }
            Layout::Wide(_) => {
                let number = value as usize;
                (*self.ids.get(number)?, *self.lens.get(number)? as usize)
            }
        })
    }

    /// Whether a value stands for an unknown token that its neighbours of the same kind join.
    pub(crate) fn fuses(&self, value: Value) -> bool {
        let fuses = |characters: &Characters| characters.fuses;
        let number = match &self.layout {
            Layout::Flat(_) => value >> 8,
            Layout::Wide(_) => value,
        };
        self.characters.as_ref().is_some_and(fuses) && value != EMPTY && number > self.count + 256
    }

    /// Ids and lengths by number.
    pub(crate) fn by_number(&self) -> (&[TokenId], &[u32]) {
        (&self.ids, &self.lens)
    }

    /// The first place from `place` on that no token of a text over bytes crosses, or the end.
    pub(crate) fn block_end(&self, text: &[u8], place: usize) -> usize {
        let Some(rest) = text.get(place - 1..) else {
            return text.len();
        };
        let boundary = rest
            .windows(2)
            .position(|pair| !self.pairs.in_a_token(pair[0], pair[1]));
        boundary.map_or(text.len(), |distance| place + distance)
    }

    /// The error for a byte that no token stands for.
    #[cold]
    pub(crate) fn error(&self, byte: u8, offset: usize) -> EncodeError {
        EncodeError::missing_byte(byte, offset)
    }
}

/// The pairs of bytes in canonical tokens: those in others no merge has.
fn pairs(vocabulary: &Vocabulary, forest: &Forest) -> BytePairs {
    let mut pairs = BytePairs::none();
    for node in &forest.nodes {
        pairs.add(vocabulary.token_bytes(node.id).unwrap_or_default());
    }
    pairs
}

fn by_number(canonical: &CanonicalForm, forest: &Forest) -> (Vec<TokenId>, Vec<u32>) {
    let mut ids = alloc::vec![0; forest.len()];
    let mut lens = alloc::vec![0; forest.len()];
    for node in &forest.nodes {
        ids[node.number as usize] = node.id;
        lens[node.number as usize] = node.len;
    }
    if let bpe_core::Atoms::Characters { unknown, .. } = canonical.atoms() {
        let unknown = unknown.unwrap_or(0); // Where there is none, every byte has a fallback.
        for byte in 0..=255 {
            let fallback = canonical.vocabulary().byte_fallback(byte);
            ids.push(fallback.unwrap_or(unknown));
            lens.push(1);
        }
        for len in 0..=4 {
            ids.push(unknown);
            lens.push(len);
        }
    }
    (ids, lens)
}

impl fmt::Debug for LastTokenEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LastTokenEngine")
            .field("canonical", &self.tables.canonical)
            .field("memory", &self.memory())
            .finish_non_exhaustive()
    }
}

//! Bytes in, tokens out, by states that are made when they are met.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use bpe_core::{CanonicalForm, EncodeError, SpanEncoder, TokenId};
use foldhash::fast::FixedState;
use hashbrown::HashTable;

use crate::error::RelationError;
use crate::forests::NONE;
use crate::pairs::PairRelation;
use crate::pending::{PendingText, Tables};

/// Bytes of texts and outputs a state, on average, before the cache is dropped.
const BYTES_PER_STATE: usize = 64;

/// Steps a state, on average, before the cache is dropped, that of each state's first not counted.
const STEPS_PER_STATE: usize = 8;

/// Offsets into texts and outputs are of 32 bits, states beside a byte of 24; the last is no state.
const MOST_STATES: usize = (1 << 24) - 1;

/// The subsequential transducer of 002 section 6, made as it is needed: one step a byte, and the tokens
/// that become certain with it.
///
/// Its states are *pending texts*: the bytes that no certain token covers yet. What follows depends on
/// them alone, and different ones behave differently, so this is the minimal transducer. A state and a
/// step are made when a text first needs them, by the pair relation, and kept in a cache of bounded
/// size, which is dropped when it is full.
///
/// Useful for tokens at the earliest moment, byte by byte, and for composition with other automata. Not
/// meant as the usual span encoder.
///
/// ```
/// use std::sync::Arc;
/// use bpe_core::{CanonicalForm, Dictionary, SpanEncoder, Vocabulary};
/// use bpe_dfa::LazyTransducer;
///
/// let vocabulary = Vocabulary::new([(0, "a"), (1, "b"), (2, "aa")])?;
/// let dictionary = Dictionary::from_merges(vocabulary, [(0, 0)])?;
/// let mut transducer = LazyTransducer::new(&CanonicalForm::new(&dictionary), 1 << 16)?;
/// let mut tokens = Vec::new();
/// transducer.encode_span(b"aaab", &mut tokens)?;
/// assert_eq!(tokens, [2, 0, 1]);
/// // Two states, as in figure 6 (b) of 002: nothing pending, and "a".
/// assert_eq!(transducer.stats().states, 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct LazyTransducer {
    tables: Arc<Tables>,
    limit: usize,
    hasher: FixedState,
    /// Of each state one step, the one met first: most have one.
    steps: Vec<Step>,
    /// Further steps, by state and byte.
    more: Steps,
    /// Of each state its text in `texts`, and its output at the end of the text.
    states: Vec<State>,
    /// States by text.
    by_text: HashTable<u32>,
    texts: Vec<u8>,
    outputs: Vec<TokenId>,
    /// The text of one state, ready to go on.
    live: PendingText,
    live_state: u32,
    stats: TransducerStats,
    current: u32,
}

/// What a transducer has done; see [`LazyTransducer::stats`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TransducerStats {
    /// States in the cache.
    pub states: usize,
    /// Steps in the cache.
    pub steps: usize,
    /// Steps that had to be made.
    pub misses: u64,
    /// How often the cache was full and dropped.
    pub resets: u64,
}

/// 16 bytes.
#[derive(Clone, Copy)]
struct Step {
    /// State and byte, by [`key`]; `NONE` where there is no step yet.
    key: u32,
    next: u32,
    /// The token, where it is one; of more their place in `outputs`.
    output: u32,
    len: u32,
}

#[derive(Clone, Copy)]
struct State {
    text: (u32, u32),
    /// Output at the end of the text; `NONE` as its start where it is not made yet.
    end: (u32, u32),
}

const NO_STEP: Step = Step {
    key: NONE,
    next: 0,
    output: 0,
    len: 0,
};

/// Steps by their keys, with open addressing and no more than half full: one line of memory a look-up, as
/// a rule, where a table with its control bytes apart needs two, and the next byte waits for it.
struct Steps {
    /// A power of two.
    places: Vec<Step>,
    len: usize,
    /// Odd, and another one in each table, so that no text can be made for which keys meet in one place.
    multiplier: u64,
}

impl Steps {
    const SMALLEST: usize = 64;

    fn new() -> Self {
        Self {
            places: vec![NO_STEP; Self::SMALLEST],
            len: 0,
            multiplier: RandomState::new().hash_one(0) | 1,
        }
    }

    /// The place of this key, or the free one where it would be.
    #[inline]
    fn place(&self, key: u32) -> usize {
        let last = self.places.len() - 1;
        let mut place = (u64::from(key).wrapping_mul(self.multiplier) >> 32) as usize & last;
        while self.places[place].key != key && self.places[place].key != NONE {
            place = (place + 1) & last;
        }
        place
    }

    #[inline]
    fn get(&self, key: u32) -> Option<Step> {
        let step = self.places[self.place(key)];
        (step.key == key).then_some(step)
    }

    /// Adds a step whose key is not there. O(1) amortised.
    fn insert(&mut self, step: Step) {
        if 2 * self.len >= self.places.len() {
            let more = vec![NO_STEP; 2 * self.places.len()];
            let old = std::mem::replace(&mut self.places, more);
            for step in old.into_iter().filter(|step| step.key != NONE) {
                let place = self.place(step.key);
                self.places[place] = step;
            }
        }
        let place = self.place(step.key);
        self.places[place] = step;
        self.len += 1;
    }

    fn clear(&mut self) {
        self.places.fill(NO_STEP);
        self.len = 0;
    }
}

impl LazyTransducer {
    /// A transducer that keeps up to `limit` states, at least 2.
    ///
    /// # Errors
    ///
    /// An improper dictionary, or one over characters.
    pub fn new(canonical: &CanonicalForm, limit: usize) -> Result<Self, RelationError> {
        Self::with_relation(canonical, Arc::new(PairRelation::new(canonical)?), limit)
    }

    /// A transducer for a relation that is there; `canonical` is what it was made of.
    ///
    /// # Errors
    ///
    /// A dictionary over characters.
    pub fn with_relation(
        canonical: &CanonicalForm,
        pairs: Arc<PairRelation>,
        limit: usize,
    ) -> Result<Self, RelationError> {
        Ok(Self::of(Tables::new(canonical, pairs)?, limit))
    }

    fn of(tables: Arc<Tables>, limit: usize) -> Self {
        let mut transducer = Self {
            tables,
            limit: limit.clamp(2, MOST_STATES),
            hasher: FixedState::default(),
            steps: Vec::new(),
            more: Steps::new(),
            states: Vec::new(),
            by_text: HashTable::new(),
            texts: Vec::new(),
            outputs: Vec::new(),
            live: PendingText::new(),
            live_state: NONE,
            stats: TransducerStats::default(),
            current: 0,
        };
        transducer.intern(&[]);
        transducer
    }

    /// Takes the next byte of a span, and appends the tokens that have become certain, as early as can
    /// be. O(1) where the step is in the cache.
    ///
    /// # Errors
    ///
    /// No token stands for the byte; the span is then as before.
    #[inline]
    pub fn push(&mut self, byte: u8, tokens: &mut Vec<TokenId>) -> Result<(), EncodeError> {
        let key = key(self.current, byte);
        let step = self.steps[self.current as usize];
        let step = match step.key == key {
            true => step,
            false => match self.more.get(key) {
                Some(step) => step,
                None => self.make_step(byte)?,
            },
        };
        self.current = step.next;
        match step.len {
            0 => {}
            1 => tokens.push(step.output),
            len => {
                let start = step.output as usize;
                tokens.extend_from_slice(&self.outputs[start..start + len as usize]);
            }
        }
        Ok(())
    }

    /// Ends the span, and appends its last tokens.
    pub fn finish(&mut self, tokens: &mut Vec<TokenId>) {
        let state = self.current as usize;
        self.current = 0;
        if self.states[state].end.0 == NONE {
            let text = self.text(state as u32).to_vec();
            let start = self.outputs.len();
            let mut pending = PendingText::new();
            let mut certain = Vec::new();
            for byte in text {
                // Never an error, and never certain: it is a pending text.
                let _ = pending.push(&self.tables, byte, &mut certain);
            }
            pending.append_rest(&mut self.outputs);
            self.states[state].end = (start as u32, (self.outputs.len() - start) as u32);
        }
        let (start, len) = self.states[state].end;
        tokens.extend_from_slice(&self.outputs[start as usize..(start + len) as usize]);
    }

    /// The bytes of the span so far that no certain token covers.
    pub fn pending(&self) -> &[u8] {
        self.text(self.current)
    }

    /// What is in the cache, and how often it did not help.
    pub fn stats(&self) -> TransducerStats {
        let used = self.steps.iter().filter(|step| step.key != NONE).count();
        TransducerStats {
            states: self.states.len(),
            steps: used + self.more.len,
            ..self.stats
        }
    }

    fn text(&self, state: u32) -> &[u8] {
        let (start, len) = self.states[state as usize].text;
        &self.texts[start as usize..(start + len) as usize]
    }

    #[cold]
    fn make_step(&mut self, byte: u8) -> Result<Step, EncodeError> {
        self.stats.misses += 1;
        let from = self.current;
        let mut live = std::mem::replace(&mut self.live, PendingText::new());
        let mut output = Vec::new();
        if self.live_state != from {
            live.clear();
            for &byte in self.text(from) {
                let _ = live.push(&self.tables, byte, &mut output);
            }
        }
        let pushed = live.push(&self.tables, byte, &mut output);
        if pushed.is_err() {
            (self.live, self.live_state) = (live, from);
            return Err(EncodeError::missing_byte(byte, 0));
        }
        let is_full = self.states.len() >= self.limit
            || self.more.len >= self.limit * STEPS_PER_STATE
            || self.texts.len() + 4 * self.outputs.len() > self.limit * BYTES_PER_STATE;
        if is_full {
            self.drop_cache();
        }
        let next = self.intern(live.text());
        let place = match output[..] {
            [token] => token,
            _ => {
                let place = self.outputs.len() as u32;
                self.outputs.extend_from_slice(&output);
                place
            }
        };
        let step = Step {
            key: key(from, byte),
            next,
            output: place,
            len: output.len() as u32,
        };
        if !is_full {
            let first = &mut self.steps[from as usize];
            match first.key {
                NONE => *first = step,
                _ => self.more.insert(step),
            }
        }
        (self.live, self.live_state) = (live, step.next);
        Ok(step)
    }

    fn drop_cache(&mut self) {
        self.stats.resets += 1;
        self.steps.clear();
        self.more.clear();
        self.states.clear();
        self.by_text.clear();
        self.texts.clear();
        self.outputs.clear();
        self.live_state = NONE;
        self.intern(&[]);
    }

    /// The state with this text.
    fn intern(&mut self, text: &[u8]) -> u32 {
        let hasher = &self.hasher;
        let hash = hasher.hash_one(text);
        let (states, texts) = (&self.states, &self.texts);
        let text_of = |state: u32| {
            let (start, len) = states[state as usize].text;
            &texts[start as usize..(start + len) as usize]
        };
        if let Some(&state) = self.by_text.find(hash, |&state| text_of(state) == text) {
            return state;
        }
        let state = states.len() as u32;
        self.by_text
            .insert_unique(hash, state, |&state| hasher.hash_one(text_of(state)));
        self.states.push(State {
            text: (self.texts.len() as u32, text.len() as u32),
            end: (NONE, 0),
        });
        self.steps.push(NO_STEP);
        self.texts.extend_from_slice(text);
        state
    }
}

/// A state and a byte as one number. Not `NONE`: states are fewer than that.
#[inline]
fn key(state: u32, byte: u8) -> u32 {
    state << 8 | u32::from(byte)
}

impl SpanEncoder for LazyTransducer {
    fn encode_span(&mut self, span: &[u8], tokens: &mut Vec<TokenId>) -> Result<(), EncodeError> {
        let start = tokens.len();
        self.current = 0;
        for (offset, &byte) in span.iter().enumerate() {
            if self.push(byte, tokens).is_err() {
                tokens.truncate(start);
                self.current = 0;
                return Err(EncodeError::missing_byte(byte, offset));
            }
        }
        self.finish(tokens);
        Ok(())
    }

    fn clone_box(&self) -> Box<dyn SpanEncoder> {
        Box::new(Self::of(Arc::clone(&self.tables), self.limit))
    }
}

impl fmt::Debug for LazyTransducer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LazyTransducer")
            .field("limit", &self.limit)
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}

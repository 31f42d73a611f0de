//! Bytes in, tokens out, by states that are made when they are met.

use std::fmt;
use std::hash::BuildHasher;
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

/// Offsets into texts and outputs are of 32 bits.
const MOST_STATES: usize = 1 << 24;

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
    more: HashTable<(u64, Step)>,
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

#[derive(Clone, Copy)]
struct Step {
    /// The byte; `NONE` where there is no step yet.
    byte: u32,
    next: u32,
    /// The tokens, in `outputs`.
    start: u32,
    len: u32,
}

#[derive(Clone, Copy)]
struct State {
    text: (u32, u32),
    /// Output at the end of the text; `NONE` as its start where it is not made yet.
    end: (u32, u32),
}

const NO_STEP: Step = Step {
    byte: NONE,
    next: 0,
    start: 0,
    len: 0,
};

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
            more: HashTable::new(),
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
        let step = self.steps[self.current as usize];
        let step = match step.byte == u32::from(byte) {
            true => step,
            false => match self.other_step(self.current, byte) {
                Some(step) => step,
                None => self.make_step(byte)?,
            },
        };
        self.current = step.next;
        match step.len {
            0 => {}
            1 => tokens.push(self.outputs[step.start as usize]),
            len => {
                let start = step.start as usize;
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
        let used = self.steps.iter().filter(|step| step.byte != NONE).count();
        TransducerStats {
            states: self.states.len(),
            steps: used + self.more.len(),
            ..self.stats
        }
    }

    fn text(&self, state: u32) -> &[u8] {
        let (start, len) = self.states[state as usize].text;
        &self.texts[start as usize..(start + len) as usize]
    }

    #[inline]
    fn other_step(&self, state: u32, byte: u8) -> Option<Step> {
        let key = key(state, byte);
        self.more
            .find(hash(key), |&(other, _)| other == key)
            .map(|found| found.1)
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
            || self.texts.len() + 4 * self.outputs.len() > self.limit * BYTES_PER_STATE;
        if is_full {
            self.drop_cache();
        }
        let step = Step {
            byte: byte.into(),
            next: self.intern(live.text()),
            start: self.outputs.len() as u32,
            len: output.len() as u32,
        };
        self.outputs.extend_from_slice(&output);
        if !is_full {
            let place = &mut self.steps[from as usize];
            if place.byte == NONE {
                *place = step;
            } else {
                let key = key(from, byte);
                let value = (key, step);
                self.more
                    .insert_unique(hash(key), value, |&(key, _)| hash(key));
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

fn key(state: u32, byte: u8) -> u64 {
    u64::from(state) << 8 | u64::from(byte)
}

/// Keys are small numbers that this program gives: no need to defend against chosen ones.
#[inline]
fn hash(key: u64) -> u64 {
    let mixed = key.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed ^ mixed >> 32
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

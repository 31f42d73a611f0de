//! Where a pre-tokenizer cuts, as an automaton that others are multiplied with.

use std::fmt;
use std::sync::Arc;

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use crate::explicit::{State, StringDfa};

/// An unambiguous automaton over bytes that says where pieces start: before each byte one does or does
/// not, and of all runs over a text exactly one is accepted, that with the right answers. States are
/// numbers.
///
/// The crate `bytepair` has one for each pre-tokenizer (`Tokenizer::token_dfa`).
pub trait Boundaries: Send + Sync + std::panic::RefUnwindSafe {
    /// The state before the first byte, where a piece must start.
    fn start(&self) -> u64;

    /// The states in which a text can be where no character has begun, the start among them. What can
    /// follow where a piece starts can follow from one of these.
    fn between_characters(&self) -> Vec<u64>;

    /// Calls `visit` for each way to go on with a byte: whether a piece starts before it, and the state
    /// after it.
    fn for_each_step(&self, state: u64, byte: u8, visit: &mut dyn FnMut(bool, u64));

    /// Whether a text may end in this state.
    fn accepts(&self, state: u64) -> bool;
}

/// A set of states of the boundaries, by number: the readings of a text that can still come true. 0 is
/// none.
pub(crate) type Readings = u32;

/// No readings.
pub(crate) const NO_READINGS: Readings = 0;

/// The readings before the first byte.
pub(crate) const FIRST_READINGS: Readings = 1;

/// Sets that have a table of what follows; those of the known patterns at the beginning of a character are
/// fewer.
const MOST_ROWS: usize = 1024;

type Row = [[Readings; 2]; 256];

/// Not yet known.
const OPEN: [Readings; 2] = [Readings::MAX; 2];

/// Sets of states that one text leads to, made when they are asked for.
pub(crate) struct Lexing {
    boundaries: Arc<dyn Boundaries>,
    sets: Vec<Box<[u64]>>,
    numbers: HashMap<Box<[u64]>, Readings, FixedState>,
    /// Of a set and a byte, the sets after it where no piece starts before the byte, and where one does: of
    /// the first sets as a table, which is made when they are met.
    rows: Vec<Option<Box<Row>>>,
    steps: HashMap<(Readings, u8), [Readings; 2], FixedState>,
    /// Whether a text of the language ends well from there.
    alive: HashMap<(State, u64), bool, FixedState>,
    /// Of a state of the language and a set what of the set is alive.
    pruned: HashMap<(State, Readings), Readings, FixedState>,
}

impl Lexing {
    pub(crate) fn new(boundaries: Arc<dyn Boundaries>) -> Self {
        let mut lexing = Self {
            sets: Vec::new(),
            numbers: HashMap::default(),
            rows: (0..MOST_ROWS).map(|_| None).collect(),
            steps: HashMap::default(),
            alive: HashMap::default(),
            pruned: HashMap::default(),
            boundaries,
        };
        lexing.number(Vec::new());
        lexing.number(vec![lexing.boundaries.start()]);
        lexing
    }

    /// The set of these states.
    pub(crate) fn set(&mut self, states: &[u64]) -> Readings {
        self.number(states.to_vec())
    }

    /// A text before which a piece ends, in one of the readings: none, or a short one with which another
    /// begins.
    pub(crate) fn end(&mut self, all: &StringDfa, readings: Readings) -> Option<Vec<u8>> {
        if self.accepts(readings) {
            return Some(Vec::new());
        }
        for byte in 0..=u8::MAX {
            let next = self.step(readings, byte, true);
            let next = self.prune(all, 0, next);
            if next != NO_READINGS {
                return self.rest(next).map(|rest| [&[byte], &rest[..]].concat());
            }
        }
        None
    }

    /// A shortest text that ends well from some of the readings.
    fn rest(&mut self, readings: Readings) -> Option<Vec<u8>> {
        let mut seen = vec![readings];
        let mut open = std::collections::VecDeque::from([(readings, Vec::new())]);
        while let Some((readings, text)) = open.pop_front() {
            if self.accepts(readings) {
                return Some(text);
            }
            for byte in 0..=u8::MAX {
                let [inside, first] = [false, true].map(|starts| self.step(readings, byte, starts));
                let next = self.union(inside, first);
                if next != NO_READINGS && !seen.contains(&next) {
                    seen.push(next);
                    open.push_back((next, [&text[..], &[byte]].concat()));
                }
            }
        }
        None
    }

    /// Whether one of the readings may end here.
    pub(crate) fn accepts(&self, readings: Readings) -> bool {
        let mut states = self.states(readings).iter();
        states.any(|&state| self.boundaries.accepts(state))
    }

    /// The readings after the bytes of a token, inside of which no piece starts; before which one does, or
    /// none.
    pub(crate) fn after(&mut self, readings: Readings, token: &[u8], starts: bool) -> Readings {
        let mut readings = readings;
        let mut starts = starts;
        for &byte in token {
            if readings == NO_READINGS {
                break;
            }
            readings = self.step(readings, byte, std::mem::take(&mut starts));
        }
        readings
    }

    pub(crate) fn step(&mut self, readings: Readings, byte: u8, starts: bool) -> Readings {
        if readings == NO_READINGS {
            return NO_READINGS;
        }
        if let Some(row) = self.rows.get_mut(readings as usize) {
            let next = row.get_or_insert_with(|| Box::new([OPEN; 256]))[usize::from(byte)];
            if next != OPEN {
                return next[usize::from(starts)];
            }
        } else if let Some(next) = self.steps.get(&(readings, byte)) {
            return next[usize::from(starts)];
        }
        let mut next = [Vec::new(), Vec::new()];
        for &state in self.states(readings) {
            self.boundaries
                .for_each_step(state, byte, &mut |starts, state| {
                    next[usize::from(starts)].push(state);
                });
        }
        let next = next.map(|states| self.number(states));
        match self.rows.get_mut(readings as usize) {
            Some(Some(row)) => row[usize::from(byte)] = next,
            _ => drop(self.steps.insert((readings, byte), next)),
        }
        next[usize::from(starts)]
    }

    /// All readings of one or the other.
    pub(crate) fn union(&mut self, one: Readings, other: Readings) -> Readings {
        match (one, other) {
            (NO_READINGS, one) | (one, NO_READINGS) => one,
            (one, other) => {
                let states = [self.states(one), self.states(other)].concat();
                self.number(states)
            }
        }
    }

    /// The readings that come true for some text that goes on as the language says.
    pub(crate) fn prune(
        &mut self,
        language: &StringDfa,
        text: State,
        readings: Readings,
    ) -> Readings {
        if readings == NO_READINGS {
            return NO_READINGS;
        }
        if let Some(&pruned) = self.pruned.get(&(text, readings)) {
            return pruned;
        }
        let mut states = self.states(readings).to_vec();
        states.retain(|&state| self.is_alive(language, text, state));
        let pruned = self.number(states);
        self.pruned.insert((text, readings), pruned);
        pruned
    }

    /// How many sets there are.
    pub(crate) fn len(&self) -> usize {
        self.sets.len()
    }

    pub(crate) fn states(&self, readings: Readings) -> &[u64] {
        self.sets
            .get(readings as usize)
            .map_or(&[], |states| states)
    }

    fn number(&mut self, mut states: Vec<u64>) -> Readings {
        states.sort_unstable();
        states.dedup();
        let states = states.into_boxed_slice();
        let number = self.sets.len() as Readings;
        *self.numbers.entry(states).or_insert_with_key(|states| {
            self.sets.push(states.clone());
            number
        })
    }

    /// Whether both end well with some text. Mostly one of few bytes does, so those are tried first.
    fn is_alive(&mut self, language: &StringDfa, text: State, state: u64) -> bool {
        if let Some(&alive) = self.alive.get(&(text, state)) {
            return alive;
        }
        self.search(language, (text, state), true) || self.search(language, (text, state), false)
    }

    /// Searches for a text with which both end well, and notes what leads there. With `ascii_first` other
    /// bytes are tried only where no ASCII goes on; without, what was looked at in vain is dead.
    fn search(&mut self, language: &StringDfa, start: (State, u64), ascii_first: bool) -> bool {
        // Where each was reached from.
        let mut open = vec![(start, usize::MAX)];
        let mut seen: HashMap<(State, u64), (), FixedState> = HashMap::default();
        seen.insert(start, ());
        let mut found = None;
        let mut at = 0;
        while let (None, Some(&((text, state), _))) = (found, open.get(at)) {
            if language.is_accepting(text) && self.boundaries.accepts(state) {
                found = Some(at);
                break;
            }
            let mut goes_on = false;
            for byte in 0..=u8::MAX {
                if ascii_first && goes_on && !byte.is_ascii() {
                    break;
                }
                let Some(text) = language.next(text, byte) else {
                    continue;
                };
                let alive = &self.alive;
                self.boundaries.for_each_step(state, byte, &mut |_, state| {
                    let next = (text, state);
                    goes_on = true;
                    match alive.get(&next) {
                        Some(true) => found = Some(at),
                        Some(false) => {}
                        None => {
                            if seen.insert(next, ()).is_none() {
                                open.push((next, at));
                            }
                        }
                    }
                });
                if found.is_some() {
                    break;
                }
            }
            at += 1;
        }
        let Some(last) = found else {
            if !ascii_first {
                for (pair, _) in open {
                    self.alive.insert(pair, false);
                }
            }
            return false;
        };
        let mut place = last;
        while let Some(&(pair, from)) = open.get(place) {
            self.alive.insert(pair, true);
            place = from;
        }
        true
    }
}

impl fmt::Debug for Lexing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lexing")
            .field("sets", &self.sets.len())
            .finish_non_exhaustive()
    }
}

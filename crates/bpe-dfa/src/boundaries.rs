//! Where a pre-tokenizer cuts, as an automaton that others are multiplied with.

use std::fmt;
use std::sync::Arc;

use bpe_core::CanonicalForm;
use foldhash::fast::FixedState;
use hashbrown::HashMap;

use crate::explicit::{State, StringDfa};
use crate::whole_pieces::{NO_TEXT, PieceText, WHOLE, WholeTexts};

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

/// The boundaries of a text that is one piece.
#[derive(Debug, Clone, Copy, Default)]
pub struct OnePiece;

impl Boundaries for OnePiece {
    fn start(&self) -> u64 {
        0
    }

    fn between_characters(&self) -> Vec<u64> {
        vec![0, 1]
    }

    fn for_each_step(&self, state: u64, _: u8, visit: &mut dyn FnMut(bool, u64)) {
        visit(state == 0, 1);
    }

    fn accepts(&self, _: u64) -> bool {
        true
    }
}

/// One way to read a text: a state of the boundaries, and what is known of the text of the piece at hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Reading {
    pub(crate) state: u64,
    piece: PieceText,
}

/// A set of readings of a text that can still come true, by number. 0 is none.
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

/// Readings of all sets, and steps between them that are kept, each: some 50 MB together at most.
const MOST_KEPT: usize = 1 << 20;

/// Answers whether a reading comes true that are kept, some 30 bytes each: 64 to 128 MB.
const MOST_ANSWERS: usize = 1 << 21;

/// Sets of readings that one text leads to, made when they are asked for.
pub(crate) struct Lexing {
    boundaries: Arc<dyn Boundaries>,
    /// What merged tokens must not make a piece of.
    wholes: WholeTexts,
    sets: Vec<Arc<[Reading]>>,
    numbers: HashMap<Arc<[Reading]>, Readings, FixedState>,
    /// Readings of all sets.
    kept: usize,
    /// Of a set and a byte, the sets after it where no piece starts before the byte, and where one does: of
    /// the first sets as a table, which is made when they are met.
    rows: Vec<Option<Box<Row>>>,
    steps: HashMap<(Readings, u8), [Readings; 2], FixedState>,
    /// Whether a text of the language ends well from there.
    alive: HashMap<(State, Reading), bool, FixedState>,
    most_answers: usize,
    /// Of a state of the language and a set what of the set is alive.
    pruned: HashMap<(State, Readings), Readings, FixedState>,
}

impl Lexing {
    /// Pieces of any tokens.
    pub(crate) fn new(boundaries: Arc<dyn Boundaries>) -> Self {
        Self::with_texts(boundaries, WholeTexts::none())
    }

    /// Pieces where those that are a token as a whole become it, if the dictionary says so.
    pub(crate) fn with_whole_pieces(
        boundaries: Arc<dyn Boundaries>,
        canonical: &CanonicalForm,
    ) -> Self {
        Self::with_texts(boundaries, WholeTexts::new(canonical))
    }

    fn with_texts(boundaries: Arc<dyn Boundaries>, wholes: WholeTexts) -> Self {
        let mut lexing = Self {
            wholes,
            sets: Vec::new(),
            numbers: HashMap::default(),
            kept: 0,
            rows: (0..MOST_ROWS).map(|_| None).collect(),
            steps: HashMap::default(),
            alive: HashMap::default(),
            most_answers: MOST_ANSWERS,
            pruned: HashMap::default(),
            boundaries,
        };
        lexing.forget();
        lexing
    }

    /// Forgets all sets but the first two, and all that was found out. Numbers of sets are void then.
    pub(crate) fn forget(&mut self) {
        self.sets.clear();
        self.numbers.clear();
        self.kept = 0;
        self.rows.fill_with(|| None);
        self.steps.clear();
        self.alive.clear();
        self.pruned.clear();
        self.number(Vec::new());
        self.number(vec![Reading {
            state: self.boundaries.start(),
            piece: NO_TEXT,
        }]);
    }

    /// Whether so much is kept that it is time to forget it.
    pub(crate) fn is_full(&self, most: usize) -> bool {
        let kept = [
            self.kept,
            self.sets.len(),
            self.steps.len(),
            self.pruned.len(),
        ];
        kept.into_iter().any(|kept| kept > most.min(MOST_KEPT))
    }

    /// Keeps at most so many answers, if that is fewer.
    pub(crate) fn keep_answers(&mut self, most: usize) {
        self.most_answers = most.min(MOST_ANSWERS);
    }

    /// The set of these states, of whose pieces nothing is known.
    pub(crate) fn set(&mut self, states: &[u64]) -> Readings {
        let reading = |&state| Reading {
            state,
            piece: NO_TEXT,
        };
        self.number(states.iter().map(reading).collect())
    }

    /// The set of these readings.
    pub(crate) fn number_of(&mut self, readings: &[Reading]) -> Readings {
        match self.numbers.get(readings) {
            Some(&number) => number,
            None => self.number(readings.to_vec()),
        }
    }

    /// The readings with this number.
    pub(crate) fn shared(&self, readings: Readings) -> Arc<[Reading]> {
        self.sets
            .get(readings as usize)
            .map_or_else(|| Arc::from([]), Arc::clone)
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
        self.accept_some(self.states(readings))
    }

    pub(crate) fn accept_some(&self, readings: &[Reading]) -> bool {
        readings.iter().any(|&reading| self.may_end(reading))
    }

    fn may_end(&self, reading: Reading) -> bool {
        self.boundaries.accepts(reading.state) && !self.wholes.is_one(reading.piece)
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

    /// The readings after the bytes of a token that only a whole piece becomes.
    pub(crate) fn after_whole(&mut self, readings: Readings, token: &[u8]) -> Readings {
        let after = self.after(readings, token, true);
        let mut all = self.states(after).to_vec();
        for reading in &mut all {
            reading.piece = WHOLE;
        }
        self.number(all)
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
        for &reading in self.states(readings) {
            self.for_each_step(reading, byte, &mut |starts, reading| {
                next[usize::from(starts)].push(reading);
            });
        }
        let next = next.map(|states| self.number(states));
        match self.rows.get_mut(readings as usize) {
            Some(Some(row)) => row[usize::from(byte)] = next,
            _ => drop(self.steps.insert((readings, byte), next)),
        }
        next[usize::from(starts)]
    }

    /// The ways to go on with a byte. A piece that is one of the whole texts, and is made of merged tokens,
    /// has no end.
    fn for_each_step(&self, reading: Reading, byte: u8, visit: &mut dyn FnMut(bool, Reading)) {
        let (wholes, piece) = (&self.wholes, reading.piece);
        self.boundaries
            .for_each_step(reading.state, byte, &mut |starts, state| {
                let piece = match starts {
                    true if wholes.is_one(piece) => return,
                    true => wholes.first(byte),
                    false => wholes.next(piece, byte),
                };
                visit(starts, Reading { state, piece });
            });
    }

    /// All readings of one or the other.
    pub(crate) fn union(&mut self, one: Readings, other: Readings) -> Readings {
        match (one, other) {
            (NO_READINGS, one) | (one, NO_READINGS) => one,
            (one, other) => {
                let both = [self.states(one), self.states(other)].concat();
                self.number(both)
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
        if self.alive.len() > self.most_answers {
            self.alive.clear();
        }
        let mut all = self.states(readings).to_vec();
        all.retain(|&reading| self.is_alive(language, text, reading));
        let pruned = self.number(all);
        self.pruned.insert((text, readings), pruned);
        pruned
    }

    /// How many sets there are.
    pub(crate) fn len(&self) -> usize {
        self.sets.len()
    }

    pub(crate) fn states(&self, readings: Readings) -> &[Reading] {
        self.sets.get(readings as usize).map_or(&[], |all| all)
    }

    fn number(&mut self, mut all: Vec<Reading>) -> Readings {
        all.sort_unstable();
        all.dedup();
        if let Some(&number) = self.numbers.get(&all[..]) {
            return number;
        }
        let number = self.sets.len() as Readings;
        self.kept += all.len();
        let all: Arc<[Reading]> = all.into();
        self.sets.push(Arc::clone(&all));
        self.numbers.insert(all, number);
        number
    }

    /// Whether both end well with some text. Mostly one of few bytes does, so those are tried first.
    fn is_alive(&mut self, language: &StringDfa, text: State, reading: Reading) -> bool {
        if let Some(&alive) = self.alive.get(&(text, reading)) {
            return alive;
        }
        self.search(language, (text, reading), true)
            || self.search(language, (text, reading), false)
    }

    /// Searches for a text with which both end well, and notes what leads there. With `ascii_first` other
    /// bytes are tried only where no ASCII goes on; without, what was looked at in vain is dead.
    fn search(&mut self, language: &StringDfa, start: (State, Reading), ascii_first: bool) -> bool {
        // Where each was reached from.
        let mut open = vec![(start, usize::MAX)];
        let mut seen: HashMap<(State, Reading), (), FixedState> = HashMap::default();
        seen.insert(start, ());
        let mut found = None;
        let mut at = 0;
        while let (None, Some(&((text, reading), _))) = (found, open.get(at)) {
            if language.is_accepting(text) && self.may_end(reading) {
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
                self.for_each_step(reading, byte, &mut |_, reading| {
                    let next = (text, reading);
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

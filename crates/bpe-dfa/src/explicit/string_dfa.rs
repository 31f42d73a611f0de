//! Automata over bytes: regular languages of texts.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use regex_automata::dfa::{Automaton as _, StartKind, dense};
use regex_automata::nfa::thompson;
use regex_automata::util::primitives::StateID;
use regex_automata::util::{start, syntax};
use regex_automata::{Anchored, MatchKind};

use super::error::Kind;
use super::partition::{Edge, Graph, Renaming};
use super::{ExplicitError, Limits, State};

/// No transition.
const NONE: State = State::MAX;

/// A deterministic automaton over bytes, its table in full: 1 KiB a state. Transitions may be missing.
///
/// Useful for the language of a regular expression; not useful for search in a text, for which the
/// automata of `regex-automata` are made.
///
/// ```
/// use bpe_dfa::explicit::{Limits, StringDfa};
///
/// let dfa = StringDfa::from_regex("(ab)*", &Limits::default())?;
/// assert_eq!(dfa.state_count(), 2);
/// assert!(dfa.accepts(b"abab") && !dfa.accepts(b"aba"));
/// # Ok::<(), bpe_dfa::explicit::ExplicitError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct StringDfa {
    start: State,
    accepting: Vec<bool>,
    table: Vec<[State; 256]>,
}

impl StringDfa {
    /// The automaton of all byte strings: one state.
    pub fn universal() -> Self {
        Self {
            start: 0,
            accepting: vec![true],
            table: vec![[0; 256]],
        }
    }

    /// An automaton from its parts. The states are the numbers below `states`, at least one.
    ///
    /// # Errors
    ///
    /// A state that is none, two transitions of one byte from a state, more states than the limits allow.
    pub fn new(
        states: usize,
        start: State,
        accepting: impl IntoIterator<Item = State>,
        transitions: impl IntoIterator<Item = (State, u8, State)>,
        limits: &Limits,
    ) -> Result<Self, ExplicitError> {
        check_size(states, limits)?;
        let check = |state: State| match (state as usize) < states {
            true => Ok(state as usize),
            false => Err(ExplicitError(Kind::NoState { state, states })),
        };
        check(start)?;
        let mut dfa = Self {
            start,
            accepting: vec![false; states],
            table: vec![[NONE; 256]; states],
        };
        for state in accepting {
            dfa.accepting[check(state)?] = true;
        }
        for (from, byte, to) in transitions {
            check(to)?;
            let cell = &mut dfa.table[check(from)?][usize::from(byte)];
            if *cell != NONE {
                let label = format!("byte 0x{byte:02X}");
                return Err(ExplicitError(Kind::SecondTransition { from, label }));
            }
            *cell = to;
        }
        Ok(dfa)
    }

    /// The minimal automaton of the texts that `pattern` matches as a whole, in the syntax of the
    /// `regex` crate. A pattern may match bytes that are not UTF-8 (`(?s-u:.)`). A language without a
    /// text gives one state that accepts nothing.
    ///
    /// Cost: that of making the pattern's automaton, exponential in the pattern's length at worst
    /// and stopped by the limits; then O(n log n) for n transitions.
    ///
    /// # Errors
    ///
    /// A pattern that is malformed, or has what automata cannot do (look-around beyond `^`, `$`,
    /// `\A`, `\z` and word boundaries of ASCII), or that needs more than the limits allow.
    pub fn from_regex(pattern: &str, limits: &Limits) -> Result<Self, ExplicitError> {
        let doing = "the automaton of the regular expression";
        // All matches, not the first: acceptance asks whether some way of matching reaches the end.
        let config = dense::Config::new()
            .match_kind(MatchKind::All)
            .start_kind(StartKind::Anchored)
            .accelerate(false)
            .dfa_size_limit(Some(limits.bytes))
            .determinize_size_limit(Some(limits.bytes));
        let nfa = thompson::Config::new()
            .utf8(false)
            .nfa_size_limit(Some(limits.bytes));
        let nfa = thompson::Compiler::new()
            .configure(nfa)
            .syntax(syntax::Config::new().utf8(false))
            .build(pattern)
            .map_err(|error| match error.size_limit() {
                Some(_) => ExplicitError::bytes(doing, limits.bytes),
                None => regex_error(&error),
            })?;
        let dfa = dense::Builder::new()
            .configure(config)
            .build_from_nfa(&nfa)
            .map_err(|error| match error.is_size_limit_exceeded() {
                true => ExplicitError::bytes(doing, limits.bytes),
                false => regex_error(&error),
            })?;
        let config = start::Config::new().anchored(Anchored::Yes);
        let first = dfa.start_state(&config).map_err(|e| regex_error(&e))?;
        let mut number = HashMap::from([(first, 0)]);
        let mut states: Vec<StateID> = vec![first];
        let mut result = Self {
            start: 0,
            accepting: Vec::new(),
            table: Vec::new(),
        };
        while let Some(&state) = states.get(result.table.len()) {
            let mut row = [NONE; 256];
            for byte in 0..=255 {
                let next = dfa.next_state(state, byte);
                if dfa.is_dead_state(next) {
                    continue;
                }
                row[usize::from(byte)] = *number.entry(next).or_insert_with(|| {
                    states.push(next);
                    states.len() as State - 1
                });
            }
            check_states(doing, states.len(), limits)?;
            // A match is reported one byte late, so at the end of a text.
            result
                .accepting
                .push(dfa.is_match_state(dfa.next_eoi_state(state)));
            result.table.push(row);
        }
        Ok(result.minimize())
    }

    /// The number of states.
    pub fn state_count(&self) -> usize {
        self.table.len()
    }

    /// The state in which reading starts.
    pub fn start(&self) -> State {
        self.start
    }

    /// Whether a text may end in `state`. False for numbers of no state.
    pub fn is_accepting(&self, state: State) -> bool {
        self.accepting.get(state as usize) == Some(&true)
    }

    /// The state after `byte` in `state`, where there is one. O(1).
    #[inline]
    pub fn next(&self, state: State, byte: u8) -> Option<State> {
        let next = self.table.get(state as usize)?[usize::from(byte)];
        (next != NONE).then_some(next)
    }

    /// The state after `text` in `state`, where there is one. O(n).
    pub fn walk(&self, state: State, text: &[u8]) -> Option<State> {
        text.iter()
            .try_fold(state, |state, &byte| self.next(state, byte))
    }

    /// Whether `text` is in the language. O(n).
    pub fn accepts(&self, text: &[u8]) -> bool {
        self.walk(self.start, text)
            .is_some_and(|state| self.is_accepting(state))
    }

    /// Whether no text is accepted. O(transitions).
    pub fn is_empty(&self) -> bool {
        let trimmed = self.trim();
        !trimmed.accepting.contains(&true)
    }

    /// The transitions, by state and byte.
    pub fn transitions(&self) -> impl Iterator<Item = (State, u8, State)> {
        (0..).zip(&self.table).flat_map(|(from, row)| {
            (0..=255)
                .zip(row)
                .filter(|&(_, &to)| to != NONE)
                .map(move |(byte, &to)| (from, byte, to))
        })
    }

    /// The same language without the states that no accepted text passes, the others in their order.
    /// O(transitions).
    pub fn trim(&self) -> Self {
        self.renamed(&self.graph().trim())
    }

    /// The smallest automaton of the language, its states in the order in which a breadth-first search
    /// meets them: two automata are equal exactly if their languages are. O(n log n) for n transitions.
    pub fn minimize(&self) -> Self {
        self.renamed(&self.graph().minimal())
    }

    fn graph(&self) -> Graph {
        // One edge for all bytes that no state tells apart: most patterns have few such classes. The
        // first byte of each is its label, so that the order of labels is that of bytes.
        let mut first_of: HashMap<Vec<State>, u8> = HashMap::new();
        let mut labels = Vec::new();
        for byte in 0..=255 {
            let column = self.table.iter().map(|row| row[usize::from(byte)]);
            let column: Vec<State> = column.collect();
            if let Entry::Vacant(entry) = first_of.entry(column) {
                entry.insert(byte);
                labels.push(byte);
            }
        }
        let mut edges = Vec::new();
        for (from, row) in (0..).zip(&self.table) {
            edges.extend(labels.iter().filter_map(|&byte| {
                let to = row[usize::from(byte)];
                let label = u32::from(byte);
                (to != NONE).then_some(Edge { from, label, to })
            }));
        }
        Graph {
            start: self.start,
            classes: self.accepting.iter().map(|&a| a.then_some(0)).collect(),
            edges,
        }
    }

    fn renamed(&self, renaming: &Renaming) -> Self {
        let mut table = vec![[NONE; 256]; renaming.count];
        for (from, byte, to) in self.transitions() {
            if let Some((from, to)) = renaming.ends(from, to) {
                table[from as usize][usize::from(byte)] = to;
            }
        }
        let representatives = renaming.representatives();
        Self {
            start: renaming.new_of[self.start as usize].unwrap_or(0),
            accepting: representatives
                .iter()
                .map(|&state| self.accepting[state as usize])
                .collect(),
            table,
        }
    }
}

impl core::fmt::Debug for StringDfa {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let accepting: Vec<usize> = (0..self.state_count())
            .filter(|&state| self.accepting[state])
            .collect();
        f.debug_struct("StringDfa")
            .field("states", &self.state_count())
            .field("start", &self.start)
            .field("accepting", &accepting)
            .finish_non_exhaustive()
    }
}

fn check_size(states: usize, limits: &Limits) -> Result<(), ExplicitError> {
    let doing = "an automaton over bytes";
    check_states(doing, states, limits)
}

/// An automaton has a state at least, and no more than the limits allow.
fn check_states(doing: &'static str, states: usize, limits: &Limits) -> Result<(), ExplicitError> {
    let most = limits.states.min(NONE as usize);
    if states > most {
        return Err(ExplicitError::states(doing, most));
    }
    if states.saturating_mul(size_of::<[State; 256]>()) > limits.bytes {
        return Err(ExplicitError::bytes(doing, limits.bytes));
    }
    Ok(())
}

/// The message of an error, with those of its causes.
fn regex_error(error: &dyn core::error::Error) -> ExplicitError {
    let mut message = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        message = format!("{message}: {error}");
        cause = error.source();
    }
    ExplicitError(Kind::Regex { message })
}

//! The lexing machine: which spans does a whole segment have?
//!
//! The machine reads a segment character by character and guesses, before each, whether a span
//! starts there. A guess that a match ends here is right if no preferred thread ever matches
//! later, so these threads are kept as an obligation: they must all fail. A guess that the match
//! goes on is right if one of them does match. Every segment has one run whose guesses are all
//! right, and it is accepted at the end; so the machine is nondeterministic and unambiguous. A
//! state from which no text leads to acceptance is dropped. So if two states can be reached by
//! one text, both guesses can still come true: the boundary is undecided.

use std::collections::{BTreeSet, HashMap};

use super::AnalysisError;
use super::cells::Cell;
use super::scanner::Scanner;

/// States beyond which a pattern is refused.
const MOST_STATES: usize = 20_000;

/// What stands before a character.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Output {
    /// No boundary: the character goes on with the span.
    Inside,
    /// A match starts with the character.
    Word,
    /// A stretch without a match starts with the character.
    Gap,
}

impl Output {
    pub(crate) fn is_boundary(self) -> bool {
        self != Self::Inside
    }
}

pub(crate) type State = u16;

/// An unambiguous machine in which every state is reached by some text and accepts some rest of it.
/// State 0 is the start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Machine {
    /// For each state and cell what can follow.
    steps: Vec<Vec<Vec<(Output, State)>>>,
    accepts: Vec<bool>,
}

/// Where a guessed run stands.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Mode {
    Start,
    Gap,
    /// Inside a match, with this state of the scanner.
    Word(u32),
}

/// A guess, and the states of the scanner that must never match.
type Guess = (Mode, BTreeSet<u32>);

impl Machine {
    /// The machine of one pattern.
    pub(super) fn new(scanner: &Scanner) -> Result<Self, AnalysisError> {
        explore((Mode::Start, BTreeSet::new()), scanner.cells(), |guess| {
            let rows = (0..scanner.cells()).map(|cell| follow(scanner, guess, cell));
            (rows.collect(), accepts(scanner, guess))
        })
    }

    /// The machine of `first`, and then `second` on each of its spans. The labels are those of
    /// `second`.
    pub(super) fn then(&self, second: &Self) -> Result<Self, AnalysisError> {
        let cells = self.cells();
        explore((0, 0), cells, |&(one, two): &(State, State)| {
            let rows = (0..cells).map(|cell| {
                let mut row = Vec::new();
                for &(output, next) in self.steps(one, cell as Cell) {
                    // At a boundary of the first stage the second one starts anew.
                    let from = match output.is_boundary() {
                        true if !second.accepts(two) => continue,
                        true => 0,
                        false => two,
                    };
                    let more = second.steps(from, cell as Cell).iter();
                    row.extend(more.map(|&(output, other)| (output, (next, other))));
                }
                row
            });
            let accepts = self.accepts(one) && second.accepts(two);
            (rows.collect(), accepts)
        })
    }

    /// The machine without a pattern: the segment is one span.
    pub(super) fn one_span(cells: usize) -> Self {
        Self {
            steps: vec![
                vec![vec![(Output::Word, 1)]; cells],
                vec![vec![(Output::Inside, 1)]; cells],
            ],
            accepts: vec![true, true],
        }
    }

    /// What can follow a state when a character of the cell is read.
    #[inline]
    pub(crate) fn steps(&self, state: State, cell: Cell) -> &[(Output, State)] {
        &self.steps[usize::from(state)][usize::from(cell)]
    }

    /// May the segment end in this state?
    #[inline]
    pub(crate) fn accepts(&self, state: State) -> bool {
        self.accepts[usize::from(state)]
    }

    /// The number of states.
    pub(crate) fn len(&self) -> usize {
        self.steps.len()
    }

    /// The number of cells.
    pub(crate) fn cells(&self) -> usize {
        self.steps.first().map_or(0, Vec::len)
    }
}

/// The guesses that can follow a guess when a character of the cell is read.
fn follow(scanner: &Scanner, (mode, obligations): &Guess, cell: usize) -> Vec<(Output, Guess)> {
    let mut failing = BTreeSet::new();
    for &state in obligations {
        let step = scanner.step(state, cell);
        if step.matches {
            return Vec::new();
        }
        failing.extend(step.next);
    }
    let mut found = Vec::new();
    // A match starts before the character, or none does.
    let mut start = |failing: &BTreeSet<u32>, without: Output| {
        let next = scanner
            .start()
            .and_then(|start| scanner.step(start, cell).next);
        let mut none = failing.clone();
        if let Some(next) = next {
            found.push((Output::Word, (Mode::Word(next), failing.clone())));
            none.insert(next);
        }
        found.push((without, (Mode::Gap, none)));
    };
    match mode {
        Mode::Start => start(&failing, Output::Gap),
        Mode::Gap => start(&failing, Output::Inside),
        Mode::Word(state) => {
            let step = scanner.step(*state, cell);
            if step.matches {
                let mut failing = failing.clone();
                failing.extend(step.next);
                start(&failing, Output::Gap);
            }
            if let Some(next) = step.next {
                found.push((Output::Inside, (Mode::Word(next), failing)));
            }
        }
    }
    found
}

/// Is the guess right if the segment ends here?
fn accepts(scanner: &Scanner, (mode, obligations): &Guess) -> bool {
    let ends = |&state: &u32| scanner.matches_at_end(state);
    let right = match mode {
        Mode::Start | Mode::Gap => true,
        Mode::Word(state) => ends(state),
    };
    right && !obligations.iter().any(ends)
}

/// The machine whose states are all that `follow` leads to from `start`, trimmed and reduced.
fn explore<S: Clone + Eq + std::hash::Hash>(
    start: S,
    cells: usize,
    follow: impl Fn(&S) -> (Vec<Vec<(Output, S)>>, bool),
) -> Result<Machine, AnalysisError> {
    let mut numbers = HashMap::from([(start.clone(), 0_u32)]);
    let mut states = vec![start];
    let mut steps: Vec<Vec<Vec<(Output, u32)>>> = Vec::new();
    let mut accepts = Vec::new();
    while let Some(state) = states.get(steps.len()).cloned() {
        let (rows, accepted) = follow(&state);
        let rows = rows.into_iter().map(|row| {
            let row = row.into_iter().map(|(output, next)| {
                let count = states.len() as u32;
                let number = *numbers.entry(next).or_insert_with_key(|next| {
                    states.push(next.clone());
                    count
                });
                (output, number)
            });
            row.collect()
        });
        steps.push(rows.collect());
        accepts.push(accepted);
        if states.len() > MOST_STATES {
            return Err(AnalysisError::too_large("too many states"));
        }
    }
    // States from which no text leads to acceptance.
    let mut alive = accepts.clone();
    loop {
        let mut changed = false;
        for (state, rows) in steps.iter().enumerate() {
            let mut next = rows.iter().flatten();
            if !alive[state] && next.any(|&(_, next)| alive[next as usize]) {
                alive[state] = true;
                changed = true;
            }
        }
        if !changed {
            break;
        }
    }
    for row in steps.iter_mut().flatten() {
        row.retain(|&(_, next)| alive[next as usize]);
        row.sort_unstable();
    }
    Ok(reduce(&steps, &accepts, &alive, cells))
}

/// Merges states that cannot be told apart by what follows, and drops those that are not
/// `alive` or cannot be reached.
fn reduce(
    steps: &[Vec<Vec<(Output, u32)>>],
    accepts: &[bool],
    alive: &[bool],
    cells: usize,
) -> Machine {
    let mut part: Vec<u32> = accepts.iter().map(|&accepts| u32::from(accepts)).collect();
    let mut parts = 0;
    loop {
        let mut numbers = HashMap::new();
        let refined: Vec<u32> = (0..steps.len())
            .map(|state| {
                let rows: Vec<BTreeSet<(Output, u32)>> = steps[state]
                    .iter()
                    .map(|row| {
                        let row = row.iter();
                        row.map(|&(output, next)| (output, part[next as usize]))
                            .collect()
                    })
                    .collect();
                let count = numbers.len() as u32;
                *numbers.entry((part[state], rows)).or_insert(count)
            })
            .collect();
        part = refined;
        if numbers.len() == parts {
            break;
        }
        parts = numbers.len();
    }
    // Numbered in the order in which they are reached, so the start is 0.
    let mut numbers: HashMap<u32, State> = HashMap::from([(part[0], 0)]);
    let mut members = vec![0];
    let mut machine = Machine {
        steps: Vec::new(),
        accepts: Vec::new(),
    };
    while let Some(&state) = members.get(machine.steps.len()) {
        debug_assert!(state == 0 || alive[state]);
        let mut rows = vec![Vec::new(); cells];
        for (row, from) in rows.iter_mut().zip(&steps[state]) {
            for &(output, next) in from {
                let count = members.len() as State;
                let number = *numbers.entry(part[next as usize]).or_insert_with(|| {
                    members.push(next as usize);
                    count
                });
                row.push((output, number));
            }
            row.sort_unstable();
            row.dedup();
        }
        machine.steps.push(rows);
        machine.accepts.push(accepts[state]);
    }
    machine
}

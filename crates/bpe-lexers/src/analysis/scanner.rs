//! The first match, found by a deterministic machine that looks one character ahead.
//!
//! The states are the ordered lists of threads of a leftmost-first simulation: of two threads
//! the one that stands first is preferred, whatever the other finds.

use std::collections::HashMap;

use super::AnalysisError;
use super::parse::{Greed, Node};

/// States and steps beyond which a pattern is refused.
const MOST_STATES: usize = 10_000;

/// What the next symbol does in a state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Step {
    /// A match may end here, before the symbol, if nothing that is preferred ever matches.
    pub(super) matches: bool,
    /// The state after the symbol, in which only what is preferred to that match is left. None
    /// if none of it can match any more.
    pub(super) next: Option<u32>,
}

/// Deterministic, minimal, and without states from which no match can be reached.
pub(super) struct Scanner {
    /// For each state a step for each cell and one for the end of the segment.
    steps: Vec<Vec<Step>>,
    /// The state before the first character; none if the pattern never matches.
    start: Option<u32>,
}

impl Scanner {
    /// The scanner of a pattern; `members` says of each of its classes which cells it has.
    pub(super) fn new(
        node: &Node,
        members: &[Vec<bool>],
        cells: usize,
    ) -> Result<Self, AnalysisError> {
        let mut program = Program::default();
        program.instructions.push(Instruction::Match);
        let start = program.compile(node, 0)?;
        let mut numbers: HashMap<Vec<usize>, u32> = HashMap::new();
        let mut lists = vec![vec![start]];
        numbers.insert(vec![start], 0);
        let mut steps: Vec<Vec<Step>> = Vec::new();
        while let Some(list) = lists.get(steps.len()).cloned() {
            let mut row = Vec::with_capacity(cells + 1);
            for symbol in 0..=cells {
                let symbol = (symbol < cells).then_some(symbol);
                let (matches, next) = program.step(&list, symbol, members);
                let next = (!next.is_empty()).then(|| {
                    let count = lists.len() as u32;
                    *numbers.entry(next).or_insert_with_key(|next| {
                        lists.push(next.clone());
                        count
                    })
                });
                row.push(Step { matches, next });
            }
            steps.push(row);
            if lists.len() > MOST_STATES {
                return Err(AnalysisError::too_large("too many states"));
            }
        }
        Self::from_steps(steps, 0)
    }

    /// The scanner with these steps and this start, made minimal.
    pub(super) fn from_steps(mut steps: Vec<Vec<Step>>, start: u32) -> Result<Self, AnalysisError> {
        if steps.len() > MOST_STATES {
            return Err(AnalysisError::too_large("too many states"));
        }
        // Which states can still match?
        let mut alive = vec![false; steps.len()];
        loop {
            let before = alive.iter().filter(|&&alive| alive).count();
            for (state, row) in steps.iter().enumerate() {
                let matches = |step: &Step| {
                    step.matches || step.next.is_some_and(|next| alive[next as usize])
                };
                if row.iter().any(matches) {
                    alive[state] = true;
                }
            }
            if alive.iter().filter(|&&alive| alive).count() == before {
                break;
            }
        }
        for step in steps.iter_mut().flatten() {
            step.next = step.next.filter(|&next| alive[next as usize]);
        }
        // The coarsest partition whose parts take the same steps.
        let mut part: Vec<u32> = vec![0; steps.len()];
        let mut parts = 1;
        loop {
            let mut numbers: HashMap<(u32, Vec<Step>), u32> = HashMap::new();
            let refined: Vec<u32> = steps
                .iter()
                .enumerate()
                .map(|(state, row)| {
                    let row = row.iter().map(|step| Step {
                        next: step.next.map(|next| part[next as usize]),
                        ..*step
                    });
                    let count = numbers.len() as u32;
                    *numbers.entry((part[state], row.collect())).or_insert(count)
                })
                .collect();
            part = refined;
            if numbers.len() == parts {
                break;
            }
            parts = numbers.len();
        }
        let mut minimal = vec![Vec::new(); parts];
        for (state, row) in steps.iter().enumerate() {
            minimal[part[state] as usize] = row
                .iter()
                .map(|step| Step {
                    next: step.next.map(|next| part[next as usize]),
                    ..*step
                })
                .collect();
        }
        let start = alive[start as usize].then(|| part[start as usize]);
        Ok(Self {
            steps: minimal,
            start,
        })
    }

    pub(super) fn start(&self) -> Option<u32> {
        self.start
    }

    pub(super) fn step(&self, state: u32, cell: usize) -> Step {
        self.steps[state as usize][cell]
    }

    /// Does a match end in this state, if the segment does?
    pub(super) fn matches_at_end(&self, state: u32) -> bool {
        let row = &self.steps[state as usize];
        row.last().is_some_and(|step| step.matches)
    }

    /// The number of cells.
    pub(super) fn cells(&self) -> usize {
        self.steps.first().map_or(0, |row| row.len() - 1)
    }
}

/// A pattern as instructions for threads.
#[derive(Default)]
struct Program {
    instructions: Vec<Instruction>,
}

enum Instruction {
    Match,
    /// Takes a character of the class.
    Take {
        class: usize,
        next: usize,
    },
    Ahead {
        class: usize,
        negated: bool,
        end: bool,
        next: usize,
    },
    /// The first is preferred.
    Split(Vec<usize>),
}

impl Program {
    fn push(&mut self, instruction: Instruction) -> Result<usize, AnalysisError> {
        if self.instructions.len() >= MOST_STATES {
            return Err(AnalysisError::too_large("too many repetitions"));
        }
        self.instructions.push(instruction);
        Ok(self.instructions.len() - 1)
    }

    /// Compiles `node` to go on at `next`, and returns where it begins.
    fn compile(&mut self, node: &Node, next: usize) -> Result<usize, AnalysisError> {
        match node {
            Node::Empty => Ok(next),
            &Node::Class(class) => self.push(Instruction::Take { class, next }),
            &Node::Ahead { class, end } => self.push(Instruction::Ahead {
                class,
                negated: false,
                end,
                next,
            }),
            Node::Concat(parts) => {
                let parts = parts.iter().rev();
                parts
                    .into_iter()
                    .try_fold(next, |next, part| self.compile(part, next))
            }
            Node::Alternation(branches) => {
                let branches = branches.iter();
                let starts: Vec<usize> = branches
                    .map(|branch| self.compile(branch, next))
                    .collect::<Result<_, _>>()?;
                self.push(Instruction::Split(starts))
            }
            Node::Repeat {
                node,
                min,
                max,
                greed,
            } => self.repeat(node, *min, *max, *greed, next),
        }
    }

    fn repeat(
        &mut self,
        node: &Node,
        min: u32,
        max: Option<u32>,
        greed: Greed,
        next: usize,
    ) -> Result<usize, AnalysisError> {
        // Where a possessive repetition ends early, its class does not go on.
        let leave = match (greed, node) {
            (Greed::Possessive, &Node::Class(class)) => self.push(Instruction::Ahead {
                class,
                negated: true,
                end: true,
                next,
            })?,
            _ => next,
        };
        let split = |go_on: usize| {
            Instruction::Split(match greed {
                Greed::Lazy => vec![leave, go_on],
                _ => vec![go_on, leave],
            })
        };
        let mut start = match max {
            None => {
                let again = self.push(Instruction::Split(Vec::new()))?;
                let body = self.compile(node, again)?;
                self.instructions[again] = split(body);
                again
            }
            Some(max) => {
                let mut start = next;
                for _ in min..max {
                    let body = self.compile(node, start)?;
                    start = self.push(split(body))?;
                }
                start
            }
        };
        for _ in 0..min {
            start = self.compile(node, start)?;
        }
        Ok(start)
    }

    /// Runs the threads up to the next symbol: may a match end here, and which threads are left
    /// after the symbol of those that are preferred to it?
    fn step(
        &self,
        threads: &[usize],
        symbol: Option<usize>,
        members: &[Vec<bool>],
    ) -> (bool, Vec<usize>) {
        let mut seen = vec![false; self.instructions.len()];
        let mut stack: Vec<usize> = threads.iter().rev().copied().collect();
        let mut next_threads: Vec<usize> = Vec::new();
        let has = |class: usize| symbol.map(|symbol| members[class][symbol]);
        while let Some(place) = stack.pop() {
            if core::mem::replace(&mut seen[place], true) {
                continue;
            }
            match &self.instructions[place] {
                Instruction::Match => return (true, next_threads),
                Instruction::Take { class, next } => {
                    if has(*class) == Some(true) && !next_threads.contains(next) {
                        next_threads.push(*next);
                    }
                }
                Instruction::Ahead {
                    class,
                    negated,
                    end,
                    next,
                } => {
                    if has(*class).map_or(*end, |inside| inside != *negated) {
                        stack.push(*next);
                    }
                }
                Instruction::Split(branches) => stack.extend(branches.iter().rev()),
            }
        }
        (false, next_threads)
    }
}

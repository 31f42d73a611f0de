//! What can be known of a pattern before any text is there: two spellings that mean the same,
//! places where a text can be cut, boundaries that stay undecided.
//!
//! A pattern is made into an automaton in four steps.
//!
//! 1. The spelling is parsed; look-aheads for one character, and possessive quantifiers after one
//!    class, become conditions on the next character.
//! 2. Characters that no class of the pattern tells apart are one *cell*. The published patterns have 10
//!    to 27 cells.
//! 3. A deterministic machine finds the first match: its states are ordered lists of threads, as in a
//!    leftmost-first simulation.
//! 4. A nondeterministic machine reads a whole segment and guesses where spans start. A guess that a
//!    match ends here carries the preferred threads along, which must all fail. Each text has exactly
//!    one accepted run, and a state from which no text is accepted is dropped.
//!
//! For cl100k these are 15 cells and some twenty states. An example, `\n` and then two blanks:
//!
//! ```text
//! text        guesses that can still come true
//! "\n"        a match starts                                             1 reading
//! "\n "       the match goes on (a newline follows)
//!             a match ended; one starts with the blank                   2 readings
//! "\n  "      the match goes on (a newline follows)
//!             one ended, the second goes on (the text ends here)
//!             one ended, a second ended, a third starts (a word follows)  3 readings
//! ```
//!
//! Since the machines are small, questions about *all* texts are answered by looking at all pairs of
//! states that one text leads to: whether two patterns are equal ([`difference`]), where a
//! boundary always is ([`Cuts`](crate::Cuts)), and what stays undecided ([`Analysis::undecided`]).
//!
//! # Cost
//!
//! Milliseconds for the known patterns. Patterns that need more than 128 states are refused, so that
//! pairs of states are few.

mod bytes;
pub(crate) mod cells;
pub(crate) mod machine;
mod parse;
pub(crate) mod product;
mod readings;
mod scanner;

#[cfg(feature = "automata")]
mod automata;

use core::fmt;

pub use bytes::ByteMachine;
pub use readings::Undecided;

use crate::{Label, Pattern, Span};
use cells::{Cell, Cells};
use machine::{Machine, Output};
use readings::Readings;
use scanner::Scanner;

#[cfg(feature = "automata")]
pub use automata::automata_difference;

/// States of the whole automaton beyond which a pattern is refused. The known ones have 30 at most.
const MOST_STATES: usize = 128;

/// The automaton of one pattern, or of several in sequence.
///
/// ```
/// use bpe_lexers::{Analysis, Pattern};
///
/// let analysis = Analysis::new(&[Pattern::gpt2()])?;
/// assert_eq!(analysis.cell_count(), 14);
/// let spans = analysis.spans("it's so");
/// assert_eq!(spans.iter().map(|span| span.start).collect::<Vec<_>>(), [0, 2, 4]);
/// # Ok::<(), bpe_lexers::AnalysisError>(())
/// ```
#[derive(Clone)]
pub struct Analysis {
    pub(crate) cells: Cells,
    pub(crate) machine: Machine,
}

impl Analysis {
    /// Returns the automaton of `patterns`, which cut one after the other. Without a pattern a
    /// segment is one span.
    ///
    /// # Errors
    ///
    /// A pattern is malformed, or has look-behind, back-references, atomic groups, a look-ahead for
    /// more than one character, or needs too many states.
    pub fn new(patterns: &[Pattern]) -> Result<Self, AnalysisError> {
        let (cells, mut machines) = machines(&[patterns])?;
        let machine = machines.pop().unwrap_or(Machine::one_span(cells.count()));
        if machine.len() > MOST_STATES {
            return Err(AnalysisError::too_large("too many states"));
        }
        Ok(Self { cells, machine })
    }

    /// Returns the number of classes of characters that the automaton tells apart.
    pub fn cell_count(&self) -> usize {
        self.cells.count()
    }

    /// Returns a character of each class that the automaton tells apart.
    pub fn representatives(&self) -> Vec<char> {
        (0..self.cells.count())
            .map(|cell| self.cells.representative(cell as Cell))
            .collect()
    }

    /// Returns the number of states.
    pub fn state_count(&self) -> usize {
        self.machine.len()
    }

    /// Returns the number of sets of readings that a text can leave open, and the largest number
    /// of readings that are open at once.
    pub fn open_readings(&self) -> (usize, usize) {
        let readings = Readings::new(self);
        (readings.forward_states, readings.most_alive)
    }

    /// Returns the most characters, from a boundary on, that must be read to decide it, where
    /// that is bounded.
    pub fn look_ahead(&self) -> usize {
        Readings::new(self).look_ahead
    }

    /// Returns all pairs of readings that a text can leave open without limit.
    pub fn undecided(&self) -> Vec<Undecided> {
        Readings::new(self).undecided
    }

    /// Returns the spans of a segment, by the automaton: an oracle, not an engine. Time and memory
    /// are linear.
    pub fn spans(&self, segment: &str) -> Vec<Span> {
        let mut layers = vec![vec![(0, 0, Output::Inside)]];
        for character in segment.chars() {
            let cell = self.cells.of(character);
            let last = layers.last().map_or(&[][..], Vec::as_slice);
            let mut layer = Vec::new();
            for (parent, &(state, _, _)) in last.iter().enumerate() {
                for &(output, next) in self.machine.steps(state, cell) {
                    layer.push((next, parent, output));
                }
            }
            layers.push(layer);
        }
        let last = layers.last().map_or(&[][..], Vec::as_slice);
        let accepted = |&(state, ..): &(_, _, _)| self.machine.accepts(state);
        let mut place = last.iter().position(accepted).unwrap_or_default();
        let mut end = segment.len();
        let mut start = end;
        let mut spans = Vec::new();
        for (layer, character) in layers.iter().rev().zip(segment.chars().rev()) {
            let (_, parent, output) = layer[place];
            start -= character.len_utf8();
            if output.is_boundary() {
                let label = label(output);
                spans.push(Span { start, end, label });
                end = start;
            }
            place = parent;
        }
        spans.reverse();
        spans
    }
}

impl fmt::Debug for Analysis {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Analysis")
            .field("cells", &self.cells.count())
            .field("states", &self.machine.len())
            .finish()
    }
}

pub(crate) fn label(output: Output) -> Label {
    match output {
        Output::Gap => Label::Gap,
        Output::Word | Output::Inside => Label::Word,
    }
}

/// Returns the shortest text that two sequences of patterns cut into different spans, or with
/// different labels; none if they are equal on every text.
///
/// That is proved, not tried: every text has one run in each automaton, and all pairs of states that
/// such runs can reach together are looked at.
///
/// # Errors
///
/// As [`Analysis::new`].
///
/// ```
/// use bpe_lexers::{Family, Pattern, difference};
///
/// // tiktoken spells GPT-2's pattern in another way: nothing changes.
/// let other = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s";
/// assert_eq!(difference(&[Pattern::gpt2()], &[Pattern::new(other)])?, None);
/// // In cl100k the same change is seen where a text ends in a newline and white space.
/// let other = Pattern::of_family(Family::Cl100kOfTiktoken);
/// assert_eq!(difference(&[Pattern::cl100k()], &[other])?.as_deref(), Some("\n\t"));
/// # Ok::<(), bpe_lexers::AnalysisError>(())
/// ```
pub fn difference(one: &[Pattern], two: &[Pattern]) -> Result<Option<String>, AnalysisError> {
    let (cells, machines) = machines(&[one, two])?;
    let [one, two] = machines.as_slice() else {
        return Ok(None);
    };
    if one.len().max(two.len()) > MOST_STATES {
        return Err(AnalysisError::too_large("too many states"));
    }
    Ok(product::difference(one, two).map(|text| cells.text(&text)))
}

/// The machines of several sequences of patterns, over the same cells.
fn machines(sequences: &[&[Pattern]]) -> Result<(Cells, Vec<Machine>), AnalysisError> {
    let mut classes = Vec::new();
    let mut nodes = Vec::new();
    for patterns in sequences {
        let parsed = patterns.iter();
        let parsed = parsed.map(|pattern| parse::parse(pattern.as_str(), &mut classes));
        nodes.push(parsed.collect::<Result<Vec<_>, _>>()?);
    }
    let (cells, members) = Cells::new(&classes)?;
    let mut machines = Vec::new();
    for stages in &nodes {
        let mut sequence: Option<Machine> = None;
        for node in stages {
            let stage = Machine::new(&Scanner::new(node, &members, cells.count())?)?;
            sequence = Some(match sequence {
                Some(before) => before.then(&stage)?,
                None => stage,
            });
        }
        machines.push(sequence.unwrap_or_else(|| Machine::one_span(cells.count())));
    }
    Ok((cells, machines))
}

/// A pattern cannot be analysed.
#[derive(Clone, Debug)]
pub struct AnalysisError {
    kind: AnalysisErrorKind,
    reason: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AnalysisErrorKind {
    Syntax,
    Unsupported,
    TooLarge,
}

impl AnalysisError {
    fn new(kind: AnalysisErrorKind, reason: impl fmt::Display) -> Self {
        let reason = reason.to_string();
        Self { kind, reason }
    }

    fn syntax(reason: impl fmt::Display) -> Self {
        Self::new(AnalysisErrorKind::Syntax, reason)
    }

    pub(crate) fn unsupported(reason: impl fmt::Display) -> Self {
        Self::new(AnalysisErrorKind::Unsupported, reason)
    }

    fn too_large(reason: impl fmt::Display) -> Self {
        Self::new(AnalysisErrorKind::TooLarge, reason)
    }

    /// Is the pattern malformed?
    pub fn is_syntax(&self) -> bool {
        self.kind == AnalysisErrorKind::Syntax
    }

    /// Does the pattern ask for something that an automaton of this kind does not have?
    pub fn is_unsupported(&self) -> bool {
        self.kind == AnalysisErrorKind::Unsupported
    }

    /// Does the pattern need too many states?
    pub fn is_too_large(&self) -> bool {
        self.kind == AnalysisErrorKind::TooLarge
    }
}

impl fmt::Display for AnalysisError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reason = &self.reason;
        match self.kind {
            AnalysisErrorKind::Syntax => write!(formatter, "the pattern is malformed: {reason}"),
            AnalysisErrorKind::Unsupported => {
                write!(formatter, "the pattern cannot be analysed: it has {reason}")
            }
            AnalysisErrorKind::TooLarge => {
                write!(formatter, "the pattern cannot be analysed: {reason}")
            }
        }
    }
}

impl core::error::Error for AnalysisError {}

//! The automaton of the patterns, byte by byte: where may a span start?

use core::fmt;
use std::sync::Arc;

use super::Analysis;
use super::machine::State;

/// The automaton of the patterns over the bytes of a segment, for products with other automata.
///
/// It is nondeterministic and unambiguous: before each byte a span starts or does not, and every text has
/// exactly one run whose guesses are all right, that of the spans of [`Spanner`](crate::Spanner), those
/// of bytes that are not UTF-8 among them. States are numbers; there are some dozens at the beginning of a
/// character, and more inside one. From each that can be reached some text is accepted, but for some
/// inside a character.
///
/// ```
/// use std::sync::Arc;
/// use bpe_lexers::{Analysis, ByteMachine, Pattern};
///
/// let machine = ByteMachine::new(Arc::new(Analysis::new(&[Pattern::gpt2()])?));
/// // All runs over "a b": in the one that is accepted spans start before "a" and the blank.
/// let mut runs = vec![(machine.start(), String::new())];
/// for byte in "a b".bytes() {
///     let mut next = Vec::new();
///     for (state, starts) in runs {
///         machine.for_each_step(state, byte, |starts_here, state| {
///             next.push((state, format!("{starts}{}", u8::from(starts_here))));
///         });
///     }
///     runs = next;
/// }
/// runs.retain(|run| machine.accepts(run.0));
/// assert_eq!(runs.len(), 1);
/// assert_eq!(runs[0].1, "110");
/// # Ok::<(), bpe_lexers::AnalysisError>(())
/// ```
#[derive(Clone)]
pub struct ByteMachine {
    analysis: Arc<Analysis>,
}

/// A state and the beginning of a character: the state of the automaton before it, whether a span starts
/// with it, and its bytes.
#[derive(Clone, Copy)]
struct Inside {
    state: State,
    starts: bool,
    bytes: [u8; 4],
    length: usize,
}

impl Inside {
    fn of(number: u64) -> Self {
        let bytes = number.to_le_bytes();
        Self {
            state: State::from_le_bytes([bytes[0], bytes[1]]),
            starts: bytes[2] != 0,
            length: usize::from(bytes[3]).min(3),
            bytes: [bytes[4], bytes[5], bytes[6], 0],
        }
    }

    fn number(self) -> u64 {
        let state = self.state.to_le_bytes();
        let [a, b, c, _] = self.bytes;
        let (starts, length) = (u8::from(self.starts), self.length as u8);
        u64::from_le_bytes([state[0], state[1], starts, length, a, b, c, 0])
    }
}

impl ByteMachine {
    /// Returns the automaton that an analysis has found. O(1).
    pub fn new(analysis: Arc<Analysis>) -> Self {
        Self { analysis }
    }

    /// Returns the state before the first byte.
    pub fn start(&self) -> u64 {
        0
    }

    /// Returns the states in which a text can be where no character has begun, the start among them. A few
    /// dozen; from each some text is accepted.
    pub fn between_characters(&self) -> impl Iterator<Item = u64> + '_ {
        let count = self.analysis.machine.len();
        (0..count).map(|state| fresh(state as State).number())
    }

    /// Calls `visit` for each way to go on with a byte: whether a span starts before it, and the state
    /// after it.
    pub fn for_each_step(&self, state: u64, byte: u8, mut visit: impl FnMut(bool, u64)) {
        self.go_on(Inside::of(state), byte, &mut visit);
    }

    /// Whether a text may end in this state.
    pub fn accepts(&self, state: u64) -> bool {
        let inside = Inside::of(state);
        let segment_ends = self.analysis.machine.accepts(inside.state);
        // A character that does not end is a span of its own.
        segment_ends && (inside.length == 0 || inside.starts)
    }

    fn go_on(&self, inside: Inside, byte: u8, visit: &mut dyn FnMut(bool, u64)) {
        let mut next = inside;
        if let Some(place) = next.bytes.get_mut(inside.length) {
            *place = byte;
        }
        next.length = inside.length + 1;
        let bytes = next.bytes.get(..next.length).unwrap_or_default();
        match core::str::from_utf8(bytes) {
            Ok(text) => {
                let Some(character) = text.chars().next() else {
                    return;
                };
                let cell = self.analysis.cells.of(character);
                for &(output, state) in self.analysis.machine.steps(inside.state, cell) {
                    let starts = output.is_boundary();
                    // What was said of the first byte must be true.
                    if inside.length == 0 || starts == inside.starts {
                        let starts = starts && inside.length == 0;
                        visit(starts, fresh(state).number());
                    }
                }
            }
            Err(error) if error.error_len().is_none() => {
                // The beginning of a character.
                if inside.length > 0 {
                    visit(false, next.number());
                    return;
                }
                for starts in [false, true] {
                    visit(starts, Inside { starts, ..next }.number());
                }
            }
            Err(_) if inside.length == 0 => {
                // A span of its own: the segment ends before it, and another begins after it.
                if self.analysis.machine.accepts(inside.state) {
                    visit(true, fresh(0).number());
                }
            }
            Err(_) => {
                // What was there is such a span, and the byte comes after it.
                if inside.starts && self.analysis.machine.accepts(inside.state) {
                    self.go_on(fresh(0), byte, &mut |starts, state| {
                        if starts {
                            visit(true, state);
                        }
                    });
                }
            }
        }
    }
}

fn fresh(state: State) -> Inside {
    Inside {
        state,
        starts: false,
        bytes: [0; 4],
        length: 0,
    }
}

impl fmt::Debug for ByteMachine {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ByteMachine")
            .field("analysis", &self.analysis)
            .finish()
    }
}

//! Drawings in the language of Graphviz.

use core::fmt;
use std::collections::BTreeMap;

use bpe_core::{TokenId, Vocabulary};

use super::{ExplicitDfa, State, StringDfa, SubsequentialTransducer, Transducer};

/// A drawing of an automaton or transducer in Graphviz's language, by `Display`.
///
/// States are `q0`, `q1`, ... with a double circle where reading may end, an arrow points to the start,
/// and transitions between the same states share one arrow. What a transducer writes stands behind a
/// bar, tokens with a middle dot between them.
#[derive(Debug, Clone)]
pub struct Dot {
    start: State,
    /// Output before the first byte.
    initial: String,
    /// Of each state whether it accepts, and what is written at the end.
    states: Vec<Option<String>>,
    arrows: BTreeMap<(State, State), Vec<String>>,
}

impl Dot {
    fn new(start: State, states: Vec<Option<String>>) -> Self {
        Self {
            start,
            initial: String::new(),
            states,
            arrows: BTreeMap::new(),
        }
    }

    fn arrow(&mut self, from: State, to: State, label: String) {
        self.arrows.entry((from, to)).or_default().push(label);
    }
}

impl fmt::Display for Dot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "digraph {{")?;
        writeln!(f, "  rankdir=LR;")?;
        writeln!(f, "  node [shape=circle];")?;
        writeln!(f, "  start [shape=none, label=\"\"];")?;
        let initial = quoted(&self.initial);
        writeln!(f, "  start -> q{} [label=\"{initial}\"];", self.start)?;
        for (number, end) in self.states.iter().enumerate() {
            match end.as_deref() {
                None => writeln!(f, "  q{number};")?,
                Some("") => writeln!(f, "  q{number} [shape=doublecircle];")?,
                Some(end) => {
                    writeln!(f, "  q{number} [shape=doublecircle];")?;
                    writeln!(f, "  end{number} [shape=none, label=\"\"];")?;
                    writeln!(f, "  q{number} -> end{number} [label=\"{}\"];", quoted(end))?;
                }
            }
        }
        for ((from, to), labels) in &self.arrows {
            let label = quoted(&labels.join(", "));
            writeln!(f, "  q{from} -> q{to} [label=\"{label}\"];")?;
        }
        writeln!(f, "}}")
    }
}

impl ExplicitDfa {
    /// The automaton as a drawing.
    pub fn dot(&self) -> Dot {
        let states = (0..self.state_count() as State)
            .map(|state| self.is_accepting(state).then(String::new))
            .collect();
        let mut dot = Dot::new(self.start(), states);
        for (from, token, to) in self.transitions() {
            dot.arrow(from, to, token_text(self.vocabulary(), token));
        }
        dot.sort();
        dot
    }
}

impl StringDfa {
    /// The automaton as a drawing. Neighbouring bytes share a label.
    pub fn dot(&self) -> Dot {
        let states = (0..self.state_count() as State)
            .map(|state| self.is_accepting(state).then(String::new))
            .collect();
        let mut dot = Dot::new(self.start(), states);
        let mut runs: Vec<(State, u8, u8, State)> = Vec::new();
        let mut transitions: Vec<_> = self.transitions().collect();
        transitions.sort_by_key(|&(from, byte, to)| (from, to, byte));
        for (from, byte, to) in transitions {
            match runs.last_mut() {
                Some((f, _, last, t))
                    if (*f, *t, last.checked_add(1)) == (from, to, Some(byte)) =>
                {
                    *last = byte;
                }
                _ => runs.push((from, byte, byte, to)),
            }
        }
        for (from, first, last, to) in runs {
            let label = match first == last {
                true => bytes_text(&[first]),
                false => format!("{}-{}", bytes_text(&[first]), bytes_text(&[last])),
            };
            dot.arrow(from, to, label);
        }
        dot
    }
}

impl Transducer {
    /// The transducer as a drawing.
    pub fn dot(&self) -> Dot {
        let states = (0..self.state_count() as State)
            .map(|state| Some(tokens_text(self.vocabulary(), self.final_output(state)?)))
            .collect();
        let mut dot = Dot::new(self.start(), states);
        for state in 0..self.state_count() as State {
            for edge in self.edges_from(state) {
                let output = tokens_text(self.vocabulary(), edge.output.as_slice());
                let label = format!("{}|{output}", bytes_text(&[edge.byte]));
                dot.arrow(state, edge.to, label);
            }
        }
        dot.sort();
        dot
    }
}

impl SubsequentialTransducer {
    /// The transducer as a drawing.
    pub fn dot(&self) -> Dot {
        let states = (0..self.state_count() as State)
            .map(|state| Some(tokens_text(self.vocabulary(), self.finish(state)?)))
            .collect();
        let mut dot = Dot::new(self.start(), states);
        dot.initial = tokens_text(self.vocabulary(), self.initial_output());
        for state in 0..self.state_count() as State {
            for (byte, output, to) in self.steps_from(state) {
                let output = tokens_text(self.vocabulary(), output);
                dot.arrow(state, to, format!("{}|{output}", bytes_text(&[byte])));
            }
        }
        dot.sort();
        dot
    }
}

impl Dot {
    /// Labels in an order that does not depend on how the automaton came about.
    fn sort(&mut self) {
        for labels in self.arrows.values_mut() {
            labels.sort();
        }
    }
}

/// Bytes as text where they are printable, blanks as an open box, the rest escaped.
fn bytes_text(bytes: &[u8]) -> String {
    let mut text = String::new();
    for chunk in bytes.utf8_chunks() {
        for char in chunk.valid().chars() {
            match char {
                ' ' => text.push('\u{2423}'),
                _ if char.is_control() => text.extend(char.escape_default()),
                _ => text.push(char),
            }
        }
        for byte in chunk.invalid() {
            text.push_str(&format!("\\x{byte:02X}"));
        }
    }
    text
}

fn token_text(vocabulary: &Vocabulary, token: TokenId) -> String {
    match vocabulary.token_bytes(token) {
        Some(bytes) => bytes_text(bytes),
        None => format!("#{token}"),
    }
}

fn tokens_text(vocabulary: &Vocabulary, tokens: &[TokenId]) -> String {
    let tokens = tokens.iter().map(|&token| token_text(vocabulary, token));
    tokens.collect::<Vec<_>>().join("\u{b7}")
}

/// A label between quotation marks.
fn quoted(label: &str) -> String {
    label.replace('\\', "\\\\").replace('"', "\\\"")
}

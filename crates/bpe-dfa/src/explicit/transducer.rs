//! Transducers from texts to tokenizations, not deterministic (002 Observation 3).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bpe_core::{TokenId, Vocabulary};

use super::error::Kind;
use super::partition::{Edge, Graph};
use super::{ExplicitDfa, ExplicitError, Limits, State};

/// A transducer that reads bytes and writes tokens (002 Definition 6). From a state a byte can lead to
/// several states; each step writes one token or nothing.
///
/// Useful as what [`determinize`](Self::determinize) starts from, and to write down relations; to encode,
/// take the [`SubsequentialTransducer`](super::SubsequentialTransducer) that comes of it.
#[derive(Debug, Clone)]
pub struct Transducer {
    vocabulary: Arc<Vocabulary>,
    start: State,
    finals: Vec<Option<Vec<TokenId>>>,
    edges: Vec<Vec<TransducerEdge>>,
}

/// A step of a [`Transducer`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TransducerEdge {
    /// What is read.
    pub byte: u8,
    /// What is written.
    pub output: Option<TokenId>,
    /// Where it leads.
    pub to: State,
}

impl Transducer {
    /// The transducer of a token automaton: it maps the text of each accepted sequence to that sequence
    /// (Observation 3). Each transition on a token of k bytes becomes k steps, of which the last writes the
    /// token. So it has k - 1 states more for each of them. Each text has one output at most if the
    /// automaton is context-invariant (Lemma 6).
    ///
    /// # Errors
    ///
    /// More states than the limits allow.
    pub fn new(dfa: &ExplicitDfa, limits: &Limits) -> Result<Self, ExplicitError> {
        let accepting = |state| dfa.is_accepting(state).then(Vec::new);
        let mut finals: Vec<_> = (0..dfa.state_count() as State).map(accepting).collect();
        let mut edges = vec![Vec::new(); finals.len()];
        for (from, token, to) in dfa.transitions() {
            let bytes = dfa.vocabulary().token_bytes(token).unwrap_or_default();
            let mut state = from;
            for (place, &byte) in (1..).zip(bytes) {
                if place == bytes.len() {
                    let output = Some(token);
                    edges[state as usize].push(TransducerEdge { byte, output, to });
                } else {
                    let next = finals.len() as State;
                    let (output, to) = (None, next);
                    edges[state as usize].push(TransducerEdge { byte, output, to });
                    finals.push(None);
                    edges.push(Vec::new());
                    state = next;
                }
            }
            if finals.len() > limits.states {
                return Err(ExplicitError::states("a transducer", limits.states));
            }
        }
        Ok(Self {
            vocabulary: Arc::clone(dfa.vocabulary()),
            start: dfa.start(),
            finals,
            edges,
        })
    }

    /// A transducer from its parts. Of each state what is written if the text ends there, `None` where it
    /// may not.
    ///
    /// # Errors
    ///
    /// A state or a token that is none.
    pub fn from_edges(
        vocabulary: &Arc<Vocabulary>,
        start: State,
        finals: Vec<Option<Vec<TokenId>>>,
        steps: impl IntoIterator<Item = (State, TransducerEdge)>,
    ) -> Result<Self, ExplicitError> {
        let states = finals.len();
        let check = |state: State| match (state as usize) < states {
            true => Ok(state as usize),
            false => Err(ExplicitError(Kind::NoState { state, states })),
        };
        let check_token = |id| match vocabulary.token_bytes(id) {
            Some(_) => Ok(()),
            None => Err(ExplicitError(Kind::UnknownToken { id })),
        };
        check(start)?;
        finals
            .iter()
            .flatten()
            .flatten()
            .try_for_each(|&id| check_token(id))?;
        let mut edges = vec![Vec::new(); states];
        for (from, edge) in steps {
            check(edge.to)?;
            edge.output.map_or(Ok(()), check_token)?;
            edges[check(from)?].push(edge);
        }
        Ok(Self {
            vocabulary: Arc::clone(vocabulary),
            start,
            finals,
            edges,
        })
    }

    /// The vocabulary whose tokens are written.
    pub fn vocabulary(&self) -> &Arc<Vocabulary> {
        &self.vocabulary
    }

    /// The number of states.
    pub fn state_count(&self) -> usize {
        self.finals.len()
    }

    /// The state in which reading starts.
    pub fn start(&self) -> State {
        self.start
    }

    /// What is written if a text ends in `state`, `None` where it may not.
    pub fn final_output(&self, state: State) -> Option<&[TokenId]> {
        self.finals.get(state as usize)?.as_deref()
    }

    /// The steps from `state`.
    pub fn edges_from(&self, state: State) -> &[TransducerEdge] {
        self.edges
            .get(state as usize)
            .map_or(&[], |edges| &edges[..])
    }

    /// Whether there is one step at most for each state and byte (002 Definition 6).
    pub fn is_input_deterministic(&self) -> bool {
        self.edges.iter().all(|edges| {
            let bytes: BTreeSet<u8> = edges.iter().map(|edge| edge.byte).collect();
            bytes.len() == edges.len()
        })
    }

    /// All outputs for `text`. Follows all runs at once: O(n) times the number of steps, if no state is
    /// reached with more than one output.
    pub fn outputs(&self, text: &[u8]) -> BTreeSet<Vec<TokenId>> {
        let mut runs = BTreeSet::from([(self.start, Vec::new())]);
        for &byte in text {
            let mut next = BTreeSet::new();
            for (state, output) in &runs {
                for edge in self.edges_from(*state) {
                    if edge.byte == byte {
                        let mut output = output.clone();
                        output.extend(edge.output);
                        next.insert((edge.to, output));
                    }
                }
            }
            runs = next;
        }
        runs.into_iter()
            .filter_map(|(state, mut output)| {
                output.extend(self.final_output(state)?);
                Some(output)
            })
            .collect()
    }

    /// The same relation without the states that no accepting run passes, the others in their order.
    /// O(edges).
    pub fn trim(&self) -> Self {
        let mut edges = Vec::new();
        for (from, steps) in (0..).zip(&self.edges) {
            // Labels only tell edges apart where states are merged.
            edges.extend(steps.iter().map(|edge| Edge {
                from,
                label: 0,
                to: edge.to,
            }));
        }
        let graph = Graph {
            start: self.start,
            classes: self
                .finals
                .iter()
                .map(|output| output.as_ref().map(|_| 0))
                .collect(),
            edges,
        };
        let renaming = graph.trim();
        let representatives = renaming.representatives();
        let mut trimmed = Self {
            vocabulary: Arc::clone(&self.vocabulary),
            start: renaming.new_of[self.start as usize].unwrap_or(0),
            finals: Vec::new(),
            edges: Vec::new(),
        };
        for &state in &representatives {
            trimmed.finals.push(self.finals[state as usize].clone());
            let edges = self.edges_from(state).iter();
            let edges = edges.filter_map(|edge| {
                let (_, to) = renaming.ends(state, edge.to)?;
                Some(TransducerEdge { to, ..*edge })
            });
            trimmed.edges.push(edges.collect());
        }
        trimmed
    }

    /// The steps from a state, by byte.
    pub(super) fn steps_by_byte(&self, state: State) -> BTreeMap<u8, Vec<TransducerEdge>> {
        let mut steps: BTreeMap<u8, Vec<TransducerEdge>> = BTreeMap::new();
        for edge in self.edges_from(state) {
            steps.entry(edge.byte).or_default().push(*edge);
        }
        steps
    }
}

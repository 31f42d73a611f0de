//! The twinning property: whether a transducer can be made deterministic in its input.
//!
//! Two runs over one text are the *square* of the transducer. How their outputs differ is their *delay*:
//! by how much one is ahead of the other, or that they have parted for good. A transducer with one output
//! a text has a subsequential equivalent exactly if no cycle of the square changes a delay (Choffrut 1977;
//! Béal and Carton, Determinization of transducers over finite and infinite words, 2002). A cycle does in one
//! of two ways: its two outputs differ in length; or it writes something after the outputs have parted.
//! (Two outputs of one length that turn the delay into another of the same length part after some more
//! rounds.)

use std::collections::{HashMap, HashSet, VecDeque};

use bpe_core::TokenId;

use super::error::Kind;
use super::{ExplicitError, Limits, State, Transducer};

impl Transducer {
    /// Whether the transducer has the twinning property: exactly then, if each text has one output at
    /// most, is there a subsequential transducer of the same relation.
    ///
    /// Cost: pairs of states that one text leads to, and the steps from them, for cycles that write
    /// unequal lengths; then each such pair once for every delay that it is reached with.
    ///
    /// # Errors
    ///
    /// [`ExplicitError::untwinned`] where it has not: two texts that show it. More pairs, or pairs with
    /// delays, than the limits allow states.
    pub fn check_twinning(&self, limits: &Limits) -> Result<(), ExplicitError> {
        let transducer = self.trim();
        let square = Square::new(&transducer, limits)?;
        let component = square.components();
        square.check_lengths(&component)?;
        square.check_parted(&component, limits)
    }
}

type Pair = (State, State);

/// Pairs of states that one text leads to, and the steps between them.
struct Square {
    pairs: Vec<Pair>,
    edges: Vec<Vec<SquareEdge>>,
    /// Where each pair was met first, and by which byte.
    parent: Vec<Option<(usize, u8)>>,
}

#[derive(Clone, Copy)]
struct SquareEdge {
    byte: u8,
    outputs: [Option<TokenId>; 2],
    to: usize,
}

impl SquareEdge {
    /// By how many tokens the first output is the longer one.
    fn lead(&self) -> i64 {
        let [first, second] = self.outputs.map(|output| i64::from(output.is_some()));
        first - second
    }
}

/// How far the first output is ahead of the second, or the second of the first, or that neither is the
/// beginning of the other.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Delay {
    First(Vec<TokenId>),
    Second(Vec<TokenId>),
    Parted,
}

impl Delay {
    /// Memory of the two copies that a search keeps.
    fn bytes(&self) -> usize {
        match self {
            Delay::First(lead) | Delay::Second(lead) => 2 * lead.len() * size_of::<TokenId>(),
            Delay::Parted => 0,
        }
    }

    fn after(&self, outputs: [Option<TokenId>; 2]) -> Self {
        let (mut first, mut second) = match self {
            Delay::First(lead) => (lead.clone(), Vec::new()),
            Delay::Second(lead) => (Vec::new(), lead.clone()),
            Delay::Parted => return Delay::Parted,
        };
        first.extend(outputs[0]);
        second.extend(outputs[1]);
        if let Some(lead) = first.strip_prefix(&second[..]) {
            Delay::First(lead.to_vec())
        } else if let Some(lead) = second.strip_prefix(&first[..]) {
            Delay::Second(lead.to_vec())
        } else {
            Delay::Parted
        }
    }
}

impl Square {
    fn new(transducer: &Transducer, limits: &Limits) -> Result<Self, ExplicitError> {
        let steps: Vec<_> = (0..transducer.state_count() as State)
            .map(|state| transducer.steps_by_byte(state))
            .collect();
        let first = (transducer.start(), transducer.start());
        let mut number = HashMap::from([(first, 0)]);
        let mut square = Self {
            pairs: vec![first],
            edges: Vec::new(),
            parent: vec![None],
        };
        while let Some(&(a, b)) = square.pairs.get(square.edges.len()) {
            let from = square.edges.len();
            let mut edges = Vec::new();
            for (&byte, ours) in &steps[a as usize] {
                let theirs = steps[b as usize].get(&byte);
                for (x, y) in theirs
                    .into_iter()
                    .flatten()
                    .flat_map(|y| ours.iter().map(move |x| (x, y)))
                {
                    let to = *number.entry((x.to, y.to)).or_insert_with(|| {
                        square.pairs.push((x.to, y.to));
                        square.parent.push(Some((from, byte)));
                        square.pairs.len() - 1
                    });
                    edges.push(SquareEdge {
                        byte,
                        outputs: [x.output, y.output],
                        to,
                    });
                }
            }
            square.edges.push(edges);
            check(square.pairs.len(), limits)?;
        }
        Ok(square)
    }

    /// Of each pair the number of its strongly connected component (Tarjan's algorithm, with a stack of
    /// its own instead of recursion).
    fn components(&self) -> Vec<usize> {
        const UNMET: usize = usize::MAX;
        let count = self.pairs.len();
        let (mut index, mut low) = (vec![UNMET; count], vec![0; count]);
        let (mut component, mut components) = (vec![UNMET; count], 0);
        let (mut stack, mut calls) = (Vec::new(), vec![(0, 0)]);
        let mut met = 0;
        while let Some((node, place)) = calls.pop() {
            if place == 0 {
                index[node] = met;
                low[node] = met;
                met += 1;
                stack.push(node);
            }
            if let Some(edge) = self.edges[node].get(place) {
                calls.push((node, place + 1));
                if index[edge.to] == UNMET {
                    calls.push((edge.to, 0));
                } else if component[edge.to] == UNMET {
                    low[node] = low[node].min(index[edge.to]);
                }
                continue;
            }
            if low[node] == index[node] {
                while let Some(member) = stack.pop() {
                    component[member] = components;
                    if member == node {
                        break;
                    }
                }
                components += 1;
            }
            if let Some(&(caller, _)) = calls.last() {
                low[caller] = low[caller].min(low[node]);
            }
        }
        component
    }

    /// That the two outputs of each cycle have one length: each pair of a component has a lead over the
    /// component's first that does not depend on the way.
    fn check_lengths(&self, component: &[usize]) -> Result<(), ExplicitError> {
        let mut lead = vec![None; self.pairs.len()];
        for root in 0..self.pairs.len() {
            if lead[root].is_some() {
                continue;
            }
            lead[root] = Some(0);
            let mut open = vec![root];
            while let Some(node) = open.pop() {
                let here = lead[node].unwrap_or(0);
                for edge in &self.edges[node] {
                    if component[edge.to] != component[node] {
                        continue;
                    }
                    let there = here + edge.lead();
                    match lead[edge.to] {
                        None => {
                            lead[edge.to] = Some(there);
                            open.push(edge.to);
                        }
                        Some(known) if known == there => {}
                        Some(known) => {
                            // Of the two cycles through the root, with this way to the pair and with the
                            // other one, one is not balanced.
                            let inside = |pair| component[pair] == component[root];
                            let back = self.path(edge.to, root, inside);
                            let way = if known + back.1 != 0 {
                                self.tree_path(root, edge.to, known, inside)
                            } else {
                                let mut way = self.tree_path(root, node, here, inside);
                                way.push(edge.byte);
                                way
                            };
                            let cycle = [way, back.0].concat();
                            return Err(self.untwinned(root, cycle));
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// That no cycle writes anything once the outputs have parted.
    fn check_parted(&self, component: &[usize], limits: &Limits) -> Result<(), ExplicitError> {
        let first = (0, Delay::First(Vec::new()));
        let mut met = HashSet::from([first.clone()]);
        // In the order in which they are met, each with where it was met from, and by which byte.
        let mut places = vec![(first, None)];
        let (mut number, mut bytes) = (0, 0);
        while let Some(((node, delay), _)) = places.get(number).cloned() {
            for edge in &self.edges[node] {
                if delay == Delay::Parted
                    && component[edge.to] == component[node]
                    && edge.outputs != [None, None]
                {
                    let inside = |pair| component[pair] == component[node];
                    let mut cycle = vec![edge.byte];
                    cycle.extend(self.path(edge.to, node, inside).0);
                    let mut prefix = Vec::new();
                    while let Some((before, byte)) = places[number].1 {
                        prefix.push(byte);
                        number = before;
                    }
                    prefix.reverse();
                    return Err(ExplicitError(Kind::Untwinned { prefix, cycle }));
                }
                let next = (edge.to, delay.after(edge.outputs));
                if !met.contains(&next) {
                    met.insert(next.clone());
                    check(met.len(), limits)?;
                    bytes += next.1.bytes();
                    if bytes > limits.bytes {
                        return Err(ExplicitError::bytes(DOING, limits.bytes));
                    }
                    places.push((next, Some((number, edge.byte))));
                }
            }
            number += 1;
        }
        Ok(())
    }

    /// A text that leads from a pair to another, with the lead that it gives, inside a component.
    fn path(&self, from: usize, to: usize, inside: impl Fn(usize) -> bool) -> (Vec<u8>, i64) {
        let mut parent: HashMap<usize, (usize, SquareEdge)> = HashMap::new();
        let mut open = VecDeque::from([from]);
        while let Some(node) = open.pop_front() {
            if node == to {
                break;
            }
            for &edge in &self.edges[node] {
                if inside(edge.to) && edge.to != from && !parent.contains_key(&edge.to) {
                    parent.insert(edge.to, (node, edge));
                    open.push_back(edge.to);
                }
            }
        }
        let (mut text, mut lead, mut at) = (Vec::new(), 0, to);
        while at != from
            && let Some(&(before, edge)) = parent.get(&at)
        {
            text.push(edge.byte);
            lead += edge.lead();
            at = before;
        }
        text.reverse();
        (text, lead)
    }

    /// A text that leads from a component's root to a pair with a given lead.
    fn tree_path(
        &self,
        root: usize,
        to: usize,
        lead: i64,
        inside: impl Fn(usize) -> bool,
    ) -> Vec<u8> {
        let mut parent: HashMap<(usize, i64), ((usize, i64), u8)> = HashMap::new();
        let first = (root, 0);
        let mut open = VecDeque::from([first]);
        while let Some(at) = open.pop_front() {
            if at == (to, lead) {
                break;
            }
            for edge in &self.edges[at.0] {
                let next = (edge.to, at.1 + edge.lead());
                if inside(edge.to) && next != first && !parent.contains_key(&next) {
                    parent.insert(next, (at, edge.byte));
                    open.push_back(next);
                }
            }
        }
        let (mut text, mut at) = (Vec::new(), (to, lead));
        while at != first
            && let Some(&(before, byte)) = parent.get(&at)
        {
            text.push(byte);
            at = before;
        }
        text.reverse();
        text
    }

    /// The error of a cycle at a pair.
    fn untwinned(&self, pair: usize, cycle: Vec<u8>) -> ExplicitError {
        let (mut prefix, mut at) = (Vec::new(), pair);
        while let Some((before, byte)) = self.parent[at] {
            prefix.push(byte);
            at = before;
        }
        prefix.reverse();
        ExplicitError(Kind::Untwinned { prefix, cycle })
    }
}

const DOING: &str = "the check of the twinning property";

fn check(count: usize, limits: &Limits) -> Result<(), ExplicitError> {
    match count <= limits.states {
        true => Ok(()),
        false => Err(ExplicitError::states(DOING, limits.states)),
    }
}

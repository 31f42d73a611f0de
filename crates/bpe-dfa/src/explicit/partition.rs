//! States that are of use, and states that are the same: for automata and transducers alike.
//!
//! Both questions are asked of a graph with labelled edges, at most one edge of a label from a state,
//! and a class for each final state. Minimisation is that of partial automata by splitting blocks of
//! states and sets of edges in turn, always walking the smaller half (Valmari and Lehtinen, Efficient
//! minimization of DFAs with partial transition functions, 2008): O(m log m) for m edges, whatever the
//! alphabet.

use std::collections::VecDeque;

/// An edge of the graph.
#[derive(Debug, Clone, Copy)]
pub(super) struct Edge {
    pub(super) from: u32,
    pub(super) label: u32,
    pub(super) to: u32,
}

/// An automaton as a graph. Of each state its class, `None` where it is not final.
#[derive(Debug)]
pub(super) struct Graph {
    pub(super) start: u32,
    pub(super) classes: Vec<Option<u32>>,
    pub(super) edges: Vec<Edge>,
}

/// Which new state each state becomes; several may become one, `None` becomes nothing.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Renaming {
    pub(super) new_of: Vec<Option<u32>>,
    pub(super) count: usize,
    /// Nothing is accepted: the start is the only state, and has no edge.
    is_empty: bool,
}

impl Renaming {
    /// Which new states an edge connects, `None` where it goes.
    pub(super) fn ends(&self, from: u32, to: u32) -> Option<(u32, u32)> {
        if self.is_empty {
            return None;
        }
        Some((self.new_of[from as usize]?, self.new_of[to as usize]?))
    }

    /// Of each new state one of the old ones that became it.
    pub(super) fn representatives(&self) -> Vec<u32> {
        let mut representatives = vec![0; self.count];
        for (state, new) in (0_u32..).zip(&self.new_of) {
            if let Some(new) = *new {
                representatives[new as usize] = state;
            }
        }
        representatives
    }
}

impl Graph {
    /// Renames the states that some accepted sequence passes, in their order, and drops the others. The
    /// start stays in any case.
    pub(super) fn trim(&self) -> Renaming {
        let useful = self.useful();
        if !useful[self.start as usize] {
            return self.nothing();
        }
        let mut count = 0;
        let new_of = useful
            .iter()
            .map(|&useful| {
                useful.then(|| {
                    count += 1;
                    count as u32 - 1
                })
            })
            .collect();
        Renaming {
            new_of,
            count,
            is_empty: false,
        }
    }

    /// Renames states of one behaviour to one state, in the order in which a breadth-first search by
    /// ascending labels meets them, and drops states that no accepted sequence passes. So two automata
    /// of one language over the same labels become the same.
    pub(super) fn minimal(&self) -> Renaming {
        let useful = self.useful();
        if !useful[self.start as usize] {
            return self.nothing();
        }
        let keep = |edge: &&Edge| useful[edge.from as usize] && useful[edge.to as usize];
        let edges: Vec<Edge> = self.edges.iter().filter(keep).copied().collect();
        let block_of = self.blocks(&edges);
        // One representative's edges stand for the block.
        let mut outgoing = vec![Vec::new(); self.classes.len()];
        let mut representative = vec![None; self.classes.len()];
        for (state, &block) in (0_u32..).zip(&block_of) {
            if useful[state as usize] {
                representative[block as usize].get_or_insert(state);
            }
        }
        for edge in &edges {
            let block = block_of[edge.from as usize];
            if representative[block as usize] == Some(edge.from) {
                outgoing[block as usize].push((edge.label, block_of[edge.to as usize]));
            }
        }
        let mut number = vec![None; self.classes.len()];
        let first = block_of[self.start as usize];
        number[first as usize] = Some(0);
        let mut queue = VecDeque::from([first]);
        let mut count = 1;
        while let Some(block) = queue.pop_front() {
            let next = &mut outgoing[block as usize];
            next.sort_unstable();
            for &(_, to) in next.iter() {
                if number[to as usize].is_none() {
                    number[to as usize] = Some(count);
                    count += 1;
                    queue.push_back(to);
                }
            }
        }
        let new_of = (0..self.classes.len())
            .map(|state| number[block_of[state] as usize].filter(|_| useful[state]))
            .collect();
        Renaming {
            new_of,
            count: count as usize,
            is_empty: false,
        }
    }

    /// What is left where nothing is accepted.
    fn nothing(&self) -> Renaming {
        let mut new_of = vec![None; self.classes.len()];
        new_of[self.start as usize] = Some(0);
        Renaming {
            new_of,
            count: 1,
            is_empty: true,
        }
    }

    /// Of each state whether some accepted sequence passes it. Where the start is of no use, none is.
    fn useful(&self) -> Vec<bool> {
        let count = self.classes.len();
        let reached = search(count, [self.start], &self.edges, |edge| {
            (edge.from, edge.to)
        });
        let finals = (0_u32..)
            .zip(&self.classes)
            .filter(|(_, class)| class.is_some());
        let finals = finals.map(|(state, _)| state);
        let live = search(count, finals, &self.edges, |edge| (edge.to, edge.from));
        reached.iter().zip(live).map(|(a, b)| *a && b).collect()
    }

    /// Of each state its block in the coarsest partition into states of one behaviour, given the edges
    /// between useful states. (What it says of other states means nothing.)
    fn blocks(&self, edges: &[Edge]) -> Vec<u32> {
        let count = self.classes.len();
        let incoming = Adjacency::new(count, edges, |edge| edge.to);
        let mut blocks = Partition::by_key(count, |state| self.classes[state]);
        let mut cords = Partition::by_key(edges.len(), |edge| edges[edge].label);
        let (mut block, mut cord) = (1, 0);
        while cord < cords.sets() {
            for place in cords.places(cord) {
                blocks.mark(edges[cords.elements[place] as usize].from);
            }
            blocks.split();
            cord += 1;
            while block < blocks.sets() {
                for place in blocks.places(block) {
                    for &edge in incoming.of(blocks.elements[place]) {
                        cords.mark(edge);
                    }
                }
                cords.split();
                block += 1;
            }
        }
        blocks.set_of
    }
}

/// The states that edges lead to from `sources`, these included.
fn search(
    count: usize,
    sources: impl IntoIterator<Item = u32>,
    edges: &[Edge],
    ends: impl Fn(&Edge) -> (u32, u32),
) -> Vec<bool> {
    let outgoing = Adjacency::new(count, edges, |edge| ends(edge).0);
    let mut met = vec![false; count];
    let mut open: Vec<u32> = sources.into_iter().collect();
    for &source in &open {
        met[source as usize] = true;
    }
    while let Some(state) = open.pop() {
        for &edge in outgoing.of(state) {
            let to = ends(&edges[edge as usize]).1;
            if !met[to as usize] {
                met[to as usize] = true;
                open.push(to);
            }
        }
    }
    met
}

/// The edges at each state.
struct Adjacency {
    first: Vec<u32>,
    edges: Vec<u32>,
}

impl Adjacency {
    fn new(count: usize, edges: &[Edge], end: impl Fn(&Edge) -> u32) -> Self {
        let mut first = vec![0_u32; count + 1];
        for edge in edges {
            first[end(edge) as usize + 1] += 1;
        }
        for state in 0..count {
            first[state + 1] += first[state];
        }
        let mut next = first.clone();
        let mut sorted = vec![0; edges.len()];
        for (number, edge) in (0_u32..).zip(edges) {
            let place = &mut next[end(edge) as usize];
            sorted[*place as usize] = number;
            *place += 1;
        }
        Self {
            first,
            edges: sorted,
        }
    }

    fn of(&self, state: u32) -> &[u32] {
        let state = state as usize;
        &self.edges[self.first[state] as usize..self.first[state + 1] as usize]
    }
}

/// A partition of the numbers below some count that is only ever refined. Each set is a range of
/// `elements`; its marked ones stand first.
struct Partition {
    elements: Vec<u32>,
    place_of: Vec<u32>,
    set_of: Vec<u32>,
    first: Vec<u32>,
    end: Vec<u32>,
    marked: Vec<u32>,
    touched: Vec<u32>,
}

impl Partition {
    /// One set for each key.
    fn by_key<K: Ord>(count: usize, key: impl Fn(usize) -> K) -> Self {
        let mut elements: Vec<u32> = (0..count as u32).collect();
        elements.sort_by_key(|&element| key(element as usize));
        let mut partition = Self {
            place_of: vec![0; count],
            set_of: vec![0; count],
            first: Vec::new(),
            end: Vec::new(),
            marked: Vec::new(),
            touched: Vec::new(),
            elements,
        };
        let same = |a: &u32, b: &u32| key(*a as usize) == key(*b as usize);
        let mut place = 0;
        for set in partition.elements.chunk_by(same) {
            partition.first.push(place);
            for &element in set {
                partition.place_of[element as usize] = place;
                partition.set_of[element as usize] = partition.end.len() as u32;
                place += 1;
            }
            partition.end.push(place);
            partition.marked.push(0);
        }
        partition
    }

    fn sets(&self) -> usize {
        self.first.len()
    }

    fn places(&self, set: usize) -> core::ops::Range<usize> {
        self.first[set] as usize..self.end[set] as usize
    }

    fn mark(&mut self, element: u32) {
        let set = self.set_of[element as usize] as usize;
        let place = self.place_of[element as usize];
        let border = self.first[set] + self.marked[set];
        if place < border {
            return;
        }
        if self.marked[set] == 0 {
            self.touched.push(set as u32);
        }
        self.marked[set] += 1;
        let other = self.elements[border as usize];
        self.elements.swap(place as usize, border as usize);
        self.place_of[other as usize] = place;
        self.place_of[element as usize] = border;
    }

    /// Splits each set with marked and unmarked elements in two. The smaller half is the new set.
    fn split(&mut self) {
        while let Some(set) = self.touched.pop() {
            let set = set as usize;
            let border = self.first[set] + self.marked[set];
            let marked = core::mem::take(&mut self.marked[set]);
            let unmarked = self.end[set] - border;
            if unmarked == 0 {
                continue;
            }
            let (first, end) = if marked <= unmarked {
                let first = core::mem::replace(&mut self.first[set], border);
                (first, border)
            } else {
                let end = core::mem::replace(&mut self.end[set], border);
                (border, end)
            };
            let new = self.sets() as u32;
            for place in first..end {
                self.set_of[self.elements[place as usize] as usize] = new;
            }
            self.first.push(first);
            self.end.push(end);
            self.marked.push(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Equal behaviour by refinement of all states at once until nothing changes (Moore).
    fn moore(graph: &Graph) -> Vec<Option<u32>> {
        let useful = graph.useful();
        let count = graph.classes.len();
        let mut block: Vec<usize> = (0..count)
            .map(|state| graph.classes[state].map_or(0, |class| class as usize + 1))
            .collect();
        for _ in 0..=count {
            let mut signatures: Vec<(usize, Vec<(u32, usize)>)> =
                (0..count).map(|state| (block[state], Vec::new())).collect();
            for edge in &graph.edges {
                if useful[edge.to as usize] {
                    let signature = &mut signatures[edge.from as usize].1;
                    signature.push((edge.label, block[edge.to as usize]));
                }
            }
            for (_, edges) in &mut signatures {
                edges.sort_unstable();
            }
            let mut names = signatures.clone();
            names.sort();
            names.dedup();
            block = signatures
                .iter()
                .map(|signature| names.binary_search(signature).expect("one of them"))
                .collect();
        }
        (0..count)
            .map(|state| useful[state].then_some(block[state] as u32))
            .collect()
    }

    fn graph() -> impl Strategy<Value = Graph> {
        (1_u32..9, 1_u32..4).prop_flat_map(|(states, labels)| {
            let class = prop_oneof![3 => Just(None), 2 => (0_u32..2).prop_map(Some)];
            let to = prop_oneof![1 => Just(None), 2 => (0..states).prop_map(Some)];
            let classes = proptest::collection::vec(class, states as usize);
            let table = proptest::collection::vec(to, (states * labels) as usize);
            (classes, table, 0..states).prop_map(move |(classes, table, start)| {
                let edges = (0_u32..).zip(table).filter_map(|(cell, to)| {
                    let (from, label) = (cell / labels, cell % labels);
                    to.map(|to| Edge { from, label, to })
                });
                Graph {
                    start,
                    classes,
                    edges: edges.collect(),
                }
            })
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn states_become_one_exactly_where_refinement_of_all_states_finds_no_difference(graph in graph()) {
            let expected = moore(&graph);
            let minimal = graph.minimal();
            if expected[graph.start as usize].is_none() {
                prop_assert_eq!((minimal.count, minimal.ends(graph.start, graph.start)), (1, None));
                return Ok(());
            }
            for (a, &first) in expected.iter().enumerate() {
                prop_assert_eq!(first.is_some(), minimal.new_of[a].is_some());
                for (b, &second) in expected.iter().enumerate() {
                    if first.is_some() && second.is_some() {
                        prop_assert_eq!(first == second, minimal.new_of[a] == minimal.new_of[b]);
                    }
                }
            }
            let mut names: Vec<u32> = minimal.new_of.iter().flatten().copied().collect();
            names.sort_unstable();
            names.dedup();
            prop_assert_eq!(names, (0..minimal.count as u32).collect::<Vec<_>>());
        }

        #[test]
        fn trimming_keeps_the_order_and_the_start(graph in graph()) {
            let trimmed = graph.trim();
            prop_assert!(trimmed.new_of[graph.start as usize].is_some());
            let names: Vec<u32> = trimmed.new_of.iter().flatten().copied().collect();
            prop_assert_eq!(names, (0..trimmed.count as u32).collect::<Vec<_>>());
        }
    }
}

//! An order of nodes that keeps "this one before that one", or a cycle that shows that there is none.

use alloc::collections::{BinaryHeap, VecDeque};
use alloc::vec::Vec;
use core::cmp::Reverse;

use super::Constraint;

/// Nodes `0..weights.len()` are to be placed; the nodes after them only carry edges, so that "all of
/// these before all of those" takes as many edges as there are nodes.
pub(super) struct Graph {
    /// Of the nodes to be placed, the original priorities: among free choices the smallest is taken.
    weights: Vec<u32>,
    nodes: usize,
    edges: Vec<Edge>,
}

#[derive(Clone, Copy)]
struct Edge {
    from: u32,
    to: u32,
    kind: Constraint,
}

/// What [`Graph::sort`] found.
pub(super) struct Sorted {
    /// All nodes to be placed. Tree edges are always kept, the others as far as they can be.
    pub(super) order: Vec<u32>,
    /// Nodes each of which must be before the next, and the last before the first; with the reason.
    pub(super) cycle: Option<Vec<(u32, Constraint)>>,
}

impl Graph {
    pub(super) fn new(weights: Vec<u32>) -> Self {
        Self {
            nodes: weights.len(),
            weights,
            edges: Vec::new(),
        }
    }

    /// A node that only carries edges.
    pub(super) fn add_relay(&mut self) -> u32 {
        self.nodes += 1;
        (self.nodes - 1) as u32
    }

    pub(super) fn add_edge(&mut self, from: u32, to: u32, kind: Constraint) {
        self.edges.push(Edge { from, to, kind });
    }

    /// The topological order in which the smallest weight that is free comes next. O(e log e) for e
    /// nodes and edges.
    ///
    /// Where no node is free, the first such time gives the cycle, and then the smallest weight goes
    /// next whose tree edges are satisfied.
    pub(super) fn sort(&mut self) -> Sorted {
        self.edges.sort_unstable_by_key(|edge| edge.from);
        let mut starts = alloc::vec![0_u32; self.nodes + 1];
        let mut waiting = alloc::vec![0_u32; self.nodes];
        let mut waiting_in_tree = alloc::vec![0_u32; self.weights.len()];
        for edge in &self.edges {
            starts[edge.from as usize + 1] += 1;
            waiting[edge.to as usize] += 1;
            if edge.kind == Constraint::Tree {
                waiting_in_tree[edge.to as usize] += 1;
            }
        }
        for node in 0..self.nodes {
            starts[node + 1] += starts[node];
        }
        let out = |node: u32| starts[node as usize] as usize..starts[node as usize + 1] as usize;
        let weight = |node: u32| self.weights.get(node as usize).copied();

        let mut free: BinaryHeap<Reverse<(Option<u32>, u32)>> = BinaryHeap::new();
        let mut free_in_tree = BinaryHeap::new();
        for node in 0..self.nodes as u32 {
            if waiting[node as usize] == 0 {
                free.push(Reverse((weight(node), node)));
            }
            if waiting_in_tree.get(node as usize) == Some(&0) {
                free_in_tree.push(Reverse((weight(node), node)));
            }
        }
        let mut placed = alloc::vec![false; self.nodes];
        let mut order = Vec::with_capacity(self.weights.len());
        let mut cycle = None;
        while order.len() < self.weights.len() {
            let next = match free.pop() {
                Some(next) => next,
                None => {
                    if cycle.is_none() {
                        cycle = self.cycle(&placed, &starts);
                    }
                    // Sides are shorter than what they make, so tree edges alone have no cycle.
                    match free_in_tree.pop() {
                        Some(next) => next,
                        None => break,
                    }
                }
            };
            let Reverse((_, node)) = next;
            if core::mem::replace(&mut placed[node as usize], true) {
                continue;
            }
            if weight(node).is_some() {
                order.push(node);
            }
            for edge in &self.edges[out(node)] {
                let to = edge.to as usize;
                waiting[to] -= 1;
                if waiting[to] == 0 && !placed[to] {
                    free.push(Reverse((weight(edge.to), edge.to)));
                }
                if edge.kind == Constraint::Tree {
                    waiting_in_tree[to] -= 1;
                    if waiting_in_tree[to] == 0 {
                        free_in_tree.push(Reverse((weight(edge.to), edge.to)));
                    }
                }
            }
        }
        Sorted { order, cycle }
    }

    /// A cycle of nodes that are not placed, the shortest through one of its nodes. Each of them has
    /// an edge from another such node.
    fn cycle(&self, placed: &[bool], starts: &[u32]) -> Option<Vec<(u32, Constraint)>> {
        let open = |edge: &&Edge| !placed[edge.from as usize] && !placed[edge.to as usize];
        let mut before = alloc::vec![None; self.nodes];
        for edge in self.edges.iter().filter(open) {
            before[edge.to as usize] = Some(edge.from);
        }
        let mut seen = alloc::vec![false; self.nodes];
        let mut node = (0..self.nodes as u32).find(|&node| !placed[node as usize])?;
        while !core::mem::replace(&mut seen[node as usize], true) {
            node = before[node as usize]?;
        }
        // Start from a node to be placed: relays stand between them only.
        while weight_of(&self.weights, node).is_none() {
            node = before[node as usize]?;
        }
        // Breadth first, until an edge leads back to the start.
        let start = node;
        let mut reached: Vec<Option<(u32, Constraint)>> = alloc::vec![None; self.nodes];
        let mut queue = VecDeque::from([start]);
        while let Some(node) = queue.pop_front() {
            let range = starts[node as usize] as usize..starts[node as usize + 1] as usize;
            for edge in self.edges[range].iter().filter(open) {
                if edge.to == start {
                    let mut cycle = alloc::vec![(node, edge.kind)];
                    let mut node = node;
                    while node != start {
                        let (from, kind) = reached[node as usize]?;
                        cycle.push((from, kind));
                        node = from;
                    }
                    cycle.reverse();
                    cycle.retain(|&(node, _)| weight_of(&self.weights, node).is_some());
                    return Some(cycle);
                }
                if edge.to != start && reached[edge.to as usize].is_none() {
                    reached[edge.to as usize] = Some((node, edge.kind));
                    queue.push_back(edge.to);
                }
            }
        }
        None
    }
}

fn weight_of(weights: &[u32], node: u32) -> Option<u32> {
    weights.get(node as usize).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    #[test]
    fn the_smallest_weight_that_is_free_comes_next() {
        let mut graph = Graph::new(vec![30, 10, 20]);
        let relay = graph.add_relay();
        graph.add_edge(0, relay, Constraint::Sibling);
        graph.add_edge(relay, 1, Constraint::Sibling);
        let sorted = graph.sort();
        assert_eq!(sorted.order, [2, 0, 1]);
        assert!(sorted.cycle.is_none());
    }

    #[test]
    fn a_cycle_is_told_without_relays_and_what_hangs_on_it() {
        let mut graph = Graph::new(vec![0, 1, 2, 3]);
        let relay = graph.add_relay();
        graph.add_edge(0, 1, Constraint::Tree);
        graph.add_edge(1, relay, Constraint::Conflict);
        graph.add_edge(relay, 0, Constraint::Conflict);
        graph.add_edge(1, 2, Constraint::Sibling);
        graph.add_edge(3, 0, Constraint::Sibling);
        let sorted = graph.sort();
        let mut cycle = sorted.cycle.expect("0 and 1");
        cycle.sort_by_key(|&(node, _)| node);
        assert_eq!(cycle, [(0, Constraint::Tree), (1, Constraint::Conflict)]);
        assert_eq!(sorted.order, [3, 0, 1, 2]);
    }
}

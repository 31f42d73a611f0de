//! Undecided boundaries: how long can two readings of a text both stay possible?

use std::collections::{BTreeSet, HashMap, HashSet};

use super::Analysis;
use super::cells::Cell;
use super::machine::{Machine, State};
use super::product::{Pair, Reached};

/// Two ways to go on with a text that stay possible however long the text goes on.
///
/// ```
/// use bpe_lexers::{Analysis, Pattern};
///
/// // GPT-2's pattern decides every boundary two characters later at most.
/// let gpt2 = Analysis::new(&[Pattern::gpt2()])?;
/// assert!(gpt2.undecided().is_empty());
/// // The others do not decide about blanks after a newline.
/// let cl100k = Analysis::new(&[Pattern::cl100k()])?;
/// let undecided = &cl100k.undecided()[0];
/// // White space after a newline: one span with a newline that may follow, or two.
/// assert_eq!((undecided.before.as_str(), undecided.repeated.as_str()), ("\n\t\t", "\t"));
/// assert_eq!(undecided.readings, [vec![0], vec![0, 1]]);
/// assert!(undecided.is_bounded);
/// # Ok::<(), bpe_lexers::AnalysisError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undecided {
    /// The shortest text after which the two are possible, made of one character of each class.
    pub before: String,
    /// A shortest text after which, however often it is repeated, they still are.
    pub repeated: String,
    /// The two readings: in each the characters of `before` at which a span starts.
    pub readings: [Vec<usize>; 2],
    /// Whether no boundary is among what can be repeated, so that a spanner can hold the readings in
    /// bounded memory.
    pub is_bounded: bool,
}

/// What stays undecided, found by looking at all pairs of states.
pub(super) struct Readings {
    pub(super) undecided: Vec<Undecided>,
    pub(super) look_ahead: usize,
    pub(super) forward_states: usize,
    pub(super) most_alive: usize,
}

impl Readings {
    pub(super) fn new(analysis: &Analysis) -> Self {
        let machine = &analysis.machine;
        let reached = Reached::new(machine, machine);
        let pairs: Vec<Pair> = (reached.pairs.iter().copied())
            .filter(|pair| pair.differ && pair.one < pair.two)
            .collect();
        let edges: HashMap<Pair, Vec<(Cell, Pair, bool)>> = (pairs.iter())
            .map(|&pair| (pair, edges(machine, pair)))
            .collect();
        let mut undecided = Vec::new();
        let mut cyclic = HashSet::new();
        for &pair in &pairs {
            if let Some(repeated) = cycle(&edges, pair) {
                cyclic.insert(pair);
                let before = reached.text(pair);
                undecided.push(Undecided {
                    readings: [pair.one, pair.two].map(|state| starts(machine, &before, state)),
                    before: analysis.cells.text(&before),
                    repeated: analysis.cells.text(&repeated),
                    is_bounded: !repeats_a_boundary(&edges, pair),
                });
            }
        }
        let (forward_states, most_alive) = forward(machine);
        Self {
            undecided,
            look_ahead: longest_path(&edges, &pairs, &cyclic),
            forward_states,
            most_alive,
        }
    }
}

/// The pairs after one more character, with the smaller state first, and whether one of the two
/// has a boundary before it.
fn edges(machine: &Machine, pair: Pair) -> Vec<(Cell, Pair, bool)> {
    let mut edges = Vec::new();
    for cell in 0..machine.cells() {
        let cell = cell as Cell;
        for (a, b, next) in pair.follow(machine, machine, cell) {
            let boundary = a.is_boundary() || b.is_boundary();
            let (one, two) = (next.one.min(next.two), next.one.max(next.two));
            edges.push((cell, Pair { one, two, ..next }, boundary));
        }
    }
    edges
}

type Edges = HashMap<Pair, Vec<(Cell, Pair, bool)>>;

/// The shortest text that leads from a pair back to it.
fn cycle(edges: &Edges, pair: Pair) -> Option<Vec<Cell>> {
    let mut from: HashMap<Pair, (Pair, Cell)> = HashMap::new();
    let mut queue = std::collections::VecDeque::from([pair]);
    while let Some(place) = queue.pop_front() {
        for &(cell, next, _) in edges.get(&place).into_iter().flatten() {
            if next == pair {
                let mut text = vec![cell];
                let mut place = place;
                while place != pair {
                    let (before, cell) = from[&place];
                    text.push(cell);
                    place = before;
                }
                text.reverse();
                return Some(text);
            }
            from.entry(next).or_insert_with(|| {
                queue.push_back(next);
                (place, cell)
            });
        }
    }
    None
}

/// Is there a way from the pair back to it on which one of the two has a boundary?
fn repeats_a_boundary(edges: &Edges, pair: Pair) -> bool {
    let reachable = |from: Pair| {
        let mut seen = HashSet::from([from]);
        let mut stack = vec![from];
        while let Some(place) = stack.pop() {
            for &(_, next, _) in edges.get(&place).into_iter().flatten() {
                if seen.insert(next) {
                    stack.push(next);
                }
            }
        }
        seen
    };
    let after = reachable(pair);
    (after.iter()).any(|place| {
        let mut edges = edges.get(place).into_iter().flatten();
        edges.any(|&(_, next, boundary)| boundary && reachable(next).contains(&pair))
    })
}

/// The most characters that must be read, from a boundary on, to decide it, where that is
/// bounded.
fn longest_path(edges: &Edges, pairs: &[Pair], cyclic: &HashSet<Pair>) -> usize {
    // Pairs that can lead to a cycle are not bounded.
    let mut unbounded = cyclic.clone();
    loop {
        let leads = |pair: &&Pair| {
            let mut next = edges.get(pair).into_iter().flatten();
            next.any(|(_, next, _)| unbounded.contains(next))
        };
        let more: Vec<Pair> = pairs.iter().filter(leads).copied().collect();
        let before = unbounded.len();
        unbounded.extend(more);
        if unbounded.len() == before {
            break;
        }
    }
    // Without the pairs on cycles there are none, so the lengths settle.
    let mut length: HashMap<Pair, usize> = HashMap::new();
    for _ in 0..=pairs.len() {
        let mut changed = false;
        for pair in pairs.iter().filter(|pair| !unbounded.contains(pair)) {
            let next = edges.get(pair).into_iter().flatten();
            let longest = next.filter_map(|(_, next, _)| length.get(next)).max();
            let longest = longest.copied().unwrap_or(0) + 1;
            changed |= length.insert(*pair, longest) != Some(longest);
        }
        if !changed {
            break;
        }
    }
    // The character that decides is one more.
    length.values().max().map_or(1, |longest| longest + 1)
}

/// The characters at which spans start in the run over `text` that ends in `state`.
fn starts(machine: &Machine, text: &[Cell], state: State) -> Vec<usize> {
    let mut layers = vec![vec![(0, 0, false)]];
    for &cell in text {
        let last = layers.last().map_or(&[][..], Vec::as_slice);
        let mut layer = Vec::new();
        for (parent, &(state, _, _)) in last.iter().enumerate() {
            for &(output, next) in machine.steps(state, cell) {
                layer.push((next, parent, output.is_boundary()));
            }
        }
        layers.push(layer);
    }
    let mut starts = Vec::new();
    let last = layers.last().map_or(&[][..], Vec::as_slice);
    let mut place = last.iter().position(|&(last, ..)| last == state);
    for (index, layer) in layers.iter().enumerate().rev() {
        let Some(&(_, parent, boundary)) = place.and_then(|place| layer.get(place)) else {
            break;
        };
        if boundary {
            starts.push(index - 1);
        }
        place = Some(parent);
    }
    starts.reverse();
    starts
}

/// The number of sets of states that one text leads to, and the size of the largest.
fn forward(machine: &Machine) -> (usize, usize) {
    let start = BTreeSet::from([0]);
    let mut seen = HashSet::from([start.clone()]);
    let mut stack = vec![start];
    let mut most = 1;
    while let Some(set) = stack.pop() {
        for cell in 0..machine.cells() {
            let next = set
                .iter()
                .flat_map(|&state| machine.steps(state, cell as Cell));
            let next: BTreeSet<State> = next.map(|&(_, next)| next).collect();
            most = most.max(next.len());
            // A pattern for which this is too much has told enough.
            if seen.len() < 100_000 && seen.insert(next.clone()) {
                stack.push(next);
            }
        }
    }
    (seen.len(), most)
}

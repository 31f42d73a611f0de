//! The layout for every dictionary: memory in proportion to the bytes of the tokens, whatever they
//! are.
//!
//! The longest suffix token comes from the trie with its suffix links. The last token is then found
//! on the whole successor forest, cut into heavy paths. From a valid token two questions lead
//! further down: how far do the valid ones reach on its heavy path, and is one of its other children
//! valid? A token is valid if it is a suffix of the text, which is a question of the tree of suffix
//! tokens, answered by two numbers, and if its interval holds the last token of the text before
//! its successor. Valid tokens are the beginning of a path (000 Theorem 4.2), so the first question is a
//! binary search; the intervals of all children of a token are disjoint, so the second is one too.

use alloc::vec::Vec;

use crate::forest::{Forest, NONE};
use crate::lanes::{NO_VALUE, Step};
use crate::trie::{ROOT, Trie};

/// Time a byte: amortised O(1) for the trie but for the search among children, and
/// O(log n * log t) for the last token, n tokens of up to t bytes: a path from a root meets at most
/// log n heavy paths.
///
/// Memory: 13 bytes a state of the trie (one state a byte of a token at most), and 60 bytes a token.
pub(crate) struct Wide {
    trie: Trie,
    /// By rank.
    tests: Vec<Test>,
    tokens: Vec<Token>,
    /// Ranks along the heavy paths, one path after the other.
    paths: Vec<u32>,
    /// Of each token the start of its children but the heavy one, and one more at the end.
    starts: Vec<u32>,
    /// Those children, by the places that they are valid at.
    children: Vec<Child>,
}

/// So many suffix tokens are tested from the longest on, before the search from the other end.
const FIRST_TESTS: usize = 4;

/// Whether a token ends the text.
#[derive(Clone, Copy)]
struct Test {
    number: u32,
    /// Of what the last token of the text before the successor is: its number, less `low`, is below `width`.
    low: u32,
    width: u32,
    /// Bytes of the successor.
    successor_len: u32,
}

impl Test {
    #[inline(always)]
    fn holds(&self, history: impl Fn(usize) -> u32) -> bool {
        history(self.successor_len as usize).wrapping_sub(self.low) < self.width
    }
}

/// What else is known of a token, by rank.
#[derive(Clone, Copy)]
struct Token {
    len: u32,
    /// Rank of the atom that the token ends with.
    atom: u32,
    /// The token is a suffix of those that have their first number here in this interval.
    suffix_of: u32,
    suffix_of_end: u32,
    /// Where the token is in `paths`, and where its path ends.
    place: u32,
    path_end: u32,
}

#[derive(Clone, Copy)]
struct Child {
    low: u32,
    high: u32,
    rank: u32,
}

impl Wide {
    /// O(n log n) for n tokens.
    pub(crate) fn new(forest: &Forest, mut trie: Trie) -> Self {
        let mut tokens: Vec<Token> = forest
            .nodes
            .iter()
            .map(|node| Token {
                len: node.len,
                atom: NONE,
                suffix_of: 0,
                suffix_of_end: 1,
                place: 0,
                path_end: 0,
            })
            .collect();
        let mut tests = Vec::with_capacity(tokens.len());
        for (rank, node) in forest.nodes.iter().enumerate() {
            let successor = tokens.get(node.successor as usize).copied();
            tokens[rank].atom = successor.map_or(rank as u32, |successor| successor.atom);
            tests.push(Test {
                number: node.number,
                low: node.low,
                // Atoms are always valid.
                width: match successor {
                    Some(_) => node.high.saturating_sub(node.low),
                    None => u32::MAX,
                },
                successor_len: successor.map_or(1, |successor| successor.len),
            });
        }
        number_suffixes(&mut tokens, &trie);
        let heavy = heavy_children(forest);
        let paths = lay_paths(&mut tokens, forest, &heavy);
        let (starts, children) = light_children(forest, &heavy);
        trie.skip_leaves();
        trie.shrink();
        Self {
            trie,
            tests,
            tokens,
            paths,
            starts,
            children,
        }
    }

    /// Length of the longest suffix of the text that more bytes can make a token of.
    pub(crate) fn depth(&self, state: u32) -> usize {
        self.trie.depth(state)
    }

    /// Which of the suffix tokens of `longest` ends the text.
    #[inline]
    fn last_token(&self, longest: u32, history: impl Fn(usize) -> u32) -> u32 {
        // The longest valid one is looked for. On most texts it is among the first.
        let mut next = longest;
        for _ in 0..FIRST_TESTS {
            let test = &self.tests[next as usize];
            if test.holds(&history) {
                return test.number;
            }
            next = self.trie.link_of(next); // There is one: atoms are valid.
        }
        self.search(longest, history)
    }

    #[inline(never)]
    fn search(&self, longest: u32, history: impl Fn(usize) -> u32) -> u32 {
        let longest = &self.tokens[longest as usize];
        let is_valid = |rank: u32| {
            let token = &self.tokens[rank as usize];
            (token.suffix_of..token.suffix_of_end).contains(&longest.suffix_of)
                && self.tests[rank as usize].holds(&history)
        };
        let mut valid = longest.atom;
        loop {
            let token = &self.tokens[valid as usize];
            let path = &self.paths[token.place as usize..token.path_end as usize];
            valid = path[last_valid(path.len(), |at| is_valid(path[at]))];
            let len = self.tokens[valid as usize].len as usize;
            match self.light_child(valid, history(len)) {
                Some(child) => valid = child,
                None => return self.tests[valid as usize].number,
            }
        }
    }

    /// The child that is valid after a text with this last token, but for the heavy one.
    fn light_child(&self, rank: u32, number: u32) -> Option<u32> {
        let start = self.starts[rank as usize] as usize;
        let end = self.starts[rank as usize + 1] as usize;
        let children = &self.children[start..end];
        let place = children.partition_point(|child| child.low <= number);
        let child = children.get(place.checked_sub(1)?)?;
        (number < child.high).then_some(child.rank)
    }

    /// Bytes of memory.
    pub(crate) fn memory(&self) -> usize {
        self.trie.memory()
            + size_of_val(&self.tests[..])
            + size_of_val(&self.tokens[..])
            + size_of_val(&self.paths[..])
            + size_of_val(&self.starts[..])
            + size_of_val(&self.children[..])
    }
}

impl Step for &Wide {
    fn start(self) -> u32 {
        ROOT
    }

    #[inline(always)]
    fn step(self, state: u32, _: u8, byte: u8, history: impl Fn(usize) -> u32) -> (u32, u32) {
        let node = self.trie.step(state, byte);
        let value = match self.trie.token(node) {
            NONE => NO_VALUE,
            longest => self.last_token(longest, history),
        };
        (self.trie.with_child(node), value)
    }
}

/// The last index below `len` for which `is_valid` holds, if it holds up to there and 0 is valid:
/// steps that double, then a binary search, O(log of the index).
fn last_valid(len: usize, is_valid: impl Fn(usize) -> bool) -> usize {
    let mut valid = 0;
    let mut step = 1;
    let mut invalid = loop {
        let next = valid + step;
        if next >= len {
            break len;
        }
        if !is_valid(next) {
            break next;
        }
        valid = next;
        step *= 2;
    };
    while invalid - valid > 1 {
        let middle = valid + (invalid - valid) / 2;
        match is_valid(middle) {
            true => valid = middle,
            false => invalid = middle,
        }
    }
    valid
}

/// Numbers the tree in which the parent of a token is the next shorter token that is a suffix of
/// it: a token is a suffix of those below it.
fn number_suffixes(tokens: &mut [Token], trie: &Trie) {
    let mut by_length: Vec<u32> = (0..tokens.len() as u32).collect();
    by_length.sort_unstable_by_key(|&rank| tokens[rank as usize].len);
    for &rank in by_length.iter().rev() {
        let size = tokens[rank as usize].suffix_of_end;
        match trie.link_of(rank) {
            NONE => {}
            link => tokens[link as usize].suffix_of_end += size,
        }
    }
    // A token's `suffix_of` is its number; `next` is where its next child goes.
    let mut next = alloc::vec![0; tokens.len()];
    let mut next_root = 0;
    for &rank in &by_length {
        let size = tokens[rank as usize].suffix_of_end;
        let number = match trie.link_of(rank) {
            NONE => &mut next_root,
            link => &mut next[link as usize],
        };
        let own = *number;
        *number += size;
        next[rank as usize] = own + 1;
        tokens[rank as usize].suffix_of = own;
        tokens[rank as usize].suffix_of_end = own + size;
    }
}

/// Of each token the child with the most tokens below it, or `NONE`.
fn heavy_children(forest: &Forest) -> Vec<u32> {
    let mut heavy = alloc::vec![NONE; forest.len()];
    let size = |rank: u32| {
        let node = forest.node(rank);
        node.end - node.number
    };
    for (rank, node) in (0_u32..).zip(&forest.nodes) {
        if !node.is_atom() {
            let best = &mut heavy[node.successor as usize];
            if *best == NONE || size(rank) > size(*best) {
                *best = rank;
            }
        }
    }
    heavy
}

/// Lays the heavy paths one after the other.
fn lay_paths(tokens: &mut [Token], forest: &Forest, heavy: &[u32]) -> Vec<u32> {
    let mut paths = Vec::with_capacity(tokens.len());
    for (rank, node) in (0_u32..).zip(&forest.nodes) {
        if !node.is_atom() && heavy[node.successor as usize] == rank {
            continue; // In the path of its parent.
        }
        let start = paths.len();
        let mut next = rank;
        while next != NONE {
            tokens[next as usize].place = paths.len() as u32;
            paths.push(next);
            next = heavy[next as usize];
        }
        for &rank in &paths[start..] {
            tokens[rank as usize].path_end = paths.len() as u32;
        }
    }
    paths
}

/// The other children of each token, by what they are valid after.
fn light_children(forest: &Forest, heavy: &[u32]) -> (Vec<u32>, Vec<Child>) {
    let mut starts = alloc::vec![0; forest.len() + 1];
    let light = || {
        (0_u32..)
            .zip(&forest.nodes)
            .filter(|(rank, node)| !node.is_atom() && heavy[node.successor as usize] != *rank)
    };
    for (_, node) in light() {
        starts[node.successor as usize + 1] += 1;
    }
    for rank in 1..starts.len() {
        starts[rank] += starts[rank - 1];
    }
    let none = Child {
        low: 0,
        high: 0,
        rank: NONE,
    };
    let mut children = alloc::vec![none; starts[forest.len()] as usize];
    let mut next = starts.clone();
    for (rank, node) in light() {
        let place = &mut next[node.successor as usize];
        children[*place as usize] = Child {
            low: node.low,
            high: node.high,
            rank,
        };
        *place += 1;
    }
    for rank in 0..forest.len() {
        children[starts[rank] as usize..starts[rank + 1] as usize]
            .sort_unstable_by_key(|child| child.low);
    }
    (starts, children)
}

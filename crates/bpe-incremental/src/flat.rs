//! The fast layout: one load a byte for the automaton, one for the record of the longest suffix token.
//!
//! A state's row holds the targets of its own children and those it would find along its suffix
//! links, as far as they are at depth 3 and more; so there is no loop over suffix links. Shallower
//! targets follow from the last two bytes and stand in one table. Rows lie in one array, first fit,
//! each from a base of its own, so that the byte alone checks whether an entry belongs to the row.
//! States without children share the row of their suffix.
//!
//! The candidates are tried from the longest suffix token along the links to shorter ones. A token
//! with many suffix tokens has a search tree ([`Trees`]), which takes over after a few failures.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::hint::select_unpredictable;

use crate::forest::{Forest, NONE};
use crate::lanes::{NO_VALUE, Step};
use crate::rows::Rows;
use crate::search_trees::Trees;
use crate::trie::{ROOT, Trie};

/// The layout for dictionaries with tokens of up to 255 bytes and fewer than 2^24 tokens and states.
///
/// Time a byte: O(1) for the automaton; at most `LINKS + FEW` tests, or O(log^2 t) of them in a
/// search tree, t the length of the longest token.
///
/// Memory: 9 bytes a place of the array of rows, at most `MOST_PLACES` and no more than 16 a state;
/// 512 KiB for the pairs; 20 bytes a token; 28 bytes an entry of a search tree, at most
/// [`Trees::MOST_PER_TOKEN`] a token. Where one of these does not hold, there is no such layout.
pub(crate) struct Flat {
    /// Bits 0 to 7 the byte (the check), 8 to 31 the base of the next state, 32 to 55 the rank of
    /// the longest suffix token, 56 to 63 the length of its successor.
    rows: Vec<u64>,
    /// The same by the last two bytes, for targets at depth 1 and 2.
    pairs: Box<[u64; 1 << 16]>,
    /// By rank, and one more for "no token".
    records: Vec<Record>,
    /// Of each token its search tree, or `NONE`.
    tree_of: Vec<u32>,
    trees: Trees,
    /// By base, the number of bytes of the state.
    depths: Vec<u8>,
    /// Whether more than one byte can follow from each byte on.
    goes_on: [bool; 256],
    start: u32,
    shallow: u32,
}

/// What a test needs.
#[derive(Clone, Copy)]
struct Record {
    /// The token can end the text where the value before its successor, less `low`, is below `width`.
    low: u32,
    width: u32,
    value: u32,
    /// The next shorter suffix token: its rank in the upper 24 bits, its successor's length below.
    link: u32,
}

/// Links that are tried before a search tree.
const LINKS: usize = 2;

/// Suffix tokens that a token has without a search tree.
const FEW: usize = 8;

/// Numbers have 24 bits; a few are left for fallback bytes, the unknown token and the empty prefix.
const MOST_TOKENS: usize = (1 << 24) - 1024;

/// What an entry is a number in the low byte of.
const BASE_SHIFT: u32 = 8;

impl Flat {
    /// The layout, `None` where the dictionary does not fit it. O(places + n log n) for n tokens.
    pub(crate) fn new(forest: &Forest, trie: &Trie) -> Option<Self> {
        if forest.len() > MOST_TOKENS || forest.nodes.iter().any(|node| node.len > 255) {
            return None;
        }
        let successor_len = |node: &crate::forest::Node| match node.successor {
            NONE => 1, // Not asked for, but it must be there.
            successor => forest.node(successor).len,
        };
        let link = |rank: u32| match trie.link_of(rank) {
            NONE => (forest.len() as u32) << 8 | 1,
            link => link << 8 | successor_len(forest.node(link)),
        };
        let mut records: Vec<Record> = (0_u32..)
            .zip(&forest.nodes)
            .map(|(rank, node)| {
                let (low, width) = interval(forest, rank);
                Record {
                    low,
                    width,
                    value: value(node.number, node.len),
                    link: link(rank),
                }
            })
            .collect();
        let none = forest.len() as u32;
        records.push(Record {
            low: 0,
            width: u32::MAX,
            value: NO_VALUE,
            link: none << 8 | 1,
        });
        let (tree_of, trees) = Trees::new(forest, trie, FEW)?;
        let rows = Rows::new(forest, trie)?;
        // Two bases after all rows: of the empty text, and of all texts that end in a state of one
        // byte or none.
        let start = rows.end();
        let shallow = start + 512;
        let mut flat = Self {
            rows: Vec::new(),
            pairs: Box::new([0; 1 << 16]),
            records,
            tree_of,
            trees,
            depths: rows.depths(trie, shallow as usize + 1),
            goes_on: [false; 256],
            start,
            shallow,
        };
        let base_of = |node: u32| rows.base(node).unwrap_or(shallow);
        let entry = |node: u32, byte: u8| {
            let (rank, len) = match trie.token(node) {
                NONE => (none, 1),
                rank => (rank, successor_len(forest.node(rank))),
            };
            u64::from(byte)
                | u64::from(base_of(trie.with_child(node))) << BASE_SHIFT
                | u64::from(rank) << 32
                | u64::from(len) << 56
        };
        for first in 0..=255_u8 {
            let before = trie.step(ROOT, first);
            flat.goes_on[usize::from(first)] = before != ROOT && trie.with_child(before) != ROOT;
            for byte in 0..=255 {
                let target = match before {
                    ROOT => None,
                    _ => trie.child(before, byte),
                };
                let target = target.unwrap_or_else(|| trie.step(ROOT, byte));
                flat.pairs[usize::from(first) << 8 | usize::from(byte)] = entry(target, byte);
            }
        }
        flat.rows = rows.entries(trie, entry, |before, byte| {
            flat.pairs[usize::from(before) << 8 | usize::from(byte)]
        });
        flat.rows.resize(start as usize, 0);
        let first = (0..=255).map(|byte| entry(trie.step(ROOT, byte), byte));
        flat.rows.extend(first);
        // The check of these never holds: it would for a base one up or down, which no row has.
        flat.rows.resize(shallow as usize, 0);
        flat.rows.extend((0..256).map(|byte| byte ^ 1));
        Some(flat)
    }

    /// The tables that every byte asks, at hand in the loops.
    #[inline(always)]
    pub(crate) fn view(&self) -> View<'_> {
        View {
            rows: &self.rows,
            pairs: &self.pairs,
            records: &self.records,
            flat: self,
        }
    }

    /// The value of the longest valid token from a link on.
    #[inline(never)]
    fn shorter(&self, mut link: u32, history: impl Fn(usize) -> u32) -> u32 {
        let mut failed = 1;
        loop {
            let rank = (link >> 8) as usize;
            let record = &self.records[rank];
            if history(link as usize & 0xFF).wrapping_sub(record.low) < record.width {
                return record.value;
            }
            failed += 1;
            if failed == LINKS
                && let Some(&tree) = self.tree_of.get(rank)
                && tree != NONE
            {
                return self.trees.last_token(tree, &history);
            }
            link = record.link;
        }
    }

    /// Length of the longest suffix of the text that more bytes can make a token of.
    pub(crate) fn depth(&self, state: u32) -> usize {
        let base = state >> BASE_SHIFT;
        match base == self.shallow {
            true => usize::from(self.goes_on[state as usize & 0xFF]),
            false => usize::from(self.depths[base as usize]),
        }
    }

    /// Bytes of memory.
    pub(crate) fn memory(&self) -> usize {
        size_of_val(&self.rows[..])
            + size_of_val(&self.pairs[..])
            + size_of_val(&self.records[..])
            + size_of_val(&self.tree_of[..])
            + size_of_val(&self.depths[..])
            + self.trees.memory()
    }
}

/// See [`Flat::view`].
#[derive(Clone, Copy)]
pub(crate) struct View<'f> {
    rows: &'f [u64],
    pairs: &'f [u64; 1 << 16],
    records: &'f [Record],
    flat: &'f Flat,
}

impl Step for View<'_> {
    fn start(self) -> u32 {
        self.flat.start << BASE_SHIFT
    }

    /// Whether a row has an entry is hard to foretell in scripts of several bytes a character, so both
    /// entries are read, and neither waits for the other.
    #[inline(always)]
    fn step(
        self,
        state: u32,
        previous: u8,
        byte: u8,
        history: impl Fn(usize) -> u32,
    ) -> (u32, u32) {
        let of_row = self.rows[(state >> BASE_SHIFT) as usize + usize::from(byte)];
        let of_pair = self.pairs[usize::from(u16::from(previous) << 8 | u16::from(byte))];
        let entry = select_unpredictable(of_row as u8 == byte, of_row, of_pair);
        let record = &self.records[(entry >> 32) as usize & 0xFF_FFFF];
        let before = history((entry >> 56) as usize);
        let value = match before.wrapping_sub(record.low) < record.width {
            true => record.value,
            false => self.flat.shorter(record.link, history),
        };
        (entry as u32, value)
    }
}

/// The value that stands for a token.
pub(crate) fn value(number: u32, len: u32) -> u32 {
    number << 8 | len
}

/// The interval of a token as a start and a width of values.
pub(crate) fn interval(forest: &Forest, rank: u32) -> (u32, u32) {
    let node = forest.node(rank);
    match node.is_atom() {
        true => (0, u32::MAX),
        false => (node.low << 8, node.high.saturating_sub(node.low) << 8),
    }
}

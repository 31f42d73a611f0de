//! Places the rows of an automaton in one array.

use alloc::vec::Vec;

use crate::forest::Forest;
use crate::trie::{ROOT, Trie};

/// Where the rows of all states with children and two bytes or more are.
pub(crate) struct Rows {
    /// Of each node its base, or `NO_BASE`.
    bases: Vec<u32>,
    /// Of each place the label and the target node of the entry, `VACANT` where there is none.
    places: Vec<Place>,
    /// The nodes of the rows, with their bases.
    placed: Vec<(u32, u32)>,
    bases_used: Bits,
}

type Place = (u32, u8);

const NO_BASE: u32 = u32::MAX;
const VACANT: Place = (ROOT, 0);

/// Bases have 24 bits, and the two last rows come after all others.
const MOST_PLACES: usize = (1 << 24) - 2048;

/// The places there may be for a state: where rows grow beyond this, the other layout is better.
const MOST_PER_STATE: usize = 16;

impl Rows {
    /// The rows, `None` where they take too many places.
    ///
    /// A row is the children of a state over the row of its suffix, without targets of less than
    /// three bytes. States that lead to tokens of high priority come first, so that what texts use
    /// most lies together.
    pub(crate) fn new(forest: &Forest, trie: &Trie) -> Option<Self> {
        let most = MOST_PLACES.min(MOST_PER_STATE * trie.len() + (1 << 16));
        let mut rows = Self {
            bases: alloc::vec![NO_BASE; trie.len()],
            places: Vec::new(),
            placed: Vec::new(),
            bases_used: Bits::default(),
        };
        let mut occupied = Bits::default();
        let mut nexts = [0_usize; 33];
        let mut row: Vec<(u8, u32)> = Vec::new();
        for node in by_heat(forest, trie) {
            gather(trie, node, &mut row);
            // Rows of one size start to search where the last of them was placed; holes that it
            // left are for smaller ones.
            let next = &mut nexts[row.len().min(32)];
            let base = find(&occupied, &rows.bases_used, *next, &row);
            *next = base;
            if base + 256 > most {
                return None;
            }
            if rows.places.len() < base + 256 {
                rows.places.resize(base + 256, VACANT);
            }
            for &(label, target) in &row {
                occupied.set(base + usize::from(label));
                rows.places[base + usize::from(label)] = (target, label);
            }
            rows.bases_used.set(base);
            rows.bases[node as usize] = base as u32;
            rows.placed.push((node, base as u32));
        }
        Some(rows)
    }

    /// The first place after all rows.
    pub(crate) fn end(&self) -> u32 {
        self.places.len() as u32 + 1
    }

    /// The base of the row of a state; `None` for those of one byte or none.
    pub(crate) fn base(&self, node: u32) -> Option<u32> {
        let base = self.bases[node as usize];
        (base != NO_BASE).then_some(base)
    }

    /// By base, the number of bytes of its state.
    pub(crate) fn depths(&self, trie: &Trie, len: usize) -> Vec<u8> {
        let mut depths = alloc::vec![0; len];
        for &(node, base) in &self.placed {
            depths[base as usize] = trie.depth(node) as u8;
        }
        depths
    }

    /// The entries. `entry` makes one of a target and a label; `shallow` gives the one for two bytes
    /// where the row has none.
    pub(crate) fn entries(
        &self,
        trie: &Trie,
        entry: impl Fn(u32, u8) -> u64,
        shallow: impl Fn(u8, u8) -> u64,
    ) -> Vec<u64> {
        let mut last_bytes = alloc::vec::Vec::new();
        let mut entries = Vec::with_capacity(self.places.len() + 1024);
        for (place, &(target, label)) in self.places.iter().enumerate() {
            if target != ROOT {
                entries.push(entry(target, label));
                continue;
            }
            // A vacant place is never taken for an entry if its check points at no base.
            let vacant = (0..=255_u8).find(|&label| {
                let base = place.checked_sub(label.into());
                base.is_none_or(|base| !self.bases_used.get(base))
            });
            entries.push(match vacant {
                Some(label) => u64::from(label),
                None => {
                    // All 256 bases before it have rows: it is an entry of the row that begins here,
                    // and says what that row would have found in the table of pairs.
                    if last_bytes.is_empty() {
                        last_bytes = alloc::vec![0; self.places.len()];
                        for &(node, base) in &self.placed {
                            last_bytes[base as usize] = trie.label(node);
                        }
                    }
                    shallow(last_bytes[place], 0)
                }
            });
        }
        entries
    }
}

/// The states that have rows; those first that lead to a token of the highest priority.
fn by_heat(forest: &Forest, trie: &Trie) -> Vec<u32> {
    let mut heat = alloc::vec![u32::MAX; trie.len()];
    for node in (1..trie.len() as u32).rev() {
        let rank = trie.token(node);
        let is_own = forest
            .nodes
            .get(rank as usize)
            .is_some_and(|token| token.len as usize == trie.depth(node));
        let own = if is_own { rank } else { u32::MAX };
        let least = heat[node as usize].min(own);
        heat[node as usize] = least;
        let parent = &mut heat[trie.parent(node) as usize];
        *parent = least.min(*parent);
    }
    let mut order: Vec<(u32, u32)> = (1..trie.len() as u32)
        .filter(|&node| has_row(trie, node))
        .map(|node| (heat[node as usize], node))
        .collect();
    order.sort_unstable();
    order.into_iter().map(|(_, node)| node).collect()
}

fn has_row(trie: &Trie, node: u32) -> bool {
    trie.depth(node) >= 2 && trie.has_child(node)
}

/// The row of a state: of each byte the first target along the suffix links, in the order of bytes.
fn gather(trie: &Trie, mut node: u32, row: &mut Vec<(u8, u32)>) {
    let mut seen = [0_u64; 4];
    row.clear();
    while trie.depth(node) >= 2 {
        trie.for_each_child(node, |label, target| {
            let (word, bit) = (usize::from(label) / 64, label % 64);
            if seen[word] >> bit & 1 == 0 {
                seen[word] |= 1 << bit;
                row.push((label, target));
            }
        });
        node = trie.fail(node);
    }
    row.sort_unstable();
}

/// The first base from about `from` on where the row fits and no other begins.
fn find(occupied: &Bits, bases: &Bits, from: usize, row: &[(u8, u32)]) -> usize {
    let mut start = from / 64 * 64;
    loop {
        let mut taken = bases.window(start);
        for &(label, _) in row {
            taken |= occupied.window(start + usize::from(label));
            if taken == u64::MAX {
                break;
            }
        }
        if taken != u64::MAX {
            return start + taken.trailing_ones() as usize;
        }
        start += 64;
    }
}

/// A set of places; those beyond its end are not in it.
#[derive(Default)]
struct Bits(Vec<u64>);

impl Bits {
    fn set(&mut self, place: usize) {
        if self.0.len() <= place / 64 {
            self.0.resize((place / 64 + 1).next_power_of_two(), 0);
        }
        self.0[place / 64] |= 1 << (place % 64);
    }

    fn get(&self, place: usize) -> bool {
        self.0.get(place / 64).copied().unwrap_or(0) >> (place % 64) & 1 == 1
    }

    /// The 64 places from `start` on.
    #[inline]
    fn window(&self, start: usize) -> u64 {
        let word = |index: usize| self.0.get(index).copied().unwrap_or(0);
        let (index, shift) = (start / 64, start % 64);
        match shift {
            0 => word(index),
            _ => word(index) >> shift | word(index + 1) << (64 - shift),
        }
    }
}

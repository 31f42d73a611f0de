//! Centroid search trees: the last token among many suffix tokens in few tests (000 section 5.3).
//!
//! The suffix tokens of a token are a tree: the parent is the successor. The valid ones among them are a
//! path from its root, and the last token is the end of that path. A search tree halves it: is the
//! centroid valid? If not, the end is among what is above and beside it. If so, at most one child
//! of it is valid, found by binary search, since the intervals of children are disjoint; the end is
//! below that child, or is the centroid.

use alloc::vec::Vec;

use crate::flat::{interval, value};
use crate::forest::{Forest, NONE};
use crate::trie::Trie;

/// The search trees of all tokens that have one, in two pools.
pub(crate) struct Trees {
    nodes: Vec<Node>,
    children: Vec<Child>,
}

struct Node {
    low: u32,
    width: u32,
    value: u32,
    /// The tree of what is above and beside; `NONE` where there is nothing.
    up: u32,
    /// The valid children of this token, as far as they are in its part of the tree.
    children: u32,
    children_end: u32,
    successor_len: u8,
    len: u8,
}

#[derive(Clone, Copy)]
struct Child {
    low: u32,
    width: u32,
    /// The tree of what is below, the child included.
    tree: u32,
}

impl Trees {
    /// Entries there may be for each token of the dictionary, beyond a million.
    pub(crate) const MOST_PER_TOKEN: usize = 16;

    /// The search trees of the tokens with more than `few` suffix tokens, and of each token where its
    /// tree begins, or `NONE`. `None` if there are more entries than are allowed.
    pub(crate) fn new(forest: &Forest, trie: &Trie, few: usize) -> Option<(Vec<u32>, Self)> {
        let most = Self::MOST_PER_TOKEN * forest.len() + (1 << 20);
        let counts = suffix_counts(forest, trie);
        let entries: usize = counts
            .iter()
            .map(|&count| usize::from(count))
            .filter(|&count| count > few)
            .sum();
        if entries > most {
            return None;
        }
        let mut trees = Self {
            nodes: Vec::with_capacity(entries),
            children: Vec::with_capacity(entries),
        };
        let mut builder = Builder::new(forest);
        let mut tree_of = alloc::vec![NONE; forest.len()];
        for (rank, &count) in (0_u32..).zip(&counts) {
            if usize::from(count) > few {
                tree_of[rank as usize] = trees.nodes.len() as u32;
                builder.gather(rank, trie);
                builder.build(&mut trees);
            }
        }
        Some((tree_of, trees))
    }

    /// The value of the last token, one of those in the tree.
    pub(crate) fn last_token(&self, tree: u32, history: impl Fn(usize) -> u32) -> u32 {
        let mut node = &self.nodes[tree as usize];
        loop {
            let before = history(node.successor_len.into());
            if before.wrapping_sub(node.low) >= node.width {
                match self.nodes.get(node.up as usize) {
                    Some(up) => node = up,
                    // Not reached: the highest token of each part is valid.
                    None => return node.value,
                }
                continue;
            }
            let children = &self.children[node.children as usize..node.children_end as usize];
            if children.is_empty() {
                return node.value;
            }
            let before = history(node.len.into());
            let place = children.partition_point(|child| child.low <= before);
            match place.checked_sub(1).map(|place| &children[place]) {
                Some(child) if before - child.low < child.width => {
                    node = &self.nodes[child.tree as usize];
                }
                _ => return node.value,
            }
        }
    }

    /// Bytes of memory.
    pub(crate) fn memory(&self) -> usize {
        size_of_val(&self.nodes[..]) + size_of_val(&self.children[..])
    }
}

/// The number of suffix tokens of each token, itself included: at most one for each of its bytes.
fn suffix_counts(forest: &Forest, trie: &Trie) -> Vec<u16> {
    let mut by_length: Vec<u32> = (0..forest.len() as u32).collect();
    by_length.sort_unstable_by_key(|&rank| forest.node(rank).len);
    let mut counts = alloc::vec![1_u16; forest.len()];
    for rank in by_length {
        if let Some(&shorter) = counts.get(trie.link_of(rank) as usize) {
            counts[rank as usize] = shorter + 1;
        }
    }
    counts
}

/// Makes the search tree of one token after the other, with memory that is kept.
struct Builder<'f> {
    forest: &'f Forest,
    /// Of each token where it is in `members`.
    places: Vec<u32>,
    /// The suffix tokens of a token, from short to long: parents before children.
    members: Vec<u32>,
    parents: Vec<u32>,
    /// Which part of the tree each is in; parts are cut as the search tree grows.
    parts: Vec<u32>,
    sizes: Vec<u32>,
}

/// A part of a tree whose search tree is to be built, and where its place is to be noted.
struct Task {
    part: u32,
    note: Note,
}

enum Note {
    Nowhere,
    Up(usize),
    Child(usize),
}

impl<'f> Builder<'f> {
    fn new(forest: &'f Forest) -> Self {
        Self {
            forest,
            places: alloc::vec![NONE; forest.len()],
            members: Vec::new(),
            parents: Vec::new(),
            parts: Vec::new(),
            sizes: Vec::new(),
        }
    }

    /// The suffix tokens of `rank` and their tree.
    fn gather(&mut self, rank: u32, trie: &Trie) {
        self.members.clear();
        let mut next = rank;
        while next != NONE {
            self.members.push(next);
            next = trie.link_of(next);
        }
        self.members.reverse();
        self.parents.clear();
        for (place, &member) in (0_u32..).zip(&self.members) {
            self.places[member as usize] = place;
            let successor = self.forest.node(member).successor;
            self.parents.push(match successor {
                NONE => NONE,
                // A suffix of a suffix, and shorter: it has been there.
                successor => self.places[successor as usize],
            });
        }
    }

    fn build(&mut self, trees: &mut Trees) {
        let count = self.members.len();
        self.parts.clear();
        self.parts.resize(count, 0);
        let mut parts = 1;
        let mut tasks = alloc::vec![Task {
            part: 0,
            note: Note::Nowhere,
        }];
        while let Some(task) = tasks.pop() {
            let centroid = self.centroid(task.part);
            let tree = trees.nodes.len();
            match task.note {
                Note::Nowhere => {}
                Note::Up(node) => trees.nodes[node].up = tree as u32,
                Note::Child(child) => trees.children[child].tree = tree as u32,
            }
            // Below the centroid each child begins a part of its own; the rest stays above. Parents
            // come before children, so one pass carries the new parts down.
            let first_child = trees.children.len();
            let mut below: Vec<(u32, u32)> = Vec::new();
            let mut has_above = false;
            for place in 0..count {
                if self.parts[place] != task.part {
                    continue;
                }
                if place == centroid {
                    self.parts[place] = NONE;
                    continue;
                }
                let parent = self.parents[place];
                if parent == centroid as u32 {
                    self.parts[place] = parts;
                    below.push((place as u32, parts));
                    parts += 1;
                } else if parent != NONE
                    && below
                        .iter()
                        .any(|&(_, part)| part == self.parts[parent as usize])
                {
                    self.parts[place] = self.parts[parent as usize];
                } else {
                    has_above = true;
                }
            }
            below.sort_unstable_by_key(|&(place, _)| {
                interval(self.forest, self.members[place as usize]).0
            });
            for &(place, part) in &below {
                let (low, width) = interval(self.forest, self.members[place as usize]);
                tasks.push(Task {
                    part,
                    note: Note::Child(trees.children.len()),
                });
                trees.children.push(Child {
                    low,
                    width,
                    tree: NONE,
                });
            }
            if has_above {
                tasks.push(Task {
                    part: task.part,
                    note: Note::Up(tree),
                });
            }
            let token = self.forest.node(self.members[centroid]);
            let (low, width) = interval(self.forest, self.members[centroid]);
            trees.nodes.push(Node {
                low,
                width,
                value: value(token.number, token.len),
                up: NONE,
                children: first_child as u32,
                children_end: trees.children.len() as u32,
                successor_len: match token.successor {
                    NONE => 1,
                    successor => self.forest.node(successor).len as u8,
                },
                len: token.len as u8,
            });
        }
    }

    /// The member that leaves parts of at most half the size where it is taken out.
    fn centroid(&mut self, part: u32) -> usize {
        let count = self.members.len();
        self.sizes.clear();
        self.sizes.resize(count, 0);
        let mut total = 0;
        for place in (0..count).rev() {
            if self.parts[place] == part {
                total += 1;
                self.sizes[place] += 1;
                let size = self.sizes[place];
                if let Some(above) = self.sizes.get_mut(self.parents[place] as usize) {
                    *above += size;
                }
            }
        }
        // The last in the order of lengths that has at least half below it: its children, which
        // are longer, have less.
        (0..count)
            .rev()
            .find(|&place| self.parts[place] == part && 2 * self.sizes[place] >= total)
            .unwrap_or(0)
    }
}

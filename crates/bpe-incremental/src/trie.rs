//! The canonical tokens as a trie with suffix links: the Aho-Corasick automaton before its layout.

use alloc::vec::Vec;

use bpe_core::Vocabulary;

use crate::error::{EngineError, Kind};
use crate::forest::{Forest, NONE};

/// A trie in depth-first order: the first child of a node is the next node, so that long tokens
/// without branches are read in sequence.
///
/// 17 bytes a state while it is built, and one state a byte of a token at most.
pub(crate) struct Trie {
    /// The byte that leads to each node.
    labels: Vec<u8>,
    parents: Vec<u32>,
    /// `NO_CHILD`, `ONE_CHILD` (it is the next node), or a place in `branches` plus `FIRST_BRANCH`.
    children: Vec<u32>,
    /// Of each branching node the start of its children in the two pools; one more at the end.
    branches: Vec<u32>,
    branch_labels: Vec<u8>,
    branch_targets: Vec<u32>,
    /// The children of the root by byte, `ROOT` where there is none.
    root: Vec<u32>,
    /// The longest proper suffix of a node that is a node.
    fails: Vec<u32>,
    /// Rank of the longest token that is a suffix of a node, or `NONE`.
    tokens: Vec<u32>,
    /// Of each token the next shorter token that is a suffix of it, by rank, or `NONE`.
    links: Vec<u32>,
    depths: Vec<u32>,
}

/// The node of the empty string.
pub(crate) const ROOT: u32 = 0;

const NO_CHILD: u32 = 0;
const ONE_CHILD: u32 = 1;
const FIRST_BRANCH: u32 = 2;

impl Trie {
    /// The trie of the tokens of `forest`. O(B + n log n) for n tokens of B bytes in all.
    pub(crate) fn new(vocabulary: &Vocabulary, forest: &Forest) -> Result<Self, EngineError> {
        let mut trie = Self::without_links(vocabulary, forest)?;
        trie.index_children();
        trie.link(forest.len());
        Ok(trie)
    }

    fn without_links(vocabulary: &Vocabulary, forest: &Forest) -> Result<Self, EngineError> {
        let mut trie = Self {
            labels: alloc::vec![0],
            parents: alloc::vec![ROOT],
            children: alloc::vec![0],
            branches: Vec::new(),
            branch_labels: Vec::new(),
            branch_targets: Vec::new(),
            root: Vec::new(),
            fails: Vec::new(),
            tokens: alloc::vec![NONE],
            links: Vec::new(),
            depths: alloc::vec![0],
        };
        let mut before: &[u8] = &[];
        // The nodes of the token before, by depth.
        let mut path: Vec<u32> = alloc::vec![ROOT];
        for (_, rank, bytes) in &sorted(vocabulary, forest) {
            let common = common_prefix(before, bytes);
            path.truncate(common + 1);
            for &label in &bytes[common..] {
                let parent = path.last().copied().unwrap_or(ROOT);
                let node = trie.labels.len() as u32;
                if node == NONE {
                    return Err(EngineError(Kind::TooLarge));
                }
                trie.labels.push(label);
                trie.parents.push(parent);
                trie.children.push(0);
                trie.children[parent as usize] += 1;
                trie.tokens.push(NONE);
                trie.depths.push(path.len() as u32);
                path.push(node);
            }
            if let Some(&node) = path.last() {
                trie.tokens[node as usize] = *rank;
            }
            before = bytes;
        }
        Ok(trie)
    }

    /// Turns the numbers of children into where they are.
    fn index_children(&mut self) {
        let mut end = 0;
        self.branches.push(0);
        for entry in &mut self.children {
            let count = *entry;
            if count > 1 {
                *entry = self.branches.len() as u32 - 1 + FIRST_BRANCH;
                end += count;
                self.branches.push(end);
            }
        }
        self.branch_labels = alloc::vec![0; end as usize];
        self.branch_targets = alloc::vec![0; end as usize];
        let mut next = self.branches.clone();
        self.root = alloc::vec![ROOT; 256];
        for node in 1..self.labels.len() {
            let parent = self.parents[node];
            let label = self.labels[node];
            if parent == ROOT {
                self.root[usize::from(label)] = node as u32;
            }
            let entry = self.children[parent as usize];
            if entry >= FIRST_BRANCH {
                let place = &mut next[(entry - FIRST_BRANCH) as usize];
                self.branch_labels[*place as usize] = label;
                self.branch_targets[*place as usize] = node as u32;
                *place += 1;
            }
        }
    }

    /// Suffix links, and with them the longest suffix token of every node. The steps back along
    /// the links of one token's path are at most its length.
    fn link(&mut self, tokens: usize) {
        self.fails = alloc::vec![ROOT; self.labels.len()];
        self.links = alloc::vec![NONE; tokens];
        for node in self.by_depth() {
            let node = node as usize;
            let parent = self.parents[node];
            if parent != ROOT {
                let fail = self.step(self.fails[parent as usize], self.labels[node]);
                self.fails[node] = fail;
                let suffix = self.tokens[fail as usize];
                match self.tokens[node] {
                    NONE => self.tokens[node] = suffix,
                    token => self.links[token as usize] = suffix,
                }
            }
        }
    }

    /// All nodes but the root, from short to long.
    pub(crate) fn by_depth(&self) -> Vec<u32> {
        let deepest = self.depths.iter().max().map_or(0, |&depth| depth as usize);
        let mut starts = alloc::vec![0_u32; deepest + 2];
        for &depth in &self.depths[1..] {
            starts[depth as usize + 1] += 1;
        }
        for depth in 1..starts.len() {
            starts[depth] += starts[depth - 1];
        }
        let mut order = alloc::vec![0; self.labels.len() - 1];
        for node in 1..self.labels.len() {
            let place = &mut starts[self.depths[node] as usize];
            order[*place as usize] = node as u32;
            *place += 1;
        }
        order
    }

    /// The node after `byte`: the longest suffix of the node and the byte that is a node. Amortised
    /// O(1) along a text, but for the search among children: a step back makes the node shorter.
    #[inline]
    pub(crate) fn step(&self, mut node: u32, byte: u8) -> u32 {
        while node != ROOT {
            if let Some(child) = self.child(node, byte) {
                return child;
            }
            node = self.fails[node as usize];
        }
        self.root[usize::from(byte)]
    }

    /// The child of `node` by `byte`. O(log children).
    #[inline]
    pub(crate) fn child(&self, node: u32, byte: u8) -> Option<u32> {
        match self.children[node as usize] {
            NO_CHILD => None,
            ONE_CHILD => (self.labels[node as usize + 1] == byte).then_some(node + 1),
            branch => {
                let range = self.branch(branch);
                let labels = &self.branch_labels[range.clone()];
                let place = labels.binary_search(&byte).ok()?;
                Some(self.branch_targets[range.start + place])
            }
        }
    }

    fn branch(&self, entry: u32) -> core::ops::Range<usize> {
        let branch = (entry - FIRST_BRANCH) as usize;
        self.branches[branch] as usize..self.branches[branch + 1] as usize
    }

    /// Number of bytes of a node.
    #[inline]
    pub(crate) fn depth(&self, node: u32) -> usize {
        self.depths[node as usize] as usize
    }

    /// Rank of the longest token that is a suffix of a node, or `NONE`.
    #[inline]
    pub(crate) fn token(&self, node: u32) -> u32 {
        self.tokens[node as usize]
    }

    /// The longest suffix of a node that has a child: as good a state as the node itself, once its
    /// token is known.
    #[inline]
    pub(crate) fn with_child(&self, mut node: u32) -> u32 {
        while node != ROOT && self.children[node as usize] == NO_CHILD {
            node = self.fails[node as usize];
        }
        node
    }

    /// Rank of the next shorter token that is a suffix of a token, or `NONE`.
    pub(crate) fn link_of(&self, rank: u32) -> u32 {
        self.links[rank as usize]
    }

    /// Number of nodes, the root among them.
    pub(crate) fn len(&self) -> usize {
        self.labels.len()
    }

    /// The byte that leads to a node.
    pub(crate) fn label(&self, node: u32) -> u8 {
        self.labels[node as usize]
    }

    pub(crate) fn parent(&self, node: u32) -> u32 {
        self.parents[node as usize]
    }

    /// The longest proper suffix of a node that is a node.
    pub(crate) fn fail(&self, node: u32) -> u32 {
        self.fails[node as usize]
    }

    pub(crate) fn has_child(&self, node: u32) -> bool {
        self.children[node as usize] != NO_CHILD
    }

    /// Calls `visit` with the label and the node of each child.
    pub(crate) fn for_each_child(&self, node: u32, mut visit: impl FnMut(u8, u32)) {
        match self.children[node as usize] {
            NO_CHILD => {}
            ONE_CHILD => visit(self.labels[node as usize + 1], node + 1),
            branch => {
                for place in self.branch(branch) {
                    visit(self.branch_labels[place], self.branch_targets[place]);
                }
            }
        }
    }

    /// Bytes of memory.
    pub(crate) fn memory(&self) -> usize {
        self.labels.len()
            + 4 * (self.parents.len()
                + self.children.len()
                + self.branches.len()
                + self.branch_targets.len()
                + self.root.len()
                + self.fails.len()
                + self.tokens.len()
                + self.links.len()
                + self.depths.len())
            + self.branch_labels.len()
    }

    /// Lets every suffix link skip nodes without children, which lead nowhere: no walk along links
    /// meets one. O(nodes).
    pub(crate) fn skip_leaves(&mut self) {
        let mut skipped = Vec::new();
        for node in 0..self.fails.len() {
            let mut next = self.fails[node];
            while next != ROOT && self.children[next as usize] == NO_CHILD {
                skipped.push(next);
                next = self.fails[next as usize];
            }
            self.fails[node] = next;
            for leaf in skipped.drain(..) {
                self.fails[leaf as usize] = next;
            }
        }
    }

    /// Gives back what only the building needs.
    pub(crate) fn shrink(&mut self) {
        self.parents = Vec::new();
        self.labels.shrink_to_fit();
        self.children.shrink_to_fit();
        self.tokens.shrink_to_fit();
        self.depths.shrink_to_fit();
    }
}

/// The tokens in the order of their bytes, with their ranks. Most comparisons end in the first eight
/// bytes, which stand beside the rank as a number.
fn sorted<'v>(vocabulary: &'v Vocabulary, forest: &Forest) -> Vec<(u64, u32, &'v [u8])> {
    let mut sorted: Vec<(u64, u32, &[u8])> = (0_u32..)
        .zip(&forest.nodes)
        .filter_map(|(rank, node)| {
            let bytes = vocabulary.token_bytes(node.id)?;
            let mut first = [0; 8];
            let count = bytes.len().min(8);
            first[..count].copy_from_slice(&bytes[..count]);
            Some((u64::from_be_bytes(first), rank, bytes))
        })
        .collect();
    sorted.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| a.2.cmp(b.2)));
    sorted
}

fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

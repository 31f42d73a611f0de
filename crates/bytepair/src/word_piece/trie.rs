//! The two tries of [`WordPiece`](super::WordPiece) with their failure links.

use bpe_core::TokenId;

/// No such child, or no way to go on: the word has no tokens.
pub(super) const NOWHERE: u32 = u32::MAX;
/// Where a word begins.
pub(super) const START: u32 = 0;
/// Where a word goes on after a token.
pub(super) const CONTINUED: u32 = 1;

/// Both tries in the order of their depth, so that the children of a node stand side by side.
#[derive(Debug, Clone)]
pub(super) struct Trie {
    nodes: Vec<Node>,
    /// The byte that leads to each node.
    labels: Vec<u8>,
    /// Which bytes have a child, for nodes with many.
    maps: Vec<[u64; 4]>,
    /// The tokens that failures make certain, as lists from the last to the first.
    certain: Vec<Certain>,
    /// Ids of the tokens of the first trie, and their nodes, by node.
    ends: Vec<(u32, TokenId)>,
}

#[derive(Debug, Clone, Copy)]
struct Node {
    first_child: u32,
    /// Number of children.
    children: u16,
    /// Whether `map` says which they are.
    has_map: bool,
    map: u32,
    failure: u32,
    /// The last of the tokens that a failure makes certain, or [`NOWHERE`].
    certain: u32,
}

#[derive(Debug, Clone, Copy)]
struct Certain {
    id: TokenId,
    /// Bytes of the word that it stands for.
    length: u32,
    before: u32,
}

/// Nodes with more children than this have a map.
const FEW_CHILDREN: usize = 6;

/// What the node that is next to be expanded has below it: the texts `range` of one trie, which agree
/// up to the node.
struct Open {
    start: usize,
    end: usize,
    depth: usize,
}

impl Trie {
    /// `None` where the tokens have 2^31 bytes or more.
    pub(super) fn new(texts: &[(TokenId, Box<str>)], continuing_prefix: &str) -> Option<Self> {
        let bytes: usize = texts.iter().map(|(_, text)| text.len()).sum();
        u32::try_from(bytes).ok().filter(|&bytes| bytes < 1 << 31)?;
        let mut sorted: Vec<(&[u8], TokenId)> = Vec::with_capacity(2 * texts.len());
        sorted.extend(texts.iter().map(|(id, text)| (text.as_bytes(), *id)));
        sorted.sort_unstable();
        let whole = sorted.len();
        let mut continued: Vec<_> = texts
            .iter()
            .filter_map(|(id, text)| Some((text.strip_prefix(continuing_prefix)?.as_bytes(), *id)))
            .filter(|(text, _)| !text.is_empty())
            .collect();
        continued.sort_unstable();
        sorted.extend(continued);

        let mut trie = Self {
            nodes: Vec::new(),
            labels: Vec::new(),
            maps: Vec::new(),
            certain: Vec::new(),
            ends: Vec::new(),
        };
        let mut open = std::collections::VecDeque::new();
        for (start, end) in [(0, whole), (whole, sorted.len())] {
            trie.append(0, NOWHERE, NOWHERE);
            open.push_back(Open {
                start,
                end,
                depth: 0,
            });
        }
        let mut node = 0;
        while let Some(below) = open.pop_front() {
            trie.expand(node, &below, &sorted, whole, &mut open);
            node += 1;
        }
        trie.ends.sort_unstable();
        Some(trie)
    }

    fn append(&mut self, label: u8, failure: u32, certain: u32) {
        self.labels.push(label);
        self.nodes.push(Node {
            first_child: NOWHERE,
            children: 0,
            has_map: false,
            map: 0,
            failure,
            certain,
        });
    }

    /// Appends the children of `node`. Nodes of a smaller depth are there with all that they say, and
    /// failures lead to those only.
    fn expand(
        &mut self,
        node: usize,
        below: &Open,
        sorted: &[(&[u8], TokenId)],
        whole: usize,
        open: &mut std::collections::VecDeque<Open>,
    ) {
        let depth = below.depth;
        let first_child = self.nodes.len();
        let mut map = [0_u64; 4];
        let mut start = below.start;
        // A text that ends at the node itself comes first. It was minded when the node was appended,
        // but for a token without text, which no word holds.
        if start < below.end && sorted[start].0.len() == depth {
            if depth == 0 {
                self.ends.push((START, sorted[start].1));
            }
            start += 1;
        }
        while start < below.end {
            let byte = sorted[start].0[depth];
            let same = |(text, _): &(&[u8], TokenId)| text[depth] == byte;
            let end = start + sorted[start..below.end].partition_point(same);
            let (text, id) = sorted[start];
            let ends_here = text.len() == depth + 1;
            if ends_here && start < whole {
                self.ends.push((self.nodes.len() as u32, id));
            }
            let (failure, certain) = match ends_here {
                true => (CONTINUED, self.add_certain(NOWHERE, id, depth + 1)),
                false => self.failure_below(node, byte),
            };
            self.append(byte, failure, certain);
            map[usize::from(byte >> 6)] |= 1 << (byte & 63);
            open.push_back(Open {
                start,
                end,
                depth: depth + 1,
            });
            start = end;
        }
        let children = self.nodes.len() - first_child;
        self.nodes[node].first_child = first_child as u32;
        self.nodes[node].children = children as u16;
        if children > FEW_CHILDREN {
            self.nodes[node].has_map = true;
            self.nodes[node].map = self.maps.len() as u32;
            self.maps.push(map);
        }
    }

    /// Failure and certain tokens of the child of `node` by `byte`, which is no token: those of
    /// `node`, and of what its failure leads to, until the byte fits.
    fn failure_below(&mut self, node: usize, byte: u8) -> (u32, u32) {
        let mut list = Vec::new();
        let mut at = self.nodes[node].failure;
        while at != NOWHERE {
            match self.child(at, byte) {
                NOWHERE => {
                    list.push(at);
                    at = self.nodes[at as usize].failure;
                }
                child => {
                    at = child;
                    break;
                }
            }
        }
        if at == NOWHERE {
            return (NOWHERE, NOWHERE);
        }
        let mut certain = self.nodes[node].certain;
        for failed in list {
            let mut tokens: Vec<_> = self.certain(failed).collect();
            tokens.reverse();
            for (id, length) in tokens {
                certain = self.add_certain(certain, id, length);
            }
        }
        (at, certain)
    }

    fn add_certain(&mut self, before: u32, id: TokenId, length: usize) -> u32 {
        self.certain.push(Certain {
            id,
            length: length as u32,
            before,
        });
        (self.certain.len() - 1) as u32
    }

    /// The child of `node` by `byte`, or [`NOWHERE`].
    #[inline]
    pub(super) fn child(&self, node: u32, byte: u8) -> u32 {
        let Some(node) = self.nodes.get(node as usize) else {
            return NOWHERE;
        };
        if node.has_map {
            let map = &self.maps[node.map as usize];
            let word = usize::from(byte >> 6);
            let bit = 1_u64 << (byte & 63);
            if map[word] & bit == 0 {
                return NOWHERE;
            }
            let before: u32 = map[..word].iter().map(|word| word.count_ones()).sum();
            return node.first_child + before + (map[word] & (bit - 1)).count_ones();
        }
        let first = node.first_child as usize;
        let labels = self.labels.get(first..first + usize::from(node.children));
        let place = labels.unwrap_or_default().iter().position(|&l| l == byte);
        place.map_or(NOWHERE, |place| node.first_child + place as u32)
    }

    /// Where a failure at `node` leads to, with [`Trie::certain`].
    #[inline]
    pub(super) fn failure(&self, node: u32) -> Option<u32> {
        let node = self.nodes.get(node as usize)?;
        (node.failure != NOWHERE).then_some(node.failure)
    }

    /// The tokens that a failure at `node` makes certain, with their lengths in the word, from the
    /// last to the first.
    #[inline]
    pub(super) fn certain(&self, node: u32) -> impl Iterator<Item = (TokenId, usize)> {
        let mut at = self.nodes.get(node as usize).map_or(NOWHERE, |n| n.certain);
        std::iter::from_fn(move || {
            let token = self.certain.get(at as usize)?;
            at = token.before;
            Some((token.id, token.length as usize))
        })
    }

    /// The token with this text.
    pub(super) fn find(&self, text: &[u8]) -> Option<TokenId> {
        let step = |node, &byte: &u8| Some(self.child(node, byte)).filter(|&n| n != NOWHERE);
        let node = text.iter().try_fold(START, step)?;
        let index = self.ends.binary_search_by_key(&node, |&(node, _)| node);
        index.ok().map(|index| self.ends[index].1)
    }
}

//! The tokens of all prefixes of a text as one tree, and what a model may see along it.

use alloc::vec::Vec;

use bpe_core::TokenId;

use crate::history::History;

/// The prefix tree of tokens: a node for each prefix of a text, the empty one at the root.
///
/// The parent of a node is the prefix without its last token, so the way from the root to a node spells
/// the tokens of that prefix (docs/theory.md section 3; 000 section 3.2). Nodes go by the length of
/// the prefix in bytes. 20 bytes a node.
///
/// Useful for many questions about one text; for a text that still grows, ask the encoder.
#[derive(Debug, Clone)]
pub struct PrefixTree {
    nodes: Vec<Node>,
}

#[derive(Debug, Clone, Copy)]
struct Node {
    token: TokenId,
    parent: u32,
    /// Tokens of the prefix.
    depth: u32,
    /// The number in depth-first order; descendants have the numbers up to `leave`.
    enter: u32,
    leave: u32,
}

impl PrefixTree {
    /// The tree from the last token of each prefix, from the shortest to the whole text, with its
    /// bytes. O(n). `None` if a token is empty or longer than its prefix, or the text is longer than
    /// `u32::MAX` bytes.
    ///
    /// ```
    /// use bpe_incremental::PrefixTree;
    ///
    /// // Rules b c -> bc, then a b -> ab: the tokens are a, ab, a bc.
    /// let (a, ab, bc) = (0, 3, 4);
    /// let tree = PrefixTree::new([(a, 1), (ab, 2), (bc, 2)]).unwrap();
    /// assert_eq!(tree.tokens(3), [a, bc]);
    /// assert_eq!(tree.parent(3), Some(1));
    /// assert!(tree.is_ancestor(1, 3) && !tree.is_ancestor(2, 3));
    /// assert_eq!(tree.common_ancestor(2, 3), 0); // "ab" and "abc" share no token.
    /// ```
    pub fn new(last_tokens: impl IntoIterator<Item = (TokenId, usize)>) -> Option<Self> {
        let mut nodes = alloc::vec![Node {
            token: 0,
            parent: 0,
            depth: 0,
            enter: 0,
            leave: 1, // First the number of nodes below and the node itself.
        }];
        for (token, bytes) in last_tokens {
            let len = u32::try_from(nodes.len()).ok()?;
            if bytes == 0 {
                return None;
            }
            let parent = nodes.len().checked_sub(bytes)?;
            nodes.push(Node {
                token,
                parent: len - bytes as u32,
                depth: nodes[parent].depth + 1,
                enter: 0,
                leave: 1,
            });
        }
        // Parents come before their children: sizes from the end, numbers from the start.
        for child in (1..nodes.len()).rev() {
            let Node { parent, leave, .. } = nodes[child];
            nodes[parent as usize].leave += leave;
        }
        let mut next: Vec<u32> = alloc::vec![1; nodes.len()];
        for child in 1..nodes.len() {
            let parent = nodes[child].parent as usize;
            let size = nodes[child].leave;
            nodes[child].enter = next[parent];
            nodes[child].leave = next[parent] + size;
            next[child] = next[parent] + 1;
            next[parent] += size;
        }
        Some(Self { nodes })
    }

    /// Bytes of the whole text; the nodes are 0 to this.
    pub fn text_len(&self) -> usize {
        self.nodes.len() - 1
    }

    /// The last token of the prefix of `len` bytes, `None` for the root and beyond the text. O(1).
    pub fn last_token(&self, len: usize) -> Option<TokenId> {
        let node = self.nodes.get(len)?;
        (len > 0).then_some(node.token)
    }

    /// The prefix without its last token, `None` for the root and beyond the text. O(1).
    pub fn parent(&self, len: usize) -> Option<usize> {
        let node = self.nodes.get(len)?;
        (len > 0).then_some(node.parent as usize)
    }

    /// Number of tokens of a prefix, `None` beyond the text. O(1).
    pub fn token_count(&self, len: usize) -> Option<usize> {
        self.nodes.get(len).map(|node| node.depth as usize)
    }

    /// Whether the tokens of the prefix `ancestor` are the first tokens of the prefix `len` (true
    /// where both are the same; false beyond the text). O(1).
    pub fn is_ancestor(&self, ancestor: usize, len: usize) -> bool {
        match (self.nodes.get(ancestor), self.nodes.get(len)) {
            (Some(above), Some(below)) => (above.enter..above.leave).contains(&below.enter),
            _ => false,
        }
    }

    /// The longest prefix whose tokens both begin with; lengths beyond the text count as its end. O(tokens after it).
    pub fn common_ancestor(&self, a: usize, b: usize) -> usize {
        let last = self.nodes.len() - 1;
        let (mut a, mut b) = (a.min(last), b.min(last));
        while a != b {
            match a > b {
                true => a = self.nodes[a].parent as usize,
                false => b = self.nodes[b].parent as usize,
            }
        }
        a
    }

    /// The tokens of a prefix, none beyond the text. O(tokens).
    pub fn tokens(&self, len: usize) -> Vec<TokenId> {
        let Some(node) = self.nodes.get(len) else {
            return Vec::new();
        };
        let mut tokens = Vec::with_capacity(node.depth as usize);
        let mut at = len;
        while at > 0 {
            tokens.push(self.nodes[at].token);
            at = self.nodes[at].parent as usize;
        }
        tokens.reverse();
        tokens
    }

    /// What a model is fed to see the tokens of several prefixes in one pass: each node on the way to
    /// one of `lens` once, parents first. Lengths beyond the text are left out. O(n + nodes).
    ///
    /// ```
    /// use bpe_incremental::PrefixTree;
    ///
    /// let (a, ab, bc) = (0, 3, 4);
    /// let tree = PrefixTree::new([(a, 1), (ab, 2), (bc, 2)]).unwrap();
    /// let mask = tree.attention_mask([2, 3]);
    /// // a, and bc after it; ab beside them, which sees neither.
    /// assert_eq!(mask.tokens(), [a, ab, bc]);
    /// assert_eq!(mask.positions().collect::<Vec<_>>(), [0, 0, 1]);
    /// let rows: Vec<Vec<bool>> = (0..3).map(|row| mask.row(row).collect()).collect();
    /// assert_eq!(rows[0], [true, false, false]);
    /// assert_eq!(rows[1], [false, true, false]);
    /// assert_eq!(rows[2], [true, false, true]);
    /// assert_eq!(mask.row_of(3), Some(2));
    /// ```
    pub fn attention_mask(&self, lens: impl IntoIterator<Item = usize>) -> AttentionMask {
        let mut needed = alloc::vec![false; self.nodes.len()];
        for len in lens {
            let mut at = len;
            while let Some(needed) = needed.get_mut(at).filter(|needed| at > 0 && !**needed) {
                *needed = true;
                at = self.nodes[at].parent as usize;
            }
        }
        let lens = (1..self.nodes.len() as u32).filter(|&len| needed[len as usize]);
        let lens: Vec<u32> = lens.collect();
        let nodes: Vec<Node> = lens.iter().map(|&len| self.nodes[len as usize]).collect();
        AttentionMask {
            tokens: nodes.iter().map(|node| node.token).collect(),
            lens,
            nodes,
        }
    }
}

impl History {
    /// The prefix tree of the text so far. O(bytes). `None` beyond `u32::MAX` bytes.
    pub fn prefix_tree(&self) -> Option<PrefixTree> {
        let last = (1..=self.len()).filter_map(|len| self.last_token(len));
        PrefixTree::new(last.map(|token| (token.id, token.end - token.start)))
    }
}

/// Tokens for one pass of a model over several prefixes of a text, and which of them sees which.
///
/// A row sees itself and the rows of the tokens before it in its own prefix, so it computes what it would in
/// a pass over that prefix alone (000 section 1, fill-in-the-middle). A mask of n rows is kept as n
/// intervals, not as n^2 bits.
#[derive(Debug, Clone)]
pub struct AttentionMask {
    tokens: Vec<TokenId>,
    lens: Vec<u32>,
    nodes: Vec<Node>,
}

impl AttentionMask {
    /// The token of each row.
    pub fn tokens(&self) -> &[TokenId] {
        &self.tokens
    }

    /// The place of each row's token in its prefix, counted from 0: the position to embed.
    pub fn positions(&self) -> impl ExactSizeIterator<Item = usize> {
        self.nodes.iter().map(|node| node.depth as usize - 1)
    }

    /// The bytes of the prefix that each row's token ends.
    pub fn prefix_lens(&self) -> impl ExactSizeIterator<Item = usize> {
        self.lens.iter().map(|&len| len as usize)
    }

    /// The row in which a prefix ends: what comes after it is predicted there. O(log rows).
    pub fn row_of(&self, prefix_len: usize) -> Option<usize> {
        let len = u32::try_from(prefix_len).ok()?;
        self.lens.binary_search(&len).ok()
    }

    /// The row of the token before that of `row`; `None` for first tokens. O(log rows).
    pub fn parent(&self, row: usize) -> Option<usize> {
        self.row_of(self.nodes.get(row)?.parent as usize)
    }

    /// Whether `row` sees `column`; false beyond the last row. O(1).
    pub fn sees(&self, row: usize, column: usize) -> bool {
        match (self.nodes.get(row), self.nodes.get(column)) {
            (Some(row), Some(column)) => (column.enter..column.leave).contains(&row.enter),
            _ => false,
        }
    }

    /// Whether `row` sees each column, in order.
    pub fn row(&self, row: usize) -> impl Iterator<Item = bool> + '_ {
        (0..self.nodes.len()).map(move |column| self.sees(row, column))
    }
}

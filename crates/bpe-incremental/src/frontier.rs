//! Which tokens no continuation can change: the deepest common ancestor, in the prefix tree of
//! tokens, of all prefixes at which a later token can begin (docs/theory.md, Theorem 11).
//!
//! Kept are the prefixes in the window, from the first at which a later token can begin to the whole
//! text, and their ancestors down to the common one, the *base*. Each knows how many of its children
//! are kept. As the window moves on, prefixes without kept children are given up, which may leave
//! their parents without any, and so on; once the base itself is out of the window and has a single
//! kept child, this child is the new base. So each prefix comes once and goes once (000 App. G).

use alloc::vec::Vec;

/// The base of a growing text. Prefixes go by their lengths, from the start of the text.
#[derive(Debug, Default)]
pub(crate) struct Frontier {
    /// The prefixes from `origin` on, whether kept or not.
    nodes: Vec<Node>,
    origin: usize,
    base: usize,
    /// The first prefix at which a later token can begin.
    window: usize,
}

/// A prefix.
#[derive(Debug, Clone, Copy, Default)]
struct Node {
    parent: usize,
    /// Number of kept children.
    children: usize,
    /// The kept children, joined by exclusive or: the child itself if it is the only one.
    child: usize,
}

/// Nodes before the base are dropped once they are so many, and at least half of all.
const DEAD: usize = 512;

impl Frontier {
    pub(crate) fn new() -> Self {
        Self {
            nodes: alloc::vec![Node::default()],
            origin: 0,
            base: 0,
            window: 0,
        }
    }

    pub(crate) fn clear(&mut self) {
        self.nodes.clear();
        self.nodes.push(Node::default());
        self.origin = 0;
        self.base = 0;
        self.window = 0;
    }

    /// The text has grown by one and its last token begins at `parent`, in the window so far; from now
    /// on a later token can begin at `window` or after it. Returns the base. Amortised O(1).
    #[inline]
    pub(crate) fn push(&mut self, parent: usize, window: usize) -> usize {
        let len = self.origin + self.nodes.len();
        self.nodes.push(Node {
            parent,
            children: 0,
            child: 0,
        });
        let above = &mut self.nodes[parent - self.origin];
        above.children += 1;
        above.child ^= len;
        while self.window < window {
            if self.nodes[self.window - self.origin].children == 0 {
                self.give_up(self.window);
            }
            self.window += 1;
        }
        self.advance();
        self.base
    }

    /// A prefix leaves the window and has no kept child.
    #[inline]
    fn give_up(&mut self, mut len: usize) {
        loop {
            let parent = self.nodes[len - self.origin].parent;
            let above = &mut self.nodes[parent - self.origin];
            above.children -= 1;
            above.child ^= len;
            if above.children > 0 || parent == self.base {
                return;
            }
            len = parent;
        }
    }

    #[inline]
    fn advance(&mut self) {
        let before = self.base;
        while self.base < self.window {
            let node = &self.nodes[self.base - self.origin];
            if node.children != 1 {
                break;
            }
            self.base = node.child;
        }
        let dead = self.base - self.origin;
        if self.base > before && dead >= DEAD && 2 * dead >= self.nodes.len() {
            self.nodes.drain(..dead);
            self.origin = self.base;
        }
    }

    /// As so many calls of [`Frontier::push`]: the text has grown to `len`, and a later token can begin
    /// at `window` or after it; `parent_of` says where the last token of a prefix begins. Returns the
    /// base. O(bytes after it): less than the calls.
    pub(crate) fn extend(
        &mut self,
        len: usize,
        window: usize,
        parent_of: impl Fn(usize) -> usize,
    ) -> usize {
        let origin = self.base;
        self.nodes.clear();
        self.nodes.resize(len - origin + 1, Node::default());
        // The kept prefixes from the longest on, until one is left.
        let mut left = len - window + 1;
        let mut next = len;
        loop {
            if next >= window || self.nodes[next - origin].children > 0 {
                if left == 1 {
                    break;
                }
                let parent = parent_of(next);
                self.nodes[next - origin].parent = parent;
                let above = &mut self.nodes[parent - origin];
                left -= usize::from(parent >= window || above.children > 0);
                above.children += 1;
                above.child ^= next;
            }
            next -= 1;
        }
        self.nodes.drain(..next - origin);
        self.origin = next;
        self.base = next;
        self.window = window;
        next
    }

    /// The length of the text, as far as it is known here.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.origin + self.nodes.len() - 1
    }

    /// The first prefix at which a later token can begin.
    pub(crate) fn window(&self) -> usize {
        self.window
    }

    /// Bytes of memory.
    pub(crate) fn memory(&self) -> usize {
        self.nodes.capacity() * size_of::<Node>()
    }
}

impl Clone for Frontier {
    /// O(bytes from the base on).
    fn clone(&self) -> Self {
        Self {
            nodes: self.nodes[self.base - self.origin..].to_vec(),
            origin: self.base,
            base: self.base,
            window: self.window,
        }
    }
}

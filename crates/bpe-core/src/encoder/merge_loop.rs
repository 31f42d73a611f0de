//! The two merge loops that encoders and the canonical form share: over a flat array, and over a
//! tournament tree with a linked list.

use alloc::vec::Vec;

use super::tournament::Tournament;
use crate::canonical::Merge;
use crate::dictionary::Priority;
use crate::pair_table::PairTable;
use crate::vocabulary::TokenId;

/// The rule applied last: its sides and its priority.
pub(crate) type LastRule = Option<(TokenId, TokenId, Priority)>;

/// Spans up to this many atoms go to the flat array in [`MergeLoop::merge_tail`]. Either loop gives
/// the same; a short array is scanned in less time than a tree takes.
const SWEEP_AT_MOST: usize = 24;

/// No pair, or a pair without a rule. Rules are fewer, see `Dictionary`.
const NEVER: u32 = u32::MAX;

/// Scratch memory of both loops.
#[derive(Debug, Clone, Default)]
pub(crate) struct MergeLoop {
    /// Of each token but the last, the merge with its right neighbour.
    pairs: Vec<Pair>,
    nodes: Vec<Node>,
    /// Of each node the priority of its pair, above its place: so of equal pairs the leftmost is the least.
    keys: Tournament,
    /// Of each token that `tree_tail` left, where it ends among the atoms.
    ends: Vec<u32>,
}

#[derive(Debug, Clone, Copy)]
struct Pair {
    priority: u32,
    product: TokenId,
}

/// A token that is still there, by its place among the atoms; the token itself stays in the output.
#[derive(Debug, Clone, Copy)]
struct Node {
    previous: u32,
    next: u32,
    /// What this token and the next merge to, if they do.
    product: TokenId,
}

impl MergeLoop {
    /// Merges `tokens[start..]`, by the loop that suits their number: O(n log n). Returns the last
    /// rule.
    pub(crate) fn merge_tail(
        &mut self,
        table: &PairTable,
        tokens: &mut Vec<TokenId>,
        start: usize,
    ) -> LastRule {
        if tokens.len() - start <= SWEEP_AT_MOST {
            self.sweep_tail(table, tokens, start)
        } else {
            self.tree_tail(table, tokens, start)
        }
    }

    /// Merges all `tokens`, by the tree: O(n log n). Returns where each of those that are left ends among
    /// the atoms.
    pub(crate) fn merge_with_ends(
        &mut self,
        table: &PairTable,
        tokens: &mut Vec<TokenId>,
    ) -> &[u32] {
        self.tree_tail(table, tokens, 0);
        &self.ends
    }

    /// Merges `tokens[start..]` by sweeping over an array of priorities. O(n) look-ups, O(n^2)
    /// steps.
    pub(crate) fn sweep_tail(
        &mut self,
        table: &PairTable,
        tokens: &mut Vec<TokenId>,
        start: usize,
    ) -> LastRule {
        let pair = |left, right| match table.get(left, right) {
            Some(merge) => Pair {
                priority: merge.priority.0,
                product: merge.product,
            },
            None => Pair {
                priority: NEVER,
                product: 0,
            },
        };
        self.pairs.clear();
        let neighbours = tokens[start..].windows(2);
        self.pairs
            .extend(neighbours.map(|two| pair(two[0], two[1])));
        let mut last = None;
        loop {
            let mut best = NEVER;
            let mut left = 0;
            for (index, pair) in self.pairs.iter().enumerate() {
                if pair.priority < best {
                    best = pair.priority;
                    left = index;
                }
            }
            if best == NEVER {
                return last;
            }
            let place = start + left;
            last = Some((tokens[place], tokens[place + 1], Priority(best)));
            tokens[place] = self.pairs[left].product;
            tokens.remove(place + 1);
            self.pairs.remove(left);
            if left > 0 {
                self.pairs[left - 1] = pair(tokens[place - 1], tokens[place]);
            }
            if left < self.pairs.len() {
                self.pairs[left] = pair(tokens[place], tokens[place + 1]);
            }
        }
    }

    /// Merges `tokens[start..]` by a tournament of pairs and a linked list of tokens. O(n log n).
    fn tree_tail(
        &mut self,
        table: &PairTable,
        tokens: &mut Vec<TokenId>,
        start: usize,
    ) -> LastRule {
        let tail = &mut tokens[start..];
        // A span is shorter than 4 GiB, or its tokens would not fit in memory by far; should one
        // ever be longer, the flat array is slow and right.
        let Ok(count) = u32::try_from(tail.len()) else {
            return self.sweep_tail(table, tokens, start);
        };
        let Self { nodes, keys, .. } = self;
        nodes.clear();
        keys.fill((0..count).map(|left| {
            let merge = match tail[left as usize..] {
                [first, second, ..] => table.get(first, second),
                _ => None,
            };
            nodes.push(Node {
                previous: left.wrapping_sub(1),
                next: left + 1,
                product: merge.map_or(0, |merge| merge.product),
            });
            merge.map_or(Tournament::NEVER, |merge| key(merge, left))
        }));
        let nodes = &mut nodes[..tail.len()];
        let mut last = None;
        loop {
            let least = keys.least();
            if least == Tournament::NEVER {
                break;
            }
            let (priority, left) = (Priority((least >> 32) as u32), least as u32);
            let node = nodes[left as usize];
            let (right, product) = (node.next, node.product);
            last = Some((tail[left as usize], tail[right as usize], priority));
            tail[left as usize] = product;
            let next = nodes[right as usize].next;
            nodes[left as usize].next = next;
            let before = tail.get(node.previous as usize).copied();
            let first = before.map_or(left, |_| node.previous);
            // Before the table is asked, so that it is done while that is waited for.
            keys.remove([first, left, right].map(|place| place as usize));
            if let Some(&behind) = tail.get(next as usize) {
                nodes[next as usize].previous = left;
                if let Some(merge) = table.get(product, behind) {
                    nodes[left as usize].product = merge.product;
                    keys.insert(left as usize, key(merge, left));
                }
            }
            if let Some(before) = before
                && let Some(merge) = table.get(before, product)
            {
                nodes[first as usize].product = merge.product;
                keys.insert(first as usize, key(merge, first));
            }
        }

        // The tokens that are left, moved together.
        self.ends.clear();
        let mut from = 0;
        let mut to = start;
        while from < count {
            tokens[to] = tokens[start + from as usize];
            to += 1;
            from = nodes[from as usize].next;
            self.ends.push(from);
        }
        tokens.truncate(to);
        last
    }
}

/// The key of a merge whose left token is at `left`. It is no `Tournament::NEVER`: no rule has that priority.
#[inline(always)]
fn key(merge: Merge, left: u32) -> u64 {
    u64::from(merge.priority.0) << 32 | u64::from(left)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dictionary::Dictionary;
    use crate::random::Random;
    use crate::vocabulary::Vocabulary;

    #[test]
    fn both_loops_give_the_same_tokens_and_the_same_last_rule() {
        // All words over two letters up to eight, under ranks that make some tokens in two ways.
        let tokens = [
            "a", "b", "ab", "ba", "aba", "aab", "bb", "abab", "baa", "aaba",
        ];
        let vocabulary = Vocabulary::new((0..).zip(tokens)).expect("valid");
        let dictionary = Dictionary::from_ranks(vocabulary).expect("valid");
        let rules = dictionary.rules();
        let table = PairTable::new(rules.len(), rules.iter().copied());
        let mut merge_loop = MergeLoop::default();
        for len in 0..=12 {
            for word in 0..1_u32 << len {
                let atoms: Vec<TokenId> = (0..len).map(|at| word >> at & 1).collect();
                let (mut swept, mut by_tree) = (alloc::vec![9], alloc::vec![9]);
                swept.extend_from_slice(&atoms);
                by_tree.extend_from_slice(&atoms);
                let last = merge_loop.sweep_tail(&table, &mut swept, 1);
                assert_eq!(merge_loop.tree_tail(&table, &mut by_tree, 1), last);
                assert_eq!(by_tree, swept, "{atoms:?}");
            }
        }
    }

    #[test]
    fn long_spans_and_improper_dictionaries_too() {
        let mut numbers = Random(1);
        let mut random = |below: usize| numbers.below(below);
        let mut merge_loop = MergeLoop::default();
        for _ in 0..60 {
            // Ranks in no order.
            let mut tokens: Vec<Vec<u8>> = [b"a", b"b", b"c"].map(|letter| letter.to_vec()).into();
            for _ in 0..random(60) {
                let (left, right) = (random(tokens.len()), random(tokens.len()));
                let product = [&tokens[left][..], &tokens[right]].concat();
                if product.len() <= 80 && !tokens.contains(&product) {
                    tokens.push(product);
                }
            }
            let mut ids: Vec<u32> = (3..tokens.len() as u32).collect();
            for end in (1..ids.len()).rev() {
                ids.swap(end, random(end + 1));
            }
            let entries = (0..3).chain(ids).zip(&tokens);
            let vocabulary = Vocabulary::new(entries).expect("valid");
            let dictionary = Dictionary::from_ranks(vocabulary).expect("valid");
            let rules = dictionary.rules();
            let table = PairTable::new(rules.len(), rules.iter().copied());
            for letters in [1, 2, 3] {
                let count = random(700);
                let mut swept: Vec<TokenId> = (0..count).map(|_| random(letters) as u32).collect();
                let mut by_tree = swept.clone();
                let last = merge_loop.sweep_tail(&table, &mut swept, 0);
                assert_eq!(merge_loop.tree_tail(&table, &mut by_tree, 0), last);
                assert_eq!(by_tree, swept, "{rules:?}");
                let vocabulary = dictionary.vocabulary();
                let len = |id: &TokenId| vocabulary.token_bytes(*id).map_or(0, <[u8]>::len);
                let ends = swept.iter().scan(0, |end, id| {
                    *end += len(id) as u32;
                    Some(*end)
                });
                assert!(ends.eq(merge_loop.ends.iter().copied()));
            }
        }
    }
}

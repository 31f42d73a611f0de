//! The two merge loops that encoders and the canonical form share: over a flat array, and over a
//! heap with a linked list.

use alloc::collections::BinaryHeap;
use alloc::vec::Vec;
use core::cmp::Reverse;

use crate::dictionary::Priority;
use crate::pair_table::PairTable;
use crate::vocabulary::TokenId;

/// The rule applied last: its sides and its priority.
pub(crate) type LastRule = Option<(TokenId, TokenId, Priority)>;

/// Spans up to this many atoms go to the flat array in [`MergeLoop::merge_tail`]. Either loop gives
/// the same; below some dozens of atoms a scan of the array beats the heap (docs/benchmarks).
const SWEEP_AT_MOST: usize = 64;

/// No pair, or a pair without a rule. Rules are fewer, see `Dictionary`.
const NEVER: u32 = u32::MAX;

/// Scratch memory of both loops.
#[derive(Debug, Clone, Default)]
pub(crate) struct MergeLoop {
    /// Of each token but the last, the merge with its right neighbour.
    pairs: Vec<Pair>,
    nodes: Vec<Node>,
    heap: BinaryHeap<Reverse<Entry>>,
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
    /// Priority of the pair of this token and the next, `NEVER` if it cannot merge.
    priority: u32,
}

/// A pair that could merge when it was entered: ordered by priority, then from left to right.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    priority: u32,
    left: u32,
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
            self.heap_tail(table, tokens, start)
        }
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

    /// Merges `tokens[start..]` by a heap of pairs and a linked list of tokens. O(n log n).
    fn heap_tail(
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
        let priority = |left, right| match table.get(left, right) {
            Some(merge) => merge.priority.0,
            None => NEVER,
        };
        let Self { nodes, heap, .. } = self;
        nodes.clear();
        heap.clear();
        for left in 0..count {
            let pair_priority = match tail[left as usize..] {
                [first, second, ..] => priority(first, second),
                _ => NEVER,
            };
            nodes.push(Node {
                previous: left.wrapping_sub(1),
                next: left + 1,
                priority: pair_priority,
            });
        }
        // Filling the heap from a vector is O(n), pushing would be O(n log n).
        let mut entries = core::mem::take(heap).into_vec();
        entries.extend(
            (0..count)
                .zip(nodes.iter())
                .filter(|(_, node)| node.priority != NEVER)
                .map(|(left, node)| {
                    Reverse(Entry {
                        priority: node.priority,
                        left,
                    })
                }),
        );
        *heap = BinaryHeap::from(entries);

        let mut last = None;
        while let Some(Reverse(entry)) = heap.pop() {
            let node = nodes[entry.left as usize];
            if node.priority != entry.priority {
                continue; // One of the two has merged since.
            }
            let (left, right) = (entry.left as usize, node.next as usize);
            let Some(merge) = table.get(tail[left], tail[right]) else {
                continue; // Not reached: the node's priority is that of this pair.
            };
            last = Some((tail[left], tail[right], merge.priority));
            tail[left] = merge.product;
            let next = nodes[right].next;
            nodes[right].priority = NEVER;
            nodes[left].next = next;
            if next < count {
                nodes[next as usize].previous = entry.left;
                nodes[left].priority = priority(tail[left], tail[next as usize]);
            } else {
                nodes[left].priority = NEVER;
            }
            if nodes[left].priority != NEVER {
                heap.push(Reverse(Entry {
                    priority: nodes[left].priority,
                    left: entry.left,
                }));
            }
            let previous = node.previous;
            if previous < count {
                let pair_priority = priority(tail[previous as usize], tail[left]);
                nodes[previous as usize].priority = pair_priority;
                if pair_priority != NEVER {
                    heap.push(Reverse(Entry {
                        priority: pair_priority,
                        left: previous,
                    }));
                }
            }
        }

        // The tokens that are left, moved together.
        let mut from = 0;
        let mut to = start;
        while from < count {
            tokens[to] = tokens[start + from as usize];
            to += 1;
            from = nodes[from as usize].next;
        }
        tokens.truncate(to);
        last
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dictionary::Dictionary;
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
                let (mut swept, mut heaped) = (alloc::vec![9], alloc::vec![9]);
                swept.extend_from_slice(&atoms);
                heaped.extend_from_slice(&atoms);
                let last = merge_loop.sweep_tail(&table, &mut swept, 1);
                assert_eq!(merge_loop.heap_tail(&table, &mut heaped, 1), last);
                assert_eq!(heaped, swept, "{atoms:?}");
            }
        }
    }
}

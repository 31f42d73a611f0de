//! The two merge loops that encoders and the canonical form share: over a flat array, and over a
//! heap with a linked list.

use alloc::vec::Vec;

use super::tournament::Tournament;
use crate::dictionary::Priority;
use crate::pair_table::PairTable;
use crate::vocabulary::TokenId;

/// The rule applied last: its sides and its priority.
pub(crate) type LastRule = Option<(TokenId, TokenId, Priority)>;

/// Spans up to this many atoms go to the flat array in [`MergeLoop::merge_tail`]. Either loop gives
/// the same; a short array is scanned in place, without the heap's pushes and jumps.
const SWEEP_AT_MOST: usize = 24;

/// Spans of more atoms than this are merged window by window in [`MergeLoop::merge_windows`], where
/// the dictionary is proper: what a window needs stays in a second-level cache.
const WINDOW: usize = 1 << 12;

/// How far a window reaches back into the one before.
const OVERLAP: usize = 1 << 8;

/// No pair, or a pair without a rule. Rules are fewer, see `Dictionary`.
const NEVER: u32 = u32::MAX;

/// Scratch memory of both loops.
#[derive(Debug, Clone, Default)]
pub(crate) struct MergeLoop {
    /// Of each token but the last, the merge with its right neighbour.
    pairs: Vec<Pair>,
    nodes: Vec<Node>,
    keys: Tournament,
    /// Of each token that `tree_tail` left, where it ends among the atoms.
    ends: Vec<usize>,
    /// Scratch of the loop over windows.
    windows: Windows,
}

/// What merging window by window remembers.
#[derive(Debug, Clone, Default)]
struct Windows {
    atoms: Vec<TokenId>,
    /// Of each token so far, where it ends among the atoms.
    ends: Vec<usize>,
    /// The tokens of the window, and where each ends.
    tokens: Vec<TokenId>,
    token_ends: Vec<usize>,
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
    /// What this token and the next merge to.
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

    /// Merges `tokens[start..]` of a proper dictionary: as [`MergeLoop::merge_tail`], but long spans
    /// window by window, so that the time an atom takes does not grow with the span.
    pub(crate) fn merge_long_tail(
        &mut self,
        table: &PairTable,
        tokens: &mut Vec<TokenId>,
        start: usize,
    ) {
        if tokens.len() - start > 2 * WINDOW {
            self.merge_windows(table, tokens, start, WINDOW, OVERLAP);
        } else {
            self.merge_tail(table, tokens, start);
        }
    }

    /// Merges `tokens[start..]` in windows of `window` atoms that reach back over some `overlap`
    /// atoms each, to an end of a token.
    ///
    /// Let the tokens so far be those of the atoms before `e`, and those of a window be those of the
    /// atoms from `b < e` to `f`. If both hold the same token at the same place, then the first up to
    /// it and the second after it are the tokens of the atoms before `f`: every token is canonical,
    /// and every pair of neighbours stands side by side in one of the two, so is valid; and in a
    /// proper dictionary that is all there is to a tokenization (docs/architecture.md, fact 3). Where
    /// there is no such token, the span is merged as a whole.
    fn merge_windows(
        &mut self,
        table: &PairTable,
        tokens: &mut Vec<TokenId>,
        start: usize,
        window: usize,
        overlap: usize,
    ) {
        let mut windows = core::mem::take(&mut self.windows);
        windows.atoms.clear();
        windows.atoms.extend_from_slice(&tokens[start..]);
        windows.ends.clear();
        tokens.truncate(start);
        let count = windows.atoms.len();
        let mut from = 0;
        loop {
            let to = count.min(from + window);
            windows.tokens.clear();
            windows.tokens.extend_from_slice(&windows.atoms[from..to]);
            self.tree_tail(table, &mut windows.tokens, 0);
            windows.token_ends.clear();
            windows
                .token_ends
                .extend(self.ends.iter().map(|end| from + end));
            if from > 0 && !windows.join(tokens, start, from) {
                break;
            }
            if from == 0 {
                tokens.extend_from_slice(&windows.tokens);
                windows.ends.extend_from_slice(&windows.token_ends);
            }
            if to == count {
                self.windows = windows;
                return;
            }
            // The end of a token at some distance before the end of the window.
            let target = to - overlap.min(to);
            let before = windows.ends.partition_point(|&end| end <= target);
            let next = before.checked_sub(1).map_or(0, |last| windows.ends[last]);
            if next <= from {
                break; // One token is as long as the window.
            }
            from = next;
        }
        tokens.truncate(start);
        tokens.extend_from_slice(&windows.atoms);
        self.windows = windows;
        self.tree_tail(table, tokens, start);
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
            let (priority, product) = match tail[left as usize..] {
                [first, second, ..] => find(table, first, second),
                _ => (NEVER, 0),
            };
            nodes.push(Node {
                previous: left.wrapping_sub(1),
                next: left + 1,
                product,
            });
            key(priority, left)
        }));
        let nodes = &mut nodes[..tail.len()];
        let mut last = None;
        while let Some((priority, left)) = least(keys) {
            let node = nodes[left as usize];
            let right = node.next;
            let next = nodes[right as usize].next;
            last = Some((tail[left as usize], tail[right as usize], Priority(priority)));
            tail[left as usize] = node.product;
            keys.put(right as usize, u64::MAX);
            let behind = tail.get(next as usize).map(|&other| find(table, node.product, other));
            let before = tail.get(node.previous as usize).map(|&other| find(table, other, node.product));
            let (priority, product) = behind.unwrap_or((NEVER, 0));
            nodes[left as usize].product = product;
            nodes[left as usize].next = next;
            keys.put(left as usize, key(priority, left));
            if let Some(node) = nodes.get_mut(next as usize) {
                node.previous = left;
            }
            let mut first = left;
            if let Some((priority, product)) = before {
                first = node.previous;
                nodes[first as usize].product = product;
                keys.put(first as usize, key(priority, first));
            }
            keys.settle([first as usize, left as usize, right as usize]);
        }

        // The tokens that are left, moved together.
        self.ends.clear();
        let mut from = 0;
        let mut to = start;
        while from < count {
            tokens[to] = tokens[start + from as usize];
            to += 1;
            from = nodes[from as usize].next;
            self.ends.push(from as usize);
        }
        tokens.truncate(to);
        last
    }
}

#[inline(always)]
fn find(table: &PairTable, left: TokenId, right: TokenId) -> (u32, TokenId) {
    match table.get(left, right) {
        Some(merge) => (merge.priority.0, merge.product),
        None => (NEVER, 0),
    }
}

#[inline(always)]
fn key(priority: u32, left: u32) -> u64 {
    let key = u64::from(priority) << 32 | u64::from(left);
    if priority == NEVER { u64::MAX } else { key }
}

#[inline(always)]
fn least(keys: &Tournament) -> Option<(u32, u32)> {
    let key = keys.least();
    let priority = (key >> 32) as u32;
    (priority != NEVER).then_some((priority, key as u32))
}

impl Windows {
    /// Joins the window's tokens, whose first begins at atom `from`, to the tokens so far, at the
    /// first token that both have at one place. False where there is none.
    fn join(&mut self, tokens: &mut Vec<TokenId>, start: usize, from: usize) -> bool {
        let first = self.ends.partition_point(|&end| end <= from);
        let (mut so_far, mut of_window) = (first, 0);
        let (mut so_far_start, mut window_start) = (from, from);
        while so_far < self.ends.len() && of_window < self.tokens.len() {
            let (end, window_end) = (self.ends[so_far], self.token_ends[of_window]);
            if so_far_start == window_start
                && end == window_end
                && tokens[start + so_far] == self.tokens[of_window]
            {
                tokens.truncate(start + so_far + 1);
                self.ends.truncate(so_far + 1);
                tokens.extend_from_slice(&self.tokens[of_window + 1..]);
                self.ends
                    .extend_from_slice(&self.token_ends[of_window + 1..]);
                return true;
            }
            if end <= window_end {
                so_far += 1;
                so_far_start = end;
            }
            if window_end <= end {
                of_window += 1;
                window_start = window_end;
            }
        }
        false
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
                assert_eq!(merge_loop.tree_tail(&table, &mut heaped, 1), last);
                assert_eq!(heaped, swept, "{atoms:?}");
            }
        }
    }

    #[test]
    fn windows_give_what_the_whole_gives_and_mostly_need_no_second_try() {
        let mut state = 1_u64;
        let mut random = |below: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % below
        };
        let mut merge_loop = MergeLoop::default();
        for _ in 0..300 {
            // A proper dictionary over two or three letters: sides are made by earlier rules.
            let letters = 2 + random(2);
            let mut tokens: Vec<Vec<u8>> =
                (0..letters as u8).map(|letter| [letter].into()).collect();
            let mut merges = Vec::new();
            for _ in 0..random(14) {
                let (left, right) = (random(tokens.len()), random(tokens.len()));
                let product = [&tokens[left][..], &tokens[right]].concat();
                if product.len() <= 6 && !tokens.contains(&product) {
                    tokens.push(product);
                    merges.push((left as u32, right as u32));
                }
            }
            let vocabulary = Vocabulary::new((0..).zip(&tokens)).expect("distinct");
            let dictionary = Dictionary::from_merges(vocabulary, merges).expect("valid");
            let form = crate::CanonicalForm::new(&dictionary);
            assert!(form.is_proper());
            for _ in 0..20 {
                let period = 1 + random(8);
                let word: Vec<TokenId> = (0..period).map(|_| random(letters) as u32).collect();
                let atoms: Vec<TokenId> = (0..random(120))
                    .map(|at| match random(6) {
                        0 => random(letters) as u32,
                        _ => word[at % period],
                    })
                    .collect();
                let mut whole = atoms.clone();
                merge_loop.tree_tail(form.pair_table(), &mut whole, 0);
                for (window, overlap) in [(7, 3), (12, 6), (30, 12), (40, 1)] {
                    let mut joined = alloc::vec![9];
                    joined.extend_from_slice(&atoms);
                    merge_loop.merge_windows(form.pair_table(), &mut joined, 1, window, overlap);
                    assert_eq!(joined[1..], whole, "{atoms:?}");
                    assert_eq!(joined[0], 9);
                }
            }
        }
    }
}

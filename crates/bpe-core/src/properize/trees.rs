//! Growing trees, and which of their rules must come before which.

use alloc::vec::Vec;

use super::order::{Graph, Sorted};
use super::{Constraint, Cycle, Step};
use crate::canonical::{CanonicalForm, TokenOrigin};
use crate::encoder::merge_loop::MergeLoop;
use crate::vocabulary::TokenId;

/// Pairs of rules that are looked at one by one in all, where a tree has a cycle.
const MOST_PAIRS: usize = 1 << 20;

/// Bytes of text that are merged in all to find out whether a constraint matters.
const MOST_BYTES: usize = 1 << 24;

/// A canonical rule with what trees need to know. Tokens are positions in the vocabulary.
#[derive(Clone, Copy)]
struct Rule {
    left: u32,
    right: u32,
    product: u32,
    priority: u32,
    /// Priority of the seed, see [`Forest`].
    seed: u32,
}

/// All rules, tree by tree.
pub(super) struct Forest<'f> {
    form: &'f CanonicalForm,
    /// Ordered by seed, then by priority, so that the seed is the last rule of its tree.
    rules: Vec<Rule>,
    /// Of each token by position, one more than the priority of the seed of its rule; 0 for tokens
    /// that no rule makes. This is the lowest priority among the rules that make it (000 App. A.3).
    levels: Vec<u32>,
    /// What may still be spent on trees with a cycle.
    pairs_left: usize,
    bytes_left: usize,
    merge_loop: MergeLoop,
}

/// What became of all trees.
pub(super) struct Ordered {
    /// Of each token by position, the new priority of its rule.
    pub(super) priorities: Vec<u32>,
    pub(super) cycles: Vec<Cycle>,
    pub(super) trees: usize,
    pub(super) grown_rules: usize,
    pub(super) needless: usize,
}

/// A constraint between two rules of a tree, by their places in it.
#[derive(Clone, Copy)]
struct Pair {
    first: u32,
    second: u32,
    /// Whether the first one takes the contested token from the left.
    first_is_left: bool,
    kind: Constraint,
}

impl<'f> Forest<'f> {
    /// Finds the trees. O(n log n) for n tokens.
    pub(super) fn new(form: &'f CanonicalForm) -> Self {
        let vocabulary = form.vocabulary();
        let count = vocabulary.len();
        let mut rules: Vec<Rule> = (0..count)
            .filter_map(|position| {
                let Some(TokenOrigin::Rule(rule)) = form.origin(vocabulary.id_at(position)) else {
                    return None;
                };
                Some(Rule {
                    left: vocabulary.position_of(rule.left)? as u32,
                    right: vocabulary.position_of(rule.right)? as u32,
                    product: position as u32,
                    priority: rule.priority.0,
                    seed: 0,
                })
            })
            .collect();
        // Sides are shorter than products.
        rules.sort_by_key(|rule| vocabulary.bytes_at(rule.product as usize).len());
        let mut levels = alloc::vec![0_u32; count];
        for rule in &mut rules {
            let level = (rule.priority + 1)
                .max(levels[rule.left as usize])
                .max(levels[rule.right as usize]);
            levels[rule.product as usize] = level;
            rule.seed = level - 1;
        }
        rules.sort_unstable_by_key(|rule| (rule.seed, rule.priority));
        Self {
            form,
            rules,
            levels,
            pairs_left: MOST_PAIRS,
            bytes_left: MOST_BYTES,
            merge_loop: MergeLoop::default(),
        }
    }

    /// New priorities for all rules: tree by tree in the order of their seeds, and in each tree as
    /// its constraints demand.
    pub(super) fn order(mut self) -> Ordered {
        let mut ordered = Ordered {
            priorities: alloc::vec![0; self.levels.len()],
            cycles: Vec::new(),
            trees: 0,
            grown_rules: 0,
            needless: 0,
        };
        let rules = core::mem::take(&mut self.rules);
        let mut next = 0;
        let mut place = |product: u32| {
            ordered.priorities[product as usize] = next;
            next += 1;
        };
        for tree in rules.chunk_by(|a, b| a.seed == b.seed) {
            let Some((seed, grown)) = tree.split_last() else {
                continue;
            };
            if grown.is_empty() {
                place(seed.product);
                continue;
            }
            ordered.trees += 1;
            ordered.grown_rules += grown.len();
            let sorted = self.sort_tree(tree, &mut ordered.cycles, &mut ordered.needless);
            for &index in &sorted.order {
                place(tree[index as usize].product);
            }
        }
        ordered
    }

    fn sort_tree(
        &mut self,
        tree: &[Rule],
        cycles: &mut Vec<Cycle>,
        needless: &mut usize,
    ) -> Sorted {
        let sorted = self.graph(tree).sort();
        if sorted.cycle.is_none() {
            return sorted;
        }
        let Some(mut pairs) = self.pairs(tree) else {
            cycles.extend(self.cycle(tree, &sorted, Vec::new()));
            return sorted;
        };
        let before = pairs.len();
        pairs.retain(|&pair| self.can_matter(tree, pair));
        let mut graph = self.tree_edges(tree);
        for pair in &pairs {
            graph.add_edge(pair.first, pair.second, pair.kind);
        }
        let sorted = graph.sort();
        if sorted.cycle.is_none() {
            *needless += before - pairs.len();
            return sorted;
        }
        let mut places = alloc::vec![0_usize; tree.len()];
        for (place, &index) in sorted.order.iter().enumerate() {
            places[index as usize] = place;
        }
        pairs.retain(|pair| places[pair.first as usize] > places[pair.second as usize]);
        let overlaps = pairs.iter().map(|pair| self.overlap(tree, pair)).collect();
        cycles.extend(self.cycle(tree, &sorted, overlaps));
        sorted
    }

    fn is_in_tree(&self, token: u32, tree: &[Rule]) -> bool {
        tree.first()
            .is_some_and(|rule| self.levels[token as usize] == rule.seed + 1)
    }

    /// The graph with tree edges only: sides before products.
    fn tree_edges(&self, tree: &[Rule]) -> Graph {
        let mut by_product: Vec<(u32, u32)> = (0_u32..)
            .zip(tree)
            .map(|(index, rule)| (rule.product, index))
            .collect();
        by_product.sort_unstable();
        let mut graph = Graph::new(tree.iter().map(|rule| rule.priority).collect());
        for (index, rule) in (0_u32..).zip(tree) {
            for side in [rule.left, rule.right] {
                let maker = by_product.binary_search_by_key(&side, |&(product, _)| product);
                if let Ok(place) = maker {
                    graph.add_edge(by_product[place].1, index, Constraint::Tree);
                }
            }
        }
        graph
    }

    /// Calls `visit` for each token that rules of the tree take from both sides: with those that have
    /// it as right side, and those that have it as left side, each by priority.
    fn for_each_contested(tree: &[Rule], mut visit: impl FnMut(u32, &[u32], &[u32])) {
        let mut takers: Vec<(u32, bool, u32)> = (0_u32..)
            .zip(tree)
            .flat_map(|(index, rule)| [(rule.right, false, index), (rule.left, true, index)])
            .collect();
        takers.sort_unstable();
        let (mut from_left, mut from_right) = (Vec::new(), Vec::new());
        for group in takers.chunk_by(|a, b| a.0 == b.0) {
            from_left.clear();
            from_right.clear();
            for &(_, is_left_side, index) in group {
                match is_left_side {
                    false => from_left.push(index),
                    true => from_right.push(index),
                }
            }
            if !from_left.is_empty() && !from_right.is_empty() {
                visit(group[0].0, &from_left, &from_right);
            }
        }
    }

    /// The graph of all constraints, with relays, so that it has as many edges as rules.
    fn graph(&self, tree: &[Rule]) -> Graph {
        let mut graph = self.tree_edges(tree);
        Self::for_each_contested(tree, |middle, from_left, from_right| {
            if !self.is_in_tree(middle, tree) {
                let relay = graph.add_relay();
                for &index in from_left {
                    if self.is_in_tree(tree[index as usize].left, tree) {
                        graph.add_edge(index, relay, Constraint::Conflict);
                    }
                }
                for &index in from_right {
                    graph.add_edge(relay, index, Constraint::Conflict);
                }
                return;
            }
            // All that take the token from the left, then the rule of two such tokens, then those
            // that append a later one.
            let (first, second) = (graph.add_relay(), graph.add_relay());
            graph.add_edge(first, second, Constraint::Earlier);
            for &index in from_left {
                let rule = &tree[index as usize];
                if rule.left == middle {
                    graph.add_edge(first, index, Constraint::Earlier);
                    graph.add_edge(index, second, Constraint::Earlier);
                } else {
                    graph.add_edge(index, first, Constraint::Earlier);
                }
            }
            for &index in from_right {
                let rule = &tree[index as usize];
                if rule.right != middle && self.is_in_tree(rule.right, tree) {
                    graph.add_edge(second, index, Constraint::Earlier);
                }
            }
            // Children by priority, the two directions against each other: a chain of relays for each.
            let mut children: Vec<(u32, bool)> =
                from_left.iter().map(|&index| (index, true)).collect();
            children.extend(
                from_right
                    .iter()
                    .map(|&index| (index, false))
                    .filter(|&(index, _)| !self.is_in_tree(tree[index as usize].right, tree)),
            );
            children.sort_unstable_by_key(|&(index, _)| tree[index as usize].priority);
            let mut chains: [Option<u32>; 2] = [None; 2];
            for (index, grows_left) in children {
                let (own, other) = match grows_left {
                    true => (0, 1),
                    false => (1, 0),
                };
                if let Some(chain) = chains[other] {
                    graph.add_edge(chain, index, Constraint::Sibling);
                }
                let relay = graph.add_relay();
                graph.add_edge(index, relay, Constraint::Sibling);
                if let Some(chain) = chains[own] {
                    graph.add_edge(chain, relay, Constraint::Sibling);
                }
                chains[own] = Some(relay);
            }
        });
        graph
    }

    /// The same constraints, tree edges aside, one by one; `None` where there are too many.
    fn pairs(&mut self, tree: &[Rule]) -> Option<Vec<Pair>> {
        let mut pairs = Vec::new();
        let mut left = self.pairs_left;
        let mut is_over = false;
        Self::for_each_contested(tree, |middle, from_left, from_right| {
            let here = from_left.len().saturating_mul(from_right.len());
            if is_over || here > left {
                is_over = true;
                return;
            }
            left -= here;
            for &a in from_left {
                for &b in from_right {
                    pairs.extend(self.constraint(tree, middle, a, b));
                }
            }
        });
        self.pairs_left = left;
        (!is_over).then_some(pairs)
    }

    /// The constraint between a rule that takes `middle` from the left and one that takes it from the
    /// right, where there is one.
    fn constraint(
        &self,
        tree: &[Rule],
        middle: u32,
        from_left: u32,
        from_right: u32,
    ) -> Option<Pair> {
        let (a, b) = (&tree[from_left as usize], &tree[from_right as usize]);
        let (first, second, kind) = if from_left == from_right {
            return None;
        } else if !self.is_in_tree(middle, tree) {
            if !self.is_in_tree(a.left, tree) {
                return None;
            }
            (from_left, from_right, Constraint::Conflict)
        } else if self.is_in_tree(b.right, tree) {
            (from_left, from_right, Constraint::Earlier)
        } else if a.priority < b.priority {
            (from_left, from_right, Constraint::Sibling)
        } else {
            (from_right, from_left, Constraint::Sibling)
        };
        Some(Pair {
            first,
            second,
            first_is_left: first == from_left,
            kind,
        })
    }

    /// The three tokens that two rules compete for, from left to right.
    fn contested(tree: &[Rule], pair: &Pair) -> [u32; 3] {
        let (first, second) = (&tree[pair.first as usize], &tree[pair.second as usize]);
        match pair.first_is_left {
            true => [first.left, first.right, second.right],
            false => [second.left, first.left, first.right],
        }
    }

    /// Whether there can be a text on which the first rule has to come before the second: if so, the
    /// first is applied to the three tokens' text alone.
    fn can_matter(&mut self, tree: &[Rule], pair: Pair) -> bool {
        let tokens = Self::contested(tree, &pair);
        let vocabulary = self.form.vocabulary();
        let lens = tokens.map(|token| vocabulary.bytes_at(token as usize).len());
        let total: usize = lens.iter().sum();
        if total > self.bytes_left {
            return true;
        }
        self.bytes_left -= total;
        let mut merged = Vec::new();
        for token in tokens {
            let bytes = vocabulary.bytes_at(token as usize);
            if self.form.append_atoms(bytes, &mut merged).is_err() {
                return true;
            }
        }
        self.merge_loop
            .merge_tail(self.form.pair_table(), &mut merged, 0);
        let range = match pair.first_is_left {
            true => 0..lens[0] + lens[1],
            false => lens[0]..total,
        };
        let product = vocabulary.id_at(tree[pair.first as usize].product as usize);
        self.holds(&merged, range, product)
    }

    /// Whether the token `wanted` was made of the bytes in `range` on the way to `tokens`.
    fn holds(&self, tokens: &[TokenId], range: core::ops::Range<usize>, wanted: TokenId) -> bool {
        let len = |id| {
            self.form
                .vocabulary()
                .token_bytes(id)
                .map_or(0, <[u8]>::len)
        };
        let mut start = 0;
        let Some(&token) = tokens.iter().find(|&&token| {
            start += len(token);
            range.start < start
        }) else {
            return false;
        };
        let mut token = token;
        start -= len(token);
        loop {
            let end = start + len(token);
            if range.start < start || range.end > end {
                return false;
            }
            if range == (start..end) {
                return token == wanted;
            }
            let Some(rule) = self.form.rule(token) else {
                return false;
            };
            let middle = start + len(rule.left);
            if range.start < middle {
                token = rule.left;
            } else {
                token = rule.right;
                start = middle;
            }
        }
    }

    /// The text that two rules compete for.
    fn overlap(&self, tree: &[Rule], pair: &Pair) -> Vec<u8> {
        let tokens = Self::contested(tree, pair);
        let bytes = tokens.map(|token| self.form.vocabulary().bytes_at(token as usize));
        bytes.concat()
    }

    fn cycle(&self, tree: &[Rule], sorted: &Sorted, overlaps: Vec<Vec<u8>>) -> Option<Cycle> {
        let rule = |rule: &Rule| {
            self.form
                .rule(self.form.vocabulary().id_at(rule.product as usize))
        };
        let steps = sorted
            .cycle
            .as_ref()?
            .iter()
            .filter_map(|&(index, reason)| {
                let rule = rule(&tree[index as usize])?;
                Some(Step { rule, reason })
            });
        Some(Cycle {
            seed: rule(tree.last()?)?,
            steps: steps.collect(),
            tree: tree.len(),
            overlaps,
        })
    }
}

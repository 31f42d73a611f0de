//! The table that every merge loop asks: what does this pair of neighbours merge to?

use alloc::vec::Vec;
use core::hash::BuildHasher;

use foldhash::fast::RandomState;

use crate::canonical::Merge;
use crate::dictionary::{MergeRule, Priority};
use crate::vocabulary::TokenId;

/// Marks a free slot: no rule has this priority.
const FREE: u32 = u32::MAX;

/// From pairs of tokens to merges: a filter of some bits a pair before an open-addressing table.
///
/// Most pairs that a merge loop asks for have no rule. The filter answers most of those with one load
/// from memory that stays in a second-level cache (256 KiB for 200,000 rules), so the table itself is
/// read for little but hits. The hash has a seed that differs from run to run, so that a file cannot
/// choose its collisions.
///
/// A look-up can be made in two steps, so that a caller with many pairs may ask for the memory of all
/// of them before it reads any: [`PairTable::place`], then [`PairTable::get_at`].
///
/// ```
/// use bpe_core::{CanonicalForm, Dictionary, Vocabulary};
///
/// let vocabulary = Vocabulary::new([(0, "a"), (1, "b"), (2, "ab")])?;
/// let form = CanonicalForm::new(&Dictionary::from_ranks(vocabulary)?);
/// let table = form.pair_table();
/// let place = table.place(0, 1).expect("there is a rule");
/// assert_eq!(table.get_at(place, 0, 1), form.merge(0, 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct PairTable {
    /// Of each pair two bits in one word.
    filter: Vec<u64>,
    slots: Vec<Slot>,
    len: usize,
    seeds: [u64; 2],
}

/// One element of a [`PairTable`].
#[derive(Debug, Clone, Copy)]
#[repr(align(16))]
pub struct Slot {
    left: TokenId,
    right: TokenId,
    product: TokenId,
    priority: u32,
}

impl PairTable {
    /// The table of `rules`, at most `count`. Of two rules for one pair the first counts; callers
    /// have none.
    pub(crate) fn new(count: usize, rules: impl Iterator<Item = MergeRule> + Clone) -> Self {
        // At most four fifths full, so that a probe is short; eight to sixteen filter bits a pair.
        let slots = (count + count / 4 + 1).next_power_of_two();
        let words = (count / 8 + 1).next_power_of_two();
        let free = Slot {
            left: 0,
            right: 0,
            product: 0,
            priority: FREE,
        };
        let random = RandomState::default();
        let seeds = [random.hash_one(1_u8), random.hash_one(2_u8) | 1];
        let mut table = Self {
            filter: alloc::vec![0; words],
            slots: alloc::vec![free; slots],
            len: 0,
            seeds,
        };
        table.fill(rules.take(count));
        table
    }

    /// Inserts `rules` part by part of the table, each of which fits a first-level cache: in the order
    /// of the file nearly every insertion would wait for memory, and so would most of a load.
    fn fill(&mut self, rules: impl Iterator<Item = MergeRule> + Clone) {
        const PARTS_LOG: u32 = 8;
        let mask = self.slots.len() - 1;
        let shift = self.slots.len().ilog2().saturating_sub(PARTS_LOG);
        let part = |table: &Self, rule: MergeRule| {
            ((table.hash(rule.left, rule.right) >> 32) as usize & mask) >> shift
        };
        // A counting sort: it keeps the order of rules that share a part.
        let mut ends = [0_usize; 1 << PARTS_LOG];
        let mut total = 0;
        for rule in rules.clone() {
            ends[part(self, rule)] += 1;
            total += 1;
        }
        let mut start = 0;
        for end in &mut ends {
            start += core::mem::replace(end, start);
        }
        let nothing = MergeRule {
            left: 0,
            right: 0,
            product: 0,
            priority: Priority(0),
        };
        let mut sorted = alloc::vec![nothing; total];
        for rule in rules {
            let next = &mut ends[part(self, rule)];
            sorted[*next] = rule;
            *next += 1;
        }
        for rule in sorted {
            self.insert(rule);
        }
    }

    /// Number of rules.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The merge of two neighbouring tokens, where a rule joins them. O(1).
    #[inline]
    pub fn get(&self, left: TokenId, right: TokenId) -> Option<Merge> {
        self.get_at(self.place(left, right)?, left, right)
    }

    /// Where [`PairTable::get_at`] starts to look for this pair: the number of one of the
    /// [`PairTable::slots`]. `None` where the filter tells already that there is no rule. O(1).
    #[inline(always)]
    pub fn place(&self, left: TokenId, right: TokenId) -> Option<usize> {
        let hash = self.hash(left, right);
        let bits = filter_bits(hash);
        let is_there = self.filter[self.word(hash)] & bits == bits;
        let place = (hash >> 32) as usize & (self.slots.len() - 1);
        if is_there { Some(place) } else { None }
    }

    /// The merge of a pair whose [`PairTable::place`] is `place`. O(1).
    #[inline(always)]
    pub fn get_at(&self, place: usize, left: TokenId, right: TokenId) -> Option<Merge> {
        let mask = self.slots.len() - 1;
        let mut place = place & mask;
        loop {
            let slot = self.slots[place];
            if slot.left == left && slot.right == right && slot.priority != FREE {
                return Some(Merge {
                    product: slot.product,
                    priority: Priority(slot.priority),
                });
            }
            if slot.priority == FREE {
                return None;
            }
            place = (place + 1) & mask;
        }
    }

    /// The memory that [`PairTable::get_at`] reads.
    #[inline(always)]
    pub fn slots(&self) -> &[Slot] {
        &self.slots
    }

    fn insert(&mut self, rule: MergeRule) {
        let hash = self.hash(rule.left, rule.right);
        let word = self.word(hash);
        self.filter[word] |= filter_bits(hash);
        let mask = self.slots.len() - 1;
        let mut place = (hash >> 32) as usize & mask;
        while self.slots[place].priority != FREE {
            place = (place + 1) & mask;
        }
        self.slots[place] = Slot {
            left: rule.left,
            right: rule.right,
            product: rule.product,
            priority: rule.priority.0,
        };
        self.len += 1;
    }

    /// The pair with one secret, multiplied by the other, and both halves of that folded.
    #[inline(always)]
    fn hash(&self, left: TokenId, right: TokenId) -> u64 {
        let [first, second] = self.seeds;
        let pair = u64::from(left) << 32 | u64::from(right);
        let product = u128::from(pair ^ first) * u128::from(second);
        product as u64 ^ (product >> 64) as u64
    }

    #[inline]
    fn word(&self, hash: u64) -> usize {
        (hash >> 12) as usize & (self.filter.len() - 1)
    }
}

/// Two bits of a word, from the twelve lowest bits of the hash.
#[inline]
fn filter_bits(hash: u64) -> u64 {
    1 << (hash & 63) | 1 << (hash >> 6 & 63)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;

    #[test]
    fn every_rule_is_found_and_no_other_pair() {
        let mut state = 7_u64;
        let mut expected = BTreeMap::new();
        for priority in 0..5_000 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let pair = ((state >> 57) as u32, (state >> 20) as u32 % 100);
            expected.entry(pair).or_insert((priority + 10, priority));
        }
        expected.insert((u32::MAX, u32::MAX), (3, 5_000));
        let rules = expected
            .iter()
            .map(|(&(left, right), &(product, priority))| MergeRule {
                left,
                right,
                product,
                priority: Priority(priority),
            });
        let table = PairTable::new(expected.len(), rules);
        assert_eq!(table.len(), expected.len());
        for left in (0..130).chain([u32::MAX]) {
            for right in (0..101).chain([u32::MAX]) {
                let found = table.get(left, right);
                let found = found.map(|merge| (merge.product, merge.priority.0));
                assert_eq!(found, expected.get(&(left, right)).copied());
            }
        }
        let empty = PairTable::new(0, [].into_iter());
        assert_eq!(empty.get(0, 0), None);
    }
}

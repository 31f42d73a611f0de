//! Merging the few units of a short piece, in arrays.

use bpe_core::{CanonicalForm, TokenId};

/// The most units that are merged here: the steps are quadratic in them.
pub(super) const MOST_UNITS: usize = 24;

/// No rule: no rule has this priority.
const NEVER: u64 = u64::MAX;

/// Merges the first `count` of `units`, and returns how many are left: always the pair of best
/// priority, leftmost first.
#[inline(always)]
pub(super) fn merge(
    canonical: &CanonicalForm,
    units: &mut [TokenId; MOST_UNITS],
    count: usize,
) -> usize {
    let mut count = count.min(MOST_UNITS);
    // Of each unit but the last, what it and the next merge to: the priority above the product.
    let mut pairs = [NEVER; MOST_UNITS];
    let pair = |left, right| match canonical.merge(left, right) {
        Some(merge) => u64::from(merge.priority.0) << 32 | u64::from(merge.product),
        None => NEVER,
    };
    for index in 1..count {
        pairs[index - 1] = pair(units[index - 1], units[index]);
    }
    loop {
        let mut best = NEVER;
        let mut left = 0;
        for (index, &pair) in pairs.iter().enumerate().take(count.saturating_sub(1)) {
            if pair < best {
                best = pair;
                left = index;
            }
        }
        if best == NEVER || left + 1 >= count || count > MOST_UNITS {
            return count;
        }
        units[left] = best as u32;
        units.copy_within(left + 2..count, left + 1);
        pairs.copy_within(left + 1..count, left);
        count -= 1;
        if left > 0 {
            pairs[left - 1] = pair(units[left - 1], units[left]);
        }
        if left + 1 < count {
            pairs[left] = pair(units[left], units[left + 1]);
        } else {
            pairs[left] = NEVER;
        }
    }
}

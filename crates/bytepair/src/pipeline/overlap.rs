//! Whether texts that are looked for can stand in each other's way.

use std::collections::HashSet;

use bpe_lexers::SpecialMatcher;

/// Whether one of `some` and one of `others` can have characters of a text in common: one is inside the other, or
/// one ends as the other begins. Ends are compared by hashes alone, so that it may say so of two that cannot.
/// O(bytes).
pub(super) fn may_overlap(some: &[&str], others: &[&str]) -> bool {
    let holds = |texts: &[&str], wanted: &[&str]| match SpecialMatcher::new(wanted) {
        Ok(matcher) => texts
            .iter()
            .any(|text| matcher.find(text.as_bytes(), 0).is_some()),
        Err(_) => true,
    };
    let ends_as = |texts: &[&str], wanted: &[&str]| {
        let beginnings: HashSet<u64> = wanted.iter().flat_map(|text| beginnings(text)).collect();
        let mut ends = texts.iter().flat_map(|text| ends(text));
        ends.any(|end| beginnings.contains(&end))
    };
    if some.is_empty() || others.is_empty() {
        return false;
    }
    holds(some, others) || holds(others, some) || ends_as(some, others) || ends_as(others, some)
}

/// An odd number without a pattern: the golden ratio.
const BASE: u64 = 0x9E37_79B9_7F4A_7C15;

/// Hashes of the beginnings of a text: their bytes as digits of a number.
fn beginnings(text: &str) -> impl Iterator<Item = u64> {
    text.bytes().scan(0_u64, |hash, byte| {
        *hash = hash.wrapping_mul(BASE).wrapping_add(digit(byte));
        Some(*hash)
    })
}

/// Hashes of its ends.
fn ends(text: &str) -> impl Iterator<Item = u64> {
    text.bytes()
        .rev()
        .scan((0_u64, 1_u64), |(hash, unit), byte| {
            *hash = hash.wrapping_add(digit(byte).wrapping_mul(*unit));
            *unit = unit.wrapping_mul(BASE);
            Some(*hash)
        })
}

/// No byte is 0, so that texts of different lengths differ.
fn digit(byte: u8) -> u64 {
    u64::from(byte) + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_overlap_where_one_is_inside_or_ends_as_the_other_begins() {
        for (one, other) in [
            ("abc", "b"),
            ("abc", "cd"),
            ("abc", "za"),
            ("ab", "ab"),
            ("éa", "aé"),
        ] {
            assert!(may_overlap(&["xx", one], &[other]), "{one} {other}");
            assert!(may_overlap(&[other], &["xx", one]), "{other} {one}");
        }
        assert!(!may_overlap(&["abc", "def"], &["xay", "q"]));
        assert!(!may_overlap(&[], &["a"]));
    }
}

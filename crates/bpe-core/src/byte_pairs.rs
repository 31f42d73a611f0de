//! The byte pairs that no token contains.

use alloc::boxed::Box;
use core::fmt;

use crate::vocabulary::Vocabulary;

/// For each pair of bytes, whether some token contains it.
///
/// Between two bytes that no token contains together, every tokenization has a boundary, under
/// every semantics: no merge can cross. (An unknown token that stands for several characters is no
/// merge.) So a span falls apart there exactly (docs/architecture.md, fact 4),
/// which bounds what caches and chunks have to hold. Tokens that are added to a vocabulary count
/// too: [`BytePairs::add`].
///
/// 8 KiB; a test is one load.
///
/// ```
/// use bpe_core::{BytePairs, Vocabulary};
///
/// let pairs = BytePairs::new(&Vocabulary::new([(0, "a"), (1, "ab")])?);
/// assert!(pairs.in_a_token(b'a', b'b'));
/// assert!(!pairs.in_a_token(b'b', b'a'));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct BytePairs {
    bits: Box<[u64; 1024]>,
}

impl BytePairs {
    /// No pairs: what tokens are added to.
    pub fn none() -> Self {
        Self {
            bits: Box::new([0; 1024]),
        }
    }

    /// The byte pairs of all tokens of `vocabulary`. O(bytes).
    pub fn new(vocabulary: &Vocabulary) -> Self {
        let mut pairs = Self::none();
        for (_, token) in vocabulary.iter() {
            pairs.add(token);
        }
        pairs
    }

    /// Counts the pairs of `token` in. O(bytes).
    pub fn add(&mut self, token: &[u8]) {
        for pair in token.windows(2) {
            let (word, bit) = place(pair[0], pair[1]);
            self.bits[word] |= 1 << bit;
        }
    }

    /// Whether some token contains `first` followed by `second`; where not, there is always a
    /// boundary between them. O(1).
    #[inline]
    pub fn in_a_token(&self, first: u8, second: u8) -> bool {
        let (word, bit) = place(first, second);
        self.bits[word] >> bit & 1 == 1
    }

    /// Number of pairs that some token contains, of 65,536.
    pub fn count(&self) -> usize {
        self.bits
            .iter()
            .map(|word| word.count_ones() as usize)
            .sum()
    }
}

#[inline]
fn place(first: u8, second: u8) -> (usize, u32) {
    let pair = usize::from(first) << 8 | usize::from(second);
    (pair / 64, (pair % 64) as u32)
}

impl fmt::Debug for BytePairs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BytePairs")
            .field("count", &self.count())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exactly_the_neighbours_inside_tokens_are_pairs() {
        let vocabulary = Vocabulary::new([(0, "abc"), (1, "x"), (2, "ca")]).expect("valid");
        let mut pairs = BytePairs::new(&vocabulary);
        let all = |pairs: &BytePairs| {
            let mut found = alloc::vec::Vec::new();
            for first in 0..=255 {
                for second in 0..=255 {
                    if pairs.in_a_token(first, second) {
                        found.push([first, second]);
                    }
                }
            }
            found
        };
        assert_eq!(all(&pairs), [*b"ab", *b"bc", *b"ca"]);
        pairs.add(&[255, 255, 0]);
        assert_eq!(all(&pairs).len(), 5);
        assert_eq!(pairs.count(), 5);
    }
}

//! Tokens with where they stand in the text.

use std::ops::Range;

use bpe_core::TokenId;

/// The tokens of a text with the bytes that each covers. The ranges stand in order, without gap or
/// overlap, and cover the text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Encoding {
    /// The tokens.
    pub ids: Vec<TokenId>,
    /// Of each token the bytes of the text that it covers.
    pub byte_ranges: Vec<Range<usize>>,
}

impl Encoding {
    /// Of each token the characters (Unicode scalar values) of `text` that it touches: a token that
    /// covers a part of a character counts the whole, so neighbours may share one. What Python
    /// strings are indexed by. `text` is what was encoded. O(bytes).
    pub fn char_ranges(&self, text: &str) -> Vec<Range<usize>> {
        self.ranges_in(text, |_| 1)
    }

    /// The same in UTF-16 code units, which JavaScript, Java and .NET strings are indexed by.
    /// O(bytes).
    pub fn utf16_ranges(&self, text: &str) -> Vec<Range<usize>> {
        self.ranges_in(text, char::len_utf16)
    }

    /// Number of bytes that the tokens cover.
    pub(crate) fn covered(&self) -> usize {
        self.byte_ranges.last().map_or(0, |range| range.end)
    }

    fn ranges_in(&self, text: &str, units: impl Fn(char) -> usize) -> Vec<Range<usize>> {
        // The character that the walk stands on: its bytes, and its units. Ranges of a pipeline may go back
        // a little, where a normalizer puts marks in another order.
        let (mut byte, mut next_byte, mut unit, mut next_unit) = (0, 0, 0, 0);
        let mut walk_to = |offset: usize| {
            while offset < byte {
                let before = text.get(..byte).unwrap_or_default();
                let Some(character) = before.chars().next_back() else {
                    break;
                };
                (next_byte, next_unit) = (byte, unit);
                byte -= character.len_utf8();
                unit -= units(character);
            }
            while next_byte <= offset {
                let rest = text.get(next_byte..).unwrap_or_default();
                let Some(character) = rest.chars().next() else {
                    return (next_unit, next_unit);
                };
                (byte, unit) = (next_byte, next_unit);
                next_byte += character.len_utf8();
                next_unit += units(character);
            }
            (unit, next_unit)
        };
        self.byte_ranges
            .iter()
            .map(|range| {
                let (start, _) = walk_to(range.start);
                match range.is_empty() {
                    true => start..start,
                    false => start..walk_to(range.end - 1).1,
                }
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_and_code_units_are_counted_and_shared_where_tokens_cut_them() {
        let text = "aé😀b";
        let encoding = Encoding {
            ids: vec![1, 2, 3, 4],
            byte_ranges: vec![0..3, 3..5, 5..7, 7..8],
        };
        assert_eq!(encoding.char_ranges(text), [0..2, 2..3, 2..3, 3..4]);
        assert_eq!(encoding.utf16_ranges(text), [0..2, 2..4, 2..4, 4..5]);
        assert_eq!(encoding.covered(), 8);
        assert!(Encoding::default().char_ranges("").is_empty());
    }
}

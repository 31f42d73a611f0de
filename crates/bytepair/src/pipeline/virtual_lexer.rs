//! The pre-tokenizer that a vocabulary has without saying so: no merge crosses two characters that
//! stand beside each other in no token (docs/architecture.md, fact 4).

use std::ops::Range;
use std::sync::Arc;

use bpe_core::{Atoms, Dictionary};
use bpe_lexers::{LexError, Lexer};

/// Cuts where no token can reach across. Pieces are short then, so caches can hold them, whatever the
/// text.
#[derive(Clone)]
pub(crate) struct VirtualLexer {
    pairs: Arc<CharacterPairs>,
}

/// Which characters stand beside each other inside tokens. It may say so of others too, which costs a
/// cut and no more.
struct CharacterPairs {
    /// Of two characters of ASCII, exactly.
    ascii: Box<[bool; 128 * 128]>,
    /// Of others, by a hash of the two.
    bits: Vec<u64>,
    /// How far the hash is shifted down to a place in `bits`.
    shift: u32,
}

impl VirtualLexer {
    /// The lexer for `dictionary`; `None` where what stands across a cut can matter: a piece that is a
    /// token is one by look-up, or unknown characters beside each other are one token.
    pub(crate) fn new(dictionary: &Dictionary) -> Option<Self> {
        let Atoms::Characters {
            unknown,
            fuse_unknown,
        } = dictionary.atoms()
        else {
            return None;
        };
        let vocabulary = dictionary.vocabulary();
        let all_bytes = (0..=255).all(|byte| vocabulary.byte_fallback(byte).is_some());
        if dictionary.whole_piece_lookup() || unknown.is_some() && fuse_unknown && !all_bytes {
            return None;
        }
        // Only what merges make is more than one character. Rules that make one token often stand together.
        let mut last = None;
        let products = dictionary.rules().iter().map(|rule| rule.product);
        let products = products.filter(|&id| last.replace(id) != Some(id));
        let texts: Vec<&str> = products
            .filter_map(|id| vocabulary.token_bytes(id))
            .filter_map(|bytes| std::str::from_utf8(bytes).ok())
            .collect();
        Some(Self {
            pairs: Arc::new(CharacterPairs::new(&texts)),
        })
    }
}

impl VirtualLexer {
    /// Whether it cuts between these characters, wherever they stand side by side.
    pub(crate) fn is_boundary(&self, before: char, after: char) -> bool {
        !self.pairs.in_a_token(before, after)
    }
}

impl CharacterPairs {
    fn new(texts: &[&str]) -> Self {
        let pairs = || {
            texts
                .iter()
                .flat_map(|text| text.chars().zip(text.chars().skip(1)))
        };
        let mut ascii = Box::new([false; 128 * 128]);
        let mut others = 0;
        for (first, second) in pairs() {
            match ascii_place(first, second) {
                Some(place) => ascii[place] = true,
                None => others += 1,
            }
        }
        // How many different ones there are is counted by their bits, where few fall together.
        let mut pairs_of_all = Self::with_room(ascii, others);
        pairs_of_all.insert(pairs());
        let bits = pairs_of_all.bits.iter().map(|word| word.count_ones());
        let different = bits.sum::<u32>() as usize;
        // One bit of sixteen is set at most: so many cuts are missed.
        let mut exact = Self::with_room(pairs_of_all.ascii, different);
        match exact.bits.len() < pairs_of_all.bits.len() {
            true => exact.insert(pairs()),
            false => exact.bits = pairs_of_all.bits,
        }
        exact
    }

    /// Without pairs beyond those of ASCII, and with sixteen bits or more for each of `pairs`.
    fn with_room(ascii: Box<[bool; 128 * 128]>, pairs: usize) -> Self {
        let size = (pairs.max(64) * 16).next_power_of_two();
        Self {
            ascii,
            bits: vec![0; size / 64],
            shift: 64 - size.trailing_zeros(),
        }
    }

    fn insert(&mut self, pairs: impl Iterator<Item = (char, char)>) {
        for (first, second) in pairs {
            if ascii_place(first, second).is_none() {
                let place = self.place(first, second);
                if let Some(word) = self.bits.get_mut(place / 64) {
                    *word |= 1 << (place % 64);
                }
            }
        }
    }

    #[inline]
    fn place(&self, first: char, second: char) -> usize {
        let pair = u64::from(u32::from(first)) << 32 | u64::from(u32::from(second));
        (pair.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> self.shift) as usize
    }

    #[inline]
    fn in_a_token(&self, first: char, second: char) -> bool {
        if let Some(place) = ascii_place(first, second) {
            return self.ascii[place];
        }
        let place = self.place(first, second);
        let word = self.bits.get(place / 64).copied().unwrap_or_default();
        word >> (place % 64) & 1 == 1
    }

    /// The end of the piece that begins at `start`.
    #[inline]
    fn end_of_piece(&self, segment: &str, start: usize) -> usize {
        let bytes = segment.as_bytes();
        let mut at = start;
        loop {
            // As long as it is ASCII, a byte is a character.
            while let (Some(&first), Some(&second)) = (bytes.get(at), bytes.get(at + 1)) {
                if (first | second) >= 0x80 {
                    break;
                }
                at += 1;
                if !self.ascii[usize::from(first) * 128 + usize::from(second)] {
                    return at;
                }
            }
            let mut characters = segment.get(at..).unwrap_or_default().chars();
            let (Some(first), second) = (characters.next(), characters.next()) else {
                return segment.len();
            };
            at += first.len_utf8();
            match second {
                Some(second) if self.in_a_token(first, second) => {}
                _ => return at,
            }
        }
    }
}

#[inline]
fn ascii_place(first: char, second: char) -> Option<usize> {
    let (first, second) = (u32::from(first) as usize, u32::from(second) as usize);
    ((first | second) < 128).then_some(first * 128 + second)
}

impl Lexer for VirtualLexer {
    fn next_pre_token(
        &mut self,
        segment: &str,
        start: usize,
    ) -> Result<Option<Range<usize>>, LexError> {
        let start = segment.ceil_char_boundary(start);
        Ok((start < segment.len()).then(|| start..self.pairs.end_of_piece(segment, start)))
    }

    fn pre_token_ends(
        &mut self,
        segment: &str,
        start: usize,
        limit: usize,
        ends: &mut Vec<usize>,
    ) -> Result<Option<Range<usize>>, LexError> {
        let mut at = segment.ceil_char_boundary(start);
        for _ in 0..limit {
            if at >= segment.len() {
                break;
            }
            at = self.pairs.end_of_piece(segment, at);
            ends.push(at);
        }
        Ok(None)
    }

    fn clone_box(&self) -> Box<dyn Lexer> {
        Box::new(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_cuts_exactly_where_no_token_has_both_characters() {
        let pairs = CharacterPairs::new(&["ab", "éa", " the", "中文"]);
        let mut lexer = VirtualLexer {
            pairs: Arc::new(pairs),
        };
        let mut ends = Vec::new();
        let text = "abéa the中文文z";
        let beyond = lexer
            .pre_token_ends(text, 0, 100, &mut ends)
            .expect("never");
        assert_eq!(beyond, None);
        let mut start = 0;
        let pieces: Vec<&str> = ends
            .iter()
            .map(|&end| {
                let piece = &text[start..end];
                start = end;
                piece
            })
            .collect();
        assert_eq!(pieces, ["ab", "éa", " the", "中文", "文", "z"]);
        assert_eq!(lexer.next_pre_token(text, text.len()).expect("never"), None);
    }
}

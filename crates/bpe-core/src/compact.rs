//! The project's own binary form of a rank dictionary, for vocabularies that are embedded.
//!
//! A token that two earlier tokens make is written as their two places, everything else as its
//! bytes. So the canonical rules come with the file and nothing has to be searched at load, and
//! o200k_base takes 0.8 MB.
//!
//! ```text
//! file     = magic version flags count record*
//! magic    = "bpec"                       4 bytes
//! version  = 1                            1 byte
//! flags    = 0 or 1                       1 byte; bit 0: whole-piece look-up
//! count    = number                       tokens in all
//! record   = 0 length bytes               a token by its bytes: an atom (one byte), or a token
//!                                         that no rule makes
//!          | 1 gap                        the next `gap` ids are of no token
//!          | (left + 2) right             the token that these two tokens make, by their places
//! number   = LEB128, at most 5 bytes, value below 2^32
//! ```
//!
//! Records stand in the order of ids, ids count up from 0, a token's place counts tokens only, and
//! the places that a record names are before its own. Priorities are in the order of ids.

use alloc::vec::Vec;
use core::fmt;

use crate::canonical::{CanonicalForm, TokenOrigin};
use crate::dictionary::Atoms;
use crate::limits::ReadLimits;
use crate::vocabulary::{VocabularyBuilder, VocabularyError};

const MAGIC: &[u8; 4] = b"bpec";
const VERSION: u8 = 1;

impl CanonicalForm {
    /// The canonical form that `file` holds in the compact form. Rules are taken as the file says:
    /// that each is canonical is for the writer to know (`cargo xtask verify` checks the embedded
    /// ones).
    ///
    /// Cost: O(bytes of all tokens); some tens of milliseconds for 200,000 tokens.
    ///
    /// # Errors
    ///
    /// A file that is not of this form, a token or all tokens together over the limits, or no
    /// vocabulary; the error names the offset.
    pub fn from_compact(file: &[u8], limits: &ReadLimits) -> Result<Self, CompactError> {
        let mut reader = Reader { file, offset: 0 };
        if file.len() > limits.file {
            return Err(reader.error(Kind::TooLarge));
        }
        if reader.bytes(4)? != MAGIC || reader.bytes(1)? != [VERSION] {
            return Err(CompactError {
                offset: 0,
                kind: Kind::Header,
            });
        }
        let flags = reader.bytes(1)?[0];
        if flags > 1 {
            return Err(reader.error(Kind::Header));
        }
        let count = reader.number()? as usize;
        // The count may be false, so it is trusted only as far as little memory goes.
        let capacity = count.min(file.len() / 2).min(1 << 19);
        let mut builder = VocabularyBuilder::with_capacity(capacity, 8 * capacity);
        let mut sides = Vec::with_capacity(capacity);
        let mut id = 0_u32;
        let mut total = 0;
        while builder.len() < count {
            let start = reader.offset;
            let error = |kind| CompactError {
                offset: start,
                kind,
            };
            let head = reader.number()?;
            if head == 1 {
                let gap = reader.number()?;
                id = id.checked_add(gap).ok_or(error(Kind::Number))?;
                continue;
            }
            let length = match head {
                0 => {
                    let length = reader.number()? as usize;
                    let bytes = reader.bytes(length)?;
                    if length > limits.token {
                        return Err(error(Kind::TokenTooLong));
                    }
                    builder.push(id, bytes).map_err(|e| error(e.into()))?;
                    sides.push(None);
                    length
                }
                _ => {
                    let (left, right) = (head - 2, reader.number()?);
                    let place = builder.len();
                    if left as usize >= place || right as usize >= place {
                        return Err(error(Kind::Place));
                    }
                    let length = builder
                        .push_joined(id, left as usize, right as usize)
                        .map_err(|e| error(e.into()))?;
                    if length > limits.token {
                        return Err(error(Kind::TokenTooLong));
                    }
                    sides.push(Some((left, right)));
                    length
                }
            };
            total += length;
            if total > limits.file {
                return Err(error(Kind::TooLarge));
            }
            if builder.len() < count {
                id = id.checked_add(1).ok_or(error(Kind::Number))?;
            }
        }
        if reader.offset != file.len() {
            return Err(reader.error(Kind::TrailingBytes));
        }
        let vocabulary = builder
            .finish()
            .map_err(|error| reader.error(error.into()))?;
        Ok(Self::from_parts(vocabulary, &sides, flags & 1 == 1))
    }

    /// This form as a compact file. O(bytes of all tokens).
    ///
    /// # Errors
    ///
    /// A form that is no proper rank dictionary over bytes, which this file cannot say: priorities
    /// in another order than ids, other atoms, or a rule whose side is made later.
    pub fn to_compact(&self) -> Result<Vec<u8>, CompactError> {
        let unsupported = |offset| CompactError {
            offset,
            kind: Kind::Unsupported,
        };
        let has_fallback = (0..=255).any(|byte| self.vocabulary().byte_fallback(byte).is_some());
        if self.atoms() != Atoms::Bytes || has_fallback {
            return Err(unsupported(0));
        }
        let vocabulary = self.vocabulary();
        let mut file = Vec::new();
        file.extend_from_slice(MAGIC);
        file.extend_from_slice(&[VERSION, u8::from(self.whole_piece_lookup())]);
        put_number(&mut file, vocabulary.len() as u32);
        let mut next_id = 0;
        let mut last_priority = None;
        for (place, (id, bytes)) in vocabulary.iter().enumerate() {
            if id > next_id {
                put_number(&mut file, 1);
                put_number(&mut file, id - next_id);
            }
            next_id = id.saturating_add(1);
            match self.origin(id) {
                Some(TokenOrigin::Rule(rule)) => {
                    let places = [rule.left, rule.right]
                        .map(|side| vocabulary.position_of(side).filter(|&side| side < place));
                    let (Some(left), Some(right)) = (places[0], places[1]) else {
                        return Err(unsupported(file.len()));
                    };
                    if last_priority.is_some_and(|last| last >= rule.priority) {
                        return Err(unsupported(file.len()));
                    }
                    last_priority = Some(rule.priority);
                    put_number(&mut file, left as u32 + 2);
                    put_number(&mut file, right as u32);
                }
                _ => {
                    put_number(&mut file, 0);
                    put_number(&mut file, bytes.len() as u32);
                    file.extend_from_slice(bytes);
                }
            }
        }
        Ok(file)
    }
}

struct Reader<'a> {
    file: &'a [u8],
    offset: usize,
}

impl<'a> Reader<'a> {
    fn bytes(&mut self, count: usize) -> Result<&'a [u8], CompactError> {
        let end = self.offset.checked_add(count);
        let bytes = end.and_then(|end| self.file.get(self.offset..end));
        let bytes = bytes.ok_or(self.error(Kind::Truncated))?;
        self.offset += count;
        Ok(bytes)
    }

    fn number(&mut self) -> Result<u32, CompactError> {
        let start = self.offset;
        let mut value = 0_u64;
        for shift in [0, 7, 14, 21, 28] {
            let byte = self.bytes(1)?[0];
            value |= u64::from(byte & 0x7F) << shift;
            if byte < 0x80 {
                return u32::try_from(value).map_err(|_| CompactError {
                    offset: start,
                    kind: Kind::Number,
                });
            }
        }
        Err(CompactError {
            offset: start,
            kind: Kind::Number,
        })
    }

    fn error(&self, kind: Kind) -> CompactError {
        CompactError {
            offset: self.offset,
            kind,
        }
    }
}

fn put_number(file: &mut Vec<u8>, mut value: u32) {
    while value >= 0x80 {
        file.push(value as u8 | 0x80);
        value >>= 7;
    }
    file.push(value as u8);
}

/// Why bytes are no compact file, or a canonical form has none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompactError {
    offset: usize,
    kind: Kind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    Header,
    Truncated,
    TrailingBytes,
    Number,
    Place,
    TokenTooLong,
    TooLarge,
    Vocabulary(VocabularyError),
    Unsupported,
}

impl From<VocabularyError> for Kind {
    fn from(error: VocabularyError) -> Self {
        Self::Vocabulary(error)
    }
}

impl CompactError {
    /// Offset of the record at fault, in bytes.
    pub fn byte_offset(&self) -> usize {
        self.offset
    }
}

impl fmt::Display for CompactError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            Kind::Header => f.write_str("not a compact vocabulary of version 1"),
            Kind::Truncated => f.write_str("the file ends early"),
            Kind::TrailingBytes => f.write_str("bytes after the last token"),
            Kind::Number => f.write_str("a number over 32 bits"),
            Kind::Place => f.write_str("a token made of tokens that come later"),
            Kind::TokenTooLong => f.write_str("a token over the limit"),
            Kind::TooLarge => f.write_str("file or tokens over the limit"),
            Kind::Vocabulary(error) => error.fmt(f),
            Kind::Unsupported => {
                return f.write_str("the compact form holds proper rank dictionaries over bytes");
            }
        }?;
        write!(f, " (at byte {})", self.offset)
    }
}

impl core::error::Error for CompactError {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dictionary::Dictionary;
    use crate::vocabulary::Vocabulary;
    use alloc::string::ToString;

    fn example() -> CanonicalForm {
        let vocabulary = Vocabulary::new([
            (0, "a"),
            (1, "b"),
            (2, "ab"),
            (5, "aba"),
            (6, "xyz"),
            (300, "ababa"),
        ])
        .expect("valid");
        CanonicalForm::new(&Dictionary::from_ranks(vocabulary).expect("valid"))
    }

    #[test]
    fn a_form_comes_back_as_it_was() {
        let form = example();
        let file = form.to_compact().expect("a rank dictionary");
        let back = CanonicalForm::from_compact(&file, &ReadLimits::default()).expect("valid");
        assert_eq!(
            form.vocabulary().iter().collect::<Vec<_>>(),
            back.vocabulary().iter().collect::<Vec<_>>()
        );
        for (id, _) in form.vocabulary().iter() {
            assert_eq!(form.origin(id), back.origin(id));
        }
        assert!(back.whole_piece_lookup());
    }

    #[test]
    fn the_file_is_as_its_description_says() {
        let expected = [
            &b"bpec\x01\x01\x06"[..],
            b"\x00\x01a\x00\x01b", // 0 a, 1 b
            b"\x02\x01",           // 2 ab: places 0 and 1
            b"\x01\x02",           // ids 3 and 4 are of no token
            b"\x04\x00",           // 5 aba: places 2 and 0
            b"\x00\x03xyz",        // 6 xyz, which no rule makes
            b"\x01\xA5\x02",       // 293 ids of no token
            b"\x04\x03",           // 300 ababa: places 2 (ab) and 3 (aba)
        ]
        .concat();
        assert_eq!(example().to_compact().expect("valid"), expected);
    }

    #[test]
    fn what_is_malformed_is_refused_at_its_offset() {
        let error = |file: &[u8]| {
            CanonicalForm::from_compact(file, &ReadLimits::default())
                .expect_err("invalid")
                .to_string()
        };
        assert!(error(b"").contains("ends early"));
        assert!(error(b"bpec\x02\x00\x00").contains("version 1"));
        assert!(error(b"bpec\x01\x00\x01\x02\x00").contains("come later (at byte 7)"));
        assert!(error(b"bpec\x01\x00\x01\x00\x00").contains("token 0 is empty"));
        assert!(error(b"bpec\x01\x00\x01\x00\x01ab").contains("after the last token"));
        assert!(error(b"bpec\x01\x00\x02\x00\x01a\x00\x01a").contains("same bytes"));
        assert!(error(b"bpec\x01\x00\xFF\xFF\xFF\xFF\x7F").contains("32 bits"));
    }

    #[test]
    fn tokens_that_double_again_and_again_stop_at_the_limit() {
        let mut file = b"bpec\x01\x00\x20\x00\x01a".to_vec();
        for place in 0..31 {
            put_number(&mut file, place + 2);
            put_number(&mut file, place);
        }
        let error = CanonicalForm::from_compact(&file, &ReadLimits::default());
        assert!(
            error
                .expect_err("too long")
                .to_string()
                .contains("a token over the limit")
        );
    }
}

//! What a byte is where no merge can have a part in it: dictionaries over characters.
//!
//! The text before a prefix's end is cut into characters and into parts that are not UTF-8, each as
//! long as a valid character could begin with it (as `String::from_utf8_lossy` cuts). A character that
//! is no token, and such a part, is one fallback token a byte, or the unknown token if one of them
//! is missing. An unfinished character at the end counts as such a part: that is what it is in
//! the prefix that ends there.

use bpe_core::{Atoms, CanonicalForm};

use alloc::boxed::Box;

/// Where the end of a text stands in a character, in one byte: what may follow (3 bits), the number of
/// bytes so far (2 bits), and whether one of them has no fallback token (1 bit).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unit(u8);

impl Unit {
    /// Between characters.
    pub(crate) const BOUNDARY: Self = Self(0);

    /// Bytes of the unfinished character at the end, 0 where there is none.
    pub(crate) fn pending(self) -> usize {
        match self.0 & 7 {
            0 => 0,
            _ => usize::from(self.0 >> 3 & 3),
        }
    }
}

/// What the engine knows about a dictionary over characters.
pub(crate) struct Characters {
    /// Whether each byte has a fallback token.
    has_fallback: Box<[bool; 256]>,
    /// Whether neighbouring unknown characters make one unknown token.
    pub(crate) fuses: bool,
}

/// What stands for the end of a text in which no token ends.
pub(crate) enum Missing {
    /// The fallback token of the last byte.
    Fallback,
    /// The unknown token, for so many bytes.
    Unknown(u32),
}

impl Characters {
    /// `None` for dictionaries over bytes.
    pub(crate) fn new(canonical: &CanonicalForm) -> Option<Self> {
        let Atoms::Characters { fuse_unknown, .. } = canonical.atoms() else {
            return None;
        };
        let mut has_fallback = Box::new([false; 256]);
        for byte in 0..=255_u8 {
            let fallback = canonical.vocabulary().byte_fallback(byte);
            has_fallback[usize::from(byte)] = fallback.is_some();
        }
        Some(Self {
            has_fallback,
            fuses: fuse_unknown,
        })
    }

    /// Where the text stands after one more byte, and what the byte is if no token ends there.
    pub(crate) fn push(&self, unit: Unit, byte: u8) -> (Unit, Missing) {
        let lacks = !self.has_fallback[usize::from(byte)];
        let (next, count, lacks) = match following(unit.0 & 7, byte) {
            Some(next) => (next, (unit.0 >> 3 & 3) + 1, lacks || unit.0 >> 5 == 1),
            None => (first(byte), 1, lacks),
        };
        let unit = match next {
            0 => Unit::BOUNDARY,
            _ => Unit(next | count << 3 | u8::from(lacks) << 5),
        };
        let missing = match lacks {
            true => Missing::Unknown(count.into()),
            false => Missing::Fallback,
        };
        (unit, missing)
    }
}

/// What may follow a first byte: 0 where it is whole, or no first byte of a character.
fn first(byte: u8) -> u8 {
    match byte {
        0xC2..=0xDF => 1,
        0xE1..=0xEC | 0xEE..=0xEF => 2,
        0xF1..=0xF3 => 3,
        0xE0 => 4,
        0xED => 5,
        0xF0 => 6,
        0xF4 => 7,
        _ => 0,
    }
}

/// What may follow after `byte` where `state` may follow, `None` where the byte does not fit.
fn following(state: u8, byte: u8) -> Option<u8> {
    let (range, next) = match state {
        1 => (0x80..=0xBF, 0),
        2 => (0x80..=0xBF, 1),
        3 => (0x80..=0xBF, 2),
        4 => (0xA0..=0xBF, 1), // Not overlong,
        5 => (0x80..=0x9F, 1), // no surrogates,
        6 => (0x90..=0xBF, 2), // not overlong,
        7 => (0x80..=0x8F, 2), // not beyond U+10FFFF.
        _ => return None,
    };
    range.contains(&byte).then_some(next)
}

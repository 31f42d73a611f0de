//! Merging that starts from whole characters: where that gives the same tokens.
//!
//! A character that is a token is made of its bytes by merges among these. In a proper dictionary
//! merging may start from the whole character, unless some merge can join a part of it with bytes of
//! a neighbour. Call a rule *crossing* if the place where its sides meet is a boundary of
//! characters, and one of the sides begins or ends inside a character. A boundary between two
//! characters is *safe* if no crossing rule can meet there: if none has a left side that can stand
//! before it and a right side that can stand behind it.
//!
//! At a safe boundary both sides of whatever merges across it are whole characters at their outer
//! ends too. So of a character between two safe boundaries, the first merge that takes one of its
//! bytes together with others takes all of them as one token, and they have become that token by
//! merging among themselves. In a proper dictionary the rules that make a character come before all
//! rules that use it; so applying them first, in each such character, changes nothing.
//!
//! Characters beside a boundary that is not safe start as bytes, and so do characters that are no
//! token, or more than two units of UTF-16.
//!
//! For each character there are two sets of rules as bits: those whose left side can end with it, and
//! those whose right side can begin with it. o200k_base has a few hundred crossing rules, so some share
//! a bit; that makes safe boundaries rarer, and nothing else.

use std::collections::HashMap;

use bpe_core::{Atoms, CanonicalForm, TokenId, TokenOrigin};

/// What is known of a character, in 32 bits: its token, and the number of its class.
const TOKEN_BITS: u32 = 20;
const TOKEN_MASK: u32 = (1 << TOKEN_BITS) - 1;
/// The class of characters that start as bytes.
const BYTES: u32 = 0;
/// The class of the end of a piece.
const END: u32 = 1;

/// The characters from which merging may start.
pub(super) struct Characters {
    /// Of each character below U+10000, its token and its class.
    entries: Box<[u32; 1 << 16]>,
    /// Of each class, the crossing rules whose left side can end with it, and whose right side can
    /// begin with it.
    classes: Vec<Crossing>,
    pub(super) bytes: [TokenId; 256],
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
struct Crossing {
    left: u32,
    right: u32,
}

impl Characters {
    /// The characters of `canonical`. `None` where the argument does not hold: an improper dictionary,
    /// one over other atoms, or one that lacks a byte.
    pub(super) fn new(canonical: &CanonicalForm) -> Option<Self> {
        let vocabulary = canonical.vocabulary();
        let fits = vocabulary.max_id()? <= TOKEN_MASK;
        if !canonical.is_proper() || canonical.atoms() != Atoms::Bytes || !fits {
            return None;
        }
        let mut bytes = [0; 256];
        for (value, id) in (0..=255_u8).zip(&mut bytes) {
            let token = vocabulary.id_of(&[value])?;
            if canonical.origin(token) != Some(TokenOrigin::Atom) {
                return None;
            }
            *id = token;
        }
        let (sides, single) = Sides::new(canonical);
        let mut entries = Box::new([BYTES; 1 << 16]);
        let mut classes = vec![Crossing {
            left: u32::MAX,
            right: u32::MAX,
        }];
        classes.push(Crossing::default());
        let mut numbers = HashMap::new();
        for (id, character) in single {
            let mut token = [0; 4];
            let token = character.encode_utf8(&mut token).as_bytes();
            // A fallback token can have the same bytes as another.
            let is_made = !matches!(canonical.origin(id), None | Some(TokenOrigin::Unreachable))
                && vocabulary.id_of(token) == Some(id);
            let Some(entry) = entries.get_mut(character as usize).filter(|_| is_made) else {
                continue;
            };
            let crossing = sides.of_character(token);
            let class = *numbers.entry(crossing).or_insert_with(|| {
                classes.push(crossing);
                classes.len() as u32 - 1
            });
            if class < 1 << (32 - TOKEN_BITS) {
                *entry = id | class << TOKEN_BITS;
            }
        }
        Some(Self {
            entries,
            classes,
            bytes,
        })
    }

    /// Fills `units` with what merging `piece` starts from, and returns how many these are; `None`
    /// where there is not enough room.
    #[inline(always)]
    pub(super) fn units(&self, piece: &[u8], units: &mut [TokenId]) -> Option<usize> {
        let mut count = 0;
        let mut place = 0;
        let mut safe_before = true;
        let mut next = self.character(piece, 0);
        while place < piece.len() {
            let (entry, len) = next;
            next = self.character(piece, place + len);
            let safe_behind = self.class(entry).left & self.class(next.0).right == 0;
            if safe_before && safe_behind && entry >> TOKEN_BITS != BYTES {
                *units.get_mut(count)? = entry & TOKEN_MASK;
                count += 1;
            } else {
                for &byte in piece.get(place..place + len)? {
                    *units.get_mut(count)? = self.bytes[usize::from(byte)];
                    count += 1;
                }
            }
            safe_before = safe_behind;
            place += len;
        }
        Some(count)
    }

    /// What is known of the character at `place`, and its bytes; of a byte that begins no character of
    /// at most three bytes, nothing; of the end of the piece, that nothing can cross it.
    #[inline(always)]
    fn character(&self, piece: &[u8], place: usize) -> (u32, usize) {
        let rest = piece.get(place..).unwrap_or_default();
        // Most characters that are not ASCII have three bytes: all tests of them at once.
        if let Some(&[first, second, third]) = rest.first_chunk() {
            let bytes = u32::from_be_bytes([0, first, second, third]);
            if bytes & 0xF0_C0_C0 == 0xE0_80_80 {
                let character = (bytes >> 4 & 0xF000) | (bytes >> 2 & 0x0FC0) | (bytes & 0x3F);
                // Overlong forms and surrogates are no characters.
                return match character {
                    0..0x800 | 0xD800..0xE000 => (BYTES, 1),
                    _ => (self.entries[character as usize % (1 << 16)], 3),
                };
            }
        }
        match *rest {
            [first @ 0..0x80, ..] => (self.entries[usize::from(first)], 1),
            [first @ 0xC2..0xE0, second @ 0x80..0xC0, ..] => {
                let character = usize::from(first & 0x1F) << 6 | usize::from(second & 0x3F);
                (self.entries[character], 2)
            }
            [_, ..] => (BYTES, 1),
            [] => (END << TOKEN_BITS, 0),
        }
    }

    #[inline(always)]
    fn class(&self, entry: u32) -> Crossing {
        let class = self.classes.get((entry >> TOKEN_BITS) as usize);
        class.copied().unwrap_or(Crossing {
            left: u32::MAX,
            right: u32::MAX,
        })
    }
}

/// Which crossing rules can meet beside a character, by what of them stands next to the boundary:
/// the character as a whole, or the part of a character that the side is.
#[derive(Default)]
struct Sides {
    /// What left sides end with, and right sides begin with, with the bits of their rules.
    left: HashMap<Vec<u8>, u32>,
    right: HashMap<Vec<u8>, u32>,
}

impl Sides {
    /// And the tokens that are one character. One pass over all tokens, at each load.
    fn new(canonical: &CanonicalForm) -> (Self, Vec<(TokenId, char)>) {
        let vocabulary = canonical.vocabulary();
        let mut single = Vec::new();
        // The rules of one left side share a bit.
        let mut found: HashMap<Vec<u8>, Vec<Vec<u8>>> = HashMap::new();
        for (id, token) in vocabulary.iter() {
            if let Some(character) = only_character(token) {
                single.push((id, character));
                continue;
            }
            let begins_inside = token.first().is_some_and(|&byte| is_continuation(byte));
            // Most tokens end with a byte that is a character.
            let ends_whole =
                || token.last().is_some_and(u8::is_ascii) || last_character(token).is_some();
            if !begins_inside && ends_whole() {
                continue;
            }
            let Some(rule) = canonical.rule(id) else {
                continue;
            };
            let side = |id| vocabulary.token_bytes(id).unwrap_or_default();
            let (left, right) = (side(rule.left), side(rule.right));
            if right.first().is_none_or(|&byte| is_continuation(byte)) {
                continue;
            }
            let Some(ends_with) = last_character(left).or_else(|| inner_part(left)) else {
                continue;
            };
            let begins_with = first_character(right);
            let rights = found.entry(ends_with.to_vec()).or_default();
            rights.push(begins_with.to_vec());
        }
        let mut found: Vec<_> = found.into_iter().collect();
        found.sort_by_key(|(left, rights)| (usize::MAX - rights.len(), left.clone()));
        let mut sides = Self::default();
        for (number, (left, rights)) in found.into_iter().enumerate() {
            let bit = 1 << number.min(31);
            *sides.left.entry(left).or_default() |= bit;
            for right in rights {
                *sides.right.entry(right).or_default() |= bit;
            }
        }
        (sides, single)
    }

    /// The rules that can meet beside this character.
    fn of_character(&self, character: &[u8]) -> Crossing {
        let mut crossing = Crossing::default();
        for start in 0..character.len() {
            let bits = character.get(start..).and_then(|end| self.left.get(end));
            crossing.left |= bits.copied().unwrap_or(0);
        }
        for end in 1..=character.len() {
            let bits = character.get(..end).and_then(|begin| self.right.get(begin));
            crossing.right |= bits.copied().unwrap_or(0);
        }
        crossing
    }
}

fn is_continuation(byte: u8) -> bool {
    byte & 0xC0 == 0x80
}

/// The only character of a token, if it is one.
fn only_character(token: &[u8]) -> Option<char> {
    let len = match *token.first()? {
        0..0x80 => 1,
        0x80..0xE0 => 2,
        0xE0..0xF0 => 3,
        0xF0.. => 4,
    };
    if token.len() != len {
        return None;
    }
    std::str::from_utf8(token).ok()?.chars().next()
}

/// The character that `token` ends with, if it ends with a whole one.
fn last_character(token: &[u8]) -> Option<&[u8]> {
    let start = token.iter().rposition(|&byte| !is_continuation(byte))?;
    let last = token.get(start..)?;
    std::str::from_utf8(last).is_ok().then_some(last)
}

/// The token itself, if all of it lies inside a character.
fn inner_part(token: &[u8]) -> Option<&[u8]> {
    token
        .iter()
        .all(|&byte| is_continuation(byte))
        .then_some(token)
}

/// The character, or the part of one, that `token` begins with.
fn first_character(token: &[u8]) -> &[u8] {
    let behind = token
        .iter()
        .skip(1)
        .position(|&byte| !is_continuation(byte));
    let end = behind.map_or(token.len(), |behind| behind + 1);
    token.get(..end).unwrap_or(token)
}

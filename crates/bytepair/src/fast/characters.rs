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
//! rules that use it; so applying them first, in each such character, changes nothing. A character that
//! is no token is never all of one side; so between safe boundaries nothing of it merges with others,
//! and it is what its bytes alone become: of three bytes two or three tokens.
//!
//! Characters beside a boundary that is not safe start as bytes. So do characters of four bytes and
//! bytes that are no character, and what is beside them.
//!
//! For each character there are two sets of bits: of the crossing rules whose left side can end with it,
//! and of those whose right side can begin with it. All rules of one left side, or of one right side,
//! share a bit. o200k_base has more than a hundred such sides, so rare ones share a bit too; that makes
//! safe boundaries rarer, and nothing else.

use std::collections::HashMap;

use bpe_core::{Atoms, CanonicalForm, PairTable, TokenId, TokenOrigin};

use super::merge::{NEVER, ROOM, merged};

/// What is known of a character, in 32 bits: its token, and the number of its class.
const TOKEN_BITS: u32 = 20;
const TOKEN_MASK: u32 = (1 << TOKEN_BITS) - 1;
/// In the place of a token: the character is none.
const NO_TOKEN: u32 = TOKEN_MASK;
/// The class of what is no character of at most three bytes.
const OTHER: u32 = 0;
/// The class of the end of a piece.
const END: u32 = 1;

/// Bits for crossing rules; one more on each side says that there is a character.
const RULE_BITS: usize = 62;
const LEFT_OF_ANY: u64 = 1 << 62;
const RIGHT_OF_ANY: u64 = 1 << 63;

/// The characters from which merging may start.
pub(super) struct Characters {
    /// Of each character below U+10000, its token and its class.
    entries: Box<[u32; 1 << 16]>,
    classes: Vec<Crossing>,
    parts: Parts,
    pub(super) bytes: [TokenId; 256],
}

/// The crossing rules whose left side can end with a character, and whose right side can begin with it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Crossing {
    left: u64,
    right: u64,
}

/// What the first two bytes and the last two bytes of characters of three bytes merge to.
struct Parts {
    /// By the lowest four bits of the first, and the lowest six of the second.
    first_two: Vec<u64>,
    /// By the lowest six bits of both.
    last_two: Vec<u64>,
}

impl Characters {
    /// The characters of `canonical`. `None` where the argument does not hold: an improper dictionary,
    /// one over other atoms, or one that lacks a byte.
    pub(super) fn new(canonical: &CanonicalForm) -> Option<Self> {
        let vocabulary = canonical.vocabulary();
        let fits = vocabulary.max_id()? < NO_TOKEN;
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
        let mut classes = Classes::new();
        let mut entries = sides.entries_without_tokens(&mut classes);
        for (id, character) in single {
            let mut token = [0; 4];
            let token = character.encode_utf8(&mut token).as_bytes();
            // A fallback token can have the same bytes as another.
            let is_made = !matches!(canonical.origin(id), None | Some(TokenOrigin::Unreachable))
                && vocabulary.id_of(token) == Some(id);
            if let Some(entry) = entries.get_mut(character as usize).filter(|_| is_made) {
                *entry = *entry & !TOKEN_MASK | id;
            }
        }
        Some(Self {
            entries,
            classes: classes.list,
            parts: Parts::new(canonical.pair_table(), &bytes),
            bytes,
        })
    }

    /// Fills `units` with what merging `piece` starts from, and returns how many these are; `None`
    /// where there is not enough room.
    #[inline(always)]
    pub(super) fn units(&self, piece: &[u8], units: &mut [TokenId; ROOM]) -> Option<usize> {
        let mut count = 0;
        let mut place = 0;
        let mut safe_before = true;
        let (mut next, mut next_len) = self.character(piece, 0);
        let mut crossing = self.class(next);
        while place < piece.len() {
            let (entry, len, left) = (next, next_len, crossing.left);
            (next, next_len) = self.character(piece, place + len);
            crossing = self.class(next);
            let safe_behind = left & crossing.right == 0;
            // A character is four units at most.
            let room: &mut [TokenId; 4] = units.get_mut(count..)?.first_chunk_mut()?;
            let token = entry & TOKEN_MASK;
            if safe_before & safe_behind & (token != NO_TOKEN) {
                room[0] = token;
                count += 1;
            } else {
                let bytes = piece.get(place..place + len)?;
                let parts = (safe_before & safe_behind).then_some(&self.parts);
                count += self.spell(bytes, parts, room);
            }
            safe_before = safe_behind;
            place += len;
        }
        Some(count)
    }

    /// The bytes of a character, two of them merged if `parts` are given and say so.
    #[inline(always)]
    fn spell(&self, bytes: &[u8], parts: Option<&Parts>, room: &mut [TokenId; 4]) -> usize {
        if let (Some(parts), &[first, second, third]) = (parts, bytes) {
            let (first_two, last_two) = parts.of(first, second, third);
            if first_two.min(last_two) != NEVER {
                let is_first = first_two < last_two;
                room[0] = if is_first {
                    first_two as u32
                } else {
                    self.bytes[usize::from(first)]
                };
                room[1] = if is_first {
                    self.bytes[usize::from(third)]
                } else {
                    last_two as u32
                };
                return 2;
            }
        }
        for (&byte, place) in bytes.iter().zip(room) {
            *place = self.bytes[usize::from(byte)];
        }
        bytes.len()
    }

    /// What is known of the character at `place`, and its bytes; of a byte that begins no character of
    /// at most three bytes, nothing; of the end of the piece, that nothing can cross it.
    #[inline(always)]
    fn character(&self, piece: &[u8], place: usize) -> (u32, usize) {
        const NOTHING: u32 = OTHER << TOKEN_BITS | NO_TOKEN;
        let rest = piece.get(place..).unwrap_or_default();
        // Most characters that are not ASCII have three bytes: all tests of them at once.
        if let Some(&[first, second, third]) = rest.first_chunk() {
            let bytes = u32::from_be_bytes([0, first, second, third]);
            if bytes & 0xF0_C0_C0 == 0xE0_80_80 {
                let character = (bytes >> 4 & 0xF000) | (bytes >> 2 & 0x0FC0) | (bytes & 0x3F);
                // Overlong forms and surrogates are no characters.
                return match character {
                    0..0x800 | 0xD800..0xE000 => (NOTHING, 1),
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
            [_, ..] => (NOTHING, 1),
            [] => (END << TOKEN_BITS, 0),
        }
    }

    #[inline(always)]
    fn class(&self, entry: u32) -> Crossing {
        let class = self.classes.get((entry >> TOKEN_BITS) as usize);
        class.copied().unwrap_or(Crossing::OTHER)
    }
}

impl Crossing {
    const OTHER: Self = Self {
        left: u64::MAX,
        right: u64::MAX,
    };
}

impl Parts {
    fn new(table: &PairTable, bytes: &[TokenId; 256]) -> Self {
        let pair = |first: usize, second: usize| merged(table.get(bytes[first], bytes[second]));
        Self {
            first_two: (0..1 << 10)
                .map(|index| pair(0xE0 | index >> 6, 0x80 | index & 0x3F))
                .collect(),
            last_two: (0..1 << 12)
                .map(|index| pair(0x80 | index >> 6, 0x80 | index & 0x3F))
                .collect(),
        }
    }

    /// The priorities and products of both pairs; they are equal only where there is neither.
    #[inline(always)]
    fn of(&self, first: u8, second: u8, third: u8) -> (u64, u64) {
        let [first, second, third] = [first & 0xF, second & 0x3F, third & 0x3F].map(usize::from);
        let get = |table: &[u64], index: usize| table.get(index).copied().unwrap_or(NEVER);
        (
            get(&self.first_two, first << 6 | second),
            get(&self.last_two, second << 6 | third),
        )
    }
}

/// The classes of characters, by what can cross beside them.
struct Classes {
    list: Vec<Crossing>,
    numbers: HashMap<Crossing, u32>,
    /// Neighbours mostly share a class.
    last: (Crossing, u32),
}

impl Classes {
    fn new() -> Self {
        let end = Crossing { left: 0, right: 0 };
        Self {
            list: vec![Crossing::OTHER, end],
            numbers: HashMap::new(),
            last: (end, END),
        }
    }

    /// The number of a class; [`OTHER`], which is always right, if there are too many.
    fn number(&mut self, left: u64, right: u64) -> u32 {
        let crossing = Crossing {
            left: left | LEFT_OF_ANY,
            right: right | RIGHT_OF_ANY,
        };
        if self.last.0 == crossing {
            return self.last.1;
        }
        if let Some(&number) = self.numbers.get(&crossing) {
            self.last = (crossing, number);
            return number;
        }
        let number = self.list.len() as u32;
        if number >> (u32::BITS - TOKEN_BITS) != 0 {
            return OTHER;
        }
        self.list.push(crossing);
        self.numbers.insert(crossing, number);
        number
    }
}

/// Which crossing rules can meet beside a character, by what of them stands next to the boundary:
/// the character as a whole, or the part of a character that the side is.
#[derive(Default)]
struct Sides {
    /// What left sides end with, and right sides begin with, with the bits of their rules.
    left: HashMap<Vec<u8>, u64>,
    right: HashMap<Vec<u8>, u64>,
}

impl Sides {
    /// And the tokens that are one character. One pass over all tokens, at each load.
    fn new(canonical: &CanonicalForm) -> (Self, Vec<(TokenId, char)>) {
        let vocabulary = canonical.vocabulary();
        let mut single = Vec::new();
        let mut found = Vec::new();
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
            if let Some(ends_with) = last_character(left).or_else(|| inner_part(left)) {
                found.push((ends_with, first_character(right)));
            }
        }
        found.sort_unstable();
        found.dedup();
        (Self::with_bits(&found), single)
    }

    /// The pairs of one left side share a bit, or those of one right side: of a pair's two sides that which
    /// more pairs have.
    fn with_bits(pairs: &[(&[u8], &[u8])]) -> Self {
        let mut counts: HashMap<(bool, &[u8]), usize> = HashMap::new();
        for &(left, right) in pairs {
            *counts.entry((false, left)).or_default() += 1;
            *counts.entry((true, right)).or_default() += 1;
        }
        let count = |side| counts.get(&side).copied().unwrap_or(0);
        let mut groups: HashMap<(bool, &[u8]), Vec<_>> = HashMap::new();
        for &(left, right) in pairs {
            let (left_side, right_side) = ((false, left), (true, right));
            let by_right = count(right_side) > count(left_side);
            let side = if by_right { right_side } else { left_side };
            groups.entry(side).or_default().push((left, right));
        }
        let mut groups: Vec<_> = groups.into_iter().collect();
        groups.sort_unstable_by_key(|(side, pairs)| (usize::MAX - pairs.len(), *side));
        let mut sides = Self::default();
        for (number, (_, pairs)) in groups.into_iter().enumerate() {
            for (left, right) in pairs {
                sides.add(bit_of(number), left, right);
            }
        }
        sides
    }

    fn add(&mut self, bit: u64, left: &[u8], right: &[u8]) {
        *self.left.entry(left.to_vec()).or_default() |= bit;
        *self.right.entry(right.to_vec()).or_default() |= bit;
    }

    /// The classes of all characters below U+10000.
    fn entries_without_tokens(&self, classes: &mut Classes) -> Box<[u32; 1 << 16]> {
        let left = |end: &[u8]| self.left.get(end).copied().unwrap_or(0);
        let right = |start: &[u8]| self.right.get(start).copied().unwrap_or(0);
        let continuation = || 0x80..0xC0_u8;
        // By the last two bytes.
        let lefts: Vec<u64> = continuation()
            .flat_map(|second| continuation().map(move |third| [second, third]))
            .map(|two| left(&two) | left(&two[1..]))
            .collect();
        let mut entries = no_tokens();
        let mut put = |character: usize, left, right| {
            entries[character % (1 << 16)] = classes.number(left, right) << TOKEN_BITS | NO_TOKEN;
        };
        for byte in 0..0x80_u8 {
            put(usize::from(byte), left(&[byte]), right(&[byte]));
        }
        for first in 0xC2..0xE0_u8 {
            for second in continuation() {
                let character = usize::from(first & 0x1F) << 6 | usize::from(second & 0x3F);
                put(character, left(&[second]), right(&[first]));
            }
        }
        for first in 0xE0..0xF0_u8 {
            // What would be below U+0800 is no character in three bytes.
            let least = if first == 0xE0 { 0xA0 } else { 0x80 };
            for second in least..0xC0_u8 {
                let right = right(&[first]) | right(&[first, second]);
                let start = usize::from(second & 0x3F) << 6;
                for (third, &left) in lefts.iter().skip(start).take(1 << 6).enumerate() {
                    put(usize::from(first & 0xF) << 12 | start | third, left, right);
                }
            }
        }
        // The sides that end or begin with a whole character of several bytes.
        let whole = self.left.keys().chain(self.right.keys());
        for bytes in whole {
            let (Some(character), 2..) = (only_character(bytes), bytes.len()) else {
                continue;
            };
            let ends = (0..bytes.len()).filter_map(|start| bytes.get(start..));
            let starts = (1..=bytes.len()).filter_map(|end| bytes.get(..end));
            if (character as usize) < 1 << 16 {
                put(
                    character as usize,
                    ends.map(left).fold(0, |all, bits| all | bits),
                    starts.map(right).fold(0, |all, bits| all | bits),
                );
            }
        }
        entries
    }
}

/// The first half of the bits is for one side each, the others are shared by all that remain.
fn bit_of(number: usize) -> u64 {
    const OWN: usize = RULE_BITS / 2;
    1 << match number {
        0..OWN => number,
        _ => OWN + number % (RULE_BITS - OWN),
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

/// An entry for each character, made on the heap: a thread may have a stack of as many bytes.
fn no_tokens() -> Box<[u32; 1 << 16]> {
    let entries = vec![NO_TOKEN; 1 << 16].into_boxed_slice();
    entries.try_into().unwrap_or_else(|_| {
        // Never: the length is that.
        Box::new([NO_TOKEN; 1 << 16])
    })
}

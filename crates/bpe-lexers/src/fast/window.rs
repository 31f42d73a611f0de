//! The pre-tokens of 64 bytes at once: one bit a byte for each class, boundaries by shifts and ands.
//!
//! A window of 64 bytes starts where a pre-token starts. Lexing depends on nothing before that
//! place, so no state is carried from window to window. From the masks of the classes, each rule of
//! the family gives the places where a pre-token must start. Some of them depend on what stands
//! behind the window, some on what the masks do not tell: only those up to a place from which on
//! that may be so are taken, the last of them is the start of the next window, and where there is
//! none, the [scalar](super::scalar) lexer finds one pre-token.
//!
//! Some runs are found by an addition: with one bit at the start of a run of ones, the carry goes
//! through the run and stops behind it.
//!
//! ```text
//! run                0 0 1 1 1 1 0 0      (the lowest bit on the left)
//! start              0 0 1 0 0 0 0 0
//! run + start        0 0 0 0 0 0 1 0
//! ```

use super::masks::{Masks, Tier};
use super::rules::{Contractions, Rules};
use super::scalar;
use super::table::{CASELESS, ClassTable, LOWER, MARK, NUMBER, UPPER, WHITE};
use crate::contraction;

pub(super) const BYTES: usize = 64;

/// How far ahead of a window the text is asked for: where the next one starts is known late, and a text
/// that is longer than a cache would be waited for at each.
const AHEAD: usize = 1024;

/// How a family finds its pre-tokens.
pub(super) trait Lexing: 'static {
    /// Finds the starts of pre-tokens in `bytes`, the first of `rest`; the bytes outside `valid` do not
    /// count. `at_end` says whether the text ends with the window.
    fn starts<T: Tier>(
        tier: T,
        table: &ClassTable,
        rest: &[u8],
        bytes: &[u8; BYTES],
        valid: u64,
        at_end: bool,
    ) -> Found;

    /// Returns the end of the pre-token that starts at byte `start`, character by character.
    fn end(table: &ClassTable, text: &[u8], start: usize) -> usize;
}

impl<R: Rules> Lexing for R {
    #[inline(always)]
    fn starts<T: Tier>(
        tier: T,
        table: &ClassTable,
        rest: &[u8],
        bytes: &[u8; BYTES],
        valid: u64,
        at_end: bool,
    ) -> Found {
        boundaries::<R, T>(tier, table, rest, bytes, valid, at_end)
    }

    fn end(table: &ClassTable, text: &[u8], start: usize) -> usize {
        scalar::end::<R>(table, text, start)
    }
}

/// Appends to `ends` the ends of the pre-tokens from `start` on, `limit` of them or up to 64 more,
/// or as many as there are.
#[inline(always)]
pub(super) fn ends<L: Lexing, T: Tier>(
    tier: T,
    table: &ClassTable,
    text: &[u8],
    start: usize,
    limit: usize,
    ends: &mut Vec<usize>,
) {
    let mut at = start;
    let (first, mut used) = (ends.len(), ends.len());
    while at < text.len() && used - first < limit {
        if ends.len() < used + BYTES {
            let room = limit.saturating_sub(used - first).min(1 << 12);
            ends.resize(used + BYTES + room, 0);
        }
        let rest = &text[at..];
        tier.prefetch(rest, AHEAD);
        let found = match rest.first_chunk::<BYTES>() {
            Some(bytes) => {
                let valid = u64::MAX;
                L::starts(tier, table, rest, bytes, valid, rest.len() == BYTES)
            }
            None => {
                let mut bytes = [0; BYTES];
                bytes[..rest.len()].copy_from_slice(rest);
                let valid = (1 << rest.len()) - 1;
                L::starts(tier, table, rest, &bytes, valid, true)
            }
        };
        let bits = found.starts;
        if bits != 0 {
            if let Some(room) = ends
                .get_mut(used..)
                .and_then(|room| room.first_chunk_mut::<BYTES>())
            {
                tier.places(bits, at, room);
                used += bits.count_ones() as usize;
                at += 63 - bits.leading_zeros() as usize;
            }
            if !found.to_the_end {
                continue;
            }
        } else if !found.to_the_end {
            at = L::end(table, text, at);
            ends[used] = at;
            used += 1;
            continue;
        }
        // The last pre-token ends where the text does.
        ends[used] = text.len();
        used += 1;
        at = text.len();
    }
    ends.truncate(used);
}

/// What a window tells.
pub(super) struct Found {
    /// Where pre-tokens start, but for the first byte of the window.
    pub(super) starts: u64,
    /// Does the last of them end where the text ends?
    pub(super) to_the_end: bool,
}

/// [`Lexing::starts`] by the rule of a family.
#[inline(always)]
fn boundaries<R: Rules, T: Tier>(
    tier: T,
    table: &ClassTable,
    rest: &[u8],
    bytes: &[u8; BYTES],
    valid: u64,
    at_end: bool,
) -> Found {
    let rule = const { R::RULE };
    let ascii = tier.masks(bytes);
    let classes = Classes::new::<R, T>(tier, table, rest, bytes, &ascii);
    let first_bytes = !ascii.continuation;
    let blank = ascii.blank;
    let newline = ascii.newline;
    let slash = ascii.slash;
    let white = classes.white;
    let word = classes.upper | classes.lower | classes.caseless;
    let number = classes.number;
    let unclear = classes.loose_marks;
    let mut other = valid & !(word | number | white | unclear);

    // Others with what belongs to them: `[\r\n]*`, or `[\r\n/]*`.
    let mut tail = 0;
    if rule.newlines {
        let can = if rule.slash { newline | slash } else { newline };
        let begins = (other << 1) & newline;
        // Where slashes are others too, a tail can seem to begin inside a tail.
        tail = (can & !can.wrapping_add(begins)) | begins;
        other &= !tail;
    }
    let after_blank = blank << 1;
    let other_starts = other & !(other << 1) & !after_blank;
    let mut starts = other_starts;

    // White space.
    let white_alone = white & !tail;
    starts |= white_alone & !(white_alone << 1);
    let mut last = white & !(white >> 1) & (valid >> 1);
    if rule.newlines {
        let no_newline = white & !newline;
        last &= no_newline;
        let mut kept = behind_last_newline(newline & !tail, newline, no_newline);
        if rule.whole_at_end && at_end {
            // Not in the run that ends where the text does.
            let unused = valid.leading_zeros();
            let length = (white_alone << unused).leading_ones();
            kept &= !(high_bits(length) >> unused);
        }
        starts |= kept;
    }
    if rule.numbers_first {
        last &= !(number >> 1);
    }
    starts |= first_byte_of(last, first_bytes);

    // Words and numbers.
    let word_starts = word & !(word << 1);
    let number_starts = number & !(number << 1);
    if rule.prefix {
        let no_newline = white & !newline;
        // Behind the only character of a run of others that is not behind a blank.
        let of_first = other & !(first_bytes & !(other & !(other << 1)));
        let behind_first = of_first.wrapping_add(other_starts) & !of_first;
        starts |= word_starts & !(no_newline << 1) & !behind_first;
        starts |= number_starts;
    } else if rule.numbers_first {
        starts |= (word_starts & !after_blank) | number_starts;
    } else {
        starts |= (word_starts | number_starts) & !after_blank;
    }
    if rule.numbers > 0 {
        starts |= groups(rule.numbers, number, number_starts, first_bytes);
    }
    if rule.cases {
        starts |= by_case(&classes, at_end, valid);
    }

    // The place from which on the masks do not tell.
    let mut unclear = unclear;
    if rule.contractions != Contractions::None {
        let mut candidates = ascii.apostrophe & other_starts & (word >> 1 | 1 << 63);
        if rule.contractions == Contractions::AfterWord {
            candidates &= word << 1;
        }
        while candidates != 0 {
            let place = candidates.trailing_zeros() as usize;
            candidates &= candidates - 1;
            let letters = rest.get(place + 1..).unwrap_or_default();
            let length = match rule.contractions {
                Contractions::AloneInLowerCase => contraction::in_lower_case(letters),
                _ => contraction::in_any_case(letters),
            };
            if length == 0 {
                continue;
            }
            let behind = bit(place + 1 + length);
            if rule.contractions == Contractions::AfterWord {
                // Nor does the case of its letters end a word.
                starts &= !((bit(length + 1) - 1) << place);
                // An apostrophe there follows a contraction, not a word.
                candidates &= !behind;
                // A word that begins there begins inside a run, which the rules for case miss.
                if word & behind != 0 {
                    unclear |= bit(place);
                }
            } else {
                starts &= !bit(place + 1);
                starts |= word & behind;
            }
        }
    }
    let mut to_the_end = at_end;
    if unclear != 0 {
        starts &= lowest(unclear) - 1;
        to_the_end = false;
    }
    if !at_end {
        // Words and white space may go on behind the window, and change what is inside them.
        let run = word.leading_ones().max(white.leading_ones());
        if run > 0 {
            // The start of the run itself is certain.
            starts &= u64::MAX >> (run - 1);
        }
    }
    Found {
        starts: starts & !1,
        to_the_end,
    }
}

/// The masks of the classes, whole characters.
struct Classes {
    upper: u64,
    lower: u64,
    /// In families with case, marks behind a character of a word too.
    caseless: u64,
    number: u64,
    white: u64,
    /// In families with case, marks that follow something else.
    loose_marks: u64,
}

impl Classes {
    #[inline(always)]
    fn new<R: Rules, T: Tier>(
        tier: T,
        table: &ClassTable,
        rest: &[u8],
        bytes: &[u8; BYTES],
        ascii: &Masks,
    ) -> Self {
        let mut classes = Self {
            upper: ascii.upper,
            lower: ascii.lower,
            caseless: 0,
            number: ascii.digit,
            white: ascii.blank | ascii.newline | ascii.white,
            loose_marks: 0,
        };
        if ascii.non_ascii == 0 {
            return classes;
        }
        let three = tier.caseless(bytes);
        let mut by_class = [0_u64; 8];
        let mut left = ascii.non_ascii & !ascii.continuation & !three;
        while left != 0 {
            let place = left.trailing_zeros() as usize;
            left &= left - 1;
            let (class, length) = table.after_ascii(rest, place, usize::from(bytes[place % BYTES]));
            by_class[usize::from(class & 7)] |= ((1 << length) - 1) << place;
        }
        classes.upper |= by_class[usize::from(UPPER)];
        classes.lower |= by_class[usize::from(LOWER)];
        classes.caseless |= by_class[usize::from(CASELESS)] | three | three << 1 | three << 2;
        classes.number |= by_class[usize::from(NUMBER)];
        classes.white |= by_class[usize::from(WHITE)];
        let marks = by_class[usize::from(MARK)];
        if R::RULE.cases && marks != 0 {
            let word = classes.upper | classes.lower | classes.caseless;
            let attached = marks & !marks.wrapping_add((word << 1) & marks);
            classes.caseless |= attached;
            classes.loose_marks = marks & !attached;
        }
        classes
    }
}

/// Behind the last newline of each run of white space, where the run goes on. `open`: the newlines that no
/// pre-token before them has taken.
#[inline(always)]
pub(super) fn behind_last_newline(open: u64, newline: u64, no_newline: u64) -> u64 {
    let begins = (open << 1) & no_newline;
    let mut kept = begins;
    let behind = begins.wrapping_add(no_newline) & !no_newline;
    let mut not_last = behind & newline;
    while not_last != 0 {
        let before = begins & (lowest(not_last) - 1);
        kept &= !highest(before);
        not_last &= not_last - 1;
    }
    kept
}

/// Where a group of `size` numbers starts behind a full one.
#[inline(always)]
pub(super) fn groups(size: usize, number: u64, number_starts: u64, first_bytes: u64) -> u64 {
    let mut starts = 0;
    if size == 1 {
        return number & first_bytes;
    }
    // A run of more bytes than a group has numbers: else there is nothing to do.
    let mut long = number;
    for before in 1..=size {
        long &= number << before;
    }
    if long == 0 {
        return 0;
    }
    if number & !first_bytes == 0 {
        let mut group = number_starts;
        while group != 0 {
            group = (group << size) & long;
            starts |= group;
        }
        return starts;
    }
    let mut characters = number & first_bytes;
    let mut in_group = 0;
    while characters != 0 {
        let character = lowest(characters);
        characters &= characters - 1;
        if number_starts & character != 0 {
            in_group = 0;
        } else if in_group == size {
            starts |= character;
            in_group = 0;
        }
        in_group += 1;
    }
    starts
}

/// Where a word starts behind another one: `U*L+` or else `U+L*`, with the caseless characters in
/// both.
#[inline(always)]
fn by_case(classes: &Classes, at_end: bool, valid: u64) -> u64 {
    let Classes {
        upper,
        lower,
        caseless,
        ..
    } = *classes;
    let mut starts = (lower << 1) & upper;
    if caseless == 0 {
        return starts;
    }
    let after_lower = caseless.wrapping_add((lower << 1) & caseless) & !caseless & upper;
    starts |= after_lower;
    // Upper after caseless, with no lower before: if U* is followed by a lower-case character, no
    // word starts in it; else one starts behind its last caseless character.
    let mut open = (caseless << 1) & upper & !after_lower;
    let part = upper | caseless;
    while open != 0 {
        let place = open.trailing_zeros();
        let end = place + (part >> place).trailing_ones();
        let before = bit(end as usize).wrapping_sub(1);
        open &= !before;
        let is_known = end < 64 || (at_end && valid == u64::MAX);
        if is_known && lower & bit(end as usize) == 0 {
            starts |= (highest(caseless & before) << 1) & before;
        }
    }
    starts
}

/// The bit of a byte, if it is one of the window.
#[inline(always)]
fn bit(place: usize) -> u64 {
    if place < BYTES { 1 << place } else { 0 }
}

#[inline(always)]
fn lowest(bits: u64) -> u64 {
    bits & bits.wrapping_neg()
}

/// The highest of the bits, of which there is one.
#[inline(always)]
fn highest(bits: u64) -> u64 {
    (1 << 63) >> (bits.leading_zeros() & 63)
}

/// The highest bits, this many of them.
#[inline(always)]
fn high_bits(count: u32) -> u64 {
    !u64::MAX.checked_shr(count).unwrap_or(0)
}

/// The first bytes of the characters that have their last bytes in `last`.
#[inline(always)]
pub(super) fn first_byte_of(last: u64, first_bytes: u64) -> u64 {
    let mut found = last & first_bytes;
    let mut long = last & !first_bytes;
    while long != 0 {
        long >>= 1;
        found |= long & first_bytes;
        long &= !first_bytes;
    }
    found
}

//! The class of every character, in a table of two levels.

use std::collections::HashMap;
use std::sync::OnceLock;

use crate::classes::{CharSet, Classes};

/// The classes that the rules of the families distinguish; a class is an index into an array of
/// masks.
/// `[\p{P}\p{S}]`
pub(super) const SYMBOL: u8 = 0;
/// `[\p{Lu}\p{Lt}]`
pub(super) const UPPER: u8 = 1;
/// `\p{Ll}`
pub(super) const LOWER: u8 = 2;
/// `[\p{Lm}\p{Lo}]`
pub(super) const CASELESS: u8 = 3;
/// `\p{M}`
pub(super) const MARK: u8 = 4;
/// `\p{N}`
pub(super) const NUMBER: u8 = 5;
/// `\s`
pub(super) const WHITE: u8 = 6;
/// None of these: control and format characters, private ones, those that are not assigned.
pub(super) const CONTROL: u8 = 7;

/// How many characters one row of the second level has: those that differ in the last byte of
/// their UTF-8 only.
const ROW: usize = 64;

/// The class of every character.
///
/// The first level has the number of a row for every 64 characters, and equal rows are stored
/// once: 35 KB and about 15 KB, of which a text in one script touches a few hundred bytes.
pub(super) struct ClassTable {
    rows: Vec<u16>,
    classes: Vec<u8>,
}

impl ClassTable {
    /// Returns the table; the first call makes it, in a few milliseconds.
    pub(super) fn get() -> &'static Self {
        static TABLE: OnceLock<ClassTable> = OnceLock::new();
        TABLE.get_or_init(|| Self::new(Classes::get()))
    }

    fn new(known: &Classes) -> Self {
        let mut all = vec![CONTROL; char::MAX as usize + 1];
        let mut set = |characters: &CharSet, class: fn(u8) -> u8| {
            for &(first, last) in characters.ranges() {
                for old in &mut all[first as usize..=last as usize] {
                    *old = class(*old);
                }
            }
        };
        set(&known.symbol, |_| SYMBOL);
        set(&known.upper, |_| UPPER);
        // What is in both is caseless, or a mark.
        set(&known.lower, |old| match old {
            UPPER => CASELESS,
            _ => LOWER,
        });
        set(&known.mark, |_| MARK);
        set(&known.number, |_| NUMBER);
        set(&known.white, |_| WHITE);
        let mut numbers: HashMap<&[u8], u16> = HashMap::new();
        let mut classes = Vec::new();
        let rows = all.chunks(ROW).map(|row| {
            *numbers.entry(row).or_insert_with(|| {
                classes.extend_from_slice(row);
                // At most 17,408 rows, as many as there are.
                (classes.len() / ROW - 1) as u16
            })
        });
        let rows = rows.collect();
        Self { rows, classes }
    }

    /// The class of the character whose number without the last six bits is `row`.
    #[inline(always)]
    fn class(&self, row: usize, last: usize) -> u8 {
        let row = self.rows.get(row).copied().unwrap_or(0);
        let place = usize::from(row) * ROW + (last & (ROW - 1));
        self.classes.get(place).copied().unwrap_or(CONTROL)
    }

    /// The class and the length in bytes of the character that starts at `at`; `None` at the end.
    ///
    /// `text` is UTF-8 and `at` a character boundary; elsewhere the answer is some class.
    #[inline(always)]
    pub(super) fn at(&self, text: &[u8], at: usize) -> Option<(u8, usize)> {
        let first = usize::from(*text.get(at)?);
        if first < 0x80 {
            return Some((self.class(first >> 6, first), 1));
        }
        Some(self.after_ascii(text, at, first))
    }

    /// As [`ClassTable::at`], where the first byte is known to be `first`, at least 0x80.
    #[inline(always)]
    pub(super) fn after_ascii(&self, text: &[u8], at: usize, first: usize) -> (u8, usize) {
        let byte = |place: usize| usize::from(text.get(at + place).copied().unwrap_or(0)) & 0x3F;
        if first < 0xE0 {
            (self.class(first & 0x1F, byte(1)), 2)
        } else if first < 0xF0 {
            (self.class((first & 0x0F) << 6 | byte(1), byte(2)), 3)
        } else {
            let row = (first & 0x07) << 12 | byte(1) << 6 | byte(2);
            (self.class(row, byte(3)), 4)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{CASELESS, CONTROL, ClassTable, LOWER, MARK, NUMBER, SYMBOL, UPPER, WHITE};
    use crate::classes::Classes;

    #[test]
    fn every_character_has_the_class_that_its_sets_say_and_its_length() {
        let (table, sets) = (ClassTable::get(), Classes::get());
        for character in '\0'..=char::MAX {
            let c = character;
            let expected = match (sets.upper.contains(c), sets.lower.contains(c)) {
                _ if sets.mark.contains(c) => MARK,
                _ if sets.number.contains(c) => NUMBER,
                _ if sets.white.contains(c) => WHITE,
                (true, true) => CASELESS,
                (true, false) => UPPER,
                (false, true) => LOWER,
                (false, false) if sets.symbol.contains(c) => SYMBOL,
                (false, false) => CONTROL,
            };
            let mut bytes = [0; 4];
            let text = c.encode_utf8(&mut bytes).as_bytes();
            assert_eq!(table.at(text, 0), Some((expected, text.len())), "{c:?}");
            assert_eq!(
                sets.letter.contains(c),
                matches!(expected, UPPER | LOWER | CASELESS),
                "{c:?}"
            );
        }
        assert_eq!(table.at(b"", 0), None);
    }
}

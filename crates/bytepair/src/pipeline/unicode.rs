//! Classes of characters, of the versions of Unicode that `tokenizers` has them from.
//!
//! Its normal forms are those of Unicode 9, its categories those of Unicode 8: a character that came
//! later is like any unassigned one there. What a later version changed for an older character is put
//! right here by name. `\w` and blanks are those of today.

use std::sync::OnceLock;

use regex_syntax::hir::{Class, HirKind};

/// A set of characters; a test is one load.
pub(crate) struct CharacterSet {
    words: Vec<u64>,
}

impl CharacterSet {
    /// The set of what is in `ranges` of code points.
    pub(crate) fn new(ranges: impl IntoIterator<Item = (u32, u32)>) -> Self {
        let mut words = vec![0; 0x11_0000 / 64];
        for (first, last) in ranges {
            for point in first..=last {
                if let Some(word) = words.get_mut(point as usize / 64) {
                    *word |= 1 << (point % 64);
                }
            }
        }
        Self { words }
    }

    /// The characters of a class in the syntax of `regex-syntax`.
    fn of_class(class: &str) -> Self {
        let ranges = match regex_syntax::parse(class).map(regex_syntax::hir::Hir::into_kind) {
            Ok(HirKind::Class(Class::Unicode(class))) => class
                .ranges()
                .iter()
                .map(|range| (u32::from(range.start()), u32::from(range.end())))
                .collect(),
            // The classes below are constants, and a test makes them all.
            _ => Vec::new(),
        };
        Self::new(ranges)
    }

    /// The characters that `test` accepts.
    pub(crate) fn filter(mut test: impl FnMut(char) -> bool) -> Self {
        let accepted = ('\0'..=char::MAX).filter(|&character| test(character));
        Self::new(accepted.map(|character| (u32::from(character), u32::from(character))))
    }

    #[inline]
    pub(crate) fn contains(&self, character: char) -> bool {
        let point = u32::from(character);
        let word = self.words.get(point as usize / 64).copied();
        word.unwrap_or_default() >> (point % 64) & 1 == 1
    }
}

macro_rules! classes {
    ($($(#[$doc:meta])* $name:ident: $class:expr;)*) => {
        $(
            $(#[$doc])*
            pub(crate) fn $name() -> &'static CharacterSet {
                static SET: OnceLock<CharacterSet> = OnceLock::new();
                SET.get_or_init(|| CharacterSet::of_class($class))
            }
        )*

        #[cfg(test)]
        const CLASSES: &[&str] = &[$($class),*];
    };
}

classes! {
    /// What normal forms know.
    normalizable: r"\p{Age=9.0}";
    /// Combining marks of every kind.
    combining_marks: r"[[\p{M}&&\p{Age=9.0}]~~[\x{1CF2}\x{1CF3}\x{111C9}]]";
    /// Marks without a width of their own.
    nonspacing_marks:
        r"[[\p{Mn}&&\p{Age=8.0}]~~[\x{1734}\x{1885}\x{1886}\x{A9BD}\x{111C9}\x{1171E}]]";
    /// Punctuation, and all of ASCII that is neither letter, digit, blank nor control.
    punctuation: r"[[[\p{P}&&\p{Age=8.0}]~~[\x{166D}\x{111C9}]][!-/:-@\[-`{-~]]";
    /// Control and format characters, and those of private use.
    controls: r"[[\p{Cc}\p{Cf}\p{Co}]&&\p{Age=8.0}]";
    /// What a word consists of.
    word_characters: r"\w";
}

/// Han characters, for which BERT sets blanks around.
pub(crate) fn is_han(character: char) -> bool {
    matches!(
        u32::from(character),
        0x3400..=0x4DBF
            | 0x4E00..=0x9FFF
            | 0xF900..=0xFAFF
            | 0x2_0000..=0x2_A6DF
            | 0x2_A700..=0x2_B73F
            | 0x2_B740..=0x2_B81F
            | 0x2_B920..=0x2_CEAF
            | 0x2_F800..=0x2_FA1F
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_is_one_and_has_what_it_should() {
        for class in CLASSES {
            let set = CharacterSet::of_class(class);
            assert!(set.words.iter().any(|&word| word != 0), "{class}");
        }
        let found = |set: &CharacterSet, text: &str| -> String {
            text.chars().filter(|&c| set.contains(c)).collect()
        };
        // U+1805 is a Mongolian stop, U+2E43 punctuation of Unicode 9, U+166D was punctuation once.
        assert_eq!(
            found(punctuation(), "a$^`~ \u{1805}\u{2E43}\u{166D}١"),
            "$^`~\u{1805}\u{166D}"
        );
        assert_eq!(
            found(controls(), "a\n\u{200B}\u{E000}\u{0378}"),
            "\n\u{200B}\u{E000}"
        );
        assert_eq!(
            found(word_characters(), "a_é中1-\u{0301} ²"),
            "a_é中1\u{0301}"
        );
        assert_eq!(found(nonspacing_marks(), "e\u{0301}\u{0903}"), "\u{0301}");
        assert_eq!(
            found(combining_marks(), "e\u{0301}\u{0903}"),
            "\u{0301}\u{0903}"
        );
    }
}

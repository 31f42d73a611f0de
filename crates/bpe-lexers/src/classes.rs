//! The Unicode classes that the known patterns distinguish, read from the tables of
//! regex-syntax, so that every engine of this crate knows the same version of Unicode.

use std::sync::OnceLock;

use regex_syntax::hir::{Class as HirClass, HirKind};

/// A set of characters as sorted, disjoint, inclusive ranges.
pub(crate) struct CharSet {
    ranges: Vec<(char, char)>,
}

impl CharSet {
    /// Reads a character class written as a regular expression.
    fn parse(class: &'static str) -> Self {
        let hir = regex_syntax::parse(class).expect("a class written in this file is well formed");
        let HirKind::Class(HirClass::Unicode(class)) = hir.kind() else {
            unreachable!("a class written in this file is a Unicode class of several characters")
        };
        Self {
            ranges: class
                .ranges()
                .iter()
                .map(|range| (range.start(), range.end()))
                .collect(),
        }
    }

    /// The ranges, sorted, disjoint, inclusive.
    pub(crate) fn ranges(&self) -> &[(char, char)] {
        &self.ranges
    }

    /// Is `character` in the set? Logarithmic in the number of ranges.
    pub(crate) fn contains(&self, character: char) -> bool {
        let after = self
            .ranges
            .partition_point(|&(first, _)| first <= character);
        after > 0 && character <= self.ranges[after - 1].1
    }
}

/// The classes, under the names of the patterns.
pub(crate) struct Classes {
    /// `\p{L}`
    pub(crate) letter: CharSet,
    /// `\p{N}`
    pub(crate) number: CharSet,
    /// `\p{M}`
    pub(crate) mark: CharSet,
    /// `[\p{P}\p{S}]`
    pub(crate) symbol: CharSet,
    /// `\s`
    pub(crate) white: CharSet,
    /// `[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]`
    pub(crate) upper: CharSet,
    /// `[\p{Ll}\p{Lm}\p{Lo}\p{M}]`
    pub(crate) lower: CharSet,
}

impl Classes {
    /// Returns the tables; the first call makes them, in well under a millisecond.
    pub(crate) fn get() -> &'static Self {
        static CLASSES: OnceLock<Classes> = OnceLock::new();
        CLASSES.get_or_init(|| Self {
            letter: CharSet::parse(r"\p{L}"),
            number: CharSet::parse(r"\p{N}"),
            mark: CharSet::parse(r"\p{M}"),
            symbol: CharSet::parse(r"[\p{P}\p{S}]"),
            white: CharSet::parse(r"\s"),
            upper: CharSet::parse(r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"),
            lower: CharSet::parse(r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"),
        })
    }
}

/// Returns the major version of Unicode whose character classes all engines use.
///
/// It is the version of the tables of regex-syntax, 16 when this was written. A library with
/// other tables, as Python's, differs in characters that one of the two does not know yet.
///
/// ```
/// assert!(bpe_lexers::unicode_version() >= 16);
/// ```
pub fn unicode_version() -> u32 {
    // The tables name the versions of Unicode from 1.1 up to their own.
    let mut version = 1;
    while regex_syntax::parse(&format!(r"\p{{age:{}.0}}", version + 1)).is_ok() {
        version += 1;
    }
    version
}

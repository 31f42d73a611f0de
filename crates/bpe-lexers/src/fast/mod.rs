//! The fast engine: the known families by class masks over 64 bytes at a time.
//!
//! | module | what it does |
//! |---|---|
//! | `rules` | where the families differ, as constants |
//! | `table` | the class of every character |
//! | `masks` | which of 64 bytes are of which class of ASCII, without SIMD |
//! | `simd` | the same with the instructions of x86-64; the only `unsafe` |
//! | `window` | from masks to boundaries |
//! | `scalar` | one pre-token, character by character |

mod masks;
mod rules;
mod scalar;
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod simd;
mod table;
mod window;

use core::ops::Range;

use masks::Portable;
use rules::{Cl100k, Cl100kOfTiktoken, Gpt2, O200k, Qwen2, Rules, Tekken};
use table::ClassTable;

use crate::lexer::to_boundary;
use crate::{Family, LexError, Lexer, Pattern, PatternError};

/// The fast engine: the known families by class masks over 64 bytes at a time.
///
/// Useful wherever a known pattern runs; [`Engine::Auto`](crate::Engine::Auto) takes it for these.
/// Not useful for other patterns. Its speed is that of
/// [`pre_token_ends`](Lexer::pre_token_ends), which finds many pre-tokens in a call;
/// [`next_pre_token`](Lexer::next_pre_token) goes character by character.
///
/// Making the first one makes the table of character classes, which takes some milliseconds; from
/// then on making one costs nothing. A call takes time linear in the bytes it looks at: the pre-tokens, white
/// space after them and, with o200k, the capitals after them. No allocation but for the output.
///
/// # How
///
/// For 64 bytes from the start of a pre-token, one `u64` a class of characters says which bytes
/// belong to it: for ASCII by comparing vectors, for other characters by a table of two levels, most
/// Chinese and Korean ones by their first byte. The rules of the family are shifts and ands on
/// these masks. What a mask cannot tell (a contraction, a mark on its own, a word that does not end
/// in the window) is left to the scalar lexer or to the next window, which starts at the last boundary
/// that is certain. A window that starts at a boundary needs no state from the one before.
#[derive(Clone)]
pub struct FastLexer {
    table: &'static ClassTable,
    family: Family,
    set: InstructionSet,
    end: EndFunction,
    ends: EndsFunction,
}

/// Table, text, start; returns the end of the pre-token there.
type EndFunction = fn(&ClassTable, &[u8], usize) -> usize;
/// Table, text, start, limit; appends the ends of pre-tokens.
type EndsFunction = fn(&ClassTable, &[u8], usize, usize, &mut Vec<usize>);

/// The instructions that [`FastLexer`] can use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum InstructionSet {
    /// Those of any processor.
    Portable,
    /// SSE2, on any x86-64.
    Sse2,
    /// AVX2, BMI1, BMI2, LZCNT and POPCNT, on x86-64 since about 2013.
    Avx2,
}

impl InstructionSet {
    /// Returns those that this processor has, the slowest first.
    pub fn available() -> Vec<Self> {
        let all = [Self::Portable, Self::Sse2, Self::Avx2];
        all.into_iter().filter(|set| set.is_available()).collect()
    }

    #[cfg(target_arch = "x86_64")]
    fn is_available(self) -> bool {
        match self {
            Self::Portable | Self::Sse2 => true,
            Self::Avx2 => simd::Avx2::detect().is_some(),
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn is_available(self) -> bool {
        self == Self::Portable
    }
}

impl FastLexer {
    /// Returns a lexer for a pattern of a known family, with the best instructions of this
    /// processor.
    ///
    /// # Errors
    ///
    /// The pattern is none of those that this engine knows.
    pub fn new(pattern: &Pattern) -> Result<Self, PatternError> {
        let best = InstructionSet::available().pop();
        Self::with_instructions(pattern, best.unwrap_or(InstructionSet::Portable))
    }

    /// As [`FastLexer::new`], with these instructions: to compare them.
    ///
    /// # Errors
    ///
    /// The pattern is none of those that this engine knows, or this processor does not have the
    /// instructions.
    pub fn with_instructions(pattern: &Pattern, set: InstructionSet) -> Result<Self, PatternError> {
        if !set.is_available() {
            return Err(PatternError::unsupported(
                "fast",
                format_args!("this processor does not have {set:?}"),
            ));
        }
        let unknown =
            || PatternError::unsupported("fast", "the pattern is of no family that it knows");
        let family = pattern.family().ok_or_else(unknown)?;
        let (end, ends) = match family {
            Family::Gpt2 => functions::<Gpt2>(set),
            Family::Cl100k => functions::<Cl100k>(set),
            Family::Cl100kOfTiktoken => functions::<Cl100kOfTiktoken>(set),
            Family::O200k => functions::<O200k>(set),
            Family::Qwen2 => functions::<Qwen2>(set),
            Family::Tekken => functions::<Tekken>(set),
            Family::DigitGroups
            | Family::SingleDigits
            | Family::HanAndKana
            | Family::DeepseekV3 => return Err(unknown()),
        };
        Ok(Self {
            table: ClassTable::get(),
            family,
            set,
            end,
            ends,
        })
    }

    /// Returns the instructions that this lexer uses.
    pub fn instructions(&self) -> InstructionSet {
        self.set
    }
}

impl core::fmt::Debug for FastLexer {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        formatter
            .debug_struct("FastLexer")
            .field("family", &self.family)
            .field("set", &self.set)
            .finish_non_exhaustive()
    }
}

impl Lexer for FastLexer {
    fn next_pre_token(
        &mut self,
        segment: &str,
        start: usize,
    ) -> Result<Option<Range<usize>>, LexError> {
        let start = to_boundary(segment, start);
        if start >= segment.len() {
            return Ok(None);
        }
        // Every character is white space, a letter, a number or none of them, so some branch of
        // each family always matches.
        Ok(Some(
            start..(self.end)(self.table, segment.as_bytes(), start),
        ))
    }

    fn pre_token_ends(
        &mut self,
        segment: &str,
        start: usize,
        limit: usize,
        ends: &mut Vec<usize>,
    ) -> Result<Option<Range<usize>>, LexError> {
        let start = to_boundary(segment, start);
        (self.ends)(self.table, segment.as_bytes(), start, limit, ends);
        Ok(None)
    }

    fn clone_box(&self) -> Box<dyn Lexer> {
        Box::new(self.clone())
    }
}

fn functions<R: Rules>(set: InstructionSet) -> (EndFunction, EndsFunction) {
    let ends: EndsFunction = match set {
        #[cfg(target_arch = "x86_64")]
        InstructionSet::Sse2 => |table, text, start, limit, ends| {
            window::ends::<R, _>(simd::Sse2, table, text, start, limit, ends);
        },
        #[cfg(target_arch = "x86_64")]
        InstructionSet::Avx2 => |table, text, start, limit, ends| match simd::Avx2::detect() {
            Some(avx2) => avx2.ends::<R>(table, text, start, limit, ends),
            None => window::ends::<R, _>(Portable, table, text, start, limit, ends),
        },
        _ => |table, text, start, limit, ends| {
            window::ends::<R, _>(Portable, table, text, start, limit, ends);
        },
    };
    (scalar::end::<R>, ends)
}

//! The fast engine: the known families by class masks over 64 bytes at a time.
//!
//! | module | what it does |
//! |---|---|
//! | `rules` | where the families differ, as constants |
//! | `deepseek` | the family whose rules are others |
//! | `table` | the class of every character |
//! | `masks` | which of 64 bytes are of which class of ASCII, without SIMD |
//! | `simd` | the same with the instructions of x86-64; the only `unsafe` |
//! | `window` | from masks to boundaries |
//! | `scalar` | one pre-token, character by character |

mod deepseek;
mod masks;
mod rules;
mod scalar;
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod simd;
mod table;
mod window;

use core::ops::Range;

use deepseek::DeepseekV3;
use masks::Portable;
use rules::{
    Cl100k, Cl100kOfTiktoken, DigitGroupsThenGpt2, Gpt2, O200k, Qwen2, SingleDigitsThenGpt2, Tekken,
};
use table::{ClassTable, NUMBER};
use window::Lexing;

use crate::lexer::to_boundary;
use crate::{Family, LexError, Lexer, Pattern, PatternError};

/// The fast engine: the known families by class masks over 64 bytes at a time.
///
/// Useful wherever a known pattern runs; [`Engine::Auto`](crate::Engine::Auto) takes it for these.
/// Not useful for other patterns. Its speed is that of
/// [`pre_token_ends`](Lexer::pre_token_ends), which finds many pre-tokens in a call;
/// [`next_pre_token`](Lexer::next_pre_token) goes character by character.
///
/// A [`Spanner`](crate::Spanner) runs the three stages of deepseek_v3 in one pass, and digits with gpt2 behind
/// them. The parts of these that are never alone (digits, Han and kana, the last stage of deepseek_v3) go
/// character by character here.
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
    /// The stages that it runs in one pass.
    families: &'static [Family],
    set: InstructionSet,
    find: Find,
}

#[derive(Clone, Copy)]
enum Find {
    /// Pre-tokens cover every text.
    Pieces {
        end: EndFunction,
        ends: EndsFunction,
    },
    /// They leave gaps.
    Matches(MatchFunction),
}

/// Table, text, start; returns the end of the pre-token there.
type EndFunction = fn(&ClassTable, &[u8], usize) -> usize;
/// Table, text, start, limit; appends the ends of pre-tokens.
type EndsFunction = fn(&ClassTable, &[u8], usize, usize, &mut Vec<usize>);
/// Table, text, start; returns the end of the pre-token there, if there is one.
type MatchFunction = fn(&ClassTable, &[u8], usize) -> Option<usize>;

/// The stages of deepseek_v3, which one pass finds.
const DEEPSEEK_V3: [Family; 3] = [Family::DigitGroups, Family::HanAndKana, Family::DeepseekV3];

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
    /// AVX-512 F, BW and VBMI2 besides, on x86-64 since about 2019.
    Avx512,
}

impl InstructionSet {
    /// Returns those that this processor has, the slowest first.
    pub fn available() -> Vec<Self> {
        let all = [Self::Portable, Self::Sse2, Self::Avx2, Self::Avx512];
        all.into_iter().filter(|set| set.is_available()).collect()
    }

    /// Returns the fastest of these.
    pub fn best() -> Self {
        Self::available().pop().unwrap_or(Self::Portable)
    }

    #[cfg(target_arch = "x86_64")]
    fn is_available(self) -> bool {
        match self {
            Self::Portable | Self::Sse2 => true,
            Self::Avx2 => simd::Avx2::detect().is_some(),
            Self::Avx512 => simd::Avx512::detect().is_some(),
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
        Self::with_instructions(pattern, InstructionSet::best())
    }

    /// As [`FastLexer::new`], with these instructions: to compare them.
    ///
    /// # Errors
    ///
    /// The pattern is none of those that this engine knows, or this processor does not have the
    /// instructions.
    pub fn with_instructions(pattern: &Pattern, set: InstructionSet) -> Result<Self, PatternError> {
        let family = pattern.family();
        let families = Family::ALL.iter().position(|known| Some(*known) == family);
        let families = families.and_then(|place| Family::ALL.get(place..=place));
        Self::of_families(families.ok_or_else(unknown)?, set)
    }

    /// Returns a lexer that cuts in one pass as these stages do one after the other, if there is such a one.
    pub(crate) fn of_stages(stages: &[Box<dyn Lexer>]) -> Option<Self> {
        use Family::{DigitGroups, Gpt2, SingleDigits};
        const SEQUENCES: [&[Family]; 3] =
            [&DEEPSEEK_V3, &[DigitGroups, Gpt2], &[SingleDigits, Gpt2]];
        let mut sequences = SEQUENCES.into_iter();
        let lexers: Option<Vec<&Self>> = stages.iter().map(|stage| stage.as_fast()).collect();
        let lexers = lexers?;
        let families = sequences.find(|families| {
            let of_lexers = lexers.iter().flat_map(|lexer| lexer.families);
            of_lexers.eq(families.iter())
        })?;
        let set = lexers.first()?.set;
        Self::of_families(families, set).ok()
    }

    fn of_families(families: &'static [Family], set: InstructionSet) -> Result<Self, PatternError> {
        if !set.is_available() {
            return Err(PatternError::unsupported(
                "fast",
                format_args!("this processor does not have {set:?}"),
            ));
        }
        let find = match families {
            [Family::Gpt2] => pieces::<Gpt2>(set),
            [Family::Cl100k] => pieces::<Cl100k>(set),
            [Family::Cl100kOfTiktoken] => pieces::<Cl100kOfTiktoken>(set),
            [Family::O200k] => pieces::<O200k>(set),
            [Family::Qwen2] => pieces::<Qwen2>(set),
            [Family::Tekken] => pieces::<Tekken>(set),
            [Family::DigitGroups, Family::Gpt2] => pieces::<DigitGroupsThenGpt2>(set),
            [Family::SingleDigits, Family::Gpt2] => pieces::<SingleDigitsThenGpt2>(set),
            [Family::DigitGroups] => Find::Matches(numbers::<3>),
            [Family::SingleDigits] => Find::Matches(numbers::<1>),
            [Family::HanAndKana] => Find::Matches(han_and_kana),
            [Family::DeepseekV3] => Find::Matches(deepseek::third_stage),
            [Family::DigitGroups, Family::HanAndKana, Family::DeepseekV3] => {
                pieces::<DeepseekV3>(set)
            }
            _ => return Err(unknown()),
        };
        Ok(Self {
            table: ClassTable::get(),
            families,
            set,
            find,
        })
    }

    /// Are some of the pre-tokens of several stages none of the last stage, but text between those?
    pub(crate) fn has_gaps_among_pieces(&self) -> bool {
        *self.families == DEEPSEEK_V3
    }

    /// Is this pre-token one of them?
    pub(crate) fn is_gap(&self, piece: &[u8]) -> bool {
        self.has_gaps_among_pieces() && deepseek::is_gap(self.table, piece)
    }

    fn next(&self, segment: &str, start: usize) -> Option<Range<usize>> {
        let text = segment.as_bytes();
        let mut start = to_boundary(segment, start);
        while start < text.len() {
            let end = match self.find {
                // Every character is white space, a letter, a number or none of them, so some branch of
                // each of these families always matches.
                Find::Pieces { end, .. } => Some(end(self.table, text, start)),
                Find::Matches(end) => end(self.table, text, start),
            };
            if let Some(end) = end {
                return Some(start..end);
            }
            start = to_boundary(segment, start + 1);
        }
        None
    }

    /// As [`Lexer::pre_token_ends`]: ascending ends of whole characters, whatever a caller's lexer that has this one
    /// inside may do.
    pub(crate) fn ends(
        &self,
        segment: &str,
        start: usize,
        limit: usize,
        ends: &mut Vec<usize>,
    ) -> Option<Range<usize>> {
        let text = segment.as_bytes();
        let mut start = to_boundary(segment, start);
        let find = match self.find {
            Find::Pieces { ends: find, .. } => {
                find(self.table, text, start, limit, ends);
                return None;
            }
            Find::Matches(find) => find,
        };
        for _ in 0..limit {
            match find(self.table, text, start) {
                Some(end) => start = end,
                None => return self.next(segment, start),
            }
            ends.push(start);
        }
        None
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
            .field("families", &self.families)
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
        Ok(self.next(segment, start))
    }

    fn pre_token_ends(
        &mut self,
        segment: &str,
        start: usize,
        limit: usize,
        ends: &mut Vec<usize>,
    ) -> Result<Option<Range<usize>>, LexError> {
        Ok(self.ends(segment, start, limit, ends))
    }

    fn as_fast(&self) -> Option<&FastLexer> {
        Some(self)
    }

    fn clone_box(&self) -> Box<dyn Lexer> {
        Box::new(self.clone())
    }
}

fn unknown() -> PatternError {
    PatternError::unsupported("fast", "the pattern is of no family that it knows")
}

fn pieces<L: Lexing>(set: InstructionSet) -> Find {
    let ends: EndsFunction = match set {
        #[cfg(target_arch = "x86_64")]
        InstructionSet::Sse2 => |table, text, start, limit, ends| {
            window::ends::<L, _>(simd::Sse2, table, text, start, limit, ends);
        },
        #[cfg(target_arch = "x86_64")]
        InstructionSet::Avx2 => |table, text, start, limit, ends| match simd::Avx2::detect() {
            Some(avx2) => avx2.ends::<L>(table, text, start, limit, ends),
            None => window::ends::<L, _>(Portable, table, text, start, limit, ends),
        },
        #[cfg(target_arch = "x86_64")]
        InstructionSet::Avx512 => |table, text, start, limit, ends| match simd::Avx512::detect() {
            Some(avx512) => avx512.ends::<L>(table, text, start, limit, ends),
            None => window::ends::<L, _>(Portable, table, text, start, limit, ends),
        },
        _ => |table, text, start, limit, ends| {
            window::ends::<L, _>(Portable, table, text, start, limit, ends);
        },
    };
    Find::Pieces { end: L::end, ends }
}

/// Up to `MOST` numbers.
fn numbers<const MOST: usize>(table: &ClassTable, text: &[u8], start: usize) -> Option<usize> {
    let mut end = start;
    for _ in 0..MOST {
        match table.at(text, end) {
            Some((NUMBER, length)) => end += length,
            _ => break,
        }
    }
    (end > start).then_some(end)
}

/// A run of characters of the second stage of deepseek_v3, all of which have three bytes.
fn han_and_kana(_: &ClassTable, text: &[u8], start: usize) -> Option<usize> {
    let mut end = start;
    while deepseek::is_han_or_kana(text, end) {
        end += 3;
    }
    (end > start).then_some(end)
}

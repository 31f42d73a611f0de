//! The known patterns written out by hand, one function per branch.
//!
//! Written to be read beside the regular expression, not to be fast. Each branch is a function
//! from a start to the end of its match; a branch that gives something back ("backtracks") has
//! a loop that tries the longest first. A pattern is the first of its branches that matches.

use core::ops::Range;

use crate::classes::Classes;
use crate::lexer::{char_at, to_boundary};
use crate::{Family, LexError, Lexer, Pattern, PatternError};

/// The known patterns, transcribed by hand.
///
/// Useful as a second oracle beside [`ReferenceLexer`](crate::ReferenceLexer) (it never gives
/// up), and where a build has no regex engine at all. Not useful for speed, nor for other
/// patterns.
///
/// Each call takes time linear in the characters it looks at, and looks at no more than the
/// pre-token, the character after it, and, in o200k, the capitals after it. No allocation.
#[derive(Clone)]
pub struct TranscribedLexer {
    classes: &'static Classes,
    family: Family,
}

impl TranscribedLexer {
    /// Returns a lexer for a pattern of a known family.
    ///
    /// # Errors
    ///
    /// The pattern is none of the known ones.
    pub fn new(pattern: &Pattern) -> Result<Self, PatternError> {
        let family = pattern.family().ok_or_else(|| {
            PatternError::unsupported("transcription", "it knows the families only")
        })?;
        Ok(Self {
            classes: Classes::get(),
            family,
        })
    }
}

impl core::fmt::Debug for TranscribedLexer {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        formatter
            .debug_struct("TranscribedLexer")
            .field("family", &self.family)
            .finish_non_exhaustive()
    }
}

impl Lexer for TranscribedLexer {
    fn next_pre_token(
        &mut self,
        segment: &str,
        start: usize,
    ) -> Result<Option<Range<usize>>, LexError> {
        let mut at = At {
            classes: self.classes,
            segment,
            start: to_boundary(segment, start),
        };
        // Patterns that do not match here are tried one character later.
        while let Some(character) = at.char() {
            let end = match self.family {
                Family::Gpt2 => gpt2(at),
                Family::Cl100k => cl100k(at),
                Family::Cl100kOfTiktoken => cl100k_of_tiktoken(at),
                Family::O200k => o200k(at),
                Family::Qwen2 => qwen2(at),
                Family::Tekken => tekken(at),
                Family::DigitGroups => up_to_three_numbers(at),
                Family::SingleDigits => one_number(at),
                Family::HanAndKana => at.some(is_han_or_kana),
                Family::DeepseekV3 => deepseek_v3(at),
            };
            if let Some(end) = end {
                return Ok(Some(at.start..end));
            }
            at = at.after(character);
        }
        Ok(None)
    }

    fn clone_box(&self) -> Box<dyn Lexer> {
        Box::new(self.clone())
    }
}

/// `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
fn gpt2(at: At<'_>) -> Option<usize> {
    contraction_in_lower_case(at)
        .or_else(|| blank_and_letters(at))
        .or_else(|| blank_and_numbers(at))
        .or_else(|| blank_and_others(at))
        .or_else(|| white_space_before_white_space(at))
        .or_else(|| white_space(at))
}

/// `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
fn cl100k(at: At<'_>) -> Option<usize> {
    contraction_in_any_case(at)
        .or_else(|| prefix_and_letters(at))
        .or_else(|| up_to_three_numbers(at))
        .or_else(|| blank_and_others_and(at, is_newline))
        .or_else(|| newlines(at))
        .or_else(|| white_space_before_white_space(at))
        .or_else(|| white_space(at))
}

/// `'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s`
fn cl100k_of_tiktoken(at: At<'_>) -> Option<usize> {
    contraction_in_any_case(at)
        // No letter is a prefix, so the prefix has nothing to give back.
        .or_else(|| prefix_and_letters(at))
        .or_else(|| up_to_three_numbers(at))
        .or_else(|| blank_and_others_and(at, is_newline))
        .or_else(|| white_space(at).filter(|&end| end == at.segment.len()))
        // `\s*[\r\n]` takes all white space up to the last newline, as `\s*[\r\n]+` does.
        .or_else(|| newlines(at))
        .or_else(|| white_space_before_white_space(at))
        .or_else(|| {
            at.char()
                .filter(|&c| at.is_white(c))
                .map(|c| at.after(c).start)
        })
}

/// `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
fn qwen2(at: At<'_>) -> Option<usize> {
    contraction_in_any_case(at)
        .or_else(|| prefix_and_letters(at))
        .or_else(|| one_number(at))
        .or_else(|| blank_and_others_and(at, is_newline))
        .or_else(|| newlines(at))
        .or_else(|| white_space_before_white_space(at))
        .or_else(|| white_space(at))
}

/// The two word branches without contractions, then
/// `\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`
fn tekken(at: At<'_>) -> Option<usize> {
    word_that_ends_in_lower_case(at, At::without_contraction)
        .or_else(|| word_that_starts_in_upper_case(at, At::without_contraction))
        .or_else(|| one_number(at))
        .or_else(|| blank_and_others_and(at, |c| is_newline(c) || c == '/'))
        .or_else(|| newlines(at))
        .or_else(|| white_space_before_white_space(at))
        .or_else(|| white_space(at))
}

/// ``[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+``
fn deepseek_v3(at: At<'_>) -> Option<usize> {
    ascii_punctuation_and_letters(at)
        .or_else(|| {
            let is_word = |c| at.is_letter(c) || at.is_mark(c);
            let is_prefix = |c| !is_newline(c) && !at.is_letter(c) && !at.is_symbol(c);
            with_and_without(at, is_prefix, |at| at.some(is_word))
        })
        .or_else(|| {
            let symbols = |at: At<'_>| at.some(|c| at.is_symbol(c));
            let end = with_and_without(at, |c| c == ' ', symbols)?;
            Some(at.moved_to(end).any(is_newline))
        })
        .or_else(|| newlines(at))
        .or_else(|| white_space_before_white_space(at))
        .or_else(|| white_space(at))
}

/// The two word branches, then
/// `\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`
fn o200k(at: At<'_>) -> Option<usize> {
    word_that_ends_in_lower_case(at, At::with_contraction)
        .or_else(|| word_that_starts_in_upper_case(at, At::with_contraction))
        .or_else(|| up_to_three_numbers(at))
        .or_else(|| blank_and_others_and(at, |c| is_newline(c) || c == '/'))
        .or_else(|| newlines(at))
        .or_else(|| white_space_before_white_space(at))
        .or_else(|| white_space(at))
}

/// `'s|'t|'re|'ve|'m|'ll|'d`
fn contraction_in_lower_case(at: At<'_>) -> Option<usize> {
    let rest = at.rest();
    ["'s", "'t", "'re", "'ve", "'m", "'ll", "'d"]
        .iter()
        .find(|contraction| rest.starts_with(**contraction))
        .map(|contraction| at.start + contraction.len())
}

/// `(?i:'s|'t|'re|'ve|'m|'ll|'d)`
fn contraction_in_any_case(at: At<'_>) -> Option<usize> {
    ["'s", "'t", "'re", "'ve", "'m", "'ll", "'d"]
        .iter()
        .find_map(|contraction| {
            let mut position = at;
            for expected in contraction.chars() {
                let found = position.char()?;
                if fold(found) != expected {
                    return None;
                }
                position = position.after(found);
            }
            Some(position.start)
        })
}

/// ` ?\p{L}+`
fn blank_and_letters(at: At<'_>) -> Option<usize> {
    with_and_without(at, |c| c == ' ', |at| at.some(|c| at.is_letter(c)))
}

/// ` ?\p{N}+`
fn blank_and_numbers(at: At<'_>) -> Option<usize> {
    with_and_without(at, |c| c == ' ', |at| at.some(|c| at.is_number(c)))
}

/// ` ?[^\s\p{L}\p{N}]+`
fn blank_and_others(at: At<'_>) -> Option<usize> {
    with_and_without(at, |c| c == ' ', |at| at.some(|c| at.is_other(c)))
}

/// ` ?[^\s\p{L}\p{N}]+` and then any number of `after`
fn blank_and_others_and(at: At<'_>, after: impl Fn(char) -> bool) -> Option<usize> {
    let end = blank_and_others(at)?;
    Some(at.moved_to(end).any(after))
}

/// `[^\r\n\p{L}\p{N}]?\p{L}+`
fn prefix_and_letters(at: At<'_>) -> Option<usize> {
    with_and_without(at, |c| at.is_prefix(c), |at| at.some(|c| at.is_letter(c)))
}

/// `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?`
fn word_that_ends_in_lower_case<'t>(
    at: At<'t>,
    and_then: impl Fn(At<'t>) -> usize,
) -> Option<usize> {
    with_and_without(
        at,
        |c| at.is_prefix(c),
        |at| {
            // The upper-case part takes all it can, then gives back one character at a time.
            let mut middle = at.any(|c| at.is_upper(c));
            loop {
                if let Some(end) = at.moved_to(middle).some(|c| at.is_lower(c)) {
                    return Some(and_then(at.moved_to(end)));
                }
                middle = at.before(middle)?;
            }
        },
    )
}

/// `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?`
fn word_that_starts_in_upper_case<'t>(
    at: At<'t>,
    and_then: impl Fn(At<'t>) -> usize,
) -> Option<usize> {
    with_and_without(
        at,
        |c| at.is_prefix(c),
        |at| {
            // What follows the upper-case part can match nothing, so it never fails, and the
            // upper-case part gives nothing back.
            let middle = at.some(|c| at.is_upper(c))?;
            let end = at.moved_to(middle).any(|c| at.is_lower(c));
            Some(and_then(at.moved_to(end)))
        },
    )
}

/// `\p{N}{1,3}`
fn up_to_three_numbers(at: At<'_>) -> Option<usize> {
    let mut position = at;
    for _ in 0..3 {
        match position.char() {
            Some(number) if at.is_number(number) => position = position.after(number),
            _ => break,
        }
    }
    (position.start > at.start).then_some(position.start)
}

/// `\p{N}`
fn one_number(at: At<'_>) -> Option<usize> {
    let number = at.char().filter(|&c| at.is_number(c))?;
    Some(at.after(number).start)
}

/// ``[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+``
fn ascii_punctuation_and_letters(at: At<'_>) -> Option<usize> {
    let punctuation = at.char().filter(char::is_ascii_punctuation)?;
    at.after(punctuation).some(|c| c.is_ascii_alphabetic())
}

/// `\s*[\r\n]+`
fn newlines(at: At<'_>) -> Option<usize> {
    // The white space takes all it can, newlines too, then gives back one character at a time
    // until newlines follow.
    let mut middle = at.any(|c| at.is_white(c));
    loop {
        if let Some(end) = at.moved_to(middle).some(is_newline) {
            return Some(end);
        }
        middle = at.before(middle)?;
    }
}

/// `\s+(?!\S)`
fn white_space_before_white_space(at: At<'_>) -> Option<usize> {
    let mut end = at.some(|c| at.is_white(c))?;
    // Gives back one character at a time until no other character follows.
    loop {
        match at.moved_to(end).char() {
            Some(next) if !at.is_white(next) => {}
            _ => return Some(end),
        }
        end = at.before(end)?;
        if end == at.start {
            return None;
        }
    }
}

/// `\s+`
fn white_space(at: At<'_>) -> Option<usize> {
    at.some(|c| at.is_white(c))
}

/// An optional character of the class `optional`, then `rest`: first with it, then without.
fn with_and_without<'t>(
    at: At<'t>,
    optional: impl Fn(char) -> bool,
    rest: impl Fn(At<'t>) -> Option<usize>,
) -> Option<usize> {
    let with = match at.char() {
        Some(first) if optional(first) => rest(at.after(first)),
        _ => None,
    };
    with.or_else(|| rest(at))
}

/// Simple case folding, as far as the contractions need it: of the characters outside ASCII
/// only U+017F, the long s, folds to one of their letters.
fn fold(character: char) -> char {
    match character {
        '\u{17F}' => 's',
        other => other.to_ascii_lowercase(),
    }
}

fn is_han_or_kana(character: char) -> bool {
    matches!(character, '\u{4E00}'..='\u{9FA5}' | '\u{3040}'..='\u{309F}' | '\u{30A0}'..='\u{30FF}')
}

fn is_newline(character: char) -> bool {
    character == '\r' || character == '\n'
}

/// A place in a segment.
#[derive(Clone, Copy)]
struct At<'t> {
    classes: &'static Classes,
    segment: &'t str,
    start: usize,
}

impl<'t> At<'t> {
    fn rest(self) -> &'t str {
        self.segment.get(self.start..).unwrap_or("")
    }

    fn char(self) -> Option<char> {
        char_at(self.segment, self.start)
    }

    fn moved_to(self, start: usize) -> Self {
        Self { start, ..self }
    }

    fn after(self, character: char) -> Self {
        self.moved_to(self.start + character.len_utf8())
    }

    /// The position one character before `position`, unless that is before this place.
    fn before(self, position: usize) -> Option<usize> {
        let last = self
            .segment
            .get(self.start..position)?
            .chars()
            .next_back()?;
        Some(position - last.len_utf8())
    }

    /// The end of the longest run of `class` from here, which may be empty: `[class]*`.
    fn any(self, class: impl Fn(char) -> bool) -> usize {
        let rest = self.rest();
        self.start + rest.find(|c| !class(c)).unwrap_or(rest.len())
    }

    /// The end of the longest run of `class` from here, not empty: `[class]+`.
    fn some(self, class: impl Fn(char) -> bool) -> Option<usize> {
        let end = self.any(class);
        (end > self.start).then_some(end)
    }

    /// The end of a contraction that stands here, or this place.
    fn with_contraction(self) -> usize {
        contraction_in_any_case(self).unwrap_or(self.start)
    }

    /// This place: the branch of a word without what may follow it in o200k.
    fn without_contraction(self) -> usize {
        self.start
    }

    /// `\p{M}`
    fn is_mark(self, character: char) -> bool {
        self.classes.mark.contains(character)
    }

    /// `[\p{P}\p{S}]`
    fn is_symbol(self, character: char) -> bool {
        self.classes.symbol.contains(character)
    }

    fn is_letter(self, character: char) -> bool {
        self.classes.letter.contains(character)
    }

    fn is_number(self, character: char) -> bool {
        self.classes.number.contains(character)
    }

    fn is_white(self, character: char) -> bool {
        self.classes.white.contains(character)
    }

    fn is_upper(self, character: char) -> bool {
        self.classes.upper.contains(character)
    }

    fn is_lower(self, character: char) -> bool {
        self.classes.lower.contains(character)
    }

    /// `[^\s\p{L}\p{N}]`
    fn is_other(self, character: char) -> bool {
        !self.is_white(character) && !self.is_letter(character) && !self.is_number(character)
    }

    /// `[^\r\n\p{L}\p{N}]`
    fn is_prefix(self, character: char) -> bool {
        !is_newline(character) && !self.is_letter(character) && !self.is_number(character)
    }
}

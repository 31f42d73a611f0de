//! The engine on logos: DFAs that were made when this library was compiled.

use core::ops::Range;

use bpe_lexers_logos::{Role, cl100k, cl100k_tokens, gpt2, gpt2_tokens, o200k, o200k_tokens};

use crate::lexer::to_boundary;
use crate::{Family, LexError, Lexer, Pattern, PatternError, contraction};

/// The engine on logos: DFAs for the known families, made at compile time (001, section 5.3).
///
/// Useful where a known pattern is to run at a good speed without SIMD and without any table that
/// is made at run time. Not useful for other patterns.
/// Compiling it takes minutes, so the crate feature `logos` is not on by default.
///
/// Making one costs nothing. [`pre_token_ends`](Lexer::pre_token_ends) runs on from token to token. A call takes
/// time linear in the bytes it looks at: the pre-token, white space after it and, in o200k, the capitals after
/// it. No allocation.
///
/// # From the longest match to the first match
///
/// A DFA of logos returns the longest token, and cannot look ahead. The tokens of the crate
/// `bpe-lexers-logos` are written such that the longest is the pattern's first match wherever two
/// branches could compete; two roles remain, which are the same for all families:
///
/// * *Blanks*: white space that stands for `\s+(?!\S)|\s+`. It is cut as
///   [`AutomataLexer`](crate::AutomataLexer) cuts it: before anything but the segment's end, two
///   or more characters lose the last.
/// * *Apostrophe*: an apostrophe and letters, in cl100k. Contractions are its first branch, so a
///   contraction at the start is the pre-token, else all of it is a word.
#[derive(Clone)]
pub struct LogosLexer {
    token: fn(&str) -> Option<(usize, Role)>,
    tokens: Tokens,
    family: Family,
}

/// Many tokens in one call: text, where they start, how many, their ends.
type Tokens = fn(&str, usize, usize, &mut Vec<usize>) -> Option<(usize, Role)>;

impl LogosLexer {
    /// Returns a lexer for a pattern of a known family.
    ///
    /// # Errors
    ///
    /// The pattern is none of those that were compiled.
    pub fn new(pattern: &Pattern) -> Result<Self, PatternError> {
        let unknown = || PatternError::unsupported("logos", "it knows gpt2, cl100k and o200k only");
        let family = pattern.family().ok_or_else(unknown)?;
        let (token, tokens): (fn(&str) -> _, Tokens) = match family {
            Family::Gpt2 => (gpt2, gpt2_tokens),
            Family::Cl100k => (cl100k, cl100k_tokens),
            Family::O200k => (o200k, o200k_tokens),
            _ => return Err(unknown()),
        };
        Ok(Self {
            token,
            tokens,
            family,
        })
    }
}

impl core::fmt::Debug for LogosLexer {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        formatter
            .debug_struct("LogosLexer")
            .field("family", &self.family)
            .finish_non_exhaustive()
    }
}

impl Lexer for LogosLexer {
    fn next_pre_token(
        &mut self,
        segment: &str,
        start: usize,
    ) -> Result<Option<Range<usize>>, LexError> {
        let start = to_boundary(segment, start);
        let rest = segment.get(start..).unwrap_or_default();
        if rest.is_empty() {
            return Ok(None);
        }
        // Every character begins a token of each family.
        let (length, role) =
            (self.token)(rest).ok_or_else(|| LexError::engine(start, "no token matches"))?;
        Ok(Some(start..start + pre_token(rest, length, role)))
    }

    fn pre_token_ends(
        &mut self,
        segment: &str,
        start: usize,
        limit: usize,
        ends: &mut Vec<usize>,
    ) -> Result<Option<Range<usize>>, LexError> {
        let most = ends.len().saturating_add(limit);
        let mut position = to_boundary(segment, start);
        while ends.len() < most && position < segment.len() {
            let before = ends.len();
            let stopped = (self.tokens)(segment, position, most - before, ends);
            if ends.len() > before {
                position = ends.last().copied().unwrap_or(position);
            }
            match stopped {
                Some((length, role)) => {
                    let rest = segment.get(position..).unwrap_or_default();
                    position += pre_token(rest, length, role);
                    ends.push(position);
                }
                None if ends.len() < most && position < segment.len() => {
                    return Err(LexError::engine(position, "no token matches"));
                }
                None => {}
            }
        }
        Ok(None)
    }

    fn clone_box(&self) -> Box<dyn Lexer> {
        Box::new(self.clone())
    }
}

/// The length of the pre-token at the start of `rest`, whose token has this length and role.
#[inline]
fn pre_token(rest: &str, length: usize, role: Role) -> usize {
    match role {
        Role::Whole => length,
        Role::Blanks => first_blanks(rest, length),
        Role::Apostrophe => {
            match contraction::in_any_case(rest.as_bytes().get(1..).unwrap_or_default()) {
                0 => length,
                letters => 1 + letters,
            }
        }
    }
}

/// The length of the pre-token at the start of `rest`, which begins with `length` bytes of white
/// space: all of them, but for the last character if there are two or more and something follows.
#[inline]
fn first_blanks(rest: &str, length: usize) -> usize {
    if length == rest.len() {
        return length;
    }
    let last = rest
        .get(..length)
        .and_then(|blanks| blanks.chars().next_back());
    match last {
        Some(last) if length > last.len_utf8() => length - last.len_utf8(),
        _ => length,
    }
}

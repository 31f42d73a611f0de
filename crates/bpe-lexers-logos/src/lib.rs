//! The compile-time DFAs of the crate `bpe-lexers`, made by [logos](https://docs.rs/logos) (seed
//! 001, section 5.3).
//!
//! A crate of its own, because logos turns each DFA into some thousand functions, which take a
//! minute to compile; so a change elsewhere does not compile them again. `bpe_lexers::LogosLexer` is
//! the engine that uses them, and the place that says why its pre-tokens are those of the regular
//! expressions.
//!
//! Each family of patterns is a function from a text to the token that stands at its start: how
//! many bytes it has, and its [`Role`].
//!
//! ```
//! use bpe_lexers_logos::{Role, cl100k};
//!
//! assert_eq!(cl100k("Hello, world"), Some((5, Role::Whole)));
//! assert_eq!(cl100k("'twas"), Some((5, Role::Apostrophe)));
//! assert_eq!(cl100k("   here"), Some((3, Role::Blanks)));
//! assert_eq!(cl100k(""), None);
//! ```
//!
//! # Why the tokens are not the branches
//!
//! The branches of a pattern are tried in turn and the first that matches counts; logos takes the
//! longest match. So the branches are written such that no two of them compete, but where a
//! [`Role`] says so:
//!
//! * In cl100k an apostrophe and letters are a contraction first, a word second, and the word is
//!   the longer one: these are one token with the role [`Apostrophe`](Role::Apostrophe).
//! * In o200k a mark is part of a word, and of a run of punctuation too. A run that begins with
//!   a mark, or with one character and a mark, is a word first, but the run may be longer. So the
//!   runs here do not begin in that way.
//! * In o200k the second word branch (`U+L*`, U the upper and caseless classes, L the lower and
//!   caseless ones) counts only where the first (`U*L+`) does not match at all: where U+ has no
//!   caseless character and no lower-case one follows. So it is `[\p{Lu}\p{Lt}]+` here, and not
//!   behind a mark, which is a match of the first by itself.
//! * `\s+(?!\S)` needs a look-ahead. `\s+` stands for it, with the role [`Blanks`](Role::Blanks);
//!   where newlines end the run, `\s*[\r\n]+` is the longer match, and the earlier branch.

#![forbid(unsafe_code)]

use logos::Logos;

/// What is still to be done with a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Nothing: it is a pre-token.
    Whole,
    /// White space: before anything but the end of the segment, its last character belongs to what
    /// follows, if it has two or more.
    Blanks,
    /// An apostrophe and letters: a contraction, if one stands at its start, else a word.
    Apostrophe,
}

/// Returns the length in bytes and the role of the token of gpt2 at the start of `text`; `None` if
/// the text is empty. Linear in the bytes it looks at: the token, and a character after it.
pub fn gpt2(text: &str) -> Option<(usize, Role)> {
    first::<Gpt2>(text)
}

/// Returns the length in bytes and the role of the token of cl100k at the start of `text`; `None`
/// if the text is empty. Linear in the bytes it looks at: the token, and white space after it.
pub fn cl100k(text: &str) -> Option<(usize, Role)> {
    first::<Cl100k>(text)
}

/// Returns the length in bytes and the role of the token of o200k at the start of `text`; `None`
/// if the text is empty. Linear in the bytes it looks at: the token, and white space or capitals
/// after it.
pub fn o200k(text: &str) -> Option<(usize, Role)> {
    first::<O200k>(text)
}

/// Appends to `ends` where the tokens of gpt2 end that follow each other from byte `start` of `text` on, up to
/// `limit` of them, and stops at the first whose role is not [`Role::Whole`]: that one's length and role are
/// returned and not appended. One automaton runs on from token to token.
///
/// ```
/// use bpe_lexers_logos::{Role, gpt2_tokens};
///
/// let mut ends = Vec::new();
/// let stopped = gpt2_tokens("one two  three", 0, 100, &mut ends);
/// assert_eq!((ends, stopped), (vec![3, 7], Some((2, Role::Blanks))));
/// ```
pub fn gpt2_tokens(
    text: &str,
    start: usize,
    limit: usize,
    ends: &mut Vec<usize>,
) -> Option<(usize, Role)> {
    tokens::<Gpt2>(text, start, limit, ends)
}

/// As [`gpt2_tokens`], of cl100k.
pub fn cl100k_tokens(
    text: &str,
    start: usize,
    limit: usize,
    ends: &mut Vec<usize>,
) -> Option<(usize, Role)> {
    tokens::<Cl100k>(text, start, limit, ends)
}

/// As [`gpt2_tokens`], of o200k.
pub fn o200k_tokens(
    text: &str,
    start: usize,
    limit: usize,
    ends: &mut Vec<usize>,
) -> Option<(usize, Role)> {
    tokens::<O200k>(text, start, limit, ends)
}

#[inline]
fn tokens<'t, T>(
    text: &'t str,
    start: usize,
    limit: usize,
    ends: &mut Vec<usize>,
) -> Option<(usize, Role)>
where
    T: Logos<'t, Source = str, Extras = ()> + Into<Role>,
{
    let mut lexer = T::lexer(text.get(start..)?);
    for _ in 0..limit {
        match lexer.next()?.ok()?.into() {
            Role::Whole => ends.push(start + lexer.span().end),
            role => return Some((lexer.span().len(), role)),
        }
    }
    None
}

#[inline]
fn first<'t, T>(text: &'t str) -> Option<(usize, Role)>
where
    T: Logos<'t, Source = str, Extras = ()> + Into<Role>,
{
    let mut lexer = T::lexer(text);
    let token = lexer.next()?.ok()?;
    Some((lexer.span().end, token.into()))
}

/// `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
#[derive(Logos)]
enum Gpt2 {
    #[regex(r"'s|'t|'re|'ve|'m|'ll|'d")]
    #[regex(r" ?\p{L}+")]
    #[regex(r" ?\p{N}+")]
    #[regex(r" ?[^\s\p{L}\p{N}]+")]
    Whole,
    #[regex(r"\s+")]
    Blanks,
}

impl From<Gpt2> for Role {
    fn from(token: Gpt2) -> Self {
        match token {
            Gpt2::Whole => Self::Whole,
            Gpt2::Blanks => Self::Blanks,
        }
    }
}

/// `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
#[derive(Logos)]
enum Cl100k {
    #[regex(r"'\p{L}+")]
    Apostrophe,
    #[regex(r"[^\r\n\p{L}\p{N}']?\p{L}+")]
    #[regex(r"\p{N}{1,3}")]
    #[regex(r" ?[^\s\p{L}\p{N}]+[\r\n]*")]
    #[regex(r"\s*[\r\n]+")]
    Whole,
    #[regex(r"[\s--\r\n]+")]
    Blanks,
}

impl From<Cl100k> for Role {
    fn from(token: Cl100k) -> Self {
        match token {
            Cl100k::Apostrophe => Self::Apostrophe,
            Cl100k::Whole => Self::Whole,
            Cl100k::Blanks => Self::Blanks,
        }
    }
}

/// `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?`,
/// `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?`,
/// `\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`
#[derive(Logos)]
#[logos(subpattern upper = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]")]
#[logos(subpattern lower = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]")]
#[logos(subpattern contraction = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)")]
#[logos(subpattern other = r"[^\s\p{L}\p{N}]")]
#[logos(subpattern other_no_mark = r"[^\s\p{L}\p{N}\p{M}]")]
enum O200k {
    #[regex(r"[^\r\n\p{L}\p{N}]?(?&upper)*(?&lower)+(?&contraction)?")]
    // Competes with the first nowhere, but logos cannot know that without a priority.
    #[regex(
        r"[^\r\n\p{L}\p{N}\p{M}]?[\p{Lu}\p{Lt}]+(?&contraction)?",
        priority = 3
    )]
    #[regex(r"\p{N}{1,3}")]
    #[regex(
        r"(?&other_no_mark)((?&other_no_mark)(?&other)*)?[\r\n/]*",
        priority = 2
    )]
    #[regex(r" (?&other_no_mark)(?&other)*[\r\n/]*")]
    #[regex(r"\s*[\r\n]+")]
    Whole,
    #[regex(r"[\s--\r\n]+")]
    Blanks,
}

impl From<O200k> for Role {
    fn from(token: O200k) -> Self {
        match token {
            O200k::Whole => Self::Whole,
            O200k::Blanks => Self::Blanks,
        }
    }
}

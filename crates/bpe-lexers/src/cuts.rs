//! Safe cuts: places where a text can be cut in two and lexed in parts.
//!
//! # What is a cut, and why
//!
//! A place between two neighbouring characters `a` and `b` is a safe cut of a pattern if, in
//! every text that contains `ab`, the spans are those of the text up to `a` followed by those of
//! the text from `b`. For the known patterns some pairs of character classes always are:
//!
//! | | `a` | `b` | gpt2 | cl100k | o200k |
//! |---|---|---|---|---|---|
//! | 1 | letter, number | white space | yes | yes | yes |
//! | 2 | other, mark, `/` | white space but CR, LF | yes | yes | yes |
//! | 3 | letter | number, other, `/` | yes | yes | yes |
//! | 4 | letter | mark | yes | yes | no |
//! | 5 | number | letter, other, mark, `/` | yes | yes | yes |
//! | 6 | other, mark, `/` | number | yes | yes | yes |
//! | 7 | CR, LF | letter, number, other, mark | no | yes | yes |
//! | 8 | CR, LF | `/` | no | yes | no |
//! | 9 | other, mark, `/` | letter | yes | no | no |
//! | 10 | other, mark, `/` | CR, LF | yes | no | no |
//!
//! Letters are `\p{L}`, numbers `\p{N}`, marks `\p{M}`, white space `\s`; "other" is the rest
//! but `/`, which is named for o200k's sake, and the apostrophe, which is in no pair. (The list
//! is not complete. It has what ordinary text is full of.)
//!
//! **The argument.** Lexing depends only on what follows, from a boundary on: none of the
//! patterns looks back. So it is enough that from every start in the left part, `a` included,
//! the pattern matches the same with and without the right part. That holds if
//!
//! * (i) no branch, wherever in the left part it starts, takes `b` after having taken `a`. Then
//!   the ends that a branch can reach in the left part are the same in both texts, in the same
//!   order of preference: at `a`'s end the whole text offers a character that the branch cannot
//!   take, the left part offers none; and
//! * (ii) no branch asks, at the place between `a` and `b`, what follows. The only question in
//!   the patterns is `(?!\S)` after `\s+`, so it is asked there only if `a` is white space.
//!
//! (ii) holds in all rows but 7 and 8, since `a` is not white space. For those: a run of white
//! space that ends in the newline `a` is taken whole by `\s*[\r\n]+`, a branch before the one
//! that asks, in both texts, because no newline follows `a`.
//!
//! (i) goes through what a branch can have taken `a` with, and what that lets follow:
//!
//! * a letter: `\p{L}+`, or o200k's classes of letters and marks, or the last letter of a
//!   contraction, or the `r`, `v`, `l` inside one. What follows is a letter, in o200k a mark or
//!   an apostrophe: not `b` in rows 1, 3, 4.
//! * a number: `\p{N}+` or `\p{N}{1,3}`. What follows is a number: not `b` in rows 1 and 5.
//! * other, a mark, `/`: the run `[^\s\p{L}\p{N}]+`, then CR, LF (and `/`) in cl100k (o200k); or
//!   the optional character before a word, in cl100k and o200k, then a letter (or mark); or, of
//!   a mark in o200k, a word, then letters, marks and an apostrophe. What follows is one of
//!   these: not `b` in rows 2 and 6; in gpt2, where only the run exists, not in rows 9 and 10.
//! * CR, LF: after a run of others, then CR, LF (and `/` in o200k); or white space, then white
//!   space. The optional character before a word is never CR or LF. Not `b` in rows 7 and 8.
//!
//! The blank before a word or run is never `a`, since `a` is a blank in no row.

use crate::Family;
use crate::classes::Classes;

/// Returns the last byte offset `p`, `0 < p <= at_most`, at which `text` can be cut: the spans
/// of `text[..p]` followed by those of `text[p..]` are those of `text`, and of every text that
/// begins with `text`.
///
/// The pattern must be the one of `family`, as the only stage. A cut stands between two
/// characters that are valid UTF-8 and whole in `text`, so never at its end. `None` if no place
/// up to `at_most` is one that the [table](self) knows, as inside one long word.
///
/// Special tokens are the caller's business: the two characters must not belong to one, nor
/// must one stand across the cut.
///
/// Looks at the characters from `at_most` back to the cut; in ordinary text a few.
///
/// ```
/// use bpe_lexers::{Family, last_safe_cut};
///
/// let text = "One two three".as_bytes();
/// assert_eq!(last_safe_cut(Family::O200k, text, text.len()), Some(7));
/// assert_eq!(last_safe_cut(Family::O200k, text, 6), Some(3));
/// assert_eq!(last_safe_cut(Family::O200k, text, 2), None);
/// ```
pub fn last_safe_cut(family: Family, text: &[u8], at_most: usize) -> Option<usize> {
    let classes = Classes::get();
    let mut place = at_most.min(text.len());
    let mut after = char_from(text, place);
    loop {
        let before = char_up_to(text, place);
        if let (Some(a), Some(b)) = (before, after)
            && is_cut(family, Class::of(classes, a), Class::of(classes, b))
        {
            return Some(place);
        }
        place = place.checked_sub(before.map_or(1, char::len_utf8))?;
        // An invalid byte gives no character, and the bytes of a character that `at_most` or
        // the end of the text has cut give none either.
        after = match before {
            Some(a) => Some(a),
            None => char_from(text, place),
        };
    }
}

/// The classes of the table above.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Letter,
    Number,
    Mark,
    Newline,
    White,
    Slash,
    Apostrophe,
    Other,
}

impl Class {
    fn of(classes: &Classes, character: char) -> Self {
        match character {
            '\r' | '\n' => Self::Newline,
            '/' => Self::Slash,
            '\'' => Self::Apostrophe,
            c if classes.letter.contains(c) => Self::Letter,
            c if classes.number.contains(c) => Self::Number,
            c if classes.mark.contains(c) => Self::Mark,
            c if classes.white.contains(c) => Self::White,
            _ => Self::Other,
        }
    }
}

/// The table above, row by row.
fn is_cut(family: Family, a: Class, b: Class) -> bool {
    use Class::{Letter, Mark, Newline, Number, Other, Slash, White};
    let gpt2 = family == Family::Gpt2;
    let o200k = family == Family::O200k;
    if !gpt2 && !o200k && family != Family::Cl100k {
        return false;
    }
    match (a, b) {
        (Letter | Number, White | Newline) => true,
        (Other | Mark | Slash, White) => true,
        (Letter, Number | Other | Slash) => true,
        (Letter, Mark) => !o200k,
        (Number, Letter | Other | Mark | Slash) => true,
        (Other | Mark | Slash, Number) => true,
        (Newline, Letter | Number | Other | Mark) => !gpt2,
        (Newline, Slash) => !gpt2 && !o200k,
        (Other | Mark | Slash, Letter | Newline) => gpt2,
        _ => false,
    }
}

/// The character whose bytes start at `at`, if they are there and valid.
fn char_from(text: &[u8], at: usize) -> Option<char> {
    let window = text.get(at..text.len().min(at + 4))?;
    window.utf8_chunks().next()?.valid().chars().next()
}

/// The character whose bytes end at `at`, if they are there and valid.
///
/// UTF-8 needs no context: bytes that are a valid character are one wherever they stand.
fn char_up_to(text: &[u8], at: usize) -> Option<char> {
    (1..=at.min(4)).find_map(|length| {
        let bytes = text.get(at - length..at)?;
        let mut chars = core::str::from_utf8(bytes).ok()?.chars();
        chars.next()
    })
}

//! The seam between patterns and spans: the trait that every engine implements, and the choice
//! of an engine.

use core::ops::Range;
use core::panic::{RefUnwindSafe, UnwindSafe};

use crate::{FastLexer, Pattern, PatternError, TranscribedLexer};

/// Answers one question: where does the next pre-token stand?
///
/// A lexer owns the scratch memory of its engine, so there is one value per thread; a clone
/// ([`clone_box`](Lexer::clone_box)) shares the compiled tables and gets scratch memory of its
/// own. The other supertraits hold for every type without interior mutability; they let a
/// prototype be shared and cloned from several threads.
///
/// ```
/// use bpe_lexers::{Engine, Pattern};
///
/// let mut lexer = Pattern::gpt2().lexer(Engine::Auto)?;
/// let text = "Hello  world";
/// assert_eq!(lexer.next_pre_token(text, 0)?, Some(0..5));
/// assert_eq!(lexer.next_pre_token(text, 5)?, Some(5..6)); // one blank of two
/// assert_eq!(lexer.next_pre_token(text, 6)?, Some(6..12)); // " world"
/// assert_eq!(lexer.next_pre_token(text, 12)?, None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Lexer: Send + Sync + UnwindSafe + RefUnwindSafe {
    /// Returns the byte range of the first pre-token of `segment` at or after byte `start`, or
    /// `None` if the pattern matches no more.
    ///
    /// A segment is a stretch of text that is lexed alone: what stands between two special
    /// tokens or invalid parts, or a piece that an earlier stage has made. Look-ahead sees the
    /// end of the segment as the end of the text, and look-behind sees what stands before
    /// `start`.
    ///
    /// The range is never empty. A pattern of a user may match the empty string; such a match
    /// is no pre-token, and the search goes on one character later. A `start` inside a
    /// character counts as the next character boundary.
    ///
    /// # Errors
    ///
    /// The engine gives up; see the engines for when. The error's offset is `start`, or a later
    /// position that the search had reached.
    fn next_pre_token(
        &mut self,
        segment: &str,
        start: usize,
    ) -> Result<Option<Range<usize>>, crate::LexError>;

    /// Appends to `ends` the ends of the pre-tokens that follow each other without a gap from byte
    /// `start` on: `limit` of them, or a few more, or as many as there are.
    ///
    /// The same pre-tokens as [`next_pre_token`](Lexer::next_pre_token) finds one by one, for
    /// callers who want many: an engine that looks at many bytes at once need not throw away what it
    /// has seen. Where the pattern leaves a gap it stops, and may return the pre-token that it
    /// found beyond the gap. If it appends nothing and returns `None`, the pattern matches no more.
    ///
    /// # Errors
    ///
    /// As `next_pre_token`. What was appended before that place is right.
    ///
    /// ```
    /// use bpe_lexers::{Engine, Pattern};
    ///
    /// let mut lexer = Pattern::new(r"\w+|!").lexer(Engine::Auto)?;
    /// let mut ends = Vec::new();
    /// assert_eq!(lexer.pre_token_ends("One!! two", 0, 100, &mut ends)?, Some(6..9));
    /// assert_eq!(ends, [3, 4, 5]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    fn pre_token_ends(
        &mut self,
        segment: &str,
        start: usize,
        limit: usize,
        ends: &mut Vec<usize>,
    ) -> Result<Option<Range<usize>>, crate::LexError> {
        let mut position = to_boundary(segment, start);
        for _ in 0..limit {
            match self.next_pre_token(segment, position)? {
                Some(found) if found.start == position && !found.is_empty() => {
                    position = found.end;
                    ends.push(position);
                }
                beyond => return Ok(beyond),
            }
        }
        Ok(None)
    }

    /// Returns the fast engine, where this is it, so that a [`Spanner`](crate::Spanner) can run several
    /// stages in one pass. Others leave it at `None`.
    #[doc(hidden)]
    fn as_fast(&self) -> Option<&FastLexer> {
        None
    }

    /// Returns a lexer for another thread: the same tables, fresh scratch memory.
    fn clone_box(&self) -> Box<dyn Lexer>;
}

impl Clone for Box<dyn Lexer> {
    fn clone(&self) -> Self {
        (**self).clone_box()
    }
}

/// The ways to run a pattern. All of them find the same pre-tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Engine {
    /// The best engine that can run the pattern: [`Fast`](Engine::Fast), else
    /// [`Automata`](Engine::Automata), else [`Reference`](Engine::Reference), else [`Transcription`](Engine::Transcription), among
    /// those that are part of this build.
    #[default]
    Auto,
    /// [`FastLexer`]: class masks over 64 bytes at a time. The known families.
    Fast,
    /// `AutomataLexer`: a lazily built DFA. Fast and linear; no look-around but the usual
    /// trailing one.
    Automata,
    /// `LogosLexer`: compile-time DFAs of the known families.
    Logos,
    /// `ReferenceLexer`: a backtracking matcher. Any pattern; slow; may give up.
    Reference,
    /// [`TranscribedLexer`]: the known families by hand, one function per branch. An oracle.
    Transcription,
}

/// Returns a lexer that runs `pattern` on `engine`.
///
/// Costs some milliseconds with the automata, less with the others; make one and clone it.
///
/// # Errors
///
/// The pattern is malformed, or the engine cannot run it or is not part of this build.
///
/// ```
/// use bpe_lexers::{lexer, Engine, Pattern};
///
/// // A look-behind is beyond the automata; `Auto` takes the reference engine instead.
/// let pattern = Pattern::new(r"(?<=a)b|a");
/// assert!(lexer(&pattern, Engine::Automata).is_err());
/// # #[cfg(feature = "reference")]
/// assert!(lexer(&pattern, Engine::Auto).is_ok());
/// ```
pub fn lexer(pattern: &Pattern, engine: Engine) -> Result<Box<dyn Lexer>, PatternError> {
    match engine {
        Engine::Auto => automatic(pattern),
        Engine::Fast => fast(pattern),
        Engine::Automata => automata(pattern),
        Engine::Logos => logos(pattern),
        Engine::Reference => reference(pattern),
        Engine::Transcription => transcription(pattern),
    }
}

fn automatic(pattern: &Pattern) -> Result<Box<dyn Lexer>, PatternError> {
    if let Ok(lexer) = fast(pattern) {
        return Ok(lexer);
    }
    automata(pattern).or_else(|first| {
        reference(pattern).or_else(|second| {
            // The reference engine's reason counts, since it could have run any pattern.
            let reason = if cfg!(feature = "reference") {
                second
            } else {
                first
            };
            transcription(pattern).map_err(|_| reason)
        })
    })
}

fn fast(pattern: &Pattern) -> Result<Box<dyn Lexer>, PatternError> {
    Ok(Box::new(FastLexer::new(pattern)?))
}

#[cfg(feature = "automata")]
fn automata(pattern: &Pattern) -> Result<Box<dyn Lexer>, PatternError> {
    Ok(Box::new(crate::AutomataLexer::new(pattern)?))
}

#[cfg(not(feature = "automata"))]
fn automata(_: &Pattern) -> Result<Box<dyn Lexer>, PatternError> {
    Err(PatternError::not_built("automata"))
}

#[cfg(feature = "logos")]
fn logos(pattern: &Pattern) -> Result<Box<dyn Lexer>, PatternError> {
    Ok(Box::new(crate::LogosLexer::new(pattern)?))
}

#[cfg(not(feature = "logos"))]
fn logos(_: &Pattern) -> Result<Box<dyn Lexer>, PatternError> {
    Err(PatternError::not_built("logos"))
}

#[cfg(feature = "reference")]
fn reference(pattern: &Pattern) -> Result<Box<dyn Lexer>, PatternError> {
    Ok(Box::new(crate::ReferenceLexer::new(pattern)?))
}

#[cfg(not(feature = "reference"))]
fn reference(_: &Pattern) -> Result<Box<dyn Lexer>, PatternError> {
    Err(PatternError::not_built("reference"))
}

fn transcription(pattern: &Pattern) -> Result<Box<dyn Lexer>, PatternError> {
    Ok(Box::new(TranscribedLexer::new(pattern)?))
}

/// Returns `start`, moved forward to a character boundary.
pub(crate) fn to_boundary(segment: &str, start: usize) -> usize {
    segment.ceil_char_boundary(start)
}

/// Returns the character that starts at byte `at`, if there is one.
pub(crate) fn char_at(segment: &str, at: usize) -> Option<char> {
    segment.get(at..)?.chars().next()
}

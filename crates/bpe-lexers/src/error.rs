//! What can go wrong: a pattern that an engine cannot run, special tokens that contradict each
//! other, and an engine that gives up on a text.

use core::fmt;

/// A pattern cannot be run by the engine that was asked for.
#[derive(Clone, Debug)]
pub struct PatternError {
    /// The engine that cannot run the pattern; none if the pattern is malformed.
    engine: Option<&'static str>,
    reason: String,
}

impl PatternError {
    #[cfg(any(feature = "reference", feature = "automata"))]
    pub(crate) fn syntax(reason: impl fmt::Display) -> Self {
        Self {
            engine: None,
            reason: reason.to_string(),
        }
    }

    pub(crate) fn unsupported(engine: &'static str, reason: impl fmt::Display) -> Self {
        Self {
            engine: Some(engine),
            reason: reason.to_string(),
        }
    }

    #[cfg(not(all(feature = "reference", feature = "automata", feature = "logos")))]
    pub(crate) fn not_built(engine: &'static str) -> Self {
        Self::unsupported(
            engine,
            format_args!("it is not part of this build (crate feature `{engine}`)"),
        )
    }

    /// Is the pattern malformed by the syntax of the engine?
    pub fn is_syntax(&self) -> bool {
        self.engine.is_none()
    }

    /// May another engine be able to run the pattern?
    ///
    /// True where the pattern needs something that this engine does not have (look-around,
    /// possessive quantifiers, a known family), and where the engine was left out of this build.
    pub fn is_unsupported(&self) -> bool {
        self.engine.is_some()
    }
}

impl fmt::Display for PatternError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reason = &self.reason;
        match self.engine {
            None => write!(formatter, "the pattern is malformed: {reason}"),
            Some(engine) => write!(
                formatter,
                "the {engine} engine cannot run the pattern: {reason}"
            ),
        }
    }
}

impl core::error::Error for PatternError {}

/// A lexer gave up on a segment.
///
/// [`ReferenceLexer`](crate::ReferenceLexer) gives up at its step limit. The automata and the
/// transcription never do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LexError {
    offset: usize,
    kind: LexErrorKind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum LexErrorKind {
    StepLimit(usize),
    Engine(&'static str),
}

impl LexError {
    /// The error of a search from byte `offset` that needed more than `limit` steps.
    pub fn step_limit(offset: usize, limit: usize) -> Self {
        Self {
            offset,
            kind: LexErrorKind::StepLimit(limit),
        }
    }

    /// The error of a search from byte `offset` that an engine could not finish for another
    /// reason.
    pub fn engine(offset: usize, reason: &'static str) -> Self {
        Self {
            offset,
            kind: LexErrorKind::Engine(reason),
        }
    }

    /// The byte at which the search started: in the segment where a [`Lexer`](crate::Lexer)
    /// reports it, in the whole text where a [`Spanner`](crate::Spanner) does.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// The number of steps that were allowed, if the step limit was the reason.
    pub fn limit(&self) -> Option<usize> {
        match self.kind {
            LexErrorKind::StepLimit(limit) => Some(limit),
            LexErrorKind::Engine(_) => None,
        }
    }

    /// The same error, seen from `bytes` further left: for a caller whose text starts before the segment.
    pub fn moved_by(mut self, bytes: usize) -> Self {
        self.offset += bytes;
        self
    }
}

impl fmt::Display for LexError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            LexErrorKind::StepLimit(limit) => write!(
                formatter,
                "no pre-token found within {limit} steps, searching from byte {}",
                self.offset
            ),
            LexErrorKind::Engine(reason) => {
                write!(formatter, "{reason}, searching from byte {}", self.offset)
            }
        }
    }
}

impl core::error::Error for LexError {}

/// A list of special tokens cannot be searched for.
#[derive(Clone, Debug)]
pub struct SpecialError {
    kind: SpecialErrorKind,
}

#[derive(Clone, Debug)]
enum SpecialErrorKind {
    Empty { index: usize },
    Duplicate { first: usize, second: usize },
    TooLarge(String),
}

impl SpecialError {
    pub(crate) fn empty(index: usize) -> Self {
        Self {
            kind: SpecialErrorKind::Empty { index },
        }
    }

    pub(crate) fn duplicate(first: usize, second: usize) -> Self {
        Self {
            kind: SpecialErrorKind::Duplicate { first, second },
        }
    }

    pub(crate) fn too_large(message: impl fmt::Display) -> Self {
        Self {
            kind: SpecialErrorKind::TooLarge(message.to_string()),
        }
    }

    /// The position in the list of the text that is empty, or that repeats an earlier one.
    pub fn index(&self) -> Option<usize> {
        match self.kind {
            SpecialErrorKind::Empty { index } => Some(index),
            SpecialErrorKind::Duplicate { second, .. } => Some(second),
            SpecialErrorKind::TooLarge(_) => None,
        }
    }
}

impl fmt::Display for SpecialError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            SpecialErrorKind::Empty { index } => {
                write!(formatter, "special token number {index} is empty")
            }
            SpecialErrorKind::Duplicate { first, second } => write!(
                formatter,
                "special token number {second} has the same text as number {first}"
            ),
            SpecialErrorKind::TooLarge(message) => {
                write!(formatter, "too many special tokens: {message}")
            }
        }
    }
}

impl core::error::Error for SpecialError {}

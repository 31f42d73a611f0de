//! The reference engine: the pattern as it is, run by fancy-regex.

use core::ops::Range;
use std::sync::Arc;

use fancy_regex::{Error, Expr, Regex, RegexBuilder, RuntimeError};

use crate::lexer::{char_at, to_boundary};
use crate::{LexError, Lexer, Pattern, PatternError};

/// How many steps back a search may take before it gives up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StepLimit {
    /// At least a million, and at least four for each byte of the segment.
    #[default]
    Proportional,
    /// This many.
    Fixed(usize),
}

impl StepLimit {
    /// The number of steps for a segment of `length` bytes.
    ///
    /// fancy-regex fixes the limit when it compiles a pattern, so the proportional limit grows
    /// in large strides, each of which costs one compilation.
    fn steps(self, length: usize) -> usize {
        match self {
            Self::Fixed(steps) => steps,
            Self::Proportional => {
                let wanted = length.saturating_mul(4);
                let mut steps = 1_000_000_usize;
                while steps < wanted {
                    steps = steps.saturating_mul(16);
                }
                steps
            }
        }
    }
}

/// The reference engine: any pattern, run as it is by the backtracking matcher of fancy-regex,
/// which tiktoken uses too (001, section 5.1).
///
/// Useful as an oracle, and for patterns that need look-around, back-references, atomic groups
/// or possessive quantifiers. Not useful for speed, nor for patterns from an untrusted source:
/// the time of one call is bounded by the step limit, which is in proportion to the segment.
///
/// # When it gives up
///
/// A search that backtracks more often than the [`StepLimit`] is an error. fancy-regex also
/// keeps at most a million open branches, which cannot be changed. A run of a million blanks
/// needs more with the known patterns, one for each blank that `\s+(?!\S)` might give back, and
/// is an error too; the other engines have no such limit.
///
/// ```
/// use bpe_lexers::{Lexer, Pattern, ReferenceLexer, StepLimit};
///
/// // Two ways to take each `a`, and no `b` ever comes: 2^20 ways and more to fail.
/// let mut lexer = ReferenceLexer::new(&Pattern::new(r"(?:a|aa)+(?<=b)"))?;
/// lexer.set_step_limit(StepLimit::Fixed(10_000));
/// let error = lexer.next_pre_token(&"a".repeat(40), 0).unwrap_err();
/// assert_eq!(error.limit(), Some(10_000));
/// # Ok::<(), bpe_lexers::PatternError>(())
/// ```
#[derive(Clone)]
pub struct ReferenceLexer {
    source: Arc<str>,
    limit: StepLimit,
    /// The pattern, compiled for one or several limits. Never empty.
    compiled: Vec<(usize, Regex)>,
}

/// How many limits are kept compiled before the oldest is dropped.
const COMPILED_AT_MOST: usize = 4;

impl ReferenceLexer {
    /// Returns a lexer for `pattern`.
    ///
    /// # Errors
    ///
    /// fancy-regex rejects the pattern, or its counted repetitions, written out, have more than 10,000
    /// parts: nested ones multiply, and compiling them would not end soon.
    pub fn new(pattern: &Pattern) -> Result<Self, PatternError> {
        let tree = Expr::parse_tree(pattern.as_str()).map_err(PatternError::syntax)?;
        if parts(&tree.expr) > PARTS_AT_MOST {
            let reason =
                format!("its repetitions, written out, have more than {PARTS_AT_MOST} parts");
            return Err(PatternError::unsupported("reference", reason));
        }
        let limit = StepLimit::default();
        let steps = limit.steps(0);
        let regex = compile(pattern.as_str(), steps).map_err(PatternError::syntax)?;
        Ok(Self {
            source: Arc::from(pattern.as_str()),
            limit,
            compiled: vec![(steps, regex)],
        })
    }

    /// Sets the step limit of the calls from here on. A limit that was not used before costs
    /// one compilation, at the next call.
    pub fn set_step_limit(&mut self, limit: StepLimit) {
        self.limit = limit;
    }

    /// The pattern, compiled for `steps` steps.
    fn regex(&mut self, steps: usize, start: usize) -> Result<&Regex, LexError> {
        let known = self.compiled.iter().position(|(limit, _)| *limit == steps);
        let place = match known {
            Some(place) => place,
            None => {
                let regex = compile(&self.source, steps).map_err(|_| {
                    LexError::engine(start, "the pattern does not compile with this step limit")
                })?;
                if self.compiled.len() >= COMPILED_AT_MOST {
                    self.compiled.remove(0);
                }
                self.compiled.push((steps, regex));
                self.compiled.len() - 1
            }
        };
        Ok(&self.compiled[place].1)
    }
}

impl core::fmt::Debug for ReferenceLexer {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        formatter
            .debug_struct("ReferenceLexer")
            .field("source", &self.source)
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}

impl Lexer for ReferenceLexer {
    fn next_pre_token(
        &mut self,
        segment: &str,
        start: usize,
    ) -> Result<Option<Range<usize>>, LexError> {
        let mut start = to_boundary(segment, start);
        let steps = self.limit.steps(segment.len());
        let regex = self.regex(steps, start)?;
        while start < segment.len() {
            let found = regex
                .find_from_pos(segment, start)
                .map_err(|error| match error {
                    Error::RuntimeError(RuntimeError::BacktrackLimitExceeded) => {
                        LexError::step_limit(start, steps)
                    }
                    Error::RuntimeError(RuntimeError::StackOverflow) => {
                        LexError::engine(start, "more than a million open branches")
                    }
                    _ => LexError::engine(start, "the regex engine failed"),
                })?;
            match found {
                None => return Ok(None),
                Some(found) if found.end() > found.start() => return Ok(Some(found.range())),
                // An empty match is no pre-token: go on one character later.
                Some(found) => {
                    start =
                        found.start() + char_at(segment, found.start()).map_or(1, char::len_utf8);
                }
            }
        }
        Ok(None)
    }

    fn clone_box(&self) -> Box<dyn Lexer> {
        Box::new(self.clone())
    }
}

fn compile(source: &str, steps: usize) -> Result<Regex, Error> {
    RegexBuilder::new(source)
        .backtrack_limit(steps)
        .max_prog_size(PROGRAM_AT_MOST)
        .build()
}

/// Instructions of a compiled pattern.
const PROGRAM_AT_MOST: usize = 1 << 20;

/// Characters, classes and groups of a pattern, each counted as often as its repetitions are written
/// out.
const PARTS_AT_MOST: usize = 10_000;

/// How often parts of `pattern` are written out when it is compiled.
fn parts(pattern: &Expr) -> usize {
    let inside = pattern
        .children_iter()
        .map(parts)
        .fold(1, usize::saturating_add);
    match pattern {
        // The copies that are asked for at least, and those that may follow, if they have an end.
        Expr::Repeat { lo, hi, .. } => {
            let copies = if *hi == usize::MAX { *lo } else { *hi };
            inside.saturating_mul(copies.max(1))
        }
        Expr::Delegate { .. } | Expr::Literal { .. } => 1,
        _ => inside,
    }
}

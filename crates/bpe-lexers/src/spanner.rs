//! From a text to labelled spans: special tokens first, then the stages of lexers.

use core::ops::{ControlFlow, Range};

use crate::{FastLexer, LexError, Lexer, SpecialMatcher};

/// A stretch of a text and what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Span {
    /// The first byte, counted from the start of the text.
    pub start: usize,
    /// The byte after the last one.
    pub end: usize,
    /// What the stretch is.
    pub label: Label,
}

impl Span {
    /// Returns the bytes that the span covers.
    pub fn range(&self) -> Range<usize> {
        self.start..self.end
    }
}

/// What a span is (001, section 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Label {
    /// A pre-token: text that the pattern matches, or one invalid part of a text that is not
    /// UTF-8. Merges apply inside, and never across its ends.
    Word,
    /// Text that the pattern does not match. It is kept: what becomes of it is for the caller
    /// to say (tiktoken drops it, `tokenizers` treats it like a word).
    Gap,
    /// A special token, by its position in the list that the [`SpecialMatcher`] was made from.
    Special(usize),
}

/// Part of a text, for callers to whom words and gaps are one thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Run<'r> {
    /// Spans that follow each other without a gap and are no special tokens.
    Pieces {
        /// The byte of the text from which `start` and `ends` count.
        offset: usize,
        /// Where the first piece starts.
        start: usize,
        /// Where each piece ends, ascending; the next one starts there.
        ends: &'r [usize],
    },
    /// A special token, by its position in the list of the [`SpecialMatcher`].
    Special {
        /// The position.
        index: usize,
        /// The bytes of the text that it covers.
        range: Range<usize>,
    },
}

/// Cuts a text into labelled spans.
///
/// 1. The special tokens are found over the whole text; what stands between them is lexed
///    without regard to what stands around it.
/// 2. Bytes that are not UTF-8: each maximal invalid part, as
///    [`String::from_utf8_lossy`] replaces it by one U+FFFD, is a [`Word`](Label::Word) of its
///    own, and a segment ends before it and begins after it.
/// 3. Each segment goes through the stages: the pieces that a stage makes, its matches and what
///    stands between them alike, are the segments of the next one. (`tokenizers` calls this a
///    sequence of `Split` with the behaviour `Isolated`.) The last stage gives the label.
///
/// Stages that the fast engine can run in one pass ([`FastLexer`]) it does run so.
///
/// The lexers own scratch memory, so there is one spanner per thread; a clone shares their
/// tables. Linear in the text if the lexers are; allocates nothing itself once it is warm.
///
/// ```
/// use bpe_lexers::{Engine, Pattern, Spanner, SpecialMatcher};
/// use std::ops::ControlFlow;
///
/// let mut spanner = Spanner::new(vec![Pattern::o200k().lexer(Engine::Auto)?]);
/// let specials = SpecialMatcher::new(["<|endoftext|>"])?;
/// let text = "It's 2026.<|endoftext|>";
/// let mut pieces = Vec::new();
/// let flow: ControlFlow<()> = spanner.for_each_span(text.as_bytes(), &specials, |span| {
///     pieces.push(&text[span.range()]);
///     ControlFlow::Continue(())
/// })?;
/// assert!(flow.is_continue());
/// assert_eq!(pieces, ["It's", " ", "202", "6", ".", "<|endoftext|>"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Spanner {
    stages: Vec<Box<dyn Lexer>>,
    /// Scratch memory: the ends of pre-tokens that the last stage has found at once.
    ends: Vec<usize>,
    /// Scratch memory: the ends of pieces that several stages have found few by few.
    collected: Vec<usize>,
}

impl Spanner {
    /// Returns a spanner with these stages. Without a stage each segment is one word.
    pub fn new(stages: Vec<Box<dyn Lexer>>) -> Self {
        let stages = match FastLexer::of_stages(&stages) {
            Some(lexer) => vec![Box::new(lexer) as Box<dyn Lexer>],
            None => stages,
        };
        Self {
            stages,
            ends: Vec::new(),
            collected: Vec::new(),
        }
    }

    /// Calls `visit` for each span of `text` in order, until it breaks.
    ///
    /// The spans cover the text without gap or overlap, and none is empty. The value of a break
    /// is returned in the `ControlFlow`.
    ///
    /// # Errors
    ///
    /// A lexer gave up. The offset of the error is in bytes of `text`; the spans before that
    /// place have been visited.
    pub fn for_each_span<B>(
        &mut self,
        text: &[u8],
        specials: &SpecialMatcher,
        mut visit: impl FnMut(Span) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>, LexError> {
        let fused = match &*self.stages {
            [lexer] => lexer
                .as_fast()
                .filter(|lexer| lexer.has_gaps_among_pieces()),
            _ => None,
        };
        let fused = fused.cloned();
        self.walk(text, specials, |run, label| match run {
            Run::Pieces {
                offset,
                start,
                ends,
            } => {
                let mut start = offset + start;
                for end in ends {
                    let end = offset + end;
                    let label = match (label, &fused) {
                        (Found::PreTokens, Some(lexer)) if lexer.is_gap(&text[start..end]) => {
                            Label::Gap
                        }
                        (Found::PreTokens, _) => Label::Word,
                        (Found::Labelled(label), _) => label,
                    };
                    let flow = visit(Span { start, end, label });
                    if flow.is_break() {
                        return flow;
                    }
                    start = end;
                }
                ControlFlow::Continue(())
            }
            Run::Special { index, range } => visit(Span {
                start: range.start,
                end: range.end,
                label: Label::Special(index),
            }),
        })
    }

    /// Calls `visit` for each run of pieces and each special token of `text` in order, until it
    /// breaks: the spans of [`Spanner::for_each_span`], words and gaps alike, many in a call.
    ///
    /// For callers to whom a word and a gap are one thing, and a call for each costs too much. Runs
    /// are short at the start of a text and have some hundred pieces later.
    ///
    /// # Errors
    ///
    /// As [`Spanner::for_each_span`].
    ///
    /// ```
    /// use bpe_lexers::{Engine, Pattern, Run, Spanner, SpecialMatcher};
    /// use std::ops::ControlFlow;
    ///
    /// let mut spanner = Spanner::new(vec![Pattern::o200k().lexer(Engine::Auto)?]);
    /// let specials = SpecialMatcher::new(["<|endoftext|>"])?;
    /// let mut ends = Vec::new();
    /// let flow: ControlFlow<()> = spanner.for_each_run(
    ///     b"It's 2026.<|endoftext|>",
    ///     &specials,
    ///     |run| {
    ///         match run {
    ///             Run::Pieces { offset, ends: of_run, .. } => {
    ///                 ends.extend(of_run.iter().map(|end| offset + end));
    ///             }
    ///             Run::Special { range, .. } => ends.push(range.end),
    ///         }
    ///         ControlFlow::Continue(())
    ///     },
    /// )?;
    /// assert!(flow.is_continue());
    /// assert_eq!(ends, [4, 5, 8, 9, 10, 23]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn for_each_run<B>(
        &mut self,
        text: &[u8],
        specials: &SpecialMatcher,
        mut visit: impl FnMut(Run<'_>) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>, LexError> {
        if self.stages.len() == 1 {
            return self.walk(text, specials, |run, _| visit(run));
        }
        // Several stages find few pieces at a time: they are collected.
        let mut batch = Batch {
            start: 0,
            ends: core::mem::take(&mut self.collected),
        };
        batch.ends.clear();
        let flow = self.walk(text, specials, |run, _| match run {
            Run::Pieces {
                offset,
                start,
                ends,
            } => {
                if batch.ends.is_empty() {
                    batch.start = offset + start;
                }
                batch.ends.extend(ends.iter().map(|end| offset + end));
                match batch.ends.len() < LARGEST_BATCH {
                    true => ControlFlow::Continue(()),
                    false => batch.visit(&mut visit),
                }
            }
            special @ Run::Special { .. } => match batch.visit(&mut visit) {
                ControlFlow::Continue(()) => visit(special),
                flow => flow,
            },
        });
        // What was found before an error is visited too.
        let last = match flow {
            Ok(ControlFlow::Break(_)) => ControlFlow::Continue(()),
            _ => batch.visit(&mut visit),
        };
        self.collected = batch.ends;
        match last {
            ControlFlow::Continue(()) => flow,
            flow => Ok(flow),
        }
    }

    /// Calls `visit` for what the last stage finds at once, special tokens and invalid parts.
    fn walk<B>(
        &mut self,
        text: &[u8],
        specials: &SpecialMatcher,
        visit: impl FnMut(Run<'_>, Found) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>, LexError> {
        let mut walk = Walk {
            ends: &mut self.ends,
            visit,
        };
        let mut from = 0;
        while let Some((index, special)) = specials.find(text, from) {
            let before = text.get(from..special.start).unwrap_or_default();
            let flow = walk.between_specials(&mut self.stages, before, from)?;
            if flow.is_break() {
                return Ok(flow);
            }
            from = special.end;
            let label = Found::Labelled(Label::Special(index));
            let special = Run::Special {
                index,
                range: special,
            };
            let flow = (walk.visit)(special, label);
            if flow.is_break() {
                return Ok(flow);
            }
        }
        let last = text.get(from..).unwrap_or_default();
        walk.between_specials(&mut self.stages, last, from)
    }
}

impl core::fmt::Debug for Spanner {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        formatter
            .debug_struct("Spanner")
            .field("stages", &self.stages.len())
            .finish()
    }
}

/// Pieces that are still to be visited, in bytes of the text.
struct Batch {
    start: usize,
    ends: Vec<usize>,
}

impl Batch {
    /// Visits the pieces, if there are any, and forgets them.
    fn visit<B>(&mut self, visit: &mut impl FnMut(Run<'_>) -> ControlFlow<B>) -> ControlFlow<B> {
        if self.ends.is_empty() {
            return ControlFlow::Continue(());
        }
        let flow = visit(Run::Pieces {
            offset: 0,
            start: self.start,
            ends: &self.ends,
        });
        self.ends.clear();
        flow
    }
}

/// What the pieces of a run are.
#[derive(Clone, Copy)]
enum Found {
    /// What the last stage returned.
    PreTokens,
    /// All of them this.
    Labelled(Label),
}

/// The way through a text, run by run.
struct Walk<'w, V> {
    ends: &'w mut Vec<usize>,
    visit: V,
}

impl<V> Walk<'_, V> {
    /// Lexes text without special tokens, which starts at byte `offset` of the whole.
    fn between_specials<B>(
        &mut self,
        stages: &mut [Box<dyn Lexer>],
        bytes: &[u8],
        offset: usize,
    ) -> Result<ControlFlow<B>, LexError>
    where
        V: FnMut(Run<'_>, Found) -> ControlFlow<B>,
    {
        if let Ok(segment) = simdutf8::basic::from_utf8(bytes) {
            return self.lex(stages, segment, offset, Label::Word);
        }
        let mut start = offset;
        for chunk in bytes.utf8_chunks() {
            let flow = self.lex(stages, chunk.valid(), start, Label::Word)?;
            if flow.is_break() {
                return Ok(flow);
            }
            start += chunk.valid().len();
            let flow = self.piece(start, chunk.invalid().len(), Label::Word);
            if flow.is_break() {
                return Ok(flow);
            }
            start += chunk.invalid().len();
        }
        Ok(ControlFlow::Continue(()))
    }

    /// One piece, if it is not empty.
    fn piece<B>(&mut self, start: usize, length: usize, label: Label) -> ControlFlow<B>
    where
        V: FnMut(Run<'_>, Found) -> ControlFlow<B>,
    {
        if length == 0 {
            return ControlFlow::Continue(());
        }
        let piece = Run::Pieces {
            offset: start,
            start: 0,
            ends: &[length],
        };
        (self.visit)(piece, Found::Labelled(label))
    }

    /// Lexes one segment, which starts at byte `offset` of the whole, with all stages. Without a
    /// stage the segment is one span with this label.
    fn lex<B>(
        &mut self,
        stages: &mut [Box<dyn Lexer>],
        segment: &str,
        offset: usize,
        label: Label,
    ) -> Result<ControlFlow<B>, LexError>
    where
        V: FnMut(Run<'_>, Found) -> ControlFlow<B>,
    {
        if segment.is_empty() {
            return Ok(ControlFlow::Continue(()));
        }
        let Some((lexer, later)) = stages.split_first_mut() else {
            return Ok(self.piece(offset, segment.len(), label));
        };
        if later.is_empty() {
            return self.lex_last(&mut **lexer, segment, offset);
        }
        let moved = |error: LexError| error.moved_by(offset);
        let mut position = 0;
        while position < segment.len() {
            let found = lexer.next_pre_token(segment, position).map_err(moved)?;
            let found = found.unwrap_or(segment.len()..segment.len());
            let (gap, word) = parts(segment, position, &found).map_err(moved)?;
            let flow = self.lex(later, gap, offset + position, Label::Gap)?;
            if flow.is_break() {
                return Ok(flow);
            }
            let flow = self.lex(later, word, offset + found.start, Label::Word)?;
            if flow.is_break() {
                return Ok(flow);
            }
            position = found.end;
        }
        Ok(ControlFlow::Continue(()))
    }

    /// As [`Walk::lex`], with one stage, many pre-tokens at a time.
    fn lex_last<B>(
        &mut self,
        lexer: &mut dyn Lexer,
        segment: &str,
        offset: usize,
    ) -> Result<ControlFlow<B>, LexError>
    where
        V: FnMut(Run<'_>, Found) -> ControlFlow<B>,
    {
        let moved = |error: LexError| error.moved_by(offset);
        let mut position = 0;
        // Few at first, for a caller who wants but a few.
        let mut limit = FIRST_BATCH;
        while position < segment.len() {
            self.ends.clear();
            // A lexer of a caller may return anything: what is right before its first fault counts. The fast
            // engine is ours, and its ends are right.
            let (beyond, (right, fault)) = match lexer.as_fast() {
                Some(fast) => {
                    let beyond = fast.ends(segment, position, limit, self.ends);
                    (Ok(beyond), (&**self.ends, None))
                }
                None => {
                    let beyond = lexer.pre_token_ends(segment, position, limit, self.ends);
                    (beyond, right_ends(segment, position, self.ends))
                }
            };
            limit = (2 * limit).min(LARGEST_BATCH);
            let first = position;
            position = right.last().copied().unwrap_or(position);
            if !right.is_empty() {
                let run = Run::Pieces {
                    offset,
                    start: first,
                    ends: right,
                };
                let flow = (self.visit)(run, Found::PreTokens);
                if flow.is_break() {
                    return Ok(flow);
                }
            }
            if let Some(error) = fault {
                return Err(moved(error));
            }
            let found = match beyond.map_err(moved)? {
                Some(found) => found,
                None if position > first => continue,
                None => segment.len()..segment.len(),
            };
            let (gap, word) = parts(segment, position, &found).map_err(moved)?;
            let flow = self.piece(offset + position, gap.len(), Label::Gap);
            if flow.is_break() {
                return Ok(flow);
            }
            let flow = self.piece(offset + found.start, word.len(), Label::Word);
            if flow.is_break() {
                return Ok(flow);
            }
            position = found.end;
        }
        Ok(ControlFlow::Continue(()))
    }
}

/// What stands before a pre-token that was found from `position` on, and the pre-token.
fn parts<'t>(
    segment: &'t str,
    position: usize,
    found: &Range<usize>,
) -> Result<(&'t str, &'t str), LexError> {
    let (Some(gap), Some(word)) = (
        segment.get(position..found.start),
        segment.get(found.clone()),
    ) else {
        return Err(LexError::engine(
            position,
            "the lexer returned a range that is none of the segment",
        ));
    };
    if word.is_empty() && found.start < segment.len() {
        return Err(LexError::engine(
            position,
            "the lexer returned an empty range",
        ));
    }
    Ok((gap, word))
}

/// The ends up to the first that is none, and what is wrong with that.
fn right_ends<'e>(
    segment: &str,
    position: usize,
    ends: &'e [usize],
) -> (&'e [usize], Option<LexError>) {
    let mut before = position;
    let mut right = true;
    for &end in ends {
        right &= end > before && segment.is_char_boundary(end);
        before = end;
    }
    if right {
        return (ends, None);
    }
    let mut before = position;
    for (index, &end) in ends.iter().enumerate() {
        match parts(segment, before, &(before..end)) {
            Ok((_, word)) if !word.is_empty() => {}
            found => return (&ends[..index], found.err()),
        }
        before = end;
    }
    (ends, None)
}

/// How many pre-tokens the spanner asks a lexer for, at first and at most.
const FIRST_BATCH: usize = 32;
const LARGEST_BATCH: usize = 1024;

//! Pre-tokenizers at work, where the inner tokenizer cannot do it: on pieces of a text.

use std::borrow::Cow;
use std::ops::Range;

use bpe_lexers::LexError;

use crate::pipeline::normalize::{byte_level_parts, is_its_own};
use crate::pipeline::normalized::{Normalized, Rewriter};
use crate::pipeline::pre_tokenizers::{Behavior, PreTokenizer, Prepend};
use crate::pipeline::search::Search;
use crate::pipeline::unicode::{punctuation, word_characters};

/// A text and the pieces of it that go on; what is in none is dropped.
pub(crate) struct Pieces<'a, 't> {
    pub(crate) text: Cow<'a, Normalized<'t>>,
    /// In order, none empty.
    pub(crate) ranges: Vec<Range<usize>>,
    /// Whether the first piece goes on with what stood before a cut: nothing is set before it.
    goes_on: bool,
}

/// Kinds of characters, as the pre-tokenizer `Whitespace` tells them apart.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
pub(crate) enum WordKind {
    Word,
    Blank,
    Other,
}

impl WordKind {
    pub(crate) fn of(character: char) -> Self {
        match word_characters().contains(character) {
            true => Self::Word,
            false if character.is_whitespace() => Self::Blank,
            false => Self::Other,
        }
    }
}

impl<'a, 't> Pieces<'a, 't> {
    /// One piece, the bytes `range` of `text`, which goes on with what stood before a cut or does not.
    pub(crate) fn new(text: &'a Normalized<'t>, range: Range<usize>, goes_on: bool) -> Self {
        Self {
            text: Cow::Borrowed(text),
            ranges: match range.is_empty() {
                true => Vec::new(),
                false => vec![range],
            },
            goes_on,
        }
    }

    /// Cuts as `steps` say, one after the other. O(bytes) each, but for a pattern on the backtracking
    /// engine.
    ///
    /// # Errors
    ///
    /// A pattern that takes too many steps.
    pub(crate) fn cut_all(self, steps: &[PreTokenizer]) -> Result<Self, LexError> {
        steps.iter().try_fold(self, Self::cut)
    }

    fn cut(self, step: &PreTokenizer) -> Result<Self, LexError> {
        Ok(match step {
            PreTokenizer::Split {
                search,
                behavior,
                invert,
            } => return self.split(search, *behavior, *invert),
            PreTokenizer::ByteLevel {
                add_prefix_space,
                pattern,
            } => {
                let mut pieces = self;
                if *add_prefix_space {
                    pieces = pieces.prefixed(" ", |piece, _| !piece.starts_with(' '));
                }
                if let Some(pattern) = pattern {
                    pieces = pieces.split(pattern, Behavior::Isolated, false)?;
                }
                pieces.byte_level()
            }
            PreTokenizer::Digits { individual } => {
                let behavior = match individual {
                    true => Behavior::Isolated,
                    false => Behavior::Contiguous,
                };
                self.split_at(char::is_numeric, behavior)
            }
            PreTokenizer::Punctuation(behavior) => {
                let punctuation = punctuation();
                self.split_at(|character| punctuation.contains(character), *behavior)
            }
            PreTokenizer::Whitespace => self.words(),
            PreTokenizer::WhitespaceSplit => self.split_at(char::is_whitespace, Behavior::Removed),
            PreTokenizer::Delimiter(delimiter) => {
                self.split_at(|character| character == *delimiter, Behavior::Removed)
            }
            PreTokenizer::FixedLength(length) => self.in_lengths(*length),
            PreTokenizer::Metaspace {
                replacement,
                prepend,
                split,
            } => self.metaspace(*replacement, *prepend, *split),
            PreTokenizer::Blanks {
                written_as,
                prepend,
            } => self.blanks(*written_as, ' ', *prepend),
            PreTokenizer::Bert => {
                let punctuation = punctuation();
                self.split_at(char::is_whitespace, Behavior::Removed)
                    .split_at(
                        |character| punctuation.contains(character),
                        Behavior::Isolated,
                    )
            }
        })
    }

    fn split(
        mut self,
        search: &Search,
        behavior: Behavior,
        invert: bool,
    ) -> Result<Self, LexError> {
        let mut lexer = search.lexer().clone_box();
        let mut cut = Vec::new();
        for range in &self.ranges {
            let piece = self.text.text().get(range.clone()).unwrap_or_default();
            let mut parts = Parts::new(behavior, range.start, &mut cut);
            let mut at = 0;
            while let Some(found) = lexer.next_pre_token(piece, at)? {
                parts.add(found.start, invert);
                parts.add(found.end, !invert);
                at = found.end;
            }
            parts.add(piece.len(), invert);
            parts.finish();
        }
        self.ranges = cut;
        Ok(self)
    }

    /// Each character that `test` accepts is a delimiter.
    fn split_at(mut self, test: impl Fn(char) -> bool, behavior: Behavior) -> Self {
        let mut cut = Vec::new();
        for range in &self.ranges {
            let piece = self.text.text().get(range.clone()).unwrap_or_default();
            let mut parts = Parts::new(behavior, range.start, &mut cut);
            for (index, character) in piece.char_indices() {
                if test(character) {
                    parts.add(index, false);
                    parts.add(index + character.len_utf8(), true);
                }
            }
            parts.add(piece.len(), false);
            parts.finish();
        }
        self.ranges = cut;
        self
    }

    /// Runs of characters of words, and of characters that are neither that nor blanks.
    fn words(self) -> Self {
        let mut cut = Vec::new();
        for range in &self.ranges {
            let piece = self.text.text().get(range.clone()).unwrap_or_default();
            let mut last = WordKind::Blank;
            let mut start = 0;
            for (index, character) in piece.char_indices() {
                let next = WordKind::of(character);
                if next != last {
                    if last != WordKind::Blank {
                        cut.push(range.start + start..range.start + index);
                    }
                    (last, start) = (next, index);
                }
            }
            if last != WordKind::Blank {
                cut.push(range.start + start..range.end);
            }
        }
        Self {
            ranges: cut,
            ..self
        }
    }

    fn in_lengths(mut self, length: usize) -> Self {
        let mut cut = Vec::new();
        for range in &self.ranges {
            let piece = self.text.text().get(range.clone()).unwrap_or_default();
            let mut start = range.start;
            for (number, (index, _)) in piece.char_indices().enumerate().skip(1) {
                if number % length == 0 {
                    cut.push(start..range.start + index);
                    start = range.start + index;
                }
            }
            cut.push(start..range.end);
        }
        self.ranges = cut;
        self
    }

    fn metaspace(self, replacement: char, prepend: Prepend, split: bool) -> Self {
        let pieces = self.blanks(' ', replacement, prepend);
        match split {
            true => pieces.split_at(
                |character| character == replacement,
                Behavior::MergedWithNext,
            ),
            false => pieces,
        }
    }

    /// `to` in place of each `from`, and before the pieces that `prepend` says, unless they begin so.
    fn blanks(self, from: char, to: char, prepend: Prepend) -> Self {
        let begins = |piece: &str| piece.starts_with([from, to]);
        let mut buffer = [0; 4];
        let prefix = &*to.encode_utf8(&mut buffer);
        let pieces = match prepend {
            Prepend::Never => self,
            Prepend::Always => self.prefixed(prefix, |piece, _| !begins(piece)),
            Prepend::First => self.prefixed(prefix, |piece, start| start == 0 && !begins(piece)),
        };
        if !pieces.text.text().contains(from) {
            return pieces;
        }
        pieces.rewritten(|piece, start, rewriter| {
            for (index, _) in piece.match_indices(from) {
                rewriter.copy_to(start + index);
                rewriter.put(to, 0);
            }
        })
    }

    /// Each piece for which `test` holds, with `prefix` before it; `test` gets the piece and where it
    /// begins in the original.
    fn prefixed(self, prefix: &str, test: impl Fn(&str, usize) -> bool) -> Self {
        let starts: Vec<bool> = self
            .ranges
            .iter()
            .enumerate()
            .map(|(index, range)| {
                let piece = self.text.text().get(range.clone()).unwrap_or_default();
                !(self.goes_on && index == 0) && test(piece, self.text.original(range).start)
            })
            .collect();
        if !starts.contains(&true) {
            return self;
        }
        let mut starts = starts.into_iter();
        self.rewritten(|_, _, rewriter| {
            if starts.next() == Some(true) {
                rewriter.insert_before(prefix);
            }
        })
    }

    fn byte_level(self) -> Self {
        let mut parts = Vec::new();
        self.rewritten(|piece, from, rewriter| {
            for (index, character) in piece.char_indices() {
                if !is_its_own(character) {
                    rewriter.copy_to(from + index);
                    parts.clear();
                    byte_level_parts(character, &mut parts);
                    for &(part, change) in &parts {
                        rewriter.put(part, change);
                    }
                }
            }
        })
    }

    /// All pieces, as `rewrite` changes them; what it leaves at the end of one is copied.
    fn rewritten(self, mut rewrite: impl FnMut(&str, usize, &mut Rewriter<'_, 't>)) -> Self {
        let bytes = self.ranges.iter().map(Range::len).sum();
        let mut rewriter = Rewriter::of_part(&self.text, bytes);
        let mut ranges = Vec::with_capacity(self.ranges.len());
        for range in &self.ranges {
            let piece = self.text.text().get(range.clone()).unwrap_or_default();
            let start = rewriter.len();
            rewriter.begin(range.start);
            rewrite(piece, range.start, &mut rewriter);
            rewriter.copy_to(range.end);
            ranges.push(start..rewriter.len());
        }
        let text = Cow::Owned(rewriter.finish());
        Self {
            text,
            ranges,
            ..self
        }
    }
}

/// Puts matches and what stands between them together as a behaviour says.
struct Parts<'p> {
    behavior: Behavior,
    /// What is added to all offsets.
    base: usize,
    /// Where the next part begins.
    start: usize,
    pieces: &'p mut Vec<Range<usize>>,
    /// The number of pieces that others had made.
    first: usize,
    /// Whether the last part was a match.
    last_is_match: bool,
    /// A match that waits for what stands behind it.
    waiting: Option<usize>,
}

impl<'p> Parts<'p> {
    fn new(behavior: Behavior, base: usize, pieces: &'p mut Vec<Range<usize>>) -> Self {
        Self {
            behavior,
            base,
            start: 0,
            first: pieces.len(),
            pieces,
            last_is_match: false,
            waiting: None,
        }
    }

    /// The part up to `end`.
    fn add(&mut self, end: usize, is_match: bool) {
        let range = self.base + self.start..self.base + end;
        if range.is_empty() {
            return;
        }
        self.start = end;
        match self.behavior {
            Behavior::Removed if is_match => {}
            Behavior::Removed | Behavior::Isolated => self.pieces.push(range),
            Behavior::Contiguous => self.push_or_extend(range, is_match == self.last_is_match),
            Behavior::MergedWithPrevious => {
                self.push_or_extend(range, is_match && !self.last_is_match);
            }
            Behavior::MergedWithNext => {
                // Of several matches side by side the last one goes with what follows.
                let start = self.waiting.take();
                if is_match {
                    if let Some(start) = start {
                        self.pieces.push(start..range.start);
                    }
                    self.waiting = Some(range.start);
                } else {
                    self.pieces.push(start.unwrap_or(range.start)..range.end);
                }
            }
        }
        self.last_is_match = is_match;
    }

    /// Lets the last piece of this text go on to the end of `range`, or begins one.
    fn push_or_extend(&mut self, range: Range<usize>, extend: bool) {
        let is_own = self.pieces.len() > self.first;
        match self.pieces.last_mut() {
            Some(last) if extend && is_own => last.end = range.end,
            _ => self.pieces.push(range),
        }
    }

    fn finish(self) {
        if let Some(start) = self.waiting {
            self.pieces.push(start..self.base + self.start);
        }
    }
}

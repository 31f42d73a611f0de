//! A text that may have been changed, and where each part of it came from.

use std::borrow::Cow;
use std::ops::Range;

/// A part of a text on its way to the model.
#[derive(Debug, Clone)]
pub(crate) struct Normalized<'t> {
    text: Cow<'t, str>,
    alignment: Alignment,
}

/// For each byte of a changed text the bytes of the original that it stands for: those of a whole
/// character.
#[derive(Debug, Clone)]
enum Alignment {
    /// The text is the original's, from this byte on.
    Copied(usize),
    /// Stretches in order, the first at 0.
    Runs(Vec<Run>),
    /// Nobody has asked.
    Untracked,
}

/// A stretch of the changed text, up to the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Run {
    /// Where it begins in the changed text.
    at: usize,
    /// What it stands for. Where `stepwise`, only where that begins.
    start: usize,
    end: usize,
    /// Each character stands for one of as many bytes; else each byte for all of `start..end`.
    stepwise: bool,
}

impl<'t> Normalized<'t> {
    /// `text`, which begins at byte `origin` of the original. Changes are kept track of if `tracked`.
    pub(crate) fn new(text: &'t str, origin: usize, tracked: bool) -> Self {
        Self {
            text: Cow::Borrowed(text),
            alignment: match tracked {
                true => Alignment::Copied(origin),
                false => Alignment::Untracked,
            },
        }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Whether changes are kept track of.
    pub(crate) fn is_tracked(&self) -> bool {
        !matches!(self.alignment, Alignment::Untracked)
    }

    /// Another text in its place: where its stretches begin, and the bytes of this text that they stand
    /// for. The first begins at 0; none are needed where changes are not kept track of.
    pub(crate) fn replaced_by(
        &self,
        text: String,
        stretches: impl IntoIterator<Item = (usize, Range<usize>)>,
    ) -> Self {
        let run = |(at, range): (usize, Range<usize>)| {
            let Range { start, end } = self.original(&range);
            Run {
                at,
                start,
                end,
                stepwise: false,
            }
        };
        let alignment = match self.is_tracked() {
            true => Alignment::Runs(stretches.into_iter().map(run).collect()),
            false => Alignment::Untracked,
        };
        Self {
            text: Cow::Owned(text),
            alignment,
        }
    }

    /// The bytes of the original that the characters of `range` stand for: from where those of its
    /// first byte begin to where those of its last byte end. Nothing, at the place where it would
    /// stand, for an empty range.
    pub(crate) fn original(&self, range: &Range<usize>) -> Range<usize> {
        match range.is_empty() {
            true => {
                let start = match range.start == self.text.len() && range.start > 0 {
                    true => self.of_byte(range.start - 1).end,
                    false => self.of_byte(range.start).start,
                };
                start..start
            }
            false => self.of_byte(range.start).start..self.of_byte(range.end - 1).end,
        }
    }

    /// What the byte `at` stands for.
    fn of_byte(&self, at: usize) -> Range<usize> {
        let stepwise = |run_at: usize, start: usize| {
            let first = self.text.floor_char_boundary(at);
            let last = self.text.ceil_char_boundary(at + 1);
            start + (first - run_at)..start + (last - run_at)
        };
        match &self.alignment {
            Alignment::Untracked => 0..0,
            Alignment::Copied(origin) => stepwise(0, *origin),
            Alignment::Runs(runs) => {
                let after = runs.partition_point(|run| run.at <= at);
                match after.checked_sub(1).and_then(|index| runs.get(index)) {
                    None => 0..0,
                    Some(run) if run.stepwise => stepwise(run.at, run.start),
                    Some(run) => run.start..run.end,
                }
            }
        }
    }
}

/// Writes a changed text beside the one it is made from, in the terms of `tokenizers`: a character
/// takes the place of one, or of one and some behind it, or is put in and stands for what stands before
/// it.
pub(crate) struct Rewriter<'s, 't> {
    source: &'s Normalized<'t>,
    text: String,
    runs: Option<Vec<Run>>,
    /// The byte of the source that comes next.
    at: usize,
    /// Where the piece of the source begins that is being changed.
    piece: usize,
    /// The run of the source that holds the byte `at`, or one before it.
    cursor: usize,
}

impl<'s, 't> Rewriter<'s, 't> {
    pub(crate) fn new(source: &'s Normalized<'t>) -> Self {
        Self::of_part(source, source.text.len())
    }

    /// One that is to copy some `bytes` of the source.
    pub(crate) fn of_part(source: &'s Normalized<'t>, bytes: usize) -> Self {
        Self {
            source,
            text: String::with_capacity(bytes + bytes / 8 + 16),
            runs: match source.alignment {
                Alignment::Untracked => None,
                _ => Some(Vec::new()),
            },
            at: 0,
            piece: 0,
            cursor: 0,
        }
    }

    /// The length of what has been written.
    pub(crate) fn len(&self) -> usize {
        self.text.len()
    }

    /// Goes on at byte `at` of the source, with a piece that begins there. What was not copied is gone.
    pub(crate) fn begin(&mut self, at: usize) {
        self.at = at;
        self.piece = at;
    }

    /// Leaves out what stands before byte `end` of the source.
    pub(crate) fn drop_to(&mut self, end: usize) {
        self.at = end.max(self.at);
    }

    /// Copies the source up to byte `end`.
    pub(crate) fn copy_to(&mut self, end: usize) {
        let Some(part) = self.source.text.get(self.at..end) else {
            return;
        };
        if part.is_empty() {
            return;
        }
        if self.runs.is_some() {
            self.copy_runs(end);
        }
        self.text.push_str(part);
        self.at = end;
    }

    /// Puts in `text`, which stands for the character before it, or for nothing at the start of a piece.
    pub(crate) fn insert(&mut self, text: &str) {
        if self.runs.is_some() && !text.is_empty() {
            let range = match self.at > self.piece {
                true => self.origin_of(self.at - 1),
                false => {
                    let first = self.origin_of(self.piece).start;
                    first..first
                }
            };
            self.push_run(Run {
                at: self.text.len(),
                start: range.start,
                end: range.end,
                stepwise: false,
            });
        }
        self.text.push_str(text);
    }

    /// Puts in `text`, which stands for the character that comes next.
    pub(crate) fn insert_before(&mut self, text: &str) {
        if self.runs.is_some() && !text.is_empty() {
            let range = self.origin_of(self.at);
            self.push_run(Run {
                at: self.text.len(),
                start: range.start,
                end: range.end,
                stepwise: false,
            });
        }
        self.text.push_str(text);
    }

    /// Writes one character: put in if `change` is 1, in place of the next of the source if it is 0, of
    /// that and of as many behind it if it is less.
    pub(crate) fn put(&mut self, character: char, change: isize) {
        let mut buffer = [0; 4];
        let encoded = character.encode_utf8(&mut buffer);
        if change > 0 {
            return self.insert(encoded);
        }
        let rest = self.source.text.get(self.at..).unwrap_or_default();
        let mut characters = rest.chars();
        let replaced = characters.next().map_or(0, char::len_utf8);
        if self.runs.is_some() {
            let range = self.origin_of(self.at);
            let same_length = replaced == encoded.len() && range.len() == encoded.len();
            self.push_run(Run {
                at: self.text.len(),
                start: range.start,
                end: range.end,
                stepwise: same_length,
            });
        }
        self.text.push_str(encoded);
        let removed = characters.take(change.unsigned_abs());
        self.at += replaced + removed.map(char::len_utf8).sum::<usize>();
    }

    /// The changed text.
    pub(crate) fn finish(self) -> Normalized<'t> {
        Normalized {
            text: Cow::Owned(self.text),
            alignment: match self.runs {
                None => Alignment::Untracked,
                Some(runs) => Alignment::Runs(runs),
            },
        }
    }

    /// What the byte `at` of the source stands for; where the source ends, the end of what it stands for.
    fn origin_of(&mut self, at: usize) -> Range<usize> {
        let len = self.source.text.len();
        if at >= len {
            let end = match len {
                0 => match self.source.alignment {
                    Alignment::Copied(origin) => origin,
                    _ => 0,
                },
                _ => self.source.of_byte(len - 1).end,
            };
            return end..end;
        }
        if let Alignment::Runs(runs) = &self.source.alignment {
            // As `of_byte`, but the run is near the one of the last call.
            self.cursor = advance(runs, self.cursor, at);
            if let Some(run) = runs.get(self.cursor)
                && !run.stepwise
            {
                return run.start..run.end;
            }
            if let Some(run) = runs.get(self.cursor) {
                let first = self.source.text.floor_char_boundary(at);
                let last = self.source.text.ceil_char_boundary(at + 1);
                return run.start + (first - run.at)..run.start + (last - run.at);
            }
        }
        self.source.of_byte(at)
    }

    /// The runs of what `copy_to` is about to copy.
    fn copy_runs(&mut self, end: usize) {
        let offset = self.text.len();
        let source = self.source;
        match &source.alignment {
            Alignment::Untracked => {}
            Alignment::Copied(origin) => self.push_run(Run {
                at: offset,
                start: origin + self.at,
                end: 0,
                stepwise: true,
            }),
            Alignment::Runs(runs) => {
                self.cursor = advance(runs, self.cursor, self.at);
                let first = self.cursor;
                let touched = runs.iter().skip(first).take_while(|run| run.at < end);
                for (index, run) in touched.enumerate() {
                    let from = run.at.max(self.at);
                    self.push_run(Run {
                        at: offset + (from - self.at),
                        start: match run.stepwise {
                            true => run.start + (from - run.at),
                            false => run.start,
                        },
                        ..*run
                    });
                    self.cursor = first + index;
                }
            }
        }
    }

    /// Appends a run, or lets the last one go on where it says the same.
    fn push_run(&mut self, run: Run) {
        let Some(runs) = &mut self.runs else {
            return;
        };
        let goes_on = runs.last().is_some_and(|last| {
            last.stepwise == run.stepwise
                && match run.stepwise {
                    true => last.start + (run.at - last.at) == run.start,
                    false => (last.start, last.end) == (run.start, run.end),
                }
        });
        if !goes_on {
            runs.push(run);
        }
    }
}

/// The index of the run that holds the byte `at`, where that of `cursor` may be far from it.
fn advance(runs: &[Run], cursor: usize, at: usize) -> usize {
    let begins_before = |index: usize| runs.get(index).is_some_and(|run| run.at <= at);
    if begins_before(cursor) {
        let near = (cursor..cursor + 8).find(|&index| !begins_before(index + 1));
        if let Some(index) = near {
            return index;
        }
    }
    runs.partition_point(|run| run.at <= at).saturating_sub(1)
}

//! Spans of a text that comes in pieces.

use core::fmt;
use std::sync::Arc;

use crate::analysis::label;
use crate::analysis::machine::{Output, State};
use crate::{Analysis, AnalysisError, Label, Pattern, SpecialMatcher};

/// Readings that are kept apart at once. The known patterns need two.
const MOST_READINGS: usize = 32;

/// Characters that may wait for a boundary to be decided, before its readings are told apart. The
/// known patterns decide after three, or without limit.
const LONGEST_WAIT: usize = 4;

/// Bytes after which text that goes on is handed out.
const LONGEST_PART: usize = 4096;

/// What a [`StreamSpanner`] finds.
///
/// There are one or more *readings* of what has come so far, numbered from 0. Each has at most one open span. All text
/// belongs to the open span of every reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamEvent<'e> {
    /// From here on reading `k` goes on with what was reading `readings[k]`. One number alone:
    /// what was undecided is decided, and the events of that reading were right.
    Readings(&'e [usize]),
    /// In this reading a span starts.
    Start {
        /// The number of the reading.
        reading: usize,
        /// What the span is. A special token and an invalid part start in a lone reading only.
        label: Label,
    },
    /// The next bytes of the open spans, in parts of some kilobytes at most.
    Text(&'e [u8]),
    /// In this reading the open span ends.
    End {
        /// The number of the reading.
        reading: usize,
    },
}

/// Cuts a text that comes in pieces into labelled spans: those of [`Spanner`](crate::Spanner), as
/// soon as no continuation can change them.
///
/// The pieces may end anywhere, inside a character or a special token too. A span is handed out in
/// parts while it is open, so it may be longer than memory. Where a boundary depends on text
/// arbitrarily far ahead ([`Analysis::undecided`]) the spanner goes on with all readings that are still
/// possible, and says when they have become one.
///
/// Driven by the automaton of the patterns, so any pattern that can be analysed will do. Time is
/// linear. Memory: some 4 KB, what may be the beginning of a special token, and the automaton.
///
/// ```
/// use bpe_lexers::{Label, Pattern, SpecialMatcher, StreamEvent, StreamError, StreamSpanner};
///
/// let specials = SpecialMatcher::new(["<|end|>"])?;
/// let mut spanner = StreamSpanner::new(&[Pattern::gpt2()], &specials)?;
/// let mut spans = Vec::new();
/// let mut collect = |event: StreamEvent<'_>| -> Result<(), StreamError> {
///     match event {
///         StreamEvent::Start { .. } => spans.push(String::new()),
///         StreamEvent::Text(text) => {
///             if let Some(last) = spans.last_mut() {
///                 last.push_str(&String::from_utf8_lossy(text));
///             }
///         }
///         StreamEvent::Readings(_) | StreamEvent::End { .. } => {}
///     }
///     Ok(())
/// };
/// for piece in ["It", "'", "s  he", "re<|e", "nd|>"] {
///     spanner.push(piece.as_bytes(), &mut collect)?;
/// }
/// spanner.finish(&mut collect)?;
/// assert_eq!(spans, ["It", "'s", " ", " here", "<|end|>"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct StreamSpanner {
    specials: SpecialMatcher,
    /// Bytes that may belong to a special token that is not there whole.
    unmatched: Vec<u8>,
    /// The beginning of a character.
    character: Vec<u8>,
    segment: Segment,
}

impl StreamSpanner {
    /// Returns a spanner for these patterns, which cut one after the other, and these special
    /// tokens.
    ///
    /// Costs some milliseconds; a clone shares the automaton.
    ///
    /// # Errors
    ///
    /// A pattern cannot be [analysed](Analysis::new).
    pub fn new(patterns: &[Pattern], specials: &SpecialMatcher) -> Result<Self, AnalysisError> {
        Ok(Self::of(Arc::new(Analysis::new(patterns)?), specials))
    }

    /// Returns a spanner for an automaton that is there.
    pub fn of(analysis: Arc<Analysis>, specials: &SpecialMatcher) -> Self {
        Self {
            specials: specials.clone(),
            unmatched: Vec::new(),
            character: Vec::new(),
            segment: Segment::new(analysis),
        }
    }

    /// Takes the next bytes, and calls `visit` for what they decide.
    ///
    /// # Errors
    ///
    /// More than 32 readings, which the known patterns never have; or what `visit` returns. The spanner is of no
    /// use afterwards.
    pub fn push<E: From<StreamError>>(
        &mut self,
        bytes: &[u8],
        visit: &mut impl FnMut(StreamEvent<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.specials.is_empty() {
            self.text(bytes, visit)?;
            return self.segment.flush(visit);
        }
        let mut held = core::mem::take(&mut self.unmatched);
        held.extend_from_slice(bytes);
        // From here on a special token may still come that is not there whole.
        let mut open = self.specials.open_from(&held, 0);
        let mut from = 0;
        while let Some(end) = self.matched(&held, from..open, visit)? {
            from = end;
            if open < from {
                open = self.specials.open_from(&held, from);
            }
        }
        if let Some(text) = held.get(from..open) {
            self.text(text, visit)?;
        }
        held.drain(..open);
        self.unmatched = held;
        self.segment.flush(visit)
    }

    /// Ends the text here, and calls `visit` for what is left. The spanner is then as new.
    ///
    /// # Errors
    ///
    /// What `visit` returns.
    pub fn finish<E: From<StreamError>>(
        &mut self,
        visit: &mut impl FnMut(StreamEvent<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let held = core::mem::take(&mut self.unmatched);
        let mut from = 0;
        while let Some(end) = self.matched(&held, from..held.len(), visit)? {
            from = end;
        }
        self.text(held.get(from..).unwrap_or_default(), visit)?;
        self.end_segment(visit)
    }

    /// Returns the automaton.
    pub fn analysis(&self) -> &Arc<Analysis> {
        &self.segment.analysis
    }

    /// Cuts the text here, and calls `visit` for what is left of it: what comes later is lexed
    /// alone. Right where [`Cuts`](crate::Cuts) have a cut and no special token stands across.
    ///
    /// # Errors
    ///
    /// What `visit` returns.
    pub fn cut<E: From<StreamError>>(
        &mut self,
        visit: &mut impl FnMut(StreamEvent<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let held = core::mem::take(&mut self.unmatched);
        self.text(&held, visit)?;
        self.end_segment(visit)
    }

    /// Returns whether the text so far ends in what may be the beginning of a special token.
    pub fn holds_special(&self) -> bool {
        !self.unmatched.is_empty()
    }

    /// Returns the number of bytes that have been pushed and not yet handed out.
    pub fn held_bytes(&self) -> usize {
        self.unmatched.len() + self.character.len() + self.segment.held_bytes()
    }

    /// Hands out the first special token that starts in this range, and what stands before it.
    /// Returns its end.
    fn matched<E: From<StreamError>>(
        &mut self,
        held: &[u8],
        range: core::ops::Range<usize>,
        visit: &mut impl FnMut(StreamEvent<'_>) -> Result<(), E>,
    ) -> Result<Option<usize>, E> {
        let Some((number, found)) = self.specials.find(held, range.start) else {
            return Ok(None);
        };
        if found.start >= range.end {
            return Ok(None);
        }
        let before = held.get(range.start..found.start).unwrap_or_default();
        self.text(before, visit)?;
        self.end_segment(visit)?;
        let special = held.get(found.clone()).unwrap_or_default();
        whole_span(Label::Special(number), special, visit)?;
        Ok(Some(found.end))
    }

    /// Takes text between special tokens.
    fn text<E: From<StreamError>>(
        &mut self,
        bytes: &[u8],
        visit: &mut impl FnMut(StreamEvent<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut bytes = bytes;
        // First the character whose beginning is there.
        while let (false, Some((first, rest))) = (self.character.is_empty(), bytes.split_first()) {
            let mut character = core::mem::take(&mut self.character);
            character.push(*first);
            if is_beginning(&character) {
                self.character = character;
                bytes = rest;
                continue;
            }
            let beginning = character.len() - 1;
            if core::str::from_utf8(&character).is_ok() {
                self.chars(&character, visit)?;
                bytes = rest;
            } else {
                // The byte does not go on with it, so what was there is an invalid part.
                self.invalid(character.get(..beginning).unwrap_or_default(), visit)?;
            }
        }
        self.chars(bytes, visit)
    }

    /// Takes bytes that begin where a character may begin.
    fn chars<E: From<StreamError>>(
        &mut self,
        bytes: &[u8],
        visit: &mut impl FnMut(StreamEvent<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut at = 0;
        for chunk in bytes.utf8_chunks() {
            for character in chunk.valid().chars() {
                self.segment.push(character, visit)?;
            }
            let invalid = chunk.invalid();
            at += chunk.valid().len() + invalid.len();
            if invalid.is_empty() {
            } else if at == bytes.len() && is_beginning(invalid) {
                self.character.extend_from_slice(invalid);
            } else {
                self.invalid(invalid, visit)?;
            }
        }
        Ok(())
    }

    fn invalid<E: From<StreamError>>(
        &mut self,
        part: &[u8],
        visit: &mut impl FnMut(StreamEvent<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.segment.end(visit)?;
        whole_span(Label::Word, part, visit)
    }

    fn end_segment<E: From<StreamError>>(
        &mut self,
        visit: &mut impl FnMut(StreamEvent<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let character = core::mem::take(&mut self.character);
        if !character.is_empty() {
            // It does not end, so it is an invalid part.
            return self.invalid(&character, visit);
        }
        self.segment.end(visit)
    }
}

impl fmt::Debug for StreamSpanner {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("StreamSpanner")
            .field("held_bytes", &self.held_bytes())
            .field("readings", &self.segment.bases)
            .finish_non_exhaustive()
    }
}

/// Are these bytes the beginning of a character, and not yet whole?
fn is_beginning(bytes: &[u8]) -> bool {
    core::str::from_utf8(bytes)
        .is_err_and(|error| error.valid_up_to() == 0 && error.error_len().is_none())
}

/// Hands out a span that is there whole, in a lone reading.
fn whole_span<E>(
    label: Label,
    bytes: &[u8],
    visit: &mut impl FnMut(StreamEvent<'_>) -> Result<(), E>,
) -> Result<(), E> {
    visit(StreamEvent::Start { reading: 0, label })?;
    visit(StreamEvent::Text(bytes))?;
    visit(StreamEvent::End { reading: 0 })
}

/// One segment, read by the automaton.
#[derive(Clone)]
struct Segment {
    analysis: Arc<Analysis>,
    /// All runs that can still be right.
    runs: Vec<Run>,
    /// The next runs, to swap.
    next: Vec<Run>,
    /// Characters that have not been handed out.
    waiting: Waiting,
    /// The number of readings that the receiver knows.
    bases: usize,
    /// Text that all readings go on with, not yet handed out.
    part: Vec<u8>,
    /// Whether spans are open.
    open: bool,
}

/// A run of the automaton.
#[derive(Clone, Copy)]
struct Run {
    state: State,
    /// The reading, as the receiver numbers them, of which this is a continuation.
    base: u8,
    /// What stands before each waiting character.
    outputs: [Output; LONGEST_WAIT + 1],
}

/// The waiting characters, oldest first.
#[derive(Clone, Copy)]
struct Waiting {
    characters: [char; LONGEST_WAIT + 1],
    count: usize,
}

const START: Run = Run {
    state: 0,
    base: 0,
    outputs: [Output::Inside; LONGEST_WAIT + 1],
};

impl Segment {
    fn new(analysis: Arc<Analysis>) -> Self {
        Self {
            analysis,
            runs: vec![START],
            next: Vec::new(),
            waiting: Waiting {
                characters: ['\0'; LONGEST_WAIT + 1],
                count: 0,
            },
            bases: 1,
            part: Vec::new(),
            open: false,
        }
    }

    fn is_open(&self) -> bool {
        self.open || self.waiting.count > 0
    }

    fn held_bytes(&self) -> usize {
        let waiting = self.waiting.characters.iter().take(self.waiting.count);
        self.part.len() + waiting.map(|character| character.len_utf8()).sum::<usize>()
    }

    #[inline]
    fn push<E: From<StreamError>>(
        &mut self,
        character: char,
        visit: &mut impl FnMut(StreamEvent<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let cell = self.analysis.cells.of(character);
        // Mostly there is one run that goes on in one way, and nothing waits.
        if let ([run], 0) = (self.runs.as_mut_slice(), self.waiting.count)
            && let [(output, next)] = self.analysis.machine.steps(run.state, cell)
        {
            run.state = *next;
            let output = *output;
            return self.hand_out(&[(0, output)], character, visit);
        }
        self.next.clear();
        for run in &self.runs {
            for &(output, state) in self.analysis.machine.steps(run.state, cell) {
                let mut next = Run { state, ..*run };
                if let Some(place) = next.outputs.get_mut(self.waiting.count) {
                    *place = output;
                }
                self.next.push(next);
            }
        }
        core::mem::swap(&mut self.runs, &mut self.next);
        if let Some(place) = self.waiting.characters.get_mut(self.waiting.count) {
            *place = character;
        }
        self.waiting.count += 1;
        self.settle(visit)
    }

    /// Hands out what is decided, and what has waited long enough.
    fn settle<E: From<StreamError>>(
        &mut self,
        visit: &mut impl FnMut(StreamEvent<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.drop_readings(visit)?;
        while self.waiting.count > 0 {
            // What each reading says of the oldest waiting character; a reading that says two
            // things is two.
            let mut ways: Vec<(usize, Output)> = Vec::with_capacity(self.bases);
            for run in &self.runs {
                let way = (usize::from(run.base), run.outputs[0]);
                if !ways.contains(&way) {
                    ways.push(way);
                }
            }
            ways.sort_unstable();
            if ways.len() > self.bases {
                if self.waiting.count <= LONGEST_WAIT {
                    return Ok(());
                }
                if ways.len() > MOST_READINGS {
                    return Err(StreamError::too_many_readings().into());
                }
                self.flush(visit)?;
                let from: Vec<usize> = ways.iter().map(|way| way.0).collect();
                visit(StreamEvent::Readings(&from))?;
                self.bases = ways.len();
                for run in &mut self.runs {
                    let way = (usize::from(run.base), run.outputs[0]);
                    let number = ways.iter().position(|other| *other == way);
                    run.base = number.unwrap_or_default() as u8;
                }
                for (number, way) in ways.iter_mut().enumerate() {
                    way.0 = number;
                }
            }
            let character = self.waiting.characters[0];
            self.waiting.characters.rotate_left(1);
            self.waiting.count -= 1;
            for run in &mut self.runs {
                run.outputs.rotate_left(1);
            }
            self.hand_out(&ways, character, visit)?;
        }
        Ok(())
    }

    /// Tells the receiver which readings are left, if some have gone.
    fn drop_readings<E: From<StreamError>>(
        &mut self,
        visit: &mut impl FnMut(StreamEvent<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.bases == 1 {
            return Ok(());
        }
        let runs = &self.runs;
        let is_left = |base: &usize| runs.iter().any(|run| usize::from(run.base) == *base);
        let left: Vec<usize> = (0..self.bases).filter(is_left).collect();
        if left.len() == self.bases {
            return Ok(());
        }
        self.flush(visit)?;
        visit(StreamEvent::Readings(&left))?;
        self.bases = left.len();
        for run in &mut self.runs {
            let number = left.iter().position(|base| *base == usize::from(run.base));
            run.base = number.unwrap_or_default() as u8;
        }
        Ok(())
    }

    /// Hands out one character, with what each reading says of the place before it.
    #[inline]
    fn hand_out<E>(
        &mut self,
        ways: &[(usize, Output)],
        character: char,
        visit: &mut impl FnMut(StreamEvent<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        if ways.iter().any(|way| way.1.is_boundary()) {
            self.flush(visit)?;
            for &(reading, output) in ways {
                if output.is_boundary() {
                    if self.open {
                        visit(StreamEvent::End { reading })?;
                    }
                    let label = label(output);
                    visit(StreamEvent::Start { reading, label })?;
                }
            }
            // The first character of a segment starts a span in every reading.
            self.open = true;
        }
        let mut bytes = [0; 4];
        let bytes = character.encode_utf8(&mut bytes).as_bytes();
        self.part.extend_from_slice(bytes);
        match self.part.len() >= LONGEST_PART {
            true => self.flush(visit),
            false => Ok(()),
        }
    }

    fn flush<E>(
        &mut self,
        visit: &mut impl FnMut(StreamEvent<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        if !self.part.is_empty() {
            visit(StreamEvent::Text(&self.part))?;
            self.part.clear();
        }
        Ok(())
    }

    /// Ends the segment: of the runs the one that accepts is right.
    fn end<E: From<StreamError>>(
        &mut self,
        visit: &mut impl FnMut(StreamEvent<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        if !self.is_open() {
            return Ok(());
        }
        let analysis = Arc::clone(&self.analysis);
        self.runs.retain(|run| analysis.machine.accepts(run.state));
        self.runs.truncate(1);
        self.settle(visit)?;
        self.flush(visit)?;
        visit(StreamEvent::End { reading: 0 })?;
        self.open = false;
        self.runs.clear();
        self.runs.push(START);
        Ok(())
    }
}

/// A text cannot be cut in bounded memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamError {
    readings: usize,
}

impl StreamError {
    fn too_many_readings() -> Self {
        Self {
            readings: MOST_READINGS,
        }
    }

    /// Returns the number of readings that can be kept apart at once.
    pub fn most_readings(&self) -> usize {
        self.readings
    }
}

impl fmt::Display for StreamError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "more than {} readings of the text are possible",
            self.readings
        )
    }
}

impl core::error::Error for StreamError {}

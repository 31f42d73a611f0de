//! Safe cuts: places where a text can be cut in two and lexed in parts.

use std::collections::HashSet;
use std::sync::Arc;

use crate::analysis::cells::{Cell, Cells};
use crate::analysis::machine::State;
use crate::analysis::product::{Futures, Pair, Reached};
use crate::{Analysis, AnalysisError, Pattern};

/// Places where a text can be cut in two, derived from the patterns.
///
/// A place between two neighbouring characters `a` and `b` is a safe cut if, in every text that
/// contains `ab`, the spans are those of the text up to `a` followed by those of the text from
/// `b`. Whether it is depends on the classes of `a` and `b` alone, so the cuts are pairs of classes.
///
/// # How they are derived
///
/// From the [automaton](Analysis) of the patterns, all stages in sequence. A pair of classes is a cut
/// if all of this holds, shown by looking at all pairs of states that one text leads to:
///
/// 1. every run that reads `a` and then `b` has a boundary between them;
/// 2. wherever a text that ends in `a` is accepted, the run of a longer text that goes on with `b`
///    had the same spans so far;
/// 3. every state in which such a run reads `b` cuts what follows as the start does.
///
/// The second matters: before the `1` in `\t\t1` there is always a boundary, but `\s+(?!\S)` sees it
/// (`\t`, `\t`, `1`), and the two tabs alone are one span.
///
/// For a vocabulary without patterns a cut is where no token can stand across, which the caller
/// knows ([`Cuts::at_byte_pairs`]).
///
/// Cheap to clone.
///
/// ```
/// use bpe_lexers::{Cuts, Pattern};
///
/// let cuts = Cuts::new(&[Pattern::o200k()])?;
/// let text = "One two three".as_bytes();
/// assert_eq!(cuts.last_cut(text, text.len()), Some(7));
/// assert_eq!(cuts.last_cut(text, 6), Some(3));
/// assert_eq!(cuts.last_cut(text, 2), None);
/// assert_eq!(cuts.next_cut(text, 4), Some(7));
/// assert_eq!(cuts.nearest_cut(text, 4), Some(3));
/// # Ok::<(), bpe_lexers::AnalysisError>(())
/// ```
#[derive(Clone)]
pub struct Cuts {
    places: Arc<Places>,
}

enum Places {
    /// Whether a cut stands between characters of two cells.
    Classes {
        cells: Cells,
        cuts: Vec<bool>,
        boundaries: usize,
    },
    /// Whether a cut stands between characters that end and begin with these bytes.
    Bytes(Vec<bool>),
}

impl Cuts {
    /// Returns the cuts of a text that these patterns cut one after the other.
    ///
    /// Costs some milliseconds.
    ///
    /// # Errors
    ///
    /// A pattern cannot be [analysed](Analysis::new).
    pub fn new(patterns: &[Pattern]) -> Result<Self, AnalysisError> {
        Ok(Self::of(&Analysis::new(patterns)?))
    }

    /// Returns the cuts of an automaton.
    pub fn of(analysis: &Analysis) -> Self {
        let machine = &analysis.machine;
        let count = machine.cells();
        let place = |a: usize, b: usize| a * count + b;
        // 1: no run that reads a and b is without a boundary between them.
        let mut boundary = vec![true; count * count];
        let mut entered: Vec<HashSet<State>> = vec![HashSet::new(); count];
        for state in 0..machine.len() {
            for (a, entered) in entered.iter_mut().enumerate() {
                for &(_, next) in machine.steps(state as State, a as Cell) {
                    entered.insert(next);
                }
            }
        }
        for (a, entered) in entered.iter().enumerate() {
            for &state in entered {
                for b in 0..count {
                    let mut steps = machine.steps(state, b as Cell).iter();
                    if steps.any(|(output, _)| !output.is_boundary()) {
                        boundary[place(a, b)] = false;
                    }
                }
            }
        }
        let boundaries = boundary.iter().filter(|&&always| always).count();
        let mut cuts = boundary;
        // 2: of two runs that have differed, none ends after a while the other goes on with b.
        let reached = Reached::new(machine, machine);
        for &pair in &reached.pairs {
            for a in 0..count {
                for (_, _, next) in pair.follow(machine, machine, a as Cell) {
                    if !next.differ || !machine.accepts(next.one) {
                        continue;
                    }
                    for b in 0..count {
                        if !machine.steps(next.two, b as Cell).is_empty() {
                            cuts[place(a, b)] = false;
                        }
                    }
                }
            }
        }
        // 3: what follows is cut as from the start.
        let futures = Futures::new(machine);
        for (a, entered) in entered.iter().enumerate() {
            for &one in entered {
                let pair = Pair {
                    one,
                    two: 0,
                    differ: false,
                };
                for b in 0..count {
                    if futures.after(machine, pair, b as Cell).1 {
                        cuts[place(a, b)] = false;
                    }
                }
            }
        }
        Self {
            places: Arc::new(Places::Classes {
                cells: analysis.cells.clone(),
                cuts,
                boundaries,
            }),
        }
    }

    /// Returns the cuts of a text without patterns: between two characters where `is_cut` holds for
    /// the last byte of one and the first byte of the other, since no token contains the two.
    ///
    /// ```
    /// use bpe_lexers::Cuts;
    ///
    /// // In every token a blank is the first byte.
    /// let cuts = Cuts::at_byte_pairs(|_, second| second == b' ');
    /// assert_eq!(cuts.next_cut(b"ab cd", 0), Some(2));
    /// ```
    pub fn at_byte_pairs(is_cut: impl Fn(u8, u8) -> bool) -> Self {
        let firsts = 0..=u8::MAX;
        let pairs = firsts.flat_map(|first| (0..=u8::MAX).map(move |second| (first, second)));
        let pairs = pairs.map(|(first, second)| is_cut(first, second)).collect();
        Self {
            places: Arc::new(Places::Bytes(pairs)),
        }
    }

    /// Returns the number of pairs of classes between which there is a cut, and of those between
    /// which there always is a boundary. For byte pairs the two are the same.
    pub fn pair_counts(&self) -> (usize, usize) {
        let count = |cuts: &[bool]| cuts.iter().filter(|&&is_cut| is_cut).count();
        match &*self.places {
            Places::Classes {
                cuts, boundaries, ..
            } => (count(cuts), *boundaries),
            Places::Bytes(cuts) => (count(cuts), count(cuts)),
        }
    }

    /// Is the place between these two neighbouring characters a cut?
    #[inline]
    pub fn is_cut(&self, before: char, after: char) -> bool {
        match &*self.places {
            Places::Classes { cells, cuts, .. } => {
                let row = usize::from(cells.of(before)) * cells.count();
                cuts[row + usize::from(cells.of(after))]
            }
            Places::Bytes(cuts) => {
                let mut bytes = [0; 4];
                let last = before.encode_utf8(&mut bytes).bytes().next_back();
                let first = after.encode_utf8(&mut bytes).bytes().next();
                match (last, first) {
                    (Some(last), Some(first)) => cuts[usize::from(last) << 8 | usize::from(first)],
                    _ => false,
                }
            }
        }
    }

    /// Returns the last byte offset `p`, `0 < p <= at_most`, at which `text` can be cut: the spans
    /// of `text[..p]` followed by those of `text[p..]` are those of `text`, and of every text that
    /// begins with `text`.
    ///
    /// A cut stands between two characters that are valid UTF-8 and whole in `text`, so never at
    /// its end. `None` if there is none, as inside one long word.
    ///
    /// Special tokens are the caller's business: the two characters must not belong to one, nor
    /// must one stand across the cut.
    ///
    /// Looks at the characters from `at_most` back to the cut; in ordinary text a few.
    pub fn last_cut(&self, text: &[u8], at_most: usize) -> Option<usize> {
        let mut place = at_most.min(text.len());
        let mut after = char_from(text, place);
        loop {
            let before = char_up_to(text, place);
            if let (Some(a), Some(b)) = (before, after)
                && self.is_cut(a, b)
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

    /// Returns the first byte offset `p`, `at_least <= p`, at which `text` can be cut; otherwise as
    /// [`last_cut`](Cuts::last_cut).
    pub fn next_cut(&self, text: &[u8], at_least: usize) -> Option<usize> {
        let mut place = at_least.max(1);
        let mut before = char_up_to(text, place);
        while place < text.len() {
            let after = char_from(text, place);
            if let (Some(a), Some(b)) = (before, after)
                && self.is_cut(a, b)
            {
                return Some(place);
            }
            place += after.map_or(1, char::len_utf8);
            before = match after {
                Some(b) => Some(b),
                None => char_up_to(text, place),
            };
        }
        None
    }

    /// Returns the cut nearest to byte `near`; of two that are equally near the one before.
    /// Otherwise as [`last_cut`](Cuts::last_cut).
    pub fn nearest_cut(&self, text: &[u8], near: usize) -> Option<usize> {
        let near = near.min(text.len());
        let before = self.last_cut(text, near);
        // A cut behind counts only if it is nearer.
        let end = match before {
            Some(place) if place == near => return before,
            Some(place) => text.len().min(near + (near - place) + 3),
            None => text.len(),
        };
        let after = self.next_cut(text.get(..end)?, near);
        match (before, after) {
            (Some(b), Some(a)) if a - near < near - b => Some(a),
            (Some(b), _) => Some(b),
            (None, after) => after,
        }
    }
}

impl core::fmt::Debug for Cuts {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        formatter
            .debug_struct("Cuts")
            .field("pairs", &self.pair_counts().0)
            .finish()
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

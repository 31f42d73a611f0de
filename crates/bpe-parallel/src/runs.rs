//! Periodic stretches of a piece, `aaaa...`, taken out before it is cut and filled in afterwards.
//!
//! Two tokenizations of such a stretch that begin out of step may have no token in common, however
//! long it is; so it must not be cut. It need not be tokenized at length either. Let the tokens of a
//! piece S contain one token twice, at `[i - s, j - s)` and at `[i, j)`. Then up to `j` they are the
//! tokens of S[..j], and from `i - s` those of S[i - s..] (truncation). Put s bytes in: in
//! S[..j] + S[j - s..] these two parts overlap in that token, so (docs/theory.md, fact 5) the tokens are those of S
//! up to `j` and after them those of S behind `j - s`: what stands between the two places once more.
//! If i and i - s lie in a stretch of which s is a period, the stretch has become longer by s, and nothing
//! else has changed. So a long stretch is shortened by a multiple of s, and its tokens are repeated.

use bpe_core::TokenId;

use crate::tokenize::Tokenize;

/// Longer periods are not looked for.
const LONGEST_PERIOD: usize = 64;

/// How many bytes must be periodic for a place to count as one in a periodic stretch.
const PROBE: usize = 512;

/// Bytes of a stretch that are left in, at least.
const KEPT: usize = 2048;

/// A piece without most of its periodic stretches.
#[derive(Debug)]
pub(crate) struct Shortened {
    text: Vec<u8>,
    runs: Vec<Run>,
}

/// A periodic stretch, as it stands in the shortened piece.
#[derive(Debug)]
struct Run {
    start: usize,
    end: usize,
    /// The distance at which tokens repeat: a multiple of the period.
    distance: usize,
    /// How often that many bytes were taken out.
    times: usize,
}

/// Periodic stretches of a piece that are so long that it pays to take them out.
#[derive(Debug)]
pub(crate) struct Stretches {
    /// Where each stands, and its period.
    stretches: Vec<(usize, usize, usize)>,
    /// Bytes of each that are left in, at least, and that are merged to see after how many bytes its tokens repeat.
    kept: usize,
}

/// The long periodic stretches that stand at `places`; `None` where taking them out saves less than half. So merging
/// what is left, twice at worst, takes no more than the piece, which can still be merged once if filling in fails.
pub(crate) fn worth_shortening(
    piece: &[u8],
    places: impl Iterator<Item = usize>,
    longest_token: usize,
) -> Option<Stretches> {
    let kept = KEPT.max(16 * longest_token);
    let mut stretches = Vec::new();
    let (mut seen, mut left) = (0, piece.len());
    for place in places {
        if place < seen {
            continue;
        }
        let Some(period) = period_at(piece, place) else {
            continue;
        };
        let (start, end) = stretch(piece, place, period, seen);
        seen = end;
        if end - start > 3 * kept {
            // A multiple of the distance is taken out, which is below half the length of the sample.
            left -= end - start - kept - kept / 2;
            stretches.push((start, end, period));
        }
    }
    let cost = 2 * left + kept * stretches.len();
    (!stretches.is_empty() && cost <= piece.len()).then_some(Stretches { stretches, kept })
}

/// Whether a place is one in a periodic stretch.
pub(crate) fn is_periodic(piece: &[u8], place: usize) -> bool {
    period_at(piece, place).is_some()
}

impl Stretches {
    /// Bytes that [`shorten`](Stretches::shorten) merges at most.
    pub(crate) fn sample_bytes(&self) -> usize {
        self.kept * self.stretches.len()
    }

    /// The piece without most of the stretches. `None` where the tokens of one do not repeat.
    pub(crate) fn shorten<T: Tokenize>(&self, tokenizer: &T, piece: &[u8]) -> Option<Shortened> {
        let mut short = Shortened {
            text: Vec::new(),
            runs: Vec::new(),
        };
        let mut copied = 0;
        for &(start, end, period) in &self.stretches {
            let sample = piece.get(start..start + self.kept).unwrap_or_default();
            let distance = repetition(tokenizer, sample, period)?;
            let times = (end - start - self.kept) / distance;
            let left_in = end - times * distance;
            short.text.extend_from_slice(&piece[copied..left_in]);
            copied = end;
            let run_end = short.text.len();
            short.runs.push(Run {
                start: run_end - (left_in - start),
                end: run_end,
                distance,
                times,
            });
        }
        short.text.extend_from_slice(&piece[copied..]);
        Some(short)
    }
}

impl Shortened {
    pub(crate) fn text(&self) -> &[u8] {
        &self.text
    }

    pub(crate) fn run_count(&self) -> usize {
        self.runs.len()
    }

    /// Whether the `reach` bytes from `place` on touch a stretch.
    pub(crate) fn is_near_a_run(&self, place: usize, reach: usize) -> bool {
        let next = self.runs.partition_point(|run| run.end <= place);
        let run = self.runs.get(next);
        run.is_some_and(|run| run.start <= place + reach)
    }

    /// The tokens of the piece, from those of the shortened one and where each ends. `None` where a
    /// stretch has no token twice at the distance that was expected.
    pub(crate) fn fill(&self, ids: &[TokenId], ends: &[usize]) -> Option<Vec<TokenId>> {
        let mut filled = Vec::with_capacity(ids.len() + ids.len() / 2);
        let mut copied = 0;
        for run in &self.runs {
            let (first, last) = self.twice(run, ids, ends)?;
            filled.extend_from_slice(&ids[copied..=last]);
            for _ in 0..run.times {
                filled.extend_from_slice(&ids[first + 1..=last]);
            }
            copied = last + 1;
        }
        filled.extend_from_slice(&ids[copied..]);
        Some(filled)
    }

    /// The numbers of two equal tokens inside the stretch that stand at its distance, as near to its end
    /// as they are found.
    fn twice(&self, run: &Run, ids: &[TokenId], ends: &[usize]) -> Option<(usize, usize)> {
        let start_of = |index: usize| index.checked_sub(1).map_or(0, |before| ends[before]);
        let behind = ends.partition_point(|&end| end <= run.end);
        (0..behind)
            .rev()
            .take_while(|&last| start_of(last) >= run.start + run.distance)
            .find_map(|last| {
                let end = ends[last] - run.distance;
                let first = ends.binary_search(&end).ok()?;
                let is_same = ids[first] == ids[last]
                    && start_of(first) + run.distance == start_of(last)
                    && start_of(first) >= run.start;
                is_same.then_some((first, last))
            })
    }
}

/// The shortest period of what stands at `place` and behind it.
fn period_at(piece: &[u8], place: usize) -> Option<usize> {
    let probe = piece.get(place..place + PROBE)?;
    (1..=LONGEST_PERIOD)
        .find(|period| piece.get(place + period..place + period + PROBE) == Some(probe))
}

/// The stretch of this period around `place`, not before `from`.
fn stretch(piece: &[u8], place: usize, period: usize, from: usize) -> (usize, usize) {
    let behind = piece.get(place + period..).unwrap_or_default();
    let same = behind.iter().zip(&piece[place..]);
    let end = place + period + same.take_while(|(a, b)| a == b).count();
    let before = piece.get(from..place).unwrap_or_default();
    let same = before
        .iter()
        .rev()
        .zip(piece[..place + period].iter().rev());
    let start = place - same.take_while(|(a, b)| a == b).count();
    (start, end)
}

/// The shortest distance, a multiple of `period`, at which a token in the middle of the sample stands
/// twice.
fn repetition<T: Tokenize>(tokenizer: &T, sample: &[u8], period: usize) -> Option<usize> {
    let mut ids = Vec::new();
    // Whoever merges the piece will meet an error at its place.
    tokenizer.merge(sample, &mut ids).ok()?;
    let mut starts = Vec::with_capacity(ids.len());
    let mut end = 0;
    for &id in &ids {
        starts.push(end);
        end += tokenizer.token_len(id)?;
    }
    let middle = starts.partition_point(|&start| start < sample.len() / 2);
    let (&id, &start) = (ids.get(middle)?, starts.get(middle)?);
    let is_same =
        |&other: &usize| ids[other] == id && (start - starts[other]).is_multiple_of(period);
    let other = (0..middle).rev().find(is_same);
    other.map(|other| start - starts[other])
}

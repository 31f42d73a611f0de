//! The tokens of one long pre-token, merged on several threads.
//!
//! Where no token contains the two bytes on either side of a place, no merge crosses it, and the
//! piece falls apart there (docs/theory.md, fact 7). Elsewhere it is cut anywhere, the part before
//! the cut goes on behind it for some bytes, and the two tokenizations are joined at the first token
//! that both have at one place (fact 5). In a periodic stretch there may be none: [`crate::runs`]
//! takes such stretches out first.
//!
//! Where two parts have no token in common, the left one goes on: from one of its own boundaries the
//! part on the right is merged once more. If that has none either, the piece is merged as a whole.

use bpe_core::TokenId;

use crate::exact::is_start;
use crate::runs::{self, Shortened};
use crate::tokenize::{SpanSeams, Tokenize};
use crate::workers::Team;

/// How far a part reaches behind its cut.
const OVERLAP: usize = 1024;

/// How far from the wished place two bytes are looked for that no token contains together.
const REACH: usize = 256;

/// What was done for a piece: for tests and measurements.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PieceReport {
    /// Cuts between bytes that no token contains together.
    pub exact_cuts: usize,
    /// Cuts that were joined at a token.
    pub joined_cuts: usize,
    /// Of these, cuts for which the right part was merged once more.
    pub second_tries: usize,
    /// Whether the piece was merged as a whole in the end.
    pub is_whole: bool,
    /// Periodic stretches that were filled in.
    pub runs: usize,
}

impl PieceReport {
    pub(crate) fn add(&mut self, other: Self) {
        self.exact_cuts += other.exact_cuts;
        self.joined_cuts += other.joined_cuts;
        self.second_tries += other.second_tries;
        self.is_whole |= other.is_whole;
        self.runs += other.runs;
    }
}

/// The tokens of a piece by merging alone, as vectors that follow each other.
pub(crate) fn merge<T: Tokenize>(
    tokenizer: &T,
    seams: &SpanSeams,
    piece: &[u8],
    size: usize,
    team: Team<'_>,
) -> Result<(Vec<Vec<TokenId>>, PieceReport), T::Error> {
    let size = size.max(1);
    let mut report = PieceReport::default();
    let places = (1..).map(|part| part * size);
    let places = places.take_while(|place| place + size / 2 < piece.len());
    if seams.joins
        && let Some(short) = runs::shorten(tokenizer, seams, piece, places.clone())
        && let Some(ids) = with_runs(tokenizer, seams, &short, size, team, &mut report)?
    {
        report.runs = short.run_count();
        return Ok((vec![ids], report));
    }
    let cuts = cuts(seams, piece, places, OVERLAP.min(size / 2).max(1));
    let parts = cut_and_join(tokenizer, seams, piece, &cuts, team, &mut report)?;
    Ok((parts.into_iter().map(Part::into_ids).collect(), report))
}

/// The tokens of a piece that has been shortened, with what was taken out; `None` where it cannot be
/// filled in.
fn with_runs<T: Tokenize>(
    tokenizer: &T,
    seams: &SpanSeams,
    short: &Shortened,
    size: usize,
    team: Team<'_>,
    report: &mut PieceReport,
) -> Result<Option<Vec<TokenId>>, T::Error> {
    let piece = short.text();
    let places = (1..).map(|part| part * size);
    let places = places.take_while(|place| place + size / 2 < piece.len());
    let overlap = OVERLAP.min(size / 2).max(1);
    let places = places.filter(|&place| !short.is_near_a_run(place, overlap));
    let cuts = cuts(seams, piece, places, overlap);
    let parts = cut_and_join(tokenizer, seams, piece, &cuts, team, report)?;
    let tokens = parts.into_iter().flat_map(Part::into_tokens);
    let (ids, ends): (Vec<TokenId>, Vec<usize>) = tokens.unzip();
    Ok(short.fill(&ids, &ends))
}

/// The tokens that merging gives for a piece that is cut at these places, for which see [`Cut`]. For
/// tests, and for callers who know where they want to cut.
///
/// # Errors
///
/// The first byte or character that no token stands for.
pub fn merge_in_parts<T: Tokenize>(
    tokenizer: &T,
    seams: &SpanSeams,
    piece: &[u8],
    cuts: &[Cut],
    team: Team<'_>,
) -> Result<(Vec<TokenId>, PieceReport), T::Error> {
    let mut report = PieceReport::default();
    let parts = cut_and_join(tokenizer, seams, piece, cuts, team, &mut report)?;
    let ids = parts.into_iter().flat_map(Part::into_ids);
    Ok((ids.collect(), report))
}

/// Where a piece is cut. In a list of cuts they stand in order and inside the piece. Where atoms are
/// characters, a cut and the end of its overlap are not inside one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// The byte behind the cut.
    pub place: usize,
    /// How many bytes behind it the part before it reaches; 0 where no merge crosses the cut.
    pub overlap: usize,
}

/// The cuts near the wished places, in order.
fn cuts(
    seams: &SpanSeams,
    piece: &[u8],
    places: impl Iterator<Item = usize>,
    overlap: usize,
) -> Vec<Cut> {
    let mut cuts: Vec<Cut> = Vec::new();
    let Some(pairs) = &seams.pairs else {
        return cuts;
    };
    for place in places {
        let is_exact = |&place: &usize| match place.checked_sub(1).map(|last| piece.get(last..)) {
            Some(Some(&[first, second, ..])) => {
                is_start(piece, place) && !pairs.in_a_token(first, second)
            }
            _ => false,
        };
        let reach = REACH.min(overlap);
        let low = place.saturating_sub(reach);
        let down = (low..=place).rev().find(is_exact);
        let exact = down.or_else(|| (place + 1..place + reach).find(is_exact));
        let cut = match exact {
            Some(place) => Cut { place, overlap: 0 },
            None if seams.joins => {
                let Some(place) = (place.saturating_sub(3)..=place)
                    .rev()
                    .find(|&place| is_start(piece, place))
                else {
                    continue;
                };
                Cut { place, overlap }
            }
            None => continue,
        };
        if cuts.last().map_or(0, |last| last.place) < cut.place && cut.place < piece.len() {
            cuts.push(cut);
        }
    }
    cuts
}

/// Tokens of a part of a piece, of which those before `from` are left out.
#[derive(Debug)]
pub(crate) struct Part {
    ids: Vec<TokenId>,
    /// Of each token, where it ends in the piece.
    ends: Vec<usize>,
    from: usize,
    /// Where the part begins in the piece: the first of all its tokens.
    start: usize,
}

impl Part {
    fn into_ids(mut self) -> Vec<TokenId> {
        self.ids.drain(..self.from);
        self.ids
    }

    pub(crate) fn into_tokens(self) -> impl Iterator<Item = (TokenId, usize)> {
        let tokens = self.ids.into_iter().zip(self.ends);
        tokens.skip(self.from)
    }

    /// Where token `index` begins.
    fn start_of(&self, index: usize) -> usize {
        match index.checked_sub(1) {
            Some(before) => self.ends[before],
            None => self.start,
        }
    }
}

/// Cuts the piece, merges the parts and joins them.
pub(crate) fn cut_and_join<T: Tokenize>(
    tokenizer: &T,
    seams: &SpanSeams,
    piece: &[u8],
    cuts: &[Cut],
    team: Team<'_>,
    report: &mut PieceReport,
) -> Result<Vec<Part>, T::Error> {
    let mut jobs = Vec::with_capacity(cuts.len() + 1);
    let mut start = 0;
    for cut in cuts {
        jobs.push(start..overlap_end(piece, cut));
        start = cut.place;
    }
    jobs.push(start..piece.len());
    let merge = |range: &core::ops::Range<usize>| -> Result<Part, T::Error> {
        let mut part = Part {
            ids: Vec::new(),
            ends: Vec::new(),
            from: 0,
            start: range.start,
        };
        let text = piece.get(range.clone()).unwrap_or_default();
        tokenizer
            .merge(text, &mut part.ids)
            .map_err(|error| T::moved(error, range.start))?;
        // What cannot be joined needs no ends.
        if seams.joins {
            let mut end = range.start;
            part.ends.reserve_exact(part.ids.len());
            for &id in &part.ids {
                end += tokenizer.token_len(id).unwrap_or(0);
                part.ends.push(end);
            }
        }
        Ok(part)
    };
    let mut merged = team.map(&jobs, merge).into_iter();
    let mut joined: Vec<Part> = merged.next().into_iter().collect::<Result<_, _>>()?;
    for ((cut, part), job) in cuts.iter().zip(merged).zip(&jobs[1..]) {
        let mut part = part?;
        if cut.overlap == 0 {
            report.exact_cuts += 1;
            joined.push(part);
            continue;
        }
        report.joined_cuts += 1;
        let Some(found) = shared_token(&joined, &part) else {
            // The left part goes on: from a boundary of its own, far from where it ends.
            report.second_tries += 1;
            let boundary = last_boundary(&joined, cut.place);
            part = merge(&(boundary..job.end))?;
            let Some(found) = shared_token(&joined, &part) else {
                report.is_whole = true;
                return Ok(vec![merge(&(0..piece.len()))?]);
            };
            join(&mut joined, part, found);
            continue;
        };
        join(&mut joined, part, found);
    }
    Ok(joined)
}

/// Where the part before a cut ends: not inside a character.
fn overlap_end(piece: &[u8], cut: &Cut) -> usize {
    let end = piece.len().min(cut.place + cut.overlap);
    match cut.overlap {
        0 => end,
        _ => (end..piece.len())
            .find(|&end| is_start(piece, end))
            .unwrap_or(piece.len()),
    }
}

/// The end of the first token that the parts so far and the next one have at one place, and the number
/// of the next one's tokens up to it.
fn shared_token(joined: &[Part], next: &Part) -> Option<(usize, usize)> {
    // The first of the parts so far in which a token ends behind the start of the next part.
    let reaches = |part: &&Part| part.ends.last().is_some_and(|&end| end > next.start);
    let first = joined.iter().rev().take_while(reaches).count();
    let mut right = 0;
    for part in &joined[joined.len() - first..] {
        let behind = part.ends.partition_point(|&end| end <= next.start);
        let mut left = behind.max(part.from);
        while left < part.ids.len() && right < next.ids.len() {
            let (left_end, right_end) = (part.ends[left], next.ends[right]);
            let is_shared = left_end == right_end
                && part.ids[left] == next.ids[right]
                && part.start_of(left) == next.start_of(right);
            if is_shared {
                return Some((left_end, right + 1));
            }
            left += usize::from(left_end <= right_end);
            right += usize::from(right_end <= left_end);
        }
    }
    None
}

/// The last boundary of the parts so far that is at most `place`; 0 where there is none.
fn last_boundary(joined: &[Part], place: usize) -> usize {
    let boundary = |part: &Part| {
        let behind = part.ends.partition_point(|&end| end <= place);
        let last = behind.checked_sub(1)?;
        (last >= part.from).then(|| part.ends[last])
    };
    joined.iter().rev().find_map(boundary).unwrap_or(0)
}

/// Keeps of the parts so far what ends at `found.0` or before, and of the next one what is behind it.
fn join(joined: &mut Vec<Part>, mut next: Part, (end, from): (usize, usize)) {
    while let Some(mut last) = joined.pop() {
        let kept = last.ends.partition_point(|&other| other <= end);
        if kept > last.from {
            last.ids.truncate(kept);
            last.ends.truncate(kept);
            joined.push(last);
            break;
        }
    }
    next.from = from;
    joined.push(next);
}

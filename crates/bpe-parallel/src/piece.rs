//! The tokens of one long pre-token, merged on several threads.
//!
//! Where no token contains the two bytes on either side of a place, no merge crosses it, and the
//! piece falls apart there (docs/theory.md, fact 7). Elsewhere it is cut anywhere. Each part is merged
//! by itself; then the one on the left goes on behind the cut for some bytes, a *look*, and the two
//! tokenizations are joined at the first token that both have at one place (fact 5).
//!
//! ```text
//! parts       |-------------------------|--------------------------|----------------
//! look                             |-------|
//!                a boundary of the left part
//! ```
//!
//! Where two parts have no token in common, the left one goes on over the right one, and so on until it has a token
//! in common with another. It goes on from a boundary that no text behind it can move, since that reaches back over
//! so many bytes at most ([`Tokenize::influence`]); so nothing is begun anew. In a periodic stretch no two parts may
//! ever meet: [`crate::runs`] takes such stretches out first where they are most of the piece, and elsewhere they are
//! not cut.
//!
//! # At most twice
//!
//! Let n be the bytes of the piece. Merging the parts takes n, and merging all that follows a boundary b, in one go,
//! n - b. So as long as looks and what was gone over take b in all, everything takes 2 n at most. That is asked before
//! each of them (`Joiner::room`); where there is no room, the left part goes on to the end. The bytes in front of a
//! place from which the left part goes on, an influence and some tokens, are in its part, in a look and in what goes
//! on: three times, and four at worst where two such places follow each other.

use std::collections::VecDeque;
use std::ops::Range;

use bpe_core::TokenId;

use crate::exact::is_start;
use crate::runs::{self, Shortened};
use crate::tokenize::{SpanSeams, Tokenize};
use crate::workers::Team;

/// How far a look reaches behind its cut.
const OVERLAP: usize = 512;

/// How far from the wished place two bytes are looked for that no token contains together.
const REACH: usize = 256;

/// What was done for a piece: for tests and measurements.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PieceReport {
    /// Cuts between bytes that no token contains together.
    pub exact_cuts: usize,
    /// Other cuts.
    pub joined_cuts: usize,
    /// Of these, cuts at which no token was shared, so that the left part went on.
    pub extensions: usize,
    /// Whether the piece was merged as a whole in the end.
    pub is_whole: bool,
    /// Periodic stretches that were filled in.
    pub runs: usize,
    /// Bytes that were merged, each as often as it was.
    pub merged_bytes: usize,
}

impl PieceReport {
    pub(crate) fn add(&mut self, other: Self) {
        self.exact_cuts += other.exact_cuts;
        self.joined_cuts += other.joined_cuts;
        self.extensions += other.extensions;
        self.is_whole |= other.is_whole;
        self.runs += other.runs;
        self.merged_bytes += other.merged_bytes;
    }
}

/// The tokens of a piece by merging alone, as vectors that follow each other. At most twice the bytes of the piece are
/// merged, where the influence of what follows is known.
pub(crate) fn merge<T: Tokenize>(
    tokenizer: &T,
    seams: &SpanSeams,
    piece: &[u8],
    size: usize,
    team: Team<'_>,
) -> Result<(Vec<Vec<TokenId>>, PieceReport), T::Error> {
    let size = size.max(1);
    let overlap = OVERLAP.min(size / 2).max(1);
    let mut report = PieceReport::default();
    let places = |bytes: usize| {
        let places = (1..).map(move |part| part * size);
        places.take_while(move |place| place + size / 2 < bytes)
    };
    let work = Work {
        tokenizer,
        seams,
        piece,
        is_bounded: true,
    };
    if seams.joins
        && let Some(runs) = runs::worth_shortening(piece, places(piece.len()), seams.longest_token)
    {
        let short = runs.shorten(tokenizer, piece);
        report.merged_bytes += runs.sample_bytes();
        if let Some(short) = short {
            let text = short.text();
            let places = places(text.len()).filter(|&place| !short.is_near_a_run(place, overlap));
            let cuts = cuts(seams, text, places, overlap);
            let work = Work {
                piece: text,
                ..work
            };
            let parts = cut_and_join(&work, &cuts, team, &mut report)?;
            if let Some(ids) = filled(&short, parts) {
                report.runs = short.run_count();
                return Ok((vec![ids], report));
            }
        }
        report.is_whole = true;
        report.merged_bytes += piece.len();
        let whole = work.merge(&(0..piece.len()))?;
        return Ok((vec![whole.into_ids()], report));
    }
    let places = places(piece.len());
    let places = places.filter(|&place| !seams.joins || !runs::is_periodic(piece, place));
    let cuts = cuts(seams, piece, places, overlap);
    let parts = cut_and_join(&work, &cuts, team, &mut report)?;
    Ok((parts.into_iter().map(Part::into_ids).collect(), report))
}

/// The tokens of a piece that has been shortened, with what was taken out; `None` where it cannot be
/// filled in.
fn filled(short: &Shortened, parts: Vec<Part>) -> Option<Vec<TokenId>> {
    let tokens = parts.into_iter().flat_map(Part::into_tokens);
    let (ids, ends): (Vec<TokenId>, Vec<usize>) = tokens.unzip();
    short.fill(&ids, &ends)
}

/// The tokens that merging gives for a piece that is cut at these places, for which see [`Cut`]. For
/// tests, and for callers who know where they want to cut: how much is merged is not bounded.
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
    let work = Work {
        tokenizer,
        seams,
        piece,
        is_bounded: false,
    };
    let parts = cut_and_join(&work, cuts, team, &mut report)?;
    let ids = parts.into_iter().flat_map(Part::into_ids);
    Ok((ids.collect(), report))
}

/// Where a piece is cut. In a list of cuts they stand in order and inside the piece. Where atoms are
/// characters, a cut and the end of its overlap are not inside one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// The byte behind the cut.
    pub place: usize,
    /// How many bytes behind it the part before it goes on, at most; 0 where no merge crosses the cut.
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
struct Part {
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

    fn into_tokens(self) -> impl Iterator<Item = (TokenId, usize)> {
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

    /// The last place up to `place` at which a token ends and no character goes on.
    fn last_boundary(&self, piece: &[u8], place: usize) -> Option<usize> {
        let behind = self.ends.partition_point(|&end| end <= place);
        let ends = self.ends.get(self.from..behind).unwrap_or_default();
        ends.iter().rev().copied().find(|&end| is_start(piece, end))
    }
}

/// What is merged, and how.
struct Work<'p, T> {
    tokenizer: &'p T,
    seams: &'p SpanSeams,
    piece: &'p [u8],
    /// Whether twice the bytes of the piece is all that may be merged.
    is_bounded: bool,
}

impl<T: Tokenize> Work<'_, T> {
    fn merge(&self, range: &Range<usize>) -> Result<Part, T::Error> {
        let mut part = Part {
            ids: Vec::new(),
            ends: Vec::new(),
            from: 0,
            start: range.start,
        };
        let text = self.piece.get(range.clone()).unwrap_or_default();
        self.tokenizer
            .merge(text, &mut part.ids)
            .map_err(|error| T::moved(error, range.start))?;
        // What cannot be joined needs no ends.
        if self.seams.joins {
            let mut end = range.start;
            part.ends.reserve_exact(part.ids.len());
            for &id in &part.ids {
                end += self.tokenizer.token_len(id).unwrap_or(0);
                part.ends.push(end);
            }
        }
        Ok(part)
    }
}

/// Cuts the piece, merges the parts and joins them.
fn cut_and_join<T: Tokenize>(
    work: &Work<'_, T>,
    cuts: &[Cut],
    team: Team<'_>,
    report: &mut PieceReport,
) -> Result<Vec<Part>, T::Error> {
    let mut ranges = Vec::with_capacity(cuts.len() + 1);
    let mut start = 0;
    for cut in cuts {
        ranges.push(start..cut.place);
        start = cut.place;
    }
    ranges.push(start..work.piece.len());
    let parts = team.map(&ranges, |range| work.merge(range));
    let parts: Vec<Part> = parts.into_iter().collect::<Result<_, _>>()?;
    report.merged_bytes += work.piece.len();
    let mut parts = parts.into_iter();
    let mut joined = Vec::with_capacity(ranges.len());
    let (mut start, mut cuts) = (0, cuts);
    loop {
        // What stands between two cuts that no merge crosses.
        let inside = cuts.iter().take_while(|cut| cut.overlap > 0).count();
        let end = cuts.get(inside).map_or(work.piece.len(), |cut| cut.place);
        let joiner = Joiner {
            work,
            range: start..end,
            cuts: &cuts[..inside],
            influence: match inside {
                0 => None,
                _ => work.tokenizer.influence(),
            },
            joined: Vec::new(),
            merged: end - start,
            looks: VecDeque::new(),
        };
        joined.append(&mut joiner.join(parts.by_ref().take(inside + 1), team, report)?);
        let Some(rest) = cuts.get(inside + 1..) else {
            return Ok(joined);
        };
        report.exact_cuts += 1;
        (start, cuts) = (end, rest);
    }
}

/// Joins the parts of a piece, or of what stands between two cuts that no merge crosses.
struct Joiner<'p, T> {
    work: &'p Work<'p, T>,
    range: Range<usize>,
    cuts: &'p [Cut],
    influence: Option<usize>,
    /// What is right so far: the tokens of the beginning of the range.
    joined: Vec<Part>,
    /// Bytes that have been merged.
    merged: usize,
    /// For the next cuts.
    looks: VecDeque<Part>,
}

impl<T: Tokenize> Joiner<'_, T> {
    fn join(
        mut self,
        parts: impl Iterator<Item = Part>,
        team: Team<'_>,
        report: &mut PieceReport,
    ) -> Result<Vec<Part>, T::Error> {
        let parts: Vec<Part> = parts.collect();
        report.joined_cuts += self.cuts.len();
        let starts: Vec<usize> = self
            .cuts
            .iter()
            .zip(&parts)
            .map(|(cut, left)| {
                let place = cut.place.saturating_sub(self.back(cut));
                let boundary = left.last_boundary(self.work.piece, place);
                boundary.unwrap_or(left.start)
            })
            .collect();
        let mut parts = parts.into_iter();
        self.joined.extend(parts.next());
        // The end of the text whose tokens are known.
        let mut end = self.end_of(0);
        for (number, right) in parts.enumerate() {
            let cut = self.cuts[number];
            let right_end = self.end_of(number + 1);
            if end <= cut.place {
                if self.looks.is_empty() {
                    self.look(&starts, number, team)?;
                }
                if let Some(look) = self.looks.pop_front()
                    && self.append(look)
                {
                    end = self.end_of_look(number);
                }
            } else {
                self.looks.pop_front();
            }
            if end >= right_end {
                continue;
            }
            if end > cut.place && self.append(right) {
                end = right_end;
                continue;
            }
            report.extensions += 1;
            let is_joined = match self.influence {
                None => false,
                Some(_) => {
                    // Not to a cut so near that the same bytes would be merged again and again.
                    let far = |&next: &usize| self.end_of_look(next) >= end + 2 * self.reach(&cut);
                    let next = (number + 1..self.cuts.len()).find(far);
                    let next = next.filter(|_| self.room(end) >= self.reach(&cut));
                    let to = next.map_or(self.range.end, |next| self.end_of_look(next));
                    let from = self.boundary(end.saturating_sub(self.back(&cut)));
                    end = to;
                    let extension = self.merge(&(from..to))?;
                    self.append(extension)
                }
            };
            if !is_joined {
                report.is_whole = true;
                let whole = self.merge(&self.range.clone())?;
                self.joined = vec![whole];
                break;
            }
        }
        report.merged_bytes += self.merged - self.range.len();
        Ok(self.joined)
    }

    /// How far in front of where a text ends its tokens are certain. Where that is not known, it is tried.
    fn back(&self, cut: &Cut) -> usize {
        self.influence
            .map_or(cut.overlap, |influence| influence + 1)
    }

    /// How far in front of where a text ends a boundary is found that is certain, at most.
    fn reach(&self, cut: &Cut) -> usize {
        // The last one may stand in a character.
        self.back(cut) + 2 * self.work.seams.longest_token + 4
    }

    /// How many bytes may be merged so that after them all from `end` on may still be merged in one go.
    fn room(&self, end: usize) -> usize {
        if !self.work.is_bounded {
            return usize::MAX;
        }
        let reach = self.cuts.first().map_or(0, |cut| self.reach(cut));
        let rest = self.range.end - end.saturating_sub(reach).max(self.range.start);
        (2 * self.range.len()).saturating_sub(self.merged + rest)
    }

    /// Where part `number` ends.
    fn end_of(&self, number: usize) -> usize {
        self.cuts
            .get(number)
            .map_or(self.range.end, |cut| cut.place)
    }

    /// Where the look at a cut ends: at most where the next part does, and not inside a character.
    fn end_of_look(&self, number: usize) -> usize {
        let part_end = self.end_of(number + 1);
        let cut = &self.cuts[number];
        let mut ends = (cut.place + cut.overlap).min(part_end)..part_end;
        ends.find(|&end| is_start(self.work.piece, end))
            .unwrap_or(part_end)
    }

    fn merge(&mut self, range: &Range<usize>) -> Result<Part, T::Error> {
        self.merged += range.len();
        self.work.merge(range)
    }

    /// Merges looks from cut `first` on, as many as there is room for.
    fn look(&mut self, starts: &[usize], first: usize, team: Team<'_>) -> Result<(), T::Error> {
        let mut room = self.room(self.cuts[first].place);
        let mut ranges = Vec::new();
        for (number, &start) in starts.iter().enumerate().skip(first) {
            let range = start..self.end_of_look(number);
            if range.len() > room {
                break;
            }
            room -= range.len();
            self.merged += range.len();
            ranges.push(range);
        }
        for look in team.map(&ranges, |range| self.work.merge(range)) {
            self.looks.push_back(look?);
        }
        Ok(())
    }

    /// The last boundary of what is joined up to `place`, or the start.
    fn boundary(&self, place: usize) -> usize {
        let boundary = |part: &Part| part.last_boundary(self.work.piece, place);
        let boundary = self.joined.iter().rev().find_map(boundary);
        boundary.unwrap_or(self.range.start)
    }

    /// Puts `next` behind what is joined if it begins where the range does, or if both have a token at one place. It
    /// takes the place of what stands there behind the first such token.
    fn append(&mut self, mut next: Part) -> bool {
        if next.start == self.range.start {
            self.joined = vec![next];
            return true;
        }
        let Some((end, from)) = shared_token(&self.joined, &next) else {
            return false;
        };
        while let Some(mut last) = self.joined.pop() {
            let kept = last.ends.partition_point(|&other| other <= end);
            if kept > last.from {
                last.ids.truncate(kept);
                last.ends.truncate(kept);
                self.joined.push(last);
                break;
            }
        }
        next.from = from;
        self.joined.push(next);
        true
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

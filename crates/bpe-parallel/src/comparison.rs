//! Strategies of others, to measure and to compare: none is right on every text, so the facade has
//! none of them.
//!
//! | strategy | source | wrong where |
//! |---|---|---|
//! | [`Comparison::Overlap`] | 004, Algorithm 3 | lexers of neighbouring parts disagree, though tokens match (docs/theory.md has a text) |
//! | [`Comparison::Delimiter`] | 004, Appendix B | a delimiter is inside of a token or decides about a pre-token |
//! | [`Comparison::TokenIds`] | 004, Appendix B (`ParallelTokenizer`) | the same ids stand at other places |
//!
//! Places are counted in bytes here, and parts begin at characters.

use std::ops::Range;
use std::time::Instant;

use bpe_core::TokenId;

use crate::documents::Report;
use crate::exact::is_start;
use crate::tokenize::{Tokenize, Tokens, Wanted};
use crate::workers::{Team, Workers};

/// Matched tokens that 004 asks for (section 4.1.1).
const FEWEST_MATCHES: usize = 2;

/// Bytes that neighbouring parts share.
const OVERLAP: usize = 512;

/// A strategy that is not exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// Parts that overlap, joined behind the longest run of tokens that both have at the same places;
    /// where two have fewer than two such tokens, all begins anew with parts twice as long.
    Overlap,
    /// Parts that end behind the delimiter next to the wished place, put in a row.
    Delimiter(u8),
    /// Parts that overlap, joined behind the longest run of ids that both have, wherever they stand.
    TokenIds,
}

impl Comparison {
    /// The tokens of `text` in parts of `part_bytes` to begin with, how it was done, and how often all
    /// began anew.
    ///
    /// # Errors
    ///
    /// Some part has no tokens.
    pub fn encode<T: Tokenize>(
        self,
        tokenizer: &T,
        text: &[u8],
        part_bytes: usize,
        workers: &Workers,
    ) -> Result<(Vec<TokenId>, Report, usize), T::Error> {
        workers.run(|team| match self {
            Self::Overlap => overlap(tokenizer, text, part_bytes.max(1), team),
            Self::Delimiter(delimiter) => {
                let ranges = delimited(text, part_bytes.max(1), delimiter);
                let (parts, mut report) = tokenize(tokenizer, text, &ranges, team)?;
                let start = Instant::now();
                let ids = parts.into_iter().map(|part| part.ids).collect::<Vec<_>>();
                let ids = ids.concat();
                report.merge = start.elapsed();
                Ok((ids, report, 0))
            }
            Self::TokenIds => {
                let ranges = overlapping(text, part_bytes.max(1));
                let (parts, mut report) = tokenize(tokenizer, text, &ranges, team)?;
                let start = Instant::now();
                let mut parts = parts.into_iter().map(|part| part.ids);
                let mut ids = parts.next().unwrap_or_default();
                for next in parts {
                    join_by_ids(&mut ids, &next);
                }
                report.merge = start.elapsed();
                Ok((ids, report, 0))
            }
        })
    }
}

/// 004, Algorithm 3.
fn overlap<T: Tokenize>(
    tokenizer: &T,
    text: &[u8],
    part_bytes: usize,
    team: Team<'_>,
) -> Result<(Vec<TokenId>, Report, usize), T::Error> {
    let mut size = part_bytes;
    let mut retries = 0;
    let mut total = Report::default();
    loop {
        let ranges = overlapping(text, size);
        let (parts, report) = tokenize(tokenizer, text, &ranges, team)?;
        total.tokenize += report.tokenize;
        total.parts += report.parts;
        let start = Instant::now();
        let pairs: Vec<usize> = (1..parts.len()).collect();
        let matches = team.map(&pairs, |&right| {
            longest_match(&parts[right - 1], &parts[right], ranges[right].start)
        });
        total.split += start.elapsed();
        if let Some(matches) = matches.into_iter().collect::<Option<Vec<_>>>() {
            let start = Instant::now();
            let mut ids = Vec::new();
            let mut from = 0;
            for (part, join) in parts.iter().zip(&matches) {
                ids.extend_from_slice(part.ids.get(from..join.left).unwrap_or_default());
                from = join.right;
            }
            if let Some(last) = parts.last() {
                ids.extend_from_slice(last.ids.get(from..).unwrap_or_default());
            }
            total.merge = start.elapsed();
            return Ok((ids, total, retries));
        }
        retries += 1;
        size *= 2;
    }
}

/// The numbers of tokens up to the end of a matched run.
struct Join {
    left: usize,
    right: usize,
}

/// The longest run of tokens that both parts have at the same places, where it is long enough. `right`
/// begins at byte `start`.
fn longest_match(left: &Tokens, right: &Tokens, start: usize) -> Option<Join> {
    let first = left.ends.partition_point(|&end| end <= start);
    let (mut a, mut b) = (first, 0);
    let (mut run, mut best) = (0, (0, 0, 0));
    while a < left.ids.len() && b < right.ids.len() {
        let (left_end, right_end) = (left.ends[a], right.ends[b]);
        let left_start = a.checked_sub(1).map_or(0, |before| left.ends[before]);
        let right_start = b.checked_sub(1).map_or(start, |before| right.ends[before]);
        if left_start == right_start && left_end == right_end && left.ids[a] == right.ids[b] {
            run += 1;
            if run > best.0 {
                best = (run, a + 1, b + 1);
            }
        } else {
            run = 0;
        }
        a += usize::from(left_end <= right_end);
        b += usize::from(right_end <= left_end);
    }
    let (run, left, right) = best;
    (run >= FEWEST_MATCHES).then_some(Join { left, right })
}

/// The parts' tokens, with ends counted from the start of the text.
fn tokenize<T: Tokenize>(
    tokenizer: &T,
    text: &[u8],
    ranges: &[Range<usize>],
    team: Team<'_>,
) -> Result<(Vec<Tokens>, Report), T::Error> {
    let start = Instant::now();
    let parts = team.map(ranges, |range| {
        let mut tokens = Tokens::default();
        let part = text.get(range.clone()).unwrap_or_default();
        tokenizer
            .encode(part, Wanted::Ends, &mut tokens)
            .map_err(|error| T::moved(error, range.start))?;
        for end in &mut tokens.ends {
            *end += range.start;
        }
        Ok(tokens)
    });
    let report = Report {
        tokenize: start.elapsed(),
        parts: ranges.len(),
        ..Report::default()
    };
    Ok((parts.into_iter().collect::<Result<_, _>>()?, report))
}

/// Parts of `size` bytes, each with some of the next.
fn overlapping(text: &[u8], size: usize) -> Vec<Range<usize>> {
    let boundary = |at: usize| (at.min(text.len())..text.len()).find(|&at| is_start(text, at));
    let boundary = |at: usize| boundary(at).unwrap_or(text.len());
    let overlap = OVERLAP.min(size);
    let count = text.len().div_ceil(size).max(1);
    let parts = (0..count).map(|part| boundary(part * size)..boundary((part + 1) * size + overlap));
    parts
        .filter(|range| !range.is_empty() || text.is_empty())
        .collect()
}

/// Parts of about `size` bytes that end behind a delimiter.
fn delimited(text: &[u8], size: usize, delimiter: u8) -> Vec<Range<usize>> {
    let mut parts = Vec::new();
    let mut start = 0;
    while start < text.len() {
        let wish = start + size;
        let rest = text.get(wish..).unwrap_or_default();
        let found = rest.iter().position(|&byte| byte == delimiter);
        let end = found.map_or(text.len(), |at| wish + at + 1);
        parts.push(start..end);
        start = end;
    }
    parts
}

/// Joins two lists behind the longest run of ids that the end of one and the start of the other share.
fn join_by_ids(left: &mut Vec<TokenId>, right: &[TokenId]) {
    let tail = left.len().saturating_sub(OVERLAP);
    let head = &right[..right.len().min(OVERLAP)];
    // Of each pair of places the length of the run of equal ids that ends there.
    let mut runs = vec![0_usize; head.len() + 1];
    let mut best = (0, left.len(), 0);
    for (a, &id) in left.iter().enumerate().skip(tail) {
        for b in (0..head.len()).rev() {
            runs[b + 1] = match head[b] == id {
                true => runs[b] + 1,
                false => 0,
            };
            if runs[b + 1] > best.0 {
                best = (runs[b + 1], a + 1, b + 1);
            }
        }
    }
    left.truncate(best.1);
    left.extend_from_slice(&right[best.2..]);
}

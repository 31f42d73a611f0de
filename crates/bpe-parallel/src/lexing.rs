//! Pre-tokens of one segment, found on several threads (docs/theory.md, fact 6).
//!
//! A pattern without look-behind, matched from a boundary, depends only on what follows. So two lexers
//! that share a boundary agree from there to the end of the segment. Each thread lexes from a place of
//! its own, which may be wrong; from left to right, each is then joined to what is known to be right,
//! at the first boundary that both have. Where they have none, as in a run of digits in threes that
//! was begun out of step, the lexer on the left goes on: no byte is lexed more than twice. (Several
//! threads may find the one pre-token that reaches over all of their parts; those that have not
//! begun are then spared.)
//!
//! Stages come one after the other: when the second begins, the ends of the pieces that the first has
//! made, which its look-ahead sees, are right already. So each boundary is shared in every stage.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use bpe_lexers::{LexError, Lexer};

use crate::tokenize::Stage;
use crate::workers::Team;

/// Pre-tokens that a lexer is asked for at once, at first and at most.
const FIRST_BATCH: usize = 16;
const LARGEST_BATCH: usize = 1024;

/// The ends of the pieces of `segment` after all stages, the last of them the end of the segment. Parts
/// of about `size` bytes are lexed at the same time where the stage allows it.
pub(crate) fn piece_ends(
    stages: &[Stage],
    segment: &str,
    size: usize,
    team: Team<'_>,
) -> Result<Vec<usize>, LexError> {
    let Some((first, later)) = stages.split_first() else {
        return Ok(match segment.is_empty() {
            true => Vec::new(),
            false => vec![segment.len()],
        });
    };
    let mut ends = stage_ends(first, segment, size, team)?;
    for stage in later {
        ends = next_stage(stage, segment, &ends, size, team)?;
    }
    Ok(ends)
}

/// So many looks are taken at a text, each at so many bytes, in which no pre-token may be so long.
const LOOKS: usize = 4;
const LOOK_BYTES: usize = 1024;
const SMALL_BYTES: usize = 512;

/// Whether `text` seems to be of short pre-tokens all over, by looks at some places of it. A guess, from
/// places where a pre-token may or may not begin.
pub(crate) fn seems_small(stages: &[Stage], text: &[u8]) -> bool {
    let Some(stage) = stages.first() else {
        return false;
    };
    let mut lexer = stage.lexer.clone();
    let mut ends = Vec::new();
    (0..LOOKS).all(|look| {
        let place = text.len() / LOOKS * look;
        let bytes = text.get(place..).unwrap_or_default();
        let bytes = bytes.get(..LOOK_BYTES).unwrap_or(bytes);
        // The rest of a character whose beginning is cut off is no text.
        let longest = bytes.utf8_chunks().map(|chunk| chunk.valid());
        let segment = longest.max_by_key(|valid| valid.len()).unwrap_or_default();
        ends.clear();
        let lexed = lex(&mut *lexer, segment, 0, segment.len(), &mut ends);
        let starts = [0].into_iter().chain(ends.iter().copied());
        lexed.is_ok()
            && segment.len() > SMALL_BYTES
            && ends
                .iter()
                .zip(starts)
                .all(|(&end, start)| end - start < SMALL_BYTES)
    })
}

/// The ends that one stage makes of a whole segment.
fn stage_ends(
    stage: &Stage,
    segment: &str,
    size: usize,
    team: Team<'_>,
) -> Result<Vec<usize>, LexError> {
    let size = size.max(1);
    let count = match stage.forgets && team.threads() > 1 {
        true => segment.len().div_ceil(size).max(1),
        false => 1,
    };
    let starts: Vec<usize> = (0..count)
        .map(|part| segment.floor_char_boundary(part * size))
        .collect();
    join(&*stage.lexer, segment, &starts, team)
}

/// The pieces of a later stage: each piece of the stage before is a segment of its own.
fn next_stage(
    stage: &Stage,
    segment: &str,
    ends: &[usize],
    size: usize,
    team: Team<'_>,
) -> Result<Vec<usize>, LexError> {
    let groups = groups(ends, 0, size);
    let lexed = team.map(&groups, |group| {
        let mut lexer = stage.lexer.clone();
        let mut found = Vec::new();
        let mut start = group.start.checked_sub(1).map_or(0, |last| ends[last]);
        for &end in &ends[group.clone()] {
            let piece = segment.get(start..end).unwrap_or_default();
            let first = found.len();
            if group.len() == 1 && piece.len() > size {
                found =
                    stage_ends(stage, piece, size, team).map_err(|error| error.moved_by(start))?;
            } else {
                lex(&mut *lexer, piece, 0, piece.len(), &mut found)
                    .map_err(|error| error.moved_by(start))?;
            }
            for end in &mut found[first..] {
                *end += start;
            }
            start = end;
        }
        Ok(found)
    });
    let mut joined = Vec::with_capacity(ends.len());
    for part in lexed {
        joined.append(&mut part?);
    }
    Ok(joined)
}

/// Cuts a list of ends into groups of about `size` bytes; what is longer is a group of its own. The
/// first piece begins at `start`.
pub(crate) fn groups(ends: &[usize], start: usize, size: usize) -> Vec<Range<usize>> {
    let mut groups = Vec::new();
    let (mut first, mut group_start, mut piece_start) = (0, start, start);
    for (index, &end) in ends.iter().enumerate() {
        if end - piece_start > size {
            if first < index {
                groups.push(first..index);
            }
            groups.push(index..index + 1);
            (first, group_start) = (index + 1, end);
        } else if end - group_start >= size {
            groups.push(first..index + 1);
            (first, group_start) = (index + 1, end);
        }
        piece_start = end;
    }
    if first < ends.len() {
        groups.push(first..ends.len());
    }
    groups
}

/// The ends of the pieces of `segment`, lexed from each of `starts`, of which the first is 0, and joined.
pub(crate) fn join(
    lexer: &dyn Lexer,
    segment: &str,
    starts: &[usize],
    team: Team<'_>,
) -> Result<Vec<usize>, LexError> {
    let parts: Vec<Range<usize>> = starts
        .iter()
        .enumerate()
        .map(|(index, &start)| start..starts.get(index + 1).copied().unwrap_or(segment.len()))
        .collect();
    // How far the pre-token reaches that has been found to reach furthest.
    let reached = AtomicUsize::new(0);
    let lexed = team.map(&parts, |part| {
        let mut ends = Vec::new();
        if reached.load(Ordering::Relaxed) >= part.end && part.start > 0 && part.end < segment.len()
        {
            return Ok(ends); // The lexer on the left will pass over it, or lex it.
        }
        let lexed = lex(
            &mut *lexer.clone_box(),
            segment,
            part.start,
            part.end,
            &mut ends,
        );
        if let Some(&last) = ends.last() {
            reached.fetch_max(last, Ordering::Relaxed);
        }
        lexed.map(|()| ends)
    });
    let mut left = lexer.clone_box();
    let mut lexed = lexed.into_iter();
    let mut ends = lexed.next().transpose()?.unwrap_or_default();
    for (right, part) in lexed.zip(&parts[1..]) {
        // An error of a lexer that began at a wrong place is none; at a right one the left lexer will
        // meet it too.
        let right = right.unwrap_or_default();
        append(&mut *left, segment, &mut ends, part, &right)?;
    }
    let last = Range {
        start: segment.len(),
        end: segment.len(),
    };
    append(&mut *left, segment, &mut ends, &last, &[])?;
    Ok(ends)
}

/// Goes on behind `ends`, which are right, until they share a boundary with `right`, which was lexed
/// from the start of `part`, or are past its end.
fn append(
    lexer: &mut dyn Lexer,
    segment: &str,
    ends: &mut Vec<usize>,
    part: &Range<usize>,
    right: &[usize],
) -> Result<(), LexError> {
    let mut limit = FIRST_BATCH;
    loop {
        let place = ends.last().copied().unwrap_or(0);
        if place == part.start {
            ends.extend_from_slice(right);
            return Ok(());
        }
        let behind = right.partition_point(|&end| end < place);
        if right.get(behind) == Some(&place) {
            ends.extend_from_slice(&right[behind + 1..]);
            return Ok(());
        }
        if place >= part.end {
            return Ok(());
        }
        // Some pre-tokens at a time, of which those after a shared boundary are dropped again.
        let first = ends.len();
        step(lexer, segment, place, limit, ends)?;
        limit = (2 * limit).min(LARGEST_BATCH);
        let mut at = behind;
        for index in first..ends.len() {
            let end = ends[index];
            while right.get(at).is_some_and(|&other| other < end) {
                at += 1;
            }
            if right.get(at) == Some(&end) || end == part.start {
                ends.truncate(index + 1);
                break;
            }
        }
    }
}

/// Appends the ends of pieces from byte `start` on, until one is at `until` or behind it.
fn lex(
    lexer: &mut dyn Lexer,
    segment: &str,
    start: usize,
    until: usize,
    ends: &mut Vec<usize>,
) -> Result<(), LexError> {
    let mut limit = FIRST_BATCH;
    let mut place = start;
    while place < until {
        step(lexer, segment, place, limit, ends)?;
        limit = (2 * limit).min(LARGEST_BATCH);
        place = ends.last().copied().unwrap_or(segment.len());
    }
    Ok(())
}

/// Appends the ends of some pieces from byte `start` on, one at least: of matches, and of what stands
/// between them.
fn step(
    lexer: &mut dyn Lexer,
    segment: &str,
    start: usize,
    limit: usize,
    ends: &mut Vec<usize>,
) -> Result<(), LexError> {
    let first = ends.len();
    let beyond = lexer.pre_token_ends(segment, start, limit, ends);
    // What a faulty lexer may return must not lead to a loop without end.
    let mut place = start;
    for index in first..ends.len() {
        let end = ends[index];
        if end <= place || !segment.is_char_boundary(end) {
            ends.truncate(index);
            return Err(LexError::engine(
                place,
                "the lexer returned a range that is none of the segment",
            ));
        }
        place = end;
    }
    match beyond? {
        Some(found) => {
            let is_range = place <= found.start
                && found.start < found.end
                && segment.get(found.clone()).is_some();
            if !is_range {
                return Err(LexError::engine(
                    place,
                    "the lexer returned a range that is none of the segment",
                ));
            }
            if found.start > place {
                ends.push(found.start);
            }
            ends.push(found.end);
        }
        None if ends.len() == first => ends.push(segment.len()),
        None => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use bpe_lexers::{Engine, Pattern};

    fn whole(stages: &[Stage], segment: &str) -> Vec<usize> {
        piece_ends(stages, segment, usize::MAX, Team::ALONE).expect("lexes")
    }

    fn stage(pattern: &Pattern) -> Stage {
        Stage {
            lexer: pattern.lexer(Engine::Auto).expect("an engine"),
            forgets: true,
        }
    }

    #[test]
    fn lexers_that_begin_anywhere_are_joined_to_what_one_lexer_finds() {
        let fragments = [
            "a",
            "B",
            " ",
            "  ",
            "\n",
            "\r\n",
            "\t",
            "12",
            "3",
            "'s",
            "'",
            "!",
            "\u{e9}",
            "\u{4e2d}",
            "e\u{301}",
            "\u{3042}AV",
            "/",
            "ll",
        ];
        let mut state = 3_u64;
        let mut random = |below: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) as usize % below
        };
        let patterns = [
            Pattern::gpt2(),
            Pattern::cl100k(),
            Pattern::o200k(),
            Pattern::new(r"[a-z]+|\d{1,3}"),
            Pattern::new(r"\p{N}{1,3}"),
        ];
        for pattern in &patterns {
            let stages = [stage(pattern)];
            for _ in 0..400 {
                let segment: String = (0..random(25)).map(|_| fragments[random(18)]).collect();
                let expected = whole(&stages, &segment);
                // From every place alone, and from several at once.
                for first in 1..segment.len() {
                    let starts = [0, segment.floor_char_boundary(first)];
                    let found = join(&*stages[0].lexer, &segment, &starts, Team::ALONE);
                    assert_eq!(found.as_ref(), Ok(&expected), "{segment:?} from {starts:?}");
                }
                let mut starts: Vec<usize> = (0..random(6))
                    .map(|_| segment.floor_char_boundary(random(segment.len() + 1)))
                    .chain([0])
                    .collect();
                starts.sort_unstable();
                starts.dedup();
                let found = join(&*stages[0].lexer, &segment, &starts, Team::ALONE);
                assert_eq!(found.as_ref(), Ok(&expected), "{segment:?} from {starts:?}");
            }
        }
    }

    #[test]
    fn digits_in_threes_that_were_begun_out_of_step_are_lexed_again() {
        let stages = [stage(&Pattern::cl100k())];
        let digits = "1".repeat(1000);
        let expected: Vec<usize> = (1..=333).map(|third| 3 * third).chain([1000]).collect();
        assert_eq!(whole(&stages, &digits), expected);
        for part in [100, 101, 102, 999] {
            let starts: Vec<usize> = (0..1000_usize.div_ceil(part)).map(|at| at * part).collect();
            let found = join(&*stages[0].lexer, &digits, &starts, Team::ALONE);
            assert_eq!(found.as_ref(), Ok(&expected), "parts of {part}");
        }
    }

    #[test]
    fn groups_cover_the_pieces_and_a_long_piece_is_alone() {
        let ends = [3, 5, 20, 22, 23, 60, 61];
        let groups = groups(&ends, 0, 10);
        assert_eq!(groups, [0..2, 2..3, 3..5, 5..6, 6..7]);
    }
}

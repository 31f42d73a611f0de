//! Places where a text can be cut without looking back: what stands on either side is tokenized as
//! if it stood alone.
//!
//! A place is such a cut if no special token that is found in the whole text stands across it (then the
//! special tokens of the two parts are those of the whole), and moreover one of these holds:
//!
//! * a special token ends or begins there;
//! * a part that is not UTF-8 ends or begins there, since it is a span of its own and segments end at
//!   it;
//! * it is one of the safe cuts of the patterns ([`Cuts`](bpe_lexers::Cuts)).
//!
//! UTF-8 is read the same from any byte that does not go on a character, so validity needs no more
//! context than the four bytes around a place.

use std::ops::Range;

use bpe_lexers::Cuts;

use crate::documents::PartSizes;

/// How far from the wished place a cut is looked for. In ordinary text it is found after some bytes.
const REACH: usize = 1024;

/// A part of a text between two exact cuts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) range: Range<usize>,
    /// Whether no cut was found near a place inside where one was wished for.
    pub(crate) is_dense: bool,
}

/// Cuts `text` into parts of about these sizes, longer where there is no cut.
pub(crate) fn parts(
    text: &[u8],
    specials: &[Range<usize>],
    cuts: Option<&Cuts>,
    sizes: PartSizes,
) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut size = sizes.at(0);
    let (mut start, mut wish, mut is_dense) = (0, size, false);
    // The last part is up to half longer than the others, rather than a tiny one behind it.
    while wish + size / 2 < text.len() {
        match nearest(text, specials, cuts, wish, REACH.min(size / 2), start) {
            Some(cut) => {
                parts.push(Part {
                    range: start..cut,
                    is_dense,
                });
                (start, is_dense) = (cut, false);
                size = sizes.at(cut);
                wish = cut + size;
            }
            None => {
                is_dense = true;
                wish += size;
            }
        }
    }
    if start < text.len() {
        parts.push(Part {
            range: start..text.len(),
            is_dense,
        });
    }
    parts
}

/// An exact cut at most `reach` bytes from `wish`, behind `after` and before the end.
fn nearest(
    text: &[u8],
    specials: &[Range<usize>],
    cuts: Option<&Cuts>,
    wish: usize,
    reach: usize,
    after: usize,
) -> Option<usize> {
    // The last special token that begins before the wished place or at it, and the next one.
    let next = specials.partition_point(|special| special.start <= wish);
    let before = next.checked_sub(1).and_then(|last| specials.get(last));
    let low = (after + 1).max(wish.saturating_sub(reach));
    let high = (wish + reach).min(text.len().saturating_sub(1));
    let is_inside = |place: usize| low <= place && place <= high;
    if let Some(special) = before
        && wish < special.end
    {
        // The place is in a special token, or at the start of one.
        return [special.start, special.end]
            .into_iter()
            .find(|&place| is_inside(place));
    }
    let low = low.max(before.map_or(0, |special| special.end));
    let high = high.min(specials.get(next).map_or(high, |special| special.start));
    let is_edge = |place: usize| {
        before.is_some_and(|special| special.end == place)
            || specials
                .get(next)
                .is_some_and(|special| special.start == place)
    };
    let is_cut = |&place: &usize| is_edge(place) || is_exact(text, cuts, place);
    let down = (low..=wish.min(high)).rev().find(is_cut);
    down.or_else(|| (wish + 1..=high).find(is_cut))
}

/// Whether a segment ends at `place`, or a safe cut is there. No special token is to touch the place.
fn is_exact(text: &[u8], cuts: Option<&Cuts>, place: usize) -> bool {
    if !is_start(text, place) {
        return false;
    }
    match (char_up_to(text, place), char_from(text, place)) {
        (Some(before), Some(after)) => cuts.is_some_and(|cuts| cuts.is_cut(before, after)),
        _ => true,
    }
}

/// Whether the byte at `place` begins something, rather than going on with a character.
pub(crate) fn is_start(text: &[u8], place: usize) -> bool {
    text.get(place).is_none_or(|byte| byte & 0xC0 != 0x80)
}

/// The character whose bytes start at `at`.
fn char_from(text: &[u8], at: usize) -> Option<char> {
    let window = text.get(at..text.len().min(at + 4))?;
    window.utf8_chunks().next()?.valid().chars().next()
}

/// The character whose bytes end at `at`.
fn char_up_to(text: &[u8], at: usize) -> Option<char> {
    (1..=at.min(4)).find_map(|length| {
        let bytes = text.get(at - length..at)?;
        core::str::from_utf8(bytes).ok()?.chars().next()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use bpe_lexers::{Engine, Label, Pattern, Spanner, SpecialMatcher};
    use std::ops::ControlFlow;

    fn spans(text: &[u8], matcher: &SpecialMatcher) -> Vec<(Range<usize>, Label)> {
        let lexer = Pattern::o200k().lexer(Engine::Auto).expect("known");
        let mut spans = Vec::new();
        let flow: ControlFlow<()> = Spanner::new(vec![lexer])
            .for_each_span(text, matcher, |span| {
                spans.push((span.range(), span.label));
                ControlFlow::Continue(())
            })
            .expect("lexes");
        assert!(flow.is_continue());
        spans
    }

    #[test]
    fn parts_have_the_spans_of_the_whole_beside_specials_and_bytes_that_are_not_utf8() {
        let cuts = Cuts::new(&[Pattern::o200k()]).expect("known");
        let matcher =
            SpecialMatcher::new(["<|s|>", "<|s|>\n<|s|>", "wo", " \n"]).expect("distinct");
        let fragments: [&[u8]; 16] = [
            b"word",
            b" Two",
            b"  ",
            b"\n",
            b"\r\n",
            b"123",
            b"<|s|>",
            b"<|",
            b"\xFF",
            b"\xE4\xB8",
            b"\x80\x80\x80\x80",
            "\u{e9}".as_bytes(),
            "\u{4e2d}\u{6587}".as_bytes(),
            b"'s",
            b"!",
            "e\u{301}".as_bytes(),
        ];
        let mut state = 7_u64;
        let mut random = |below: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) as usize % below
        };
        let mut cut_somewhere = 0;
        for _ in 0..3000 {
            let text: Vec<u8> = (0..30)
                .flat_map(|_| fragments[random(16)].to_vec())
                .collect();
            let specials = crate::tokenize::find_specials(&text, &matcher);
            let whole = spans(&text, &matcher);
            for size in [1, 2, 3, 8, 30] {
                let parts = parts(&text, &specials, Some(&cuts), PartSizes::equal(size));
                cut_somewhere += parts.len() - 1;
                let mut joined = Vec::new();
                for Part { range, .. } in parts {
                    for (span, label) in spans(&text[range.clone()], &matcher) {
                        joined.push((span.start + range.start..span.end + range.start, label));
                    }
                }
                assert_eq!(joined, whole, "{text:?} in parts of {size}");
            }
        }
        assert!(cut_somewhere > 10_000, "{cut_somewhere} cuts");
    }

    #[test]
    fn a_part_without_a_cut_is_dense_and_others_are_as_long_as_wished() {
        let cuts = Cuts::new(&[Pattern::o200k()]).expect("known");
        let text = "some words ".repeat(1000) + &"a".repeat(50_000) + &" and more".repeat(1000);
        let parts = parts(text.as_bytes(), &[], Some(&cuts), PartSizes::equal(4096));
        let dense: Vec<_> = parts.iter().filter(|part| part.is_dense).collect();
        assert_eq!(dense.len(), 1);
        assert!(dense[0].range.start > 6_000 && dense[0].range.end < 67_000);
        for part in parts.iter().filter(|part| !part.is_dense) {
            assert!((3_000..6_200).contains(&part.range.len()), "{part:?}");
        }
    }
}

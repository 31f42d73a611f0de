//! One long text: what several threads make of it is what one makes of it.

mod common;

use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::Ordering;

use bpe_lexers::{Pattern, SpecialMatcher};
use bpe_parallel::{
    Cut, OnError, Report, Synchronised, Team, Tokenize, Tokens, Wanted, Workers, merge_in_parts,
};
use common::{Missing, Plain, Random};

fn sequential(plain: &Plain, text: &[u8], wanted: Wanted) -> Result<Tokens, Missing> {
    let mut tokens = Tokens::default();
    plain.encode(text, wanted, &mut tokens)?;
    Ok(tokens)
}

fn parallel(
    plain: &Plain,
    text: &[u8],
    wanted: Wanted,
    part: usize,
    workers: &Workers,
) -> Result<(Tokens, Report), Missing> {
    let strategy = Synchronised::new().part_bytes(part);
    strategy.encode(plain, plain.seams(), &plain.specials, text, wanted, workers)
}

/// Compares counts, ids and ends, and returns the report.
fn check(plain: &Plain, text: &[u8], part: usize, workers: &Workers) -> Report {
    let mut last = Report::default();
    for wanted in [Wanted::Count, Wanted::Ids, Wanted::Ends] {
        let expected = sequential(plain, text, wanted).expect("complete");
        let (found, report) = parallel(plain, text, wanted, part, workers).expect("complete");
        assert!(
            found == expected,
            "{wanted:?} of {:?} in parts of {part}",
            String::from_utf8_lossy(&text[..text.len().min(200)])
        );
        last = report;
    }
    last
}

#[test]
fn tokens_of_overlapping_parts_join_at_one_shared_token_under_both_semantics() {
    let mut random = Random(1);
    let mut extensions = 0;
    for round in 0..60 {
        let mut plain = Plain::new(random.dictionary(2 + round % 2, 9));
        plain.standard = round % 4 >= 2;
        let seams = plain.spans();
        for _ in 0..40 {
            let len = 2 + random.below(30);
            let text: Vec<u8> = (0..len)
                .map(|_| b'a' + random.below(2 + round % 2) as u8)
                .collect();
            let expected = plain.merged(&text).expect("complete");
            let mut places: Vec<usize> = (0..random.below(4))
                .map(|_| 1 + random.below(len - 1))
                .collect();
            places.sort_unstable();
            places.dedup();
            let cut = |place| Cut {
                place,
                overlap: 1 + random.below(12),
            };
            let cuts: Vec<Cut> = places.into_iter().map(cut).collect();
            let (ids, report) =
                merge_in_parts(&plain, &seams, &text, &cuts, Team::ALONE).expect("complete");
            assert_eq!(
                ids,
                expected,
                "{} cut at {cuts:?}",
                String::from_utf8_lossy(&text)
            );
            extensions += report.extensions;
        }
    }
    assert!(extensions > 0, "the left part has to go on somewhere");
}

#[test]
fn cuts_where_no_token_stands_need_no_overlap() {
    let mut random = Random(2);
    let mut exact = 0;
    for _ in 0..40 {
        let plain = Plain::new(random.dictionary(3, 4));
        let text: Vec<u8> = (0..400).map(|_| b'a' + random.below(3) as u8).collect();
        exact += check(&plain, &text, 20, &Workers::new(1)).pieces.exact_cuts;
    }
    assert!(exact > 200, "{exact}");
}

#[test]
fn periodic_stretches_are_filled_in() {
    let mut random = Random(3);
    let workers = Workers::new(2);
    let mut runs = 0;
    for round in 0..6 {
        let plain = Plain::new(random.dictionary(2, 8));
        let period: Vec<u8> = (0..1 + random.below(5))
            .map(|_| b'a' + random.below(2) as u8)
            .collect();
        let mut text: Vec<u8> = (0..random.below(30))
            .map(|_| b'a' + random.below(2) as u8)
            .collect();
        text.extend(period.iter().cycle().take(10_000 + random.below(1000)));
        if round % 2 == 0 {
            text.extend((0..50).map(|_| b'a' + random.below(2) as u8));
            text.extend(std::iter::repeat_n(b'b', 8_500));
        }
        let before = plain.bytes.load(Ordering::Relaxed);
        let expected = plain.merged(&text).expect("complete");
        let seams = plain.seams();
        let strategy = Synchronised::new().part_bytes(1500);
        let none = SpecialMatcher::none();
        let (found, report) = strategy
            .encode(&plain, seams, &none, &text, Wanted::Ids, &workers)
            .expect("complete");
        assert!(found.ids == expected, "{period:?} repeated");
        let work = plain.bytes.load(Ordering::Relaxed) - before;
        assert!(
            work <= 2 * text.len() + 10_000,
            "{work} bytes for {}",
            text.len()
        );
        runs += report.pieces.runs;
    }
    assert!(runs >= 4, "{runs} runs were filled in");
}

/// A text over the first letters; most are nearly periodic.
fn nearly_periodic(random: &mut Random, letters: usize, len: usize) -> Vec<u8> {
    let longest = [4, 20, 200][random.below(3)];
    let period = 1 + random.below(longest);
    let one_in = [2, 12, 1000][random.below(3)];
    let mut text: Vec<u8> = Vec::with_capacity(len);
    for at in 0..len {
        let repeats = at >= period && random.below(one_in) > 0;
        text.push(match repeats {
            true => text[at - period],
            false => b'a' + random.below(letters) as u8,
        });
    }
    text
}

#[test]
fn at_most_twice_as_many_bytes_are_merged_as_a_piece_has_in_texts_made_to_hurt_too() {
    let mut random = Random(4);
    let workers = Workers::new(2);
    let (mut extensions, mut wholes, mut worst, mut most) = (0, 0, 0.0_f64, [0; 5]);
    for round in 0..40 {
        let letters = 2 + round % 2;
        let rules = 4 + random.below(12);
        let mut plain = Plain::new(random.any_dictionary(letters, rules, true));
        plain.standard = round % 4 >= 2;
        assert!(plain.influence.is_some());
        for _ in 0..12 {
            let len = 200 + random.below(2500);
            let text = nearly_periodic(&mut random, letters, len);
            let expected = plain.merged(&text).expect("complete");
            for (size, part) in [1, 10, 40, 150, 400].into_iter().enumerate() {
                let before = plain.bytes.load(Ordering::Relaxed);
                plain.merged = Some(Mutex::new(Vec::new()));
                let found = parallel(&plain, &text, Wanted::Ids, part, &workers).expect("complete");
                let merged = plain
                    .merged
                    .take()
                    .expect("set")
                    .into_inner()
                    .expect("no panic");
                let (tokens, Report { pieces, .. }) = found;
                assert!(
                    tokens.ids == expected,
                    "{:?} in parts of {part}",
                    String::from_utf8_lossy(&text)
                );
                let work = plain.bytes.load(Ordering::Relaxed) - before;
                assert!(
                    work <= 2 * len,
                    "{work} bytes for {len} in parts of {part}: {pieces:?}"
                );
                assert!(pieces.merged_bytes == work || pieces.merged_bytes == 0);
                let times = times(&text, &merged);
                most[size] = most[size].max(times.iter().copied().max().unwrap_or(0));
                extensions += pieces.extensions;
                wholes += usize::from(pieces.is_whole);
                worst = worst.max(work as f64 / len as f64);
            }
        }
    }
    assert!(
        most[3..].iter().all(|&most| most <= 4),
        "a byte {most:?} times"
    );
    assert!(
        extensions > 1000 && worst > 1.9,
        "{extensions} extensions, {worst} times"
    );
    assert_eq!(wholes, 0);
}

/// How often each byte of `text` was merged.
fn times(text: &[u8], merged: &[Range<usize>]) -> Vec<usize> {
    let first = text.as_ptr().addr();
    let mut times = vec![0; text.len()];
    for range in merged {
        if let Some(start) = range.start.checked_sub(first)
            && let Some(times) = times.get_mut(start..start + range.len())
        {
            times.iter_mut().for_each(|times| *times += 1);
        }
    }
    times
}

#[test]
fn all_short_texts_in_parts_of_some_bytes_are_merged_twice_at_most() {
    let mut random = Random(8);
    let none = SpecialMatcher::none();
    for round in 0..24 {
        let mut plain = Plain::new(random.any_dictionary(2, 8, true));
        plain.standard = round % 2 == 1;
        for len in 1..=9 {
            for number in 0..1_u32 << len {
                let text: Vec<u8> = (0..len).map(|at| b'a' + (number >> at & 1) as u8).collect();
                let expected = plain.merged(&text).expect("complete");
                for part in 1..len {
                    let before = plain.bytes.load(Ordering::Relaxed);
                    let strategy = Synchronised::new().part_bytes(part);
                    let (found, _) = strategy
                        .encode(
                            &plain,
                            plain.seams(),
                            &none,
                            &text,
                            Wanted::Ids,
                            &Workers::new(1),
                        )
                        .expect("complete");
                    assert_eq!(found.ids, expected);
                    let work = plain.bytes.load(Ordering::Relaxed) - before;
                    assert!(
                        work <= 2 * len,
                        "{work} bytes for {text:?} in parts of {part}"
                    );
                }
            }
        }
    }
}

#[test]
fn stages_special_tokens_and_invalid_bytes_are_those_of_the_whole() {
    let mut random = Random(5);
    let fragments: [&[u8]; 18] = [
        b"aba",
        b" ba",
        b"  ",
        b"\n",
        b"\r\n",
        b"12",
        b"3456789",
        b"<s>",
        b"<s",
        b"\xFF",
        b"\xE4\xB8",
        "\u{e9}".as_bytes(),
        "\u{4e2d}\u{6587}".as_bytes(),
        b"'s",
        b"!!",
        b"AB",
        b"\t\t",
        b"cc",
    ];
    // The last cannot be analysed, the one before is in three stages, and the first has gaps.
    let pipelines: Vec<Vec<Pattern>> = vec![
        vec![Pattern::new(r"[a-z]+|\d{1,3}")],
        vec![Pattern::gpt2()],
        vec![Pattern::cl100k()],
        vec![Pattern::o200k()],
        Pattern::deepseek_v3().into(),
        vec![
            Pattern::new(r"\p{N}{1,3}"),
            Pattern::new(r" ?\p{L}+|\s+(?!\S)|\s+"),
        ],
        vec![Pattern::new(r"\d{1,3}"), Pattern::new(r"[a-c]{1,2}")],
        vec![Pattern::new(r"[a-z]{1,70}[0-9]{1,70}|[0-9]{1,3}|\s|.")],
        vec![],
    ];
    let mut dictionary = random.dictionary(3, 8);
    {
        // All bytes are tokens.
        let vocabulary = dictionary.vocabulary();
        let tokens: Vec<Vec<u8>> = vocabulary.iter().map(|(_, token)| token.to_vec()).collect();
        let others = (0..=255)
            .map(|byte| vec![byte])
            .filter(|byte| !tokens.contains(byte));
        let all: Vec<Vec<u8>> = tokens.iter().cloned().chain(others).collect();
        let vocabulary = bpe_core::Vocabulary::new((0..).zip(&all)).expect("distinct");
        let rules = dictionary
            .rules()
            .iter()
            .map(|rule| (rule.left, rule.right));
        let rules: Vec<_> = rules.collect();
        dictionary = bpe_core::Dictionary::from_merges(vocabulary, rules).expect("valid");
    }
    for patterns in pipelines {
        let mut plain = Plain::new(dictionary.clone());
        plain.patterns = patterns;
        plain.specials = SpecialMatcher::new(["<s>", "ba <s>", "\n<s>", "11"]).expect("distinct");
        for _ in 0..30 {
            let count = 1 + random.below(60);
            let text: Vec<u8> = (0..count)
                .flat_map(|_| fragments[random.below(18)].to_vec())
                .collect();
            for part in [1, 7, 30] {
                for threads in [1, 3] {
                    check(&plain, &text, part, &Workers::new(threads));
                }
            }
        }
        // A long run of one character, and of digits.
        for character in ["a", " ", "1", "\n", "!", "\u{4e2d}"] {
            let text = format!("ab 12 {} ba", character.repeat(200));
            check(&plain, text.as_bytes(), 10, &Workers::new(2));
        }
    }
}

#[test]
fn the_first_error_is_the_one_that_is_reported() {
    let mut random = Random(6);
    let workers = Workers::new(3);
    let mut plain = Plain::new(random.dictionary(2, 6));
    plain.patterns = vec![Pattern::new(r" ?[a-z]+")];
    let vocabulary = plain.dictionary.vocabulary();
    let tokens = (0..).zip(vocabulary.iter().map(|(_, token)| token.to_vec()));
    let with_blank: Vec<(u32, Vec<u8>)> = tokens.chain([(999, b" ".to_vec())]).collect();
    let rules = plain
        .dictionary
        .rules()
        .iter()
        .map(|rule| (rule.left, rule.right));
    let rules: Vec<_> = rules.collect();
    plain.dictionary = bpe_core::Dictionary::from_merges(
        bpe_core::Vocabulary::new(with_blank).expect("distinct"),
        rules,
    )
    .expect("valid");
    for _ in 0..60 {
        let mut text: Vec<u8> = (0..300)
            .map(|_| [b'a', b'b', b' '][random.below(3)])
            .collect();
        for _ in 0..random.below(3) {
            let at = random.below(300);
            text[at] = b'x';
        }
        for part in [5, 40, 120] {
            let found = parallel(&plain, &text, Wanted::Ids, part, &workers).map(|done| done.0);
            assert_eq!(found, sequential(&plain, &text, Wanted::Ids));
        }
    }
    // A long word, cut inside, with an error in its last part.
    for at in [0, 150, 1999] {
        let mut text = vec![b'a'; 2000];
        text[at] = b'x';
        let found = parallel(&plain, &text, Wanted::Ids, 100, &workers);
        assert_eq!(found.err(), Some(Missing(at)));
    }
}

#[test]
fn documents_keep_their_order_and_an_error_loses_the_others_only_where_asked_so() {
    let mut random = Random(7);
    let plain = Plain::new(random.dictionary(2, 6));
    let seams = plain.seams();
    for threads in [1, 2, 8] {
        let workers = Workers::new(threads);
        for bad in [&[][..], &[3], &[0, 7, 8], &[20]] {
            let documents: Vec<Vec<u8>> = (0..21)
                .map(|index| {
                    let len = [0, 3, 10, 200, 1000][random.below(5)].max(usize::from(index == 20));
                    let mut text: Vec<u8> =
                        (0..len).map(|_| b'a' + random.below(2) as u8).collect();
                    if bad.contains(&index) {
                        text.push(b'x');
                    }
                    text
                })
                .collect();
            let encode = |on_error| {
                Synchronised::new().part_bytes(50).documents(
                    &plain,
                    seams,
                    &SpecialMatcher::none(),
                    &documents,
                    Wanted::Ids,
                    on_error,
                    &workers,
                )
            };
            let (batch, errors, _) = encode(OnError::Keep);
            let failed: Vec<usize> = errors.iter().map(|(index, _)| *index).collect();
            assert_eq!(failed, bad);
            assert_eq!(batch.document_ends.len(), documents.len());
            let mut start = 0;
            for (index, (&end, text)) in batch.document_ends.iter().zip(&documents).enumerate() {
                let ids = &batch.tokens.ids[start..end];
                let expected = plain.merged(text);
                match bad.contains(&index) {
                    true => assert!(ids.is_empty() && expected.is_err()),
                    false => assert_eq!(ids, expected.expect("complete"), "document {index}"),
                }
                start = end;
            }
            for (index, Missing(at)) in &errors {
                assert_eq!(*at, documents[*index].len() - 1);
            }
            let (_, errors, _) = encode(OnError::Stop);
            let first: Vec<usize> = errors.iter().map(|(index, _)| *index).collect();
            assert_eq!(first, bad.get(..1).unwrap_or_default());
        }
    }
}

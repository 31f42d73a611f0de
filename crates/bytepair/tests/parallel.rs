//! Several threads give what one gives: P21, P22, P24, P25 of the property list.

mod common;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytepair::{Pattern, Specials, Tokenizer, TokenizerBuilder};

use common::Random;

/// Numbers below a limit, the same in every run.
const TRAPS: [&[u8]; 26] = [
    b"word",
    b" Two",
    b" ",
    b"   ",
    b"\n",
    b"\r\n",
    b"\t\t",
    b"\n  \n",
    b"12",
    b"3456",
    b"'s",
    b"'LL",
    b"!",
    b"//\n",
    b"<|endoftext|>",
    b"<|endo",
    b"|>",
    b"\xFF",
    b"\xE4\xB8",
    b"\x80",
    "\u{e9}".as_bytes(),
    "\u{4e2d}\u{6587}".as_bytes(),
    "\u{6f22}AV".as_bytes(),
    "e\u{301}".as_bytes(),
    "\u{ff12}\u{ff14}".as_bytes(),
    "\u{1f600}".as_bytes(),
];

fn trap_text(random: &mut Random, fragments: usize) -> Vec<u8> {
    let mut text = Vec::new();
    for _ in 0..fragments {
        let fragment = TRAPS[random.below(TRAPS.len())];
        // Now and then a long run: a word, blanks or digits without a place to cut.
        let times = match random.below(40) {
            0 => 300,
            _ => 1,
        };
        text.extend_from_slice(&fragment.repeat(times));
    }
    text
}

#[test]
fn threads_and_parts_of_any_number_and_length_give_the_ids_of_one_thread() {
    let mut random = Random(1);
    for name in ["gpt2", "cl100k_base", "o200k_base"] {
        let as_text = Tokenizer::from_name(name).expect("embedded");
        let allowed = as_text.with_specials(Specials::AllowAll).expect("specials");
        for tokenizer in [&as_text, &allowed] {
            for threads in [1, 2, 3, 8, 64] {
                let parallel = tokenizer.parallel().threads(threads);
                for part in [64, 1 << 10, 16 << 10] {
                    let parallel = parallel.clone().part_bytes(part);
                    let text = trap_text(&mut random, 600);
                    let encoding = tokenizer.encode_with_offsets(&text).expect("encodes");
                    assert!(parallel.encode(&text).expect("encodes") == encoding.ids);
                    assert!(parallel.encode_with_offsets(&text).expect("encodes") == encoding);
                    assert_eq!(parallel.count(&text).expect("counts"), encoding.ids.len());
                }
            }
        }
    }
}

#[test]
fn a_tokenizer_without_a_pattern_and_one_whose_pattern_looks_back_give_the_same_too() {
    let mut random = Random(2);
    let o200k = Tokenizer::o200k_base();
    let without = TokenizerBuilder::from_canonical(o200k.canonical().clone()).build();
    let looks_back = TokenizerBuilder::from_canonical(o200k.canonical().clone())
        .pattern(Pattern::new(r"(?<=\s)\d+|\w+|\s"))
        .build();
    for tokenizer in [without.expect("builds"), looks_back.expect("builds")] {
        for part in [50, 700] {
            let text = trap_text(&mut random, 700);
            let parallel = tokenizer.parallel().threads(2).part_bytes(part);
            let expected = tokenizer.encode_with_offsets(&text).expect("encodes");
            assert!(parallel.encode_with_offsets(&text).expect("encodes") == expected);
        }
    }
}

#[test]
fn long_texts_of_one_letter_are_filled_in() {
    for tokenizer in [Tokenizer::r50k_base(), Tokenizer::o200k_base()] {
        let parallel = tokenizer.parallel().threads(2);
        for letter in ["a", "z", " ", "\n", "=", "7", "ab", "\u{4e2d}", "aab"] {
            let text = format!("some {} words", letter.repeat(300_000));
            let expected = tokenizer.encode(&text).expect("encodes");
            assert!(
                parallel.encode(&text).expect("encodes") == expected,
                "{letter:?}"
            );
            assert_eq!(parallel.count(&text).expect("counts"), expected.len());
        }
    }
}

#[test]
fn the_error_is_that_of_one_thread() {
    let strict = Tokenizer::o200k_base()
        .with_specials(Specials::Forbid)
        .expect("specials");
    let text = format!(
        "{}<|endoftext|>{}<|endoftext|>",
        "one ".repeat(500),
        "two ".repeat(500)
    );
    let expected = strict.encode(&text).expect_err("forbidden");
    for threads in [1, 4] {
        let parallel = strict.parallel().threads(threads).part_bytes(100);
        let error = parallel.encode(&text).expect_err("forbidden");
        assert_eq!(error.byte_offset(), expected.byte_offset());
        assert_eq!(error.byte_offset(), 2000);
    }
}

#[test]
fn batches_keep_their_order_and_an_error_names_its_document_and_loses_no_other() {
    let strict = Tokenizer::cl100k_base()
        .with_specials(Specials::Forbid)
        .expect("specials");
    let mut documents: Vec<String> = (0..1000).map(|n| format!("document {n} of many")).collect();
    documents[17] = "a long one ".repeat(20_000);
    documents[18].clear();
    let expected: Vec<Vec<u32>> = documents
        .iter()
        .map(|text| strict.encode(text).expect("encodes"))
        .collect();
    for threads in [1, 2, 5] {
        let parallel = strict.parallel().threads(threads);
        assert!(parallel.encode_batch(&documents).expect("encodes") == expected);
        let flat = parallel.encode_batch_flat(&documents).expect("encodes");
        assert!(flat.documents().eq(expected.iter().map(Vec::as_slice)));
        let counts = parallel.count_batch(&documents).expect("counts");
        assert!(counts.into_iter().eq(expected.iter().map(Vec::len)));
        let mut queue = parallel.queue();
        for text in &documents {
            queue.submit(text.as_str());
        }
        for ids in &expected {
            assert_eq!(queue.next().expect("more").expect("encodes"), *ids);
        }
        assert!(queue.next().is_none());
    }
    documents[400].push_str("<|endoftext|>");
    documents[17].push_str("<|endoftext|>");
    let parallel = strict.parallel().threads(3);
    let error = parallel.encode_batch(&documents).expect_err("forbidden");
    assert_eq!((error.document(), error.byte_offset()), (Some(17), 220_000));
    let each = parallel.encode_each(&documents);
    for (index, (result, ids)) in each.into_iter().zip(&expected).enumerate() {
        match result {
            Ok(found) => assert!(found == *ids && ![17, 400].contains(&index)),
            Err(error) => assert!([17, 400].contains(&index) && error.document() == Some(index)),
        }
    }
    let mut queue = parallel.queue();
    queue.submit("fine");
    queue.submit("<|endoftext|>");
    assert!(queue.next().expect("one").is_ok());
    let error = queue.next().expect("two").expect_err("forbidden");
    assert_eq!(error.document(), Some(1));
}

#[test]
fn one_value_serves_many_threads_at_once() {
    let tokenizer = Tokenizer::cl100k_base();
    let mut random = Random(3);
    let texts: Vec<Vec<u8>> = (0..8).map(|_| trap_text(&mut random, 3000)).collect();
    let expected: Vec<Vec<u32>> = texts
        .iter()
        .map(|text| tokenizer.encode_bytes(text).expect("encodes"))
        .collect();
    let parallel = tokenizer.parallel().threads(3);
    std::thread::scope(|scope| {
        for thread in 0..64 {
            let (parallel, texts, expected) = (&parallel, &texts, &expected);
            scope.spawn(move || {
                let (text, ids) = (&texts[thread % 8], &expected[thread % 8]);
                match thread % 4 {
                    0 => assert!(parallel.encode(text).expect("encodes") == *ids),
                    1 => assert_eq!(parallel.count(text).expect("counts"), ids.len()),
                    2 => assert!(parallel.tokenizer().decode_bytes(ids).expect("known") == *text),
                    _ => assert!(parallel.encode_batch(texts).expect("encodes") == *expected),
                }
            });
        }
    });
}

/// A child has none of the threads of its parent. It must notice, also where the parent's threads are
/// idle or busy.
#[cfg(unix)]
#[test]
#[allow(unsafe_code)] // There is no safe `fork`; the child calls nothing but the tokenizer and `_exit`.
fn a_forked_process_starts_threads_of_its_own() {
    unsafe extern "C" {
        fn fork() -> i32;
        fn waitpid(process: i32, status: *mut i32, options: i32) -> i32;
        fn kill(process: i32, signal: i32) -> i32;
        fn _exit(status: i32) -> !;
    }
    let tokenizer = Tokenizer::o200k_base();
    let parallel = tokenizer.parallel().threads(2);
    let texts: Vec<String> = (0..64).map(|n| format!("text {n} ").repeat(500)).collect();
    let expected = parallel.encode_batch(&texts).expect("encodes");
    for busy in [false, true] {
        let done = AtomicBool::new(!busy);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    let _ = parallel.count(&texts[0]);
                }
            });
            // SAFETY: the child only computes, and leaves by `_exit`.
            let child = unsafe { fork() };
            assert!(child >= 0, "no process");
            if child == 0 {
                let is_right = parallel
                    .encode_batch(&texts)
                    .is_ok_and(|ids| ids == expected);
                // SAFETY: always.
                unsafe { _exit(if is_right { 7 } else { 1 }) }
            }
            let mut status = 0;
            let mut exited = 0;
            for _ in 0..2000 {
                // SAFETY: `status` lives as long as the call; 1 is WNOHANG.
                exited = unsafe { waitpid(child, &raw mut status, 1) };
                if exited != 0 {
                    break;
                }
                std::thread::sleep(Duration::from_millis(10));
            }
            done.store(true, Ordering::Relaxed);
            if exited == 0 {
                // SAFETY: the child is ours, and has not been waited for.
                unsafe { kill(child, 9) };
            }
            assert_eq!(exited, child, "the child hangs");
            assert_eq!(status >> 8, 7, "status {status}");
        });
    }
}

/// docs/theory.md, section 9, "What does not hold", 1: all neighbours are valid, and the whole is not what
/// the pattern makes.
#[test]
fn valid_neighbours_are_not_enough_through_a_pattern() {
    let with = Tokenizer::o200k_base();
    let without = TokenizerBuilder::from_canonical(with.canonical().clone());
    let without = without.build().expect("builds");
    let encode = |tokenizer: &Tokenizer, text: &str| tokenizer.encode(text).expect("encodes");
    let (two, four, twelve) = ("\u{ff12}", "\u{ff14}", "\u{ff11}\u{ff12}");
    let sequence: Vec<u32> = [two, four, twelve]
        .iter()
        .flat_map(|text| encode(&without, text))
        .collect();
    assert_eq!(sequence.len(), 3, "each is one token");
    for (pair, text) in [
        (&sequence[..2], [two, four]),
        (&sequence[1..], [four, twelve]),
    ] {
        assert_eq!(encode(&without, &text.concat()), pair);
    }
    let text = [two, four, twelve].concat();
    assert_eq!(encode(&without, &text), sequence);
    assert_ne!(
        encode(&with, &text),
        sequence,
        "the pattern cuts after three digits"
    );
}

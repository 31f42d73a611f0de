//! Counting on threads and in bounded memory against counting at once.

use bpe_lexers::{Engine, Pattern, Spanner, SpecialMatcher};
use bpe_train::{CountError, Counter, WordCounts};

fn spanner() -> Spanner {
    let lexer = Pattern::o200k().lexer(Engine::Auto);
    Spanner::new(vec![lexer.expect("a known pattern")])
}

fn specials() -> SpecialMatcher {
    SpecialMatcher::new(["<|end|>"]).expect("not empty")
}

/// Texts with few and many words, some of them long, some no UTF-8.
fn texts() -> Vec<Vec<u8>> {
    let mut state = 5_u64;
    let mut random = |below: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) % below
    };
    let mut texts = Vec::new();
    for number in 0..300 {
        let mut text = Vec::new();
        for _ in 0..random(400) {
            match random(12) {
                0 => text.extend_from_slice(b"<|end|>"),
                1 => text.extend_from_slice(b"\xFF\xC3"),
                2 => text.extend_from_slice(" naïve 龘".as_bytes()),
                3 => text.extend_from_slice(&b"x".repeat(random(90) as usize)),
                _ => text.extend_from_slice(format!(" w{}a", random(4000)).as_bytes()),
            }
        }
        text.extend_from_slice(format!(" text{number}").as_bytes());
        texts.push(text);
    }
    texts
}

fn at_once(texts: &[Vec<u8>]) -> WordCounts {
    let mut counts = WordCounts::new();
    for text in texts {
        let added = counts.add_text(&mut spanner(), &specials(), text);
        added.expect("no limit");
    }
    counts
}

fn file_of(counts: &WordCounts) -> Vec<u8> {
    let mut file = Vec::new();
    counts.write_to(&mut file).expect("memory");
    file
}

#[test]
fn threads_and_limits_of_memory_change_nothing() {
    let texts = texts();
    let whole = at_once(&texts);
    let expected = file_of(&whole);
    let mut words = 0;
    for text in &texts {
        let flow = spanner().for_each_span(text, &specials(), |span| {
            let is_special = matches!(span.label, bpe_lexers::Label::Special(_));
            words += u64::from(!is_special);
            std::ops::ControlFlow::<()>::Continue(())
        });
        assert!(flow.expect("no limit").is_continue());
    }
    assert_eq!(whole.iter().map(|(_, count)| count).sum::<u64>(), words);
    for threads in [0, 1, 2, 3, 8, 64] {
        for limit in [0, 1, 20_000, 300_000, usize::MAX] {
            if limit < 20_000 && threads > 2 {
                continue;
            }
            let mut counter = Counter::new(spanner(), specials())
                .threads(threads)
                .memory_limit(limit, &std::env::temp_dir());
            counter.add_texts(&texts[..100]).expect("counts");
            // In between, which changes nothing.
            counter.write_to(std::io::sink()).expect("writes");
            counter.add_texts(&texts[100..]).expect("counts");
            match limit {
                usize::MAX => assert_eq!(counter.spills(), 0),
                0..=20_000 => assert!(counter.spills() > 0),
                _ => {}
            }
            let mut file = Vec::new();
            counter.write_to(&mut file).expect("writes");
            assert!(file == expected, "{threads} threads, {limit} bytes");
            let counts = counter.into_counts().expect("few words");
            assert!(
                file_of(&counts) == expected,
                "{threads} threads, {limit} bytes"
            );
        }
    }
}

#[test]
fn files_of_counts_are_added_within_the_limit_too() {
    let texts = texts();
    let halves = [&texts[..77], &texts[77..]].map(|part| file_of(&at_once(part)));
    let mut counter = Counter::new(spanner(), specials());
    counter = counter.memory_limit(30_000, &std::env::temp_dir());
    for half in &halves {
        let added = counter.add_file(&half[..], 1000);
        added.expect("a file of counts");
    }
    assert!(counter.spills() > 2);
    let counts = counter.into_counts().expect("few words");
    assert!(file_of(&counts) == file_of(&at_once(&texts)));
}

#[test]
fn of_several_blocks_at_fault_the_first_one_is_named() {
    #[derive(Debug, PartialEq)]
    struct Fault(usize);
    impl From<CountError> for Fault {
        fn from(_: CountError) -> Self {
            Self(usize::MAX)
        }
    }
    for threads in [1, 2, 4] {
        for _ in 0..20 {
            let mut counter = Counter::new(spanner(), specials()).threads(threads);
            let mut blocks = 0..1000;
            let result = counter.add_blocks(
                || Ok(blocks.next()),
                |&block, count| match block {
                    500.. => Err(Fault(block)),
                    _ => count(b"a word"),
                },
            );
            assert_eq!(result, Err(Fault(500)));
        }
    }
}

#[test]
fn sums_beyond_64_bits_are_refused_wherever_they_come_up() {
    let mut half = WordCounts::new();
    half.add(b"a", 1 << 63).expect("64 bits");
    let file = file_of(&half);
    for limit in [0, usize::MAX] {
        let mut counter = Counter::new(spanner(), specials());
        counter = counter.memory_limit(limit, &std::env::temp_dir());
        counter.add_file(&file[..], 1).expect("64 bits");
        let second = counter.add_file(&file[..], 1);
        let error = second.err().or_else(|| counter.into_counts().err());
        assert!(error.expect("too large").to_string().contains("2^64"));
    }
}

#[test]
fn a_word_of_ten_megabytes_is_counted() {
    let mut counter = Counter::new(spanner(), specials());
    counter = counter.memory_limit(1 << 20, &std::env::temp_dir());
    let text = vec![b'x'; 10_000_000];
    counter.add_texts([&text, &text]).expect("counts");
    assert_eq!(counter.into_counts().expect("one word").count_of(&text), 2);
}

#[test]
fn a_folder_that_is_not_there_is_an_error_and_no_panic() {
    let mut counter = Counter::new(spanner(), specials());
    let folder = std::env::temp_dir().join("bytepair-no-such-folder");
    counter = counter.memory_limit(0, &folder);
    let error = counter.add_texts(["a word"]).expect_err("no folder");
    assert!(error.to_string().contains("moved to disk"));
}

//! Training: what does not change its result, and how it is watched and ended.

use std::ops::ControlFlow;

use bpe_lexers::{Engine, Pattern, SpecialMatcher};
use bpe_train::{Counter, StopReason, TrainOptions, WordCounts, train, train_with};

use super::support::{Random, Stopwatch, ensure, parallel, spanner, spans, text_of};
use super::{Checked, Claims, Outcome};

pub(super) fn check(claims: &mut Claims) {
    claims.check(
        "1 to 64 threads, documents in any order and any groups, 20 runs: the same merges (P26, P31)",
        |settings, corpora| {
            let bytes = settings.choose(200_000, usize::MAX);
            let cases = parallel(corpora.len(), |number| {
                let text = &corpora[number].text;
                let text = &text[..text.floor_char_boundary(bytes)];
                same_whatever_the_way(text, number as u64)
            })?;
            Ok(Checked::with_note(cases, "pre-tokens"))
        },
    );
    claims.check(
        "one word of 10 MB: a step is observed every second, and a Break ends it at once (P33)",
        |_, _| one_long_word(),
    );
}

fn same_whatever_the_way(text: &str, seed: u64) -> Result<u64, String> {
    let pattern = Pattern::cl100k();
    let mut documents: Vec<&str> = text.split_inclusive('\n').collect();
    let mut lexer = spanner(&pattern, Engine::Auto)?;
    let mut pieces = 0;
    for document in &documents {
        pieces += spans(&mut lexer, document.as_bytes())?.len() as u64;
    }
    let mut random = Random::new(seed);
    let mut expected = None;
    for run in 0..20 {
        let threads = [1, 2, 3, 5, 8, 16, 33, 64][run % 8];
        let mut counter = Counter::new(lexer.clone(), SpecialMatcher::none()).threads(threads);
        // One call, and then as many as there are groups.
        let group = match run {
            0 => documents.len(),
            _ => 1 + random.below(documents.len()),
        };
        for group in documents.chunks(group.max(1)) {
            counter.add_texts(group).map_err(text_of)?;
        }
        let counts = counter.into_counts().map_err(text_of)?;
        let counted: u64 = counts.iter().map(|(_, count)| count).sum();
        ensure(counted == pieces, || {
            format!("{threads} threads: {counted} pre-tokens of {pieces}")
        })?;
        let training = train(&counts, &TrainOptions::new(600)).map_err(text_of)?;
        let merges: Vec<_> = training
            .merges()
            .map(|merge| (merge.left.to_vec(), merge.right.to_vec(), merge.frequency))
            .collect();
        ensure(
            expected.as_ref().is_none_or(|expected| *expected == merges),
            || format!("run {run}, {threads} threads: other merges"),
        )?;
        expected = Some(merges);
        for index in (1..documents.len()).rev() {
            documents.swap(index, random.below(index + 1));
        }
    }
    Ok(pieces * 20)
}

fn one_long_word() -> Outcome {
    let mut random = Random::new(10);
    let letters = (0..10_000_000).map(|_| b"aabbbcdefghi"[random.below(12)]);
    let word: Vec<u8> = letters.collect();
    let mut counts = WordCounts::new();
    counts.add(&word, 1).map_err(text_of)?;
    let options = TrainOptions::new(256 + 400);
    let (mut longest, mut steps) = (0.0_f64, 0_u64);
    let mut step = Stopwatch::start();
    let whole = train_with(&counts, &options, |_| {
        longest = longest.max(step.seconds());
        steps += 1;
        step = Stopwatch::start();
        ControlFlow::Continue(())
    });
    whole.map_err(text_of)?;
    ensure(longest < 1.0, || format!("{longest:.2} s without a step"))?;
    let mut broken = None;
    let part = train_with(&counts, &options, |so_far| {
        if so_far.merges().len() < 30 {
            return ControlFlow::Continue(());
        }
        broken = Some(Stopwatch::start());
        ControlFlow::Break(())
    });
    let part = part.map_err(text_of)?;
    let end = broken.map_or(f64::INFINITY, |since| since.seconds());
    ensure(
        part.stopped() == StopReason::Ended && part.merges().len() == 30 && end < 1.0,
        || format!("ended after {end:.2} s: {:?}", part.stopped()),
    )?;
    let note = format!("{steps} steps, {longest:.2} s at most between two, ended in {end:.2} s");
    Ok(Checked::with_note(2 * word.len() as u64, note))
}

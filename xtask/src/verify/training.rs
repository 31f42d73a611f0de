//! Training: five algorithms with one result, and the shared cases.

use std::collections::HashSet;

use bpe_core::Algorithm as Encoding;
use bpe_core::CanonicalForm;
use bpe_lexers::{Engine, Pattern, Spanner, SpecialMatcher};
use bpe_train::{Algorithm, StopReason, Ties, TrainOptions, Training, WordCounts, train};
use serde_json::Value;

use super::cases::Done;
use super::cases_run::generated;
use super::support::{Corpus, Random, Stopwatch, ensure, parallel, text_of};
use super::{Checked, Claims};

type Merge = (Vec<u8>, Vec<u8>, u64);
type Sides = (Vec<u8>, Vec<u8>);

pub(super) fn check(claims: &mut Claims) {
    claims.check(
        "the five training algorithms learn the same merges, corpora, three patterns, two tie rules",
        |settings, corpora| {
            let bytes = settings.choose(40_000, usize::MAX);
            let merges = settings.choose(150, 600);
            let jobs = jobs(corpora);
            let cases = parallel(jobs.len(), |number| {
                let (corpus, pattern, ties) = &jobs[number];
                let text = &corpus.text[..corpus.text.floor_char_boundary(bytes)];
                let counts = counts_of(pattern, text)?;
                let options = TrainOptions::new(256 + merges).ties(*ties);
                let expected = learned(&trained(&counts, &options)?);
                for algorithm in Algorithm::ALL {
                    let options = options.clone().algorithm(algorithm);
                    ensure(learned(&trained(&counts, &options)?) == expected, || {
                        format!("{}, {}: {ties:?}", corpus.name, algorithm.name())
                    })?;
                }
                Ok((expected.len() * Algorithm::ALL.len()) as u64)
            })?;
            Ok(Checked::with_note(cases, "merges"))
        },
    );
    claims.check(
        "word counts added up in any order and training gone on with give the same (P26, P32)",
        |settings, corpora| {
            let size = 256 + settings.choose(400, 4_000);
            let jobs = jobs(corpora);
            let cases = parallel(jobs.len(), |number| {
                let (corpus, pattern, ties) = &jobs[number];
                let whole = counts_of(pattern, &corpus.text)?;
                let options = TrainOptions::new(size).ties(*ties);
                let expected = learned(&trained(&whole, &options)?);
                let mut words: Vec<(&[u8], u64)> = whole.iter().collect();
                let mut random = Random::new(number as u64);
                for index in (1..words.len()).rev() {
                    words.swap(index, random.below(index + 1));
                }
                let mut shuffled = WordCounts::new();
                for (word, count) in words {
                    shuffled.add(word, count).map_err(text_of)?;
                }
                let part = trained(&shuffled, &TrainOptions::new(size / 2).ties(*ties))?;
                let first = part.merges().map(|merge| (merge.left, merge.right));
                let on = options.first_merges(first);
                ensure(learned(&trained(&shuffled, &on)?) == expected, || {
                    format!("{}: {ties:?}", corpus.name)
                })?;
                Ok(expected.len() as u64)
            })?;
            Ok(Checked::with_note(cases, "merges"))
        },
    );
    claims.check(
        "what was learned is proper, and encoding the words gives each token or its products (P30)",
        |settings, corpora| {
            let size = 256 + settings.choose(400, 4_000);
            let cases = parallel(corpora.len(), |number| {
                let counts = counts_of(&Pattern::o200k(), &corpora[number].text)?;
                let training = trained(&counts, &TrainOptions::new(size))?;
                check_dictionary(&training, &counts)?;
                Ok(training.merges().len() as u64)
            })?;
            Ok(Checked::with_note(cases, "tokens"))
        },
    );
}

/// Every corpus with a pattern and a tie rule of its own turn.
fn jobs(corpora: &[Corpus]) -> Vec<(&Corpus, Pattern, Ties)> {
    let patterns = [Pattern::gpt2(), Pattern::cl100k(), Pattern::o200k()];
    let pairs = corpora.iter().flat_map(|corpus| {
        let patterns = patterns.clone();
        patterns.into_iter().flat_map(move |pattern| {
            [Ties::Lexicographic, Ties::HuggingFace].map(|ties| (corpus, pattern.clone(), ties))
        })
    });
    pairs.collect()
}

fn counts_of(pattern: &Pattern, text: &str) -> Result<WordCounts, String> {
    let mut counts = WordCounts::new();
    let mut spanner = spanner(pattern)?;
    let added = counts.add_text(&mut spanner, &SpecialMatcher::none(), text.as_bytes());
    added.map_err(text_of)?;
    Ok(counts)
}

fn spanner(pattern: &Pattern) -> Result<Spanner, String> {
    let lexer = pattern.lexer(Engine::Auto).map_err(text_of)?;
    Ok(Spanner::new(vec![lexer]))
}

fn trained(counts: &WordCounts, options: &TrainOptions) -> Result<Training, String> {
    train(counts, options).map_err(text_of)
}

fn learned(training: &Training) -> Vec<Merge> {
    let merges = training.merges();
    merges
        .map(|merge| (merge.left.to_vec(), merge.right.to_vec(), merge.frequency))
        .collect()
}

/// The dictionary is proper and each token canonical; each token comes out of a word, or some token
/// that it was merged into does.
fn check_dictionary(training: &Training, counts: &WordCounts) -> Result<(), String> {
    let dictionary = training.dictionary(0).map_err(text_of)?;
    ensure(dictionary.is_proper(), || "not proper".to_owned())?;
    let canonical = std::sync::Arc::new(CanonicalForm::new(&dictionary));
    ensure(canonical.rule_count() == training.merges().len(), || {
        "a rule is not canonical".to_owned()
    })?;
    let mut encoder = Encoding::PriorityMerge
        .encoder(&canonical)
        .map_err(text_of)?;
    let mut tokens = Vec::new();
    let mut seen = HashSet::new();
    for (word, _) in counts.iter() {
        tokens.clear();
        encoder.encode_span(word, &mut tokens).map_err(text_of)?;
        seen.extend(tokens.iter().copied());
    }
    // A token stands before what it is merged into, so one pass from the end is enough.
    let merges: Vec<_> = dictionary.rules().to_vec();
    for rule in merges.iter().rev() {
        ensure(seen.contains(&rule.product), || {
            format!("token {} comes out of no word", rule.product)
        })?;
        seen.extend([rule.left, rule.right]);
    }
    Ok(())
}

/// Runs a shared case.
pub(super) fn run_case(case: &Value) -> Result<Done, String> {
    let pattern = Pattern::by_name(case["pattern"].as_str().unwrap_or_default());
    let pattern = pattern.ok_or("no pattern of that name")?;
    let size = case["vocab_size"].as_u64().ok_or("no vocab_size")? as usize;
    let min_frequency = case["min_frequency"].as_u64().unwrap_or(1);
    let weighted = case["weighted"].is_string();
    let mut documents = Vec::new();
    for document in case["docs"].as_array().into_iter().flatten() {
        let text = document["text"].as_str().ok_or("a document without text")?;
        let repeat = document["repeat"]
            .as_u64()
            .ok_or("a document without repeat")?;
        documents.push((text.to_owned(), repeat));
    }
    for rule in case["docs_gen"].as_array().into_iter().flatten() {
        documents.push((generated(rule)?, 1));
    }
    ensure(!documents.is_empty(), || "no documents".to_owned())?;
    let count = |documents: &[(String, u64)], specials: &SpecialMatcher| {
        let mut spanner = spanner(&pattern)?;
        let mut total = WordCounts::new();
        for (text, repeat) in documents {
            let mut counts = WordCounts::new();
            let added = match weighted {
                true => counts.add(text.as_bytes(), 1),
                false => counts.add_text(&mut spanner, specials, text.as_bytes()),
            };
            added.map_err(text_of)?;
            for (word, count) in counts.iter() {
                total.add(word, count * repeat).map_err(text_of)?;
            }
        }
        Ok::<_, String>(total)
    };
    let counts = count(&documents, &SpecialMatcher::none())?;
    let asked = size
        .checked_sub(256)
        .ok_or("a vocabulary below the bytes")?;
    let expected = merges_of(case)?;
    let compare = case["compare_first"].as_u64().unwrap_or(0) as usize;
    for ties in [Ties::Lexicographic, Ties::HuggingFace] {
        let options = TrainOptions::new(size)
            .min_frequency(min_frequency)
            .ties(ties);
        let start = Stopwatch::start();
        let training = trained(&counts, &options)?;
        ensure(start.seconds() < 60.0, || "over a minute (P05)".to_owned())?;
        let merges = learned(&training);
        let sides: Vec<_> = merges.iter().map(|merge| (&merge.0, &merge.1)).collect();
        let wanted: Vec<_> = expected.iter().map(|merge| (&merge.0, &merge.1)).collect();
        ensure(sides.get(..compare) == wanted.get(..compare), || {
            format!("{ties:?}: other merges: {sides:?}")
        })?;
        ensure(merges.iter().all(|merge| merge.2 >= min_frequency), || {
            "a pair below the minimum".to_owned()
        })?;
        let stopped_early = training.stopped() == StopReason::NoFrequentPair;
        ensure(stopped_early == (merges.len() < asked), || {
            "the reason for the end is wrong".to_owned()
        })?;
        documents.reverse();
        let reversed = count(&documents, &SpecialMatcher::none())?;
        ensure(learned(&trained(&reversed, &options)?) == merges, || {
            "another order of the documents, other merges".to_owned()
        })?;
    }
    match case["id"].as_str().unwrap_or_default() {
        "train-minfreq" => {
            let options = TrainOptions::new(size).min_frequency(min_frequency);
            let few = trained(&counts, &options)?;
            ensure(few.stopped() == StopReason::NoFrequentPair, || {
                "does not stop by itself".to_owned()
            })?;
        }
        "train-empty" | "train-ws-only" => {
            let none = trained(&counts, &TrainOptions::new(size))?;
            ensure(none.merges().len() == 0, || "merges of nothing".to_owned())?;
        }
        "train-special-text" => {
            let specials = SpecialMatcher::new(["<|endoftext|>"]).map_err(text_of)?;
            let counts = count(&documents, &specials)?;
            let declared = trained(&counts, &TrainOptions::new(size))?;
            let part = |token: &[u8]| token.iter().any(|byte| b"<|>".contains(byte));
            ensure(declared.merges().all(|merge| !part(merge.token)), || {
                "part of a special token was learned".to_owned()
            })?;
            ensure(
                counts.count_of(b"text") == 31 && counts.count_of(b"endoftext") == 0,
                || "the special token was counted".to_owned(),
            )?;
        }
        "train-u16" => {
            let first = trained(&counts, &TrainOptions::new(size))?;
            let first = first.merges().next().map(|merge| merge.token.to_vec());
            ensure(first.as_deref() == Some(b"ab"), || {
                "the first merge".to_owned()
            })?;
        }
        _ => {}
    }
    Ok(Done::Passed)
}

/// The merges that a case lists, in hexadecimal.
fn merges_of(case: &Value) -> Result<Vec<Sides>, String> {
    let side = |value: &Value| {
        let text = value.as_str().ok_or("a side that is no text")?;
        let digits = |at: usize| {
            let pair = text.get(at..at + 2).ok_or("half a byte")?;
            u8::from_str_radix(pair, 16).map_err(|_| "a side that is not hexadecimal")
        };
        (0..text.len())
            .step_by(2)
            .map(digits)
            .collect::<Result<Vec<u8>, &str>>()
    };
    let merges = case["expected_merges"].as_array().into_iter().flatten();
    let merges = merges.map(|merge| Ok((side(&merge[0])?, side(&merge[1])?)));
    merges.collect::<Result<_, &str>>().map_err(text_of)
}

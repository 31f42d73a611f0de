//! Pipelines on several threads, in parts and as streams give what one thread gives for the whole.

use std::path::Path;

use bytepair::{EncodeError, Encoding, Pipeline, PipelineCuts, ReadLimits, Specials, TokenId};

use super::support::{Corpus, Random, ensure, equal_ids, parallel, text_of};
use super::{Checked, Claims, Outcome, Settings, models};
use crate::data;

/// Those of the tests of `bytepair`.
#[path = "../../../crates/bytepair/tests/common/pipelines.rs"]
#[allow(dead_code)] // The tests use more of it.
mod random;

/// Files that say more than a tokenizer does, and one that normalizes.
const MODELS: [&str; 4] = ["bert-base-uncased", "llama2", "gemma3", "qwen3"];

pub(super) fn check(claims: &mut Claims) {
    claims.check(
        "pipelines: random steps, cut at every place, in parts and as streams, have the tokens, places and errors of one thread",
        |settings, _| random_pipelines(settings),
    );
    claims.check_data(
        "pipelines: corpora in parts, at random cuts and as streams have the ids, offsets and counts of one thread (004 Table 1)",
        models_in_parts,
    );
}

/// Ids and ranges, or where the error is.
fn outcome(encoded: Result<Encoding, EncodeError>) -> Result<Encoding, usize> {
    encoded.map_err(|error| error.byte_offset())
}

fn random_pipelines(settings: &Settings) -> Outcome {
    let seeds = settings.choose(24, 100);
    let per_seed = settings.choose(250, 1000);
    let cuts = std::sync::atomic::AtomicU64::new(0);
    let cases = parallel(seeds, |seed| {
        let mut random = Random::new(90_000 + seed as u64);
        let mut cases = 0;
        for _ in 0..per_seed {
            let Some((pipeline, file)) = random::pipeline(&mut random) else {
                continue;
            };
            for _ in 0..8 {
                let text = random::text(&mut random, 20);
                let found = check_text(&pipeline, &text, &mut random)
                    .map_err(|error| format!("{text:?}: {error}, {file}"))?;
                cuts.fetch_add(found, std::sync::atomic::Ordering::Relaxed);
                cases += 1;
            }
        }
        Ok(cases)
    })?;
    let cuts = cuts.into_inner();
    ensure(cuts > cases, || {
        format!("{cuts} cuts in {cases} texts are few")
    })?;
    Ok(Checked::with_note(cases, format!("{cuts} places cut")))
}

/// Cuts at each place and at all, in parts, as a stream. Returns the number of places.
fn check_text(pipeline: &Pipeline, text: &str, random: &mut Random) -> Result<u64, String> {
    let whole = outcome(pipeline.encode_with_offsets(text));
    let parts = pipeline
        .parallel()
        .threads(1)
        .part_bytes(1 + random.below(10));
    let found = outcome(parts.encode_with_offsets(text));
    ensure(found == whole, || {
        format!("in parts {found:?}, not {whole:?}")
    })?;
    let Ok(cuts) = pipeline.cuts() else {
        return Ok(0);
    };
    let ends = (1..=text.len()).filter(|&end| text.is_char_boundary(end));
    let mut places: Vec<usize> = ends.filter_map(|end| cuts.last_cut(&text[..end])).collect();
    places.dedup();
    let alone = places.iter().map(std::slice::from_ref);
    for places in alone.chain([&places[..]]) {
        let found = at_places(&cuts, text, places);
        ensure(found == whole, || {
            format!("cut at {places:?} {found:?}, not {whole:?}")
        })?;
    }
    let streamed = stream(pipeline, text, random, 7);
    let ids = whole.map(|encoding| encoding.ids);
    ensure(streamed == ids, || {
        format!("as a stream {streamed:?}, not {ids:?}")
    })?;
    Ok(places.len() as u64)
}

fn at_places(cuts: &PipelineCuts, text: &str, places: &[usize]) -> Result<Encoding, usize> {
    let mut joined = Encoding::default();
    let mut start = 0;
    for &end in places.iter().chain([&text.len()]) {
        let part = outcome(cuts.encode_with_offsets(&text[start..end], start))?;
        joined.ids.extend(part.ids);
        joined.byte_ranges.extend(part.byte_ranges);
        start = end;
    }
    Ok(joined)
}

/// The tokens of a stream of pieces of up to `most` bytes, or where the error is.
fn stream(
    pipeline: &Pipeline,
    text: &str,
    random: &mut Random,
    most: usize,
) -> Result<Vec<TokenId>, usize> {
    // That there is one is known: the pipeline has cuts.
    let mut stream = pipeline.stream().map_err(|_| usize::MAX)?;
    let mut ids = Vec::new();
    let mut rest = text.as_bytes();
    let failed = |error: bytepair::StreamError| {
        error
            .encode_error()
            .map_or(usize::MAX, EncodeError::byte_offset)
    };
    while !rest.is_empty() {
        let (piece, behind) = rest.split_at(1 + random.below(rest.len().min(most)));
        stream.push(piece, &mut ids).map_err(failed)?;
        rest = behind;
    }
    stream.finish(&mut ids).map_err(failed)?;
    Ok(ids)
}

/// The pipelines of other people's files.
pub(crate) fn load(model: &str, data: &Path) -> Result<Pipeline, String> {
    let file = models::file(model, data)?;
    let pipeline = Pipeline::from_tokenizer_json(&file, &ReadLimits::default());
    let pipeline = pipeline.map_err(|error| format!("{model}: {error}"))?;
    pipeline.with_specials(Specials::AllowAll).map_err(text_of)
}

fn models_in_parts(settings: &Settings, corpora: &[Corpus], data: &Path) -> Outcome {
    let most = settings.choose(150_000, usize::MAX);
    let mut pipelines = Vec::new();
    for model in MODELS {
        pipelines.push((model.to_owned(), load(model, data)?));
    }
    // SentencePiece's own file of a model, where blanks alone are written in another way.
    let file = data::read_or_packed(&data.join("tokenizers/mistral_v3_spm/tokenizer.model"));
    if let Ok(file) = file {
        let pipeline = Pipeline::from_sentencepiece_model(&file, &ReadLimits::default());
        pipelines.push(("mistral_v3_spm".to_owned(), pipeline.map_err(text_of)?));
    }
    let mut texts: Vec<(String, String)> = Vec::new();
    for Corpus { name, text } in corpora {
        let text = &text[..text.floor_char_boundary(most)];
        texts.push((name.clone(), text.to_owned()));
    }
    if let Some((name, text)) = texts.iter().find(|(name, _)| name.starts_with("english")) {
        // Marks that compose, special tokens, and blanks of all kinds.
        let marked = text
            .replace("e ", "e\u{301} ")
            .replace(". ", ".[SEP]\u{3000} </s>\r\n");
        texts.push((format!("{name} with marks"), marked));
    }
    let jobs = pipelines.len() * texts.len();
    let (right, parts) = (
        std::sync::atomic::AtomicUsize::new(0),
        std::sync::atomic::AtomicU64::new(0),
    );
    let tokens = parallel(jobs, |job| {
        let (model, pipeline) = &pipelines[job / texts.len()];
        let (name, text) = &texts[job % texts.len()];
        let what = || format!("{model}, {name}");
        let whole = pipeline.encode_with_offsets(text).map_err(text_of)?;
        let mut random = Random::new(job as u64);
        let cuts = pipeline
            .cuts()
            .map_err(|error| format!("{model}: {error}"))?;
        for size in [1 + random.below(60), 500 + random.below(20_000)] {
            let parallel = pipeline.parallel().threads(2).part_bytes(size);
            let found = parallel.encode_with_offsets(text).map_err(text_of)?;
            equal_ids(&found.ids, &whole.ids, || {
                format!("{}, parts of {size}", what())
            })?;
            ensure(found.byte_ranges == whole.byte_ranges, || {
                format!("{}: other offsets in parts of {size}", what())
            })?;
            let ids = parallel.encode(text).map_err(text_of)?;
            equal_ids(&ids, &whole.ids, || format!("{}, parts of {size}", what()))?;
            let count = parallel.count(text).map_err(text_of)?;
            ensure(count == whole.ids.len(), || {
                format!("{}: {count} counted", what())
            })?;
        }
        // As a file is read: up to the last cut of what is there.
        let mut places = Vec::new();
        let mut start = 0;
        while start < text.len() {
            let end = text.ceil_char_boundary((start + 1 + random.below(5_000)).min(text.len()));
            match cuts.last_cut(&text[start..end]) {
                Some(cut) => {
                    start += cut;
                    places.push(start);
                }
                None if end == text.len() => break,
                None => {
                    // Longer, until there is one.
                    let longer = text.ceil_char_boundary((end + 50_000).min(text.len()));
                    match cuts.last_cut(&text[start..longer]) {
                        Some(cut) => {
                            start += cut;
                            places.push(start);
                        }
                        None => break,
                    }
                }
            }
        }
        parts.fetch_add(
            places.len() as u64 + 1,
            std::sync::atomic::Ordering::Relaxed,
        );
        let found = at_places(&cuts, text, &places);
        let found = found.map_err(|place| format!("{}: an error at byte {place}", what()))?;
        equal_ids(&found.ids, &whole.ids, || {
            format!("{}, at random cuts", what())
        })?;
        ensure(found.byte_ranges == whole.byte_ranges, || {
            format!("{}: other offsets at random cuts", what())
        })?;
        let streamed = stream(pipeline, text, &mut random, 3_000);
        let streamed = streamed.map_err(|place| format!("{}: no stream ({place})", what()))?;
        equal_ids(&streamed, &whole.ids, || format!("{}, as a stream", what()))?;
        right.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Ok(whole.ids.len() as u64)
    })?;
    let accuracy = right.into_inner() as f64 / jobs as f64;
    ensure(accuracy == 1.0, || format!("accuracy {accuracy}"))?;
    let names: Vec<&str> = pipelines.iter().map(|(name, _)| name.as_str()).collect();
    Ok(Checked::with_note(
        tokens,
        format!(
            "tokens; accuracy {accuracy:.1} on {jobs} texts with {}; {} random parts",
            names.join(", "),
            parts.into_inner()
        ),
    ))
}

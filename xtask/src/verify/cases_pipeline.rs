//! Shared cases of files that say more than a tokenizer does.

use bytepair::{InputOptions, Pipeline, Specials, TokenId};
use serde_json::Value;

use super::cases::Done;
use super::cases_run::{numbers, text_of_case};
use super::support::{ensure, equal_ids, text_of};

/// Runs a case.
pub(super) fn run(case: &Value, pipeline: &Pipeline) -> Result<Done, String> {
    match case["op"].as_str().unwrap_or_default() {
        "encode" => encode(case, pipeline),
        "decode" => decode(case, pipeline),
        "vocab" => vocab(case, pipeline),
        other => Ok(Done::Skipped(format!("operation {other} of a pipeline"))),
    }
}

fn encode(case: &Value, pipeline: &Pipeline) -> Result<Done, String> {
    let text = text_of_case(case)?;
    let specials = match case["parse_specials"] == true {
        true => Specials::AllowAll,
        false => Specials::AsText,
    };
    let pipeline = pipeline.with_specials(specials).map_err(text_of)?;
    let expected = numbers::<TokenId>(&case["expected_ids"])?;
    let options = InputOptions {
        add_special_tokens: case["add_special_tokens"] == true,
        ..InputOptions::default()
    };
    let input = pipeline
        .model_input(&text, None, &options)
        .map_err(text_of)?;
    equal_ids(input.ids(), &expected, || "ids".to_owned())?;
    if !options.add_special_tokens {
        let ids = pipeline.encode(&text).map_err(text_of)?;
        equal_ids(&ids, &expected, || "ids alone".to_owned())?;
        let count = pipeline.count(&text).map_err(text_of)?;
        ensure(count == ids.len(), || format!("count {count}"))?;
    }
    if let Some(expected) = case["expected_char_offsets"].as_array() {
        let expected: Vec<Vec<usize>> = expected.iter().map(numbers).collect::<Result<_, _>>()?;
        let characters = |at: usize| text.get(..at).unwrap_or_default().chars().count();
        let found: Vec<Vec<usize>> = input
            .offsets()
            .iter()
            .map(|range| vec![characters(range.start), characters(range.end)])
            .collect();
        ensure(found == expected, || {
            format!("character offsets {found:?}, expected {expected:?}")
        })?;
    }
    if let Some(expected) = case["expected_decode"].as_str() {
        let decoded = pipeline.decode(input.ids()).map_err(text_of)?;
        ensure(decoded == expected, || {
            format!("decoded {decoded:?}, expected {expected:?}")
        })?;
    }
    Ok(Done::Passed)
}

fn decode(case: &Value, pipeline: &Pipeline) -> Result<Done, String> {
    let ids = numbers::<TokenId>(&case["ids"])?;
    let expected = case["expected_text_lossy"]
        .as_str()
        .ok_or("nothing to compare with")?;
    let decoded = pipeline.decode(&ids).map_err(text_of)?;
    ensure(decoded == expected, || {
        format!("decoded {decoded:?}, expected {expected:?}")
    })?;
    let mut stream = pipeline.decode_stream();
    let mut streamed = String::new();
    for id in ids {
        streamed += stream.push(id).map_err(text_of)?;
    }
    streamed += &stream.finish();
    ensure(streamed == expected, || {
        format!("streamed {streamed:?}, expected {expected:?}")
    })?;
    Ok(Done::Passed)
}

fn vocab(case: &Value, pipeline: &Pipeline) -> Result<Done, String> {
    let most = pipeline.max_id().ok_or("no token")?;
    ensure(case["expected_max_id"] == most, || {
        format!("largest id {most}")
    })?;
    let known = (0..=most)
        .filter(|&id| pipeline.token_text(id).is_some())
        .count();
    if let Some(count) = case["expected_distinct_tokens"].as_u64() {
        ensure(known as u64 == count, || {
            format!("{known} tokens, expected {count}")
        })?;
    }
    if let Some(count) = case["expected_unused_id_count"].as_u64() {
        let unused = u64::from(most) + 1 - known as u64;
        ensure(unused == count, || {
            format!("{unused} unused ids, expected {count}")
        })?;
    }
    Ok(Done::Passed)
}

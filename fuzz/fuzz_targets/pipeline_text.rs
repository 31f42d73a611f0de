//! Arbitrary text through steps that the first bytes choose: nothing panics, ids with offsets are ids
//! without, each offset is a stretch of whole characters, and parts and streams have the tokens of the whole.

#![no_main]

use std::sync::OnceLock;

use bytepair::{Pipeline, ReadLimits, Specials};
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};

/// Pipelines of crates/bytepair/tests/pipeline_cases.json.
fn pipelines() -> &'static [Pipeline] {
    static PIPELINES: OnceLock<Vec<Pipeline>> = OnceLock::new();
    PIPELINES.get_or_init(|| {
        let cases = include_str!("../../crates/bytepair/tests/pipeline_cases.json");
        let cases: Value = serde_json::from_str(cases).expect("JSON");
        let of_case = |case: &Value| {
            let mut model = cases["models"][case["model"].as_str().expect("a name")].clone();
            for token in case["added_tokens"].as_array().expect("a list") {
                model["vocab"][token["content"].as_str().expect("text")] = token["id"].clone();
            }
            let file = json!({
                "added_tokens": case["added_tokens"], "normalizer": case["normalizer"],
                "pre_tokenizer": case["pre_tokenizer"], "model": model,
            });
            let file = file.to_string();
            let pipeline = Pipeline::from_tokenizer_json(file.as_bytes(), &ReadLimits::default());
            let pipeline = pipeline.expect("supported");
            pipeline
                .with_specials(Specials::AllowAll)
                .expect("no names")
        };
        cases["cases"]
            .as_array()
            .expect("a list")
            .iter()
            .map(of_case)
            .collect()
    })
}

fuzz_target!(|input: (u8, &str)| {
    let (number, text) = input;
    let pipelines = pipelines();
    let pipeline = &pipelines[usize::from(number) % pipelines.len()];
    let parallel = pipeline
        .parallel()
        .threads(1)
        .part_bytes(1 + usize::from(number % 7));
    let Ok(encoding) = pipeline.encode_with_offsets(text) else {
        assert!(pipeline.encode(text).is_err());
        assert!(parallel.encode(text).is_err());
        return;
    };
    assert_eq!(
        parallel.encode_with_offsets(text).as_ref().ok(),
        Some(&encoding)
    );
    if let Ok(mut stream) = pipeline.stream() {
        let mut ids = Vec::new();
        for piece in text.as_bytes().chunks(1 + usize::from(number % 5)) {
            stream
                .push(piece, &mut ids)
                .expect("within the limit, and encoded above");
        }
        stream.finish(&mut ids).expect("encoded above");
        assert_eq!(ids, encoding.ids);
    }
    assert_eq!(pipeline.encode(text).as_ref().ok(), Some(&encoding.ids));
    assert_eq!(encoding.ids.len(), encoding.byte_ranges.len());
    for range in encoding.byte_ranges {
        assert!(text.get(range.clone()).is_some(), "{range:?}");
    }
});

//! A pipeline gives the same tokens for parts, batches and streams as for the whole text on one thread.

mod common;
#[path = "common/pipelines.rs"]
mod pipelines;

use std::ops::Range;

use bytepair::{EncodeError, Encoding, InputOptions, Pipeline, PipelineCuts, Specials, TokenId};
use proptest::prelude::*;
use serde_json::{Value, json};

use common::Random;
use pipelines::{FRAGMENTS, of};

/// Ids and ranges, or where the error is and whether a token is missing there.
type Outcome = Result<(Vec<TokenId>, Vec<Range<usize>>), (usize, bool)>;

fn outcome(encoded: Result<Encoding, EncodeError>) -> Outcome {
    match encoded {
        Ok(encoding) => Ok((encoding.ids, encoding.byte_ranges)),
        Err(error) => Err((error.byte_offset(), error.is_missing_token())),
    }
}

/// All places at which `text` can be cut: the last ones of its beginnings, which end a byte behind.
fn all_cuts(cuts: &PipelineCuts, text: &str) -> Vec<usize> {
    let ends = (1..=text.len()).filter(|&end| text.is_char_boundary(end));
    let mut places: Vec<usize> = ends.filter_map(|end| cuts.last_cut(&text[..end])).collect();
    places.dedup();
    places
}

/// The parts between `places`, each encoded alone.
fn in_parts(cuts: &PipelineCuts, text: &str, places: &[usize]) -> Outcome {
    let mut joined = (Vec::new(), Vec::new());
    let mut start = 0;
    for &end in places.iter().chain([&text.len()]) {
        let part = outcome(cuts.encode_with_offsets(&text[start..end], start))?;
        joined.0.extend(part.0);
        joined.1.extend(part.1);
        start = end;
    }
    Ok(joined)
}

/// Cuts `text` at each place alone and at all, and returns the number of places.
fn check_cuts(cuts: &PipelineCuts, pipeline: &Pipeline, text: &str, file: &Value) -> usize {
    let places = all_cuts(cuts, text);
    if places.is_empty() {
        return 0;
    }
    let whole = outcome(pipeline.encode_with_offsets(text));
    for place in &places {
        let parts = in_parts(cuts, text, &[*place]);
        assert_eq!(parts, whole, "{text:?} cut at {place}, {file}");
    }
    assert_eq!(
        in_parts(cuts, text, &places),
        whole,
        "{text:?} cut at {places:?}, {file}"
    );
    places.len()
}

fn stream(
    pipeline: &Pipeline,
    text: &str,
    random: &mut Random,
) -> Option<Result<Vec<TokenId>, usize>> {
    let mut stream = pipeline.stream().ok()?;
    let mut ids = Vec::new();
    let mut rest = text.as_bytes();
    while !rest.is_empty() {
        let (piece, behind) = rest.split_at(1 + random.below(rest.len().min(9)));
        if let Err(error) = stream.push(piece, &mut ids) {
            return Some(Err(error.encode_error()?.byte_offset()));
        }
        rest = behind;
    }
    Some(match stream.finish(&mut ids) {
        Ok(()) => Ok(ids),
        Err(error) => Err(error.encode_error()?.byte_offset()),
    })
}

/// Parts on two threads, batches and streams.
fn check_calls(pipeline: &Pipeline, text: &str, random: &mut Random, file: &Value) {
    let whole = outcome(pipeline.encode_with_offsets(text));
    let size = 1 + random.below(12);
    let parallel = pipeline
        .parallel()
        .threads(1 + random.below(2))
        .part_bytes(size);
    let parts = outcome(parallel.encode_with_offsets(text));
    assert_eq!(parts, whole, "{text:?} in parts of {size}, {file}");
    let ids = whole.map(|(ids, _)| ids);
    let plain = |ids: Result<Vec<TokenId>, EncodeError>| {
        ids.map_err(|error| (error.byte_offset(), error.is_missing_token()))
    };
    assert_eq!(
        plain(parallel.encode(text)),
        ids,
        "{text:?} in parts of {size}, {file}"
    );
    let count = parallel.count(text).ok();
    assert_eq!(count, ids.as_ref().ok().map(Vec::len), "{text:?}, {file}");
    let each = parallel.encode_each(&["ab", text, ""]);
    let expected = [plain(pipeline.encode("ab")), ids.clone(), Ok(Vec::new())];
    let documents: Vec<_> = each
        .iter()
        .map(|result| match result {
            Err(error) => error.document(),
            Ok(_) => None,
        })
        .collect();
    for (index, document) in documents.into_iter().enumerate() {
        assert!(document.is_none_or(|document| document == index));
    }
    assert!(each.into_iter().map(plain).eq(expected), "{text:?}, {file}");
    if let Some(streamed) = stream(pipeline, text, random) {
        let expected = ids.map_err(|(place, _)| place);
        assert_eq!(streamed, expected, "{text:?} as a stream, {file}");
    }
}

fn bert() -> Value {
    let word = [
        "[UNK]", "a", "b", "##a", "##b", "ab", "##ab", "e", "##e", "中", ".", "1", "##1", "##i",
        "f",
    ];
    let vocab: serde_json::Map<String, Value> = word
        .iter()
        .zip(0..)
        .map(|(token, id)| ((*token).to_owned(), Value::from(id)))
        .collect();
    let token = |content: &str, id: u32| {
        json!({
            "id": id, "content": content, "special": true, "normalized": false,
            "single_word": false, "lstrip": false, "rstrip": false
        })
    };
    json!({
        "added_tokens": [token("[UNK]", 0), token("<s>", 50), token("[M]", 51)],
        "normalizer": {
            "type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
            "strip_accents": null, "lowercase": true
        },
        "pre_tokenizer": { "type": "BertPreTokenizer" },
        "post_processor": {
            "type": "BertProcessing", "sep": ["[M]", 51], "cls": ["<s>", 50]
        },
        "model": {
            "type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 4, "vocab": vocab
        }
    })
}

fn chars(normalizers: Value, pre_tokenizer: Value) -> Value {
    let tokens = [
        "<unk>", "▁", "a", "b", "ab", "▁a", "e", "\u{301}", "é", "中", "\n", "▁▁", "aa",
    ];
    let vocab: serde_json::Map<String, Value> = tokens
        .iter()
        .zip(0..)
        .map(|(token, id)| ((*token).to_owned(), Value::from(id)))
        .collect();
    json!({
        "normalizer": { "type": "Sequence", "normalizers": normalizers },
        "pre_tokenizer": pre_tokenizer,
        "model": {
            "type": "BPE", "unk_token": "<unk>", "fuse_unk": false, "vocab": vocab,
            "merges": [["a", "b"], ["▁", "a"], ["a", "a"], ["▁", "▁"]]
        }
    })
}

#[test]
fn every_cut_of_every_short_text_loses_nothing() {
    let metaspace = |scheme: &str| {
        json!({
            "type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme, "split": true
        })
    };
    let replaced = json!({ "type": "Replace", "pattern": { "String": " " }, "content": "▁" });
    let form = |name: &str| json!([{ "type": name }]);
    let files = [
        bert(),
        // Llama's way to write blanks, and the one of newer files.
        chars(
            json!([{ "type": "Prepend", "prepend": "▁" }, replaced]),
            Value::Null,
        ),
        chars(json!([]), metaspace("first")),
        chars(json!([]), metaspace("always")),
        chars(form("NFC"), json!({ "type": "Whitespace" })),
        chars(form("NFKC"), Value::Null),
        chars(
            form("NFD"),
            json!({ "type": "Digits", "individual_digits": true }),
        ),
        chars(
            form("NFKD"),
            json!({ "type": "Punctuation", "behavior": "Contiguous" }),
        ),
        chars(
            json!([{ "type": "Strip", "strip_left": true, "strip_right": true }, { "type": "Lowercase" }]),
            json!({ "type": "Split", "pattern": { "String": "." }, "behavior": "MergedWithPrevious", "invert": false }),
        ),
    ];
    let letters = [
        "a", "A", "e", "\u{301}", "\u{323}", "ᄀ", "ᅡ", "가", "ᆨ", " ", "\r\n", "中", ".", "ﬁ",
        "<s>", "İ", "1",
    ];
    for file in files {
        let pipeline = of(&file).expect("a pipeline");
        let cuts = pipeline.cuts().expect("it can be cut");
        let mut count = 0;
        let mut texts = vec![String::new()];
        for length in 1..=4 {
            // Of the longest, those over the first letters that the length leaves.
            let letters = if length == 4 {
                &letters[..9]
            } else {
                &letters[..]
            };
            texts = texts
                .iter()
                .flat_map(|text| letters.iter().map(move |letter| format!("{text}{letter}")))
                .filter(|text| length < 4 || text.len() < 10)
                .collect();
            for text in &texts {
                count += check_cuts(&cuts, &pipeline, text, &file);
            }
        }
        assert!(count > 500, "{count} cuts, {file}");
    }
}

#[test]
fn parts_batches_and_streams_of_any_pipeline_are_those_of_one_thread() {
    let mut random = Random(2024);
    let (mut tried, mut with_cuts, mut places) = (0, 0, 0);
    while tried < 1200 {
        let Some((pipeline, file)) = pipelines::pipeline(&mut random) else {
            continue;
        };
        tried += 1;
        let mut here = 0;
        for _ in 0..6 {
            let text = pipelines::text(&mut random, 24);
            if let Ok(cuts) = pipeline.cuts() {
                here += check_cuts(&cuts, &pipeline, &text, &file);
            }
            check_calls(&pipeline, &text, &mut random, &file);
        }
        with_cuts += usize::from(here > 0);
        places += here;
    }
    assert!(
        with_cuts > 400 && places > 5_000,
        "{with_cuts} pipelines, {places} places"
    );
}

/// The pipelines with every step whose results `tokenizers` has given (pipeline_cases.py), over their texts.
#[test]
fn cuts_of_the_cases_of_tokenizers_lose_nothing() {
    let cases: Value = serde_json::from_str(include_str!("pipeline_cases.json")).expect("JSON");
    let texts = cases["texts"].as_array().expect("a list");
    let texts: Vec<&str> = texts.iter().filter_map(Value::as_str).collect();
    let joined = texts.concat();
    let mut random = Random(3);
    let mut places = 0;
    for case in cases["cases"].as_array().expect("a list") {
        let mut model = cases["models"][case["model"].as_str().expect("a name")].clone();
        for token in case["added_tokens"].as_array().expect("a list") {
            model["vocab"][token["content"].as_str().expect("text")] = token["id"].clone();
        }
        let file = json!({
            "added_tokens": case["added_tokens"], "normalizer": case["normalizer"],
            "pre_tokenizer": case["pre_tokenizer"], "model": model,
        });
        let pipeline = of(&file).expect("a pipeline");
        let pipeline = pipeline
            .with_specials(Specials::AllowAll)
            .expect("specials");
        check_calls(&pipeline, &joined, &mut random, &file);
        if let Ok(cuts) = pipeline.cuts() {
            for text in &texts {
                places += check_cuts(&cuts, &pipeline, text, &file);
            }
        }
    }
    assert!(places > 2_000, "{places} places");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_text_of_bert_is_encoded_alike_in_parts(
        fragments in prop::collection::vec(
            prop_oneof![(0..FRAGMENTS.len()).prop_map(|index| FRAGMENTS[index].to_owned()), "\\PC{0,3}", any::<String>()],
            0..12,
        ),
        seed in any::<u64>(),
    ) {
        let file = bert();
        let pipeline = of(&file).expect("a pipeline");
        let text = fragments.concat();
        check_cuts(&pipeline.cuts().expect("cuts"), &pipeline, &text, &file);
        check_calls(&pipeline, &text, &mut Random(seed), &file);
    }
}

#[test]
fn special_tokens_of_the_post_processor_come_around_each_text_where_asked_for() {
    let pipeline = of(&bert()).expect("a pipeline");
    let long = "ab a b. 中 ".repeat(9_000);
    let texts = ["ab", long.as_str(), ""];
    let parallel = pipeline.parallel().threads(2).add_special_tokens(true);
    let inputs = parallel
        .model_inputs(&texts, &InputOptions::default())
        .expect("tokens");
    let expected: Vec<Vec<TokenId>> = inputs.iter().map(|input| input.ids().to_vec()).collect();
    assert_eq!(expected[0], [50, 5, 51]);
    assert_eq!(expected[2], [50, 51]);
    assert_eq!(parallel.encode_batch(&texts).expect("tokens"), expected);
    let flat = parallel.encode_batch_flat(&texts).expect("tokens");
    assert!(flat.documents().eq(expected.iter().map(Vec::as_slice)));
    assert_eq!(parallel.encode(long.as_str()).expect("tokens"), expected[1]);
    let counts: Vec<usize> = expected.iter().map(Vec::len).collect();
    assert_eq!(parallel.count_batch(&texts).expect("tokens"), counts);
    assert_eq!(
        pipeline.count_batch(&texts).expect("tokens")[1],
        counts[1] - 2
    );
}

#[test]
fn a_long_text_is_done_in_parts_inside_a_pool_of_the_caller_too() {
    let pipeline = of(&bert()).expect("a pipeline");
    let text = "Ab e\u{301}a 中b 1. [M]\r\n".repeat(20_000);
    let expected = pipeline.encode(&text).expect("tokens");
    assert!(pipeline.encode_parallel(&text).expect("tokens") == expected);
    let parallel = pipeline.parallel().threads(3);
    let inside = std::thread::spawn(move || parallel.encode_batch(&[text.as_str(), "ab"]));
    let batch = inside.join().expect("no panic").expect("tokens");
    assert!(batch[0] == expected && batch[1] == [5]);
}

#[test]
fn what_forbids_cuts_is_said_and_such_a_pipeline_is_done_by_one_thread() {
    let flagged = |normalized: bool| {
        let mut file = bert();
        file["added_tokens"][2]["normalized"] = json!(normalized);
        file["added_tokens"][2]["lstrip"] = json!(true);
        file
    };
    let whole_pieces = {
        let mut file = chars(json!([]), Value::Null);
        file["model"]["ignore_merges"] = json!(true);
        file
    };
    let looking = json!([{
        "type": "Replace", "pattern": { "Regex": r"\s+(?!\S)" }, "content": "a"
    }]);
    let fused = {
        let mut file = chars(json!([]), Value::Null);
        file["model"]["fuse_unk"] = json!(true);
        file
    };
    for (file, why) in [
        (flagged(false), "lstrip"),
        (flagged(true), "lstrip"),
        (whole_pieces, "nothing cuts the text before the model"),
        (fused, "nothing cuts the text before the model"),
        (
            chars(looking, json!({ "type": "Whitespace" })),
            "may look at what it does not match",
        ),
        (
            chars(json!([]), json!({ "type": "FixedLength", "length": 3 })),
            "fixed length",
        ),
    ] {
        let pipeline = of(&file).expect("a pipeline");
        let pipeline = pipeline
            .with_specials(Specials::AllowAll)
            .expect("specials");
        let error = pipeline.stream().expect_err("no stream");
        assert!(
            error.is_unsupported() && error.to_string().contains(why),
            "{error}"
        );
        let said = pipeline.inspect().engine;
        assert!(said.iter().any(|line| line.contains(why)), "{said:?}");
        let text = "a ab  [M]  e aa\n".repeat(500);
        let parallel = pipeline.parallel().threads(2).part_bytes(10);
        assert!(
            parallel.encode(&text).ok() == pipeline.encode(&text).ok(),
            "{file}"
        );
    }
}

#[test]
fn a_stream_keeps_its_limit_and_tells_bytes_that_are_no_text() {
    let pipeline = of(&bert()).expect("a pipeline");
    let mut ids = Vec::new();
    let mut stream = pipeline.stream().expect("a stream").with_limit(100);
    for _ in 0..100 {
        stream.push("a b ", &mut ids).expect("blanks");
    }
    assert!(stream.held() < 10);
    let pushed = (0..200).try_for_each(|_| stream.push("a", &mut ids));
    assert_eq!(pushed.expect_err("a long word").limit(), Some(100));
    let mut stream = pipeline.stream().expect("a stream");
    stream
        .push("ab \u{4e2d}".as_bytes(), &mut ids)
        .expect("text");
    let error = stream.push(b"a \xFF", &mut ids).expect_err("not UTF-8");
    assert_eq!(error.invalid_utf8(), Some(8));
    let mut stream = pipeline.stream().expect("a stream");
    stream
        .push(b"ab \xE4\xB8", &mut ids)
        .expect("half a character");
    let error = stream.finish(&mut ids).expect_err("half a character");
    assert_eq!(error.invalid_utf8(), Some(3));
}

#[test]
fn a_validator_finds_the_first_id_that_is_not_of_the_text() {
    let mut file = bert();
    file["decoder"] = json!({ "type": "WordPiece", "prefix": "##", "cleanup": false });
    let pipeline = of(&file).expect("a pipeline");
    let pipeline = pipeline
        .with_specials(Specials::AllowAll)
        .expect("specials");
    let mut random = Random(5);
    let mut wrong = 0;
    for _ in 0..3000 {
        let mut ids: Vec<TokenId> = (0..random.below(12))
            .map(|_| [1, 2, 3, 4, 5, 6, 9, 50, 0][random.below(9)])
            .collect();
        // What is right to begin with is changed at one place at most.
        if random.below(2) == 0 {
            let text = pipeline.decode(&ids).expect("known ids");
            ids = pipeline.encode(&text).expect("tokens");
            let place = random.below(ids.len() + 1);
            if random.below(2) == 0 && place < ids.len() {
                ids[place] = 5;
            }
        }
        let text = pipeline.decode(&ids).expect("known ids");
        let expected = pipeline.encode(&text).expect("tokens");
        let common = ids
            .iter()
            .zip(&expected)
            .take_while(|(a, b)| a == b)
            .count();
        let mut validator = pipeline.validator().expect("a validator");
        let found = validator.validate(&ids).expect("within the limit");
        match ids == expected {
            true => assert_eq!(found, None, "{ids:?}"),
            false => {
                let found = found.expect("other tokens");
                wrong += 1;
                assert_eq!(
                    (found.index, found.expected),
                    (common, expected.get(common).copied()),
                    "{ids:?}"
                );
            }
        }
    }
    assert!((500..2500).contains(&wrong), "{wrong} wrong");
    let mut validator = pipeline.validator().expect("a validator");
    let found = validator
        .validate(&[1, 2, 999, 1])
        .expect("within the limit");
    let found = found.expect("no token");
    assert_eq!((found.index, found.expected), (2, None));
}

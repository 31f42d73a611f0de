//! Pipelines: each step does what `tokenizers` does, and what is wrong with a file is said with its place.

#![cfg(feature = "tokenizer-json")]

use bytepair::{LoadError, Pipeline, ReadLimits, Specials, Tokenizer};
use serde_json::{Value, json};

/// Small tokenizers with every step, and what `tokenizers` makes of some texts with them: written by
/// pipeline_cases.py.
fn cases() -> Value {
    serde_json::from_str(include_str!("pipeline_cases.json")).expect("JSON")
}

/// The file of a case.
fn file(cases: &Value, case: &Value) -> Value {
    let name = case["model"].as_str().expect("a name");
    let mut model = cases["models"][name].clone();
    for token in case["added_tokens"].as_array().expect("a list") {
        let content = token["content"].as_str().expect("text");
        model["vocab"][content] = token["id"].clone();
    }
    json!({
        "version": "1.0", "truncation": null, "padding": null,
        "added_tokens": case["added_tokens"], "normalizer": case["normalizer"],
        "pre_tokenizer": case["pre_tokenizer"], "post_processor": null, "decoder": null,
        "model": model,
    })
}

fn load(file: &Value) -> Result<Pipeline, LoadError> {
    let limits = ReadLimits::default();
    let pipeline = Pipeline::from_tokenizer_json(file.to_string().as_bytes(), &limits)?;
    pipeline.with_specials(Specials::AllowAll)
}

/// A file of these parts, over single bytes with the merge of `a` and `b`.
fn with(name: &str, value: Value) -> Value {
    let mut vocab = serde_json::Map::new();
    for byte in 0..=u8::MAX {
        let spelled = bpe_core::byte_level::to_char(byte);
        vocab.insert(spelled.to_string(), byte.into());
    }
    vocab.insert("ab".to_owned(), 256.into());
    let mut file = json!({
        "added_tokens": [], "normalizer": null,
        "pre_tokenizer": { "type": "ByteLevel", "add_prefix_space": false, "use_regex": true },
        "post_processor": null, "decoder": { "type": "ByteLevel" },
        "model": { "type": "BPE", "vocab": vocab, "merges": ["a b"] },
    });
    match name.split_once('.') {
        Some((part, field)) => file[part][field] = value,
        None => file[name] = value,
    }
    file
}

fn error(file: &Value) -> String {
    load(file).expect_err("a bad file").to_string()
}

#[test]
fn ids_and_offsets_of_every_step_are_those_of_tokenizers() {
    let cases = cases();
    let texts: Vec<&str> = cases["texts"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|text| text.as_str().expect("text"))
        .collect();
    let mut failures = Vec::new();
    for case in cases["cases"].as_array().expect("a list") {
        let steps = format!(
            "{}, {}, {}, {}",
            case["model"], case["normalizer"], case["pre_tokenizer"], case["added_tokens"]
        );
        let pipeline = load(&file(&cases, case)).unwrap_or_else(|error| panic!("{steps}: {error}"));
        let again = load(&serde_json::from_str(&pipeline.to_tokenizer_json()).expect("JSON"));
        let again = again.unwrap_or_else(|error| panic!("{steps}, written: {error}"));
        for (text, result) in texts
            .iter()
            .zip(case["results"].as_array().expect("a list"))
        {
            let encoding = pipeline.encode_with_offsets(text).expect("unknown tokens");
            let characters = |at: usize| text[..at].chars().count();
            let offsets: Vec<[usize; 2]> = encoding
                .byte_ranges
                .iter()
                .map(|range| [characters(range.start), characters(range.end)])
                .collect();
            let got = json!([encoding.ids, offsets]);
            if got != *result {
                failures.push(format!("{steps}\n  {text:?}\n  {got}\n  {result}"));
            }
            assert_eq!(
                pipeline.encode(text).as_ref().ok(),
                Some(&encoding.ids),
                "{steps}"
            );
            assert_eq!(
                pipeline.count(text).ok(),
                Some(encoding.ids.len()),
                "{steps}"
            );
            assert_eq!(
                again.encode(text).ok(),
                Some(encoding.ids),
                "{steps}, written"
            );
        }
    }
    let count = failures.len();
    failures.truncate(12);
    assert!(count == 0, "{count} differences\n{}", failures.join("\n"));
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    let cases: [(&str, Value, &str); 16] = [
        (
            "normalizer",
            json!({ "type": "Precompiled", "precompiled_charsmap": "" }),
            "normalizer.type: Precompiled",
        ),
        (
            "normalizer",
            json!({ "type": "Strip", "strip_left": 1 }),
            "normalizer.strip_left",
        ),
        (
            "normalizer",
            json!({ "type": "Sequence", "normalizers": [null] }),
            "normalizer.normalizers[0]",
        ),
        (
            "normalizer",
            json!({ "type": "Lowercase", "locale": "tr" }),
            "normalizer.locale",
        ),
        (
            "pre_tokenizer",
            json!({ "type": "UnicodeScripts" }),
            "pre_tokenizer.type: UnicodeScripts",
        ),
        (
            "pre_tokenizer",
            json!({ "type": "Sequence", "pretokenizers": [{ "type": "Split", "pattern": { "Regex": "a(" }, "behavior": "Isolated" }] }),
            "pre_tokenizer.pretokenizers[0].pattern.Regex",
        ),
        (
            "pre_tokenizer",
            json!({ "type": "Split", "pattern": { "Regex": "a" }, "behavior": "Glued" }),
            "pre_tokenizer.behavior",
        ),
        (
            "pre_tokenizer",
            json!({ "type": "FixedLength", "length": 0 }),
            "pre_tokenizer.length",
        ),
        ("model.dropout", json!(0.1), "model.dropout"),
        ("model.merges", json!(["a b", "a zz"]), "model.merges[1]"),
        ("model.vocab", json!({ "a": 0, "b": 0 }), "model.vocab"),
        (
            "model.vocab",
            json!({ "a": 0, "b": 1, "ab": 2 }),
            "model.vocab: no token for the single byte",
        ),
        (
            "added_tokens",
            json!([{ "id": 300, "content": "x" }, { "id": 300, "content": "y" }]),
            "added_tokens[1].id",
        ),
        (
            "added_tokens",
            json!([{ "id": 300, "content": "xy" }, { "id": 301, "content": "xy" }]),
            "added_tokens[1].content",
        ),
        (
            "added_tokens",
            json!([{ "id": 97, "content": "xy" }]),
            "added_tokens[0].id",
        ),
        (
            "added_tokens",
            json!([{ "id": 300, "content": "" }]),
            "added_tokens[0].content",
        ),
    ];
    for (name, value, place) in cases {
        let error = error(&with(name, value));
        assert!(
            error.starts_with(place) || error.contains(&format!(" {place}")),
            "{place}: {error}"
        );
    }
}

#[test]
fn a_file_that_ends_anywhere_is_an_error() {
    let file = with("normalizer", json!({ "type": "NFC" })).to_string();
    let limits = ReadLimits::default();
    for end in (0..file.len()).step_by(7) {
        let error = Pipeline::from_tokenizer_json(&file.as_bytes()[..end], &limits);
        assert!(error.is_err(), "cut at {end}");
    }
    assert!(Pipeline::from_tokenizer_json(file.as_bytes(), &limits).is_ok());
}

#[test]
fn sequences_deep_inside_each_other_are_an_error_and_no_stack_overflow() {
    for (name, inside) in [
        ("normalizer", "normalizers"),
        ("pre_tokenizer", "pretokenizers"),
        ("decoder", "decoders"),
        ("post_processor", "processors"),
    ] {
        let depth = 10_000;
        let open = format!(r#"{{"type":"Sequence","{inside}":["#).repeat(depth);
        let deep = format!("{open}{}", "]}".repeat(depth));
        let file = with(name, json!("here"))
            .to_string()
            .replace("\"here\"", &deep);
        let error = Pipeline::from_tokenizer_json(file.as_bytes(), &ReadLimits::default());
        let error = error.expect_err("too deep").to_string();
        assert!(error.contains(name), "{}", &error[..error.len().min(200)]);
    }
}

#[test]
fn too_many_added_tokens_are_an_error_that_comes_before_they_are_all_read() {
    let token = r#"{"id":300,"content":"xy"}"#;
    let list = format!("[{}]", vec![token; 1_100_000].join(","));
    let file = with("added_tokens", json!("here"))
        .to_string()
        .replace("\"here\"", &list);
    let error = Pipeline::from_tokenizer_json(file.as_bytes(), &ReadLimits::default());
    let error = error.expect_err("too many").to_string();
    assert!(
        error.starts_with("added_tokens") && error.contains("1048576"),
        "{error}"
    );
}

#[test]
fn patterns_that_can_match_nothing_are_refused() {
    for regex in ["a*", "(?=b)", "a|"] {
        let split =
            json!({ "type": "Split", "pattern": { "Regex": regex }, "behavior": "Isolated" });
        let error = error(&with("pre_tokenizer", split));
        assert!(
            error.contains("pre_tokenizer.pattern.Regex"),
            "{regex}: {error}"
        );
    }
}

#[test]
fn a_tokenizer_is_what_a_pipeline_says_where_a_file_says_no_more() {
    let file = with(
        "added_tokens",
        json!([{ "id": 300, "content": "<s>", "special": true }]),
    );
    let limits = ReadLimits::default();
    let tokenizer = Tokenizer::from_tokenizer_json(file.to_string().as_bytes(), &limits);
    let tokenizer = tokenizer.and_then(|tokenizer| tokenizer.with_specials(Specials::AllowAll));
    let (tokenizer, pipeline) = (tokenizer.expect("plain"), load(&file).expect("plain"));
    let text = "ab ab<s> 1234 é\n";
    assert_eq!(tokenizer.encode(text).ok(), pipeline.encode(text).ok());
    let plain = pipeline.with_specials(Specials::AsText).expect("no names");
    assert!(!plain.encode(text).expect("text").contains(&300));
    let strict = pipeline.with_specials(Specials::Forbid).expect("no names");
    assert_eq!(strict.encode(text).expect_err("forbidden").byte_offset(), 5);
}

#[test]
fn errors_are_placed_in_the_text_as_it_was_given() {
    let mut file = with(
        "normalizer",
        json!({ "type": "Replace", "pattern": { "String": "x" }, "content": "ab" }),
    );
    file["pre_tokenizer"] = Value::Null;
    file["decoder"] = Value::Null;
    file["model"] =
        json!({ "type": "BPE", "vocab": { "a": 0, "b": 1, "ab": 2 }, "merges": ["a b"] });
    let pipeline = load(&file).expect("supported");
    assert_eq!(pipeline.encode("xxab").ok(), Some(vec![2, 2, 2]));
    let error = pipeline.encode("xxé").expect_err("no token for é");
    assert!(error.is_missing_token());
    assert_eq!(error.byte_offset(), 2);
}

#[test]
fn long_texts_through_every_step_take_linear_time() {
    let blanks = json!({ "type": "Sequence", "normalizers": [
        { "type": "NFKC" }, { "type": "StripAccents" }, { "type": "Lowercase" },
        { "type": "Replace", "pattern": { "String": "b" }, "content": "-" }] });
    let mut file = with("normalizer", blanks);
    file["added_tokens"] = json!([{ "id": 300, "content": " ", "rstrip": true, "normalized": true },
        { "id": 301, "content": "\t", "lstrip": true, "rstrip": true }]);
    let pipeline = load(&file).expect("supported");
    for unit in [" ", "\t", "a", "A", "\u{0301}", "ab ", "中", " \t"] {
        let text = unit.repeat((1 << 18) / unit.len());
        let started = std::time::Instant::now();
        pipeline
            .encode_with_offsets(&text)
            .expect("all bytes are tokens");
        // Quadratic time would be minutes.
        assert!(started.elapsed().as_secs() < 60, "{unit:?}");
    }
}

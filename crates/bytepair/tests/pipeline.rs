//! Pipelines: each step does what `tokenizers` does, and what is wrong with a file is said with its place.

#![cfg(feature = "tokenizer-json")]

use bytepair::{InputOptions, LoadError, Pipeline, ReadLimits, Specials, Tokenizer};
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

/// Whether an error begins with the path of a field, or says it behind what the field is.
fn names(error: &str, place: &str) -> bool {
    error.starts_with(place) || error.contains(&format!(" {place}"))
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    let cases: [(&str, Value, &str); 50] = [
        // What is not done.
        (
            "normalizer",
            json!({ "type": "Precompiled", "precompiled_charsmap": "" }),
            "normalizer.type: Precompiled",
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
            "decoder",
            json!({ "type": "Unheard" }),
            "decoder.type: Unheard",
        ),
        (
            "post_processor",
            json!({ "type": "Unheard" }),
            "post_processor.type: Unheard",
        ),
        ("model.type", json!("Unigram"), "model.type: Unigram"),
        ("model.type", json!("WordLevel"), "model.type: WordLevel"),
        ("model.dropout", json!(0.1), "model.dropout"),
        ("model.unheard", json!(1), "model.unheard"),
        ("unheard", json!(1), "unheard"),
        // Other types than they should be.
        ("normalizer", json!(7), "normalizer.type"),
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
            json!({ "type": "Sequence", "normalizers": [{ "type": "NFC" }, { "type": "Prepend" }] }),
            "normalizer.normalizers[1].prepend",
        ),
        (
            "normalizer",
            json!({ "type": "Replace", "pattern": "a", "content": "" }),
            "normalizer.pattern",
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
        (
            "pre_tokenizer",
            json!({ "type": "Metaspace", "replacement": "ab" }),
            "pre_tokenizer.replacement",
        ),
        (
            "decoder",
            json!({ "type": "Strip", "content": " ", "start": -1, "stop": 0 }),
            "decoder.start",
        ),
        ("decoder", json!("ByteLevel"), "decoder.type"),
        (
            "post_processor",
            json!({ "type": "RobertaProcessing", "sep": 3 }),
            "post_processor.",
        ),
        ("truncation", json!(7), "truncation"),
        ("truncation", json!({ "max_length": "x" }), "truncation."),
        (
            "padding",
            json!({ "strategy": "Longest" }),
            "padding.strategy",
        ),
        ("added_tokens", json!({}), "added_tokens"),
        ("added_tokens", json!([3]), "added_tokens[0]"),
        (
            "added_tokens",
            json!([{ "id": 300, "content": "x", "special": 1 }]),
            "added_tokens[0].special",
        ),
        (
            "added_tokens",
            json!([{ "id": 1_u64 << 32, "content": "x" }]),
            "added_tokens[0].id",
        ),
        (
            "added_tokens",
            json!([{ "content": "x" }]),
            "added_tokens[0]",
        ),
        ("model", Value::Null, "model"),
        (
            "model",
            json!({ "type": "BPE" }),
            "model: missing field `vocab`",
        ),
        ("model.vocab", json!({ "a": "one" }), "model.vocab.a"),
        ("model.vocab", json!({ "a": -1 }), "model.vocab.a"),
        ("model.vocab", json!([["a", 1]]), "model.vocab"),
        ("model.merges", json!(["a b", 3]), "model.merges[1]"),
        ("model.fuse_unk", json!("yes"), "model.fuse_unk"),
        // A pattern that does not compile.
        (
            "pre_tokenizer",
            json!({ "type": "Sequence", "pretokenizers": [{ "type": "Split", "pattern": { "Regex": "a(" }, "behavior": "Isolated" }] }),
            "pre_tokenizer.pretokenizers[0].pattern.Regex",
        ),
        (
            "normalizer",
            json!({ "type": "Replace", "pattern": { "Regex": "[b-a]" }, "content": "" }),
            "normalizer.pattern.Regex",
        ),
        // Merges that name unknown tokens, are no merges, come twice or never.
        ("model.merges", json!(["a b", "a zz"]), "model.merges[1]"),
        ("model.merges", json!(["a c"]), "model.merges[0]"),
        ("model.merges", json!(["a b", "a b"]), "model.merges[1]"),
        ("model.merges", json!(["a b c"]), "model.merges[0]"),
        ("model.merges", json!([["a", "b", "c"]]), "model.merges[0]"),
        // Ids that come twice, and a byte without a token.
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
            json!([{ "id": 300, "content": "ab" }]),
            "added_tokens[0]",
        ),
        (
            "added_tokens",
            json!([{ "id": 300, "content": "" }]),
            "added_tokens[0].content",
        ),
    ];
    for (name, value, place) in cases {
        let file = with(name, value);
        let message = error(&file);
        assert!(names(&message, place), "{place}: {message}");
        // A tokenizer takes less, and says where too.
        let tokenizer =
            Tokenizer::from_tokenizer_json(file.to_string().as_bytes(), &ReadLimits::default());
        let message = tokenizer.expect_err(place).to_string();
        let field = name.split('.').next().expect("the first part");
        assert!(names(&message, field), "{place}: {message}");
    }
}

#[test]
fn what_is_wrong_with_word_pieces_and_affixes_is_said_with_its_place() {
    let words = json!({
        "type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
        "max_input_chars_per_word": 100, "vocab": { "[UNK]": 0, "a": 1, "##b": 2 },
    });
    let affixes = json!({
        "type": "BPE", "unk_token": "?", "end_of_word_suffix": "</w>", "merges": ["a b</w>"],
        "vocab": { "?": 0, "a": 1, "b</w>": 2, "ab</w>": 3, "xy": 4, "zz</w>": 5, "xyzz</w>": 6 },
    });
    let cases = [
        (&words, "unk_token", json!("zz"), "model.unk_token"),
        (&words, "unk_token", Value::Null, "model.unk_token"),
        (
            &words,
            "max_input_chars_per_word",
            json!(-1),
            "model.max_input_chars_per_word",
        ),
        (
            &words,
            "vocab",
            json!({ "[UNK]": 0, "a": "x" }),
            "model.vocab.a",
        ),
        (
            &words,
            "vocab",
            json!({ "[UNK]": 0, "a": 0 }),
            "model.vocab",
        ),
        (&words, "merges", json!([]), "model.merges"),
        (&affixes, "unk_token", json!("zz"), "model.unk_token"),
        (
            &affixes,
            "merges",
            json!(["a b</w>", "a zz"]),
            "model.merges[1]",
        ),
        (
            &affixes,
            "merges",
            json!(["a b</w>", "a b</w>"]),
            "model.merges[1]",
        ),
        (
            &affixes,
            "merges",
            json!(["xy zz</w>"]),
            "model.merges: none",
        ),
        (
            &affixes,
            "vocab",
            json!({ "?": 0, "a": 1, "b</w>": 1, "ab</w>": 3 }),
            "model.vocab",
        ),
    ];
    let file = |model: &Value| json!({ "model": model, "decoder": null });
    for model in [&words, &affixes] {
        load(&file(model)).expect("nothing is wrong");
    }
    for (model, field, value, place) in cases {
        let mut model = model.clone();
        model[field] = value;
        let error = error(&file(&model));
        assert!(names(&error, place), "{place}: {error}");
    }
    let twice = file(&words)
        .to_string()
        .replace("\"##b\":2", "\"##b\":2,\"a\":3");
    let error = Pipeline::from_tokenizer_json(twice.as_bytes(), &ReadLimits::default());
    let error = error.expect_err("a is there twice").to_string();
    assert!(
        names(&error, "model.vocab") && error.contains("twice"),
        "{error}"
    );
}

#[test]
fn merges_of_which_none_is_ever_applied_are_refused() {
    let mut file = with("model.merges", json!([["xy", "zz"]]));
    for (text, id) in [("xy", 300), ("zz", 301), ("xyzz", 302)] {
        file["model"]["vocab"][text] = id.into();
    }
    assert!(error(&file).starts_with("model.merges: none"));
    // One that begins is enough.
    file["model"]["merges"] = json!([["xy", "zz"], ["x", "y"]]);
    let pipeline = load(&file).expect("x and y are joined");
    assert_eq!(pipeline.encode("xyzz").ok(), Some(vec![300, 122, 122]));
}

#[test]
fn a_file_that_ends_anywhere_is_an_error() {
    let file = with("normalizer", json!({ "type": "NFC" })).to_string();
    let limits = ReadLimits::default();
    for end in (0..file.len()).step_by(7) {
        let error = Pipeline::from_tokenizer_json(&file.as_bytes()[..end], &limits);
        let error = error.expect_err("cut").to_string();
        assert!(error.contains("at line 1 column"), "cut at {end}: {error}");
    }
    let end = |before: &str| {
        let part = &file[..file.find(before).expect("a part of it") + before.len()];
        let error = Pipeline::from_tokenizer_json(part.as_bytes(), &limits);
        error.expect_err("cut").to_string()
    };
    assert!(names(&end(r#""merges":["a"#), "model.merges[0]"));
    assert!(names(&end(r#""ab":2"#), "model.vocab.ab") || names(&end(r#""ab":2"#), "model.vocab"));
    assert!(names(&end(r#""pre_tokenizer":{"#), "pre_tokenizer"));
    assert!(Pipeline::from_tokenizer_json(file.as_bytes(), &limits).is_ok());
}

#[test]
fn steps_deep_inside_each_other_are_an_error_and_no_stack_overflow() {
    let depth = 10_000;
    let sequence = |inside: &str| {
        let open = format!(r#"{{"type":"Sequence","{inside}":["#).repeat(depth);
        format!("{open}{}", "]}".repeat(depth))
    };
    let lists = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    for (name, deep) in [
        ("normalizer", sequence("normalizers")),
        ("pre_tokenizer", sequence("pretokenizers")),
        ("decoder", sequence("decoders")),
        ("post_processor", sequence("processors")),
        ("truncation", lists.clone()),
        ("padding", lists.clone()),
        ("added_tokens", lists.clone()),
        ("model", lists.clone()),
        ("version", lists),
    ] {
        let file = with(name, json!("here"))
            .to_string()
            .replace("\"here\"", &deep);
        let limits = ReadLimits::default();
        let pipeline = Pipeline::from_tokenizer_json(file.as_bytes(), &limits);
        let error = pipeline.expect_err("too deep").to_string();
        assert!(error.contains(name), "{}", &error[..error.len().min(200)]);
        assert!(Tokenizer::from_tokenizer_json(file.as_bytes(), &limits).is_err());
    }
}

#[test]
fn too_many_added_tokens_are_an_error_that_comes_before_they_are_all_read() {
    let tokens = r#"{"id":300,"content":"xy"},"#.repeat(10_000_000);
    let list = format!("[{}]", tokens.trim_end_matches(','));
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

#[test]
fn truncation_and_padding_of_a_file_are_read_and_left_off_unless_asked_for() {
    let mut file = with(
        "truncation",
        json!({ "direction": "Right", "max_length": 2, "strategy": "LongestFirst", "stride": 0 }),
    );
    file["padding"] = json!({ "strategy": { "Fixed": 4 }, "direction": "Right",
        "pad_to_multiple_of": null, "pad_id": 0, "pad_type_id": 0, "pad_token": "!" });
    let pipeline = load(&file).expect("supported");
    assert_eq!(pipeline.encode("abc").ok(), Some(vec![256, 99]));
    assert_eq!(pipeline.count("abcde").ok(), Some(4));
    let input = |options: &InputOptions| {
        let input = pipeline.model_input("abcde", None, options);
        input.expect("nothing is wrong").ids().to_vec()
    };
    assert_eq!(input(&InputOptions::default()), [256, 99, 100, 101]);
    let options = InputOptions {
        truncation: pipeline.truncation().cloned(),
        padding: pipeline.padding().cloned(),
        ..InputOptions::default()
    };
    assert_eq!(input(&options), [256, 99, 0, 0]);
    let written: Value = serde_json::from_str(&pipeline.to_tokenizer_json()).expect("JSON");
    assert_eq!(written["truncation"], file["truncation"]);
    assert_eq!(written["padding"], file["padding"]);
}

#[test]
fn an_inspection_tells_what_is_odd() {
    let mut file = with("model.merges", json!(["b c", "a b", "ab bc", "c d"]));
    for (text, id) in [("bc", 300), ("abbc", 301), ("cd", 302), ("xyz", 303)] {
        file["model"]["vocab"][text] = id.into();
    }
    let oddities = load(&file)
        .expect("supported")
        .inspect()
        .oddities
        .join("; ");
    assert!(
        oddities.contains("tokens that merging does not give"),
        "{oddities}"
    );
    assert!(oddities.contains("\"xyz\" (303)"), "{oddities}");
    let mut lower = with("normalizer", json!({ "type": "Lowercase" }));
    lower["model"]["merges"] = json!(["ab c", "a b"]);
    lower["model"]["vocab"]["abc"] = 300.into();
    let inspection = load(&lower).expect("supported").inspect();
    let (engine, oddities) = (inspection.engine.join("; "), inspection.oddities.join("; "));
    assert!(engine.contains("rules in another order"), "{engine}");
    assert!(
        oddities.contains("\"ABC\" comes back as \"abc\""),
        "{oddities}"
    );
    let characters = json!({ "model": { "type": "BPE", "unk_token": "?", "merges": [],
        "vocab": { "?": 0, "a": 1 } } });
    let oddities = load(&characters).expect("supported").inspect().oddities;
    let missing = "256 bytes without a token: a character that is no token is \"?\" (0)";
    assert!(oddities.iter().any(|odd| odd == missing), "{oddities:?}");
}

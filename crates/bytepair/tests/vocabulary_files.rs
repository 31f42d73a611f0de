//! Tokenizers from files: what is loaded works, what is refused says where and why.

#![cfg(all(
    feature = "tokenizer-json",
    feature = "reference",
    feature = "r50k_base"
))]

use bytepair::{
    Dictionary, Family, LoadError, Pattern, ReadLimits, Specials, Tokenizer, TokenizerBuilder,
};

const LIMITS: ReadLimits = ReadLimits {
    file: 1 << 24,
    line: 1 << 16,
    token: 1 << 12,
};

fn case(name: &str) -> Vec<u8> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../bench-data/cases/");
    std::fs::read(format!("{folder}{name}")).expect("a case of the repository")
}

/// A byte-level file with the merge of `a` and `b`, and these fields in place of its own.
fn json(fields: &[(&str, &str)]) -> String {
    let bytes: Vec<String> = (0..=255_u8)
        .map(|byte| {
            let spelled = bpe_core::byte_level::to_char(byte).to_string();
            format!("{}: {byte}", serde_json::to_string(&spelled).expect("text"))
        })
        .collect();
    let mut all = vec![
        ("added_tokens", "[]".to_owned()),
        ("normalizer", "null".to_owned()),
        (
            "pre_tokenizer",
            r#"{"type": "ByteLevel", "add_prefix_space": false, "use_regex": true}"#.to_owned(),
        ),
        ("post_processor", "null".to_owned()),
        ("decoder", r#"{"type": "ByteLevel"}"#.to_owned()),
        (
            "model",
            format!(
                r#"{{"type": "BPE", "vocab": {{{}, "ab": 256}}, "merges": ["a b"]}}"#,
                bytes.join(", ")
            ),
        ),
    ];
    for (name, value) in fields {
        match all.iter_mut().find(|field| field.0 == *name) {
            Some(field) => field.1 = (*value).to_owned(),
            None => all.push((name, (*value).to_owned())),
        }
    }
    let fields: Vec<String> = all
        .iter()
        .map(|(name, value)| format!("{name:?}: {value}"))
        .collect();
    format!("{{{}}}", fields.join(", "))
}

fn load(fields: &[(&str, &str)]) -> Result<Tokenizer, LoadError> {
    Tokenizer::from_tokenizer_json(json(fields).as_bytes(), &LIMITS)
}

fn split(pattern: &str) -> String {
    format!(
        r#"{{"type": "Sequence", "pretokenizers": [
            {{"type": "Split", "pattern": {pattern}, "behavior": "Isolated", "invert": false}},
            {{"type": "ByteLevel", "add_prefix_space": false, "use_regex": false}}]}}"#
    )
}

#[test]
fn a_byte_level_file_encodes_and_decodes() {
    let tokenizer = load(&[]).expect("supported");
    assert_eq!(tokenizer.encode("ab ab").expect("text"), [256, 32, 256]);
    assert_eq!(tokenizer.decode(&[256, 32]).as_deref(), Ok("ab "));
}

#[test]
fn what_is_not_done_is_refused_by_name() {
    for (field, value, name) in [
        ("normalizer", r#"{"type": "NFC"}"#, "NFC"),
        ("decoder", r#"{"type": "WordPiece"}"#, "WordPiece"),
        (
            "post_processor",
            r#"{"type": "BertProcessing"}"#,
            "BertProcessing",
        ),
        (
            "pre_tokenizer",
            r#"{"type": "WhitespaceSplit"}"#,
            "WhitespaceSplit",
        ),
        (
            "pre_tokenizer",
            r#"{"type": "ByteLevel", "add_prefix_space": true}"#,
            "add_prefix_space",
        ),
        (
            "pre_tokenizer",
            r#"{"type": "Sequence", "pretokenizers": [
                {"type": "ByteLevel", "add_prefix_space": false},
                {"type": "Split", "pattern": {"String": " "}, "behavior": "Isolated"}]}"#,
            "a stage after ByteLevel",
        ),
        (
            "pre_tokenizer",
            &split(r#"{"Regex": "a(?im:a)"}"#),
            "a group of this kind, at byte 1 of the pattern",
        ),
        (
            "pre_tokenizer",
            &split(r#"{"Regex": "(a)\\1"}"#),
            "an escape of this kind, at byte 3 of the pattern",
        ),
        ("model", r#"{"type": "Unigram", "vocab": []}"#, "Unigram"),
        (
            "added_tokens",
            r#"[{"id": 300, "content": "<x>", "lstrip": true}]"#,
            "lstrip",
        ),
    ] {
        let error = load(&[(field, value)]).expect_err(name);
        assert!(error.is_unsupported(), "{error}");
        let message = error.to_string();
        assert!(
            message.contains(name) && message.contains(field),
            "{message}"
        );
    }
    let error = load(&[("surprise", "1")]).expect_err("unknown field");
    assert!(error.to_string().contains("surprise"), "{error}");
}

#[test]
fn the_alphabet_is_that_of_the_pre_tokenizer() {
    let error = load(&[("pre_tokenizer", "null")]).expect_err("only the decoder is ByteLevel");
    assert!(
        error.is_unsupported() && error.to_string().contains("decoder"),
        "{error}"
    );
}

#[test]
fn anchors_inside_classes_and_escaped_ones_are_characters() {
    for regex in [r"[^$]", r"\\$", r"[]^]", r"[a[^b]$]"] {
        let pattern = format!(r#"{{"Regex": "{regex}"}}"#);
        load(&[("pre_tokenizer", &split(&pattern))]).expect(regex);
    }
}

#[test]
fn a_text_that_is_a_token_already_gets_no_second_id() {
    let added = r#"[{"id": 1000, "content": "ab", "special": true}]"#;
    let error = load(&[("added_tokens", added)]).expect_err("ab has the id 256");
    assert!(error.to_string().contains("256"), "{error}");
}

#[test]
fn a_pattern_that_a_tokenizer_json_would_mean_otherwise_is_not_written() {
    let own = |pattern: &str| {
        let vocabulary =
            bytepair::Vocabulary::new((0..=255_u8).map(|byte| (u32::from(byte), [byte])));
        let dictionary = Dictionary::from_ranks(vocabulary.expect("bytes")).expect("ranks");
        let builder = TokenizerBuilder::new(&dictionary);
        let tokenizer = builder.pattern(Pattern::new(pattern)).build();
        tokenizer.expect("a pattern").to_tokenizer_json()
    };
    let error = own(r"\w+|\W")
        .expect_err("tokenizers has another \\w")
        .to_string();
    assert!(error.contains("there it is [\\p{Alphabetic}"), "{error}");
    let error = own("a*").expect_err("it would cut").to_string();
    assert!(error.contains("match nothing"), "{error}");
    for same in [
        r"\p{L}+-\p{L}+|.",
        "[a-z_-]+|.",
        "(?i)foo|.",
        r"\x41#|\f|[^\s&~]+",
    ] {
        own(same).expect(same);
    }
    let error = own(r"a\pL|.").expect_err("no braces").to_string();
    assert!(error.contains("a property without braces"), "{error}");
    // tiktoken's spellings: `$` behind all white space is the end of the text, whatever it means elsewhere,
    // but `{1,3}+` repeats.
    let gpt2 = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s";
    let written = own(gpt2).expect("the same");
    let back = Tokenizer::from_tokenizer_json(written.as_bytes(), &LIMITS).expect("ours");
    assert_eq!(back.patterns()[0].family(), Some(Family::Gpt2));
    let error = own(Pattern::of_family(Family::Cl100kOfTiktoken).as_str());
    let error = error.expect_err("digits").to_string();
    assert!(error.contains(r"(?:\p{N}{1,3})+"), "{error}");
}

#[test]
fn a_tokenizer_written_as_json_comes_back() {
    for tokenizer in [
        Tokenizer::r50k_base(),
        Tokenizer::p50k_edit(),
        Tokenizer::cl100k_base(),
    ] {
        let file = tokenizer.to_tokenizer_json().expect("bytes and a pattern");
        let back = Tokenizer::from_tokenizer_json(file.as_bytes(), &LIMITS).expect("ours");
        let specials: Vec<_> = tokenizer.special_tokens().collect();
        assert_eq!(back.special_tokens().collect::<Vec<_>>(), specials);
        let text = "It's 2026:\n\n   naïve 龘<|endoftext|>";
        assert_eq!(back.encode(text).ok(), tokenizer.encode(text).ok());
        // `tokenizers` keeps the ids of special tokens only where the vocabulary has them.
        let file: serde_json::Value = serde_json::from_str(&file).expect("JSON");
        for (text, id) in specials {
            assert_eq!(file["model"]["vocab"][text], id);
        }
    }
    let error = Tokenizer::o200k_harmony()
        .to_tokenizer_json()
        .expect_err("two texts of one id");
    assert!(error.to_string().contains("200018"), "{error}");
}

#[test]
fn a_value_of_another_type_is_named_by_its_path() {
    for (field, value, path) in [
        (
            "model",
            r#"{"type": "BPE", "vocab": {"a": "one"}, "merges": []}"#,
            "model.vocab.a: ",
        ),
        (
            "model",
            r#"{"type": "BPE", "vocab": {}, "merges": ["a b", 3]}"#,
            "model.merges[1]: ",
        ),
        (
            "added_tokens",
            r#"[{"id": 1, "content": "x"}, {"id": -1}]"#,
            "added_tokens[1].id: ",
        ),
    ] {
        let error = load(&[(field, value)]).expect_err(path).to_string();
        assert!(error.contains(path) && error.contains("line "), "{error}");
    }
}

#[test]
fn a_split_at_a_string_splits_at_that_string_whatever_it_is_made_of() {
    let mut pieces: Vec<String> = (0x21..0x7F_u8)
        .filter(|byte| byte.is_ascii_punctuation())
        .map(|byte| char::from(byte).to_string())
        .collect();
    pieces.extend([
        "<|".to_owned(),
        "->".to_owned(),
        "a<b>".to_owned(),
        "é.".to_owned(),
    ]);
    for piece in pieces {
        let pattern = format!(
            r#"{{"String": {}}}"#,
            serde_json::to_string(&piece).expect("text")
        );
        let tokenizer = load(&[("pre_tokenizer", &split(&pattern))]).expect("supported");
        // Where it splits, the merge of a and b across its ends does not happen.
        let text = format!("a{piece}b ab");
        let encoding = tokenizer.encode_with_offsets(&text).expect("text");
        assert_eq!(
            tokenizer.decode(&encoding.ids).as_deref(),
            Ok(text.as_str())
        );
        let pattern = &tokenizer.patterns()[0];
        let mut lexer = pattern.lexer(bytepair::Engine::Auto).expect("a pattern");
        let found = lexer.next_pre_token(&text, 0).expect("no limit");
        assert_eq!(found, Some(1..1 + piece.len()), "{piece}");
    }
}

#[test]
fn sequences_of_stages_have_an_end() {
    let step = r#"{"type": "Split", "pattern": {"String": "-"}, "behavior": "Isolated"}"#;
    let last = r#"{"type": "ByteLevel", "add_prefix_space": false, "use_regex": false}"#;
    let stages = |count: usize| {
        let steps = [vec![step; count], vec![last]].concat().join(",");
        load(&[(
            "pre_tokenizer",
            &format!(r#"{{"type": "Sequence", "pretokenizers": [{steps}]}}"#),
        )])
    };
    assert!(stages(32).is_ok());
    assert!(stages(33).expect_err("too long").is_unsupported());
}

#[test]
fn special_tokens_of_a_file_are_text_unless_allowed_and_added_ones_are_always_tokens() {
    let added = r#"[
        {"id": 1000, "content": "<s>", "special": true},
        {"id": 2000, "content": "«é»", "special": true},
        {"id": 3000, "content": "ab ab", "special": false}]"#;
    let tokenizer = load(&[("added_tokens", added)]).expect("supported");
    assert_eq!(tokenizer.encode("<s>").expect("text"), [60, 115, 62]);
    assert_eq!(tokenizer.encode("xab ab").expect("text"), [120, 3000]);
    let all = tokenizer.with_specials(Specials::AllowAll).expect("known");
    assert_eq!(all.encode("<s>«é»").expect("text"), [1000, 2000]);
    assert_eq!(all.decode(&[2000, 3000]).as_deref(), Ok("«é»ab ab"));
    assert_eq!((all.max_id(), all.token_count()), (Some(3000), 260));
}

#[test]
fn long_added_tokens_are_refused_and_do_not_take_long() {
    let long = "a".repeat(5000);
    let added = format!(r#"[{{"id": 1000, "content": "{long}", "special": true}}]"#);
    let error = load(&[("added_tokens", &added)]).expect_err("over the limit");
    assert!(error.to_string().contains("over 4096 bytes"), "{error}");
    let tokens: Vec<String> = (0..2000)
        .map(|n| {
            let normalized = n % 2 == 0;
            let content = format!("{}{n}", "a".repeat(2000));
            format!(
                r#"{{"id": {}, "content": "{content}", "normalized": {normalized}}}"#,
                1000 + n
            )
        })
        .collect();
    let added = format!("[{}]", tokens.join(","));
    assert!(
        load(&[("added_tokens", &added)])
            .expect_err("too many")
            .is_unsupported()
    );
}

#[test]
fn offsets_of_unknown_characters_cover_them_and_stay_linear() {
    let file = case("tok/unk-no-fuse.json");
    let tokenizer = Tokenizer::from_tokenizer_json(&file, &LIMITS).expect("supported");
    let encoding = tokenizer
        .encode_with_offsets("aéxb")
        .expect("unknown token");
    assert_eq!(encoding.ids, [1, 0, 0, 2]);
    assert_eq!(encoding.byte_ranges, [0..1, 1..3, 3..4, 4..5]);
    let fused = Tokenizer::from_tokenizer_json(&case("tok/unk-fuse.json"), &LIMITS);
    let fused = fused.expect("supported");
    let encoding = fused.encode_with_offsets("aéxb").expect("unknown token");
    assert_eq!(encoding.ids, [1, 0, 2]);
    assert_eq!(encoding.byte_ranges, [0..1, 1..4, 4..5]);
    // Where the unknown token's own text is one character, it covers that character too.
    let question = r#"{"type": "BPE", "unk_token": "?", "merges": [], "vocab": {"?": 0, "a": 1}}"#;
    let null = [
        ("pre_tokenizer", "null"),
        ("decoder", "null"),
        ("model", question),
    ];
    let question = load(&null).expect("supported");
    let encoding = question.encode_with_offsets("?éa?").expect("unknown token");
    assert_eq!(encoding.ids, [0, 0, 1, 0]);
    assert_eq!(encoding.byte_ranges, [0..1, 1..3, 3..4, 4..5]);
    for tokenizer in [&tokenizer, &fused] {
        let text = "xa".repeat(1 << 18);
        let start = std::time::Instant::now();
        let encoding = tokenizer.encode_with_offsets(&text).expect("unknown token");
        assert_eq!(encoding.byte_ranges.len(), text.len());
        // Quadratic, this took minutes.
        assert!(start.elapsed().as_secs() < 20, "{:?}", start.elapsed());
    }
}

#[test]
fn characters_that_no_token_stands_for_are_errors_that_say_where() {
    let file = case("tok/merges-space-array.json");
    let tokenizer = Tokenizer::from_tokenizer_json(&file, &LIMITS).expect("supported");
    assert_eq!(tokenizer.encode("a bc d").expect("covered"), [13, 2, 7, 3]);
    let error = tokenizer.encode("a bQ").expect_err("no token for Q");
    assert!(error.is_missing_token());
    assert_eq!(error.byte_offset(), 3);
    assert_eq!(
        error.to_string(),
        "no token stands for the character 'Q' (at byte 3)"
    );
}

#[test]
fn errors_of_readers_are_sources_with_their_own_places() {
    let specials: [(&str, u32); 0] = [];
    let error = Tokenizer::from_tiktoken(b"IQ== 0\nbad\n", Pattern::gpt2(), specials, &LIMITS)
        .expect_err("malformed");
    let source = std::error::Error::source(&error).expect("a reader's error");
    let source = source.downcast_ref::<bpe_core::tiktoken::TiktokenError>();
    assert_eq!(source.and_then(|error| error.line()), Some(2));
}

#[test]
fn patterns_that_take_too_many_steps_are_errors_not_hangs() {
    let vocabulary = bytepair::Vocabulary::new((0..=255_u8).map(|byte| (u32::from(byte), [byte])));
    let dictionary = Dictionary::from_ranks(vocabulary.expect("bytes")).expect("ranks");
    let tokenizer = TokenizerBuilder::new(&dictionary)
        .pattern(Pattern::new(r"(?:a|aa)+(?<!a|b)"))
        .build()
        .expect("the reference engine runs it");
    let error = tokenizer
        .encode(&format!("{}b", "a".repeat(60)))
        .expect_err("too many steps");
    assert!(error.step_limit().is_some(), "{error}");
}

#[test]
fn patterns_after_lexers_of_the_callers_own_are_refused() {
    let lexers = vec![
        Pattern::gpt2()
            .lexer(bytepair::Engine::Auto)
            .expect("known"),
    ];
    let builder = Tokenizer::r50k_base().to_builder().custom_lexers(lexers);
    let tokenizer = builder.clone().build().expect("no patterns");
    let again = tokenizer
        .to_builder()
        .lexer(bytepair::Engine::Reference)
        .build();
    let text = "two words";
    let expected = Tokenizer::r50k_base().encode(text).expect("text");
    assert_eq!(tokenizer.encode(text).expect("text"), expected);
    assert_eq!(
        again.expect("no patterns").encode(text).expect("text"),
        expected
    );
    assert!(builder.pattern(Pattern::gpt2()).build().is_err());
}

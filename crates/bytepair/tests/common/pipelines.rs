//! Pipelines of all kinds of steps, put together at random, and texts that are hard for them.

use bytepair::{Pipeline, ReadLimits, Specials};
use serde_json::{Value, json};

use super::Random;

/// Parts of texts: what composes, falls apart, goes away, is a blank, belongs to an added token.
pub(crate) const FRAGMENTS: [&str; 40] = [
    "a",
    "b",
    "A",
    "e",
    "ab",
    "\u{301}",
    "\u{323}",
    "é",
    "ﬁ",
    "각",
    "가",
    "ᄀ",
    "ᅡ",
    "ᆨ",
    " ",
    "  ",
    "\n",
    "\r\n",
    "\t",
    "\u{a0}",
    "▁",
    "中",
    "，",
    ".",
    "1",
    "²",
    "½",
    "<s>",
    "<",
    "s>",
    "\0",
    "\u{200d}",
    "İ",
    "\u{212B}",
    "क\u{93c}",
    "[M]",
    "'s",
    "=\u{338}",
    "\u{3000}",
    "-",
];

/// A text of up to `most` fragments.
pub(crate) fn text(random: &mut Random, most: usize) -> String {
    // Some texts are over few fragments, so that runs and repetitions come.
    let few = random.below(FRAGMENTS.len()) + 1;
    let first = random.below(FRAGMENTS.len());
    (0..random.below(most + 1))
        .map(|_| FRAGMENTS[(first + random.below(few)) % FRAGMENTS.len()])
        .collect()
}

const REGEXES: [&str; 8] = [
    r"\s+",
    r"[a-z]+|[0-9]",
    r"\p{L}+|\p{N}+|[^\p{L}\p{N}]",
    r"'s|'t| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    r" ?\p{L}+",
    "a+b",
    r"\s+(?!\S)|\s+",
    r"[^\s]+",
];

fn pattern(random: &mut Random) -> Value {
    let strings = [" ", "a", "ab", ".", "\n", "▁", "aa", "e\u{301}"];
    match random.below(2) {
        0 => json!({ "String": strings[random.below(strings.len())] }),
        _ => json!({ "Regex": REGEXES[random.below(REGEXES.len())] }),
    }
}

fn flag(random: &mut Random) -> bool {
    random.below(2) == 0
}

fn normalizer(random: &mut Random) -> Value {
    match random.below(14) {
        0 => json!({ "type": "NFC" }),
        1 => json!({ "type": "NFD" }),
        2 => json!({ "type": "NFKC" }),
        3 => json!({ "type": "NFKD" }),
        4 => json!({ "type": "Lowercase" }),
        5 => json!({
            "type": "Strip", "strip_left": flag(random), "strip_right": flag(random)
        }),
        6 => json!({ "type": "StripAccents" }),
        7 | 8 => {
            let contents = ["", "▁", " ", "ab", "b", "\u{301}"];
            json!({
                "type": "Replace", "pattern": pattern(random),
                "content": contents[random.below(contents.len())]
            })
        }
        9 => {
            let prefix = ["▁", " ", "a"][random.below(3)];
            json!({ "type": "Prepend", "prepend": prefix })
        }
        10 | 11 => json!({
            "type": "BertNormalizer", "clean_text": flag(random),
            "handle_chinese_chars": flag(random), "strip_accents": flag(random),
            "lowercase": flag(random)
        }),
        12 => json!({ "type": "Nmt" }),
        _ => json!({ "type": "ByteLevel" }),
    }
}

fn pre_tokenizer(random: &mut Random) -> Value {
    let behaviors = [
        "Removed",
        "Isolated",
        "MergedWithPrevious",
        "MergedWithNext",
        "Contiguous",
    ];
    let behavior = behaviors[random.below(behaviors.len())];
    match random.below(13) {
        0 | 1 => json!({ "type": "BertPreTokenizer" }),
        2 => json!({ "type": "Whitespace" }),
        3 => json!({ "type": "WhitespaceSplit" }),
        4 => json!({ "type": "Punctuation", "behavior": behavior }),
        5 => json!({ "type": "Digits", "individual_digits": flag(random) }),
        6 | 7 => {
            let scheme = ["first", "always", "never"][random.below(3)];
            json!({
                "type": "Metaspace", "replacement": "▁", "split": flag(random),
                "prepend_scheme": scheme
            })
        }
        8 => json!({ "type": "CharDelimiterSplit", "delimiter": "a" }),
        9 | 10 => json!({
            "type": "Split", "pattern": pattern(random), "behavior": behavior,
            "invert": flag(random)
        }),
        11 => json!({
            "type": "ByteLevel", "add_prefix_space": flag(random), "trim_offsets": true,
            "use_regex": flag(random)
        }),
        _ => json!({ "type": "FixedLength", "length": 2 }),
    }
}

/// A vocabulary with ids, and merges.
fn model(random: &mut Random, byte_level: bool) -> Value {
    let mut tokens: Vec<String> = Vec::new();
    let mut merges = Vec::new();
    if byte_level {
        tokens.extend((0..=255).map(|byte| bpe_core::byte_level::to_char(byte).to_string()));
    } else {
        tokens.push("[UNK]".to_owned());
        let characters = "abe Aé\u{301}▁中1.ﬁ각가\n\t,-ifk";
        tokens.extend(characters.chars().map(String::from));
        if flag(random) {
            tokens.extend((0..=255).map(|byte| format!("<0x{byte:02X}>")));
        }
    }
    for (left, right) in [
        ("a", "b"),
        ("a", "a"),
        ("e", "\u{301}"),
        ("▁", "a"),
        (" ", "a"),
        ("ab", "ab"),
        ("Ġ", "a"),
        ("Ã", "©"),
        ("▁", "▁"),
    ] {
        let has = |text: &str| tokens.iter().any(|token| token == text);
        let product = format!("{left}{right}");
        if has(left) && has(right) && random.below(3) > 0 && !left.contains(' ') {
            tokens.push(product);
            merges.push(json!([left, right]));
        }
    }
    let kind = random.below(4);
    if kind == 0 && !byte_level {
        let inside: Vec<String> = tokens.iter().map(|token| format!("##{token}")).collect();
        tokens.extend(inside);
        let vocab: serde_json::Map<String, Value> =
            tokens.into_iter().zip((0..).map(Value::from)).collect();
        return json!({
            "type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 5, "vocab": vocab
        });
    }
    let suffix = (kind == 1 && !byte_level).then_some("</w>");
    if let Some(suffix) = suffix {
        let ending: Vec<String> = tokens
            .iter()
            .map(|token| format!("{token}{suffix}"))
            .collect();
        tokens.extend(ending);
    }
    let vocab: serde_json::Map<String, Value> =
        tokens.into_iter().zip((0..).map(Value::from)).collect();
    let unknown = (!byte_level && random.below(4) > 0).then_some("[UNK]");
    json!({
        "type": "BPE", "unk_token": unknown, "fuse_unk": flag(random),
        "byte_fallback": flag(random), "ignore_merges": random.below(4) == 0,
        "end_of_word_suffix": suffix, "vocab": vocab, "merges": merges
    })
}

fn added_tokens(random: &mut Random) -> Value {
    let texts = ["<s>", "s", "[M]", "ab", " a", "e\u{301}", "É", "中."];
    let mut tokens = Vec::new();
    for (index, text) in texts.iter().enumerate() {
        if random.below(6) == 0 {
            let flagged = random.below(4) == 0;
            tokens.push(json!({
                "id": 1000 + index, "content": text, "special": flag(random),
                "normalized": flag(random), "single_word": flagged && flag(random),
                "lstrip": flagged && flag(random), "rstrip": flagged && flag(random)
            }));
        }
    }
    Value::Array(tokens)
}

/// A pipeline, with its file; none where the steps do not go together.
pub(crate) fn pipeline(random: &mut Random) -> Option<(Pipeline, Value)> {
    let normalizers: Vec<Value> = (0..random.below(3)).map(|_| normalizer(random)).collect();
    let steps: Vec<Value> = (0..random.below(3))
        .map(|_| pre_tokenizer(random))
        .collect();
    let is_bytes = |step: &Value| step["type"] == "ByteLevel";
    let byte_level = normalizers.iter().any(is_bytes) || steps.iter().any(is_bytes);
    let file = json!({
        "added_tokens": added_tokens(random),
        "normalizer": { "type": "Sequence", "normalizers": normalizers },
        "pre_tokenizer": { "type": "Sequence", "pretokenizers": steps },
        "model": model(random, byte_level)
    });
    let specials = match random.below(6) {
        0 => Specials::AsText,
        1 => Specials::Forbid,
        _ => Specials::AllowAll,
    };
    Some((of(&file)?.with_specials(specials).ok()?, file))
}

pub(crate) fn of(file: &Value) -> Option<Pipeline> {
    Pipeline::from_tokenizer_json(file.to_string().as_bytes(), &ReadLimits::default()).ok()
}

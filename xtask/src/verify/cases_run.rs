//! One shared case: its text, what is done with it, what must come out.

use std::ops::ControlFlow;

use bpe_lexers::SpecialMatcher;
use bytepair::{Pipeline, ReadLimits, Specials, TokenId, Tokenizer};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::cases::Done;
use super::cases_files::{Missing, Tokenizers, load};
use super::support::{case_file, ensure, equal_ids, lcg, pattern_of, text_of};

/// Runs a case.
pub(super) fn run(case: &Value, tokenizers: &mut Tokenizers) -> Result<Done, String> {
    let op = text(case, "op")?;
    match op {
        "train" | "train_property" => return super::training::run_case(case),
        "load" => return run_load(case),
        _ => {}
    }
    let pattern = case["pattern"].as_str();
    let encoding = text(case, "encoding")?;
    let tokenizer = match tokenizers.get(encoding, pattern) {
        // A tokenizer adds nothing to a text.
        Ok(_) if case["add_special_tokens"] == true => Err("tokens added around a text".to_owned()),
        Ok(tokenizer) => Ok(tokenizer),
        Err(Missing::Skip(reason)) => Err(reason),
        Err(Missing::Fail(error)) => return Err(error),
    };
    let tokenizer = match tokenizer {
        Ok(tokenizer) => tokenizer,
        Err(reason) => match tokenizers.pipeline(encoding)? {
            Some(pipeline) => return super::cases_pipeline::run(case, &pipeline),
            None => return Ok(Done::Skipped(reason)),
        },
    };
    match op {
        "encode" => encode(case, &tokenizer, tokenizers),
        "encode_checked" => encode_checked(case, &tokenizer),
        "decode" => decode(case, &tokenizer),
        "stream_decode" => stream_decode(case, &tokenizer),
        "offsets" => offsets(case, &tokenizer),
        "truncate" => truncate(case, &tokenizer),
        "vocab" => vocab(case, &tokenizer),
        "roundtrip_bytes" => roundtrip_bytes(case, &tokenizer),
        other => Ok(Done::Skipped(format!("operation {other}"))),
    }
}

fn text<'c>(case: &'c Value, field: &str) -> Result<&'c str, String> {
    case[field].as_str().ok_or_else(|| format!("no {field}"))
}

pub(super) fn numbers<T: TryFrom<u64>>(value: &Value) -> Result<Vec<T>, String> {
    let list = value.as_array().ok_or("no list of numbers")?;
    let number = |value: &Value| value.as_u64().and_then(|number| T::try_from(number).ok());
    list.iter()
        .map(|value| number(value).ok_or_else(|| format!("{value} is no number")))
        .collect()
}

/// The text of a case, made by its rule if it has one, after a check of its sum.
pub(super) fn text_of_case(case: &Value) -> Result<String, String> {
    let made = match case["text"].as_str() {
        Some(text) => text.to_owned(),
        None => generated(&case["gen"])?,
    };
    if let Some(bytes) = case["text_bytes"].as_u64() {
        ensure(made.len() as u64 == bytes, || {
            format!("the text has {} bytes, not {bytes}", made.len())
        })?;
    }
    if let Some(sum) = case["text_sha256"].as_str() {
        ensure(sha256(made.as_bytes()) == sum, || {
            "the text has another sum".to_owned()
        })?;
    }
    Ok(made)
}

/// The text that a rule makes.
pub(super) fn generated(rule: &Value) -> Result<String, String> {
    let part = |name: &str| rule[name].as_str().unwrap_or_default();
    let number = |name: &str| rule[name].as_u64().ok_or_else(|| format!("gen: no {name}"));
    Ok(match text(rule, "rule")? {
        "repeat" => [
            part("prefix"),
            &part("unit").repeat(number("n")? as usize),
            part("suffix"),
        ]
        .concat(),
        "lcg" => {
            let items = rule["items"].as_array().ok_or("gen: no items")?;
            let mut state = number("seed")?;
            let mut made = String::new();
            for _ in 0..number("n")? {
                state = lcg(state);
                let item = &items[(state >> 33) as usize % items.len()];
                made.push_str(item.as_str().ok_or("gen: an item that is no text")?);
            }
            made
        }
        "codepoints" => {
            let points = number("from")? as u32..=number("to")? as u32;
            points
                .filter_map(char::from_u32)
                .map(|point| format!("{point}{}", part("sep")))
                .collect()
        }
        "ramp" => (1..=number("n")?)
            .map(|count| part("unit").repeat(count as usize) + part("sep"))
            .collect(),
        other => return Err(format!("gen: rule {other}")),
    })
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

fn sha256_of_ids(ids: &[TokenId]) -> String {
    let bytes: Vec<u8> = ids.iter().flat_map(|id| id.to_le_bytes()).collect();
    sha256(&bytes)
}

/// The tokenizer with the special tokens that the case allows.
fn with_allowed(case: &Value, tokenizer: &Tokenizer) -> Result<Tokenizer, String> {
    let specials = match &case["allowed_special"] {
        _ if case["parse_specials"] == true => Specials::AllowAll,
        Value::String(all) if all == "all" => Specials::AllowAll,
        Value::Array(texts) if !texts.is_empty() => {
            Specials::allow(texts.iter().filter_map(Value::as_str))
        }
        _ => Specials::AsText,
    };
    tokenizer.with_specials(specials).map_err(text_of)
}

fn encode(
    case: &Value,
    tokenizer: &Tokenizer,
    tokenizers: &mut Tokenizers,
) -> Result<Done, String> {
    let text = text_of_case(case)?;
    let tokenizer = with_allowed(case, tokenizer)?;
    let ids = tokenizer.encode(&text).map_err(text_of)?;
    let count = tokenizer.count(&text).map_err(text_of)?;
    ensure(count == ids.len(), || {
        format!("count {count} of {}", ids.len())
    })?;
    let mut compared = false;
    if !case["expected_ids"].is_null() {
        equal_ids(&ids, &numbers::<TokenId>(&case["expected_ids"])?, || {
            "ids".to_owned()
        })?;
        compared = true;
    }
    if let Some(count) = case["expected_count"].as_u64() {
        ensure(ids.len() as u64 == count, || {
            format!("{} tokens, expected {count}", ids.len())
        })?;
    }
    if let Some(sum) = case["expected_sha256"].as_str() {
        ensure(sha256_of_ids(&ids) == sum, || {
            "the ids have another sum".to_owned()
        })?;
        compared = true;
    }
    ensure(compared, || "nothing to compare with".to_owned())?;
    let decoded = tokenizer.decode_lossy(&ids).map_err(text_of)?;
    let unknown = tokenizer.decode_bytes(&ids).map_err(text_of)? != text.as_bytes();
    if let Some(expected) = case["expected_decode"].as_str() {
        ensure(decoded == expected, || {
            format!("decoded {decoded:?}, expected {expected:?}")
        })?;
    }
    if !case["expected_pieces"].is_null() {
        pieces(case, &tokenizer, &text, tokenizers)?;
    }
    // Round trip, but for unknown characters.
    let has_unknown_token = case["encoding"]
        .as_str()
        .is_some_and(|name| name.contains("unk-"));
    ensure(!unknown || has_unknown_token, || {
        format!("{text:?} comes back as {decoded:?}")
    })?;
    match case["expected_char_offsets"].is_null() {
        true => Ok(Done::Passed),
        false => char_offsets(case, &tokenizer, &text),
    }
}

/// The pieces of the published pattern (P41).
fn pieces(
    case: &Value,
    tokenizer: &Tokenizer,
    text: &str,
    tokenizers: &mut Tokenizers,
) -> Result<(), String> {
    let expected = case["expected_pieces"]
        .as_array()
        .ok_or("no list of pieces")?;
    let expected: Vec<&str> = expected.iter().filter_map(Value::as_str).collect();
    for (engine, spanner) in tokenizers.spanners(pattern_of(tokenizer)?)? {
        let mut found = Vec::new();
        let flow: ControlFlow<()> = spanner
            .for_each_span(text.as_bytes(), &SpecialMatcher::none(), |span| {
                found.push(&text[span.range()]);
                ControlFlow::Continue(())
            })
            .map_err(text_of)?;
        ensure(flow.is_continue() && found == expected, || {
            format!("{engine:?}: pieces {found:?}, expected {expected:?}")
        })?;
    }
    Ok(())
}

/// The character offsets of Hugging Face's `tokenizers`.
fn char_offsets(case: &Value, tokenizer: &Tokenizer, text: &str) -> Result<Done, String> {
    let expected = case["expected_char_offsets"]
        .as_array()
        .ok_or("no list of offsets")?;
    let expected: Vec<Vec<usize>> = expected.iter().map(numbers).collect::<Result<_, _>>()?;
    let encoding = tokenizer.encode_with_offsets(text).map_err(text_of)?;
    let found: Vec<Vec<usize>> = encoding
        .char_ranges(text)
        .iter()
        .map(|range| vec![range.start, range.end])
        .collect();
    ensure(found == expected, || {
        format!("character offsets {found:?}, expected {expected:?}")
    })?;
    Ok(Done::Passed)
}

fn encode_checked(case: &Value, tokenizer: &Tokenizer) -> Result<Done, String> {
    let text = text_of_case(case)?;
    ensure(case["disallowed_special"] == "all", || {
        "not all are disallowed".to_owned()
    })?;
    let strict = tokenizer.with_specials(Specials::Forbid).map_err(text_of)?;
    match (strict.encode(&text), case["expected_error"].as_str()) {
        (Ok(ids), None) => equal_ids(&ids, &numbers::<TokenId>(&case["expected_ids"])?, || {
            "ids".to_owned()
        })?,
        (Err(error), Some("disallowed_special")) => {
            let specials = tokenizer
                .special_tokens()
                .filter_map(|(special, _)| text.find(special));
            let first = specials.min();
            ensure(
                first == Some(error.byte_offset()) && error.forbidden_special().is_some(),
                || error.to_string(),
            )?;
        }
        (result, expected) => return Err(format!("{result:?}, expected error {expected:?}")),
    }
    Ok(Done::Passed)
}

fn decode(case: &Value, tokenizer: &Tokenizer) -> Result<Done, String> {
    let ids: Vec<TokenId> = match case["ids_gen"].as_str() {
        Some("every ordinary token id, ascending") => {
            tokenizer.vocabulary().iter().map(|(id, _)| id).collect()
        }
        Some(other) => return Err(format!("ids_gen {other}")),
        None => numbers(&case["ids"])?,
    };
    if let Some(expected) = case["expected_error"].as_str() {
        ensure(expected == "invalid_token_id", || {
            format!("expected_error {expected}")
        })?;
        let error = tokenizer.decode_bytes(&ids).err().ok_or("no error")?;
        let unknown = ids
            .iter()
            .position(|id| tokenizer.token_bytes(*id).is_none());
        ensure(
            error.index() == unknown && error.id() == unknown.map(|at| ids[at]),
            || error.to_string(),
        )?;
        ensure(tokenizer.decode_lossy(&ids).is_err(), || {
            "lossy about ids".to_owned()
        })?;
        return Ok(Done::Passed);
    }
    let bytes = tokenizer.decode_bytes(&ids).map_err(text_of)?;
    let mut compared = false;
    if let Some(expected) = case["expected_bytes_hex"].as_str() {
        ensure(bytes == from_hex(expected)?, || {
            format!("bytes {bytes:?}, expected {expected}")
        })?;
        compared = true;
    }
    if let Some(expected) = case["expected_bytes_sha256"].as_str() {
        ensure(sha256(&bytes) == expected, || {
            "the bytes have another sum".to_owned()
        })?;
        ensure(case["expected_bytes_len"] == bytes.len(), || {
            format!("{} bytes", bytes.len())
        })?;
        compared = true;
    }
    if let Some(expected) = case["expected_text_lossy"].as_str() {
        let lossy = tokenizer.decode_lossy(&ids).map_err(text_of)?;
        ensure(lossy == expected, || {
            format!("{lossy:?}, expected {expected:?}")
        })?;
        compared = true;
    }
    if case["strict_utf8"] == "error" {
        let error = tokenizer
            .decode(&ids)
            .err()
            .ok_or("decode gives no error")?;
        ensure(error.byte_offset().is_some(), || error.to_string())?;
    }
    ensure(compared, || "nothing to compare with".to_owned())?;
    Ok(Done::Passed)
}

fn from_hex(hex: &str) -> Result<Vec<u8>, String> {
    let digits = hex.as_bytes().chunks(2);
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    digits
        .map(|pair| byte(pair).ok_or_else(|| format!("{hex} is not hexadecimal")))
        .collect()
}

fn stream_decode(case: &Value, tokenizer: &Tokenizer) -> Result<Done, String> {
    let expected = case["expected_chunks"].as_array().ok_or("no chunks")?;
    let expected: Vec<&str> = expected.iter().filter_map(Value::as_str).collect();
    let mut stream = tokenizer.decode_stream();
    let mut chunks = Vec::new();
    for id in numbers::<TokenId>(&case["ids"])? {
        chunks.push(stream.push(id).map_err(text_of)?.to_owned());
    }
    chunks.push(stream.finish());
    ensure(chunks == expected, || {
        format!("{chunks:?}, expected {expected:?}")
    })?;
    ensure(case["expected_text"] == chunks.concat(), || {
        "the text".to_owned()
    })?;
    Ok(Done::Passed)
}

fn offsets(case: &Value, tokenizer: &Tokenizer) -> Result<Done, String> {
    let text = text_of_case(case)?;
    let encoding = tokenizer.encode_with_offsets(&text).map_err(text_of)?;
    equal_ids(
        &encoding.ids,
        &numbers::<TokenId>(&case["expected_ids"])?,
        || "ids".to_owned(),
    )?;
    let starts: Vec<usize> = encoding
        .byte_ranges
        .iter()
        .map(|range| range.start)
        .collect();
    let expected: Vec<usize> = numbers(&case["expected_byte_starts"])?;
    ensure(starts == expected, || {
        format!("bytes {starts:?}, expected {expected:?}")
    })?;
    let starts: Vec<usize> = encoding
        .char_ranges(&text)
        .iter()
        .map(|range| range.start)
        .collect();
    let expected: Vec<usize> = numbers(&case["expected_char_starts"])?;
    ensure(starts == expected, || {
        format!("characters {starts:?}, expected {expected:?}")
    })?;
    Ok(Done::Passed)
}

fn truncate(case: &Value, tokenizer: &Tokenizer) -> Result<Done, String> {
    let text = text_of_case(case)?;
    let prefixes = case["expected_prefix_by_budget"]
        .as_array()
        .ok_or("no prefixes")?;
    for (limit, expected) in prefixes.iter().enumerate() {
        let found = tokenizer.truncate(&text, limit).map_err(text_of)?;
        ensure(expected == found, || {
            format!("{limit} tokens: {found:?}, expected {expected}")
        })?;
    }
    Ok(Done::Passed)
}

fn vocab(case: &Value, tokenizer: &Tokenizer) -> Result<Done, String> {
    let most = tokenizer.max_id().ok_or("no token")?;
    ensure(case["expected_max_id"] == most, || {
        format!("largest id {most}")
    })?;
    if let Some(count) = case["expected_ordinary_tokens"].as_u64() {
        let found = tokenizer.vocabulary().len();
        ensure(found as u64 == count, || {
            format!("{found} ordinary tokens, expected {count}")
        })?;
    }
    if let Some(count) = case["expected_distinct_tokens"].as_u64() {
        let found = tokenizer.token_count();
        ensure(found as u64 == count, || {
            format!("{found} tokens, expected {count}")
        })?;
    }
    let unused: Vec<TokenId> = (0..=most)
        .filter(|id| tokenizer.token_bytes(*id).is_none())
        .collect();
    if !case["expected_unused_ids"].is_null() {
        equal_ids(
            &unused,
            &numbers::<TokenId>(&case["expected_unused_ids"])?,
            || "unused ids".to_owned(),
        )?;
    }
    if let Some(count) = case["expected_unused_id_count"].as_u64() {
        ensure(unused.len() as u64 == count, || {
            format!("{} unused ids, expected {count}", unused.len())
        })?;
    }
    if let Some(specials) = case["expected_special_ids"].as_object() {
        ensure(tokenizer.special_tokens().count() == specials.len(), || {
            "the number of special tokens".to_owned()
        })?;
        for (special, id) in specials {
            let found = tokenizer.token_id(special.as_bytes());
            let is_special = found.is_some_and(|id| tokenizer.is_special(id));
            ensure(
                found.is_some_and(|found| *id == found) && is_special,
                || format!("{special}: {found:?}, expected {id}"),
            )?;
        }
    }
    Ok(Done::Passed)
}

fn roundtrip_bytes(case: &Value, tokenizer: &Tokenizer) -> Result<Done, String> {
    let bytes = from_hex(text(case, "bytes_hex")?)?;
    let ids = tokenizer.encode_bytes(&bytes).map_err(text_of)?;
    let back = tokenizer.decode_bytes(&ids).map_err(text_of)?;
    ensure(back == bytes, || {
        format!("{bytes:?} comes back as {back:?}")
    })?;
    Ok(Done::Passed)
}

fn run_load(case: &Value) -> Result<Done, String> {
    let expected = text(case, "expected")?;
    let result = load(text(case, "file")?, "gpt2");
    match (expected, result) {
        ("error_or_ok" | "ok", Ok(tokenizer)) => {
            if let Some(count) = case["expected_tokens"].as_u64() {
                let found = tokenizer.token_count();
                ensure(found as u64 == count, || {
                    format!("{found} tokens, expected {count}")
                })?;
            }
            Ok(Done::Passed)
        }
        ("error", Ok(_)) => Err(format!("accepted; {}", case["why"])),
        (expected, Ok(_)) if expected.starts_with("reject") => Err("accepted".to_owned()),
        ("ok", Err(Missing::Skip(_))) => {
            let file = case_file(text(case, "file")?)?;
            let loaded = Pipeline::from_tokenizer_json(&file, &ReadLimits::default());
            loaded.map(|_| Done::Passed).map_err(text_of)
        }
        ("ok", Err(Missing::Fail(error))) => Err(error),
        (_, Err(Missing::Skip(message) | Missing::Fail(message))) => {
            ensure(!message.trim().is_empty(), || "an empty message".to_owned())?;
            Ok(Done::Passed)
        }
        (other, Ok(_)) => Err(format!("expected {other}")),
    }
}

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Decoder, TokenText};
use crate::pipeline::node::Node;

fn decoder(value: &Value) -> Decoder {
    Decoder::read(&Node::new("decoder", value)).expect("a decoder")
}

fn decode(value: &Value, tokens: &[&str]) -> String {
    let tokens = tokens.iter().map(|&token| TokenText::Text(token.into()));
    decode_all(&decoder(value), tokens)
}

fn decode_all<'t>(decoder: &Decoder, tokens: impl IntoIterator<Item = TokenText<'t>>) -> String {
    let mut text = String::new();
    let mut decoding = decoder.start();
    for token in tokens {
        decoding.push(decoder, token, &mut text);
    }
    decoding.finish(decoder, &mut text);
    text
}

/// What the steps do to a list of strings, one step after the other, as `tokenizers` words it.
fn literal(value: &Value, tokens: Vec<String>) -> Vec<String> {
    let replace = |from: &str, to: &str| -> Vec<String> {
        tokens.iter().map(|token| token.replace(from, to)).collect()
    };
    match value["type"].as_str().expect("a type") {
        "Sequence" => {
            let steps = value["decoders"].as_array().expect("steps");
            steps
                .iter()
                .fold(tokens, |tokens, step| literal(step, tokens))
        }
        "Fuse" => vec![tokens.concat()],
        "Replace" => replace(
            value["pattern"]["String"].as_str().expect("a string"),
            value["content"].as_str().expect("a string"),
        ),
        "Strip" => {
            let content = value["content"].as_str().expect("a string");
            let content = content.chars().next().expect("a character");
            let number = |name: &str| value[name].as_u64().expect("a number") as usize;
            let strip = |token: &String| {
                let mut characters: Vec<char> = token.chars().collect();
                for _ in 0..number("start") {
                    if characters.first() == Some(&content) {
                        characters.remove(0);
                    }
                }
                for _ in 0..number("stop") {
                    if characters.last() == Some(&content) {
                        characters.pop();
                    }
                }
                characters.into_iter().collect()
            };
            tokens.iter().map(strip).collect()
        }
        "ByteFallback" => {
            let mut out = Vec::new();
            let mut run: Vec<u8> = Vec::new();
            for token in tokens.into_iter().map(Some).chain([None]) {
                let digits = token
                    .as_deref()
                    .and_then(|token| token.strip_prefix("<0x")?.strip_suffix('>'));
                let byte = digits
                    .filter(|digits| digits.len() == 2)
                    .and_then(|digits| u8::from_str_radix(digits, 16).ok());
                if let Some(byte) = byte {
                    run.push(byte);
                    continue;
                }
                match String::from_utf8(std::mem::take(&mut run)) {
                    Ok(text) if text.is_empty() => {}
                    Ok(text) => out.push(text),
                    Err(error) => out.extend(error.as_bytes().iter().map(|_| "\u{FFFD}".into())),
                }
                out.extend(token);
            }
            out
        }
        other => panic!("{other} has no literal form"),
    }
}

fn llama() -> Value {
    json!({"type": "Sequence", "decoders": [
        {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
        {"type": "ByteFallback"},
        {"type": "Fuse"},
        {"type": "Strip", "content": " ", "start": 1, "stop": 0},
    ]})
}

#[test]
fn strings_and_bytes_of_the_llama_decoder_come_back() {
    let tokens = [
        "▁", "▁Hello", "▁▁", "<0xE4>", "<0xBD>", "<0xA0>", "!", "<0xFF>", "<0x41>",
    ];
    assert_eq!(
        decode(&llama(), &tokens),
        "  Hello  你!\u{FFFD}\u{FFFD}".replacen(' ', "", 1)
    );
    assert_eq!(decode(&llama(), &[]), "");
    assert_eq!(decode(&llama(), &["▁"]), "");
}

#[test]
fn byte_level_joins_bytes_and_keeps_what_is_not_in_its_alphabet() {
    let value = json!({"type": "ByteLevel"});
    assert_eq!(decode(&value, &["ä½", "ł", "Ġa", "<|漢|>"]), "你 a<|漢|>");
    let decoder = decoder(&value);
    let tokens = [TokenText::Bytes(b"\xE4\xBD"), TokenText::Bytes(b"\xA0")];
    assert_eq!(decode_all(&decoder, tokens.clone()), "你");
    assert_eq!(decode_all(&decoder, tokens.into_iter().take(1)), "\u{FFFD}");
}

#[test]
fn word_piece_sets_blanks_and_cleans_up() {
    let tokens = ["it", "'", "s", "token", "##ize", "##r", "##s", ".", "##x"];
    let value = |cleanup: bool| json!({"type": "WordPiece", "prefix": "##", "cleanup": cleanup});
    assert_eq!(decode(&value(false), &tokens), "it ' s tokenizers .x");
    // Each string alone is cleaned up, so that ` ' ` between two strings stays.
    assert_eq!(decode(&value(true), &tokens), "it ' s tokenizers.x");
    let tokens = ["##a", "do n't", "we do not"];
    assert_eq!(decode(&value(true), &tokens), "##a don't we don't");
}

#[test]
fn the_other_decoders_do_what_their_names_say() {
    let value = json!({"type": "BPEDecoder", "suffix": "</w>"});
    assert_eq!(decode(&value, &["a", "b</w>", "c</w>"]), "ab c");
    assert_eq!(decode(&value, &[]), "");
    let value = json!({"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always"});
    assert_eq!(decode(&value, &["▁a▁b", "▁c"]), "ab c");
    let value = json!({"type": "Metaspace", "replacement": "▁", "prepend_scheme": "never"});
    assert_eq!(decode(&value, &["▁a▁b", "▁c"]), " a b c");
    let value = json!({
        "type": "CTC", "pad_token": "<pad>", "word_delimiter_token": "|", "cleanup": true
    });
    let tokens = ["h", "h", "<pad>", "i", "i", "|", "|", "<pad>", "|", "h"];
    assert_eq!(decode(&value, &tokens), "hi  h");
    assert_eq!(decode(&Value::Null, &["a", "b"]), "a b");
}

#[test]
fn what_is_wrong_with_a_step_is_said_with_its_path() {
    let error = |value: Value| {
        let read = Decoder::read(&Node::new("decoder", &value));
        read.expect_err("malformed").to_string()
    };
    let inside = |step: Value| json!({"type": "Sequence", "decoders": [{"type": "Fuse"}, step]});
    assert_eq!(
        error(inside(json!({"type": "Unheard"}))),
        "decoder.decoders[1].type: Unheard is not supported"
    );
    let regex = json!({"type": "Replace", "pattern": {"Regex": "a+"}, "content": ""});
    assert_eq!(
        error(inside(regex)),
        "decoder.decoders[1].pattern: a regular expression in a decoder is not supported"
    );
    let strip = json!({"type": "Strip", "content": "ab", "start": 1, "stop": 0});
    assert!(error(strip).starts_with("decoder.content: "));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    /// At once, as the literal steps do it; and token by token, whatever comes out when.
    #[test]
    fn pushing_token_by_token_gives_the_literal_text(
        tokens in proptest::collection::vec("[ab▁ é]{0,4}|<0x(E4|BD|A0|41|\\+5|g0)>", 0..12),
        steps in proptest::collection::vec(0_usize..7, 1..6),
        (start, stop) in (0_usize..4, 0_usize..4),
    ) {
        let all = [
            json!({"type": "Fuse"}),
            json!({"type": "ByteFallback"}),
            json!({"type": "Replace", "pattern": {"String": "▁"}, "content": " "}),
            json!({"type": "Replace", "pattern": {"String": "ab"}, "content": "é"}),
            json!({"type": "Replace", "pattern": {"String": "aab▁"}, "content": ""}),
            json!({"type": "Strip", "content": " ", "start": start, "stop": stop}),
            json!({"type": "Strip", "content": "a", "start": stop, "stop": start}),
        ];
        let steps: Vec<Value> = steps.into_iter().map(|step| all[step].clone()).collect();
        let value = json!({"type": "Sequence", "decoders": steps});
        let decoder = decoder(&value);
        let expected = literal(&value, tokens.clone()).concat();
        let mut decoding = decoder.start();
        let mut text = String::new();
        for token in &tokens {
            decoding.push(&decoder, TokenText::Text(token.into()), &mut text);
            prop_assert!(expected.starts_with(&text), "{expected:?} {text:?}");
        }
        decoding.finish(&decoder, &mut text);
        prop_assert_eq!(text, expected);
    }
}

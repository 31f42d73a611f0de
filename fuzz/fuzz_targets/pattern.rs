//! Arbitrary text as a pattern of a `tokenizer.json`, and a text to cut: an error that says something, or a
//! pipeline that loses no byte.

#![no_main]

use bytepair::{Pipeline, ReadLimits};
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};

fuzz_target!(|input: (&str, &str)| {
    let (pattern, text) = input;
    let alphabet = bpe_core::byte_level::encode(&Vec::from_iter(0..=u8::MAX));
    let vocab: serde_json::Map<String, Value> = (0..)
        .zip(alphabet.chars())
        .map(|(id, byte)| (byte.to_string(), Value::from(id)))
        .collect();
    let file = json!({
        "model": { "type": "BPE", "vocab": vocab, "merges": [] },
        "pre_tokenizer": { "type": "Sequence", "pretokenizers": [
            { "type": "Split", "pattern": { "Regex": pattern }, "behavior": "Isolated", "invert": false },
            { "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false },
        ]},
        "decoder": { "type": "ByteLevel" },
    });
    match Pipeline::from_tokenizer_json(file.to_string().as_bytes(), &ReadLimits::default()) {
        Err(error) => {
            let message = error.to_string();
            assert!(message.starts_with("pre_tokenizer"), "{message}");
        }
        Ok(pipeline) => {
            // A search may take too many steps.
            if let Ok(ids) = pipeline.encode(text) {
                assert_eq!(pipeline.decode(&ids).expect("its own ids"), text);
            }
        }
    }
});

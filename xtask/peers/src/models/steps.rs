//! Each decoder and post-processor, and some in sequence, behind each of three small models.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::compare;
use super::sides::{Ours, Theirs};
use super::{Claim, Texts};
use crate::Error;

/// Random texts for each.
const RANDOM: usize = 200;

/// Claims about all of them, each named by model and step.
pub(super) fn compare(texts: &Texts) -> Result<Vec<Claim>, Error> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench-data/cases/tok");
    let few = texts.random.iter().take(RANDOM).cloned();
    let texts = &Texts {
        corpora: Vec::new(),
        random: few.collect(),
        cases: Vec::new(),
        tokens: 0,
    };
    let mut claims = Vec::new();
    for model in ["merges-strings", "byte-fallback", "wordpiece-model"] {
        let file: Value = serde_json::from_slice(&fs::read(folder.join(format!("{model}.json")))?)?;
        let decoders = decoders().into_iter().map(|step| ("decoder", step));
        let post_processors = post_processors().into_iter();
        let steps = decoders.chain(post_processors.map(|step| ("post_processor", step)));
        for (field, step) in steps {
            let mut file = file.clone();
            file[field] = step.clone();
            let json = file.to_string();
            let name = format!("{model} with {step}");
            claims.extend(
                match (Ours::read(json.as_bytes()), Theirs::read(json.as_bytes())) {
                    (Ok(ours), Ok(theirs)) => compare::behind(&name, &ours, &theirs, texts),
                    (Err(error), _) => vec![Claim::failed(format!("{name} is read"), error)],
                    (_, Err(error)) => {
                        println!("skipped: {name}: refused by the oracle ({error})");
                        Vec::new()
                    }
                },
            );
        }
    }
    Ok(claims)
}

fn sequence(name: &str, steps: &[Value]) -> Value {
    json!({ "type": "Sequence", name: steps })
}

fn decoders() -> Vec<Value> {
    let replace = json!({ "type": "Replace", "pattern": { "String": "▁" }, "content": " " });
    let byte_level = json!({ "type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true });
    let strip = |content: &str, start: usize, stop: usize| json!({ "type": "Strip", "content": content, "start": start, "stop": stop });
    let metaspace = |scheme: &str| json!({ "type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme, "split": true });
    let word_piece =
        |cleanup: bool| json!({ "type": "WordPiece", "prefix": "##", "cleanup": cleanup });
    let (fallback, fuse) = (json!({ "type": "ByteFallback" }), json!({ "type": "Fuse" }));
    let suffix = json!({ "type": "BPEDecoder", "suffix": "b" });
    let ctc =
        json!({ "type": "CTC", "pad_token": "a", "word_delimiter_token": "b", "cleanup": true });
    let llama = [
        replace.clone(),
        fallback.clone(),
        fuse.clone(),
        strip(" ", 1, 0),
    ];
    let mut decoders = vec![
        sequence("decoders", &llama),
        sequence("decoders", &[byte_level.clone(), strip(" ", 1, 1)]),
        sequence(
            "decoders",
            &[word_piece(true), fuse.clone(), strip("a", 2, 2)],
        ),
        sequence("decoders", &[fuse.clone(), byte_level.clone()]),
        sequence(
            "decoders",
            &[metaspace("always"), replace.clone(), fallback.clone()],
        ),
        replace,
        byte_level,
        fallback,
        fuse,
        suffix,
        ctc,
        strip("a", 1, 1),
        word_piece(true),
        word_piece(false),
    ];
    decoders.extend(["always", "first", "never"].map(metaspace));
    decoders
}

/// Their tokens have ids that all three models have.
fn post_processors() -> Vec<Value> {
    let token =
        |id: &str, type_id: u32| json!({ "SpecialToken": { "id": id, "type_id": type_id } });
    let text = |id: &str, type_id: u32| json!({ "Sequence": { "id": id, "type_id": type_id } });
    let template = json!({
        "type": "TemplateProcessing",
        "single": [token("<s>", 0), text("A", 0), token("</s>", 0)],
        // Fewer tokens than any truncation leaves: the oracle subtracts without looking.
        "pair": [text("B", 1), token("<s>", 2), text("A", 0), token("</s>", 1)],
        "special_tokens": {
            "<s>": { "id": "<s>", "ids": [1, 2], "tokens": ["a", "b"] },
            "</s>": { "id": "</s>", "ids": [2], "tokens": ["b"] },
        },
    });
    let byte_level = |trim: bool, prefix: bool| json!({ "type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": trim, "use_regex": true });
    let roberta = |trim: bool, prefix: bool| {
        json!({ "type": "RobertaProcessing", "sep": ["b", 2], "cls": ["a", 1], "trim_offsets": trim,
            "add_prefix_space": prefix })
    };
    let mut steps = vec![
        sequence("processors", &[byte_level(true, false), template.clone()]),
        template,
        json!({ "type": "BertProcessing", "sep": ["b", 2], "cls": ["a", 1] }),
    ];
    for trim in [false, true] {
        for prefix in [false, true] {
            steps.extend([byte_level(trim, prefix), roberta(trim, prefix)]);
        }
    }
    steps
}

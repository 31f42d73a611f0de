//! Models of other people: each dictionary is read, and what is known of it holds.

use std::path::Path;
use std::time::Instant;

use bpe_core::{CanonicalForm, ReadLimits};
use bytepair::tokenizer_json::read_dictionary;
use bytepair::{Pattern, Tokenizer};
use serde_json::Value;

use super::support::{Corpus, ensure, equal_ids, text_of};
use super::{Checked, Claims, Outcome, peers};
use crate::data;

const MODELS: [&str; 8] = [
    "cl100k_base",
    "deepseek_v3",
    "gemma3",
    "gptoss",
    "llama2",
    "llama3_1",
    "o200k_base",
    "qwen3",
];

/// Tokens that merging does not give (docs/architecture.md, "Terms").
const UNREACHABLE: [(&str, usize); 3] = [("cl100k_base", 0), ("o200k_base", 0), ("llama3_1", 588)];

pub(super) fn check(claims: &mut Claims) {
    for model in MODELS {
        claims.check_data(
            &format!("the BPE model of {model} is read (P39, P40)"),
            |_, _, data| read(model, data),
        );
    }
    claims.check_data(
        "tokenizer.json and .tiktoken files of one encoding give the same ids",
        |_, corpora, data| same(corpora, data),
    );
    let claim =
        "pipelines of tokenizer.json files give the ids, offsets, masks and texts of tokenizers";
    claims.check(claim, |settings, _| peers::oracle("models", settings));
}

/// The content of a model's `tokenizer.json`.
pub(super) fn file(model: &str, data: &Path) -> Result<Vec<u8>, String> {
    data::read_or_packed(&data.join("tokenizers").join(model).join("tokenizer.json"))
}

fn read(model: &str, data: &Path) -> Outcome {
    let file = file(model, data)?;
    let start = Instant::now();
    let dictionary = read_dictionary(&file, &ReadLimits::default()).map_err(text_of)?;
    let read = start.elapsed().as_secs_f64();
    let canonical = CanonicalForm::new(&dictionary);
    let seconds = start.elapsed().as_secs_f64();
    let unreachable = canonical.unreachable_tokens().count();

    // What the file says, read in another way.
    let json: Value = serde_json::from_slice(&file).map_err(text_of)?;
    let vocab = json["model"]["vocab"].as_object().ok_or("no vocabulary")?;
    let merges = json["model"]["merges"].as_array().map_or(0, Vec::len);
    let ignore_merges = json["model"]["ignore_merges"] == true;
    ensure(dictionary.rules().len() == merges, || {
        format!("{} rules of {merges}", dictionary.rules().len())
    })?;
    ensure(dictionary.whole_piece_lookup() == ignore_merges, || {
        format!(
            "whole-piece look-up is {}, ignore_merges is {ignore_merges}",
            dictionary.whole_piece_lookup()
        )
    })?;
    // Ids are those of the file; special tokens that no merge needs are left out.
    let added: Vec<u64> = json["added_tokens"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|token| token["id"].as_u64())
        .collect();
    let mut cases = 0;
    for (text, id) in vocab {
        let id = id.as_u64().ok_or("an id that is no number")?;
        let known = u32::try_from(id)
            .ok()
            .and_then(|id| dictionary.vocabulary().token_bytes(id));
        ensure(known.is_some() || added.contains(&id), || {
            format!("{text:?} with id {id} is lost")
        })?;
        cases += 1;
    }
    ensure(dictionary.vocabulary().len() <= vocab.len(), || {
        "more tokens than the file".to_owned()
    })?;
    for (name, expected) in UNREACHABLE {
        ensure(name != model || unreachable == expected, || {
            format!("{unreachable} unreachable tokens, expected {expected}")
        })?;
    }
    let note = format!(
        "{} tokens, {} rules, {} canonical, {}, {unreachable} unreachable, read in {read:.2} s, canonical after {seconds:.2} s",
        dictionary.vocabulary().len(),
        dictionary.rules().len(),
        canonical.rule_count(),
        if canonical.is_proper() {
            "proper"
        } else {
            "not proper"
        },
    );
    Ok(Checked::with_note(cases, note))
}

/// The `tokenizer.json` of cl100k_base and o200k_base was made by others from the same encodings.
fn same(corpora: &[Corpus], data: &Path) -> Outcome {
    let mut cases = 0;
    let mut refused = Vec::new();
    for name in ["cl100k_base", "o200k_base"] {
        let embedded = Tokenizer::from_name(name).map_err(text_of)?;
        let loaded =
            match Tokenizer::from_tokenizer_json(&file(name, data)?, &ReadLimits::default()) {
                Ok(loaded) => loaded,
                Err(error) if error.is_unsupported() => {
                    // The model alone, with the pattern of the encoding.
                    refused.push(format!("{name} whole: {error}"));
                    let dictionary = read_dictionary(&file(name, data)?, &ReadLimits::default())
                        .map_err(text_of)?;
                    let pattern = embedded
                        .patterns()
                        .first()
                        .cloned()
                        .unwrap_or_else(Pattern::cl100k);
                    let builder = bytepair::TokenizerBuilder::new(&dictionary).pattern(pattern);
                    builder.build().map_err(text_of)?
                }
                Err(error) => return Err(format!("{name}: {error}")),
            };
        for Corpus { name: corpus, text } in corpora {
            let text = &text[..text.floor_char_boundary(2_000_000)];
            let found = loaded.encode(text).map_err(text_of)?;
            let expected = embedded.encode(text).map_err(text_of)?;
            equal_ids(&found, &expected, || format!("{name}, {corpus}"))?;
            cases += found.len() as u64;
        }
    }
    Ok(Checked::with_note(
        cases,
        format!("tokens {}", refused.join("; ")).trim().to_owned(),
    ))
}

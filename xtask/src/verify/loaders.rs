//! Files are untrusted: no mutant of a file makes a loader panic, and what is not supported is
//! refused by name.

use bytepair::{Pattern, Pipeline, ReadLimits, Specials, Tokenizer};
use serde_json::{Value, json};

use super::support::{Random, case_file, cases_folder, catch, ensure, parallel, text_of};
use super::{Checked, Claims, Outcome};
use crate::data;

pub(super) fn check(claims: &mut Claims) {
    claims.check(
        "mutants of vocabulary files never panic, and errors say where (P12)",
        |settings, _| mutants(settings.choose(10_000, 100_000)),
    );
    claims.check(
        "what a tokenizer.json asks for and is not supported is refused by name (P16)",
        |_, _| refused(),
    );
    claims.check(
        "merges of unknown shape and shared ids are refused (P14, P17)",
        |_, _| malformed(),
    );
    claims.check(
        "ids are those of the file, with gaps and in any order (P17, P40)",
        |_, _| kept_ids(),
    );
}

fn mutants(count: usize) -> Outcome {
    let folder = cases_folder();
    let mut files = Vec::new();
    for (part, ending) in [("tok", ".json"), ("load", ".tiktoken")] {
        for path in data::files(&folder.join(part), ending)? {
            files.push((path.clone(), ending == ".json", data::read(&path)?));
        }
    }
    let loaded = std::sync::atomic::AtomicU64::new(0);
    let limits = ReadLimits::default();
    let cases = parallel(count, |number| {
        let (path, is_json, file) = &files[number % files.len()];
        let mutant = mutate(file, &mut Random::new(number as u64));
        let place = || format!("mutant {number} of {}", path.display());
        if *is_json {
            check_pipeline(&mutant).map_err(|error| format!("{}: {error}", place()))?;
        }
        let result = catch(|| match is_json {
            true => Tokenizer::from_tokenizer_json(&mutant, &limits),
            false => {
                let specials: [(&str, u32); 0] = [];
                Tokenizer::from_tiktoken(&mutant, Pattern::gpt2(), specials, &limits)
            }
        });
        match result.map_err(|panic| format!("{}: {panic}", place()))? {
            Ok(tokenizer) => {
                loaded.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                loses_nothing(&tokenizer, &mutant)
                    .map_err(|error| format!("{}: {error}", place()))?;
            }
            Err(error) => {
                let message = error.to_string();
                ensure(says_where(&message, *is_json), || {
                    format!("{}: {message:?} does not say where", place())
                })?;
            }
        }
        Ok(1)
    })?;
    let note = format!(
        "{} files; {} mutants loaded, and encoded or said what they lack",
        files.len(),
        loaded.into_inner()
    );
    Ok(Checked::with_note(cases, note))
}

/// A text of bytes and characters that the small files have, and of some that they have not.
const TEXT: &str = "abc low xyz\u{E9}";

/// A text comes back, or an unknown token is in its place, or an error says what is missing (P13).
fn loses_nothing(tokenizer: &Tokenizer, file: &[u8]) -> Result<(), String> {
    let ids = match catch(|| tokenizer.encode(TEXT))? {
        Ok(ids) => ids,
        Err(error) => return ensure(!error.to_string().is_empty(), || "no words".to_owned()),
    };
    let decoded = catch(|| tokenizer.decode(&ids))?.map_err(text_of)?;
    let json: Option<Value> = serde_json::from_slice(file).ok();
    let model = json.as_ref().map(|json| &json["model"]);
    let unknown = model.and_then(|model| model["vocab"][model["unk_token"].as_str()?].as_u64());
    let is_unknown = |id: &u32| Some(u64::from(*id)) == unknown;
    ensure(decoded == TEXT || ids.iter().any(is_unknown), || {
        format!("{TEXT:?} became {decoded:?}")
    })
}

/// A pipeline that says where it is wrong, or that has the ids of the tokenizer where that reads the file too.
fn check_pipeline(file: &[u8]) -> Result<(), String> {
    let limits = ReadLimits::default();
    let pipeline = match catch(|| Pipeline::from_tokenizer_json(file, &limits))? {
        Ok(pipeline) => pipeline,
        Err(error) => {
            let message = error.to_string();
            return ensure(says_where(&message, true), || {
                format!("the pipeline's {message:?} does not say where")
            });
        }
    };
    let pipeline = pipeline.with_specials(Specials::AsText).map_err(text_of)?;
    let ids = catch(|| pipeline.encode(TEXT))?.map_err(text_of);
    if let Ok(tokenizer) = catch(|| Tokenizer::from_tokenizer_json(file, &limits))? {
        let of_tokenizer = tokenizer.encode(TEXT).map_err(text_of);
        ensure(ids == of_tokenizer, || {
            format!("{ids:?} of the pipeline, {of_tokenizer:?} of the tokenizer")
        })?;
    }
    match ids {
        Ok(ids) => catch(|| pipeline.decode(&ids))?.map(drop).map_err(text_of),
        Err(_) => Ok(()),
    }
}

/// A line, or in JSON a field or a token; a file that lacks the token of a byte names the byte.
fn says_where(message: &str, is_json: bool) -> bool {
    let fields = [
        "model",
        "added_tokens",
        "normalizer",
        "pre_tokenizer",
        "post_processor",
    ];
    let fields = fields
        .iter()
        .chain(&["decoder", "truncation", "padding"])
        .chain(&["special token", "pattern"]);
    message.contains("line ")
        || message.contains("single byte 0x")
        || is_json && fields.into_iter().any(|field| message.starts_with(field))
}

/// Flips, deletes, doubles and cuts off bytes.
fn mutate(file: &[u8], random: &mut Random) -> Vec<u8> {
    let mut mutant = file.to_vec();
    for _ in 0..1 + random.below(2) {
        let at = random.below(mutant.len());
        let end = mutant.len().min(at + 1 + random.below(20));
        match random.below(6) {
            0 => mutant.truncate(at),
            1 => drop(mutant.drain(at..end)),
            2 => {
                let part = mutant[at..end].to_vec();
                mutant.splice(at..at, part);
            }
            3 => {
                let digit = b"0123456789-.\"[]{},: \n\\u"[random.below(23)];
                mutant.splice(at..at, [digit]);
            }
            _ => {
                if let Some(byte) = mutant.get_mut(at) {
                    *byte ^= 1 << random.below(8);
                }
            }
        }
    }
    mutant
}

/// A small file that loads, to be changed.
fn good() -> Result<Value, String> {
    serde_json::from_slice(&case_file("tok/merges-strings.json")?).map_err(text_of)
}

fn load(file: &Value) -> Result<Tokenizer, String> {
    let bytes = serde_json::to_vec(file).map_err(text_of)?;
    let loaded = catch(|| Tokenizer::from_tokenizer_json(&bytes, &ReadLimits::default()))?;
    loaded.map_err(text_of)
}

/// Who has to refuse a file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    Both,
    /// A pipeline does it.
    Tokenizer,
}

/// A change at a JSON pointer, and what the errors have to name.
fn refused_with(pointer: &str, value: Value, names: &[&str], by: By) -> Result<(), String> {
    let mut file = good()?;
    let (parent, key) = pointer.rsplit_once('/').ok_or("no pointer")?;
    let parent = file
        .pointer_mut(parent)
        .ok_or_else(|| format!("no {pointer}"))?;
    parent[key] = value.clone();
    let bytes = serde_json::to_vec(&file).map_err(text_of)?;
    let pipeline = catch(|| Pipeline::from_tokenizer_json(&bytes, &ReadLimits::default()))?;
    let mut outcomes = vec![load(&file).map(drop)];
    if by == By::Both {
        outcomes.push(pipeline.map(drop).map_err(text_of));
    }
    for outcome in outcomes {
        let message = match outcome {
            Ok(()) => return Err(format!("{pointer} = {value} was accepted")),
            Err(message) => message,
        };
        let missing = names.iter().find(|name| !message.contains(**name));
        ensure(missing.is_none(), || {
            format!("{pointer} = {value}: {message:?} does not name {missing:?}")
        })?;
    }
    Ok(())
}

fn refused() -> Outcome {
    load(&good()?)?;
    let of_both = [
        (
            "/normalizer",
            json!({"type": "Fancy"}),
            vec!["normalizer", "Fancy"],
        ),
        ("/normalizer", json!(7), vec!["normalizer"]),
        (
            "/pre_tokenizer",
            json!({"type": "UnicodeScripts"}),
            vec!["pre_tokenizer", "UnicodeScripts"],
        ),
        (
            "/pre_tokenizer",
            json!({"type": "Fancy"}),
            vec!["pre_tokenizer", "Fancy"],
        ),
        (
            "/pre_tokenizer",
            json!({"type": "Sequence", "pretokenizers": [{"type": "Fancy"}]}),
            vec!["pre_tokenizer", "Fancy"],
        ),
        (
            "/decoder",
            json!({"type": "Fancy"}),
            vec!["decoder", "Fancy"],
        ),
        (
            "/post_processor",
            json!({"type": "Fancy"}),
            vec!["post_processor", "Fancy"],
        ),
        ("/model/type", json!("Unigram"), vec!["model", "Unigram"]),
        (
            "/model/type",
            json!("WordLevel"),
            vec!["model", "WordLevel"],
        ),
        ("/model/dropout", json!(0.1), vec!["dropout"]),
        ("/model/surprise", json!(true), vec!["surprise"]),
        ("/surprise", json!({"a": 1}), vec!["surprise"]),
        (
            "/added_tokens",
            json!([added("x", 900, "surprise")]),
            vec!["surprise"],
        ),
        (
            "/truncation",
            json!({"max_length": "x"}),
            vec!["truncation."],
        ),
        (
            "/padding",
            json!({"strategy": "Longest"}),
            vec!["padding.strategy"],
        ),
        (
            "/post_processor",
            json!({"type": "TemplateProcessing", "single": [{"Sequence": {"id": "C", "type_id": 0}}],
                "pair": [], "special_tokens": {}}),
            vec!["post_processor.single[0]"],
        ),
    ];
    let of_tokenizers = [
        (
            "/normalizer",
            json!({"type": "NFC"}),
            vec!["normalizer", "NFC"],
        ),
        (
            "/normalizer",
            json!({"type": "Strip", "strip_left": true, "strip_right": true}),
            vec!["normalizer", "Strip"],
        ),
        (
            "/normalizer",
            json!({"type": "Sequence", "normalizers": [{"type": "NFKC"}]}),
            vec!["normalizer"],
        ),
        (
            "/model/continuing_subword_prefix",
            json!("##"),
            vec!["continuing_subword_prefix"],
        ),
        (
            "/model/end_of_word_suffix",
            json!("</w>"),
            vec!["end_of_word_suffix"],
        ),
        (
            "/added_tokens",
            json!([added("x", 900, "single_word")]),
            vec!["added_tokens", "single_word"],
        ),
        (
            "/added_tokens",
            json!([added("x", 900, "lstrip")]),
            vec!["added_tokens", "lstrip"],
        ),
        (
            "/added_tokens",
            json!([added("x", 900, "rstrip")]),
            vec!["added_tokens", "rstrip"],
        ),
    ];
    let cases = (of_both.len() + of_tokenizers.len()) as u64;
    for (pointer, value, names) in of_both {
        refused_with(pointer, value, &names, By::Both)?;
    }
    for (pointer, value, names) in of_tokenizers {
        refused_with(pointer, value, &names, By::Tokenizer)?;
    }
    Ok(Checked::with_note(cases, ""))
}

/// An added token with one flag set.
fn added(text: &str, id: u32, flag: &str) -> Value {
    let mut token = json!({
        "id": id, "content": text, "single_word": false, "lstrip": false, "rstrip": false,
        "normalized": false, "special": false,
    });
    token[flag] = json!(true);
    token
}

fn malformed() -> Outcome {
    let vocab = good()?["model"]["vocab"].clone();
    let with = |text: &str, id: u32| {
        let mut vocab = vocab.clone();
        vocab[text] = json!(id);
        vocab
    };
    let merges = [
        json!(["a b c"]),
        json!(["ab"]),
        json!([["a"]]),
        json!([["a", "b", "c"]]),
        json!([[1, 2]]),
        json!([7]),
        json!([{"left": "a", "right": "b"}]),
        json!({"a": "b"}),
        json!("a b"),
        json!(["a b", "a b"]),
        json!(["qq zz"]),
        json!([["a", "\u{E000}"]]),
        // Nothing makes its right side.
        json!(["Ġ low"]),
    ];
    let mut cases = 0;
    for merges in merges {
        // By entry where the shape is one, else by line and column.
        let place = if merges_parse(&merges) {
            "merge"
        } else {
            "column"
        };
        refused_with("/model/merges", merges, &[place], By::Both)?;
        cases += 1;
    }
    refused_with("/model/vocab", with("zz", 97), &["97"], By::Both)?;
    refused_with("/model/vocab", with("zz", 300), &[], By::Both)
        .err()
        .ok_or("a new id is refused")?;
    refused_with(
        "/model/vocab",
        json!({"a": 4_294_967_296_u64}),
        &["4294967296"],
        By::Both,
    )?;
    refused_with("/model/vocab", json!({"a": -1}), &["-1"], By::Both)?;
    refused_with(
        "/added_tokens",
        json!([added("<x>", 900, "special"), added("<y>", 900, "special")]),
        &["900"],
        By::Both,
    )?;
    refused_with(
        "/added_tokens",
        json!([added("<x>", 900, "special"), added("<x>", 901, "special")]),
        &["\"<x>\""],
        By::Both,
    )?;
    // `x` is a token of the model, and has another id there.
    refused_with(
        "/added_tokens",
        json!([added("x", 900, "special")]),
        &["\"x\"", "120"],
        By::Both,
    )?;
    refused_with(
        "/added_tokens",
        json!([added("other", 97, "special")]),
        &["97"],
        By::Both,
    )?;
    refused_with(
        "/added_tokens",
        json!([added("", 900, "special")]),
        &["empty"],
        By::Both,
    )?;
    // A merge list that is not empty has an effect.
    let with_merges = load(&good()?)?;
    ensure(with_merges.canonical().rule_count() > 0, || {
        "merges without effect".to_owned()
    })?;
    Ok(Checked::with_note(cases + 10, ""))
}

/// Whether it is a list of strings, or of pairs of strings.
fn merges_parse(merges: &Value) -> bool {
    let is_entry = |entry: &Value| match entry {
        Value::Array(sides) => sides.len() == 2 && sides.iter().all(Value::is_string),
        entry => entry
            .as_str()
            .is_some_and(|entry| entry.split(' ').count() == 2),
    };
    merges
        .as_array()
        .is_some_and(|entries| entries.iter().all(is_entry))
}

fn kept_ids() -> Outcome {
    let mut file = good()?;
    file["added_tokens"] = json!([
        added("<H>", 2_000, "special"),
        added("<G>", 1_000, "special")
    ]);
    let tokenizer = load(&file)?;
    let specials: Vec<_> = tokenizer.special_tokens().collect();
    ensure(specials == [("<H>", 2_000), ("<G>", 1_000)], || {
        format!("{specials:?}")
    })?;
    let count = tokenizer.vocabulary().len() + 2;
    ensure(tokenizer.token_count() == count, || {
        "the number of tokens is not that of the file".to_owned()
    })?;
    ensure(tokenizer.max_id() == Some(2_000), || {
        "the largest id is not that of the file".to_owned()
    })?;
    ensure(tokenizer.token_bytes(1_500).is_none(), || {
        "a token in a gap".to_owned()
    })?;
    // Lines in another order change nothing.
    let mut cases = 4;
    let sorted = case_file("load/ok.tiktoken")?;
    let unsorted = case_file("load/unsorted.tiktoken")?;
    let read =
        |file: &[u8]| bpe_core::tiktoken::read(file, &ReadLimits::default()).map_err(text_of);
    let (sorted, unsorted) = (read(&sorted)?, read(&unsorted)?);
    for (id, bytes) in sorted.iter() {
        ensure(unsorted.token_bytes(id) == Some(bytes), || {
            format!("id {id}")
        })?;
        cases += 1;
    }
    Ok(Checked::with_note(cases, ""))
}

//! `inspect`: what a tokenizer does, in plain words.

use std::path::Path;

use bytepair::{Inspection, Pipeline, ReadLimits, Tokenizer, read_file};
use serde_json::json;

use crate::args::InspectArgs;
use crate::error::CliError;
use crate::load::Files;
use crate::output::{grouped, write_line};
use crate::pipeline::Session;

pub(crate) fn run(args: &InspectArgs, session: &mut Session<'_>) -> Result<(), CliError> {
    let limits = ReadLimits::default();
    let failed = |error: bytepair::LoadError| match error.path() {
        Some(_) => CliError::Vocabulary(error.to_string()),
        None => CliError::Vocabulary(format!("{}: {error}", args.file.display())),
    };
    let read = |path: &Path| read_file(path, &limits).map_err(failed);
    let inspection = match Files::of(&args.file, None)? {
        Files::TokenizerJson(path) => Pipeline::from_tokenizer_json(&read(&path)?, &limits)
            .map_err(failed)?
            .inspect(),
        Files::Model(path) => Pipeline::from_sentencepiece_model(&read(&path)?, &limits)
            .map_err(failed)?
            .inspect(),
        Files::Tekken(path) => {
            tekken(&Tokenizer::from_tekken(&read(&path)?, &limits).map_err(failed)?)
        }
        Files::Gpt2 { .. } | Files::Tiktoken(_) => {
            let message = "a vocabulary alone has no steps: `bytepair dict` tells of its rules";
            let message = format!("{}: {message}", args.file.display());
            return Err(CliError::Vocabulary(message));
        }
    };
    match args.json {
        true => write_line(session.stdout, as_json(&inspection)),
        false => write_line(session.stdout, text(&inspection)),
    }
}

/// Mistral's file has few steps, and a `Tokenizer` does them.
fn tekken(tokenizer: &Tokenizer) -> Inspection {
    let form = tokenizer.canonical();
    let specials = tokenizer.special_tokens().count();
    let patterns = tokenizer.patterns().iter().map(|pattern| {
        let words = format!("the text is cut by the pattern {}", pattern.as_str());
        ("pre_tokenizer".to_owned(), words)
    });
    let mut steps = vec![(
        "special_tokens".to_owned(),
        format!(
            "{} tokens with the first ids; text makes them only where they are allowed",
            grouped(specials)
        ),
    )];
    steps.extend(patterns);
    steps.push((
        "model".to_owned(),
        format!(
            "BPE of {} tokens over bytes, in the order of their ranks; a piece that is a token becomes it \
             without merging",
            grouped(tokenizer.vocabulary().len())
        ),
    ));
    let family = |pattern: &bytepair::Pattern| match pattern.family() {
        Some(family) => format!("pieces: the lexer of {family:?}"),
        None => "pieces: an engine for this pattern".to_owned(),
    };
    let mut engine = vec!["the text is encoded as it is".to_owned()];
    engine.extend(tokenizer.patterns().iter().map(family));
    let mut oddities = Vec::new();
    let unreachable = form.unreachable_tokens().count();
    if unreachable > 0 {
        let words = "tokens that merging does not give, but a whole piece can be";
        oddities.push(format!("{} {words}", grouped(unreachable)));
    }
    Inspection {
        steps,
        engine,
        oddities,
    }
}

fn text(inspection: &Inspection) -> String {
    let mut lines = vec!["steps:".to_owned()];
    let steps = inspection.steps.iter();
    lines.extend(steps.map(|(part, words)| format!("  {part}: {words}")));
    for (title, words) in [
        ("what runs it:", &inspection.engine),
        ("oddities:", &inspection.oddities),
    ] {
        if !words.is_empty() {
            lines.push(title.to_owned());
            lines.extend(words.iter().map(|words| format!("  {words}")));
        }
    }
    lines.join("\n")
}

fn as_json(inspection: &Inspection) -> String {
    let steps = inspection.steps.iter();
    let steps = steps.map(|(part, words)| json!({"part": part, "does": words}));
    json!({
        "steps": steps.collect::<Vec<_>>(),
        "engine": inspection.engine,
        "oddities": inspection.oddities,
    })
    .to_string()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::commands::testing::{output, run_with};

    fn bert(folder: &std::path::Path) -> String {
        let vocab = json!({"[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "a": 3, "##b": 4, "b": 5});
        let added = |id: u32, content: &str| {
            json!({
                "id": id, "content": content, "special": true, "normalized": false,
                "single_word": false, "lstrip": false, "rstrip": false,
            })
        };
        let file = json!({
            "version": "1.0",
            "added_tokens": [added(1, "[CLS]"), added(2, "[SEP]")],
            "normalizer": {
                "type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
                "strip_accents": null, "lowercase": true,
            },
            "pre_tokenizer": {"type": "BertPreTokenizer"},
            "post_processor": {
                "type": "BertProcessing", "sep": ["[SEP]", 2], "cls": ["[CLS]", 1],
            },
            "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": true},
            "model": {
                "type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                "max_input_chars_per_word": 100, "vocab": vocab,
            },
        });
        let path = folder.join("tokenizer.json");
        std::fs::write(&path, file.to_string()).expect("written");
        path.display().to_string()
    }

    #[test]
    fn steps_are_told_in_order_and_texts_that_do_not_come_back() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = bert(folder.path());
        let text = output(&["inspect", &path], b"", 100);
        let place = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part}: {text}"));
        let parts = [
            "  added_tokens:",
            "  normalizer:",
            "  pre_tokenizer:",
            "  model:",
        ];
        let places = parts.map(place);
        assert!(places.is_sorted(), "{text}");
        assert!(text.contains("WordPiece of 6 tokens"), "{text}");
        assert!(text.contains("\"ABC\" comes back as \"[UNK]\""), "{text}");
        let json = output(&["inspect", "--json", &path], b"", 100);
        let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        assert_eq!(json["steps"][0]["part"], "added_tokens");
    }

    #[test]
    fn a_file_that_is_no_tokenizer_is_an_error_with_its_name() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("tokenizer.model");
        std::fs::write(&path, [0x0A, 0x7F, 0x0A]).expect("written");
        let path = path.display().to_string();
        let (_, result) = run_with(&["inspect", &path], b"", 100);
        let error = format!("{:?}", result.expect_err("malformed"));
        assert!(
            error.contains("tokenizer.model: ") && error.contains("(at byte"),
            "{error}"
        );
    }
}

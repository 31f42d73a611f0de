//! `equivalent`: do two tokenizers cut every text alike?

use bytepair::{Equivalence, TokenId, Tokenizer};
use serde_json::{Value, json};

use crate::args::{EquivalentArgs, SpecialArgs};
use crate::error::CliError;
use crate::load::Named;
use crate::output::{escaped, write_line};
use crate::pipeline::Session;

pub(crate) fn run(args: &EquivalentArgs, session: &mut Session<'_>) -> Result<(), CliError> {
    let load = |word: &str| Named::by_word(word, &SpecialArgs::default());
    let (first, second) = (load(&args.first)?, load(&args.second)?);
    let answer = first.tokenizer.equivalent(&second.tokenizer);
    let answer = answer.map_err(|error| {
        CliError::Vocabulary(format!("{} and {}: {error}", first.name, second.name))
    })?;
    let line = match (&answer, args.json) {
        (answer, true) => json(answer, [&first, &second]).to_string(),
        (Equivalence::Same { same_ids: true }, _) => "same".to_owned(),
        (Equivalence::Same { same_ids: false }, _) => "same but for the ids".to_owned(),
        (Equivalence::Different(witness), _) => {
            let side = |named: &Named, tokens: &Option<Vec<TokenId>>| {
                let tokens = pieces(&named.tokenizer, tokens);
                format!(
                    "  {}: {}",
                    named.name,
                    tokens.unwrap_or("no tokens".to_owned())
                )
            };
            [
                format!("different on \"{}\"", escaped(&witness.text)),
                side(&first, &witness.first),
                side(&second, &witness.second),
            ]
            .join("\n")
        }
        (Equivalence::Unknown { text }, _) => {
            format!("not known: the tokens of \"{}\" may differ", escaped(text))
        }
    };
    write_line(session.stdout, line)?;
    match answer {
        Equivalence::Same { .. } => Ok(()),
        Equivalence::Different(_) | Equivalence::Unknown { .. } => Err(CliError::Differs),
    }
}

/// Tokens with their pieces.
fn pieces(tokenizer: &Tokenizer, tokens: &Option<Vec<TokenId>>) -> Option<String> {
    let piece = |&id: &TokenId| {
        let bytes = tokenizer.token_bytes(id).unwrap_or_default();
        format!("\"{}\" {id}", escaped(bytes))
    };
    let tokens = tokens.as_ref()?;
    Some(tokens.iter().map(piece).collect::<Vec<_>>().join(", "))
}

fn json(answer: &Equivalence, names: [&Named; 2]) -> Value {
    match answer {
        Equivalence::Same { same_ids } => json!({"equivalent": true, "same_ids": same_ids}),
        Equivalence::Unknown { text } => json!({
            "equivalent": null,
            "text": String::from_utf8_lossy(text),
            "bytes": text,
        }),
        Equivalence::Different(witness) => json!({
            "equivalent": false,
            "text": String::from_utf8_lossy(&witness.text),
            "bytes": witness.text,
            "tokens": {
                names[0].name.as_str(): witness.first,
                names[1].name.as_str(): witness.second,
            },
        }),
    }
}

#[cfg(test)]
mod tests {
    use crate::commands::testing::{output, run_with};

    #[test]
    fn an_encoding_is_equivalent_to_itself() {
        assert_eq!(
            output(&["equivalent", "gpt2", "r50k_base"], b"", 1),
            "same\n"
        );
    }

    #[test]
    fn two_encodings_differ_on_a_text_that_both_show_with_status_1() {
        let (stdout, result) = run_with(&["equivalent", "gpt2", "cl100k_base", "--json"], b"", 1);
        assert_eq!(result.expect_err("others").exit_status(), 1);
        let answer: serde_json::Value = serde_json::from_slice(&stdout).expect("JSON");
        let bytes: Vec<u8> = serde_json::from_value(answer["bytes"].clone()).expect("bytes");
        for name in ["gpt2", "cl100k_base"] {
            let tokenizer = bytepair::Tokenizer::from_name(name).expect("embedded");
            let tokens = serde_json::from_value(answer["tokens"][name].clone()).expect("tokens");
            let tokens: Vec<u32> = tokens;
            assert_eq!(tokenizer.decode_bytes(&tokens), Ok(bytes.clone()));
        }
        let (text, _) = run_with(&["equivalent", "gpt2", "cl100k_base"], b"", 1);
        assert!(text.starts_with(b"different on \""));
    }

    #[test]
    fn what_is_no_vocabulary_has_status_3() {
        let (_, result) = run_with(&["equivalent", "gpt2", "nothing"], b"", 1);
        assert_eq!(result.expect_err("nothing").exit_status(), 3);
    }
}

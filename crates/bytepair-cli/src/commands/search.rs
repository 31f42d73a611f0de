//! `search`: where a regular expression matches in the text of ids.

use std::io::Read;

use bpe_dfa::TokenSearch;
use bpe_dfa::explicit::{Limits, StringDfa};

use super::validate::IdReader;
use crate::args::{SearchArgs, SpecialArgs};
use crate::error::CliError;
use crate::input::Input;
use crate::load::Named;
use crate::output::{escaped, write_line};
use crate::pipeline::Session;

/// Bytes read at once.
const BLOCK_BYTES: usize = 1 << 16;

pub(crate) fn run(args: &SearchArgs, session: &mut Session<'_>) -> Result<(), CliError> {
    let language = StringDfa::from_regex(&args.regex, &Limits::default());
    let language = language.map_err(|error| CliError::Usage(error.to_string()))?;
    let Named { tokenizer, .. } = Named::load(&args.tokenizer, &SpecialArgs::default())?;
    let search = TokenSearch::new(tokenizer.canonical().vocabulary(), language);
    let inputs = Input::all(&args.files.files);
    let many = inputs.len() > 1;
    let mut is_found = false;
    for input in inputs {
        let name = input.name();
        let mut reader = input.open(session.stdin)?.reader;
        let mut words = IdReader::new(name.clone(), args.binary);
        let mut block = vec![0; session.block_bytes.unwrap_or(BLOCK_BYTES).max(1)];
        let mut ids = Vec::new();
        loop {
            let read = reader.read(&mut block);
            match read.map_err(|error| CliError::reading(&name, error))? {
                0 => break words.finish(&mut ids)?,
                length => words.push(&block[..length], &mut ids)?,
            }
        }
        let matches = search.find_all(&ids);
        let matches = matches.map_err(|error| CliError::Input(format!("{name}: {error}")))?;
        for found in matches {
            is_found = true;
            let (tokens, bytes) = (found.tokens, found.bytes);
            let text = tokenizer
                .decode_bytes(&ids[tokens.clone()])
                .unwrap_or_default();
            let place = format!(
                "{}\t{}\t{}\t{}\t\"{}\"",
                tokens.start,
                tokens.end,
                bytes.start,
                bytes.end,
                escaped(&text)
            );
            match many {
                true => write_line(session.stdout, format!("{name}\t{place}"))?,
                false => write_line(session.stdout, place)?,
            }
        }
    }
    match is_found {
        true => Ok(()),
        false => Err(CliError::Differs),
    }
}

#[cfg(test)]
mod tests {
    use crate::commands::testing::{output, run_with};

    #[test]
    fn matches_are_found_across_tokens_with_their_places() {
        let ids = output(&["encode", "-e", "gpt2"], b"CIAA 2024 in Akita, Japan", 100);
        let found = output(&["search", "kita|2024", "-e", "gpt2"], ids.as_bytes(), 3);
        let fields: Vec<Vec<&str>> = found
            .lines()
            .map(|line| line.split('\t').collect())
            .collect();
        assert_eq!(fields.len(), 2);
        assert_eq!(fields[0][2..4], ["5", "9"]);
        assert_eq!(fields[1][2..4], ["14", "18"]);
    }

    #[test]
    fn nothing_found_has_status_1_and_no_expression_status_2() {
        let (stdout, result) = run_with(&["search", "x"], b"13225", 100);
        assert!(stdout.is_empty());
        assert_eq!(result.expect_err("nothing").exit_status(), 1);
        let (_, result) = run_with(&["search", "("], b"13225", 100);
        assert_eq!(result.expect_err("no expression").exit_status(), 2);
    }
}

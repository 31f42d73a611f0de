//! `validate`: are ids what the tokenizer makes of their text?

use std::io::Read;

use bytepair::{Mismatch, PipelineValidator, StreamError, TokenId, TokenValidator};

use crate::args::ValidateArgs;
use crate::encoder::Encoder;
use crate::error::CliError;
use crate::input::Input;
use crate::output::{escaped, write_line};
use crate::pipeline::Session;

/// A word that is longer is no id, and is not kept.
const WORD_BYTES: usize = 40;

/// Bytes read at once.
const BLOCK_BYTES: usize = 1 << 16;

pub(crate) fn run(args: &ValidateArgs, session: &mut Session<'_>) -> Result<(), CliError> {
    let encoder = Encoder::load(&args.tokenizer, &args.specials, false, 1)?;
    let validator = Validator::new(&encoder);
    let mut validator = validator.map_err(|error| CliError::Vocabulary(error.to_string()))?;
    let inputs = Input::all(&args.files.files);
    let many = inputs.len() > 1;
    let mut is_wrong = false;
    for input in inputs {
        let block_bytes = session.block_bytes.unwrap_or(BLOCK_BYTES);
        let reader = input.open(session.stdin)?.reader;
        let ids = IdReader::new(input.name(), args.binary);
        let found = validate(&mut validator, reader, ids, block_bytes)?;
        let Some(mismatch) = found else {
            continue;
        };
        is_wrong = true;
        if args.reason {
            write_line(session.stdout, named(many, &input.name(), &mismatch))?;
        } else {
            write_line(session.stdout, named(many, &input.name(), &mismatch.index))?;
        }
    }
    match is_wrong {
        true => Err(CliError::Differs),
        false => Ok(()),
    }
}

/// Compares ids with what their text is encoded to.
enum Validator {
    Tokens(Box<TokenValidator>),
    Steps(Box<PipelineValidator>),
}

impl Validator {
    fn new(encoder: &Encoder) -> Result<Self, StreamError> {
        Ok(match encoder {
            Encoder::Tokenizer(tokenizer) => Self::Tokens(Box::new(tokenizer.validator()?)),
            Encoder::Pipeline(steps) => Self::Steps(Box::new(steps.pipeline.validator()?)),
        })
    }

    /// Whether a mismatch is certain.
    fn push(&mut self, ids: &[TokenId]) -> Result<bool, StreamError> {
        Ok(match self {
            Self::Tokens(validator) => validator.push(ids)?.is_some(),
            Self::Steps(validator) => validator.push(ids)?.is_some(),
        })
    }

    fn finish(&mut self) -> Result<Option<Mismatch>, StreamError> {
        match self {
            Self::Tokens(validator) => validator.finish(),
            Self::Steps(validator) => validator.finish(),
        }
    }
}

fn named(many: bool, name: &str, what: &dyn std::fmt::Display) -> String {
    match many {
        true => format!("{name}: {what}"),
        false => what.to_string(),
    }
}

fn validate(
    validator: &mut Validator,
    mut reader: impl Read,
    mut words: IdReader,
    block_bytes: usize,
) -> Result<Option<Mismatch>, CliError> {
    let mut block = vec![0; block_bytes.max(1)];
    let mut ids = Vec::new();
    loop {
        let read = reader.read(&mut block);
        let length = read.map_err(|error| CliError::reading(&words.name, error))?;
        ids.clear();
        match length {
            0 => words.finish(&mut ids)?,
            _ => words.push(&block[..length], &mut ids)?,
        }
        let stream = |error: StreamError| CliError::Input(format!("{}: {error}", words.name));
        if validator.push(&ids).map_err(stream)? || length == 0 {
            return validator.finish().map_err(stream);
        }
    }
}

/// Ids from bytes: words of digits, or 32 bits each, the lowest byte first.
pub(super) struct IdReader {
    name: String,
    is_binary: bool,
    word: Vec<u8>,
    bytes: u64,
}

impl IdReader {
    pub(super) fn new(name: String, is_binary: bool) -> Self {
        Self {
            name,
            is_binary,
            word: Vec::new(),
            bytes: 0,
        }
    }

    pub(super) fn push(&mut self, part: &[u8], ids: &mut Vec<TokenId>) -> Result<(), CliError> {
        for &byte in part {
            if self.is_binary {
                self.word.push(byte);
                if let Ok(word) = <[u8; 4]>::try_from(&self.word[..]) {
                    ids.push(TokenId::from_le_bytes(word));
                    self.word.clear();
                }
            } else if byte.is_ascii_whitespace() {
                self.end_word(ids)?;
            } else if self.word.len() < WORD_BYTES {
                self.word.push(byte);
            } else {
                return Err(self.error("is no token id"));
            }
            self.bytes += 1;
        }
        Ok(())
    }

    pub(super) fn finish(&mut self, ids: &mut Vec<TokenId>) -> Result<(), CliError> {
        match self.is_binary && !self.word.is_empty() {
            true => Err(CliError::Input(format!(
                "{}: the file ends inside an id: {} bytes are not a multiple of 4",
                self.name, self.bytes
            ))),
            false => self.end_word(ids),
        }
    }

    fn end_word(&mut self, ids: &mut Vec<TokenId>) -> Result<(), CliError> {
        if self.word.is_empty() {
            return Ok(());
        }
        let is_number = self.word.iter().all(u8::is_ascii_digit);
        let number = std::str::from_utf8(&self.word).ok().filter(|_| is_number);
        let id = number.and_then(|number| number.parse().ok());
        ids.push(id.ok_or_else(|| self.error("is no token id"))?);
        self.word.clear();
        Ok(())
    }

    fn error(&self, what: &str) -> CliError {
        CliError::Input(format!(
            "{}: \"{}\" {what} (at byte {})",
            self.name,
            escaped(&self.word),
            self.bytes - self.word.len() as u64,
        ))
    }
}

#[cfg(test)]
mod tests {
    use crate::commands::testing::{output, run_with};

    #[test]
    fn what_encode_prints_is_valid_in_any_blocks() {
        let text = "It's 2026, isn't it?  \n\n\tyes 你好 12345 <|endoftext|>".repeat(30);
        let ids = output(&["encode"], text.as_bytes(), 1000);
        for block_bytes in [1, 7, 1 << 16] {
            assert_eq!(output(&["validate"], ids.as_bytes(), block_bytes), "");
        }
        // As a special token the text is one token.
        let (stdout, result) = run_with(&["validate", "--special"], ids.as_bytes(), 100);
        assert!(!stdout.is_empty());
        assert_eq!(result.expect_err("a special token").exit_status(), 1);
    }

    #[test]
    fn the_first_wrong_index_is_printed_with_status_1() {
        // "He", "llo", ", world" are tokens of "Hello, world", which has others.
        let parts = ["He", "llo", ", world"].map(|part| output(&["encode"], part.as_bytes(), 100));
        let hello = output(&["encode"], b"Hello hello hello", 100);
        let ids = format!("{hello}{}", parts.concat());
        let (stdout, result) = run_with(&["validate"], ids.as_bytes(), 5);
        let index = hello.split_whitespace().count();
        assert_eq!(String::from_utf8_lossy(&stdout), format!("{index}\n"));
        assert_eq!(result.expect_err("wrong").exit_status(), 1);
        let (stdout, _) = run_with(&["validate", "--reason"], ids.as_bytes(), 5);
        let reason = String::from_utf8_lossy(&stdout).into_owned();
        assert!(
            reason.starts_with(&format!("token {index} is not ")),
            "{reason}"
        );
    }

    #[test]
    fn binary_ids_are_four_bytes_each() {
        let text = "Hello, world";
        let ids = output(&["encode", "-e", "cl100k_base"], text.as_bytes(), 100);
        let binary: Vec<u8> = ids
            .split_whitespace()
            .flat_map(|id| id.parse::<u32>().expect("an id").to_le_bytes())
            .collect();
        let arguments = ["validate", "--binary", "-e", "cl100k_base"];
        assert_eq!(output(&arguments, &binary, 3), "");
        let (_, result) = run_with(&arguments, &binary[..5], 3);
        let error = result.expect_err("half an id");
        assert!(
            error
                .message()
                .is_some_and(|message| message.contains("inside an id"))
        );
    }

    #[test]
    fn words_that_are_no_ids_are_an_error_and_ids_of_no_token_a_mismatch() {
        let (_, result) = run_with(&["validate"], b"13225 x1", 100);
        let message = result.expect_err("x1").message().map(str::to_owned);
        assert!(message.is_some_and(|message| message.contains("\"x1\" is no token id")));
        let (stdout, result) = run_with(&["validate"], b"13225 4000000000", 100);
        assert_eq!(stdout, b"1\n");
        assert_eq!(result.expect_err("no token").exit_status(), 1);
    }
}

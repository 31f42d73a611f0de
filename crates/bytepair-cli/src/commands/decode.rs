//! `decode`: ids to text, as they are read.

use std::io::{BufRead, BufReader, Write};

use bytepair::{DecodeStream, PipelineDecodeStream, TokenId, Tokenizer};

use crate::args::{DecodeArgs, SpecialArgs};
use crate::encoder::Encoder;
use crate::error::CliError;
use crate::input::Input;
use crate::output::{escaped, write};
use crate::pipeline::Session;

/// A word that is longer is no id, and is not kept.
const WORD_BYTES: usize = 40;

pub(crate) fn run(args: &DecodeArgs, session: &mut Session<'_>) -> Result<(), CliError> {
    // How special tokens in text are treated makes no difference to ids.
    let encoder = Encoder::load(&args.tokenizer, &SpecialArgs::default(), false, 1)?;
    for input in Input::all(&args.files) {
        let reader = input.open(session.stdin)?.reader;
        let mut decoder = Decoder::new(&encoder, input.name(), args.lossy);
        decoder.read(BufReader::with_capacity(1 << 16, reader), session.stdout)?;
    }
    Ok(())
}

/// Reads words, each an id, and writes their bytes.
struct Decoder<'a> {
    text: Text<'a>,
    name: String,
    word: Vec<u8>,
    /// How many bytes and words came before.
    bytes: u64,
    words: u64,
}

/// What makes text of ids.
enum Text<'a> {
    /// Bytes as they are.
    Bytes(&'a Tokenizer),
    /// For lossy decoding: holds back a character that has begun.
    Lossy(DecodeStream),
    /// The decoder of a file.
    Steps(PipelineDecodeStream),
    /// All has been written.
    Done,
}

impl<'a> Decoder<'a> {
    fn new(encoder: &'a Encoder, name: String, lossy: bool) -> Self {
        Self {
            text: match encoder {
                Encoder::Tokenizer(tokenizer) if lossy => Text::Lossy(tokenizer.decode_stream()),
                Encoder::Tokenizer(tokenizer) => Text::Bytes(tokenizer),
                Encoder::Pipeline(steps) => Text::Steps(steps.pipeline.decode_stream()),
            },
            name,
            word: Vec::new(),
            bytes: 0,
            words: 0,
        }
    }

    fn read(&mut self, mut reader: impl BufRead, out: &mut dyn Write) -> Result<(), CliError> {
        loop {
            let part = reader
                .fill_buf()
                .map_err(|error| CliError::reading(&self.name, error))?;
            let length = part.len();
            if length == 0 {
                break;
            }
            for &byte in part {
                match byte.is_ascii_whitespace() {
                    true => self.end_word(out)?,
                    false if self.word.len() < WORD_BYTES => self.word.push(byte),
                    false => return Err(self.error("is no token id")),
                }
                self.bytes += 1;
            }
            reader.consume(length);
            // Whoever sends ids as they come wants to see the text.
            out.flush().map_err(CliError::writing)?;
        }
        self.end_word(out)?;
        match std::mem::replace(&mut self.text, Text::Done) {
            Text::Lossy(stream) => write(out, stream.finish()),
            Text::Steps(stream) => write(out, stream.finish()),
            Text::Bytes(_) | Text::Done => Ok(()),
        }
    }

    /// Writes the bytes of the id that has ended, if there is one.
    fn end_word(&mut self, out: &mut dyn Write) -> Result<(), CliError> {
        if self.word.is_empty() {
            return Ok(());
        }
        let id = self.id().ok_or_else(|| self.error("is no token id"))?;
        let written = match &mut self.text {
            Text::Lossy(stream) => stream.push(id).ok().map(|text| write(out, text)),
            Text::Steps(stream) => stream.push(id).ok().map(|text| write(out, text)),
            Text::Bytes(tokenizer) => tokenizer.token_bytes(id).map(|bytes| write(out, bytes)),
            Text::Done => None,
        };
        written.ok_or_else(|| self.error("is the id of no token"))??;
        self.word.clear();
        self.words += 1;
        Ok(())
    }

    /// The number that the word is; a sign is none.
    fn id(&self) -> Option<TokenId> {
        let is_number = self.word.iter().all(u8::is_ascii_digit);
        let text = std::str::from_utf8(&self.word).ok()?;
        is_number.then(|| text.parse().ok())?
    }

    fn error(&self, what: &str) -> CliError {
        CliError::Input(format!(
            "{}: \"{}\" {what} (word {}, at byte {})",
            self.name,
            escaped(&self.word),
            self.words + 1,
            self.bytes - self.word.len() as u64,
        ))
    }
}

#[cfg(test)]
mod tests {
    use crate::commands::testing::{output, run_with};

    #[test]
    fn what_was_encoded_comes_out_byte_for_byte() {
        let mut text = b"\xFF\x00\xE9\xBE one \xC3\xA9\r\n\n".to_vec();
        text.extend_from_slice("龘 <|endoftext|>".as_bytes());
        let ids = output(&["encode"], &text, 4);
        let (bytes, result) = run_with(&["decode"], ids.as_bytes(), 4);
        assert!(result.is_ok());
        assert_eq!(bytes, text);
    }

    #[test]
    fn lossy_output_is_that_of_the_standard_library() {
        let text = b"a\xE9\xBE b\xFF\xE9\xBE\x98\xE9\xBE";
        let ids = output(&["encode"], text, 100);
        let decoded = output(&["decode", "--lossy"], ids.as_bytes(), 100);
        assert_eq!(decoded, String::from_utf8_lossy(text));
    }

    #[test]
    fn any_white_space_separates_ids() {
        let ids = b"\n\t13225  11\r\n\n2375";
        assert_eq!(output(&["decode"], ids, 100), "Hello, world");
        assert_eq!(output(&["decode"], b" \n", 100), "");
    }

    #[test]
    fn a_bad_id_is_an_error_with_its_place_after_the_text_before_it() {
        let long = format!("13225 {}", "9".repeat(10_000));
        let cases: [(&str, &str); 6] = [
            (
                "13225 11 999999999",
                "\"999999999\" is the id of no token (word 3, at byte 9)",
            ),
            (
                "13225 11\nabc 7",
                "\"abc\" is no token id (word 3, at byte 9)",
            ),
            ("13225 -1", "\"-1\" is no token id (word 2, at byte 6)"),
            ("13225 +1", "\"+1\" is no token id (word 2, at byte 6)"),
            (
                "13225 4294967296",
                "\"4294967296\" is no token id (word 2, at byte 6)",
            ),
            (&long, "is no token id (word 2, at byte 6)"),
        ];
        for (ids, expected) in cases {
            for lossy in [&["decode"][..], &["decode", "--lossy"]] {
                let (bytes, result) = run_with(lossy, ids.as_bytes(), 100);
                let error = result.expect_err("a bad id");
                assert_eq!(error.exit_status(), 1);
                let message = error.message().expect("a message");
                assert!(message.ends_with(expected), "{message}");
                assert!(bytes.starts_with(b"Hello"));
            }
        }
    }
}

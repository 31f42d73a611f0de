//! `encode`: text to ids.

use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;

use bytepair::{PipelineStream, StreamError, TokenId, TokenStream};
use tempfile::SpooledTempFile;

use crate::args::EncodeArgs;
use crate::cuts::Cutter;
use crate::encoder::Encoder;
use crate::error::CliError;
use crate::input::{Block, Input};
use crate::lines::{self, Line, Skipped};
use crate::out::{Format, OutFile};
use crate::output::{escaped, json_string, push_ids, push_number, write, write_line};
use crate::pipeline::Session;

/// Offsets beyond this many bytes of JSON wait in a temporary file.
const SPOOLED_BYTES: usize = 8 << 20;

/// Bytes that a stream reads at most at once.
const STREAM_BYTES: usize = 64 << 10;

pub(crate) fn run(args: &EncodeArgs, session: &mut Session<'_>) -> Result<(), CliError> {
    let threads = args.threads.number();
    let encoder = Encoder::load(&args.tokenizer, &args.specials, args.add_special, threads)?;
    let cutter = encoder.cutter(args.offsets);
    let inputs = Input::all(&args.files.files);
    let has_headers = inputs.len() > 1;
    let mut out = match &args.out {
        Some(path) => {
            let format = Format::of(path, encoder.max_id())?;
            Some((OutFile::create(path, format)?, format))
        }
        None => None,
    };
    let mut skipped = Skipped::new(&args.lines);
    for input in &inputs {
        let job = Job {
            encoder: &encoder,
            cutter: &cutter,
            input,
            threads,
        };
        if args.stream {
            job.stream(session)?;
            continue;
        }
        match (&args.lines.jsonl, &mut out, args.json, args.offsets) {
            (Some(field), out, ..) => {
                let out = out.as_mut().map(|(out, format)| (out, *format));
                job.documents(session, field, out, &mut skipped)?;
            }
            (None, Some((out, format)), ..) => job.ids_to(session, out, *format)?,
            (None, None, true, _) => job.json(session, args.offsets)?,
            (None, None, false, true) => job.lines(session, has_headers)?,
            (None, None, false, false) => job.ids(session)?,
        }
        // Threads of the next input have scratch memory of their own.
        encoder.clear_scratch();
    }
    if let Some((out, _)) = out {
        out.finish()?;
    }
    if let Some(message) = skipped.message() {
        (session.warn)(&message);
    }
    Ok(())
}

/// Text in, ids out.
enum Stream {
    Tokens(Box<TokenStream>),
    Steps(PipelineStream),
}

impl Stream {
    fn new(encoder: &Encoder) -> Result<Self, StreamError> {
        Ok(match encoder {
            Encoder::Tokenizer(tokenizer) => Self::Tokens(Box::new(tokenizer.stream()?)),
            Encoder::Pipeline(steps) => Self::Steps(steps.pipeline.stream()?),
        })
    }

    fn push(&mut self, bytes: &[u8], ids: &mut Vec<TokenId>) -> Result<(), StreamError> {
        match self {
            Self::Tokens(stream) => stream.push(bytes, ids),
            Self::Steps(stream) => stream.push(bytes, ids),
        }
    }

    fn finish(&mut self, ids: &mut Vec<TokenId>) -> Result<(), StreamError> {
        match self {
            Self::Tokens(stream) => stream.finish(ids),
            Self::Steps(stream) => stream.finish(ids),
        }
    }
}

/// One input to encode.
struct Job<'a> {
    encoder: &'a Encoder,
    cutter: &'a Result<Cutter, String>,
    input: &'a Input,
    threads: usize,
}

impl Job<'_> {
    /// Ids with blanks between them, on one line.
    fn ids(&self, session: &mut Session<'_>) -> Result<(), CliError> {
        let work = |block: &Block| {
            let mut text = Vec::new();
            push_ids(&mut text, &self.encode(block)?, b' ');
            Ok(text)
        };
        let mut separated = Separated::default();
        session.for_each_block(self.input, self.cutter, self.threads, work, |out, text| {
            separated.write(out, &text)
        })?;
        write(session.stdout, "\n")
    }

    /// Ids into a file, the input as one document.
    fn ids_to(
        &self,
        session: &mut Session<'_>,
        out: &mut OutFile,
        format: Format,
    ) -> Result<(), CliError> {
        let work = |block: &Block| {
            let ids = self.encode(block)?;
            let mut bytes = Vec::new();
            format.push(&mut bytes, &ids);
            Ok((bytes, ids.len() as u64))
        };
        let sink = |_: &mut dyn Write, (bytes, count): (Vec<u8>, u64)| out.write_ids(&bytes, count);
        session.for_each_block(self.input, self.cutter, self.threads, work, sink)?;
        out.end_document()
    }

    /// Ids of each line of JSON Lines: a line each, or a document of a file.
    fn documents(
        &self,
        session: &mut Session<'_>,
        field: &str,
        mut out: Option<(&mut OutFile, Format)>,
        skipped: &mut Skipped,
    ) -> Result<(), CliError> {
        let name = self.input.name();
        let format = out.as_ref().map_or(Format::Text, |(_, format)| *format);
        let work = |block: &Block| {
            Ok(lines::each(block, field, |text| {
                let ids = self.encoder.encode_text(text)?;
                let mut bytes = Vec::new();
                format.push(&mut bytes, &ids);
                Ok((bytes, ids.len() as u64))
            }))
        };
        let sink = |stdout: &mut dyn Write, lines: Vec<Line<(Vec<u8>, u64)>>| {
            for line in lines {
                let (bytes, count) = skipped.take(&name, line)?.unwrap_or_default();
                match &mut out {
                    Some((out, _)) => {
                        out.write_ids(&bytes, count)?;
                        out.end_document()?;
                    }
                    None => {
                        write(stdout, bytes.get(1..).unwrap_or_default())?;
                        write(stdout, "\n")?;
                    }
                }
            }
            Ok(())
        };
        session.for_each_block_of_lines(self.input, self.threads, work, sink)
    }

    /// As `ids`, each as soon as it is certain.
    fn stream(&self, session: &mut Session<'_>) -> Result<(), CliError> {
        let name = self.input.name();
        let failed = |error: StreamError| match error.encode_error() {
            Some(error) => CliError::encoding(&name, 0, error),
            None if error.is_unsupported() => CliError::Vocabulary(error.to_string()),
            None => CliError::Input(format!("{name}: {error}")),
        };
        let mut stream = Stream::new(self.encoder).map_err(failed)?;
        let mut reader = self.input.open(session.stdin)?.reader;
        let mut buffer = vec![0; STREAM_BYTES];
        let mut separated = Separated::default();
        let mut ids = Vec::new();
        let mut text = Vec::new();
        loop {
            let read = match reader.read(&mut buffer) {
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(CliError::reading(&name, error)),
            };
            let pushed = match buffer.get(..read) {
                Some(bytes) if read > 0 => stream.push(bytes, &mut ids),
                _ => stream.finish(&mut ids),
            };
            // What was certain before an error is right.
            push_ids(&mut text, &ids, b' ');
            separated.write(session.stdout, &text)?;
            ids.clear();
            text.clear();
            pushed.map_err(failed)?;
            session.stdout.flush().map_err(CliError::writing)?;
            if read == 0 {
                return write(session.stdout, "\n");
            }
        }
    }

    /// One token a line: id, start, end, piece.
    fn lines(&self, session: &mut Session<'_>, has_header: bool) -> Result<(), CliError> {
        if has_header {
            write_line(session.stdout, format!("==> {} <==", self.input.name()))?;
        }
        let work = |block: &Block| {
            let mut text = Vec::new();
            for (id, range) in self.encode_with_offsets(block)? {
                push_number(&mut text, u64::from(id));
                for offset in [range.start, range.end] {
                    text.push(b'\t');
                    push_number(&mut text, block.start + offset as u64);
                }
                text.push(b'\t');
                text.extend_from_slice(escaped(&block.bytes[range]).as_bytes());
                text.push(b'\n');
            }
            Ok(text)
        };
        session.for_each_block(self.input, self.cutter, self.threads, work, |out, text| {
            write(out, text)
        })
    }

    /// A JSON object on one line. The offsets stand behind all tokens, so they wait elsewhere while
    /// these are written: in memory, and in a temporary file once they are many. Where the input
    /// fails, what was encoded before stays, and the object ends with the error, so that each line is
    /// whole.
    fn json(&self, session: &mut Session<'_>, with_offsets: bool) -> Result<(), CliError> {
        let name = json_string(&self.input.name());
        write(session.stdout, format!("{{\"file\":{name},\"tokens\":["))?;
        let work = |block: &Block| {
            let (mut tokens, mut offsets) = (Vec::new(), Vec::new());
            if !with_offsets {
                push_ids(&mut tokens, &self.encode(block)?, b',');
                return Ok((tokens, offsets));
            }
            for (id, range) in self.encode_with_offsets(block)? {
                push_ids(&mut tokens, &[id], b',');
                offsets.extend_from_slice(b",[");
                push_number(&mut offsets, block.start + range.start as u64);
                offsets.push(b',');
                push_number(&mut offsets, block.start + range.end as u64);
                offsets.push(b']');
            }
            Ok((tokens, offsets))
        };
        let mut separated = Separated::default();
        let mut spool = SpooledTempFile::new(SPOOLED_BYTES);
        let sink = |out: &mut dyn Write, (tokens, offsets): (Vec<u8>, Vec<u8>)| {
            separated.write(out, &tokens)?;
            spool.write_all(&offsets).map_err(spooling)
        };
        let encoded = session.for_each_block(self.input, self.cutter, self.threads, work, sink);
        write(session.stdout, "]")?;
        if with_offsets {
            write(session.stdout, ",\"offsets\":[")?;
            spool.seek(SeekFrom::Start(0)).map_err(spooling)?;
            let mut separated = Separated::default();
            let mut buffer = vec![0; 1 << 16];
            loop {
                let read = spool.read(&mut buffer).map_err(spooling)?;
                if read == 0 {
                    break;
                }
                separated.write(session.stdout, &buffer[..read])?;
            }
            write(session.stdout, "]")?;
        }
        if let Some(message) = encoded.as_ref().err().and_then(CliError::message) {
            let message = json_string(message);
            write(session.stdout, format!(",\"error\":{message}"))?;
        }
        write(session.stdout, "}\n")?;
        encoded
    }

    fn encode(&self, block: &Block) -> Result<Vec<TokenId>, CliError> {
        self.encoder.encode(&self.input.name(), block)
    }

    fn encode_with_offsets(
        &self,
        block: &Block,
    ) -> Result<impl Iterator<Item = (TokenId, Range<usize>)> + use<>, CliError> {
        self.encoder.encode_with_offsets(&self.input.name(), block)
    }
}

fn spooling(error: io::Error) -> CliError {
    CliError::Input(format!(
        "cannot keep the offsets in a temporary file: {error}"
    ))
}

/// Writes parts in which each item has its separator before it, but for the first one of all.
#[derive(Default)]
struct Separated {
    has_begun: bool,
}

impl Separated {
    fn write(&mut self, out: &mut dyn Write, text: &[u8]) -> Result<(), CliError> {
        let text = match text.split_first() {
            Some((_, rest)) if !self.has_begun => rest,
            _ => text,
        };
        self.has_begun |= !text.is_empty();
        write(out, text)
    }
}

#[cfg(test)]
mod tests {
    use bytepair::Tokenizer;

    use crate::commands::testing::{output, run_with};

    fn corpus(name: &str) -> Vec<u8> {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../bench-data/corpora/");
        std::fs::read(format!("{folder}{name}")).expect("a corpus")
    }

    #[test]
    fn ids_are_those_of_the_whole_text_for_any_block_size_and_number_of_threads() {
        let tokenizer = Tokenizer::o200k_base();
        for name in ["adversarial.txt", "mixed.txt", "chinese.txt"] {
            let text = corpus(name);
            let ids = tokenizer.encode_bytes(&text).expect("encodes");
            let expected: Vec<String> = ids.iter().map(u32::to_string).collect();
            let expected = expected.join(" ") + "\n";
            for block_bytes in [50, 5000, 1 << 20] {
                for threads in ["1", "2", "5"] {
                    let printed = output(&["encode", "--threads", threads], &text, block_bytes);
                    assert!(printed == expected, "{name}, {block_bytes}, {threads}");
                }
            }
        }
    }

    #[test]
    fn each_line_of_json_lines_is_a_document_for_any_block_size_and_number_of_threads() {
        let texts = [
            "Hello, world",
            "",
            "two\nlines",
            "naïve 龘",
            "<|endoftext|>",
        ];
        let tokenizer = Tokenizer::o200k_base();
        let (mut input, mut expected) = (String::new(), String::new());
        for (number, text) in texts.iter().cycle().take(100).enumerate() {
            let line = serde_json::json!({"id": number, "text": text});
            input += &format!("{line}\n");
            let ids = tokenizer.encode(text).expect("encodes");
            let ids: Vec<String> = ids.iter().map(u32::to_string).collect();
            expected += &(ids.join(" ") + "\n");
            if number % 7 == 0 {
                input += " \n"; // No document.
            }
        }
        for block_bytes in [5, 300, 1 << 20] {
            for threads in ["1", "3"] {
                let arguments = ["encode", "--jsonl", "text", "--threads", threads];
                assert_eq!(output(&arguments, input.as_bytes(), block_bytes), expected);
            }
        }
    }

    #[test]
    fn a_line_that_is_no_document_stops_or_is_counted() {
        let good = r#"{"text":"Hello"}"#;
        for (bad, reason) in [
            ("{", "line 2: this is no JSON"),
            ("[1]", "line 2: this is no JSON object"),
            (r#"{"other":"x"}"#, r#"line 2: there is no field "text""#),
            (r#"{"text":7}"#, r#"line 2: the field "text" is no text"#),
            (
                r#"{"text":"<|endoftext|>"}"#,
                "line 2: the text holds the special token",
            ),
        ] {
            let input = format!("{good}\n{bad}\n{good}");
            let arguments = [
                "encode",
                "--jsonl",
                "text",
                "--forbid-special",
                "--threads",
                "2",
            ];
            for block_bytes in [4, 1000] {
                let (_, result) = run_with(&arguments, input.as_bytes(), block_bytes);
                let error = result.expect_err("stops");
                let message = error.message().expect("a message");
                assert!(message.contains(reason), "{message}");
            }
        }
    }

    #[test]
    fn a_stream_prints_the_ids_of_the_whole_text() {
        for name in ["adversarial.txt", "mixed.txt", "chinese.txt"] {
            let text = corpus(name);
            let whole = output(&["encode"], &text, 1 << 20);
            assert!(
                output(&["encode", "--stream"], &text, 1 << 20) == whole,
                "{name}"
            );
        }
        assert_eq!(output(&["encode", "--stream"], b"", 10), "\n");
        let arguments = ["encode", "--stream", "--forbid-special"];
        let (printed, result) = run_with(&arguments, b"some words<|endoftext|>", 10);
        let error = result.expect_err("forbidden");
        assert_eq!(error.exit_status(), 1);
        assert!(
            error
                .message()
                .is_some_and(|message| message.ends_with("(at byte 10)"))
        );
        // What stands before it has been printed.
        let before = output(&["encode"], b"some words", 10);
        assert_eq!(printed, before.trim_end().as_bytes());
    }

    #[test]
    fn offsets_count_from_the_start_of_the_input_and_cover_it() {
        let text = corpus("mixed.txt");
        let whole = Tokenizer::o200k_base().encode_with_offsets(&text);
        let whole = whole.expect("encodes");
        for threads in ["1", "3"] {
            let json = ["encode", "--json", "--offsets", "--threads", threads];
            let json: serde_json::Value =
                serde_json::from_str(&output(&json, &text, 777)).expect("JSON");
            let ranges = whole.byte_ranges.iter().map(|r| [r.start, r.end]);
            let ranges: Vec<[usize; 2]> = ranges.collect();
            assert!(json["offsets"] == serde_json::json!(ranges));
            assert!(json["tokens"] == serde_json::json!(whole.ids));

            let lines = ["encode", "--offsets", "--threads", threads];
            let lines = output(&lines, &text, 777);
            let tokens = whole.ids.iter().zip(&whole.byte_ranges);
            assert_eq!(lines.lines().count(), whole.ids.len());
            for (line, (id, range)) in lines.lines().zip(tokens) {
                let start = format!("{id}\t{}\t{}\t", range.start, range.end);
                assert!(line.starts_with(&start), "{line} begins with {start}");
            }
        }
    }

    #[test]
    fn no_text_is_an_empty_line_and_an_empty_list() {
        assert_eq!(output(&["encode"], b"", 10), "\n");
        assert_eq!(output(&["encode", "--offsets"], b"", 10), "");
        let json = output(&["encode", "--json", "--offsets"], b"", 10);
        assert_eq!(json, "{\"file\":\"-\",\"tokens\":[],\"offsets\":[]}\n");
        let json = output(&["encode", "--json"], b"", 10);
        assert_eq!(json, "{\"file\":\"-\",\"tokens\":[]}\n");
    }

    #[test]
    fn a_forbidden_special_token_is_reported_where_it_stands_in_the_input() {
        let text = "some words ".repeat(20) + "<|endoftext|> and more";
        for block_bytes in [4, 30, 1000] {
            for threads in ["1", "4"] {
                let arguments = ["encode", "--forbid-special", "--threads", threads];
                let (_, result) = run_with(&arguments, text.as_bytes(), block_bytes);
                let error = result.expect_err("forbidden");
                assert_eq!(error.exit_status(), 1);
                let message = error.message().expect("a message");
                assert!(message.contains("<|endoftext|>"), "{message}");
                assert!(message.ends_with("(at byte 220)"), "{message}");
            }
        }
    }

    #[test]
    fn a_json_line_is_whole_where_the_input_fails() {
        let text = "some words ".repeat(20) + "<|endoftext|> and more";
        for options in [&["--json"][..], &["--json", "--offsets"]] {
            let arguments = [&["encode", "--forbid-special"], options].concat();
            let (output, result) = run_with(&arguments, text.as_bytes(), 30);
            assert_eq!(result.expect_err("forbidden").exit_status(), 1);
            let json: serde_json::Value = serde_json::from_slice(&output).expect("JSON");
            let error = json["error"].as_str().expect("an error");
            assert!(error.ends_with("(at byte 220)"), "{error}");
            assert!(json["tokens"].is_array());
        }
    }
}

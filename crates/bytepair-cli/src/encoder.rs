//! What makes tokens of texts, whatever a file asks for.

use std::ops::Range;
use std::path::PathBuf;

use bytepair::{
    EncodeError, InputOptions, Pipeline, PipelineCuts, PipelineParallel, ReadLimits, TokenId,
    Tokenizer,
};

use crate::args::{SpecialArgs, TokenizerArgs};
use crate::cuts::Cutter;
use crate::error::CliError;
use crate::input::Block;
use crate::load::{Files, Named, specials_of};

/// A tokenizer, or a pipeline where a `tokenizer.json` says more than one does.
pub(crate) enum Encoder {
    Tokenizer(Tokenizer),
    Pipeline(Box<Steps>),
}

/// A pipeline, and how it is used.
pub(crate) struct Steps {
    pub(crate) pipeline: Pipeline,
    /// Whether the post-processor adds its tokens.
    add_special: bool,
    /// Where texts may be cut, or why they may not.
    cuts: Result<PipelineCuts, String>,
    /// For a document on the thread that has it.
    alone: PipelineParallel,
    /// For an input that cannot be cut in blocks.
    together: PipelineParallel,
}

impl Steps {
    fn new(pipeline: Pipeline, add_special: bool, threads: usize) -> Self {
        let parallel = pipeline.parallel().add_special_tokens(add_special);
        Self {
            cuts: match add_special {
                true => Err("tokens are added around the whole".to_owned()),
                false => pipeline.cuts().map_err(|error| error.to_string()),
            },
            alone: parallel.clone().threads(1),
            together: parallel.threads(threads),
            pipeline,
            add_special,
        }
    }

    fn encode(&self, name: &str, block: &Block) -> Result<Vec<TokenId>, CliError> {
        let text = text_of(name, block)?;
        let ids = match &self.cuts {
            Ok(cuts) => cuts.encode(text, block.start as usize),
            Err(_) => self.together.encode(text),
        };
        // Places are those in the whole.
        ids.map_err(|error| CliError::encoding(name, 0, &error))
    }

    fn count(&self, name: &str, block: &Block) -> Result<usize, CliError> {
        let count = match (&self.cuts, block.start) {
            (Ok(_), 1..) => return Ok(self.encode(name, block)?.len()),
            (Ok(_), 0) => self.alone.count(text_of(name, block)?),
            (Err(_), _) => self.together.count(text_of(name, block)?),
        };
        count.map_err(|error| CliError::encoding(name, 0, &error))
    }
}

impl Encoder {
    /// The encoder of `args`. With `add_special` tokens are added around each text. A pipeline has this many
    /// threads.
    pub(crate) fn load(
        args: &TokenizerArgs,
        specials: &SpecialArgs,
        add_special: bool,
        threads: usize,
    ) -> Result<Self, CliError> {
        let file = pipeline_file(args)?;
        if add_special && file.is_none() {
            return Err(CliError::Usage(
                "--add-special goes with a tokenizer.json: no other file says what to add"
                    .to_owned(),
            ));
        }
        let tokenizer = match add_special {
            true => None,
            false => Some(Named::load_supported(args, specials)?),
        };
        match (tokenizer, file) {
            (Some(Ok(named)), _) => Ok(Self::Tokenizer(named.tokenizer)),
            (Some(Err(error)), None) => Err(error),
            (_, Some(file)) => {
                if !args.special_token.is_empty() {
                    let message = "--special-token does not go with a file of steps";
                    return Err(CliError::Usage(message.to_owned()));
                }
                let failed = |error: &dyn std::fmt::Display| {
                    CliError::Vocabulary(format!("{}: {error}", file.display()))
                };
                let limits = ReadLimits::default();
                let bytes = bytepair::read_file(&file, &limits)
                    .map_err(|error| CliError::Vocabulary(error.to_string()))?;
                let pipeline = match file.extension().is_some_and(|end| end == "model") {
                    true => Pipeline::from_sentencepiece_model(&bytes, &limits),
                    false => Pipeline::from_tokenizer_json(&bytes, &limits),
                };
                let pipeline = pipeline
                    .and_then(|pipeline| pipeline.with_specials(specials_of(specials)))
                    .map_err(|error| failed(&error))?;
                Ok(Self::Pipeline(Box::new(Steps::new(
                    pipeline,
                    add_special,
                    threads,
                ))))
            }
            (None, None) => Err(CliError::Usage("there is no tokenizer".to_owned())),
        }
    }

    /// Where texts may be cut, or why they may not.
    pub(crate) fn cutter(&self, with_offsets: bool) -> Result<Cutter, String> {
        match self {
            Self::Tokenizer(tokenizer) => Cutter::new(&[tokenizer]),
            Self::Pipeline(_) if with_offsets => {
                Err("the post-processor of its file sees all offsets".to_owned())
            }
            Self::Pipeline(steps) => {
                let cuts = steps.cuts.clone()?;
                Ok(Cutter::Steps(Box::new(cuts)))
            }
        }
    }

    pub(crate) fn max_id(&self) -> Option<TokenId> {
        match self {
            Self::Tokenizer(tokenizer) => tokenizer.max_id(),
            Self::Pipeline(steps) => steps.pipeline.max_id(),
        }
    }

    pub(crate) fn clear_scratch(&self) {
        match self {
            Self::Tokenizer(tokenizer) => tokenizer.clear_scratch(),
            Self::Pipeline(steps) => steps.pipeline.clear_scratch(),
        }
    }

    /// The tokens of a text, or why there are none.
    pub(crate) fn encode_text(&self, text: &str) -> Result<Vec<TokenId>, String> {
        let ids = match self {
            Self::Tokenizer(tokenizer) => tokenizer.encode(text),
            Self::Pipeline(steps) => steps.alone.encode(text),
        };
        ids.map_err(|error| CliError::reason(&error))
    }

    /// The number of tokens of a text.
    pub(crate) fn count_text(&self, text: &str) -> Result<usize, String> {
        let count = match self {
            Self::Tokenizer(tokenizer) => tokenizer.count(text),
            Self::Pipeline(steps) => steps.alone.count(text),
        };
        count.map_err(|error| CliError::reason(&error))
    }

    /// The tokens of a block of the input `name`.
    pub(crate) fn encode(&self, name: &str, block: &Block) -> Result<Vec<TokenId>, CliError> {
        match self {
            Self::Tokenizer(tokenizer) => {
                let ids = tokenizer.encode_bytes(&block.bytes);
                ids.map_err(|error| CliError::encoding(name, block.start, &error))
            }
            Self::Pipeline(steps) => steps.encode(name, block),
        }
    }

    /// The tokens of a block, each with the bytes of the block that it stands for.
    pub(crate) fn encode_with_offsets(
        &self,
        name: &str,
        block: &Block,
    ) -> Result<impl Iterator<Item = (TokenId, Range<usize>)> + use<>, CliError> {
        let failed = |error: EncodeError| CliError::encoding(name, block.start, &error);
        let (ids, ranges) = match self {
            Self::Tokenizer(tokenizer) => {
                let encoding = tokenizer.encode_with_offsets(&block.bytes);
                let encoding = encoding.map_err(failed)?;
                (encoding.ids, encoding.byte_ranges)
            }
            Self::Pipeline(steps) => {
                let options = InputOptions {
                    add_special_tokens: steps.add_special,
                    ..InputOptions::default()
                };
                let input = steps
                    .pipeline
                    .model_input(text_of(name, block)?, None, &options);
                let input = input.map_err(|error| CliError::Input(format!("{name}: {error}")))?;
                (input.ids().to_vec(), input.offsets().to_vec())
            }
        };
        Ok(ids.into_iter().zip(ranges))
    }

    /// The number of tokens of a block.
    pub(crate) fn count(&self, name: &str, block: &Block) -> Result<usize, CliError> {
        match self {
            Self::Tokenizer(tokenizer) => {
                let count = tokenizer.count(&block.bytes);
                count.map_err(|error| CliError::encoding(name, block.start, &error))
            }
            Self::Pipeline(steps) => steps.count(name, block),
        }
    }

    /// The number of tokens of a block, if it is at most `limit`.
    pub(crate) fn count_up_to(
        &self,
        name: &str,
        block: &Block,
        limit: usize,
    ) -> Result<Option<usize>, CliError> {
        match self {
            Self::Tokenizer(tokenizer) => {
                let count = tokenizer.count_up_to(&block.bytes, limit);
                count.map_err(|error| CliError::encoding(name, block.start, &error))
            }
            Self::Pipeline(_) => {
                let count = self.count(name, block)?;
                Ok((count <= limit).then_some(count))
            }
        }
    }
}

/// The text of a block: steps are about characters.
fn text_of<'b>(name: &str, block: &'b Block) -> Result<&'b str, CliError> {
    std::str::from_utf8(&block.bytes).map_err(|error| {
        let at = block.start + error.valid_up_to() as u64;
        CliError::Input(format!(
            "{name}: not UTF-8, which a file of steps needs (at byte {at})"
        ))
    })
}

/// The file of steps that the options name, if they do.
fn pipeline_file(args: &TokenizerArgs) -> Result<Option<PathBuf>, CliError> {
    let Some(path) = &args.tokenizer else {
        return Ok(None);
    };
    Ok(match Files::of(path, args.merges.as_ref())? {
        Files::TokenizerJson(file) | Files::Model(file) => Some(file),
        Files::Gpt2 { .. } | Files::Tiktoken(_) | Files::Tekken(_) => None,
    })
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use bytepair::{InputOptions, Pipeline, ReadLimits, Specials};

    use crate::commands::testing::{output, run_with};

    /// BERT's steps over a few tokens.
    const BERT: &str = r###"{
        "added_tokens": [
            {"id": 20, "content": "[CLS]", "special": true}, {"id": 21, "content": "[SEP]", "special": true}
        ],
        "normalizer": {
            "type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "lowercase": true
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 21], "cls": ["[CLS]", 20]},
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": false},
        "model": {
            "type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": {"[UNK]": 0, "play": 1, "##ing": 2, "cafe": 3, ",": 4, "un": 5, "##play": 6}
        }
    }"###;

    /// Llama's way to write blanks.
    const BLANKS: &str = r#"{
        "normalizer": {"type": "Sequence", "normalizers": [
            {"type": "Lowercase"}, {"type": "Prepend", "prepend": "_"},
            {"type": "Replace", "pattern": {"String": " "}, "content": "_"}
        ]},
        "model": {
            "type": "BPE", "unk_token": "?", "merges": [["_", "a"], ["a", "b"]],
            "vocab": {"?": 0, "_": 1, "a": 2, "b": 3, "_a": 4, "ab": 5}
        }
    }"#;

    fn folder_with(file: &str) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("tokenizer.json");
        std::fs::write(&path, file).expect("written");
        (folder, path)
    }

    fn line(ids: &[u32]) -> String {
        let ids: Vec<String> = ids.iter().map(u32::to_string).collect();
        format!("{}\n", ids.join(" "))
    }

    #[test]
    fn files_of_steps_are_encoded_counted_streamed_and_validated_in_blocks() {
        let texts = [
            "Cafe\u{301}, unplaying [SEP] play 中,\r\n\t".repeat(40),
            "Ab a  b ab\nAB ".repeat(70),
        ];
        for (file, text) in [BERT, BLANKS].into_iter().zip(texts) {
            let (_folder, path) = folder_with(file);
            let path = path.to_str().expect("text");
            let limits = ReadLimits::default();
            let pipeline = Pipeline::from_tokenizer_json(file.as_bytes(), &limits).expect("loads");
            let allowed = pipeline
                .with_specials(Specials::AllowAll)
                .expect("specials");
            for (special, pipeline) in [(false, pipeline), (true, allowed)] {
                let ids = pipeline.encode(&text).expect("tokens");
                let with = |command: &str, more: &[&str], input: &[u8], bytes: usize| {
                    let mut arguments = vec![command, "--tokenizer", path];
                    if special {
                        arguments.push("--special");
                    }
                    arguments.extend(more);
                    output(&arguments, input, bytes)
                };
                for bytes in [1, 30, 1 << 20] {
                    for threads in ["1", "2"] {
                        let threads = ["--threads", threads];
                        assert_eq!(with("encode", &threads, text.as_bytes(), bytes), line(&ids));
                        let count = format!("{}\n", ids.len());
                        assert_eq!(with("count", &threads, text.as_bytes(), bytes), count);
                        let json = with(
                            "encode",
                            &["--json", threads[0], threads[1]],
                            text.as_bytes(),
                            bytes,
                        );
                        assert!(
                            json.contains(&format!("[{}]", line(&ids).trim().replace(' ', ",")))
                        );
                    }
                    let streamed = with("encode", &["--stream"], text.as_bytes(), bytes);
                    assert_eq!(streamed, line(&ids));
                }
                let jsonl = serde_json::json!({ "text": text }).to_string() + "\n";
                assert_eq!(
                    with("encode", &["--jsonl", "text"], jsonl.as_bytes(), 100),
                    line(&ids)
                );
                // Blanks are lost by both decoders, and what is decoded is encoded to the same again.
                let decoded = pipeline.decode(&ids).expect("known ids");
                if pipeline.encode(&decoded).expect("tokens") == ids {
                    assert_eq!(with("validate", &[], line(&ids).as_bytes(), 7), "");
                }
            }
        }
    }

    #[test]
    fn tokens_of_the_post_processor_come_around_the_whole_input_where_asked_for() {
        let (_folder, path) = folder_with(BERT);
        let path = path.to_str().expect("text");
        let text = "play unplaying, ".repeat(8_000);
        let pipeline = Pipeline::from_tokenizer_json(BERT.as_bytes(), &ReadLimits::default());
        let pipeline = pipeline.expect("loads");
        let input = pipeline.model_input(&text, None, &InputOptions::default());
        let ids = input.expect("tokens").ids().to_vec();
        for threads in ["1", "2"] {
            let options = ["--tokenizer", path, "--add-special", "--threads", threads];
            let encoded = output(&[&["encode"][..], &options].concat(), text.as_bytes(), 1000);
            assert!(encoded == line(&ids));
            let counted = output(&[&["count"][..], &options].concat(), text.as_bytes(), 1000);
            assert_eq!(counted, format!("{}\n", ids.len()));
        }
        let lines = "{\"text\":\"play\"}\n{\"text\":\"\"}\n";
        let arguments = [
            "encode",
            "--tokenizer",
            path,
            "--add-special",
            "--jsonl",
            "text",
        ];
        assert_eq!(output(&arguments, lines.as_bytes(), 5), "20 1 21\n20 21\n");
    }

    #[test]
    fn places_of_errors_are_those_in_the_whole_input() {
        let (_folder, path) = folder_with(&BLANKS.replace("\"unk_token\": \"?\",", ""));
        let path = path.to_str().expect("text");
        let text = format!("{}\u{4e2d}", "ab ".repeat(100));
        for bytes in [10, 1 << 20] {
            for command in ["encode", "count"] {
                let (_, result) = run_with(&[command, "--tokenizer", path], text.as_bytes(), bytes);
                let message = result.expect_err("no token").message().map(str::to_owned);
                assert!(
                    message.as_ref().is_some_and(|it| it.contains("300")),
                    "{message:?}"
                );
            }
        }
        let (_, result) = run_with(&["encode", "--tokenizer", path], b"ab ab \xFF ab", 4);
        let message = result.expect_err("not UTF-8").message().map(str::to_owned);
        assert!(
            message.as_ref().is_some_and(|it| it.contains("at byte 6")),
            "{message:?}"
        );
    }

    #[test]
    fn ids_that_the_steps_do_not_make_are_told_with_their_index() {
        let (_folder, path) = folder_with(BERT);
        let path = path.to_str().expect("text");
        // "cafe" and "un" "##play"; a word of its own piece would be another.
        assert_eq!(
            output(&["validate", "--tokenizer", path], b"3 5 6 4", 3),
            ""
        );
        // The text of the unknown token is three words that are unknown.
        let (stdout, result) = run_with(&["validate", "--tokenizer", path], b"3 0 1", 3);
        assert_eq!(String::from_utf8_lossy(&stdout), "2\n");
        assert_eq!(result.expect_err("unknown").exit_status(), 1);
    }
}

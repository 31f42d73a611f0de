//! What makes tokens of texts, whatever a file asks for.

use std::ops::Range;
use std::path::PathBuf;

use bytepair::{EncodeError, InputError, InputOptions, Pipeline, ReadLimits, TokenId, Tokenizer};

use crate::args::{SpecialArgs, TokenizerArgs};
use crate::cuts::Cutter;
use crate::error::CliError;
use crate::input::Block;
use crate::load::{Files, Named, specials_of};

/// A tokenizer, or a pipeline where a `tokenizer.json` says more than one does.
pub(crate) enum Encoder {
    Tokenizer(Tokenizer),
    Pipeline {
        pipeline: Pipeline,
        /// Whether the post-processor adds its tokens.
        add_special: bool,
    },
}

impl Encoder {
    /// The encoder of `args`. With `add_special` tokens are added around each text.
    pub(crate) fn load(
        args: &TokenizerArgs,
        specials: &SpecialArgs,
        add_special: bool,
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
                Ok(Self::Pipeline {
                    pipeline,
                    add_special,
                })
            }
            (None, None) => Err(CliError::Usage("there is no tokenizer".to_owned())),
        }
    }

    /// Where texts may be cut, or why they may not.
    pub(crate) fn cutter(&self) -> Result<Cutter, String> {
        match self {
            Self::Tokenizer(tokenizer) => Cutter::new(&[tokenizer]),
            Self::Pipeline { .. } => Err("the steps of its file see the whole text".to_owned()),
        }
    }

    /// The tokenizer, where it is one.
    pub(crate) fn tokenizer(&self) -> Option<&Tokenizer> {
        match self {
            Self::Tokenizer(tokenizer) => Some(tokenizer),
            Self::Pipeline { .. } => None,
        }
    }

    pub(crate) fn max_id(&self) -> Option<TokenId> {
        match self {
            Self::Tokenizer(tokenizer) => tokenizer.max_id(),
            Self::Pipeline { pipeline, .. } => pipeline.max_id(),
        }
    }

    pub(crate) fn clear_scratch(&self) {
        match self {
            Self::Tokenizer(tokenizer) => tokenizer.clear_scratch(),
            Self::Pipeline { pipeline, .. } => pipeline.clear_scratch(),
        }
    }

    /// The tokens of a text, or why there are none.
    pub(crate) fn encode_text(&self, text: &str) -> Result<Vec<TokenId>, String> {
        let reason = |error: &EncodeError| CliError::reason(error);
        match self {
            Self::Tokenizer(tokenizer) => tokenizer.encode(text).map_err(|error| reason(&error)),
            Self::Pipeline {
                pipeline,
                add_special: false,
            } => pipeline.encode(text).map_err(|error| reason(&error)),
            Self::Pipeline { pipeline, .. } => {
                let input = pipeline.model_input(text, None, &InputOptions::default());
                let input = input.map_err(|error| reason_of_input(&error))?;
                Ok(input.ids().to_vec())
            }
        }
    }

    /// The number of tokens of a text.
    pub(crate) fn count_text(&self, text: &str) -> Result<usize, String> {
        match self {
            Self::Tokenizer(tokenizer) => {
                let count = tokenizer.count(text);
                count.map_err(|error| CliError::reason(&error))
            }
            Self::Pipeline {
                pipeline,
                add_special: false,
            } => {
                let count = pipeline.count(text);
                count.map_err(|error| CliError::reason(&error))
            }
            Self::Pipeline { .. } => Ok(self.encode_text(text)?.len()),
        }
    }

    /// The tokens of a block of the input `name`.
    pub(crate) fn encode(&self, name: &str, block: &Block) -> Result<Vec<TokenId>, CliError> {
        match self {
            Self::Tokenizer(tokenizer) => {
                let ids = tokenizer.encode_bytes(&block.bytes);
                ids.map_err(|error| CliError::encoding(name, block.start, &error))
            }
            Self::Pipeline {
                pipeline,
                add_special: false,
            } => {
                let ids = pipeline.encode(text_of(name, block)?);
                ids.map_err(|error| CliError::encoding(name, block.start, &error))
            }
            Self::Pipeline { .. } => {
                let ids = self.encode_text(text_of(name, block)?);
                ids.map_err(|reason| CliError::Input(format!("{name}: {reason}")))
            }
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
            Self::Pipeline {
                pipeline,
                add_special,
            } => {
                let options = InputOptions {
                    add_special_tokens: *add_special,
                    ..InputOptions::default()
                };
                let input = pipeline.model_input(text_of(name, block)?, None, &options);
                let input = input.map_err(|error| {
                    CliError::Input(format!("{name}: {}", reason_of_input(&error)))
                })?;
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
            Self::Pipeline { .. } => {
                let count = self.count_text(text_of(name, block)?);
                count.map_err(|reason| CliError::Input(format!("{name}: {reason}")))
            }
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
            Self::Pipeline { .. } => {
                let count = self.count(name, block)?;
                Ok((count <= limit).then_some(count))
            }
        }
    }
}

fn reason_of_input(error: &InputError) -> String {
    error.to_string()
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

/// The `tokenizer.json` that the options name, if they do.
fn pipeline_file(args: &TokenizerArgs) -> Result<Option<PathBuf>, CliError> {
    let Some(path) = &args.tokenizer else {
        return Ok(None);
    };
    Ok(match Files::of(path, args.merges.as_ref())? {
        Files::TokenizerJson(file) | Files::Model(file) => Some(file),
        Files::Gpt2 { .. } | Files::Tiktoken(_) | Files::Tekken(_) => None,
    })
}

//! What a file says, step by step: read into types, and not yet made ready to run.

use bpe_core::ReadLimits;
use serde_json::Value;

use crate::error::LoadError;
use crate::pipeline::file::{AddedToken, File, Model};
use crate::pipeline::node::Node;
use crate::pipeline::normalizers::Normalizer;
use crate::pipeline::pre_tokenizers::PreTokenizer;

/// The parts of a pipeline, in the order in which a text meets them.
pub(crate) struct Description {
    pub(crate) added_tokens: Vec<AddedToken>,
    pub(crate) normalizers: Vec<Normalizer>,
    /// Each with its place in the file.
    pub(crate) pre_tokenizers: Vec<(String, PreTokenizer)>,
    pub(crate) model: Model,
    /// As they stand in the file.
    pub(crate) source: Source,
}

/// The parts of a file that are written back as they were read.
#[derive(Debug, Clone, Default)]
pub(crate) struct Source {
    pub(crate) truncation: Value,
    pub(crate) padding: Value,
    pub(crate) normalizer: Value,
    pub(crate) pre_tokenizer: Value,
    pub(crate) post_processor: Value,
    pub(crate) decoder: Value,
}

impl Description {
    /// What a `tokenizer.json` says.
    ///
    /// # Errors
    ///
    /// As `Pipeline::from_tokenizer_json`, but for what only shows when the parts are put together.
    pub(crate) fn read(file: &[u8], limits: &ReadLimits) -> Result<Self, LoadError> {
        let file = File::read(file, limits)?;
        for (index, token) in file.added_tokens.iter().enumerate() {
            let wrong = |what: &str| LoadError::at(format!("added_tokens[{index}].content"), what);
            if token.content.is_empty() {
                return Err(wrong("the text is empty"));
            }
            if token.content.len() > limits.token {
                return Err(wrong(&format!("the token is over {} bytes", limits.token)));
            }
        }
        Ok(Self {
            normalizers: Normalizer::read_all(&Node::new("normalizer", &file.normalizer))?,
            pre_tokenizers: PreTokenizer::read_all(&Node::new(
                "pre_tokenizer",
                &file.pre_tokenizer,
            ))?,
            added_tokens: file.added_tokens,
            model: file.model,
            source: Source {
                truncation: file.truncation,
                padding: file.padding,
                normalizer: file.normalizer,
                pre_tokenizer: file.pre_tokenizer,
                post_processor: file.post_processor,
                decoder: file.decoder,
            },
        })
    }

    /// Whether the normalizers leave a text in the byte-level alphabet.
    pub(crate) fn normalizes_to_bytes(&self) -> bool {
        let mut steps = self.normalizers.iter();
        steps.any(|step| matches!(step, Normalizer::ByteLevel))
    }

    /// Whether a piece may be the text of an added token though that was looked for before: a step may make
    /// it of another text, or a longer token that may only be a word was found in its place.
    pub(crate) fn may_be_piece(&self, token: &AddedToken) -> bool {
        let content = token.content.as_str();
        let sets = |step: &PreTokenizer| match step {
            PreTokenizer::Metaspace { replacement, .. } => content.contains(*replacement),
            _ => false,
        };
        !self.normalizers.is_empty()
            || self.added_tokens.iter().any(|token| token.single_word)
            || (self.is_byte_level() && !content.bytes().all(|byte| byte.is_ascii_graphic()))
            || self.pre_tokenizers.iter().any(|(_, step)| sets(step))
    }

    /// Whether tokens are spelled in the byte-level alphabet: whether a text goes through it.
    pub(crate) fn is_byte_level(&self) -> bool {
        let mut steps = self.pre_tokenizers.iter();
        self.normalizes_to_bytes()
            || steps.any(|(_, step)| matches!(step, PreTokenizer::ByteLevel { .. }))
    }
}

//! The whole way from a text to the tokens that a model is given, as Hugging Face's `tokenizer.json`
//! describes it: added tokens, normalizer, pre-tokenizer, model, post-processor, decoder.
//!
//! Whatever the inner [`Tokenizer`] can do is left to it, so that the fast path runs over the caller's
//! text as it is. The rest is done step by step, on a copy of what has to be changed.

mod bpe;
mod decoders;
mod description;
mod file;
mod model_input;
mod node;
mod normalizers;
mod output;
mod plan;
mod post_processors;
mod pre_tokenizers;
mod search;

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use bpe_core::{Dictionary, ReadLimits, TokenId};

pub use model_input::{
    InputError, ModelInput, PadTo, Padding, Side, Truncation, TruncationStrategy,
};
pub use output::{InputOptions, PipelineDecodeStream};

use crate::builder::TokenizerBuilder;
use crate::error::{EncodeError, LoadError};
use crate::pipeline::bpe::Spelling;
use crate::pipeline::description::Description;
use crate::pipeline::output::Output;
use crate::pipeline::plan::Plan;
use crate::specials::Specials;
use crate::tokenizer::Tokenizer;

/// A tokenizer as `tokenizer.json` describes it, with every step before and behind the model.
///
/// Cheap to clone, `Send` and `Sync`.
#[derive(Clone)]
pub struct Pipeline {
    parts: Arc<Parts>,
    /// The tokenizer inside, which matches the added tokens itself.
    tokenizer: Tokenizer,
}

/// What clones share.
struct Parts {
    output: Output,
}

impl Pipeline {
    /// The pipeline of a `tokenizer.json` file's content.
    ///
    /// # Errors
    ///
    /// A file that is malformed or over the limits, or that asks for something that is not done
    /// here ([`LoadError::is_unsupported`]); the error names the field by its path.
    pub fn from_tokenizer_json(file: &[u8], limits: &ReadLimits) -> Result<Self, LoadError> {
        Self::new(&Description::read(file, limits)?, limits)
    }

    fn new(description: &Description, limits: &ReadLimits) -> Result<Self, LoadError> {
        let plan = Plan::new(description)?;
        if !description.normalizers.is_empty() {
            return Err(LoadError::unsupported("normalizer", "this normalizer"));
        }
        if !plan.by_hand.is_empty() || plan.alphabet {
            let what = "this pre-tokenizer";
            return Err(LoadError::unsupported("pre_tokenizer", what));
        }
        let file::Model::Bpe(model) = &description.model else {
            return Err(LoadError::unsupported("model.type", "WordPiece"));
        };
        let spelling = Spelling {
            byte_level: description.is_byte_level(),
            byte_fallback: model.byte_fallback,
            blank: None,
        };
        bpe::check_supported(model, &description.added_tokens, limits)?;
        let dictionary = bpe::dictionary(model, &description.added_tokens, spelling, limits)?;
        let tokenizer = tokenizer(&dictionary, &plan, description)?;
        Ok(Self {
            parts: Arc::new(Parts {
                output: Output::new(description, tokenizer.vocabulary(), spelling)?,
            }),
            tokenizer,
        })
    }

    /// The same pipeline, with special tokens treated in another way; see [`Specials`].
    ///
    /// # Errors
    ///
    /// [`Specials::Allow`] names a text that is no special token.
    pub fn with_specials(&self, specials: Specials) -> Result<Self, LoadError> {
        Ok(Self {
            parts: Arc::clone(&self.parts),
            tokenizer: self.tokenizer.with_specials(specials)?,
        })
    }

    /// The tokens of `text`, without those that a post-processor sets around it. O(bytes).
    ///
    /// # Errors
    ///
    /// As [`Tokenizer::encode`].
    pub fn encode(&self, text: &str) -> Result<Vec<TokenId>, EncodeError> {
        self.tokenizer.encode(text)
    }

    /// The tokens of `text`, each with the bytes of `text` that it stands for.
    fn tokens_with_offsets(
        &self,
        text: &str,
    ) -> Result<(Vec<TokenId>, Vec<Range<usize>>), EncodeError> {
        let encoding = self.tokenizer.encode_with_offsets(text)?;
        Ok((encoding.ids, encoding.byte_ranges))
    }

    fn output(&self) -> &Output {
        &self.parts.output
    }

    /// The bytes of a token of the model.
    fn model_token_bytes(&self, id: TokenId) -> Option<&[u8]> {
        self.tokenizer.vocabulary().token_bytes(id)
    }
}

/// The inner tokenizer.
fn tokenizer(
    dictionary: &Dictionary,
    plan: &Plan,
    description: &Description,
) -> Result<Tokenizer, LoadError> {
    let mut builder = TokenizerBuilder::new(dictionary);
    for (_, pattern) in &plan.stages {
        builder = builder.pattern(pattern.clone());
    }
    for (index, token) in description.added_tokens.iter().enumerate() {
        let ordinary = dictionary.vocabulary().id_of(token.content.as_bytes());
        if let Some(id) = ordinary.filter(|&id| id != token.id) {
            return Err(LoadError::at(
                format!("added_tokens[{index}] ({:?})", token.content),
                format_args!("the vocabulary has the same text with the id {id}"),
            ));
        }
        builder = match token.special {
            true => builder.special_token(&token.content, token.id),
            false => builder.added_token(&token.content, token.id),
        };
    }
    builder.build()
}

impl fmt::Debug for Pipeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pipeline")
            .field("output", &self.parts.output)
            .field("tokenizer", &self.tokenizer)
            .finish_non_exhaustive()
    }
}

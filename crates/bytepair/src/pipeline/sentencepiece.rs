//! SentencePiece's `.model` files as pipelines.

use std::sync::Arc;

use bpe_core::ReadLimits;
use serde_json::{Value, json};

use crate::error::LoadError;
use crate::pipeline::added::AddedTokens;
use crate::pipeline::description::Source;
use crate::pipeline::file::AddedToken;
use crate::pipeline::normalized::Normalized;
use crate::pipeline::normalizers::Normalizer;
use crate::pipeline::output::Output;
use crate::pipeline::plan::Plan;
use crate::pipeline::{Later, Matching, Parts, Pipeline, inner};
use crate::sentencepiece::{SentencePieceModel, SentencePieceNormalizer};
use crate::specials::Specials;

impl Pipeline {
    /// The pipeline of a `.model` file of SentencePiece, of type BPE.
    ///
    /// Its ids are those of the `sentencepiece` library, which adds neither `<s>` nor `</s>` unless it is
    /// asked to; so is the text that [`Pipeline::decode`] gives. Control pieces are special tokens: text
    /// unless [`Specials`] say otherwise, as in the library, which never finds them. User-defined pieces are
    /// always found. `tokenizer.json` has no words for what is done to a text before and behind the model:
    /// written as one, the pipeline has a normalizer and a decoder `SentencePiece`, which readers refuse.
    ///
    /// # Errors
    ///
    /// A file that is malformed or over the limits, with the byte where that shows; one of type Unigram,
    /// Word or Char, or with two pieces of one score that are no runs of one character
    /// ([`LoadError::is_unsupported`]).
    pub fn from_sentencepiece_model(file: &[u8], limits: &ReadLimits) -> Result<Self, LoadError> {
        let model = SentencePieceModel::read(file, limits)?;
        let added_token = |(content, id): &(String, u32), special: bool| AddedToken {
            id: *id,
            content: content.clone(),
            single_word: false,
            lstrip: false,
            rstrip: false,
            normalized: !special,
            special,
        };
        let user_defined = model
            .user_defined
            .iter()
            .map(|piece| added_token(piece, false));
        let controls = model.controls.iter().map(|piece| added_token(piece, true));
        let added_tokens: Vec<AddedToken> = user_defined.chain(controls).collect();
        // User-defined pieces are looked for as they are, in normalized text.
        let added = AddedTokens::new(added_tokens.clone(), &[])?;
        let output = Output::of_sentencepiece(&model, &added_tokens)?;
        let source = source(&model);
        let normalizers = vec![Normalizer::SentencePiece(Arc::new(model.normalizer))];
        let plan = Plan {
            normalizers,
            by_hand: Vec::new(),
            alphabet: false,
            stages: Vec::new(),
            blank: None,
            between_tokens: true,
        };
        let (model, direct, between) = inner(&model.dictionary, &plan, &added)?;
        let parts = Parts {
            added,
            needs_places: false,
            normalizers: plan.normalizers,
            by_hand: plan.by_hand,
            alphabet: plan.alphabet,
            output,
            model,
            direct,
            between,
            source,
            later: Later::default(),
        };
        Ok(Self {
            policy: Arc::new(Matching::new(Specials::default(), &parts)?),
            parts: Arc::new(parts),
        })
    }
}

/// The steps by a name that no reader of `tokenizer.json` takes for another.
fn source(model: &SentencePieceModel) -> Source {
    Source {
        normalizer: model.normalizer.to_json(),
        decoder: json!({"type": "SentencePiece"}),
        ..Source::default()
    }
}

impl SentencePieceNormalizer {
    fn to_json(&self) -> Value {
        json!({
            "type": "SentencePiece",
            "maps_characters": self.maps_characters(),
            "add_dummy_prefix": self.add_dummy_prefix,
            "remove_extra_whitespaces": self.remove_extra_whitespaces,
            "escape_whitespaces": self.escape_whitespaces,
        })
    }

    /// `text` as the library gives it to its model.
    pub(crate) fn apply<'t>(&self, text: Normalized<'t>) -> Normalized<'t> {
        if !text.is_tracked() {
            let normalized = self.normalize(text.text(), None);
            return text.replaced_by(normalized, []);
        }
        let mut stretches = Vec::new();
        let normalized = self.normalize(text.text(), Some(&mut stretches));
        let stretches = stretches
            .into_iter()
            .map(|stretch| (stretch.at, stretch.original));
        text.replaced_by(normalized, stretches)
    }
}

//! Hugging Face's `tokenizer.json` as a [`Tokenizer`]: where a file says no more than a vocabulary,
//! patterns and added tokens without flags.
//!
//! What else a file may say is for [`Pipeline`](crate::Pipeline), and refused here by name. Read and left
//! off are `truncation`, `padding` and post-processors that only add special tokens around a text:
//! [`Tokenizer::encode`] gives the tokens of the whole text and no others.
//! [`read_dictionary`] reads the model alone, whatever stands around it.

use bpe_core::{Dictionary, ReadLimits};
use serde_json::Value;

use crate::error::LoadError;
use crate::pipeline::added::AddedTokens;
use crate::pipeline::bpe::{Spelling, check_added, check_supported, dictionary};
use crate::pipeline::description::Description;
use crate::pipeline::direct_tokenizer;
use crate::pipeline::file::{File, Model};
use crate::pipeline::node::Node;
use crate::pipeline::plan::Plan;
use crate::pipeline::post_processors::{PostProcessor, read_padding, read_truncation};
use crate::pipeline::pre_tokenizers::PreTokenizer;
use crate::tokenizer::Tokenizer;

impl Tokenizer {
    /// The tokenizer of a `tokenizer.json` file's content.
    ///
    /// Special tokens of the file are special tokens here: text unless [`Specials`](crate::Specials)
    /// say otherwise. Added tokens that are not special are always matched. Ids are those of the
    /// file.
    ///
    /// # Errors
    ///
    /// A file that is malformed or over the limits, or that asks for more than a tokenizer does
    /// ([`LoadError::is_unsupported`]); the error names the field.
    /// [`Pipeline::from_tokenizer_json`](crate::Pipeline::from_tokenizer_json) takes more.
    pub fn from_tokenizer_json(file: &[u8], limits: &ReadLimits) -> Result<Self, LoadError> {
        let description = Description::read(file, limits)?;
        let model = match &description.model {
            Model::Bpe(model) => match model.affix() {
                Some(field) => return Err(for_pipeline(format!("model.{field}"), field)),
                None => model,
            },
            Model::WordPiece(_) => return Err(for_pipeline("model.type", "WordPiece")),
        };
        // The lexers of a tokenizer are those of its patterns.
        let plan = Plan {
            between_tokens: false,
            ..Plan::new(&description)?
        };
        check_steps(&description, &plan)?;
        check_supported(model)?;
        check_added(&model.vocab, &description.added_tokens)?;
        let spelling = Spelling::of(model, &description, &plan);
        let may_be_piece = |token: &_| description.may_be_piece(token);
        let added_tokens = &description.added_tokens;
        let dictionary = dictionary(model, added_tokens, spelling, may_be_piece, limits)?;
        let added = AddedTokens::new(description.added_tokens, &[])?;
        direct_tokenizer(&dictionary, &plan, &added)?.ok_or_else(|| {
            let what = "an overlap of normalized and other added tokens, or a text of bytes,";
            for_pipeline("added_tokens", what)
        })
    }
}

/// The dictionary of the BPE `model` of a `tokenizer.json`: its vocabulary, merges (as strings or as
/// pairs), `ignore_merges`, `byte_fallback`, `unk_token` and `fuse_unk`. What else the file holds is
/// for the caller to mind: normalizer, pre-tokenizer, added tokens are not part of a dictionary.
///
/// Tokens are spelled in the byte-level alphabet where normalizer, pre-tokenizer or decoder says
/// `ByteLevel`; then each single byte must be a token, and `unk_token` is of no consequence. Special
/// tokens that stand in the vocabulary too are left out of the dictionary, since no text may make
/// them; but for the unknown token, single characters, tokens that stand for a byte, and those that a
/// merge names or makes.
///
/// Cost: O(bytes).
///
/// # Errors
///
/// A file that is malformed or over the limits, or a model that is not done here; the error names
/// the field.
pub fn read_dictionary(file: &[u8], limits: &ReadLimits) -> Result<Dictionary, LoadError> {
    let file = File::read(file, limits)?;
    let model = match &file.model {
        Model::Bpe(model) if !model.has_affixes() => model,
        Model::Bpe(_) => return Err(LoadError::unsupported("model", "an affix of tokens")),
        Model::WordPiece(_) => return Err(LoadError::unsupported("model.type", "WordPiece")),
    };
    check_supported(model)?;
    let mut steps = [&file.pre_tokenizer, &file.normalizer, &file.decoder].into_iter();
    let byte_level = steps.any(names_byte_level);
    let spelling = Spelling {
        byte_level,
        byte_fallback: model.byte_fallback && !byte_level,
        blank: None,
    };
    dictionary(model, &file.added_tokens, spelling, |_| false, limits)
}

/// Whether a step, or one inside it, is `ByteLevel`.
fn names_byte_level(step: &Value) -> bool {
    let mut waiting = vec![step];
    while let Some(step) = waiting.pop() {
        if step["type"] == "ByteLevel" {
            return true;
        }
        for inside in ["pretokenizers", "normalizers", "decoders"] {
            waiting.extend(step[inside].as_array().into_iter().flatten());
        }
    }
    false
}

/// The error that a file asks for what a [`Tokenizer`] does not do.
fn for_pipeline(place: impl Into<String>, what: &str) -> LoadError {
    LoadError::unsupported(
        place,
        format!("{what} in a Tokenizer, and not in a Pipeline,"),
    )
}

/// Refuses the steps that a tokenizer does not have.
fn check_steps(description: &Description, plan: &Plan) -> Result<(), LoadError> {
    let source = &description.source;
    let normalizer = Node::new("normalizer", &source.normalizer);
    if let Some(step) = normalizer.steps("normalizers")?.first() {
        return Err(for_pipeline(step.field("type").place(), step.kind()?));
    }
    let steps = &description.pre_tokenizers;
    let is_byte_level = |step: &PreTokenizer| matches!(step, PreTokenizer::ByteLevel { .. });
    let mut before_last = steps.iter().rev().skip(1);
    if before_last.any(|(_, step)| is_byte_level(step)) {
        let last = steps.last().map_or("pre_tokenizer", |(place, _)| place);
        return Err(for_pipeline(last, "a stage after ByteLevel"));
    }
    let by_hand = plan.by_hand.len().checked_sub(1);
    if let Some((place, step)) = by_hand.and_then(|index| steps.get(index)) {
        return Err(match step {
            PreTokenizer::ByteLevel { .. } => {
                for_pipeline(format!("{place}.add_prefix_space"), "a prefixed blank")
            }
            PreTokenizer::Split {
                behavior, invert, ..
            } => {
                let inverted = if *invert { ", inverted," } else { "" };
                let what = format!("{behavior:?}{inverted} with this pattern");
                for_pipeline(format!("{place}.behavior"), &what)
            }
            step => for_pipeline(format!("{place}.type"), step.name()),
        });
    }
    let decoder = Node::new("decoder", &source.decoder);
    if !decoder.is_null() {
        let kind = decoder.kind()?;
        if kind != "ByteLevel" {
            return Err(for_pipeline("decoder.type", kind));
        }
        if !description.is_byte_level() {
            let what = "ByteLevel without a pre-tokenizer ByteLevel";
            return Err(for_pipeline("decoder", what));
        }
    }
    // Those that add tokens around a text or mend offsets change no token of the text; they are read for
    // what is wrong with them, as is the rest that is left off.
    read_truncation(&Node::new("truncation", &source.truncation))?;
    read_padding(&Node::new("padding", &source.padding))?;
    let post_processor = Node::new("post_processor", &source.post_processor);
    for step in post_processor.steps("processors")? {
        let kind = step.kind()?;
        if !matches!(kind, "ByteLevel" | "TemplateProcessing") {
            return Err(for_pipeline(step.field("type").place(), kind));
        }
    }
    PostProcessor::read(&post_processor)?;
    for (index, token) in description.added_tokens.iter().enumerate() {
        let flags = [
            ("single_word", token.single_word),
            ("lstrip", token.lstrip),
            ("rstrip", token.rstrip),
        ];
        if let Some((flag, _)) = flags.into_iter().find(|(_, on)| *on) {
            let place = format!("added_tokens[{index}] ({:?})", token.content);
            return Err(for_pipeline(place, flag));
        }
    }
    Ok(())
}

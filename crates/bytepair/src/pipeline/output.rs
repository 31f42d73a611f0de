//! What stands behind the model of a pipeline: decoding, and inputs of models.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use bpe_core::{DecodeError, TokenId, Vocabulary};

use crate::error::LoadError;
use crate::offsets::Encoding;
use crate::pipeline::Pipeline;
use crate::pipeline::blanks::Blanks;
use crate::pipeline::bpe::Spelling;
use crate::pipeline::decoders::{Decoder, Decoding, TokenText};
use crate::pipeline::description::{Description, Source};
use crate::pipeline::file::AddedToken;
use crate::pipeline::model::{Model, Sink};
use crate::pipeline::model_input::{InputError, ModelInput, Padding, Truncation};
use crate::pipeline::node::Node;
use crate::pipeline::normalizers::Normalizer;
use crate::pipeline::post_processors::{PostProcessor, read_padding, read_truncation};
use crate::sentencepiece::SentencePieceModel;

/// The parts of a file that come behind the model, and what they have to know of the tokens.
#[derive(Debug)]
pub(crate) struct Output {
    added: HashMap<TokenId, AddedText>,
    /// Tokens like `<0x0A>`, which the vocabulary has as bytes.
    fallback: HashMap<TokenId, String>,
    spelling: Spelling,
    decoder: Decoder,
    post_processor: PostProcessor,
    truncation: Option<Truncation>,
    padding: Option<Padding>,
}

/// What decoding has to know of an added token.
#[derive(Debug)]
struct AddedText {
    content: Box<str>,
    /// What decoders get, where the normalizer changes a token that is found in normalized text.
    normalized: Option<Box<str>>,
    /// Whether it is left out where special tokens are.
    is_skipped: bool,
}

impl AddedText {
    /// What decoders get.
    fn decoded(&self) -> &str {
        self.normalized.as_ref().unwrap_or(&self.content)
    }
}

impl Output {
    pub(crate) fn new(
        description: &Description,
        vocabulary: Option<&Vocabulary>,
        spelling: Spelling,
    ) -> Result<Self, LoadError> {
        let Source {
            truncation,
            padding,
            post_processor,
            decoder,
            ..
        } = &description.source;
        Ok(Self {
            added: added_texts(&description.added_tokens, &description.normalizers)?,
            fallback: vocabulary.map(fallback_texts).unwrap_or_default(),
            spelling,
            decoder: Decoder::read(&Node::new("decoder", decoder))?,
            post_processor: PostProcessor::read(&Node::new("post_processor", post_processor))?,
            truncation: read_truncation(&Node::new("truncation", truncation))?,
            padding: read_padding(&Node::new("padding", padding))?,
        })
    }

    /// What stands behind a `.model` file: its decoder, and no post-processor.
    pub(crate) fn of_sentencepiece(
        model: &SentencePieceModel,
        added: &[AddedToken],
    ) -> Result<Self, LoadError> {
        let vocabulary = model.dictionary.vocabulary();
        Ok(Self {
            added: added_texts(added, &[])?,
            fallback: fallback_texts(vocabulary),
            spelling: Spelling {
                byte_level: false,
                byte_fallback: false,
                blank: None,
            },
            decoder: Decoder::sentencepiece(model),
            post_processor: PostProcessor::default(),
            truncation: None,
            padding: None,
        })
    }

    /// Whether a token is left out where special tokens are.
    fn is_skipped(&self, id: TokenId) -> bool {
        self.added.get(&id).is_some_and(|added| added.is_skipped)
    }

    /// What decoders get for a token.
    fn decoded<'t>(&'t self, id: TokenId, model: &'t Model) -> Option<TokenText<'t>> {
        match self.added.get(&id) {
            Some(added) => Some(TokenText::Text(Cow::Borrowed(added.decoded()))),
            None => self.model_text(id, model),
        }
    }

    /// What the file has for a token.
    pub(crate) fn token_text<'t>(&'t self, id: TokenId, model: &'t Model) -> Option<TokenText<'t>> {
        if let Some(added) = self.added.get(&id) {
            return Some(TokenText::Text(Cow::Borrowed(&added.content)));
        }
        self.model_text(id, model)
    }

    /// White space at the ends of a token as the file has it.
    fn token_blanks(&self, id: TokenId, model: &Model) -> Blanks {
        match self.token_text(id, model) {
            Some(TokenText::Bytes(bytes)) => Blanks::of_bytes(bytes),
            Some(TokenText::Text(text)) => Blanks::of_text(&text),
            None => Blanks::default(),
        }
    }

    /// What the vocabulary of the file has for a token of the model.
    pub(crate) fn model_text<'t>(&'t self, id: TokenId, model: &'t Model) -> Option<TokenText<'t>> {
        if let Some(text) = self.fallback.get(&id) {
            return Some(TokenText::Text(Cow::Borrowed(text)));
        }
        let bytes = match model.token(id)? {
            TokenText::Bytes(bytes) => bytes,
            text => return Some(text),
        };
        if self.spelling.byte_level {
            return Some(TokenText::Bytes(bytes));
        }
        let text = String::from_utf8_lossy(bytes);
        Some(TokenText::Text(match self.spelling.blank {
            Some(blank) if text.contains(' ') => {
                Cow::Owned(text.replace(' ', blank.encode_utf8(&mut [0; 4])))
            }
            _ => text,
        }))
    }
}

/// What decoding has to know of added tokens. As in `tokenizers`, one is left out as special if what decoders get
/// for it is the text of a special token.
fn added_texts(
    added: &[AddedToken],
    normalizers: &[Normalizer],
) -> Result<HashMap<TokenId, AddedText>, LoadError> {
    let specials = added.iter().filter(|token| token.special);
    let specials: HashSet<&str> = specials.map(|token| token.content.as_str()).collect();
    let texts = added.iter().enumerate().map(|(index, token)| {
        let normalized = token.normalized_by(normalizers).map_err(|error| {
            LoadError::at(format!("added_tokens[{index}].content"), error.to_string())
        })?;
        let changed = normalized != token.content;
        let text = AddedText {
            is_skipped: specials.contains(&*normalized),
            normalized: changed.then(|| normalized.into()),
            content: token.content.as_str().into(),
        };
        Ok((token.id, text))
    });
    texts.collect()
}

/// Ids of the tokens that stand for bytes, with what they are written like.
fn fallback_texts(vocabulary: &Vocabulary) -> HashMap<TokenId, String> {
    let texts = (0..=u8::MAX).filter_map(|byte| {
        let id = vocabulary.byte_fallback(byte)?;
        Some((id, format!("<0x{byte:02X}>")))
    });
    texts.collect()
}

/// How tokens become an input of a model.
#[derive(Debug, Clone)]
pub struct InputOptions {
    /// Whether the post-processor adds its tokens, as `[CLS]` before a text.
    pub add_special_tokens: bool,
    /// How long inputs may be. [`Pipeline::truncation`] has what the file says.
    pub truncation: Option<Truncation>,
    /// How long inputs have to be. [`Pipeline::padding`] has what the file says. A batch is padded with
    /// [`Padding::pad`].
    pub padding: Option<Padding>,
}

impl Default for InputOptions {
    /// With special tokens, of whatever length.
    fn default() -> Self {
        Self {
            add_special_tokens: true,
            truncation: None,
            padding: None,
        }
    }
}

impl Pipeline {
    fn output(&self) -> &Output {
        &self.parts.output
    }

    /// What a model is given for `first`, or for the pair of `first` and `second`: tokens with those
    /// that the post-processor adds, their offsets and types, what is special and what is padding.
    ///
    /// Cost: that of encoding, and O(tokens).
    ///
    /// # Errors
    ///
    /// A text without tokens, as in [`Pipeline::encode`], or options that cannot be met.
    pub fn model_input(
        &self,
        first: &str,
        second: Option<&str>,
        options: &InputOptions,
    ) -> Result<ModelInput, InputError> {
        let output = self.output();
        let mut first_input = self.plain_input(first, 0)?;
        let mut second_input = second.map(|text| self.plain_input(text, 1)).transpose()?;
        if let Some(truncation) = &options.truncation {
            let added = match options.add_special_tokens {
                true => output.post_processor.added_tokens(second.is_some()),
                false => 0,
            };
            truncation.cut(added, &mut first_input, second_input.as_mut())?;
        }
        let input = output.post_processor.process(
            (first_input, first),
            second_input.zip(second),
            options.add_special_tokens,
        );
        let mut batch = [input];
        if let Some(padding) = &options.padding {
            padding.pad(&mut batch)?;
        }
        let [input] = batch;
        Ok(input)
    }

    /// The tokens of a text, before truncation and the post-processor.
    fn plain_input(&self, text: &str, type_id: u32) -> Result<ModelInput, InputError> {
        let output = self.output();
        let trims = output.post_processor.trims_offsets();
        let mut encoding = Encoding::default();
        let mut found = Vec::new();
        let sink = Sink {
            found: trims.then_some(&mut found),
            ..Sink::of(&mut encoding)
        };
        self.run(text, sink)?;
        let Encoding {
            ids,
            byte_ranges: mut offsets,
        } = encoding;
        for range in &mut offsets {
            // A part of a character stands for the whole.
            range.start = text.floor_char_boundary(range.start);
            range.end = text.ceil_char_boundary(range.end);
        }
        if !trims {
            return Ok(ModelInput::new(ids, offsets, type_id));
        }
        let blanks = ids.iter();
        let blanks = blanks.map(|&id| output.token_blanks(id, &self.parts.model));
        let mut blanks: Vec<Blanks> = blanks.collect();
        for (index, of_found) in found {
            if let Some(blanks) = blanks.get_mut(index) {
                *blanks = of_found;
            }
        }
        Ok(ModelInput::new(ids, offsets, type_id).with_blanks(blanks))
    }

    /// `ids` of a text with the tokens that the post-processor sets around it. O(tokens).
    pub(crate) fn with_added(&self, ids: Vec<TokenId>) -> Vec<TokenId> {
        let places = vec![0..0; ids.len()];
        let input = ModelInput::new(ids, places, 0);
        let processor = &self.output().post_processor;
        processor.process((input, ""), None, true).ids().to_vec()
    }

    /// The truncation that the file asks for. It is left off unless [`InputOptions`] have it.
    pub fn truncation(&self) -> Option<&Truncation> {
        self.output().truncation.as_ref()
    }

    /// The padding that the file asks for. It is left off unless [`InputOptions`] have it.
    pub fn padding(&self) -> Option<&Padding> {
        self.output().padding.as_ref()
    }

    /// The text of `ids` by the decoder of the file, special tokens included. An added token that is found in
    /// normalized text stands for its text as the normalizer leaves it, as in `tokenizers` 0.23.
    ///
    /// Cost: O(bytes) for each step of the decoder.
    ///
    /// # Errors
    ///
    /// An id that no token has.
    pub fn decode(&self, ids: &[TokenId]) -> Result<String, DecodeError> {
        self.decode_all(ids, true)
    }

    /// The text of `ids` without the special tokens among them. As in `tokenizers` 0.23, one that is found in
    /// normalized text and that the normalizer changes stays.
    ///
    /// Cost and errors: as [`Pipeline::decode`].
    pub fn decode_without_special_tokens(&self, ids: &[TokenId]) -> Result<String, DecodeError> {
        self.decode_all(ids, false)
    }

    fn decode_all(&self, ids: &[TokenId], special: bool) -> Result<String, DecodeError> {
        let mut text = String::new();
        let mut decoding = self.output().decoder.start();
        for (index, &id) in ids.iter().enumerate() {
            self.decode_one(&mut decoding, id, index, special, &mut text)?;
        }
        decoding.finish(&self.output().decoder, &mut text);
        Ok(text)
    }

    fn decode_one(
        &self,
        decoding: &mut Decoding,
        id: TokenId,
        index: usize,
        special: bool,
        text: &mut String,
    ) -> Result<(), DecodeError> {
        let output = self.output();
        let token = output.decoded(id, &self.parts.model);
        let token = token.ok_or(DecodeError::unknown_id(id, index))?;
        if special || !output.is_skipped(id) {
            decoding.push(&output.decoder, token, text);
        }
        Ok(())
    }

    /// Text of ids that come one by one; joined, it is [`Pipeline::decode`] of all of them.
    pub fn decode_stream(&self) -> PipelineDecodeStream {
        PipelineDecodeStream::new(self, true)
    }

    /// As [`Pipeline::decode_stream`], for [`Pipeline::decode_without_special_tokens`].
    pub fn decode_stream_without_special_tokens(&self) -> PipelineDecodeStream {
        PipelineDecodeStream::new(self, false)
    }
}

/// Text of ids as they come: each push hands out what no later id can change. Joined together with
/// [`PipelineDecodeStream::finish`], the parts are [`Pipeline::decode`] of all ids.
///
/// What is held back depends on the decoder: up to three bytes where tokens are bytes; a run of byte
/// tokens like `<0x0A>` until it ends, since one that is no UTF-8 makes U+FFFD of all of them; blanks
/// that may be stripped at the end; all, where a decoder cleans up the whole text.
#[derive(Debug, Clone)]
pub struct PipelineDecodeStream {
    pipeline: Pipeline,
    decoding: Decoding,
    special: bool,
    text: String,
    pushed: usize,
}

impl PipelineDecodeStream {
    fn new(pipeline: &Pipeline, special: bool) -> Self {
        Self {
            pipeline: pipeline.clone(),
            decoding: pipeline.output().decoder.start(),
            special,
            text: String::new(),
            pushed: 0,
        }
    }

    /// The text that `id` makes certain, which may be empty.
    ///
    /// # Errors
    ///
    /// An id that no token has, with its index among those pushed; the stream is then as it was, and
    /// can go on.
    pub fn push(&mut self, id: TokenId) -> Result<&str, DecodeError> {
        self.text.clear();
        self.pipeline.decode_one(
            &mut self.decoding,
            id,
            self.pushed,
            self.special,
            &mut self.text,
        )?;
        self.pushed += 1;
        Ok(&self.text)
    }

    /// The rest.
    pub fn finish(self) -> String {
        let mut text = String::new();
        self.decoding
            .finish(&self.pipeline.output().decoder, &mut text);
        text
    }
}

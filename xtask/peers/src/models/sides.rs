//! The two sides: what a pipeline says of a text, in a form that both have.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use bytepair::{
    InputOptions, ModelInput, PadTo, Padding, Pipeline, ReadLimits, Side, Specials, Truncation,
    TruncationStrategy,
};
use tokenizers::models::bpe::BPE;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;

use crate::Error;
use crate::peer::quietly;
use crate::random::Random;

/// What is said of a text, or of a pair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Said {
    pub(crate) ids: Vec<u32>,
    pub(crate) offsets: Vec<Range<usize>>,
    pub(crate) type_ids: Vec<u32>,
    pub(crate) special: Vec<bool>,
    pub(crate) attention: Vec<bool>,
    pub(crate) overflowing: Vec<Said>,
}

/// What is asked for.
#[derive(Debug, Clone, Default)]
pub(crate) struct Asked {
    pub(crate) add_special: bool,
    pub(crate) truncation: Option<Truncation>,
    pub(crate) padding: Option<Padding>,
}

pub(crate) struct Ours {
    pipeline: Pipeline,
}

impl Ours {
    pub(crate) fn read(json: &[u8]) -> Result<Self, String> {
        let limits = ReadLimits::default();
        let pipeline = Pipeline::from_tokenizer_json(json, &limits);
        let pipeline = pipeline.and_then(|pipeline| pipeline.with_specials(Specials::AllowAll));
        let pipeline = pipeline.map_err(|error| error.to_string())?;
        Ok(Self { pipeline })
    }

    /// Whether a character has no token: that is an error here, while the oracle leaves it out.
    pub(crate) fn lacks_a_token(&self, text: &str) -> bool {
        let encoded = self.pipeline.encode(text);
        encoded.is_err_and(|error| error.is_missing_token())
    }

    pub(crate) fn ids(&self, text: &str) -> Result<Vec<u32>, String> {
        self.pipeline
            .encode(text)
            .map_err(|error| error.to_string())
    }

    pub(crate) fn say(
        &self,
        first: &str,
        second: Option<&str>,
        asked: &Asked,
    ) -> Result<Said, String> {
        let options = InputOptions {
            add_special_tokens: asked.add_special,
            truncation: asked.truncation.clone(),
            padding: asked.padding.clone(),
        };
        let input = self.pipeline.model_input(first, second, &options);
        Ok(said(&input.map_err(|error| error.to_string())?))
    }

    pub(crate) fn decode(&self, ids: &[u32], special: bool) -> Result<String, String> {
        let text = match special {
            true => self.pipeline.decode(ids),
            false => self.pipeline.decode_without_special_tokens(ids),
        };
        let text = text.map_err(|error| error.to_string())?;
        let mut stream = match special {
            true => self.pipeline.decode_stream(),
            false => self.pipeline.decode_stream_without_special_tokens(),
        };
        let mut streamed = String::new();
        for &id in ids {
            streamed += stream.push(id).map_err(|error| error.to_string())?;
        }
        streamed += &stream.finish();
        match streamed == text {
            true => Ok(text),
            false => Err(format!("{text:?} at once, {streamed:?} in a stream")),
        }
    }
}

fn said(input: &ModelInput) -> Said {
    Said {
        ids: input.ids().to_vec(),
        offsets: input.offsets().to_vec(),
        type_ids: input.type_ids().to_vec(),
        special: input.special_tokens_mask().to_vec(),
        attention: input.attention_mask().to_vec(),
        overflowing: input.overflowing().iter().map(said).collect(),
    }
}

pub(crate) struct Theirs {
    tokenizer: tokenizers::Tokenizer,
    /// Without a post-processor.
    bare: Arc<tokenizers::Tokenizer>,
    /// The texts of the added tokens.
    pub(crate) added: Vec<String>,
    /// All ids, some of them added tokens'.
    pub(crate) ids: Vec<u32>,
}

impl Theirs {
    pub(crate) fn read(json: &[u8]) -> Result<Self, String> {
        let read = quietly(|| tokenizers::Tokenizer::from_bytes(json));
        let mut tokenizer = read
            .map_err(|_| "it panics".to_owned())?
            .map_err(|error| error.to_string())?;
        // Both are called for below, where they are wanted.
        tokenizer
            .with_truncation(None)
            .map_err(|error| error.to_string())?;
        tokenizer.with_padding(None);
        let mut added: Vec<_> = tokenizer.get_added_tokens_decoder().into_values().collect();
        added.sort_by(|a, b| a.content.cmp(&b.content));
        let mut ids: Vec<u32> = tokenizer.get_vocab(true).into_values().collect();
        ids.sort_unstable();
        let mut bare = tokenizer.clone();
        bare.with_post_processor(None::<tokenizers::PostProcessorWrapper>);
        Ok(Self {
            tokenizer,
            bare: Arc::new(bare),
            added: added.into_iter().map(|token| token.content).collect(),
            ids,
        })
    }

    /// A text of some tokens of the vocabulary, so that one of few characters has texts.
    pub(crate) fn of_tokens(&self, random: &mut Random) -> String {
        let mut text = String::new();
        for _ in 0..=random.below(8) {
            let id = self.ids[random.below(self.ids.len())];
            let token = self.tokenizer.id_to_token(id).unwrap_or_default();
            text += &token.replace(['\u{2581}', 'Ġ'], " ").replace("</w>", "");
        }
        text
    }

    /// The text of each token alone, of `most` of them.
    pub(crate) fn each_token(&self, most: usize) -> impl Iterator<Item = String> {
        let step = (self.ids.len() / most.max(1)).max(1);
        let ids = self.ids.iter().step_by(step);
        ids.filter_map(|&id| self.decode(&[id], true))
    }

    /// With these settings of truncation and padding.
    pub(crate) fn set(&self, asked: &Asked) -> Self {
        let mut tokenizer = self.tokenizer.clone();
        let truncation = asked
            .truncation
            .as_ref()
            .map(|settings| tokenizers::TruncationParams {
                max_length: settings.max_length,
                stride: settings.stride,
                strategy: match settings.strategy {
                    TruncationStrategy::LongestFirst => {
                        tokenizers::TruncationStrategy::LongestFirst
                    }
                    TruncationStrategy::OnlyFirst => tokenizers::TruncationStrategy::OnlyFirst,
                    TruncationStrategy::OnlySecond => tokenizers::TruncationStrategy::OnlySecond,
                },
                direction: match settings.side {
                    Side::Right => tokenizers::TruncationDirection::Right,
                    Side::Left => tokenizers::TruncationDirection::Left,
                },
            });
        let padding = asked
            .padding
            .as_ref()
            .map(|settings| tokenizers::PaddingParams {
                strategy: match settings.to {
                    PadTo::Longest => tokenizers::PaddingStrategy::BatchLongest,
                    PadTo::Length(length) => tokenizers::PaddingStrategy::Fixed(length),
                },
                direction: match settings.side {
                    Side::Right => tokenizers::PaddingDirection::Right,
                    Side::Left => tokenizers::PaddingDirection::Left,
                },
                pad_to_multiple_of: settings.multiple_of,
                pad_id: settings.id,
                pad_type_id: settings.type_id,
                pad_token: settings.token.clone(),
            });
        // A stride that is too long is refused here, and by us when it is used.
        let _ = tokenizer.with_truncation(truncation);
        tokenizer.with_padding(padding);
        Self {
            tokenizer,
            bare: Arc::clone(&self.bare),
            added: self.added.clone(),
            ids: self.ids.clone(),
        }
    }

    /// Whether what was set has been taken.
    pub(crate) fn truncates(&self) -> bool {
        self.tokenizer.get_truncation().is_some()
    }

    /// `None` where it refuses or panics.
    pub(crate) fn say(&self, first: &str, second: Option<&str>, add_special: bool) -> Option<Said> {
        let encoding = quietly(|| match second {
            None => self.tokenizer.encode_char_offsets(first, add_special),
            Some(second) => self
                .tokenizer
                .encode_char_offsets((first, second), add_special),
        });
        let encoding = encoding.ok()?.ok()?;
        let places = [Some(first), second].map(|text| byte_places(text.unwrap_or_default()));
        Some(their_said(&encoding, &places))
    }

    /// What it says without and with special tokens: of one run of the model, which takes its time, and two of
    /// the post-processor, as `encode_char_offsets` has them.
    pub(crate) fn say_both(&self, text: &str) -> [Option<Said>; 2] {
        let encoding = quietly(|| self.bare.encode_char_offsets(text, false));
        let Ok(Ok(encoding)) = encoding else {
            return [None, None];
        };
        let places = [byte_places(text), byte_places("")];
        [false, true].map(|add_special| {
            let finished = quietly(|| {
                self.tokenizer
                    .post_process(encoding.clone(), None, add_special)
            });
            Some(their_said(&finished.ok()?.ok()?, &places))
        })
    }

    pub(crate) fn decode(&self, ids: &[u32], special: bool) -> Option<String> {
        quietly(|| self.tokenizer.decode(ids, !special)).ok()?.ok()
    }
}

/// Where the characters of a text begin, and its end.
fn byte_places(text: &str) -> Vec<usize> {
    let places = text.char_indices().map(|(place, _)| place);
    places.chain([text.len()]).collect()
}

fn their_said(encoding: &tokenizers::Encoding, places: &[Vec<usize>; 2]) -> Said {
    // Which text a token is of; truncation loses it, and then there is one text, or the type tells.
    let second: Vec<bool> = (0..encoding.len())
        .map(|token| match encoding.token_to_sequence(token) {
            Some(sequence) => sequence == 1,
            None => encoding.get_type_ids()[token] == 1 && places[1].len() > 1,
        })
        .collect();
    let byte = |token: usize, place: usize| {
        let places = &places[usize::from(second[token])];
        // An offset beyond its text is made visible.
        places.get(place).copied().unwrap_or(usize::MAX)
    };
    let offsets = encoding.get_offsets().iter().enumerate();
    let flags = |flags: &[u32]| flags.iter().map(|&flag| flag == 1).collect();
    Said {
        ids: encoding.get_ids().to_vec(),
        offsets: offsets
            .map(|(token, &(start, end))| byte(token, start)..byte(token, end))
            .collect(),
        type_ids: encoding.get_type_ids().to_vec(),
        special: flags(encoding.get_special_tokens_mask()),
        attention: flags(encoding.get_attention_mask()),
        overflowing: encoding
            .get_overflowing()
            .iter()
            // Parts of parts are there again in the list itself.
            .map(|part| Said {
                overflowing: Vec::new(),
                ..their_said(part, places)
            })
            .collect(),
    }
}

/// What `tokenizers` makes of GPT-2's two files.
pub(crate) fn gpt2(vocab: &Path, merges: &Path) -> Result<Vec<u8>, Error> {
    let text = |path: &Path| {
        path.to_str()
            .map(str::to_owned)
            .ok_or("a path that is no text")
    };
    let model = BPE::from_file(&text(vocab)?, &text(merges)?).build();
    let mut tokenizer = tokenizers::Tokenizer::new(model.map_err(|error| error.to_string())?);
    let byte_level = ByteLevel::new(false, true, true);
    tokenizer.with_pre_tokenizer(Some(byte_level));
    tokenizer.with_decoder(Some(byte_level));
    tokenizer.with_post_processor(Some(byte_level));
    tokenizer.add_special_tokens(&[tokenizers::AddedToken::from("<|endoftext|>", true)]);
    let json = tokenizer.to_string(false);
    Ok(json.map_err(|error| error.to_string())?.into_bytes())
}

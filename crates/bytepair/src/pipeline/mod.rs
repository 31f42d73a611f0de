//! The whole way from a text to the tokens that a model is given, as Hugging Face's `tokenizer.json`
//! describes it: added tokens, normalizer, pre-tokenizer, model, post-processor, decoder.
//!
//! Whatever the inner [`Tokenizer`] can do is left to it, so that the fast path runs over the caller's
//! text as it is. The rest is done step by step, on a copy of what has to be changed.

pub(crate) mod added;
mod affix;
mod blanks;
pub(crate) mod bpe;
mod cuts;
mod decoders;
pub(crate) mod description;
pub(crate) mod file;
mod forms;
mod inspect;
mod model;
mod model_input;
pub(crate) mod node;
mod normalize;
mod normalized;
mod normalizers;
pub(crate) mod oniguruma;
mod output;
mod overlap;
mod parallel;
mod parts;
pub(crate) mod plan;
pub(crate) mod post_processors;
pub(crate) mod pre_tokenizers;
mod run;
mod search;
mod sentencepiece;
mod splitting;
mod stream;
mod texts;
mod unicode;
#[cfg(feature = "dfa")]
mod validator;
mod virtual_lexer;
mod write;

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, OnceLock};

use bpe_core::{Dictionary, ReadLimits, TokenId, byte_level};
use bpe_parallel::Workers;

pub use inspect::Inspection;
pub use model_input::{
    InputError, ModelInput, PadTo, Padding, Side, Truncation, TruncationStrategy,
};
pub use output::{InputOptions, PipelineDecodeStream};
pub use parallel::PipelineParallel;
pub use parts::PipelineCuts;
pub use stream::PipelineStream;
#[cfg(feature = "dfa")]
pub use validator::PipelineValidator;

pub(crate) use file::parse as parse_json;

use crate::builder::TokenizerBuilder;
use crate::error::LoadError;
use crate::pipeline::added::{AddedTokens, Finder, Spellings};
use crate::pipeline::affix::AffixModel;
use crate::pipeline::bpe::Spelling;
use crate::pipeline::cuts::Seams;
use crate::pipeline::decoders::TokenText;
use crate::pipeline::description::{Description, Source};
use crate::pipeline::file::AddedToken;
use crate::pipeline::model::Model;
use crate::pipeline::normalizers::Normalizer;
use crate::pipeline::output::Output;
use crate::pipeline::plan::Plan;
use crate::pipeline::pre_tokenizers::{PreTokenizer, Prepend};
use crate::pipeline::virtual_lexer::VirtualLexer;
use crate::specials::{Policy, Specials};
use crate::tokenizer::Tokenizer;
use crate::word_piece::WordPiece;

/// A tokenizer as `tokenizer.json` describes it, with every step before and behind the model.
///
/// Cheap to clone, `Send` and `Sync`. Special tokens are text unless
/// [`with_specials`](Pipeline::with_specials) says otherwise, as in a [`Tokenizer`]; `tokenizers` does
/// what [`Specials::AllowAll`] does, and with `encode_special_tokens` what [`Specials::AsText`] does. One whose
/// text the model itself makes, by merges or as a whole word, is made then too; but not as a whole piece by
/// `ignore_merges`, where nothing changes the text.
///
/// ```
/// use bytepair::{Pipeline, ReadLimits};
///
/// let file = r#"{
///     "normalizer": { "type": "Replace", "pattern": { "String": " " }, "content": "▁" },
///     "model": {
///         "type": "BPE",
///         "vocab": { "▁": 0, "a": 1, "b": 2, "ab": 3, "▁ab": 4 },
///         "merges": ["a b", "▁ ab"]
///     },
///     "decoder": { "type": "Metaspace", "replacement": "▁", "prepend_scheme": "never" }
/// }"#;
/// let pipeline = Pipeline::from_tokenizer_json(file.as_bytes(), &ReadLimits::default())?;
/// let encoding = pipeline.encode_with_offsets("ab ab")?;
/// assert_eq!(encoding.ids, [3, 4]);
/// assert_eq!(encoding.byte_ranges, [0..2, 2..5]);
/// assert_eq!(pipeline.decode(&encoding.ids)?, "ab ab");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Pipeline {
    parts: Arc<Parts>,
    policy: Arc<Matching>,
}

/// What clones share, whatever they do with special tokens.
struct Parts {
    added: AddedTokens,
    normalizers: Vec<Normalizer>,
    by_hand: Vec<PreTokenizer>,
    /// Whether the steps by hand leave pieces in the byte-level alphabet.
    alphabet: bool,
    /// Whether a step asks where a piece begins in the original.
    needs_places: bool,
    model: Model,
    /// A tokenizer that matches added tokens itself, where it does the same as the steps one by one.
    direct: Option<Tokenizer>,
    /// Where the inner tokenizer cuts between characters, if it does.
    between: Option<VirtualLexer>,
    output: Output,
    source: Source,
    later: Later,
}

/// What is made when it is first asked for.
#[derive(Default)]
struct Later {
    /// Where a text can be cut, or why nowhere.
    seams: OnceLock<Result<Seams, String>>,
    workers: OnceLock<Arc<Workers>>,
}

/// How special tokens are treated, made ready.
struct Matching {
    specials: Specials,
    /// Finds tokens in the text as it is.
    first: Finder,
    /// Finds tokens in normalized text.
    second: Finder,
    direct: Option<Tokenizer>,
    /// What is known of the tokens that are found in normalized text.
    spellings: Spellings,
}

impl Matching {
    fn new(specials: Specials, parts: &Parts) -> Result<Self, LoadError> {
        let (first, second) = parts.added.finders(&specials)?;
        let direct = match &parts.direct {
            Some(tokenizer) if !(first.hides() || second.hides()) => {
                Some(tokenizer.with_specials(specials.clone())?)
            }
            _ => None,
        };
        Ok(Self {
            specials,
            first,
            direct,
            spellings: parts.added.spellings(&second),
            second,
        })
    }
}

impl Pipeline {
    /// The pipeline of a `tokenizer.json` file's content.
    ///
    /// # Errors
    ///
    /// A file that is malformed or over the limits, or that asks for something that is not done
    /// here ([`LoadError::is_unsupported`]); the error names the field by its path.
    pub fn from_tokenizer_json(file: &[u8], limits: &ReadLimits) -> Result<Self, LoadError> {
        Self::new(Description::read(file, limits)?, limits)
    }

    pub(crate) fn new(description: Description, limits: &ReadLimits) -> Result<Self, LoadError> {
        let plan = Plan::new(&description)?;
        let mut added = AddedTokens::new(description.added_tokens.clone(), &plan.normalizers)?;
        added.set_blank(plan.blank.filter(|_| plan.by_hand.is_empty()));
        let byte_level = description.is_byte_level();
        let mut spelling = Spelling {
            byte_level,
            ..Spelling::default()
        };
        let (model, direct, between) = match &description.model {
            file::Model::WordPiece(model) => {
                added.set_vocabulary(&model.vocab)?;
                let word_piece = WordPiece::new(
                    model.vocab.iter().map(|(text, id)| (text.to_owned(), id)),
                    &model.unk_token,
                    &model.continuing_subword_prefix,
                    model.max_input_chars_per_word,
                )?;
                (Model::WordPiece(word_piece), None, None)
            }
            file::Model::Bpe(model) => {
                bpe::check_supported(model)?;
                added.set_vocabulary(&model.vocab)?;
                spelling = Spelling::of(model, &description, &plan);
                match model.has_affixes() {
                    true => (Model::Affix(Box::new(AffixModel::new(model)?)), None, None),
                    false => {
                        let added_tokens = &description.added_tokens;
                        let may_be_piece = |token: &_| description.may_be_piece(token);
                        let dictionary =
                            bpe::dictionary(model, added_tokens, spelling, may_be_piece, limits)?;
                        inner(&dictionary, &plan, &added)?
                    }
                }
            }
        };
        let first = |step: &PreTokenizer| match step {
            PreTokenizer::Metaspace { prepend, .. } | PreTokenizer::Blanks { prepend, .. } => {
                *prepend == Prepend::First
            }
            _ => false,
        };
        let parts = Parts {
            added,
            needs_places: plan.by_hand.iter().any(first),
            normalizers: plan.normalizers,
            by_hand: plan.by_hand,
            alphabet: plan.alphabet,
            output: Output::new(&description, model.vocabulary(), spelling)?,
            model,
            direct,
            between,
            source: description.source,
            later: Later::default(),
        };
        Ok(Self {
            policy: Arc::new(Matching::new(Specials::default(), &parts)?),
            parts: Arc::new(parts),
        })
    }

    /// The same pipeline, with special tokens treated in another way; see [`Specials`].
    ///
    /// # Errors
    ///
    /// [`Specials::Allow`] names a text that is no special token.
    pub fn with_specials(&self, specials: Specials) -> Result<Self, LoadError> {
        Ok(Self {
            policy: Arc::new(Matching::new(specials, &self.parts)?),
            parts: Arc::clone(&self.parts),
        })
    }

    /// How special tokens are treated.
    pub fn specials(&self) -> &Specials {
        &self.policy.specials
    }

    /// Token `id` as the file spells it: in the byte-level alphabet, with U+2581 for a blank, or `<0x0A>`
    /// for a byte; the text of an added token. `None` where no token has that id.
    pub fn token_text(&self, id: TokenId) -> Option<Cow<'_, str>> {
        let token = self.parts.output.token_text(id, &self.parts.model)?;
        Some(match token {
            TokenText::Text(text) => text,
            TokenText::Bytes(bytes) => Cow::Owned(byte_level::encode(bytes)),
        })
    }

    /// The largest id, of added tokens too. O(tokens).
    pub fn max_id(&self) -> Option<TokenId> {
        let added = self.parts.added.tokens.iter().map(|token| token.id).max();
        self.parts.model.max_id().max(added)
    }

    /// Drops the scratch memory of threads that are not encoding now; see
    /// [`Tokenizer::clear_scratch`].
    pub fn clear_scratch(&self) {
        if let Model::Bpe(tokenizer) = &self.parts.model {
            tokenizer.clear_scratch();
        }
    }
}

/// The tokenizer inside, without special tokens; and with them, if it can find them itself; and where it cuts
/// between characters, if it does.
#[allow(clippy::type_complexity)] // Three parts of a pipeline.
fn inner(
    dictionary: &Dictionary,
    plan: &Plan,
    added: &AddedTokens,
) -> Result<(Model, Option<Tokenizer>, Option<VirtualLexer>), LoadError> {
    let between = between(dictionary, plan);
    let direct = direct_with(dictionary, plan, added, between.as_ref())?;
    let tokenizer = match &direct {
        Some(tokenizer) => Arc::clone(&tokenizer.inner),
        None => builder(dictionary, plan, between.as_ref()).build()?.inner,
    };
    let plain = Tokenizer {
        inner: tokenizer,
        policy: Arc::new(Policy::nothing()),
    };
    Ok((Model::Bpe(plain), direct, between))
}

/// The tokenizer that does all that a file says, added tokens too; `None` where more is to be done.
pub(crate) fn direct_tokenizer(
    dictionary: &Dictionary,
    plan: &Plan,
    added: &AddedTokens,
) -> Result<Option<Tokenizer>, LoadError> {
    let between = between(dictionary, plan);
    direct_with(dictionary, plan, added, between.as_ref())
}

fn direct_with(
    dictionary: &Dictionary,
    plan: &Plan,
    added: &AddedTokens,
    between: Option<&VirtualLexer>,
) -> Result<Option<Tokenizer>, LoadError> {
    let all_forms = |step: &Normalizer| matches!(step, Normalizer::Form(_));
    let is_consistent = |token: &AddedToken| {
        let ordinary = dictionary.vocabulary().token_bytes(token.id);
        ordinary.is_none_or(|bytes| bytes == token.content.as_bytes())
    };
    let is_direct = plan.by_hand.is_empty()
        && !plan.alphabet
        && plan.normalizers.iter().all(all_forms)
        && added.are_one_search()
        && added.tokens.iter().all(is_consistent);
    if !is_direct {
        return Ok(None);
    }
    let tokens = added.tokens.iter();
    let builder = tokens.fold(
        builder(dictionary, plan, between),
        |builder, token| match token.special {
            true => builder.special_token(&token.content, token.id),
            false => builder.added_token(&token.content, token.id),
        },
    );
    Ok(Some(builder.build()?))
}

/// What cuts where no token reaches across, if there is no pattern.
fn between(dictionary: &Dictionary, plan: &Plan) -> Option<VirtualLexer> {
    let is_asked_for = plan.between_tokens && plan.stages.is_empty();
    is_asked_for.then(|| VirtualLexer::new(dictionary))?
}

/// The builder of the tokenizer inside.
fn builder(
    dictionary: &Dictionary,
    plan: &Plan,
    between: Option<&VirtualLexer>,
) -> TokenizerBuilder {
    let builder = TokenizerBuilder::new(dictionary);
    if let Some(lexer) = between {
        return builder.custom_lexers(vec![Box::new(lexer.clone())]);
    }
    plan.stages.iter().fold(builder, |builder, (_, pattern)| {
        builder.pattern(pattern.clone())
    })
}

impl fmt::Debug for Pipeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pipeline")
            .field("normalizers", &self.parts.normalizers)
            .field("by_hand", &self.parts.by_hand)
            .field("output", &self.parts.output)
            .field("specials", &self.policy.specials)
            .finish_non_exhaustive()
    }
}

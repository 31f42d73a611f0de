//! A tokenizer from its parts.

use std::sync::{Arc, OnceLock};

use bpe_core::{Algorithm, CanonicalForm, Dictionary, SpanEncoder, TokenId};
use bpe_lexers::{Engine, FastLexer, InstructionSet, Lexer, Pattern, Spanner};

use crate::error::LoadError;
use crate::parallel::ParallelParts;
use crate::pieces::PieceEncoder;
use crate::pool::{Engines, Pool};
use crate::specials::{Policy, SpecialKind, SpecialTable, SpecialToken, Specials};
use crate::tokenizer::{Inner, Tokenizer};

/// Patterns in sequence at most: each is a level of recursion for every span.
pub(crate) const MOST_STAGES: usize = 32;

/// Bytes a token where nothing is known of the vocabulary: low, so that an estimate of the number of
/// tokens is rather too high.
const BYTES_PER_TOKEN: f32 = 3.0;

/// What a thread has for the caches of the fast path. With what else it needs, a thread stays below 4 MiB.
const CACHE_BYTES: usize = 62 << 16;

/// Makes a [`Tokenizer`] from a dictionary, patterns, special tokens and engines.
///
/// ```
/// use bytepair::{Algorithm, Engine, Pattern, Tokenizer};
///
/// let tokenizer = Tokenizer::cl100k_base()
///     .to_builder()
///     .lexer(Engine::Reference)
///     .encoder(Algorithm::BufferSweep)
///     .build()?;
/// assert_eq!(tokenizer.encode("Hello")?, [9906]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct TokenizerBuilder {
    name: Option<String>,
    canonical: Arc<CanonicalForm>,
    patterns: Vec<Pattern>,
    engine: Engine,
    lexers: Lexers,
    encoder: Encoder,
    specials: Vec<SpecialToken>,
    policy: Specials,
    bytes_per_token: f32,
    /// Whether the encoder is the caller's own: nothing is known of it.
    own_encoder: bool,
    cache_bytes: usize,
}

/// Where the lexers come from.
#[derive(Clone)]
enum Lexers {
    /// From the patterns, on the chosen engine.
    Patterns,
    /// From a tokenizer that had made them of the same patterns.
    Made(Vec<Box<dyn Lexer>>),
    /// From the caller; there are no patterns then.
    Custom(Vec<Box<dyn Lexer>>),
}

/// Where the encoder comes from.
enum Encoder {
    /// The fast path.
    Default,
    Chosen(Algorithm),
    /// A prototype: the caller's own, or that of a tokenizer.
    Custom(Box<dyn SpanEncoder>),
}

impl Clone for Encoder {
    fn clone(&self) -> Self {
        match self {
            Self::Default => Self::Default,
            Self::Chosen(algorithm) => Self::Chosen(*algorithm),
            Self::Custom(encoder) => Self::Custom(encoder.clone_box()),
        }
    }
}

impl TokenizerBuilder {
    /// A builder over `dictionary`, without patterns and special tokens: each text is one span.
    /// Cost: as [`CanonicalForm::new`].
    pub fn new(dictionary: &Dictionary) -> Self {
        Self::from_canonical(Arc::new(CanonicalForm::new(dictionary)))
    }

    /// A builder over a canonical form that is already there. An improper one is made proper, where
    /// it can be ([`CanonicalForm::properize`]), so that every encoder takes it; where it cannot, the
    /// default encoder is exact on it as it is, in O(n log n) for n bytes. The form of the tokenizer
    /// ([`Tokenizer::canonical`]) says which it is: `is_reordered` for the first, not `is_proper` for
    /// the second, and neither for a dictionary that is used as listed.
    pub fn from_canonical(canonical: Arc<CanonicalForm>) -> Self {
        Self {
            name: None,
            canonical: canonical.properize().unwrap_or(canonical),
            patterns: Vec::new(),
            engine: Engine::Auto,
            lexers: Lexers::Patterns,
            encoder: Encoder::Default,
            specials: Vec::new(),
            policy: Specials::AsText,
            bytes_per_token: BYTES_PER_TOKEN,
            own_encoder: false,
            cache_bytes: CACHE_BYTES,
        }
    }

    pub(crate) fn from_tokenizer(tokenizer: &Tokenizer) -> Self {
        let inner = &tokenizer.inner;
        Self {
            name: inner.name.clone(),
            canonical: Arc::clone(&inner.canonical),
            patterns: inner.patterns.clone(),
            engine: Engine::Auto,
            lexers: match inner.patterns.len() == inner.lexers.len() {
                true => Lexers::Made(inner.lexers.clone()),
                false => Lexers::Custom(inner.lexers.clone()),
            },
            encoder: match inner.pool.prototype().pieces.chosen() {
                Some(encoder) => Encoder::Custom(encoder.clone_box()),
                None => Encoder::Default,
            },
            specials: inner.specials.tokens().to_vec(),
            policy: tokenizer.policy.specials.clone(),
            bytes_per_token: inner.bytes_per_token,
            own_encoder: inner.parallel.own_encoder,
            cache_bytes: inner.cache_bytes,
        }
    }

    /// Names the encoding.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Adds a pattern to the pre-tokenizer: it cuts the pieces that those before it have made. Text
    /// that it does not match is a piece too, so nothing is lost.
    pub fn pattern(mut self, pattern: Pattern) -> Self {
        self.patterns.push(pattern);
        self.forget_made_lexers();
        self
    }

    /// Chooses the engine that runs the patterns. By default the fastest that can.
    pub fn lexer(mut self, engine: Engine) -> Self {
        self.engine = engine;
        self.forget_made_lexers();
        self
    }

    /// Takes lexers of the caller's own in place of the patterns so far. A pattern that is added
    /// after them is an error of [`TokenizerBuilder::build`]: it could only take their place.
    pub fn custom_lexers(mut self, lexers: Vec<Box<dyn Lexer>>) -> Self {
        self.patterns.clear();
        self.lexers = Lexers::Custom(lexers);
        self
    }

    /// Chooses the span encoder, which then merges every piece that is no token. By default pieces go
    /// the fast path: a thread keeps the tokens of pieces that it has seen, in a cache of fixed size, and
    /// merges what is not there with [`Algorithm::PriorityMerge`]'s bound. The tokens are the same.
    pub fn encoder(mut self, algorithm: Algorithm) -> Self {
        self.own_encoder = false;
        self.encoder = Encoder::Chosen(algorithm);
        self
    }

    /// Takes a span encoder of the caller's own.
    pub fn custom_encoder(mut self, encoder: Box<dyn SpanEncoder>) -> Self {
        self.own_encoder = true;
        self.encoder = Encoder::Custom(encoder);
        self
    }

    /// Adds a special token.
    pub fn special_token(self, text: impl Into<String>, id: TokenId) -> Self {
        self.push_special(text.into(), id, SpecialKind::Special)
    }

    /// Adds special tokens.
    pub fn special_tokens<S: Into<String>>(
        self,
        tokens: impl IntoIterator<Item = (S, TokenId)>,
    ) -> Self {
        let tokens = tokens.into_iter();
        tokens.fold(self, |builder, (text, id)| builder.special_token(text, id))
    }

    /// Adds a second text for the special token `id`, which still decodes to its first.
    pub fn special_alias(self, text: impl Into<String>, id: TokenId) -> Self {
        self.push_special(text.into(), id, SpecialKind::Alias)
    }

    /// Adds a token that is matched as text like a special one, but always, whatever [`Specials`]
    /// say (`added_tokens` of a `tokenizer.json` that are not special).
    pub fn added_token(self, text: impl Into<String>, id: TokenId) -> Self {
        self.push_special(text.into(), id, SpecialKind::Added)
    }

    /// Says how special tokens are treated; see [`Tokenizer::with_specials`].
    pub fn specials(mut self, specials: Specials) -> Self {
        self.policy = specials;
        self
    }

    /// Says how many bytes a token covers on ordinary text, for the capacity of output vectors.
    pub fn bytes_per_token(mut self, bytes: f32) -> Self {
        self.bytes_per_token = bytes.max(1.0);
        self
    }

    /// Says how many bytes each thread has for the tokens of pieces that it has seen, on the fast path:
    /// 3.9 MiB by default, near three quarters of it for pieces of up to 15 bytes. Less memory is slower,
    /// never wrong. Not the memory of the vocabulary, which all threads share.
    pub fn cache_bytes(mut self, bytes: usize) -> Self {
        self.cache_bytes = bytes;
        self
    }

    /// The tokenizer.
    ///
    /// # Errors
    ///
    /// A pattern that no engine runs, more than 32 patterns, special tokens that clash with others, or a dictionary that
    /// the chosen encoder refuses.
    pub fn build(self) -> Result<Tokenizer, LoadError> {
        let lexers = match self.lexers {
            Lexers::Custom(lexers) if self.patterns.is_empty() => lexers,
            Lexers::Custom(_) => {
                return Err(LoadError::at(
                    "pattern",
                    "lexers of the caller's own take the place of patterns",
                ));
            }
            Lexers::Made(lexers) => lexers,
            Lexers::Patterns => self
                .patterns
                .iter()
                .map(|pattern| {
                    pattern
                        .lexer(self.engine)
                        .map_err(|error| LoadError::caused("pattern", error))
                })
                .collect::<Result<_, _>>()?,
        };
        if lexers.len() > MOST_STAGES {
            return Err(LoadError::at(
                "pattern",
                format_args!("more than {MOST_STAGES} patterns in sequence"),
            ));
        }
        let chosen = match self.encoder {
            Encoder::Default => None,
            Encoder::Custom(encoder) => Some(encoder),
            Encoder::Chosen(algorithm) => {
                let encoder = algorithm.encoder(&self.canonical).map_err(|error| {
                    let name = algorithm.name();
                    match self.canonical.properize() {
                        Err(cycles) if error.is_improper() => LoadError::caused(name, cycles),
                        _ => LoadError::caused(name, error),
                    }
                })?;
                Some(encoder)
            }
        };
        let specials = SpecialTable::new(self.specials, self.canonical.vocabulary())?;
        let policy = Policy::new(self.policy, &specials)?;
        // Those of the lexer, so that one choice holds for both.
        let set = lexers.first().and_then(|lexer| lexer.as_fast());
        let set = set.map_or_else(InstructionSet::best, FastLexer::instructions);
        let pool = Pool::new(Engines {
            spanner: Spanner::new(lexers.clone()),
            pieces: PieceEncoder::new(&self.canonical, chosen, self.cache_bytes, set),
            tokens: Vec::new(),
            counts: Vec::new(),
        });
        Ok(Tokenizer {
            inner: Arc::new(Inner {
                name: self.name,
                canonical: self.canonical,
                specials,
                patterns: self.patterns,
                lexers,
                pool,
                bytes_per_token: self.bytes_per_token,
                cache_bytes: self.cache_bytes,
                stream: OnceLock::new(),
                #[cfg(feature = "dfa")]
                pairs: OnceLock::new(),
                #[cfg(feature = "dfa")]
                classes: OnceLock::new(),
                parallel: ParallelParts::new(self.own_encoder),
            }),
            policy: Arc::new(policy),
        })
    }

    fn forget_made_lexers(&mut self) {
        if matches!(self.lexers, Lexers::Made(_)) {
            self.lexers = Lexers::Patterns;
        }
    }

    fn push_special(mut self, text: String, id: TokenId, kind: SpecialKind) -> Self {
        self.specials.push(SpecialToken { text, id, kind });
        self
    }
}

impl std::fmt::Debug for TokenizerBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TokenizerBuilder")
            .field("name", &self.name)
            .field("canonical", &self.canonical)
            .field("patterns", &self.patterns)
            .finish_non_exhaustive()
    }
}

//! The embedded vocabularies, and which model uses which.

#[cfg(any(
    feature = "gpt2",
    feature = "r50k_base",
    feature = "p50k_base",
    feature = "cl100k_base",
    feature = "o200k_base"
))]
use {
    crate::builder::TokenizerBuilder,
    bpe_core::{CanonicalForm, ReadLimits},
    bpe_lexers::Pattern,
    std::sync::Arc,
};

use crate::error::LoadError;
use crate::tokenizer::Tokenizer;

/// The names of the encodings that [`Tokenizer::from_name`] knows, whether or not this build has
/// them.
pub const ENCODINGS: &[&str] = &[
    "gpt2",
    "r50k_base",
    "p50k_base",
    "p50k_edit",
    "cl100k_base",
    "o200k_base",
    "o200k_harmony",
];

/// The encodings of models, as tiktoken 0.14 has them. A text that ends in `*` is the beginning of a
/// model's name, any other a whole name; of several that fit the longest counts.
const MODELS: &[(&str, &str)] = &[
    ("o1", "o200k_base"),
    ("o1-*", "o200k_base"),
    ("o3", "o200k_base"),
    ("o3-*", "o200k_base"),
    ("o4-mini", "o200k_base"),
    ("o4-mini-*", "o200k_base"),
    ("gpt-5*", "o200k_base"),
    ("gpt-4.5-*", "o200k_base"),
    ("gpt-4.1", "o200k_base"),
    ("gpt-4.1-*", "o200k_base"),
    ("chatgpt-4o-*", "o200k_base"),
    ("gpt-4o", "o200k_base"),
    ("gpt-4o-*", "o200k_base"),
    ("gpt-oss-*", "o200k_harmony"),
    ("gpt-4", "cl100k_base"),
    ("gpt-4-*", "cl100k_base"),
    ("gpt-3.5", "cl100k_base"),
    ("gpt-3.5-turbo", "cl100k_base"),
    ("gpt-3.5-turbo-*", "cl100k_base"),
    ("gpt-35-turbo", "cl100k_base"),
    ("gpt-35-turbo-*", "cl100k_base"),
    ("davinci-002", "cl100k_base"),
    ("babbage-002", "cl100k_base"),
    ("text-embedding-ada-002", "cl100k_base"),
    ("text-embedding-3-small", "cl100k_base"),
    ("text-embedding-3-large", "cl100k_base"),
    ("text-davinci-003", "p50k_base"),
    ("text-davinci-002", "p50k_base"),
    ("code-davinci-002", "p50k_base"),
    ("code-davinci-001", "p50k_base"),
    ("code-cushman-002", "p50k_base"),
    ("code-cushman-001", "p50k_base"),
    ("davinci-codex", "p50k_base"),
    ("cushman-codex", "p50k_base"),
    ("text-davinci-edit-001", "p50k_edit"),
    ("code-davinci-edit-001", "p50k_edit"),
    ("text-davinci-001", "r50k_base"),
    ("text-curie-001", "r50k_base"),
    ("text-babbage-001", "r50k_base"),
    ("text-ada-001", "r50k_base"),
    ("davinci", "r50k_base"),
    ("curie", "r50k_base"),
    ("babbage", "r50k_base"),
    ("ada", "r50k_base"),
    ("text-similarity-*", "r50k_base"),
    ("text-search-*", "r50k_base"),
    ("code-search-*", "r50k_base"),
    ("gpt2", "gpt2"),
    ("gpt-2", "gpt2"),
];

/// Defines a constructor that builds its tokenizer once and hands out clones.
macro_rules! embedded {
    ($(#[$doc:meta])* $feature:literal, $name:ident, $file:literal, $build:expr) => {
        #[cfg(feature = $feature)]
        impl Tokenizer {
            $(#[$doc])*
            ///
            /// Built at the first call, some tens of milliseconds (docs/benchmarks); later calls clone it.
            pub fn $name() -> Self {
                static TOKENIZER: std::sync::OnceLock<Tokenizer> = std::sync::OnceLock::new();
                let build = || {
                    let file = include_bytes!(concat!("../vocabularies/", $file));
                    let canonical = CanonicalForm::from_compact(file, &ReadLimits::default());
                    let builder = canonical
                        .map(|canonical| TokenizerBuilder::from_canonical(Arc::new(canonical)))
                        .map_err(|error| LoadError::caused(stringify!($name), error));
                    let named = builder.map(|builder| builder.name(stringify!($name)));
                    let tokenizer = named.and_then(|builder| ($build)(builder).build());
                    // The file is part of this crate and covered by its tests.
                    tokenizer.expect("an embedded vocabulary is valid")
                };
                TOKENIZER.get_or_init(build).clone()
            }
        }
    };
}

embedded!(
    /// The encoding of GPT-2: that of `r50k_base` under another name.
    "gpt2", gpt2, "r50k_base.bpec",
    |builder: TokenizerBuilder| builder
        .pattern(Pattern::gpt2())
        .bytes_per_token(GPT2_BYTES_PER_TOKEN)
        .special_token("<|endoftext|>", 50256)
);

embedded!(
    /// The encoding of GPT-3: 50,256 tokens.
    "r50k_base", r50k_base, "r50k_base.bpec",
    |builder: TokenizerBuilder| builder
        .pattern(Pattern::gpt2())
        .bytes_per_token(GPT2_BYTES_PER_TOKEN)
        .special_token("<|endoftext|>", 50256)
);

embedded!(
    /// The encoding of Codex: `r50k_base` and 24 runs of blanks. Id 50256 is the special token's, so
    /// the ordinary ids have a gap.
    "p50k_base", p50k_base, "p50k_base.bpec",
    |builder: TokenizerBuilder| builder
        .pattern(Pattern::gpt2())
        .bytes_per_token(GPT2_BYTES_PER_TOKEN)
        .special_token("<|endoftext|>", 50256)
);

embedded!(
    /// `p50k_base` with the special tokens of the edit models.
    "p50k_base", p50k_edit, "p50k_base.bpec",
    |builder: TokenizerBuilder| builder
        .pattern(Pattern::gpt2())
        .bytes_per_token(GPT2_BYTES_PER_TOKEN)
        .special_tokens([
            ("<|endoftext|>", 50256),
            ("<|fim_prefix|>", 50281),
            ("<|fim_middle|>", 50282),
            ("<|fim_suffix|>", 50283),
        ])
);

embedded!(
    /// The encoding of GPT-3.5 and GPT-4: 100,256 tokens.
    "cl100k_base", cl100k_base, "cl100k_base.bpec",
    |builder: TokenizerBuilder| builder
        .pattern(Pattern::cl100k())
        .bytes_per_token(CL100K_BYTES_PER_TOKEN)
        .special_tokens([
            ("<|endoftext|>", 100257),
            ("<|fim_prefix|>", 100258),
            ("<|fim_middle|>", 100259),
            ("<|fim_suffix|>", 100260),
            ("<|endofprompt|>", 100276),
        ])
);

embedded!(
    /// The encoding of GPT-4o and later models: 199,998 tokens.
    "o200k_base", o200k_base, "o200k_base.bpec",
    |builder: TokenizerBuilder| builder
        .pattern(Pattern::o200k())
        .bytes_per_token(O200K_BYTES_PER_TOKEN)
        .special_tokens([("<|endoftext|>", 199_999), ("<|endofprompt|>", 200_018)])
);

embedded!(
    /// `o200k_base` with the special tokens of the harmony format (gpt-oss). The ids from 200000 to
    /// 201087 that have no name of their own are `<|reserved_N|>`; `<|reserved_200018|>` is a
    /// second text of `<|endofprompt|>`.
    "o200k_base", o200k_harmony, "o200k_base.bpec",
    |builder: TokenizerBuilder| {
        let named = [
            ("<|startoftext|>", 199_998),
            ("<|endoftext|>", 199_999),
            ("<|return|>", 200_002),
            ("<|constrain|>", 200_003),
            ("<|channel|>", 200_005),
            ("<|start|>", 200_006),
            ("<|end|>", 200_007),
            ("<|message|>", 200_008),
            ("<|call|>", 200_012),
            ("<|endofprompt|>", 200_018),
        ];
        let reserved = (200_000..=201_087)
            .filter(|id| named.iter().all(|(_, other)| other != id))
            .map(|id| (format!("<|reserved_{id}|>"), id));
        builder
            .pattern(Pattern::o200k())
            .bytes_per_token(O200K_BYTES_PER_TOKEN)
            .special_tokens(named)
            .special_tokens(reserved)
            .special_alias("<|reserved_200018|>", 200_018)
    }
);

// Bytes a token of the densest of the five kinds of text in `bench-data/corpora`, rounded down, so
// that an output vector rarely grows (001 section 4.1); `cargo xtask bench bytes-per-token`
// prints the measurements.
#[cfg(any(feature = "gpt2", feature = "r50k_base", feature = "p50k_base"))]
const GPT2_BYTES_PER_TOKEN: f32 = 1.3;
#[cfg(feature = "cl100k_base")]
const CL100K_BYTES_PER_TOKEN: f32 = 1.8;
#[cfg(feature = "o200k_base")]
const O200K_BYTES_PER_TOKEN: f32 = 2.9;

impl Tokenizer {
    /// The embedded encoding of this name, one of [`ENCODINGS`].
    ///
    /// # Errors
    ///
    /// A name that is none of them, or an encoding whose feature this build does not have.
    pub fn from_name(name: &str) -> Result<Self, LoadError> {
        match name {
            #[cfg(feature = "gpt2")]
            "gpt2" => Ok(Self::gpt2()),
            #[cfg(feature = "r50k_base")]
            "r50k_base" => Ok(Self::r50k_base()),
            #[cfg(feature = "p50k_base")]
            "p50k_base" => Ok(Self::p50k_base()),
            #[cfg(feature = "p50k_base")]
            "p50k_edit" => Ok(Self::p50k_edit()),
            #[cfg(feature = "cl100k_base")]
            "cl100k_base" => Ok(Self::cl100k_base()),
            #[cfg(feature = "o200k_base")]
            "o200k_base" => Ok(Self::o200k_base()),
            #[cfg(feature = "o200k_base")]
            "o200k_harmony" => Ok(Self::o200k_harmony()),
            _ if ENCODINGS.contains(&name) => Err(LoadError::at(
                format!("encoding {name:?}"),
                "not part of this build: turn on its feature",
            )),
            _ => Err(LoadError::at(
                format!("encoding {name:?}"),
                format_args!(
                    "there is none of this name; there are {}",
                    ENCODINGS.join(", ")
                ),
            )),
        }
    }

    /// The encoding that an OpenAI model uses, by the model's name. Fine-tuned models
    /// (`ft:gpt-4o:...`) have the encoding of their base.
    ///
    /// ```
    /// let tokenizer = bytepair::Tokenizer::for_model("gpt-4o-mini")?;
    /// assert_eq!(tokenizer.name(), Some("o200k_base"));
    /// # Ok::<(), bytepair::LoadError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// A model that is not known, or whose encoding this build does not have.
    pub fn for_model(model: &str) -> Result<Self, LoadError> {
        let base = match model.strip_prefix("ft:") {
            Some(tuned) => tuned.split(':').next().unwrap_or(tuned),
            None => model,
        };
        let is_meant = |name: &str| match name.strip_suffix('*') {
            Some(beginning) => base.starts_with(beginning),
            None => base == name,
        };
        let known = MODELS
            .iter()
            .filter(|(name, _)| is_meant(name))
            .max_by_key(|(name, _)| name.len());
        match known {
            Some((_, encoding)) => Self::from_name(encoding),
            None => Err(LoadError::at(
                format!("model {model:?}"),
                "no encoding is known for it; name the encoding instead",
            )),
        }
    }
}

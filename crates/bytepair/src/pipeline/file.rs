//! A `tokenizer.json` as it is written: its fields, read and checked for their types.

use std::fmt;

use bpe_core::{ReadLimits, TokenId};
use serde::Deserialize;
use serde::de::{Deserializer, Error as _, SeqAccess, Visitor};
use serde_json::Value;

use crate::error::LoadError;
use crate::pipeline::texts::{Merges, Vocab};

/// The fields of a file; `M` is its model.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object with a model")]
pub(crate) struct File<M> {
    #[serde(default)]
    #[allow(dead_code)] // Said by every file, and of no consequence.
    version: Value,
    #[serde(default)]
    pub(crate) truncation: Value,
    #[serde(default)]
    pub(crate) padding: Value,
    #[serde(default, deserialize_with = "added_tokens")]
    pub(crate) added_tokens: Vec<AddedToken>,
    #[serde(default)]
    pub(crate) normalizer: Value,
    #[serde(default)]
    pub(crate) pre_tokenizer: Value,
    #[serde(default)]
    pub(crate) post_processor: Value,
    #[serde(default)]
    pub(crate) decoder: Value,
    pub(crate) model: M,
}

/// A token that is found as text, before the model sees what is left.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an added token")]
pub(crate) struct AddedToken {
    pub(crate) id: TokenId,
    pub(crate) content: String,
    /// Not beside a character of a word.
    #[serde(default)]
    pub(crate) single_word: bool,
    /// With the blanks before it.
    #[serde(default)]
    pub(crate) lstrip: bool,
    /// With the blanks behind it.
    #[serde(default)]
    pub(crate) rstrip: bool,
    /// Found in the normalized text, not before.
    #[serde(default)]
    pub(crate) normalized: bool,
    #[serde(default)]
    pub(crate) special: bool,
}

/// Added tokens at most. Models have some thousands; each costs some hundred bytes in tables.
const MOST_ADDED_TOKENS: usize = 1 << 20;

/// The list of added tokens; reading ends where it is too long.
fn added_tokens<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<AddedToken>, D::Error> {
    struct Tokens;
    impl<'de> Visitor<'de> for Tokens {
        type Value = Vec<AddedToken>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list of added tokens")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Vec<AddedToken>, A::Error> {
            let mut tokens = Vec::new();
            while let Some(token) = seq.next_element()? {
                if tokens.len() == MOST_ADDED_TOKENS {
                    let most = format_args!("more than {MOST_ADDED_TOKENS} added tokens");
                    return Err(A::Error::custom(most));
                }
                tokens.push(token);
            }
            Ok(tokens)
        }
    }
    deserializer.deserialize_seq(Tokens)
}

/// The model of a file, by its type.
pub(crate) enum Model {
    Bpe(BpeModel),
    WordPiece(WordPieceModel),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a model of type BPE")]
pub(crate) struct BpeModel {
    #[serde(rename = "type", default)]
    kind: Option<String>,
    #[serde(default)]
    pub(crate) dropout: Option<f64>,
    #[serde(default)]
    pub(crate) unk_token: Option<String>,
    #[serde(default)]
    pub(crate) continuing_subword_prefix: Option<String>,
    #[serde(default)]
    pub(crate) end_of_word_suffix: Option<String>,
    #[serde(default)]
    pub(crate) fuse_unk: bool,
    #[serde(default)]
    pub(crate) byte_fallback: bool,
    #[serde(default)]
    pub(crate) ignore_merges: bool,
    pub(crate) vocab: Vocab,
    pub(crate) merges: Merges,
}

impl BpeModel {
    /// Whether characters are spelled by their place in a piece.
    pub(crate) fn has_affixes(&self) -> bool {
        self.affix().is_some()
    }

    /// The field that says so.
    pub(crate) fn affix(&self) -> Option<&'static str> {
        let is_some = |affix: &Option<String>| affix.as_ref().is_some_and(|text| !text.is_empty());
        let prefix =
            is_some(&self.continuing_subword_prefix).then_some("continuing_subword_prefix");
        prefix.or_else(|| is_some(&self.end_of_word_suffix).then_some("end_of_word_suffix"))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a model of type WordPiece")]
pub(crate) struct WordPieceModel {
    #[serde(rename = "type", default)]
    #[allow(dead_code)] // Checked by `Kind` before.
    kind: Option<String>,
    pub(crate) unk_token: String,
    pub(crate) continuing_subword_prefix: String,
    pub(crate) max_input_chars_per_word: usize,
    pub(crate) vocab: Vocab,
}

/// The part of a file that says what kind of model it has.
#[derive(Deserialize)]
struct Kind {
    model: ModelKind,
}

#[derive(Deserialize)]
struct ModelKind {
    /// Older files do not say it, and mean BPE.
    #[serde(rename = "type", default)]
    kind: Option<String>,
}

impl File<Model> {
    /// What `file` says.
    ///
    /// # Errors
    ///
    /// No JSON, a field that is missing, unknown or of another type, a file over the limit, or a model
    /// that is not done.
    pub(crate) fn read(file: &[u8], limits: &ReadLimits) -> Result<Self, LoadError> {
        if file.len() > limits.file {
            return Err(LoadError::at(
                "",
                format_args!("the file is over {} bytes", limits.file),
            ));
        }
        // Nearly all are BPE, and large: one pass is to do for them.
        let error = match parse::<File<BpeModel>>(file) {
            Ok(read) => {
                return match read.model.kind.as_deref() {
                    None | Some("BPE") => Ok(read.with_model(Model::Bpe)),
                    Some(other) => Err(LoadError::unsupported("model.type", other)),
                };
            }
            Err(error) => error,
        };
        let kind = parse::<Kind>(file).ok().and_then(|kind| kind.model.kind);
        match kind.as_deref() {
            None | Some("BPE") => Err(error),
            Some("WordPiece") => {
                Ok(parse::<File<WordPieceModel>>(file)?.with_model(Model::WordPiece))
            }
            Some(other) => Err(LoadError::unsupported("model.type", other)),
        }
    }
}

impl<M> File<M> {
    fn with_model<N>(self, model: impl FnOnce(M) -> N) -> File<N> {
        File {
            version: self.version,
            truncation: self.truncation,
            padding: self.padding,
            added_tokens: self.added_tokens,
            normalizer: self.normalizer,
            pre_tokenizer: self.pre_tokenizer,
            post_processor: self.post_processor,
            decoder: self.decoder,
            model: model(self.model),
        }
    }
}

/// What the JSON says; an error names the field, by its path, and line and column.
pub(crate) fn parse<'f, T: Deserialize<'f>>(file: &'f [u8]) -> Result<T, LoadError> {
    // Keeping track of the path takes longer than reading, and so does asking of each string whether it is
    // UTF-8.
    if let Ok(text) = std::str::from_utf8(file)
        && let Ok(value) = serde_json::from_str(text)
    {
        return Ok(value);
    }
    let mut deserializer = serde_json::Deserializer::from_slice(file);
    let value = serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
        let path = error.path().to_string();
        LoadError::caused(if path == "." { "" } else { &path }, error.into_inner())
    })?;
    let end = deserializer.end();
    end.map_err(|error| LoadError::caused("", error))?;
    Ok(value)
}

//! A tokenizer as a `tokenizer.json`.

use std::fmt;

use bpe_core::{Atoms, TokenId, byte_level};
use serde_json::{Map, Value, json};

use crate::specials::SpecialKind;
use crate::tokenizer::Tokenizer;

impl Tokenizer {
    /// This tokenizer as Hugging Face's `tokenizer.json`: model, pattern, special tokens, decoder.
    ///
    /// `tokenizers` and [`Tokenizer::from_tokenizer_json`] give the ids that this tokenizer gives with
    /// all special tokens allowed. Of a rank dictionary, the canonical rules are written in the order
    /// of their priorities. O(bytes of all tokens and rules).
    ///
    /// # Errors
    ///
    /// A vocabulary over characters instead of bytes, lexers of the caller's own, which have no pattern
    /// to write, or a special token with a second text (`o200k_harmony` has one).
    ///
    /// ```
    /// use bytepair::{ReadLimits, Specials, Tokenizer};
    ///
    /// let gpt2 = Tokenizer::gpt2();
    /// let file = gpt2.to_tokenizer_json()?;
    /// let back = Tokenizer::from_tokenizer_json(file.as_bytes(), &ReadLimits::default())?;
    /// assert_eq!(back.encode("Hello, world")?, gpt2.encode("Hello, world")?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn to_tokenizer_json(&self) -> Result<String, SaveError> {
        let canonical = self.canonical();
        if canonical.atoms() != Atoms::Bytes {
            return Err(SaveError(SaveKind::Characters));
        }
        if self.inner.lexers.len() != self.patterns().len() {
            return Err(SaveError(SaveKind::CustomLexers));
        }
        let vocabulary = canonical.vocabulary();
        let spelled = |id: TokenId| {
            let bytes = vocabulary.token_bytes(id).unwrap_or_default();
            byte_level::encode(bytes)
        };
        let added = self.inner.specials.tokens();
        if let Some(alias) = added.iter().find(|token| token.kind == SpecialKind::Alias) {
            return Err(SaveError(SaveKind::Alias(alias.text.clone())));
        }
        // Added tokens stand in the vocabulary too: `tokenizers` numbers those that do not anew.
        let ordinary = vocabulary
            .iter()
            .map(|(id, bytes)| (byte_level::encode(bytes), id.into()));
        let special = added
            .iter()
            .map(|token| (token.text.clone(), token.id.into()));
        let vocab: Map<String, Value> = ordinary.chain(special).collect();
        let mut rules: Vec<_> = canonical.rules().collect();
        rules.sort_by_key(|rule| rule.priority);
        let merges: Vec<[String; 2]> = rules
            .iter()
            .map(|rule| [spelled(rule.left), spelled(rule.right)])
            .collect();
        let byte_level = json!({
            "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false,
        });
        let splits = self.patterns().iter().map(|pattern| {
            json!({
                "type": "Split", "pattern": { "Regex": pattern.as_str() },
                "behavior": "Isolated", "invert": false,
            })
        });
        let stages: Vec<Value> = splits.chain([byte_level.clone()]).collect();
        let added: Vec<Value> = added
            .iter()
            .map(|token| {
                json!({
                    "id": token.id, "content": token.text, "single_word": false, "lstrip": false,
                    "rstrip": false, "normalized": false,
                    "special": token.kind == SpecialKind::Special,
                })
            })
            .collect();
        let file = json!({
            "version": "1.0",
            "truncation": null,
            "padding": null,
            "added_tokens": added,
            "normalizer": null,
            "pre_tokenizer": { "type": "Sequence", "pretokenizers": stages },
            "post_processor": null,
            "decoder": byte_level,
            "model": {
                "type": "BPE", "dropout": null, "unk_token": null,
                "continuing_subword_prefix": null, "end_of_word_suffix": null,
                "fuse_unk": false, "byte_fallback": false,
                "ignore_merges": canonical.whole_piece_lookup(),
                "vocab": vocab, "merges": merges,
            },
        });
        Ok(file.to_string())
    }
}

/// Why a tokenizer has no `tokenizer.json`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SaveError(SaveKind);

#[derive(Debug, Clone, PartialEq, Eq)]
enum SaveKind {
    Characters,
    CustomLexers,
    Alias(String),
}

impl fmt::Display for SaveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            SaveKind::Characters => {
                f.write_str("only vocabularies over bytes are written as tokenizer.json")
            }
            SaveKind::CustomLexers => {
                f.write_str("lexers of the caller's own have no pattern to write")
            }
            SaveKind::Alias(text) => {
                write!(
                    f,
                    "special token {text:?}: a tokenizer.json has one text for an id"
                )
            }
        }
    }
}

impl std::error::Error for SaveError {}

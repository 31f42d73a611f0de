//! A tokenizer as a `tokenizer.json`.

use std::collections::HashMap;
use std::fmt;

use bpe_core::{Atoms, TokenId, byte_level};
use bpe_lexers::Pattern;
use serde_json::{Map, Value, json};

use crate::pipeline::oniguruma::{self, Refused};
use crate::specials::SpecialKind;
use crate::tokenizer::Tokenizer;

impl Tokenizer {
    /// This tokenizer as Hugging Face's `tokenizer.json`: model, pattern, special tokens, decoder.
    ///
    /// `tokenizers` and [`Tokenizer::from_tokenizer_json`] give the ids that this tokenizer gives with
    /// all special tokens allowed. Of a rank dictionary, the canonical rules are written in the order
    /// of their priorities. A vocabulary over characters is spelled as they are, bytes by the names that
    /// `byte_fallback` has for them; a [`Pipeline`](crate::Pipeline) reads it. O(bytes of all tokens and rules).
    ///
    /// # Errors
    ///
    /// Lexers of the caller's own, which have no pattern to write, a pattern that means something else by the
    /// rules of Oniguruma, which `tokenizers` reads patterns by (the message says what), a special token
    /// with a second text (`o200k_harmony` has one), or a token of characters that reads like one for a byte, as `<0x41>`.
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
        if self.inner.lexers.len() != self.patterns().len() {
            return Err(SaveError(SaveKind::CustomLexers));
        }
        let vocabulary = canonical.vocabulary();
        let (of_characters, unknown, fuse_unknown) = match canonical.atoms() {
            Atoms::Characters {
                unknown,
                fuse_unknown,
            } => (true, unknown, fuse_unknown),
            _ => (false, None, false),
        };
        let spell = |bytes: &[u8]| match of_characters {
            true => String::from_utf8_lossy(bytes).into_owned(),
            false => byte_level::encode(bytes),
        };
        let spelled = |id: TokenId| spell(vocabulary.token_bytes(id).unwrap_or_default());
        let added = self.inner.specials.tokens();
        if let Some(alias) = added.iter().find(|token| token.kind == SpecialKind::Alias) {
            return Err(SaveError(SaveKind::Alias(alias.text.clone())));
        }
        // Tokens that stand for a byte are among those of the vocabulary, with that byte.
        let bytes = (0..=u8::MAX).filter_map(|byte| Some((vocabulary.byte_fallback(byte)?, byte)));
        let fallback: HashMap<TokenId, u8> = bytes.collect();
        let mut vocab = Map::new();
        for (id, bytes) in vocabulary.iter() {
            let text = match fallback.get(&id) {
                Some(byte) => format!("<0x{byte:02X}>"),
                None => spell(bytes),
            };
            if vocab.insert(text.clone(), id.into()).is_some() {
                return Err(SaveError(SaveKind::SameText(text)));
            }
        }
        // Added tokens stand in the vocabulary too: `tokenizers` numbers those that do not anew.
        let special = added
            .iter()
            .map(|token| (token.text.clone(), token.id.into()));
        vocab.extend(special);
        let mut rules: Vec<_> = canonical.rules().collect();
        rules.sort_by_key(|rule| rule.priority);
        let merges: Vec<[String; 2]> = rules
            .iter()
            .map(|rule| [spelled(rule.left), spelled(rule.right)])
            .collect();
        let byte_level = json!({
            "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false,
        });
        let patterns = self.patterns().iter().map(pattern_spelling);
        let patterns = patterns.collect::<Result<Vec<_>, _>>()?;
        let splits = patterns.iter().map(|regex| {
            json!({
                "type": "Split", "pattern": { "Regex": regex },
                "behavior": "Isolated", "invert": false,
            })
        });
        let (spelling, decoder) = match of_characters {
            true => {
                let steps = json!([{ "type": "ByteFallback" }, { "type": "Fuse" }]);
                (None, json!({ "type": "Sequence", "decoders": steps }))
            }
            false => (Some(byte_level.clone()), byte_level),
        };
        let stages: Vec<Value> = splits.chain(spelling).collect();
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
            "decoder": decoder,
            "model": {
                "type": "BPE", "dropout": null, "unk_token": unknown.map(spelled),
                "continuing_subword_prefix": null, "end_of_word_suffix": null,
                "fuse_unk": fuse_unknown, "byte_fallback": !fallback.is_empty(),
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
    SameText(String),
    CustomLexers,
    Alias(String),
    Pattern { pattern: String, read: String },
}

impl fmt::Display for SaveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            SaveKind::SameText(text) => {
                write!(f, "two tokens are written as {text:?} in a tokenizer.json")
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
            SaveKind::Pattern { pattern, read } => {
                write!(
                    f,
                    "the pattern {pattern} means something else in a tokenizer.json: {read}"
                )
            }
        }
    }
}

impl std::error::Error for SaveError {}

/// How `pattern` is spelled in a `tokenizer.json`, which is read by the rules of Oniguruma: as it is, or
/// as its family is.
fn pattern_spelling(pattern: &Pattern) -> Result<String, SaveError> {
    let failed = match read_back(pattern) {
        Ok(()) => return Ok(pattern.as_str().to_owned()),
        Err(failed) => failed,
    };
    let known = pattern.family().map(Pattern::of_family);
    match known.filter(|known| read_back(known).is_ok()) {
        Some(known) => Ok(known.as_str().to_owned()),
        None => Err(SaveError(failed)),
    }
}

/// Whether `pattern` means the same where it is read from a `tokenizer.json`.
fn read_back(pattern: &Pattern) -> Result<(), SaveKind> {
    let text = pattern.as_str();
    let failed = |read| SaveKind::Pattern {
        pattern: text.to_owned(),
        read,
    };
    let read = oniguruma::translate(text).map_err(|Refused { place, what }| {
        failed(format!("{what}, at byte {place}, is not read there"))
    })?;
    if read.can_be_empty {
        return Err(failed("there it can match nothing, and cuts".to_owned()));
    }
    let parsed = |text| regex_syntax::parse(text).ok();
    let is_same = read.regex == text
        || parsed(text).is_some_and(|ours| Some(ours) == parsed(&read.regex))
        || pattern
            .family()
            .is_some_and(|family| Pattern::new(&read.regex).family() == Some(family));
    match is_same {
        true => Ok(()),
        false => Err(failed(format!("there it is {}", read.regex))),
    }
}

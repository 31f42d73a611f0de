//! Mistral's `tekken.json`: a pattern, tokens in base64 in the order of their ranks, and special
//! tokens, whose ids come first. A token's id is its rank and the number of special tokens.
//!
//! Only so many tokens of the file count as make up `default_vocab_size` together with the special
//! ones. Special tokens that the file does not name are `<SPECIAL_20>` and so on; files up to version
//! v7 need name none. Text never makes special tokens unless [`Specials`](crate::Specials) say so.

use std::collections::HashSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bpe_core::{Dictionary, ReadLimits, TokenId, Vocabulary};
use bpe_lexers::Pattern;
use serde::Deserialize;
use serde::de::{Deserializer, Error as _};

use crate::builder::TokenizerBuilder;
use crate::error::LoadError;
use crate::pipeline::parse_json;
use crate::tokenizer::Tokenizer;

/// The special tokens of files that name none, by id.
const FIRST_SPECIALS: [&str; 20] = [
    "<unk>",
    "<s>",
    "</s>",
    "[INST]",
    "[/INST]",
    "[AVAILABLE_TOOLS]",
    "[/AVAILABLE_TOOLS]",
    "[TOOL_RESULTS]",
    "[/TOOL_RESULTS]",
    "[TOOL_CALLS]",
    "[IMG]",
    "<pad>",
    "[IMG_BREAK]",
    "[IMG_END]",
    "[PREFIX]",
    "[MIDDLE]",
    "[SUFFIX]",
    "[SYSTEM_PROMPT]",
    "[/SYSTEM_PROMPT]",
    "[TOOL_CONTENT]",
];

/// Versions whose files need not name their special tokens.
const WITHOUT_SPECIALS: [&str; 4] = ["v1", "v2", "v3", "v7"];

/// More special tokens than this are a mistake: real files have 1000.
const MOST_SPECIALS: usize = 1 << 20;

impl Tokenizer {
    /// The tokenizer of a `tekken.json` file's content.
    ///
    /// Its ids are those of `mistral-common`, which puts `<s>` before a text itself where it is asked to.
    /// Settings for images, audio and models are not looked at.
    ///
    /// # Errors
    ///
    /// A file that is malformed, over the limits, or not what its numbers say; the error names the field.
    pub fn from_tekken(file: &[u8], limits: &ReadLimits) -> Result<Self, LoadError> {
        if file.len() > limits.file {
            let reason = format_args!("the file is over {} bytes", limits.file);
            return Err(LoadError::at("", reason));
        }
        let file: File = parse_json(file)?;
        let config = &file.config;
        let count = config.default_num_special_tokens;
        if count > MOST_SPECIALS {
            let reason = format_args!("over {MOST_SPECIALS} special tokens");
            return Err(LoadError::at("config.default_num_special_tokens", reason));
        }
        let wanted = config.default_vocab_size.checked_sub(count);
        let wanted = wanted.filter(|&wanted| wanted <= file.vocab.len());
        let wanted = wanted.ok_or_else(|| {
            let reason = format_args!(
                "{} is not between {count} special tokens and those with {} of the vocabulary",
                config.default_vocab_size,
                file.vocab.len()
            );
            LoadError::at("config.default_vocab_size", reason)
        })?;
        let specials = specials(&file, count)?;

        let mut tokens = Vec::with_capacity(wanted);
        for (rank, token) in file.vocab.into_iter().take(wanted).enumerate() {
            let wrong = |reason: String| LoadError::at(format!("vocab[{rank}]"), reason);
            let Bytes(bytes) = token.token_bytes;
            if token.rank != rank {
                return Err(wrong(format!("the rank is {}, not {rank}", token.rank)));
            }
            if bytes.len() > limits.token {
                return Err(wrong(format!("the token is over {} bytes", limits.token)));
            }
            if u8::try_from(rank).is_ok_and(|byte| bytes != [byte]) {
                return Err(wrong(format!("the token is not the byte 0x{rank:02X}")));
            }
            let id = TokenId::try_from(rank + count);
            tokens.push((id.map_err(|_| wrong("too many tokens".to_owned()))?, bytes));
        }
        if wanted < 256 {
            let reason = "there is not a token for each byte";
            return Err(LoadError::at("config.default_vocab_size", reason));
        }
        let vocabulary =
            Vocabulary::new(tokens).map_err(|error| LoadError::caused("vocab", error))?;
        let dictionary = Dictionary::from_ranks(vocabulary)
            .map_err(|error| LoadError::caused("vocab", error))?;
        TokenizerBuilder::new(&dictionary)
            .pattern(Pattern::new(&config.pattern))
            .special_tokens(specials)
            .build()
    }
}

/// The special tokens, `count` in all, with their ids.
fn specials(file: &File, count: usize) -> Result<Vec<(String, TokenId)>, LoadError> {
    let version = file.config.version.as_deref().unwrap_or("v3");
    let mut specials: Vec<(String, TokenId)> = match &file.special_tokens {
        None if WITHOUT_SPECIALS.contains(&version) => {
            let first = FIRST_SPECIALS.into_iter().map(str::to_owned);
            first.zip(0..).collect()
        }
        None => {
            let reason = format_args!("missing; files of version {version} name them");
            return Err(LoadError::at("special_tokens", reason));
        }
        Some(tokens) => tokens
            .iter()
            .map(|token| (token.token_str.clone(), token.rank))
            .collect(),
    };
    if specials.len() > count {
        let reason = format_args!("{} of them, and {count} have a place", specials.len());
        return Err(LoadError::at("special_tokens", reason));
    }
    let named = specials.len();
    specials.extend((named..count).map(|id| (format!("<SPECIAL_{id}>"), id as TokenId)));
    let (mut texts, mut ids) = (HashSet::new(), HashSet::new());
    for (index, (text, id)) in specials.iter().enumerate() {
        let wrong = |reason: &str| {
            let reason = format!("{reason}: {text:?}, id {id}");
            LoadError::at(format!("special_tokens[{index}]"), reason)
        };
        if *id as usize >= count {
            return Err(wrong("the id is not below the number of special tokens"));
        }
        if !texts.insert(text) || !ids.insert(id) {
            return Err(wrong("the text or the id is there twice"));
        }
    }
    Ok(specials)
}

/// What is read of the file.
#[derive(Deserialize)]
struct File {
    config: Config,
    vocab: Vec<Token>,
    #[serde(default)]
    special_tokens: Option<Vec<Special>>,
}

#[derive(Deserialize)]
struct Config {
    pattern: String,
    default_vocab_size: usize,
    default_num_special_tokens: usize,
    #[serde(default)]
    version: Option<String>,
}

#[derive(Deserialize)]
struct Token {
    rank: usize,
    token_bytes: Bytes,
}

#[derive(Deserialize)]
struct Special {
    rank: TokenId,
    token_str: String,
}

/// Bytes in base64.
struct Bytes(Vec<u8>);

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        let bytes = STANDARD.decode(text.as_bytes());
        Ok(Self(
            bytes.map_err(|_| D::Error::custom("this is no base64"))?,
        ))
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use bpe_core::ReadLimits;
    use serde_json::{Value, json};

    use crate::{Specials, Tokenizer};

    /// Bytes, then `ab`, `abc` and ` c`; the last one does not count.
    fn file() -> Value {
        let bytes = (0..=u8::MAX).map(|byte| vec![byte]);
        let tokens = bytes.chain([b"ab".to_vec(), b"abc".to_vec(), b" c".to_vec()]);
        let tokens = tokens.enumerate().map(|(rank, bytes)| {
            json!({"rank": rank, "token_bytes": STANDARD.encode(bytes), "token_str": null})
        });
        json!({
            "config": {
                "pattern": r" ?\p{L}+|\s+|[^\s\p{L}]+", "num_vocab_tokens": 259,
                "default_vocab_size": 282, "default_num_special_tokens": 24, "version": "v3",
            },
            "vocab": tokens.collect::<Vec<_>>(),
            "multimodal": {"image_patch_size": 16},
        })
    }

    fn read(file: &Value) -> Result<Tokenizer, String> {
        let file = file.to_string();
        let tokenizer = Tokenizer::from_tekken(file.as_bytes(), &ReadLimits::default());
        tokenizer.map_err(|error| error.to_string())
    }

    #[test]
    fn ids_are_ranks_behind_the_special_tokens() {
        let tokenizer = read(&file()).expect("reads");
        let encode = |text: &str| tokenizer.encode(text).expect("encodes");
        assert_eq!(encode("abcab"), [281, 280]);
        assert_eq!(encode(" c"), [24 + 0x20, 24 + 0x63]);
        assert_eq!(tokenizer.decode(&[281, 280]).expect("decodes"), "abcab");
    }

    #[test]
    fn special_tokens_have_the_first_ids_and_stay_text() {
        let tokenizer = read(&file()).expect("reads");
        assert_eq!(tokenizer.encode("<s>").expect("encodes").len(), 3);
        let allowing = tokenizer.with_specials(Specials::AllowAll).expect("known");
        assert_eq!(
            allowing.encode("<s><SPECIAL_20>").expect("encodes"),
            [1, 20]
        );
        assert_eq!(tokenizer.special_tokens().count(), 24);
        let mut named = file();
        named["special_tokens"] = json!([{"rank": 0, "token_str": "<x>", "is_control": true}]);
        let tokenizer = read(&named)
            .expect("reads")
            .with_specials(Specials::AllowAll);
        let ids = tokenizer.expect("known").encode("<x><SPECIAL_1>");
        assert_eq!(ids.expect("encodes"), [0, 1]);
    }

    #[test]
    fn what_is_wrong_with_a_file_is_said_with_its_path() {
        let error = |pointer: &str, value: Value| {
            let mut file = file();
            *file.pointer_mut(pointer).expect("there") = value;
            read(&file).expect_err("malformed")
        };
        let starts = |error: String, start: &str| assert!(error.starts_with(start), "{error}");
        starts(
            error("/vocab/256/token_bytes", json!("?")),
            "vocab[256].token_bytes: ",
        );
        starts(
            error("/vocab/256/rank", json!(7)),
            "vocab[256]: the rank is 7",
        );
        starts(
            error("/vocab/9/token_bytes", json!("YQ==")),
            "vocab[9]: the token is not the byte",
        );
        starts(error("/vocab/257/token_bytes", json!("YWI=")), "vocab: ");
        starts(
            error("/config/default_vocab_size", json!(23)),
            "config.default_vocab_size: ",
        );
        starts(
            error("/config/default_vocab_size", json!(284)),
            "config.default_vocab_size: ",
        );
        starts(
            error("/config/default_vocab_size", json!(200)),
            "config.default_vocab_size: ",
        );
        let specials = "/config/default_num_special_tokens";
        starts(
            error(specials, json!(1 << 21)),
            "config.default_num_special_tokens: ",
        );
        starts(
            error("/config/version", json!("v13")),
            "special_tokens: missing",
        );
        starts(error("/config/pattern", json!("(")), "");
        let twice = [
            json!({"rank": 0, "token_str": "a"}),
            json!({"rank": 0, "token_str": "b"}),
        ];
        let mut file = file();
        let many = (0..25).map(|id| json!({"rank": id, "token_str": id.to_string()}));
        file["special_tokens"] = many.collect();
        starts(
            read(&file).expect_err("malformed"),
            "special_tokens: 25 of them",
        );
        file["special_tokens"] = json!(twice);
        starts(read(&file).expect_err("malformed"), "special_tokens[1]: ");
    }

    #[test]
    fn a_file_that_breaks_off_is_an_error_at_each_byte() {
        let file = file().to_string();
        for end in (0..file.len()).step_by(97) {
            let read = Tokenizer::from_tekken(&file.as_bytes()[..end], &ReadLimits::default());
            assert!(read.is_err(), "{end}");
        }
    }
}

//! GPT-2's two files: `vocab.json`, an object from token to id, and `merges.txt`, a line a merge,
//! the best first. Both spell tokens in the [byte-level alphabet](crate::byte_level).

use alloc::borrow::ToOwned;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};

use crate::byte_level;
use crate::canonical::CanonicalForm;
use crate::dictionary::{Dictionary, DictionaryError};
use crate::limits::ReadLimits;
use crate::vocabulary::{TokenId, Vocabulary, VocabularyError};

/// The dictionary of the two files.
///
/// A first line of `merges.txt` that begins with `#version` and blank lines are skipped. Tokens that
/// no merge makes (`<|endoftext|>`) are kept as unreachable tokens.
///
/// Cost: O(bytes).
///
/// # Errors
///
/// JSON that is no object from tokens to ids below 2^32; a token that comes twice or is not in the
/// alphabet; two tokens of one id; a merge that is not two tokens, or whose product is none; a
/// single byte that no token stands for; a file, line or token over the limits. The error names
/// file and line, or the token.
pub fn read(
    vocab_json: &[u8],
    merges_txt: &[u8],
    limits: &ReadLimits,
) -> Result<Dictionary, Gpt2Error> {
    let vocabulary = read_vocab(vocab_json, limits)?;
    let merges = read_merges(merges_txt, &vocabulary, limits)?;
    let lines: Vec<usize> = merges.iter().map(|merge| merge.0).collect();
    let dictionary = Dictionary::from_merges(vocabulary, merges.iter().map(|merge| merge.1))
        .map_err(|error| {
            let line = error.merge_index().and_then(|index| lines.get(index));
            Gpt2Error(Kind::Dictionary {
                line: line.copied(),
                error,
            })
        })?;
    if let Some(byte) = dictionary.missing_bytes().next() {
        return Err(Gpt2Error(Kind::MissingByte { byte }));
    }
    Ok(dictionary)
}

/// The tokens of `dictionary` as `vocab.json`, in the order of ids. O(bytes).
pub fn write_vocab(dictionary: &Dictionary) -> String {
    let mut file = String::from("{");
    for (index, (id, bytes)) in dictionary.vocabulary().iter().enumerate() {
        if index > 0 {
            file.push_str(", ");
        }
        file.push_str(&quoted(&byte_level::encode(bytes)));
        file.push_str(": ");
        file.push_str(&id.to_string());
    }
    file.push_str("}\n");
    file
}

/// The merges of `dictionary` as `merges.txt`. Of a rank dictionary, whose rules share priorities,
/// the canonical ones, which encode the same. O(rules), or as [`CanonicalForm::new`].
pub fn write_merges(dictionary: &Dictionary) -> String {
    let mut rules = dictionary.rules().to_vec();
    let shared = |two: &[crate::MergeRule]| two[0].priority == two[1].priority;
    if rules.windows(2).any(shared) {
        rules = CanonicalForm::new(dictionary).rules().collect();
        rules.sort_by_key(|rule| rule.priority);
    }
    let vocabulary = dictionary.vocabulary();
    let spelled = |id| byte_level::encode(vocabulary.token_bytes(id).unwrap_or_default());
    let mut file = String::from("#version: 0.2\n");
    for rule in rules {
        file.push_str(&spelled(rule.left));
        file.push(' ');
        file.push_str(&spelled(rule.right));
        file.push('\n');
    }
    file
}

/// The entries of a `vocab.json` object, in the order of the file, a key that comes twice included:
/// token text as spelled, and id.
struct VocabEntries(Vec<(String, TokenId)>);

impl<'de> Deserialize<'de> for VocabEntries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = VocabEntries;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object from tokens to ids")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<VocabEntries, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(VocabEntries(entries))
            }
        }
        deserializer.deserialize_map(Entries)
    }
}

fn read_vocab(file: &[u8], limits: &ReadLimits) -> Result<Vocabulary, Gpt2Error> {
    if file.len() > limits.file {
        return Err(Gpt2Error(Kind::FileTooLarge {
            file: "vocab.json",
            limit: limits.file,
        }));
    }
    let entries: VocabEntries =
        serde_json::from_slice(file).map_err(|error| Gpt2Error(Kind::Json(error.to_string())))?;
    let mut tokens = Vec::with_capacity(entries.0.len());
    for (text, id) in &entries.0 {
        let bytes = byte_level::decode(text).map_err(|character| {
            Gpt2Error(Kind::Alphabet {
                token: text.clone(),
                character,
            })
        })?;
        if bytes.len() > limits.token {
            return Err(Gpt2Error(Kind::TokenTooLong {
                id: *id,
                limit: limits.token,
            }));
        }
        tokens.push((*id, bytes));
    }
    Vocabulary::new(tokens).map_err(|error| {
        let at_fault = entries.0.iter().rfind(|entry| entry.1 == error.id());
        Gpt2Error(Kind::Vocabulary {
            token: at_fault.map(|entry| entry.0.clone()).unwrap_or_default(),
            error,
        })
    })
}

type LineAndMerge = (usize, (TokenId, TokenId));

fn read_merges(
    file: &[u8],
    vocabulary: &Vocabulary,
    limits: &ReadLimits,
) -> Result<Vec<LineAndMerge>, Gpt2Error> {
    if file.len() > limits.file {
        return Err(Gpt2Error(Kind::FileTooLarge {
            file: "merges.txt",
            limit: limits.file,
        }));
    }
    let mut merges = Vec::new();
    for (index, text) in file.split(|&byte| byte == b'\n').enumerate() {
        let line = index + 1;
        let error = |kind| Gpt2Error(Kind::Line { line, kind });
        if text.len() > limits.line {
            return Err(error(LineKind::TooLong { limit: limits.line }));
        }
        if text.ends_with(b"\r") {
            return Err(error(LineKind::CarriageReturn));
        }
        let text = core::str::from_utf8(text).map_err(|_| error(LineKind::NotUtf8))?;
        if text.is_empty() || line == 1 && text.starts_with("#version") {
            continue;
        }
        let (left, right) = text.split_once(' ').ok_or(error(LineKind::NoPair))?;
        let side = |spelled: &str| {
            let bytes = byte_level::decode(spelled).map_err(|character| {
                error(LineKind::Alphabet {
                    token: spelled.to_owned(),
                    character,
                })
            })?;
            vocabulary.id_of(&bytes).ok_or_else(|| {
                error(LineKind::UnknownToken {
                    token: spelled.to_owned(),
                })
            })
        };
        merges.push((line, (side(left)?, side(right)?)));
    }
    Ok(merges)
}

fn quoted(text: &str) -> String {
    // A string always has a JSON form.
    serde_json::to_string(text).unwrap_or_default()
}

/// Why two files are no dictionary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gpt2Error(Kind);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    FileTooLarge {
        file: &'static str,
        limit: usize,
    },
    Json(String),
    Alphabet {
        token: String,
        character: char,
    },
    TokenTooLong {
        id: TokenId,
        limit: usize,
    },
    Vocabulary {
        token: String,
        error: VocabularyError,
    },
    Line {
        line: usize,
        kind: LineKind,
    },
    Dictionary {
        line: Option<usize>,
        error: DictionaryError,
    },
    MissingByte {
        byte: u8,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum LineKind {
    TooLong { limit: usize },
    CarriageReturn,
    NotUtf8,
    NoPair,
    Alphabet { token: String, character: char },
    UnknownToken { token: String },
}

impl Gpt2Error {
    /// The line of `merges.txt` at fault, counted from 1, where one is.
    pub fn merges_line(&self) -> Option<usize> {
        match &self.0 {
            Kind::Line { line, .. } => Some(*line),
            Kind::Dictionary { line, .. } => *line,
            _ => None,
        }
    }
}

impl fmt::Display for Gpt2Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::FileTooLarge { file, limit } => write!(f, "{file} is over {limit} bytes"),
            Kind::Json(error) => write!(f, "vocab.json: {error}"),
            Kind::Alphabet { token, character } => write!(
                f,
                "vocab.json, token {token:?}: {character:?} is not in the byte-level alphabet"
            ),
            Kind::TokenTooLong { id, limit } => {
                write!(f, "vocab.json: token {id} is over {limit} bytes")
            }
            Kind::Vocabulary { token, error } => {
                write!(f, "vocab.json, token {token:?}: {error}")
            }
            Kind::Line { line, kind } => {
                write!(f, "merges.txt, line {line}: ")?;
                match kind {
                    LineKind::TooLong { limit } => write!(f, "the line is over {limit} bytes"),
                    LineKind::CarriageReturn => {
                        f.write_str("the line ends in CR LF; it must end in LF alone")
                    }
                    LineKind::NotUtf8 => f.write_str("the line is not UTF-8"),
                    LineKind::NoPair => f.write_str("no two tokens with a blank between them"),
                    LineKind::Alphabet { token, character } => write!(
                        f,
                        "{character:?} in {token:?} is not in the byte-level alphabet"
                    ),
                    LineKind::UnknownToken { token } => {
                        write!(f, "{token:?} is not in the vocabulary")
                    }
                }
            }
            Kind::Dictionary {
                line: Some(line),
                error,
            } => write!(f, "merges.txt, line {line}: {error}"),
            Kind::Dictionary { line: None, error } => write!(f, "merges.txt: {error}"),
            Kind::MissingByte { byte } => {
                write!(f, "vocab.json: no token for the single byte 0x{byte:02X}")
            }
        }
    }
}

impl core::error::Error for Gpt2Error {}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;

    fn vocab_and(rest: &str) -> String {
        let mut file = String::from("{");
        for byte in 0..=255_u8 {
            let spelled = byte_level::to_char(byte).to_string();
            file.push_str(&format!("{}: {byte}, ", quoted(&spelled)));
        }
        file.push_str(rest);
        file.push('}');
        file
    }

    fn error(vocab: &str, merges: &str) -> String {
        read(vocab.as_bytes(), merges.as_bytes(), &ReadLimits::default())
            .expect_err("invalid")
            .to_string()
    }

    #[test]
    fn files_come_back_as_they_were_written() {
        let vocab = vocab_and(r#""Ġa": 300, "aĠa": 301, "<|endoftext|>": 400"#);
        let merges = "#version: 0.2\nĠ a\na Ġa\n";
        let dictionary =
            read(vocab.as_bytes(), merges.as_bytes(), &ReadLimits::default()).expect("valid");
        assert_eq!(dictionary.vocabulary().id_of(b" a"), Some(300));
        assert_eq!(dictionary.rules().len(), 2);
        assert_eq!(write_merges(&dictionary), merges);
        let again = write_vocab(&dictionary);
        let back = read(again.as_bytes(), merges.as_bytes(), &ReadLimits::default());
        assert_eq!(
            back.expect("valid").vocabulary().iter().collect::<Vec<_>>(),
            dictionary.vocabulary().iter().collect::<Vec<_>>()
        );
    }

    #[test]
    fn each_fault_is_named_with_its_place() {
        let vocab = vocab_and(r#""ab": 256"#);
        let of_merges = |merges: &str| error(&vocab, merges);
        assert_eq!(
            of_merges("#version: 0.2\na b\nab c\n"),
            "merges.txt, line 3: merge 1: tokens 256 and 99 together are no token"
        );
        assert_eq!(
            of_merges("a b\nqq zz\n"),
            "merges.txt, line 2: \"qq\" is not in the vocabulary"
        );
        assert_eq!(
            of_merges("nospace\n"),
            "merges.txt, line 1: no two tokens with a blank between them"
        );
        assert!(of_merges("a b\r\n").contains("CR LF"));
        assert!(of_merges("a b\na b\n").contains("line 2: merge 1 is merge 0 again"));
        assert!(error("[]", "").starts_with("vocab.json: "));
        assert!(error("{\"a\": 4294967296}", "").contains("line 1 column"));
        assert!(error(&vocab_and(r#""ab": 256, "ab": 900"#), "").contains("same bytes"));
        assert!(error(&vocab_and(r#""ab": 97"#), "").contains("id 97"));
        assert!(error(&vocab_and(r#""a b": 256"#), "").contains("byte-level alphabet"));
        assert!(error("{\"a\": 0}", "").contains("single byte 0x00"));
    }
}

//! What a `tokenizer.json` may do to a text before it is cut.

use std::sync::Arc;

use crate::error::LoadError;
use crate::pipeline::node::Node;
use crate::pipeline::search::Search;
use crate::sentencepiece::SentencePieceNormalizer;

/// One step. A sequence of them is a list.
#[derive(Debug, Clone)]
pub(crate) enum Normalizer {
    /// A normal form of Unicode.
    Form(Form),
    /// Each character in lower case.
    Lowercase,
    /// Blanks at the start or the end go.
    Strip { left: bool, right: bool },
    /// Combining marks go.
    StripAccents,
    /// What is found is replaced.
    Replace { search: Search, content: String },
    /// A text that is not empty gets this before it.
    Prepend(String),
    /// BERT's.
    Bert(BertNormalizer),
    /// SentencePiece's rules for control characters and blanks.
    Nmt,
    /// Each byte as the character that stands for it.
    ByteLevel,
    /// What a `.model` file says.
    SentencePiece(Arc<SentencePieceNormalizer>),
}

/// A normal form of Unicode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Form {
    /// Whether compatibility characters are decomposed too (NFKC, NFKD).
    pub(crate) compatible: bool,
    /// Whether what was decomposed is composed again (NFC, NFKC).
    pub(crate) composed: bool,
}

/// What BERT does to a text, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BertNormalizer {
    /// Control characters go, each blank becomes U+0020.
    pub(crate) clean_text: bool,
    /// Blanks around each Han character.
    pub(crate) handle_chinese_chars: bool,
    /// NFD, and nonspacing marks go.
    pub(crate) strip_accents: bool,
    pub(crate) lowercase: bool,
}

impl Normalizer {
    /// The steps that a file's `normalizer` says.
    pub(crate) fn read_all(node: &Node<'_>) -> Result<Vec<Self>, LoadError> {
        let steps = node.steps("normalizers")?;
        steps.iter().map(Self::read).collect()
    }

    fn read(node: &Node<'_>) -> Result<Self, LoadError> {
        let form = |compatible, composed| {
            Self::Form(Form {
                compatible,
                composed,
            })
        };
        let (step, fields): (Self, &[&str]) = match node.kind()? {
            "NFC" => (form(false, true), &[]),
            "NFD" => (form(false, false), &[]),
            "NFKC" => (form(true, true), &[]),
            "NFKD" => (form(true, false), &[]),
            "Lowercase" => (Self::Lowercase, &[]),
            "Strip" => {
                let left = node.field("strip_left").flag()?;
                let right = node.field("strip_right").flag()?;
                (Self::Strip { left, right }, &["strip_left", "strip_right"])
            }
            "StripAccents" => (Self::StripAccents, &[]),
            "Replace" => {
                let search = Search::read(&node.field("pattern"))?;
                let content = node.field("content").text()?.to_owned();
                (Self::Replace { search, content }, &["pattern", "content"])
            }
            "Prepend" => {
                let text = node.field("prepend").text()?;
                (Self::Prepend(text.to_owned()), &["prepend"])
            }
            "BertNormalizer" => {
                let lowercase = node.field("lowercase").flag()?;
                let bert = BertNormalizer {
                    clean_text: node.field("clean_text").flag()?,
                    handle_chinese_chars: node.field("handle_chinese_chars").flag()?,
                    strip_accents: node.field("strip_accents").flag_or(lowercase)?,
                    lowercase,
                };
                let fields = [
                    "clean_text",
                    "handle_chinese_chars",
                    "strip_accents",
                    "lowercase",
                ];
                node.only(&fields)?;
                return Ok(Self::Bert(bert));
            }
            "Nmt" => (Self::Nmt, &[]),
            "ByteLevel" => (Self::ByteLevel, &[]),
            other => return Err(node.field("type").unsupported(other)),
        };
        node.only(fields)?;
        Ok(step)
    }
}

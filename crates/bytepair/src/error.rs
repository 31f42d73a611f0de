//! Why a text has no tokens, and why a tokenizer cannot be made.

use std::fmt;
use std::path::{Path, PathBuf};

use bpe_core::TokenId;
use bpe_lexers::LexError;

/// Why a text has no tokens: where, and what stands there.
///
/// The embedded vocabularies give it only for text that holds a forbidden special token.
#[derive(Debug, Clone)]
pub struct EncodeError {
    kind: EncodeKind,
    document: Option<usize>,
}

#[derive(Debug, Clone)]
enum EncodeKind {
    Forbidden {
        text: String,
        id: TokenId,
        offset: usize,
    },
    Missing(bpe_core::EncodeError),
    Lexer(LexError),
}

impl EncodeError {
    pub(crate) fn forbidden(text: &str, id: TokenId, offset: usize) -> Self {
        Self::from(EncodeKind::Forbidden {
            text: text.to_owned(),
            id,
            offset,
        })
    }

    /// The same error, of the document at `index` of a batch.
    pub(crate) fn in_document(mut self, index: usize) -> Self {
        self.document = Some(index);
        self
    }

    /// The same error, of a text that begins `bytes` bytes before.
    pub(crate) fn moved_by(self, bytes: usize) -> Self {
        let offset = self.byte_offset() + bytes;
        self.placed(offset)
    }

    /// The same error, at byte `place`.
    pub(crate) fn placed(mut self, place: usize) -> Self {
        self.kind = match self.kind {
            EncodeKind::Forbidden { text, id, .. } => EncodeKind::Forbidden {
                text,
                id,
                offset: place,
            },
            EncodeKind::Missing(error) => EncodeKind::Missing(error.at(place)),
            EncodeKind::Lexer(error) => EncodeKind::Lexer(match error.limit() {
                Some(limit) => LexError::step_limit(place, limit),
                None => LexError::engine(place, "the regex engine failed"),
            }),
        };
        self
    }

    /// Where in the text, in bytes.
    pub fn byte_offset(&self) -> usize {
        match &self.kind {
            EncodeKind::Forbidden { offset, .. } => *offset,
            EncodeKind::Missing(error) => error.byte_offset(),
            EncodeKind::Lexer(error) => error.offset(),
        }
    }

    /// The forbidden special token, its text and its id, where that is the reason.
    pub fn forbidden_special(&self) -> Option<(&str, TokenId)> {
        match &self.kind {
            EncodeKind::Forbidden { text, id, .. } => Some((text, *id)),
            _ => None,
        }
    }

    /// True where a byte or character stands at [`EncodeError::byte_offset`] that no token stands
    /// for.
    pub fn is_missing_token(&self) -> bool {
        matches!(self.kind, EncodeKind::Missing(_))
    }

    /// The step limit that the reference lexer reached, where that is the reason.
    pub fn step_limit(&self) -> Option<usize> {
        match &self.kind {
            EncodeKind::Lexer(error) => error.limit(),
            _ => None,
        }
    }

    /// Index of the document, where a batch was encoded.
    pub fn document(&self) -> Option<usize> {
        self.document
    }
}

impl From<EncodeKind> for EncodeError {
    fn from(kind: EncodeKind) -> Self {
        Self {
            kind,
            document: None,
        }
    }
}

impl From<bpe_core::EncodeError> for EncodeError {
    fn from(error: bpe_core::EncodeError) -> Self {
        Self::from(EncodeKind::Missing(error))
    }
}

impl From<LexError> for EncodeError {
    fn from(error: LexError) -> Self {
        Self::from(EncodeKind::Lexer(error))
    }
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(index) = self.document {
            write!(f, "document {index}: ")?;
        }
        match &self.kind {
            EncodeKind::Forbidden { text, offset, .. } => write!(
                f,
                "the text holds the special token {text:?}, which is forbidden (at byte {offset})"
            ),
            EncodeKind::Missing(error) => error.fmt(f),
            EncodeKind::Lexer(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for EncodeError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.kind {
            EncodeKind::Forbidden { .. } => None,
            EncodeKind::Missing(error) => Some(error),
            EncodeKind::Lexer(error) => Some(error),
        }
    }
}

/// Why a tokenizer cannot be made: what its parts say, or what its file says, and where.
///
/// The error of the reader that found it is the [`source`](std::error::Error::source), for programs
/// that want more than the message: a `bpe_core::tiktoken::TiktokenError` with its line, say.
#[derive(Debug)]
pub struct LoadError(LoadKind);

#[derive(Debug)]
pub(crate) enum LoadKind {
    Io {
        path: PathBuf,
        error: std::io::Error,
    },
    FileTooLarge {
        path: PathBuf,
        limit: usize,
    },
    /// Something is wrong at a place of a file or of a builder's parts.
    At {
        place: String,
        reason: String,
    },
    /// A reader or a part of the tokenizer says what is wrong.
    Caused {
        place: String,
        error: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The same, and it is something that a tokenizer may have and this crate does not do.
    #[cfg_attr(not(feature = "tokenizer-json"), allow(dead_code))]
    // Only that format asks for more.
    Unsupported {
        place: String,
        what: String,
    },
}

impl LoadError {
    pub(crate) fn at(place: impl Into<String>, reason: impl fmt::Display) -> Self {
        Self(LoadKind::At {
            place: place.into(),
            reason: reason.to_string(),
        })
    }

    pub(crate) fn caused(
        place: impl Into<String>,
        error: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self(LoadKind::Caused {
            place: place.into(),
            error: error.into(),
        })
    }

    #[cfg(feature = "tokenizer-json")]
    pub(crate) fn unsupported(place: impl Into<String>, what: impl Into<String>) -> Self {
        Self(LoadKind::Unsupported {
            place: place.into(),
            what: what.into(),
        })
    }

    pub(crate) fn new(kind: LoadKind) -> Self {
        Self(kind)
    }

    /// True where the file is well formed and asks for something that is not done here.
    pub fn is_unsupported(&self) -> bool {
        matches!(self.0, LoadKind::Unsupported { .. })
    }

    /// The file that could not be read, where that is the reason.
    pub fn path(&self) -> Option<&Path> {
        match &self.0 {
            LoadKind::Io { path, .. } | LoadKind::FileTooLarge { path, .. } => Some(path),
            _ => None,
        }
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            LoadKind::Io { path, error } => write!(f, "{}: {error}", path.display()),
            LoadKind::FileTooLarge { path, limit } => {
                write!(f, "{}: the file is over {limit} bytes", path.display())
            }
            LoadKind::Caused { place, error } if place.is_empty() => error.fmt(f),
            LoadKind::Caused { place, error } => write!(f, "{place}: {error}"),
            LoadKind::At { place, reason } if place.is_empty() => f.write_str(reason),
            LoadKind::At { place, reason } => write!(f, "{place}: {reason}"),
            LoadKind::Unsupported { place, what } => write!(f, "{place}: {what} is not supported"),
        }
    }
}

impl std::error::Error for LoadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.0 {
            LoadKind::Io { error, .. } => Some(error),
            LoadKind::Caused { error, .. } => Some(&**error),
            _ => None,
        }
    }
}

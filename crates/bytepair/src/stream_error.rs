//! Why a text cannot be streamed, or not further.

use std::fmt;

use bpe_lexers::{AnalysisError, StreamError as SpanError};

use crate::error::EncodeError;

/// Why a text cannot be streamed, or not further.
#[derive(Debug, Clone)]
pub struct StreamError {
    kind: StreamErrorKind,
}

#[derive(Debug, Clone)]
pub(crate) enum StreamErrorKind {
    Encode(EncodeError),
    Spans(SpanError),
    Limit(usize),
    Pattern(AnalysisError),
    OwnLexers,
    /// Why no text of a pipeline can be cut.
    #[cfg(feature = "tokenizer-json")]
    Steps(String),
    /// Where bytes are not UTF-8.
    #[cfg(feature = "tokenizer-json")]
    NotUtf8(usize),
}

#[cfg(feature = "tokenizer-json")]
impl StreamError {
    pub(crate) fn steps(why: &str) -> Self {
        StreamErrorKind::Steps(why.to_owned()).into()
    }

    pub(crate) fn not_utf8(at: usize) -> Self {
        StreamErrorKind::NotUtf8(at).into()
    }

    pub(crate) fn over(limit: usize) -> Self {
        StreamErrorKind::Limit(limit).into()
    }

    /// Where bytes of the text are not UTF-8, which the steps of a
    /// [`Pipeline`](crate::Pipeline) need, if that is the reason.
    pub fn invalid_utf8(&self) -> Option<usize> {
        match &self.kind {
            StreamErrorKind::NotUtf8(at) => Some(*at),
            _ => None,
        }
    }
}

impl StreamError {
    /// The limit that was reached: no more could be held back.
    pub fn limit(&self) -> Option<usize> {
        match &self.kind {
            StreamErrorKind::Limit(limit) => Some(*limit),
            StreamErrorKind::Spans(error) => Some(error.most_readings()),
            _ => None,
        }
    }

    /// True where this tokenizer or pipeline cannot stream at all.
    pub fn is_unsupported(&self) -> bool {
        match &self.kind {
            StreamErrorKind::Pattern(_) | StreamErrorKind::OwnLexers => true,
            #[cfg(feature = "tokenizer-json")]
            StreamErrorKind::Steps(_) => true,
            _ => false,
        }
    }

    /// What [`Tokenizer::encode`](crate::Tokenizer::encode) would say of the text too, where that is the reason.
    pub fn encode_error(&self) -> Option<&EncodeError> {
        match &self.kind {
            StreamErrorKind::Encode(error) => Some(error),
            _ => None,
        }
    }
}

impl From<StreamErrorKind> for StreamError {
    fn from(kind: StreamErrorKind) -> Self {
        Self { kind }
    }
}

impl From<EncodeError> for StreamError {
    fn from(error: EncodeError) -> Self {
        StreamErrorKind::Encode(error).into()
    }
}

impl From<SpanError> for StreamError {
    fn from(error: SpanError) -> Self {
        StreamErrorKind::Spans(error).into()
    }
}

impl fmt::Display for StreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            StreamErrorKind::Encode(error) => error.fmt(f),
            StreamErrorKind::Spans(error) => error.fmt(f),
            StreamErrorKind::Limit(limit) => write!(
                f,
                "what follows could still change more than {limit} tokens or bytes"
            ),
            StreamErrorKind::Pattern(error) => write!(f, "no stream: {error}"),
            StreamErrorKind::OwnLexers => {
                f.write_str("no stream: the lexers are not made from patterns")
            }
            #[cfg(feature = "tokenizer-json")]
            StreamErrorKind::Steps(why) => write!(f, "no text can be cut in parts: {why}"),
            #[cfg(feature = "tokenizer-json")]
            StreamErrorKind::NotUtf8(at) => write!(f, "at byte {at}: not UTF-8"),
        }
    }
}

impl std::error::Error for StreamError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.kind {
            StreamErrorKind::Encode(error) => Some(error),
            StreamErrorKind::Spans(error) => Some(error),
            StreamErrorKind::Pattern(error) => Some(error),
            _ => None,
        }
    }
}

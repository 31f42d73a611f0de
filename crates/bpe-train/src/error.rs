//! What can go wrong.

use core::fmt;
use std::io;

use bpe_core::{DictionaryError, VocabularyError};
use bpe_lexers::LexError;

/// Why words could not be counted.
#[derive(Debug)]
pub struct CountError(pub(crate) CountKind);

#[derive(Debug)]
pub(crate) enum CountKind {
    Overflow,
    TooManyWords,
    Lexer(LexError),
    Header,
    Words { read: u64, stated: u64 },
    Number { index: u64 },
    WordTooLong { index: u64, length: u64 },
    Order { index: u64 },
    TrailingBytes,
    Read { index: u64, error: io::Error },
    Spill { error: io::Error },
    Merge { error: io::Error },
}

impl fmt::Display for CountError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            CountKind::Overflow => f.write_str("a word occurs more than 2^64 - 1 times"),
            CountKind::TooManyWords => f.write_str("more than 2^32 distinct words"),
            CountKind::Lexer(error) => error.fmt(f),
            CountKind::Header => f.write_str("not a file of word counts of version 1"),
            CountKind::Number { index } => {
                write!(f, "word {index} of the counts: a number over 64 bits")
            }
            CountKind::WordTooLong { index, length } => {
                write!(
                    f,
                    "word {index} of the counts has {length} bytes, over the limit"
                )
            }
            CountKind::Order { index } => write!(
                f,
                "word {index} of the counts is empty, has no count, or is not in order"
            ),
            CountKind::Words { read, stated } => {
                write!(f, "the counts are of {read} words instead of {stated}")
            }
            CountKind::TrailingBytes => f.write_str("bytes after the last word of the counts"),
            CountKind::Read { index, error } => write!(f, "word {index} of the counts: {error}"),
            CountKind::Spill { error } => write!(f, "counts cannot be moved to disk: {error}"),
            CountKind::Merge { error } => write!(f, "the sum of the counts: {error}"),
        }
    }
}

impl std::error::Error for CountError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.0 {
            CountKind::Lexer(error) => Some(error),
            CountKind::Read { error, .. }
            | CountKind::Spill { error }
            | CountKind::Merge { error } => Some(error),
            _ => None,
        }
    }
}

/// Why there was nothing to train, or no dictionary of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrainError(pub(crate) TrainKind);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TrainKind {
    TooSmall { least: usize },
    CountsTooLarge,
    MemoryLimit { needed: usize, limit: usize },
    UnknownSide { index: usize },
    DuplicateToken { index: usize },
    SeedToken { index: usize },
    OtherAlphabet,
    TooManyIds,
    Vocabulary(VocabularyError),
    Dictionary(DictionaryError),
}

impl From<VocabularyError> for TrainError {
    fn from(error: VocabularyError) -> Self {
        Self(TrainKind::Vocabulary(error))
    }
}

impl From<DictionaryError> for TrainError {
    fn from(error: DictionaryError) -> Self {
        Self(TrainKind::Dictionary(error))
    }
}

impl TrainError {
    /// Index of the merge to begin with that is at fault, where one is.
    pub fn first_merge_index(&self) -> Option<usize> {
        match self.0 {
            TrainKind::UnknownSide { index } | TrainKind::DuplicateToken { index } => Some(index),
            _ => None,
        }
    }
}

impl fmt::Display for TrainError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            TrainKind::TooSmall { least } => write!(
                f,
                "the alphabet, with the merges to begin with, is {least} tokens already"
            ),
            TrainKind::MemoryLimit { needed, limit } => write!(
                f,
                "training takes about {needed} bytes of memory, over the limit of {limit}"
            ),
            TrainKind::CountsTooLarge => {
                f.write_str("the counts, each times the bytes of its word, add up to over 2^64 - 1")
            }
            TrainKind::UnknownSide { index } => {
                write!(f, "first merge {index}: a side is no token before it")
            }
            TrainKind::DuplicateToken { index } => {
                write!(
                    f,
                    "first merge {index}: an earlier one makes the same token"
                )
            }
            TrainKind::SeedToken { index } => {
                write!(f, "seed token {index} is empty, or can be no token")
            }
            TrainKind::OtherAlphabet => f.write_str("only dictionaries over bytes are extended"),
            TrainKind::TooManyIds => f.write_str("ids over 32 bits"),
            TrainKind::Vocabulary(error) => error.fmt(f),
            TrainKind::Dictionary(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for TrainError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.0 {
            TrainKind::Vocabulary(error) => Some(error),
            TrainKind::Dictionary(error) => Some(error),
            _ => None,
        }
    }
}

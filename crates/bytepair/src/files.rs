//! Tokenizers from vocabulary files.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use bpe_core::{Dictionary, ReadLimits, TokenId};
use bpe_lexers::Pattern;

use crate::builder::TokenizerBuilder;
use crate::error::{LoadError, LoadKind};
use crate::tokenizer::Tokenizer;

impl Tokenizer {
    /// The tokenizer of a `.tiktoken` file's content, with the pattern and the special tokens that
    /// the file does not say.
    ///
    /// ```no_run
    /// use bytepair::{Pattern, ReadLimits, Tokenizer};
    ///
    /// let limits = ReadLimits::default();
    /// let file = bytepair::read_file("my.tiktoken".as_ref(), &limits)?;
    /// let specials = [("<|endoftext|>", 50256)];
    /// let tokenizer = Tokenizer::from_tiktoken(&file, Pattern::gpt2(), specials, &limits)?;
    /// # Ok::<(), bytepair::LoadError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`bpe_core::tiktoken::read`], with the line; a pattern that no engine runs; special tokens
    /// that clash with others.
    pub fn from_tiktoken<S: Into<String>>(
        file: &[u8],
        pattern: Pattern,
        specials: impl IntoIterator<Item = (S, TokenId)>,
        limits: &ReadLimits,
    ) -> Result<Self, LoadError> {
        let vocabulary =
            bpe_core::tiktoken::read(file, limits).map_err(|error| LoadError::caused("", error))?;
        let dictionary =
            Dictionary::from_ranks(vocabulary).map_err(|error| LoadError::caused("", error))?;
        TokenizerBuilder::new(&dictionary)
            .pattern(pattern)
            .special_tokens(specials)
            .build()
    }

    /// The tokenizer of GPT-2's two files, with the pattern and the special tokens that they do not
    /// say.
    ///
    /// # Errors
    ///
    /// As [`bpe_core::gpt2::read`], with the place; a pattern that no engine runs; special tokens
    /// that clash with others.
    #[cfg(feature = "tokenizer-json")]
    pub fn from_gpt2_files<S: Into<String>>(
        vocab_json: &[u8],
        merges_txt: &[u8],
        pattern: Pattern,
        specials: impl IntoIterator<Item = (S, TokenId)>,
        limits: &ReadLimits,
    ) -> Result<Self, LoadError> {
        let dictionary = bpe_core::gpt2::read(vocab_json, merges_txt, limits)
            .map_err(|error| LoadError::caused("", error))?;
        TokenizerBuilder::new(&dictionary)
            .pattern(pattern)
            .special_tokens(specials)
            .build()
    }
}

/// The content of the file at `path`. Reads no more than the limit and one byte, whatever the file is.
///
/// # Errors
///
/// A file that cannot be read, or is over [`ReadLimits::file`].
pub fn read_file(path: &Path, limits: &ReadLimits) -> Result<Vec<u8>, LoadError> {
    let io = |error| {
        LoadError::new(LoadKind::Io {
            path: path.to_owned(),
            error,
        })
    };
    let file = File::open(path).map_err(io)?;
    let size = file.metadata().map_err(io)?.len();
    let too_large = || {
        LoadError::new(LoadKind::FileTooLarge {
            path: path.to_owned(),
            limit: limits.file,
        })
    };
    let limit = limits.file as u64;
    if size > limit {
        return Err(too_large());
    }
    let mut content = Vec::with_capacity(size as usize);
    let mut limited = file.take(limit.saturating_add(1));
    limited.read_to_end(&mut content).map_err(io)?;
    match content.len() > limits.file {
        true => Err(too_large()),
        false => Ok(content),
    }
}

//! Engines of a thread's own.

use std::fmt;

use bpe_core::TokenId;

use crate::error::EncodeError;
use crate::pool::Engines;
use crate::tokenizer::Tokenizer;

/// A tokenizer with engines of its own: what one thread uses for many small texts, without going
/// to the pool each time. The tokens are those of [`Tokenizer`]'s methods of the same names.
///
/// ```
/// let mut worker = bytepair::Tokenizer::cl100k_base().worker();
/// let mut ids = Vec::new();
/// for message in ["Hello", ", world"] {
///     worker.encode_into(message, &mut ids)?;
/// }
/// assert_eq!(ids, [9906, 11, 1917]);
/// # Ok::<(), bytepair::EncodeError>(())
/// ```
pub struct Worker {
    tokenizer: Tokenizer,
    engines: Engines,
}

impl Worker {
    pub(crate) fn new(tokenizer: Tokenizer) -> Self {
        let engines = tokenizer.inner.pool.prototype().duplicate();
        Self { tokenizer, engines }
    }

    /// Appends the tokens of `text` to `ids`. O(bytes).
    ///
    /// # Errors
    ///
    /// As [`Tokenizer::encode`]; `ids` is then as it was.
    pub fn encode_into(
        &mut self,
        text: impl AsRef<[u8]>,
        ids: &mut Vec<TokenId>,
    ) -> Result<(), EncodeError> {
        self.tokenizer
            .encode_with(&mut self.engines, text.as_ref(), ids)
    }

    /// The number of tokens of `text`. O(bytes).
    ///
    /// # Errors
    ///
    /// As [`Tokenizer::encode`].
    pub fn count(&mut self, text: impl AsRef<[u8]>) -> Result<usize, EncodeError> {
        self.tokenizer.count_with(&mut self.engines, text.as_ref())
    }

    /// The tokenizer.
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker")
            .field("tokenizer", &self.tokenizer)
            .finish_non_exhaustive()
    }
}

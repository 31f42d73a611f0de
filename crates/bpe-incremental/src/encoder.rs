//! The engine as a span encoder.

use alloc::boxed::Box;
use alloc::vec::Vec;

use bpe_core::{EncodeError, SpanEncoder, TokenId};

use crate::engine::LastTokenEngine;
use crate::history::History;

/// A [`SpanEncoder`] over a [`LastTokenEngine`].
///
/// Time a byte as a push ([cost](crate#cost)), whatever the span: useful for spans that someone else
/// may make long, and for texts without a pre-tokenizer; not useful for improper dictionaries, which
/// the engine refuses. After the longest span it allocates nothing.
pub struct IncrementalEncoder {
    history: History,
}

impl IncrementalEncoder {
    /// An encoder over `engine`. O(1).
    pub fn new(engine: &LastTokenEngine) -> Self {
        Self {
            history: engine.history(),
        }
    }
}

impl SpanEncoder for IncrementalEncoder {
    fn encode_span(&mut self, span: &[u8], tokens: &mut Vec<TokenId>) -> Result<(), EncodeError> {
        self.history.clear();
        self.history.extend(span)?;
        let start = tokens.len();
        tokens.extend(
            self.history
                .tokens_from_end(span.len())
                .map(|token| token.id),
        );
        tokens[start..].reverse();
        Ok(())
    }

    fn clone_box(&self) -> Box<dyn SpanEncoder> {
        Box::new(Self::new(self.history.engine()))
    }
}

impl core::fmt::Debug for IncrementalEncoder {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("IncrementalEncoder")
            .field("engine", self.history.engine())
            .finish_non_exhaustive()
    }
}

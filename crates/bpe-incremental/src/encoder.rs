//! The engine as a span encoder.

use alloc::boxed::Box;
use alloc::vec::Vec;

use bpe_core::{EncodeError, SpanEncoder, TokenId};

use crate::engine::{LastTokenEngine, Layout};
use crate::history::History;

/// A [`SpanEncoder`] over a [`LastTokenEngine`].
///
/// Time a byte as a push ([cost](crate#cost)), whatever the span: useful for spans that someone else
/// may make long, and for texts without a pre-tokenizer; not useful for improper dictionaries, which
/// the engine refuses. After the longest span it allocates nothing. A tokenizer of the facade takes it as
/// its encoder through `TokenizerBuilder::custom_encoder`.
///
/// A span of bytes is cut into blocks of some 16 KiB at places that no token crosses, so that the
/// last tokens of a block stay in the nearest cache; where there is no such place a block is longer.
/// Two blocks are read at a time, since each waits for memory most of the time.
pub struct IncrementalEncoder {
    /// For the layout and the dictionaries that have no faster way.
    history: History,
    /// The values of the prefixes of two blocks.
    values: [Vec<u32>; 2],
}

/// The least length of a block.
const BLOCK: usize = 1 << 14;

impl IncrementalEncoder {
    /// An encoder over `engine`. O(1).
    pub fn new(engine: &LastTokenEngine) -> Self {
        Self {
            history: engine.history(),
            values: [Vec::new(), Vec::new()],
        }
    }
}

impl SpanEncoder for IncrementalEncoder {
    fn encode_span(&mut self, span: &[u8], tokens: &mut Vec<TokenId>) -> Result<(), EncodeError> {
        let tables = &*self.history.engine().tables;
        let (Layout::Flat(flat), None) = (&tables.layout, &tables.characters) else {
            return encode_by_history(&mut self.history, span, tokens);
        };
        let first = tokens.len();
        let [values, others] = &mut self.values;
        let mut start = 0;
        while start < span.len() {
            let middle = tables.block_end(span, start + BLOCK);
            let end = match middle < span.len() {
                true => tables.block_end(span, middle + BLOCK),
                false => middle,
            };
            let blocks = [&span[start..middle], &span[middle..end]];
            if let Err(offset) = flat.run(blocks, [values, others]) {
                tokens.truncate(first);
                let offset = start + offset;
                return Err(EncodeError::missing_byte(span[offset], offset));
            }
            for (block, values) in blocks.iter().zip([&*values, &*others]) {
                append(tables.ids(), values, block.len(), tokens);
            }
            start = end;
        }
        Ok(())
    }

    fn clone_box(&self) -> Box<dyn SpanEncoder> {
        Box::new(Self::new(self.history.engine()))
    }
}

/// Appends the tokens of the prefix of `len` bytes of which `values` has the last tokens.
fn append(ids: &[TokenId], values: &[u32], mut len: usize, tokens: &mut Vec<TokenId>) {
    let start = tokens.len();
    while len > 0 {
        let value = values[len];
        tokens.push(ids[(value >> 8) as usize]);
        len -= value as usize & 0xFF;
    }
    tokens[start..].reverse();
}

fn encode_by_history(
    history: &mut History,
    span: &[u8],
    tokens: &mut Vec<TokenId>,
) -> Result<(), EncodeError> {
    history.clear();
    history.extend(span)?;
    let start = tokens.len();
    tokens.extend(history.tokens_from_end(span.len()).map(|token| token.id));
    tokens[start..].reverse();
    Ok(())
}

impl core::fmt::Debug for IncrementalEncoder {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("IncrementalEncoder")
            .field("engine", self.history.engine())
            .finish_non_exhaustive()
    }
}

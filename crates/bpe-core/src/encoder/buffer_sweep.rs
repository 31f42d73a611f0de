//! The plainest encoder: look at all pairs, merge the best, start again.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::{EncodeError, SpanEncoder};
use crate::canonical::CanonicalForm;
use crate::vocabulary::TokenId;

/// Sweeps over a buffer of its own for the best pair until there is none (001 section 6.1).
///
/// O(n^2) look-ups for n atoms: each of up to n - 1 merges looks at every pair. Useful to read, and
/// as a check of the others; not useful on spans that someone else may make long.
#[derive(Debug, Clone)]
pub struct BufferSweep {
    canonical: Arc<CanonicalForm>,
    buffer: Vec<TokenId>,
}

impl BufferSweep {
    /// An encoder over `canonical`. O(1).
    pub fn new(canonical: Arc<CanonicalForm>) -> Self {
        Self {
            canonical,
            buffer: Vec::new(),
        }
    }
}

impl SpanEncoder for BufferSweep {
    fn encode_span(&mut self, span: &[u8], tokens: &mut Vec<TokenId>) -> Result<(), EncodeError> {
        self.buffer.clear();
        self.canonical.append_atoms(span, &mut self.buffer)?;
        while let Some((left, product)) = best_pair(&self.canonical, &self.buffer) {
            self.buffer[left] = product;
            self.buffer.remove(left + 1);
        }
        tokens.extend_from_slice(&self.buffer);
        Ok(())
    }

    fn clone_box(&self) -> Box<dyn SpanEncoder> {
        Box::new(Self::new(Arc::clone(&self.canonical)))
    }
}

/// Index of the left token of the pair to merge next, and what it becomes: the pair of best
/// priority, the leftmost of several.
pub(super) fn best_pair(canonical: &CanonicalForm, tokens: &[TokenId]) -> Option<(usize, TokenId)> {
    tokens
        .windows(2)
        .enumerate()
        .filter_map(|(left, pair)| Some((left, canonical.merge(pair[0], pair[1])?)))
        .min_by_key(|(_, merge)| merge.priority)
        .map(|(left, merge)| (left, merge.product))
}

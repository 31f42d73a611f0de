//! The sweep, on the tail of the output.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::buffer_sweep::best_pair;
use super::{EncodeError, SpanEncoder};
use crate::canonical::CanonicalForm;
use crate::vocabulary::TokenId;

/// Sweeps like [`BufferSweep`](super::BufferSweep), on the tail of the output vector (001
/// section 6.2): no scratch memory at all and no final copy.
///
/// O(n^2) look-ups for n atoms. Useful on spans of a few bytes; the output vector grows by n
/// before it shrinks to the tokens.
#[derive(Debug, Clone)]
pub struct TailSweep {
    canonical: Arc<CanonicalForm>,
}

impl TailSweep {
    /// An encoder over `canonical`. O(1).
    pub fn new(canonical: Arc<CanonicalForm>) -> Self {
        Self { canonical }
    }
}

impl SpanEncoder for TailSweep {
    fn encode_span(&mut self, span: &[u8], tokens: &mut Vec<TokenId>) -> Result<(), EncodeError> {
        let start = tokens.len();
        self.canonical.append_atoms(span, tokens)?;
        while let Some((left, product)) = best_pair(&self.canonical, &tokens[start..]) {
            tokens[start + left] = product;
            tokens.remove(start + left + 1);
        }
        Ok(())
    }

    fn clone_box(&self) -> Box<dyn SpanEncoder> {
        Box::new(self.clone())
    }
}

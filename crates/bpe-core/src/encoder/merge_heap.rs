//! The sweep with remembered priorities.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::merge_loop::MergeLoop;
use super::{EncodeError, SpanEncoder};
use crate::canonical::CanonicalForm;
use crate::vocabulary::TokenId;

/// Works on the tail of the output like [`TailSweep`](super::TailSweep), and keeps beside it the
/// priority of every pair, of which a merge changes two at most (001 section 6.3).
///
/// O(n) look-ups and O(n^2) steps over a flat array of 8 bytes a pair for n atoms. Useful for
/// words; not useful on spans that someone else may make long. (The name is the paper's; there is
/// no heap in it.)
#[derive(Debug, Clone)]
pub struct MergeHeap {
    canonical: Arc<CanonicalForm>,
    merge_loop: MergeLoop,
}

impl MergeHeap {
    /// An encoder over `canonical`. O(1).
    pub fn new(canonical: Arc<CanonicalForm>) -> Self {
        Self {
            canonical,
            merge_loop: MergeLoop::default(),
        }
    }
}

impl SpanEncoder for MergeHeap {
    fn encode_span(&mut self, span: &[u8], tokens: &mut Vec<TokenId>) -> Result<(), EncodeError> {
        let start = tokens.len();
        self.canonical.append_atoms(span, tokens)?;
        self.merge_loop
            .sweep_tail(self.canonical.pair_table(), tokens, start);
        Ok(())
    }

    fn clone_box(&self) -> Box<dyn SpanEncoder> {
        Box::new(Self::new(Arc::clone(&self.canonical)))
    }
}

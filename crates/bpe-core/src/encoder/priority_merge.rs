//! The encoder with a heap: bounded on every input.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::merge_loop::MergeLoop;
use super::{EncodeError, SpanEncoder};
use crate::canonical::CanonicalForm;
use crate::vocabulary::TokenId;

/// Keeps the pairs that can merge in a binary heap and the tokens in a doubly linked list (001
/// section 6.4).
///
/// O(n log n) for n atoms, whatever the span and the dictionary: a merge removes one node and adds
/// two heap entries at most, and an entry whose tokens have changed since is dropped when it comes
/// up. Some 28 bytes of scratch memory an atom. Spans of up to 64 atoms take the flat array of
/// [`MergeHeap`](super::MergeHeap) instead; spans of more than 16,384 atoms of a
/// proper dictionary are merged in windows that overlap, so that the time a byte takes stays flat.
/// Useful always, which makes it the default.
#[derive(Debug, Clone)]
pub struct PriorityMerge {
    canonical: Arc<CanonicalForm>,
    merge_loop: MergeLoop,
}

impl PriorityMerge {
    /// An encoder over `canonical`. O(1).
    pub fn new(canonical: Arc<CanonicalForm>) -> Self {
        Self {
            canonical,
            merge_loop: MergeLoop::default(),
        }
    }
}

impl SpanEncoder for PriorityMerge {
    fn encode_span(&mut self, span: &[u8], tokens: &mut Vec<TokenId>) -> Result<(), EncodeError> {
        let start = tokens.len();
        self.canonical.append_atoms(span, tokens)?;
        let merges = self.canonical.pair_table();
        if self.canonical.is_proper() {
            self.merge_loop.merge_long_tail(merges, tokens, start);
        } else {
            self.merge_loop.merge_tail(merges, tokens, start);
        }
        Ok(())
    }

    fn clone_box(&self) -> Box<dyn SpanEncoder> {
        Box::new(Self::new(Arc::clone(&self.canonical)))
    }
}

//! The encoder with a tournament tree: bounded on every input.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::windows::Windows;
use super::{EncodeError, SpanEncoder};
use crate::canonical::CanonicalForm;
use crate::vocabulary::TokenId;

/// Keeps the priorities of pairs in a tournament tree and the tokens in a doubly linked list (001 section
/// 6.4, which has a binary heap in place of the tree).
///
/// O(n log n) for n atoms, whatever the span and the dictionary: a merge removes one node and changes three
/// keys. Some 30 bytes of scratch memory an atom. Spans of up to 24 atoms take the flat array of
/// [`MergeHeap`](super::MergeHeap) instead; spans of more than 8,192 atoms are merged in windows that overlap,
/// so that the time a byte takes stays flat. Useful always, which makes it the default.
#[derive(Debug, Clone)]
pub struct PriorityMerge {
    canonical: Arc<CanonicalForm>,
    windows: Windows,
}

impl PriorityMerge {
    /// An encoder over `canonical`. O(1).
    pub fn new(canonical: Arc<CanonicalForm>) -> Self {
        Self {
            canonical,
            windows: Windows::default(),
        }
    }
}

impl SpanEncoder for PriorityMerge {
    fn encode_span(&mut self, span: &[u8], tokens: &mut Vec<TokenId>) -> Result<(), EncodeError> {
        let start = tokens.len();
        self.canonical.append_atoms(span, tokens)?;
        self.windows
            .merge_tail(self.canonical.pair_table(), tokens, start);
        Ok(())
    }

    fn clone_box(&self) -> Box<dyn SpanEncoder> {
        Box::new(Self::new(Arc::clone(&self.canonical)))
    }
}

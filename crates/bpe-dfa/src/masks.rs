//! Bit masks of the tokens that may come.

use std::fmt;
use std::sync::Arc;

use bpe_core::TokenId;

use crate::pairs::{PairRelation, StateId};

/// Which tokens may come in a state, as bit masks over the vocabulary: bit `id % 64` of word `id / 64`.
///
/// Most states forbid a few hundred or thousand tokens, which are cleared one by one. Those that forbid
/// most are stored as bits, as many as the caller has memory for.
///
/// ```
/// use std::sync::Arc;
/// use bpe_core::{CanonicalForm, Dictionary, Vocabulary};
/// use bpe_dfa::{CanonicalMasks, PairRelation};
///
/// let vocabulary = Vocabulary::new([(0, "a"), (1, "b"), (2, "ab")])?;
/// let dictionary = Dictionary::from_merges(vocabulary, [(0, 1)])?;
/// let pairs = Arc::new(PairRelation::new(&CanonicalForm::new(&dictionary))?);
/// let masks = CanonicalMasks::new(Arc::clone(&pairs), 1 << 20);
/// let mut mask = vec![0; masks.words()];
/// masks.fill(pairs.state_after(0).expect("a token"), &mut mask);
/// assert_eq!(mask, [0b101]); // after "a" anything but "b"
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct CanonicalMasks {
    pairs: Arc<PairRelation>,
    /// The canonical tokens.
    all: Vec<u64>,
    /// Of each state where its bits begin in `bits`, in masks; `NOT_STORED` where they are not there.
    stored: Vec<u32>,
    bits: Vec<u64>,
}

const NOT_STORED: u32 = u32::MAX;

impl CanonicalMasks {
    /// Masks for a relation. The states that forbid most tokens, and at least as many as a mask has
    /// words, are stored as bits, in `bytes` of memory at most. O(stored masks * tokens).
    pub fn new(pairs: Arc<PairRelation>, bytes: usize) -> Self {
        let ids = (0..pairs.len() as u32).filter_map(|number| pairs.token_with_number(number));
        let words = ids.clone().max().map_or(0, |id| id as usize / 64 + 1);
        let mut all = vec![0; words];
        for id in ids {
            all[id as usize / 64] |= 1 << (id % 64);
        }
        let mut masks = Self {
            stored: vec![NOT_STORED; pairs.state_count()],
            pairs,
            all,
            bits: Vec::new(),
        };
        let most = bytes / (8 * words.max(1));
        let mut states: Vec<u32> = (0..masks.stored.len() as u32)
            .filter(|&state| masks.pairs.forbidden_count(StateId(state)) > words)
            .collect();
        let by_size = |&state: &u32| std::cmp::Reverse(masks.pairs.forbidden_count(StateId(state)));
        states.sort_unstable_by_key(by_size);
        states.truncate(most);
        masks.bits = vec![0; states.len() * words];
        for (index, (&state, mask)) in states
            .iter()
            .zip(masks.bits.chunks_exact_mut(words.max(1)))
            .enumerate()
        {
            mask.copy_from_slice(&masks.all);
            clear(&masks.pairs, StateId(state), mask);
            masks.stored[state as usize] = index as u32;
        }
        masks
    }

    /// Length of a mask, in words.
    pub fn words(&self) -> usize {
        self.all.len()
    }

    /// Sets `mask` to the tokens that may come in this state. Words beyond [`CanonicalMasks::words`] are
    /// set to 0; a mask that is shorter takes what has place. Some microseconds for 200,000 tokens.
    pub fn fill(&self, state: StateId, mask: &mut [u64]) {
        let len = mask.len().min(self.all.len());
        let (mask, beyond) = mask.split_at_mut(len);
        beyond.fill(0);
        match self.stored_mask(state) {
            Some(stored) => mask.copy_from_slice(&stored[..len]),
            None => {
                mask.copy_from_slice(&self.all[..len]);
                clear(&self.pairs, state, mask);
            }
        }
    }

    /// Takes the tokens out of `mask` that may not come in this state, those that are not canonical among
    /// them. Some microseconds for 200,000 tokens.
    pub fn restrict(&self, state: StateId, mask: &mut [u64]) {
        let len = mask.len().min(self.all.len());
        let (mask, beyond) = mask.split_at_mut(len);
        beyond.fill(0);
        let allowed = self.stored_mask(state);
        for (word, allowed) in mask.iter_mut().zip(allowed.unwrap_or(&self.all)) {
            *word &= allowed;
        }
        if allowed.is_none() {
            clear(&self.pairs, state, mask);
        }
    }

    /// The relation.
    pub fn relation(&self) -> &Arc<PairRelation> {
        &self.pairs
    }

    /// Bytes of memory, those of the relation not counted.
    pub fn memory(&self) -> usize {
        8 * (self.all.len() + self.bits.len()) + 4 * self.stored.len()
    }

    fn stored_mask(&self, state: StateId) -> Option<&[u64]> {
        let index = *self.stored.get(state.index())?;
        let words = self.all.len();
        (index != NOT_STORED).then(|| &self.bits[index as usize * words..][..words])
    }
}

/// Clears the bits of what a state forbids.
fn clear(pairs: &PairRelation, state: StateId, mask: &mut [u64]) {
    let ids = pairs.ids_by_number();
    pairs.rows().for_each_span(state.0, |start, end| {
        for &id in &ids[start as usize..end as usize] {
            if let Some(word) = mask.get_mut(id as usize / 64) {
                *word &= !(1 << (id % 64));
            }
        }
    });
}

impl PairRelation {
    /// Sets `mask` to the tokens that may come in this state, as bits by [number](PairRelation::number):
    /// an order in which what is forbidden is a few intervals, so that this is faster than
    /// [`CanonicalMasks::fill`] and needs no tables. `mask` has `len().div_ceil(64)` words; what a longer
    /// one has beyond is set to 0.
    pub fn fill_by_number(&self, state: StateId, mask: &mut [u64]) {
        let count = self.len();
        let whole = (count / 64).min(mask.len());
        mask[..whole].fill(u64::MAX);
        mask[whole..].fill(0);
        if let Some(word) = mask.get_mut(count / 64) {
            *word = (1 << (count % 64)) - 1;
        }
        if state.index() >= self.state_count() {
            mask.fill(0);
            return;
        }
        self.rows().for_each_span(state.0, |start, end| {
            let (first, last) = (start as usize / 64, (end as usize - 1) / 64);
            if last >= mask.len() {
                return;
            }
            let from = u64::MAX << (start % 64);
            let to = u64::MAX >> (63 - (end - 1) % 64);
            if first == last {
                mask[first] &= !(from & to);
            } else {
                mask[first] &= !from;
                mask[first + 1..last].fill(0);
                mask[last] &= !to;
            }
        });
    }

    pub(crate) fn ids_by_number(&self) -> &[TokenId] {
        &self.id_of_number
    }
}

impl fmt::Debug for CanonicalMasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CanonicalMasks")
            .field("words", &self.words())
            .field("stored", &(self.bits.len() / self.all.len().max(1)))
            .finish_non_exhaustive()
    }
}

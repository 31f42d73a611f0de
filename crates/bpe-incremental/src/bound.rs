//! How much eager output can ever hold back, from the rules alone.

use alloc::vec::Vec;

use bpe_core::{CanonicalForm, MergeRule, TokenId};

/// The most bytes that eager output can ever hold back on any text, `None` where the dictionary is
/// improper, or fuses unknown characters into one token of any length. O(n log n) for n rules.
///
/// What stands at the end of a text can change tokens further to the left, but only through a chain
/// of rules of falling priority. The bound is the longest such chain plus the longest token less one
/// (docs/theory.md, Theorem 14). It holds for every text; real text needs far less.
///
/// ```
/// use bpe_core::{CanonicalForm, Dictionary, Vocabulary};
///
/// let vocabulary = Vocabulary::new([(0, "a"), (1, "b"), (2, "c"), (3, "ab"), (4, "bc")])?;
/// let dictionary = Dictionary::from_merges(vocabulary, [(1, 2), (0, 1)])?; // bc, then ab
/// // "ab": will b go to a, or to a c? And after "a"?
/// assert_eq!(bpe_incremental::held_bytes_bound(&CanonicalForm::new(&dictionary)), Some(3));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn held_bytes_bound(canonical: &CanonicalForm) -> Option<usize> {
    let fuses = matches!(
        canonical.atoms(),
        bpe_core::Atoms::Characters {
            fuse_unknown: true,
            ..
        }
    );
    if fuses || !canonical.is_proper() {
        return None;
    }
    let vocabulary = canonical.vocabulary();
    let ids: Vec<TokenId> = vocabulary.iter().map(|(id, _)| id).collect();
    let bytes = |id| vocabulary.token_bytes(id).map_or(0, <[u8]>::len);
    let mut chains = Chains::new(&ids);
    let mut rules: Vec<MergeRule> = canonical.rules().collect();
    rules.sort_unstable_by_key(|rule| rule.priority);
    let mut longest_token = 1;
    let mut longest_chain = 0;
    for rule in &rules {
        let chain = chains.add(rule, bytes(rule.left));
        longest_chain = longest_chain.max(chain);
        longest_token = longest_token.max(bytes(rule.product));
    }
    if canonical.atoms() != bpe_core::Atoms::Bytes {
        longest_token = longest_token.max(4); // An unfinished character.
    }
    Some(longest_token - 1 + longest_chain)
}

/// The longest chains so far, in bytes.
struct Chains<'a> {
    ids: &'a [TokenId],
    /// Of each token: over the rules so far that have it on the left.
    of_left: Vec<usize>,
    /// Of each token: the chain that can go on with something that grew into this token to the
    /// right.
    of_grown: Vec<usize>,
}

impl<'a> Chains<'a> {
    fn new(ids: &'a [TokenId]) -> Self {
        Self {
            ids,
            of_left: alloc::vec![0; ids.len()],
            of_grown: alloc::vec![0; ids.len()],
        }
    }

    /// The longest chain that ends with `rule`, whose left side has so many bytes.
    fn add(&mut self, rule: &MergeRule, left_bytes: usize) -> usize {
        let place = |id| self.ids.binary_search(&id);
        let (Ok(left), Ok(right), Ok(product)) =
            (place(rule.left), place(rule.right), place(rule.product))
        else {
            return 0; // A rule of a canonical form has tokens only.
        };
        let chain = left_bytes + self.of_left[right].max(self.of_grown[right]);
        self.of_left[left] = self.of_left[left].max(chain);
        self.of_grown[product] = self.of_left[left].max(self.of_grown[left]);
        chain
    }
}

//! All that properizing finds out about a dictionary.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use super::{Counts, Forest, NotProperizable, outcome};
use crate::canonical::{CanonicalForm, DropReason, DroppedRule};
use crate::dictionary::{Dictionary, ImproperRule};
use crate::vocabulary::TokenId;

/// What properizing a dictionary found: improper rules, rules that never fire and why, tokens out of
/// reach, tokens with several rules; and the proper form, or where it fails.
///
/// ```
/// use bpe_core::{Dictionary, Properization, Vocabulary};
///
/// let vocabulary = Vocabulary::new([(0, "a"), (1, "aa"), (2, "aaa")])?;
/// let dictionary = Dictionary::from_merges(vocabulary, [(1, 0), (0, 0), (0, 1)])?;
/// let properization = Properization::new(&dictionary);
/// assert_eq!(properization.improper_rules().len(), 1); // aa+a stands before a+a,
/// assert_eq!(properization.dropped_rules().len(), 1); // a+aa never fires,
/// assert!(properization.proper_form().is_none()); // and aaaa is aaa|a, in no order of the rules.
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Properization {
    form: Arc<CanonicalForm>,
    result: Result<Arc<CanonicalForm>, NotProperizable>,
    rules: usize,
    improper_rules: Vec<ImproperRule>,
    dropped_rules: Vec<DroppedRule>,
    contested_tokens: Vec<(TokenId, usize)>,
    improper_canonical_rules: usize,
    counts: Counts,
}

impl Properization {
    /// Properizes `dictionary`. Cost: that of [`CanonicalForm::new`], and O(n log n) for n tokens and
    /// rules.
    pub fn new(dictionary: &Dictionary) -> Self {
        let form = Arc::new(CanonicalForm::new(dictionary));
        let mut products: Vec<TokenId> =
            dictionary.rules().iter().map(|rule| rule.product).collect();
        products.sort_unstable();
        let contested_tokens = products
            .chunk_by(|a, b| a == b)
            .filter(|rules| rules.len() > 1)
            .map(|rules| (rules[0], rules.len()))
            .collect();
        let (result, counts) = match form.is_proper() {
            true => {
                let none = Counts {
                    trees: 0,
                    grown_rules: 0,
                    needless: 0,
                };
                (Ok(Arc::clone(&form)), none)
            }
            false => outcome(&form, Forest::new(&form).order()),
        };
        Self {
            result,
            rules: dictionary.rules().len(),
            improper_rules: dictionary.improper_rules(),
            dropped_rules: form.dropped_rules(dictionary).collect(),
            contested_tokens,
            improper_canonical_rules: match form.is_proper() {
                true => 0,
                false => form.improper_rules().count(),
            },
            form,
            counts,
        }
    }

    /// The canonical form in the order of the file, on which SentencePiece semantics is that of the
    /// dictionary.
    pub fn original_form(&self) -> &Arc<CanonicalForm> {
        &self.form
    }

    /// The proper form with the same tokens for every span: the original one where it is proper.
    /// `None` where there is a cycle.
    pub fn proper_form(&self) -> Option<&Arc<CanonicalForm>> {
        self.result.as_ref().ok()
    }

    /// The cycles, where there is no proper form.
    pub fn not_properizable(&self) -> Option<&NotProperizable> {
        self.result.as_ref().err()
    }

    /// Number of rules as listed.
    pub fn rule_count(&self) -> usize {
        self.rules
    }

    /// The rules, as listed, with a side that a later rule makes, in order. Many of them can never fire.
    pub fn improper_rules(&self) -> &[ImproperRule] {
        &self.improper_rules
    }

    /// Number of those improper rules that have a side which *only* later rules make.
    pub fn rules_made_too_late(&self) -> usize {
        let rules = self.improper_rules.iter();
        rules.filter(|improper| improper.only_later).count()
    }

    /// Number of canonical rules with a side that a later one makes. Where it is 0, the dictionary is
    /// proper once the rules that never fire are gone.
    pub fn improper_canonical_rules(&self) -> usize {
        self.improper_canonical_rules
    }

    /// The rules that never fire, in order, with the reason.
    pub fn dropped_rules(&self) -> &[DroppedRule] {
        &self.dropped_rules
    }

    /// Number of dropped rules whose product merging its own bytes does not give, of those whose product is
    /// there before the first merge, and of those whose product another rule makes.
    pub fn dropped_by_reason(&self) -> [usize; 3] {
        let mut counts = [0; 3];
        for dropped in &self.dropped_rules {
            let place = match dropped.reason {
                DropReason::ProductUnreachable => 0,
                DropReason::ProductIsAtom => 1,
                DropReason::MadeByAnotherRule(_) => 2,
            };
            counts[place] += 1;
        }
        counts
    }

    /// The tokens that more than one rule makes, in ascending order, with the number of rules: all
    /// but one of these never fire. (The same two sides twice are no dictionary:
    /// [`Dictionary::from_merges`] refuses them.)
    pub fn tokens_of_several_rules(&self) -> &[(TokenId, usize)] {
        &self.contested_tokens
    }

    /// Number of growing trees with more than one rule. 0 where the original form is proper.
    pub fn growing_trees(&self) -> usize {
        self.counts.trees
    }

    /// Number of rules that grow from a seed, the seeds aside. 0 where the original form is proper.
    pub fn grown_rules(&self) -> usize {
        self.counts.grown_rules
    }

    /// Number of constraints that were left out to break a cycle, since no text can need them.
    pub fn needless_constraints(&self) -> usize {
        self.counts.needless
    }
}

impl fmt::Debug for Properization {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Properization")
            .field("rules", &self.rules)
            .field("improper_rules", &self.improper_rules.len())
            .field("dropped_rules", &self.dropped_rules.len())
            .field("proper", &self.result.is_ok())
            .finish_non_exhaustive()
    }
}

//! Properizing: other priorities, with which an improper dictionary becomes a proper one that gives
//! the same tokens.
//!
//! SentencePiece semantics on an improper dictionary can go back: a merge makes a token that a rule
//! of better priority takes at once. Standard semantics never goes back. To get the same tokens from
//! it, the rule that is taken at once has to come *later* in the list than the rule that makes its
//! side. 000 App. A finds such an order, where its construction has one:
//!
//! ```text
//! rules, in order:  1. ab c -> abc    2. a b -> ab    3. c d -> cd       "abcd": ab, abc | d
//!
//! growing trees:    2. a b -> ab      3. c d -> cd
//!                   └ 1. ab c -> abc
//!
//! new order:        2, 1, 3                                              "abcd": ab, abc | d
//! ```
//!
//! 1. **Filtering**: rules that can never fire go; that is the [`CanonicalForm`] (App. A.2).
//! 2. **Growing trees** (App. A.3). The merges of a text come in phases: first those with the best
//!    seed, each with all that grows from it, then those with the next. The *seed* of a rule is the
//!    rule of lowest priority among those that make its product; rules of one seed are a tree.
//! 3. **Constraints** (App. A.4) within each tree, see [`Constraint`]. Trees keep the order of their
//!    seeds.
//! 4. **Topological order** of each tree, the old priority first among free choices.
//!
//! Where the constraints of a tree have a cycle, those that no text can need are left out: two rules
//! compete for three neighbouring tokens, and if the text of these alone is not merged as the
//! constraint says, no longer text is. What still has a cycle is [`NotProperizable`]. The construction is
//! sufficient, not necessary: a cycle alone does not prove that no order exists.
//!
//! That the order gives the same tokens is proved in docs/theory.md, section 7 (000 has a sketch), and tested:
//! `cargo xtask verify` tries all lists of up to three merges over two letters, `--full` of four.
//!
//! Cost: O(n log n) for n tokens beyond the canonical form; trees with a cycle are looked at with a
//! bounded amount of work besides.

mod difference;
mod order;
mod report;
mod trees;

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

pub use difference::{Difference, Search};
pub use report::Properization;

use crate::canonical::CanonicalForm;
use crate::dictionary::MergeRule;
use trees::{Forest, Ordered};

/// Why a rule of a growing tree has to come before another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Constraint {
    /// It makes a side of the other (000: tree edge).
    Tree,
    /// Both take the same growing token, from different directions, and this one has the better
    /// priority (000: sibling edge; two of one direction do not compete).
    Sibling,
    /// It takes a token from the left that the other takes from the right: the leftmost seed grows
    /// first (000: conflict edge).
    Conflict,
    /// It takes a grown token with what is left of it, the other appends a token that grows from a
    /// later seed: the earlier seed has stopped growing before the later one begins. (Not in 000,
    /// whose edges alone allow orders that give other tokens.)
    Earlier,
}

/// A cycle among the constraints of one growing tree.
#[derive(Debug, Clone)]
pub struct Cycle {
    seed: MergeRule,
    steps: Vec<Step>,
    tree: usize,
    /// Texts for which the attempted order breaks a constraint.
    overlaps: Vec<Vec<u8>>,
}

/// A rule of a [`Cycle`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// The rule, with its priority in the original order.
    pub rule: MergeRule,
    /// Why it has to come before the next rule of the cycle; the last one before the first.
    pub reason: Constraint,
}

impl Cycle {
    /// The rule that the tree grows from.
    pub fn seed(&self) -> MergeRule {
        self.seed
    }

    /// Rules of which each has to come before the next, and the last before the first.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Number of rules in the tree.
    pub fn tree_rules(&self) -> usize {
        self.tree
    }
}

/// The construction of 000 App. A finds no proper order for a dictionary. This does not prove that
/// there is none; [`NotProperizable::difference`] looks for a text that the attempted order fails on.
#[derive(Debug, Clone)]
pub struct NotProperizable {
    form: Arc<CanonicalForm>,
    attempt: Arc<CanonicalForm>,
    cycles: Vec<Cycle>,
}

impl NotProperizable {
    /// A cycle for each growing tree that has one, in the order of their seeds; at least one.
    pub fn cycles(&self) -> &[Cycle] {
        &self.cycles
    }

    /// The best order that was tried: it is proper, keeps all constraints of the other trees and as many
    /// as it can of these, but gives other tokens for some texts. Not to be used for encoding.
    pub fn attempted_form(&self) -> &Arc<CanonicalForm> {
        &self.attempt
    }
}

impl fmt::Display for NotProperizable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the dictionary is improper, and no proper order of its rules was found")?;
        if let Some(cycle) = self.cycles.first() {
            let products = cycle.steps.iter().map(|step| step.rule.product);
            f.write_str(": the rules of tokens ")?;
            for (index, product) in products.enumerate() {
                let separator = if index == 0 { "" } else { ", " };
                write!(f, "{separator}{product}")?;
            }
            f.write_str(" have to come before one another")?;
        }
        Ok(())
    }
}

impl core::error::Error for NotProperizable {}

impl CanonicalForm {
    /// A proper form that gives the same tokens as this one, for every span: this one if it is
    /// proper, else one with other priorities (000 App. A; see [`properize`](crate::properize)).
    ///
    /// Cost: O(n log n) for n tokens.
    ///
    /// # Errors
    ///
    /// Constraints that have a cycle. Encoders that take improper dictionaries are exact on this form then.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use bpe_core::{CanonicalForm, Dictionary, Vocabulary};
    ///
    /// let vocabulary = Vocabulary::new([(0, "a"), (1, "b"), (2, "ab"), (3, "abb")])?;
    /// // ab+b stands before a+b, which makes its side.
    /// let dictionary = Dictionary::from_merges(vocabulary, [(2, 1), (0, 1)])?;
    /// let form = Arc::new(CanonicalForm::new(&dictionary));
    /// assert!(!form.is_proper());
    /// let proper = form.properize()?;
    /// assert!(proper.is_proper() && proper.is_reordered());
    /// assert!(proper.rule(2).map(|rule| rule.priority) < proper.rule(3).map(|rule| rule.priority));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn properize(self: &Arc<Self>) -> Result<Arc<Self>, NotProperizable> {
        if self.is_proper() {
            return Ok(Arc::clone(self));
        }
        outcome(self, Forest::new(self).order()).0
    }
}

/// Number of growing trees of more than one rule, and of rules in them that are no seeds.
struct Counts {
    trees: usize,
    grown_rules: usize,
    needless: usize,
}

fn outcome(
    form: &Arc<CanonicalForm>,
    ordered: Ordered,
) -> (Result<Arc<CanonicalForm>, NotProperizable>, Counts) {
    let counts = Counts {
        trees: ordered.trees,
        grown_rules: ordered.grown_rules,
        needless: ordered.needless,
    };
    let reordered = Arc::new(form.with_priorities(&ordered.priorities));
    let result = match ordered.cycles.is_empty() {
        true => Ok(reordered),
        false => Err(NotProperizable {
            form: Arc::clone(form),
            attempt: reordered,
            cycles: ordered.cycles,
        }),
    };
    (result, counts)
}

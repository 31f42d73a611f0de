//! A text on which an attempted order gives other tokens.

use alloc::vec::Vec;

use super::{Cycle, NotProperizable};
use crate::canonical::{CanonicalForm, TokenOrigin};
use crate::encoder::merge_loop::MergeLoop;
use crate::vocabulary::TokenId;

/// Texts that are tried for one cycle where no text that a broken constraint suggests will do.
const MOST_TEXTS: usize = 1 << 16;

/// A text on which an attempted order is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The text.
    pub text: Vec<u8>,
    /// Its tokens under SentencePiece semantics, which are right.
    pub sentencepiece: Vec<TokenId>,
    /// Its tokens in the attempted order, where both semantics agree.
    pub attempted: Vec<TokenId>,
}

/// What [`NotProperizable::difference`] found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Search {
    /// The attempted order is wrong.
    Found(Difference),
    /// Not proved impossible: texts were tried, and all came out right.
    NotProvedImpossible {
        /// All texts up to so many atoms of the cycle's tokens were tried.
        longest: usize,
    },
}

impl NotProperizable {
    /// Looks for a text of at most `longest` atoms on which the attempted order differs from
    /// SentencePiece semantics because of `cycle`: the texts of three tokens that a broken
    /// constraint is about (any text on which an order is wrong holds such a text), then all texts
    /// over the atoms of the cycle's tokens, from short to long, as long as they are few (65,536).
    ///
    /// Cost: bounded by the number of texts.
    pub fn difference(&self, cycle: &Cycle, longest: usize) -> Search {
        let mut comparison = Comparison {
            problem: self,
            longest,
            merge_loop: MergeLoop::default(),
        };
        let mut overlaps: Vec<&Vec<u8>> = cycle.overlaps.iter().collect();
        overlaps.sort_by_key(|text| text.len());
        for text in overlaps {
            if let Some(found) = comparison.try_text(text) {
                return Search::Found(found);
            }
        }
        comparison.search(&self.atoms_of(cycle))
    }

    /// The distinct atoms of the tokens in the cycle, and of its seed's.
    fn atoms_of(&self, cycle: &Cycle) -> Vec<TokenId> {
        let mut atoms = Vec::new();
        let mut stack: Vec<TokenId> = cycle.steps.iter().map(|step| step.rule.product).collect();
        stack.push(cycle.seed.product);
        while let Some(id) = stack.pop() {
            match self.form.origin(id) {
                Some(TokenOrigin::Rule(rule)) => stack.extend([rule.left, rule.right]),
                Some(TokenOrigin::Atom) => atoms.push(id),
                _ => {}
            }
        }
        atoms.sort_unstable();
        atoms.dedup();
        atoms
    }
}

struct Comparison<'p> {
    problem: &'p NotProperizable,
    longest: usize,
    merge_loop: MergeLoop,
}

impl Comparison<'_> {
    fn try_text(&mut self, text: &[u8]) -> Option<Difference> {
        let problem = self.problem;
        let mut atoms = Vec::new();
        problem.form.append_atoms(text, &mut atoms).ok()?;
        if atoms.len() > self.longest {
            return None;
        }
        let mut merged = |form: &CanonicalForm| {
            let mut tokens = atoms.clone();
            self.merge_loop
                .merge_tail(form.pair_table(), &mut tokens, 0);
            tokens
        };
        let (sentencepiece, attempted) = (merged(&problem.form), merged(&problem.attempt));
        (sentencepiece != attempted).then(|| Difference {
            text: text.to_vec(),
            sentencepiece,
            attempted,
        })
    }

    /// All texts over `atoms`, by length.
    fn search(&mut self, atoms: &[TokenId]) -> Search {
        let mut left = MOST_TEXTS;
        for length in 1..=self.longest {
            let count = u32::try_from(length)
                .ok()
                .and_then(|length| atoms.len().checked_pow(length))
                .filter(|&count| count <= left && count > 0);
            let Some(count) = count else {
                return Search::NotProvedImpossible {
                    longest: length - 1,
                };
            };
            left -= count;
            for number in 0..count {
                if let Some(found) = self.try_text(&self.text(atoms, length, number)) {
                    return Search::Found(found);
                }
            }
        }
        Search::NotProvedImpossible {
            longest: self.longest,
        }
    }

    /// The text of `length` atoms whose places are the digits of `number`.
    fn text(&self, atoms: &[TokenId], length: usize, mut number: usize) -> Vec<u8> {
        let mut text = Vec::new();
        for _ in 0..length {
            let atom = atoms[number % atoms.len()];
            number /= atoms.len();
            let bytes = self.problem.form.vocabulary().token_bytes(atom);
            text.extend_from_slice(bytes.unwrap_or_default());
        }
        text
    }
}

//! The last token by descent from the single byte: a check of the engine that shares nothing with
//! it, not the numbers, not the automaton, not the search.
//!
//! The intervals of all children of a token in the successor forest are disjoint: were a token k in
//! the intervals of two children v and w of u, then on the text of k followed by that of u both would
//! be suffixes and satisfy the condition of 000 Definition 4.1, but what does lies on one path
//! (Theorem 4.2). They all ask for the last token of the text before u. And a hit is a suffix of
//! the text, since the predecessor ends the text before u. So from a token that is valid one binary
//! search finds the child that is, if one is, and no candidate is needed beforehand.
//!
//! Useful as an oracle; not useful for work, since its time a byte grows with the number of successors in a
//! row. Memory O(n) for n tokens.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

use bpe_core::{Atoms, CanonicalForm, EncodeError, Priority, TokenId};

use crate::error::{EngineError, Kind};

/// The tables of the descent: see [the module](self).
#[derive(Debug)]
pub struct Descent {
    canonical: Arc<CanonicalForm>,
    numbers: BTreeMap<TokenId, usize>,
    /// Of each token its children, in the order of their intervals.
    children: BTreeMap<TokenId, Vec<Child>>,
}

#[derive(Debug)]
struct Child {
    id: TokenId,
    /// The numbers that make it valid.
    from: usize,
    to: usize,
}

impl Descent {
    /// The descent over a proper dictionary over bytes. O(n log n).
    ///
    /// # Errors
    ///
    /// An improper dictionary, or one over characters.
    pub fn new(canonical: &Arc<CanonicalForm>) -> Result<Self, EngineError> {
        if let Some(evidence) = canonical.improper_rule() {
            return Err(EngineError(Kind::Improper {
                product: evidence.rule.product,
                side: evidence.maker.product,
            }));
        }
        if canonical.atoms() != Atoms::Bytes {
            return Err(EngineError(Kind::NotBytes));
        }
        let mut families: BTreeMap<TokenId, Vec<(Priority, TokenId)>> = BTreeMap::new();
        for rule in canonical.rules() {
            let family = families.entry(rule.right).or_default();
            family.push((rule.priority, rule.product));
        }
        for family in families.values_mut() {
            family.sort_by(|a, b| b.cmp(a)); // From lowest to highest priority.
        }
        let roots = (0..=255).filter_map(|byte| canonical.vocabulary().id_of(&[byte]));
        let (numbers, ends) = number(&families, roots);
        let mut children: BTreeMap<TokenId, Vec<Child>> = BTreeMap::new();
        for rule in canonical.rules() {
            let numbers_of = |id: TokenId| {
                let missing = EngineError(Kind::NotCanonical { id });
                let number = numbers.get(&id).copied();
                number.zip(ends.get(&id).copied()).ok_or(missing)
            };
            let (from, end) = numbers_of(rule.left)?;
            // 000 section 4.3: up to the first child of the predecessor whose rule comes no later.
            let rivals = families.get(&rule.left).map_or(&[][..], Vec::as_slice);
            let rival = rivals.iter().find(|rival| rival.0 <= rule.priority);
            let to = match rival {
                Some(&(_, rival)) => numbers_of(rival)?.0,
                None => end,
            };
            let id = rule.product;
            let family = children.entry(rule.right).or_default();
            family.push(Child { id, from, to });
        }
        for family in children.values_mut() {
            family.sort_by_key(|child| child.from);
        }
        Ok(Self {
            canonical: Arc::clone(canonical),
            numbers,
            children,
        })
    }

    /// The last token of each prefix of `text` but the empty one. O(length * depth of the forest *
    /// log n).
    ///
    /// # Errors
    ///
    /// The first byte that no token stands for.
    pub fn last_tokens(&self, text: &[u8]) -> Result<Vec<TokenId>, EncodeError> {
        let vocabulary = self.canonical.vocabulary();
        let mut last: Vec<TokenId> = Vec::with_capacity(text.len());
        for (offset, &byte) in text.iter().enumerate() {
            let atom = vocabulary.id_of(&[byte]);
            let mut token = atom.ok_or(EncodeError::missing_byte(byte, offset))?;
            while let Some(before) = vocabulary
                .token_bytes(token)
                .and_then(|bytes| (offset + 1).checked_sub(bytes.len()))
                .and_then(|rest| rest.checked_sub(1))
                .and_then(|index| self.numbers.get(&last[index]))
                && let Some(children) = self.children.get(&token)
                && let Some(child) = children
                    [..children.partition_point(|child| child.from <= *before)]
                    .iter()
                    .rev()
                    .find(|child| child.from < child.to)
                && *before < child.to
            {
                token = child.id;
            }
            last.push(token);
        }
        Ok(last)
    }
}

/// The numbers of all tokens in depth-first order, and where the numbers below each end.
fn number(
    families: &BTreeMap<TokenId, Vec<(Priority, TokenId)>>,
    roots: impl Iterator<Item = TokenId>,
) -> (BTreeMap<TokenId, usize>, BTreeMap<TokenId, usize>) {
    let (mut numbers, mut ends) = (BTreeMap::new(), BTreeMap::new());
    for root in roots {
        // Tokens to enter, and tokens to leave.
        let mut stack = alloc::vec![(root, true)];
        while let Some((token, enter)) = stack.pop() {
            if !enter {
                ends.insert(token, numbers.len());
                continue;
            }
            numbers.insert(token, numbers.len());
            stack.push((token, false));
            let family = families.get(&token).into_iter().flatten();
            stack.extend(family.rev().map(|&(_, child)| (child, true)));
        }
    }
    (numbers, ends)
}

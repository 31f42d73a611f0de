//! Tokens that are to be there whatever the counts say: the merges that make them.

use std::collections::HashMap;

use crate::tokens::{BREAK, Tokens};

/// The merges before the first one that is learned: those that were given, then those that make the
/// seed tokens.
pub(crate) struct FirstMerges<'a> {
    tokens: &'a mut Tokens,
    pairs: Vec<(u32, u32)>,
    /// Of each pair the token that it makes.
    products: HashMap<(u32, u32), u32>,
}

impl<'a> FirstMerges<'a> {
    /// No merges over an alphabet.
    pub(crate) fn new(tokens: &'a mut Tokens) -> Self {
        Self {
            tokens,
            pairs: Vec::new(),
            products: HashMap::new(),
        }
    }

    /// Adds a merge; false where its product is a token already.
    pub(crate) fn add(&mut self, left: u32, right: u32) -> bool {
        let is_new = self.tokens.join(left, right);
        if is_new {
            self.pairs.push((left, right));
            let product = self.tokens.len() as u32 - 1;
            self.products.insert((left, right), product);
        }
        is_new
    }

    /// The symbol of a token.
    pub(crate) fn symbol_of(&self, bytes: &[u8]) -> Option<u32> {
        self.tokens.symbol_of(bytes)
    }

    /// Adds merges, where some are missing, after which merging the bytes of `seed` gives one token:
    /// what the merges so far make of them is merged further, from the left. False where that cannot
    /// be, since the merges that were given make the same token in a way that merging never takes.
    ///
    /// O(length^2).
    pub(crate) fn add_seed(&mut self, seed: &[u8]) -> bool {
        let mut symbols = Vec::new();
        self.tokens.push_atoms(seed, &mut symbols);
        if symbols.is_empty() || symbols.contains(&BREAK) {
            return false;
        }
        loop {
            let pairs = symbols.windows(2).map(|two| (two[0], two[1]));
            // Tokens are numbered as they were merged: the smallest product comes first.
            let known = pairs
                .filter_map(|pair| Some((*self.products.get(&pair)?, pair)))
                .min();
            let (product, pair) = match (known, &symbols[..]) {
                (Some(known), _) => known,
                (None, &[left, right, ..]) => {
                    if !self.add(left, right) {
                        return false;
                    }
                    (self.tokens.len() as u32 - 1, (left, right))
                }
                (None, _) => return true,
            };
            merge(&mut symbols, pair, product);
        }
    }

    /// All merges in order.
    pub(crate) fn into_pairs(self) -> Vec<(u32, u32)> {
        self.pairs
    }
}

/// Replaces `pair` by `product`, from left to right.
pub(crate) fn merge(word: &mut Vec<u32>, pair: (u32, u32), product: u32) {
    let mut kept = 0;
    let mut next = 0;
    while next < word.len() {
        if word.get(next..next + 2) == Some(&[pair.0, pair.1]) {
            word[kept] = product;
            next += 2;
        } else {
            word[kept] = word[next];
            next += 1;
        }
        kept += 1;
    }
    word.truncate(kept);
}

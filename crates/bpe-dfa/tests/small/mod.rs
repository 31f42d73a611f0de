//! Small dictionaries.

#![allow(dead_code)] // Each test file uses some.

use std::collections::BTreeSet;
use std::sync::Arc;

use bpe_core::{CanonicalForm, Dictionary, TokenId, Vocabulary};

pub(crate) type Merge = (Vec<u8>, Vec<u8>);

/// All lists of `count` merges over a and b. Each side is a letter or made by an earlier merge, so
/// most are proper; those that are not are left to the caller.
pub(crate) fn merge_lists(count: usize) -> Vec<Vec<Merge>> {
    let mut lists = vec![Vec::<Merge>::new()];
    for _ in 0..count {
        let mut longer = Vec::new();
        for list in &lists {
            let tokens = tokens_of(list);
            for left in &tokens {
                for right in &tokens {
                    let merge = (left.clone(), right.clone());
                    if !list.contains(&merge) {
                        let mut list = list.clone();
                        list.push(merge);
                        longer.push(list);
                    }
                }
            }
        }
        lists = longer;
    }
    lists
}

pub(crate) fn tokens_of(merges: &[Merge]) -> BTreeSet<Vec<u8>> {
    let products = merges
        .iter()
        .map(|(left, right)| [&left[..], right].concat());
    let sides = merges.iter().flat_map(|(left, right)| [left, right]);
    let letters = sides.flatten().map(|&letter| vec![letter]);
    products
        .chain([b"a".to_vec(), b"b".to_vec()])
        .chain(letters)
        .collect()
}

/// The dictionary of a list, with ids in no order: every third, from the end of the alphabet.
pub(crate) fn dictionary_of(merges: &[Merge]) -> Dictionary {
    let tokens = tokens_of(merges);
    let id = |token: &[u8]| {
        let place = tokens.iter().position(|other| other == token);
        3 * (tokens.len() - place.expect("a token")) as TokenId
    };
    let vocabulary = Vocabulary::new(tokens.iter().map(|token| (id(token), token)));
    let pairs = merges.iter().map(|(left, right)| (id(left), id(right)));
    Dictionary::from_merges(vocabulary.expect("valid"), pairs.collect::<Vec<_>>()).expect("valid")
}

pub(crate) fn canonical(dictionary: &Dictionary) -> Arc<CanonicalForm> {
    Arc::new(CanonicalForm::new(dictionary))
}

/// Numbers from a seed.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }
}

/// A list of up to `most` merges over the first `letters` letters, late tokens more often than early
/// ones, so that chains get long.
pub(crate) fn random_merges(random: &mut Random, letters: u8, most: usize) -> Vec<Merge> {
    let mut tokens: Vec<Vec<u8>> = (0..letters).map(|letter| vec![b'a' + letter]).collect();
    let mut merges = Vec::new();
    for _ in 0..random.below(most + 1) {
        let mut pick = || {
            let wide = random.below(2 * tokens.len());
            tokens[wide.min(tokens.len() - 1)].clone()
        };
        let merge = (pick(), pick());
        let product = [&merge.0[..], &merge.1].concat();
        if product.len() <= 24 && !tokens.contains(&product) {
            tokens.push(product);
            merges.push(merge);
        }
    }
    merges
}

//! Both published semantics, transcribed literally and never optimised.
//!
//! Everything else in the workspace is tested against these two functions, so they are kept as
//! plain as their definitions. Useful as an oracle on short spans; not useful for work: a span of
//! n bytes costs O(n^2) and more.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::dictionary::{Atoms, Dictionary, MergeRule};
use crate::vocabulary::TokenId;

/// The two semantics over one dictionary.
#[derive(Debug)]
pub struct Reference<'d> {
    dictionary: &'d Dictionary,
    rules: BTreeMap<(TokenId, TokenId), MergeRule>,
}

impl<'d> Reference<'d> {
    /// The reference of `dictionary`. O(rules log rules).
    pub fn new(dictionary: &'d Dictionary) -> Self {
        let rules = dictionary
            .rules()
            .iter()
            .map(|rule| ((rule.left, rule.right), *rule))
            .collect();
        Self { dictionary, rules }
    }

    /// The tokens of `span` under SentencePiece semantics: as long as some pair of neighbours has a
    /// rule, the pair of best priority is merged, of several the leftmost (000 App. A.1;
    /// 002's remark on Algorithm 1; what tiktoken and `tokenizers` do). `None` where an atom is
    /// missing. O(n^2 log rules).
    pub fn sentencepiece(&self, span: &[u8]) -> Option<Vec<TokenId>> {
        let mut tokens = self.atoms(span)?;
        loop {
            let best = (1..tokens.len())
                .filter_map(|right| {
                    let rule = self.rules.get(&(tokens[right - 1], tokens[right]))?;
                    Some((rule.priority, right - 1, rule.product))
                })
                .min();
            let Some((_, left, product)) = best else {
                return Some(tokens);
            };
            tokens[left] = product;
            tokens.remove(left + 1);
        }
    }

    /// The tokens of `span` under standard semantics: each priority once, in order, its rules
    /// applied to all pairs they fit, from left to right (000 section 3.1, 002 Algorithm
    /// 1). `None` where an atom is missing. O(rules * n).
    pub fn standard(&self, span: &[u8]) -> Option<Vec<TokenId>> {
        let mut tokens = self.atoms(span)?;
        for rules in self
            .dictionary
            .rules()
            .chunk_by(|a, b| a.priority == b.priority)
        {
            let mut merged = Vec::with_capacity(tokens.len());
            let mut rest = tokens.as_slice();
            while let Some((&first, after)) = rest.split_first() {
                let rule = after.first().and_then(|&second| {
                    rules
                        .iter()
                        .find(|rule| (rule.left, rule.right) == (first, second))
                });
                match rule {
                    Some(rule) => {
                        merged.push(rule.product);
                        rest = &after[1..];
                    }
                    None => {
                        merged.push(first);
                        rest = after;
                    }
                }
            }
            tokens = merged;
        }
        Some(tokens)
    }

    /// What `span` is before the first merge.
    fn atoms(&self, span: &[u8]) -> Option<Vec<TokenId>> {
        let vocabulary = self.dictionary.vocabulary();
        let (unknown, fuse_unknown) = match self.dictionary.atoms() {
            Atoms::Bytes => {
                return span.iter().map(|&byte| vocabulary.id_of(&[byte])).collect();
            }
            Atoms::Characters {
                unknown,
                fuse_unknown,
            } => (unknown, fuse_unknown),
        };
        let mut parts: Vec<&[u8]> = Vec::new();
        for chunk in span.utf8_chunks() {
            let valid = chunk.valid();
            parts.extend(
                valid
                    .char_indices()
                    .map(|(at, char)| &valid.as_bytes()[at..at + char.len_utf8()]),
            );
            if !chunk.invalid().is_empty() {
                parts.push(chunk.invalid());
            }
        }
        let mut tokens = Vec::new();
        let mut after_unknown = false;
        for part in parts {
            let fallback: Option<Vec<TokenId>> = part
                .iter()
                .map(|&byte| vocabulary.byte_fallback(byte))
                .collect();
            let is_character = core::str::from_utf8(part).is_ok();
            let token = vocabulary.id_of(part).filter(|_| is_character);
            if let Some(token) = token {
                tokens.push(token);
                after_unknown = false;
            } else if let Some(fallback) = fallback {
                tokens.extend(fallback);
                after_unknown = false;
            } else {
                if !(after_unknown && fuse_unknown) {
                    tokens.push(unknown?);
                }
                after_unknown = true;
            }
        }
        Some(tokens)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vocabulary::Vocabulary;

    #[test]
    fn the_semantics_differ_on_the_improper_dictionary_of_000_a_6() {
        // [(aa, a), (a, a)] on aaaa: SentencePiece gives aaa a, standard gives aa aa.
        let vocabulary = Vocabulary::new([(0, "a"), (1, "aa"), (2, "aaa")]).expect("valid");
        let dictionary = Dictionary::from_merges(vocabulary, [(1, 0), (0, 0)]).expect("valid");
        let reference = Reference::new(&dictionary);
        assert_eq!(reference.sentencepiece(b"aaaa"), Some(alloc::vec![2, 0]));
        assert_eq!(reference.standard(b"aaaa"), Some(alloc::vec![1, 1]));
        assert_eq!(reference.standard(b"ab"), None);
    }

    #[test]
    fn unknown_characters_fuse_only_where_asked() {
        let tokens = [(0, "<unk>"), (1, "a"), (2, "b")];
        for (fuse_unknown, expected) in [(true, &[1, 0, 2][..]), (false, &[1, 0, 0, 2][..])] {
            let dictionary = Dictionary::from_merges(Vocabulary::new(tokens).expect("valid"), [])
                .and_then(|dictionary| {
                    dictionary.with_atoms(Atoms::Characters {
                        unknown: Some(0),
                        fuse_unknown,
                    })
                })
                .expect("valid");
            let reference = Reference::new(&dictionary);
            assert_eq!(
                reference.sentencepiece("axxb".as_bytes()).as_deref(),
                Some(expected)
            );
        }
    }
}

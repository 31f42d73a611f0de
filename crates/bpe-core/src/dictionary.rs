//! What a file says: a vocabulary and its merge rules, checked on the way in.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use crate::vocabulary::{TokenId, Vocabulary};

/// The place of a merge rule in its list: of two rules that apply, the one with the *smaller*
/// number comes first. So the best priority is the minimum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Priority(pub u32);

/// `(left, right) -> product`, with its priority.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MergeRule {
    /// The left side.
    pub left: TokenId,
    /// The right side.
    pub right: TokenId,
    /// The token whose bytes are those of both sides.
    pub product: TokenId,
    /// Where the rule stands.
    pub priority: Priority,
}

/// What a span is before the first merge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Atoms {
    /// One token a byte: the vocabularies of GPT-2's descendants.
    #[default]
    Bytes,
    /// One token a character: SentencePiece-style vocabularies. A character that is no token
    /// becomes its bytes' fallback tokens, where the vocabulary has all of them
    /// ([`Vocabulary::byte_fallback`]), else the unknown token. Each byte of a part that is not
    /// UTF-8 is treated as such a character's.
    Characters {
        /// The token for characters that are nothing else; without it they are an error.
        unknown: Option<TokenId>,
        /// Whether neighbouring unknown characters make one unknown token.
        fuse_unknown: bool,
    },
}

/// A vocabulary with merge rules in the order of their priorities, as a file lists them.
///
/// Useful for asking what a file says, and as the input of [`crate::reference`] and of
/// [`CanonicalForm::new`](crate::CanonicalForm::new), which engines are built from.
#[derive(Debug, Clone)]
pub struct Dictionary {
    vocabulary: Arc<Vocabulary>,
    rules: Vec<MergeRule>,
    atoms: Atoms,
    whole_piece_lookup: bool,
}

impl Dictionary {
    /// The dictionary of a rank file (tiktoken): two neighbours may merge whenever their bytes
    /// together are a token, and the lower the id of that token, the better. (So the priority of a rule
    /// is the place of its product among the ids, which have gaps.)
    ///
    /// So each token has a rule for each of its splits into two tokens, all of one priority.
    /// Whole-piece look-up is on, as in tiktoken.
    ///
    /// Cost: O(B log n) for n tokens of B bytes in all, whatever the tokens are. Memory: 16 bytes a
    /// rule; real vocabularies have some two rules a token, the worst has one a byte.
    ///
    /// # Errors
    ///
    /// More than 2^32 - 3 rules.
    pub fn from_ranks(vocabulary: Vocabulary) -> Result<Self, DictionaryError> {
        let prefixes = longest_proper_prefixes(&vocabulary, |bytes| bytes.to_vec());
        let suffixes =
            longest_proper_prefixes(&vocabulary, |bytes| bytes.iter().rev().copied().collect());
        let chain = |links: &[Option<u32>], from: usize, into: &mut Vec<usize>| {
            into.clear();
            let mut next = links[from];
            while let Some(position) = next {
                into.push(position as usize);
                next = links[position as usize];
            }
        };
        let mut rules = Vec::new();
        let (mut lefts, mut rights) = (Vec::new(), Vec::new());
        for position in 0..vocabulary.len() {
            // Both chains go from long to short: of a split, the shorter the left side, the longer
            // the right one.
            chain(&prefixes, position, &mut lefts);
            chain(&suffixes, position, &mut rights);
            let len = |position: usize| vocabulary.bytes_at(position).len();
            let mut rights = rights.iter().copied().peekable();
            for &left in lefts.iter().rev() {
                let right_len = len(position) - len(left);
                while rights.next_if(|&right| len(right) > right_len).is_some() {}
                if let Some(right) = rights.next_if(|&right| len(right) == right_len) {
                    check_rule_count(rules.len())?;
                    rules.push(MergeRule {
                        left: vocabulary.id_at(left),
                        right: vocabulary.id_at(right),
                        product: vocabulary.id_at(position),
                        priority: Priority(position as u32),
                    });
                }
            }
        }
        Ok(Self {
            vocabulary: Arc::new(vocabulary),
            rules,
            atoms: Atoms::Bytes,
            whole_piece_lookup: true,
        })
    }

    /// The dictionary of an ordered list of merges (GPT-2, Hugging Face): the earlier, the better.
    ///
    /// Whole-piece look-up is off, as in Hugging Face's `tokenizers` without `ignore_merges`.
    ///
    /// Cost: O(bytes of all merges), with a hash look-up of the product for each merge whose product is not that
    /// of the merge before it or the token after that.
    ///
    /// # Errors
    ///
    /// A merge whose side is no token, or a fallback token, or whose product is none, or that is listed
    /// twice; the error names it by its index.
    pub fn from_merges(
        vocabulary: Vocabulary,
        merges: impl IntoIterator<Item = (TokenId, TokenId)>,
    ) -> Result<Self, DictionaryError> {
        let mut rules = Vec::<MergeRule>::new();
        let mut products = Products::new(&vocabulary);
        for (index, (left, right)) in merges.into_iter().enumerate() {
            check_rule_count(index)?;
            let side = |id| {
                let bytes = vocabulary
                    .token_bytes(id)
                    .ok_or(DictionaryError(Kind::UnknownSide { index, id }))?;
                match bytes {
                    &[byte] if vocabulary.byte_fallback(byte) == Some(id) => {
                        Err(DictionaryError(Kind::FallbackSide { index, id }))
                    }
                    _ => Ok(bytes),
                }
            };
            let position = products
                .find(side(left)?, side(right)?)
                .ok_or(DictionaryError(Kind::NoProduct { index, left, right }))?;
            if let Some(first) = products.add_rule(position, index as u32, left, &rules) {
                return Err(DictionaryError(Kind::DuplicateMerge { first, index }));
            }
            rules.push(MergeRule {
                left,
                right,
                product: vocabulary.id_at(position),
                priority: Priority(index as u32),
            });
        }
        Ok(Self {
            vocabulary: Arc::new(vocabulary),
            rules,
            atoms: Atoms::Bytes,
            whole_piece_lookup: false,
        })
    }

    /// The same dictionary, with other atoms than bytes.
    ///
    /// # Errors
    ///
    /// An unknown token that the vocabulary does not have, or that a merge has as a side: it stands for
    /// other text than its own, so such a merge would make a token of text that the token is not.
    pub fn with_atoms(mut self, atoms: Atoms) -> Result<Self, DictionaryError> {
        if let Atoms::Characters {
            unknown: Some(id), ..
        } = atoms
            && self.vocabulary.token_bytes(id).is_none()
        {
            return Err(DictionaryError(Kind::UnknownUnknown { id }));
        }
        if let Atoms::Characters {
            unknown: Some(id), ..
        } = atoms
            && let Some(index) = self
                .rules
                .iter()
                .position(|rule| rule.left == id || rule.right == id)
        {
            return Err(DictionaryError(Kind::UnknownMerges { index, id }));
        }
        self.atoms = atoms;
        Ok(self)
    }

    /// The same dictionary, with whole-piece look-up on or off.
    pub fn with_whole_piece_lookup(mut self, on: bool) -> Self {
        self.whole_piece_lookup = on;
        self
    }

    /// The tokens.
    pub fn vocabulary(&self) -> &Arc<Vocabulary> {
        &self.vocabulary
    }

    /// The rules, in ascending order of [`Priority`]. Of a rank file, the rules of one token share
    /// its priority and stand together.
    pub fn rules(&self) -> &[MergeRule] {
        &self.rules
    }

    /// What a span is before the first merge.
    pub fn atoms(&self) -> Atoms {
        self.atoms
    }

    /// Whether a pre-token that is itself a token becomes that token without merging. The caller
    /// of a [`SpanEncoder`](crate::SpanEncoder) applies it, once, before the encoder.
    pub fn whole_piece_lookup(&self) -> bool {
        self.whole_piece_lookup
    }

    /// The single bytes that no token stands for. With [`Atoms::Bytes`] a text that holds one of
    /// them cannot be encoded.
    pub fn missing_bytes(&self) -> impl Iterator<Item = u8> {
        (0..=255).filter(|&byte| self.vocabulary.id_of(&[byte]).is_none())
    }

    /// The first rule, as listed, with a side that a later rule makes; `None` where the
    /// dictionary is proper, so that standard and SentencePiece semantics agree. O(rules).
    ///
    /// Rules that can never fire count here: a dictionary that is improper as listed is often
    /// proper once they are gone ([`CanonicalForm::improper_rule`](crate::CanonicalForm::improper_rule)).
    pub fn improper_rule(&self) -> Option<ImproperRule> {
        let makers = self.makers();
        (0..self.rules.len()).find_map(|index| self.improper(&makers, index))
    }

    /// All rules, as listed, with a side that a later rule makes, in order. O(rules).
    pub fn improper_rules(&self) -> Vec<ImproperRule> {
        let makers = self.makers();
        let indices = 0..self.rules.len();
        indices
            .filter_map(|index| self.improper(&makers, index))
            .collect()
    }

    /// Of each token by position the indices of the first and the last rule that make it; without one
    /// the first is behind the last.
    fn makers(&self) -> Vec<(u32, u32)> {
        let mut makers = alloc::vec![(u32::MAX, 0); self.vocabulary.len()];
        for (index, rule) in (0_u32..).zip(&self.rules) {
            if let Some(position) = self.vocabulary.position_of(rule.product) {
                let (first, last) = &mut makers[position];
                *first = index.min(*first);
                *last = index;
            }
        }
        makers
    }

    /// The rule at `index` as evidence. Rules are in ascending order of priority, and those of one
    /// priority make one token, so indices are compared.
    fn improper(&self, makers: &[(u32, u32)], index: usize) -> Option<ImproperRule> {
        let rule = self.rules[index];
        let evidence = |side| {
            let (first, last) = makers[self.vocabulary.position_of(side)?];
            (first <= last && last as usize >= index).then(|| ImproperRule {
                rule,
                maker: self.rules[last as usize],
                only_later: first as usize >= index,
            })
        };
        match (evidence(rule.left), evidence(rule.right)) {
            (Some(left), Some(right)) if right.only_later && !left.only_later => Some(right),
            (left, right) => left.or(right),
        }
    }

    /// True where no rule's side is made by a later rule. O(rules).
    pub fn is_proper(&self) -> bool {
        self.improper_rule().is_none()
    }
}

/// Evidence that a dictionary is improper: a rule, and the later rule that makes one of its sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImproperRule {
    /// The rule with a side made too late.
    pub rule: MergeRule,
    /// The last rule that makes this side; its priority is not before that of `rule`.
    pub maker: MergeRule,
    /// Whether no earlier rule makes this side.
    pub only_later: bool,
}

/// Finds the products of merges, and merges that are listed twice.
struct Products<'v> {
    vocabulary: &'v Vocabulary,
    /// Position of the product found last.
    last: usize,
    bytes: Vec<u8>,
    /// Of each token by position the last rule that makes it.
    makers: Vec<u32>,
    /// Of each rule the one before it that makes the same token.
    earlier: Vec<u32>,
}

/// No rule: [`check_rule_count`] keeps the number free.
const NO_RULE: u32 = u32::MAX;

impl<'v> Products<'v> {
    fn new(vocabulary: &'v Vocabulary) -> Self {
        Self {
            vocabulary,
            last: 0,
            bytes: Vec::new(),
            makers: alloc::vec![NO_RULE; vocabulary.len()],
            earlier: Vec::new(),
        }
    }

    /// Position of the token with the bytes of both sides. Files list merges in the order of what they
    /// make, so the token after the last one, or that one again, is asked first: its bytes are near,
    /// and looking up a token waits for memory.
    fn find(&mut self, left: &[u8], right: &[u8]) -> Option<usize> {
        let vocabulary = self.vocabulary;
        let is_it = |position: &usize| {
            let token = vocabulary.bytes_at(*position);
            token.strip_prefix(left) == Some(right)
        };
        let near = self.last..(self.last + 2).min(vocabulary.len());
        let found = near.rev().find(is_it).or_else(|| {
            self.bytes.clear();
            self.bytes.extend_from_slice(left);
            self.bytes.extend_from_slice(right);
            vocabulary.position_of(vocabulary.id_of(&self.bytes)?)
        })?;
        self.last = found;
        Some(found)
    }

    /// Notes the rule `index`, with the side `left`, that makes the token at `position`; returns the rule
    /// of `rules` that is the same. All rules of one token are looked at, which costs no more than its bytes:
    /// two that differ cut it at different places.
    fn add_rule(
        &mut self,
        position: usize,
        index: u32,
        left: TokenId,
        rules: &[MergeRule],
    ) -> Option<usize> {
        let before = core::mem::replace(&mut self.makers[position], index);
        self.earlier.push(before);
        let mut other = before;
        while other != NO_RULE {
            if rules[other as usize].left == left {
                return Some(other as usize);
            }
            other = self.earlier[other as usize];
        }
        None
    }
}

/// Of each token, by position, the longest other token that `spell`s a prefix of it. In the order of
/// spellings, the tokens that are prefixes of the next form a stack.
fn longest_proper_prefixes(
    vocabulary: &Vocabulary,
    spell: impl Fn(&[u8]) -> Vec<u8>,
) -> Vec<Option<u32>> {
    let mut spelled: Vec<(Vec<u8>, u32)> = (0_u32..)
        .zip(vocabulary.iter())
        .map(|(position, (_, bytes))| (spell(bytes), position))
        .collect();
    spelled.sort_unstable();
    let mut links = alloc::vec![None; spelled.len()];
    let mut stack: Vec<&(Vec<u8>, u32)> = Vec::new();
    for token in &spelled {
        while stack.pop_if(|top| !token.0.starts_with(&top.0)).is_some() {}
        links[token.1 as usize] = stack.last().map(|top| top.1);
        stack.push(token);
    }
    links
}

/// Two numbers are kept free to mark tokens that no rule makes.
fn check_rule_count(count: usize) -> Result<(), DictionaryError> {
    if count > (u32::MAX - 2) as usize {
        return Err(DictionaryError(Kind::TooManyRules));
    }
    Ok(())
}

/// Why a vocabulary and merges are no dictionary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DictionaryError(Kind);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    UnknownSide {
        index: usize,
        id: TokenId,
    },
    NoProduct {
        index: usize,
        left: TokenId,
        right: TokenId,
    },
    DuplicateMerge {
        first: usize,
        index: usize,
    },
    FallbackSide {
        index: usize,
        id: TokenId,
    },
    UnknownUnknown {
        id: TokenId,
    },
    UnknownMerges {
        index: usize,
        id: TokenId,
    },
    TooManyRules,
}

impl DictionaryError {
    /// Index of the merge at fault, counted from 0, where one is.
    pub fn merge_index(&self) -> Option<usize> {
        match self.0 {
            Kind::UnknownSide { index, .. }
            | Kind::FallbackSide { index, .. }
            | Kind::UnknownMerges { index, .. }
            | Kind::NoProduct { index, .. }
            | Kind::DuplicateMerge { index, .. } => Some(index),
            Kind::UnknownUnknown { .. } | Kind::TooManyRules => None,
        }
    }
}

impl fmt::Display for DictionaryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Kind::UnknownSide { index, id } => {
                write!(f, "merge {index}: no token has the id {id}")
            }
            Kind::FallbackSide { index, id } => {
                write!(f, "merge {index}: token {id} is a byte's fallback token")
            }
            Kind::UnknownMerges { index, id } => {
                write!(f, "merge {index}: token {id} is the unknown token")
            }
            Kind::NoProduct { index, left, right } => {
                write!(
                    f,
                    "merge {index}: tokens {left} and {right} together are no token"
                )
            }
            Kind::DuplicateMerge { first, index } => {
                write!(f, "merge {index} is merge {first} again")
            }
            Kind::UnknownUnknown { id } => {
                write!(f, "the unknown token has the id {id}, which no token has")
            }
            Kind::TooManyRules => f.write_str("more merge rules than 32 bits can number"),
        }
    }
}

impl core::error::Error for DictionaryError {}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    fn letters(tokens: &[(TokenId, &str)]) -> Vocabulary {
        Vocabulary::new(tokens.iter().copied()).expect("valid")
    }

    #[test]
    fn ranks_give_a_rule_for_each_split_with_the_priority_of_the_product() {
        let vocabulary = letters(&[(0, "a"), (1, "b"), (2, "ab"), (4, "aba"), (3, "ba")]);
        let dictionary = Dictionary::from_ranks(vocabulary).expect("valid");
        let rules: Vec<_> = dictionary
            .rules()
            .iter()
            .map(|rule| (rule.left, rule.right, rule.product, rule.priority.0))
            .collect();
        assert_eq!(
            rules,
            [(0, 1, 2, 2), (1, 0, 3, 3), (0, 3, 4, 4), (2, 0, 4, 4)]
        );
        assert!(dictionary.whole_piece_lookup());
        assert!(dictionary.is_proper());
    }

    #[test]
    fn a_side_made_by_a_later_rule_is_improper_and_both_rules_are_named() {
        let vocabulary = letters(&[(0, "a"), (1, "b"), (2, "aba"), (3, "ab")]);
        let dictionary = Dictionary::from_merges(vocabulary, [(3, 0), (0, 1)]).expect("valid");
        let evidence = dictionary.improper_rule().expect("improper");
        assert_eq!((evidence.rule.left, evidence.rule.right), (3, 0));
        assert_eq!((evidence.maker.left, evidence.maker.right), (0, 1));
    }

    #[test]
    fn of_several_rules_that_make_a_side_the_last_one_counts() {
        // a+aa makes aaa in time for aa+aaa, aa+a does so too late: on aaaaa the semantics differ.
        let vocabulary = letters(&[(0, "a"), (1, "aa"), (2, "aaa"), (3, "aaaaa")]);
        let merges = [(0, 0), (0, 1), (1, 2), (1, 0)];
        let dictionary = Dictionary::from_merges(vocabulary, merges).expect("valid");
        let reference = crate::reference::Reference::new(&dictionary);
        assert_eq!(reference.sentencepiece(b"aaaaa"), Some(alloc::vec![3]));
        assert_eq!(reference.standard(b"aaaaa"), Some(alloc::vec![1, 2]));
        let evidence = dictionary.improper_rule().expect("improper");
        assert_eq!((evidence.maker.left, evidence.maker.right), (1, 0));
    }

    #[test]
    fn merges_that_make_no_sense_are_refused_by_index() {
        let vocabulary = || letters(&[(0, "a"), (1, "b"), (2, "ab")]);
        let message = |merges: &[(TokenId, TokenId)]| {
            Dictionary::from_merges(vocabulary(), merges.iter().copied())
                .expect_err("invalid")
                .to_string()
        };
        assert_eq!(message(&[(0, 9)]), "merge 0: no token has the id 9");
        assert_eq!(
            message(&[(0, 1), (1, 0)]),
            "merge 1: tokens 1 and 0 together are no token"
        );
        assert_eq!(message(&[(0, 1), (0, 1)]), "merge 1 is merge 0 again");
    }

    #[test]
    fn tokens_that_stand_for_other_text_than_their_own_do_not_merge() {
        let vocabulary = Vocabulary::with_byte_fallback(
            [(0, "<unk>"), (1, "a"), (2, "<unk>a"), (3, "\na")],
            [(10, b'\n')],
        );
        let vocabulary = vocabulary.expect("valid");
        let error = Dictionary::from_merges(vocabulary.clone(), [(10, 1)]).expect_err("fallback");
        assert_eq!(error.merge_index(), Some(0));
        let error = Dictionary::from_merges(vocabulary, [(0, 1)])
            .expect("a token like any other so far")
            .with_atoms(Atoms::Characters {
                unknown: Some(0),
                fuse_unknown: true,
            })
            .expect_err("unknown");
        assert_eq!(error.to_string(), "merge 0: token 0 is the unknown token");
    }

    #[test]
    fn missing_bytes_are_listed() {
        let dictionary = Dictionary::from_ranks(letters(&[(0, "a"), (1, "bb")])).expect("valid");
        assert_eq!(dictionary.missing_bytes().count(), 255);
        assert!(dictionary.missing_bytes().all(|byte| byte != b'a'));
    }
}

//! What the algorithms use: of each token the one rule that makes it.

mod search;

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use crate::dictionary::{Atoms, Dictionary, ImproperRule, MergeRule, Priority};
use crate::encoder::EncodeError;
use crate::pair_table::PairTable;
use crate::vocabulary::{TokenId, Vocabulary};

/// What merging a pair of neighbours gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Merge {
    /// The token that takes the place of both.
    pub product: TokenId,
    /// The priority of the rule; the smaller comes first.
    pub priority: Priority,
}

/// Where a token comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenOrigin {
    /// It is there before the first merge.
    Atom,
    /// Its canonical rule makes it: the rule applied last when its own bytes are tokenized.
    Rule(MergeRule),
    /// Merging its own bytes does not give it, so merging never does. Only whole-piece look-up can
    /// produce it, and what the unknown token stands for; it still decodes.
    Unreachable,
}

/// A dictionary reduced to the rules that can fire: for each canonical token its canonical rule
/// (000 section 3.3), with the token's predecessor and successor as its sides.
///
/// A rule `(x, y) -> z` can fire on some text if and only if tokenizing the bytes of `z` ends with
/// it (000 App. A.2): up to the moment that `z` forms, no merge crosses the ends of its bytes,
/// so inside them the same merges happen in the same order as when they stand alone. Hence each
/// token has at most one such rule, dropping all others changes no tokenization under SentencePiece
/// semantics, improper dictionaries included, and no two rules that are left share a priority.
///
/// Useful as what every engine is built from; not useful for asking what the file said (ask the
/// [`Dictionary`]).
pub struct CanonicalForm {
    vocabulary: Arc<Vocabulary>,
    atoms: Atoms,
    byte_atoms: Vec<Option<TokenId>>,
    /// Of each token its origin, by position in the vocabulary.
    parts: Vec<Part>,
    merges: PairTable,
    whole_piece_lookup: bool,
    improper_rule: Option<ImproperRule>,
    is_reordered: bool,
}

/// Predecessor, successor and priority of a token; 12 bytes.
#[derive(Clone, Copy)]
struct Part {
    left: TokenId,
    right: TokenId,
    /// Priority of the canonical rule, or one of the two marks below.
    priority: u32,
}

const ATOM: u32 = u32::MAX;
const UNREACHABLE: u32 = u32::MAX - 1;

impl CanonicalForm {
    /// The canonical form of `dictionary`.
    ///
    /// Cost: for each rule some look-ups, at most two for each byte of its product. Tokens that contain one
    /// whose canonical rule is improper are tokenized: O(L log l) for L bytes of them and a longest token of l bytes.
    pub fn new(dictionary: &Dictionary) -> Self {
        let mut form = Self::empty(dictionary);
        let (listed, may_be_improper) = search::fill(&mut form, dictionary);
        let is_made = |part: &&Part| part.priority < UNREACHABLE;
        match form.parts.iter().filter(is_made).count() == dictionary.rules().len() {
            // Each rule is canonical.
            true => form.merges = listed,
            false => form.index_merges(),
        }
        if may_be_improper {
            form.improper_rule = form
                .improper_rules()
                .min_by_key(|evidence| evidence.rule.priority);
        }
        form
    }

    /// A canonical form from what a compact file lists: of each token its sides by position, in the
    /// order of ids, which is the order of priorities.
    pub(crate) fn from_parts(
        vocabulary: Vocabulary,
        sides: &[Option<(u32, u32)>],
        whole_piece_lookup: bool,
    ) -> Self {
        let parts = sides
            .iter()
            .enumerate()
            .map(|(position, sides)| match *sides {
                Some((left, right)) => Part {
                    left: vocabulary.id_at(left as usize),
                    right: vocabulary.id_at(right as usize),
                    priority: position as u32,
                },
                None => Part {
                    left: 0,
                    right: 0,
                    priority: match vocabulary.bytes_at(position).len() {
                        1 => ATOM,
                        _ => UNREACHABLE,
                    },
                },
            })
            .collect();
        let mut form = Self {
            byte_atoms: byte_atoms(&vocabulary),
            vocabulary: Arc::new(vocabulary),
            atoms: Atoms::Bytes,
            parts,
            merges: PairTable::new(0, [].into_iter()),
            whole_piece_lookup,
            improper_rule: None, // Sides stand before what they make.
            is_reordered: false,
        };
        form.index_merges();
        form
    }

    fn empty(dictionary: &Dictionary) -> Self {
        let vocabulary = dictionary.vocabulary();
        let unreachable = Part {
            left: 0,
            right: 0,
            priority: UNREACHABLE,
        };
        Self {
            vocabulary: Arc::clone(vocabulary),
            atoms: dictionary.atoms(),
            byte_atoms: byte_atoms(vocabulary),
            parts: alloc::vec![unreachable; vocabulary.len()],
            merges: PairTable::new(0, [].into_iter()),
            whole_piece_lookup: dictionary.whole_piece_lookup(),
            improper_rule: None,
            is_reordered: false,
        }
    }

    /// This form with other priorities, of each token's rule by position: a proper order.
    pub(crate) fn with_priorities(&self, priorities: &[u32]) -> Self {
        let mut parts = self.parts.clone();
        for (part, &priority) in parts.iter_mut().zip(priorities) {
            if part.priority < UNREACHABLE {
                part.priority = priority;
            }
        }
        let mut form = Self {
            vocabulary: Arc::clone(&self.vocabulary),
            atoms: self.atoms,
            byte_atoms: self.byte_atoms.clone(),
            parts,
            merges: PairTable::new(0, [].into_iter()),
            whole_piece_lookup: self.whole_piece_lookup,
            improper_rule: None,
            is_reordered: true,
        };
        form.index_merges();
        form
    }

    /// Fills in what follows from the parts.
    fn index_merges(&mut self) {
        let is_made = |part: &&Part| part.priority < UNREACHABLE;
        let count = self.parts.iter().filter(is_made).count();
        self.merges = PairTable::new(count, self.rules());
    }

    /// The tokens.
    pub fn vocabulary(&self) -> &Arc<Vocabulary> {
        &self.vocabulary
    }

    /// What a span is before the first merge.
    pub fn atoms(&self) -> Atoms {
        self.atoms
    }

    /// Whether the caller of an encoder is to look up the whole piece first.
    pub fn whole_piece_lookup(&self) -> bool {
        self.whole_piece_lookup
    }

    /// Number of canonical rules, which is the number of tokens that merging can make.
    pub fn rule_count(&self) -> usize {
        self.merges.len()
    }

    /// The merges as a table, for loops over many pairs.
    pub fn pair_table(&self) -> &PairTable {
        &self.merges
    }

    /// The merge of two neighbouring tokens, where a canonical rule joins them. O(1).
    #[inline]
    pub fn merge(&self, left: TokenId, right: TokenId) -> Option<Merge> {
        self.merges.get(left, right)
    }

    /// Where the token `id` comes from, `None` where no token has that id. O(1).
    pub fn origin(&self, id: TokenId) -> Option<TokenOrigin> {
        let part = self.parts[self.vocabulary.position_of(id)?];
        Some(match part.priority {
            ATOM => TokenOrigin::Atom,
            UNREACHABLE => TokenOrigin::Unreachable,
            priority => TokenOrigin::Rule(MergeRule {
                left: part.left,
                right: part.right,
                product: id,
                priority: Priority(priority),
            }),
        })
    }

    /// The canonical rule that makes the token `id`: its predecessor and successor are the rule's
    /// sides. `None` for atoms, unreachable tokens and ids of no token. O(1).
    #[inline]
    pub fn rule(&self, id: TokenId) -> Option<MergeRule> {
        match self.origin(id)? {
            TokenOrigin::Rule(rule) => Some(rule),
            TokenOrigin::Atom | TokenOrigin::Unreachable => None,
        }
    }

    /// The canonical rules, in the order of the ids of their products. O(tokens) in all.
    pub fn rules(&self) -> impl Iterator<Item = MergeRule> + Clone {
        let made = |part: &Part| part.priority < UNREACHABLE;
        let parts = self.parts.iter().enumerate();
        parts
            .filter(move |(_, part)| made(part))
            .map(|(position, part)| MergeRule {
                left: part.left,
                right: part.right,
                product: self.vocabulary.id_at(position),
                priority: Priority(part.priority),
            })
    }

    /// The tokens that merging their own bytes does not give, in ascending order.
    pub fn unreachable_tokens(&self) -> impl Iterator<Item = TokenId> {
        self.parts
            .iter()
            .enumerate()
            .filter(|(_, part)| part.priority == UNREACHABLE)
            .map(|(position, _)| self.vocabulary.id_at(position))
    }

    /// The rules of `dictionary` that are not in this form, with the reason. O(rules) in all.
    pub fn dropped_rules<'a>(
        &'a self,
        dictionary: &'a Dictionary,
    ) -> impl Iterator<Item = DroppedRule> + 'a {
        dictionary.rules().iter().filter_map(|&rule| {
            let reason = match self.origin(rule.product)? {
                TokenOrigin::Unreachable => DropReason::ProductUnreachable,
                TokenOrigin::Atom => DropReason::ProductIsAtom,
                // A form in another order has the rule with another priority.
                TokenOrigin::Rule(kept) if (kept.left, kept.right) == (rule.left, rule.right) => {
                    return None;
                }
                TokenOrigin::Rule(kept) => DropReason::MadeByAnotherRule(kept),
            };
            Some(DroppedRule { rule, reason })
        })
    }

    /// The canonical rules with a side that a later one makes, in the order of the ids of their
    /// products. O(tokens) in all.
    pub fn improper_rules(&self) -> impl Iterator<Item = ImproperRule> {
        self.rules().filter_map(|rule| {
            [rule.left, rule.right].into_iter().find_map(|side| {
                let maker = self.rule(side)?;
                (maker.priority >= rule.priority).then_some(ImproperRule {
                    rule,
                    maker,
                    only_later: true, // There is one rule a token.
                })
            })
        })
    }

    /// The canonical rule of smallest priority number with a side that only a later rule makes;
    /// `None` where the form is proper. O(1).
    pub fn improper_rule(&self) -> Option<ImproperRule> {
        self.improper_rule
    }

    /// True where no canonical rule's side is made by a later one, so that standard and
    /// SentencePiece semantics agree. O(1).
    pub fn is_proper(&self) -> bool {
        self.improper_rule.is_none()
    }

    /// True where the priorities are not those of the dictionary but an order that makes it proper
    /// ([`CanonicalForm::properize`]). O(1).
    pub fn is_reordered(&self) -> bool {
        self.is_reordered
    }

    /// Whether every text has tokens: false where some byte is no token and, with
    /// [`Atoms::Characters`], neither a fallback nor an unknown token takes its place.
    pub fn is_complete(&self) -> bool {
        match self.atoms {
            Atoms::Bytes => self.byte_atoms.iter().all(Option::is_some),
            Atoms::Characters { unknown, .. } => {
                unknown.is_some()
                    || (0..=255).all(|byte| self.vocabulary.byte_fallback(byte).is_some())
            }
        }
    }

    /// Appends what `span` is before the first merge. O(bytes); at most one token a byte.
    ///
    /// # Errors
    ///
    /// A byte or character that no token stands for, with its offset; `tokens` is then as it was.
    pub fn append_atoms(&self, span: &[u8], tokens: &mut Vec<TokenId>) -> Result<(), EncodeError> {
        let start = tokens.len();
        let appended = match self.atoms {
            Atoms::Bytes => self.append_bytes(span, tokens),
            Atoms::Characters {
                unknown,
                fuse_unknown,
            } => self.append_characters(span, unknown, fuse_unknown, tokens),
        };
        if appended.is_err() {
            tokens.truncate(start);
        }
        appended
    }

    /// The first byte of `span` that no token stands for, as an error.
    #[cfg(feature = "backtrack")]
    pub(crate) fn check_bytes(&self, span: &[u8]) -> Result<(), EncodeError> {
        let missing = |byte: &u8| self.byte_atoms[usize::from(*byte)].is_none();
        match span.iter().position(missing) {
            Some(offset) => Err(EncodeError::missing_byte(span[offset], offset)),
            None => Ok(()),
        }
    }

    fn append_bytes(&self, span: &[u8], tokens: &mut Vec<TokenId>) -> Result<(), EncodeError> {
        tokens.reserve(span.len());
        for (offset, &byte) in span.iter().enumerate() {
            match self.byte_atoms[usize::from(byte)] {
                Some(id) => tokens.push(id),
                None => return Err(EncodeError::missing_byte(byte, offset)),
            }
        }
        Ok(())
    }

    fn append_characters(
        &self,
        span: &[u8],
        unknown: Option<TokenId>,
        fuse_unknown: bool,
        tokens: &mut Vec<TokenId>,
    ) -> Result<(), EncodeError> {
        let mut after_unknown = false;
        let mut offset = 0;
        for chunk in span.utf8_chunks() {
            let mut rest = chunk.valid();
            while let Some(character) = rest.chars().next() {
                let (bytes, after) = rest.split_at(character.len_utf8());
                if let Some(id) = self.vocabulary.id_of(bytes.as_bytes()) {
                    tokens.push(id);
                    after_unknown = false;
                } else if self.append_fallback(bytes.as_bytes(), tokens) {
                    after_unknown = false;
                } else {
                    let id = unknown.ok_or(EncodeError::missing_character(character, offset))?;
                    if !(after_unknown && fuse_unknown) {
                        tokens.push(id);
                    }
                    after_unknown = true;
                }
                offset += bytes.len();
                rest = after;
            }
            let invalid = chunk.invalid();
            if let Some(&byte) = invalid.first() {
                if self.append_fallback(invalid, tokens) {
                    after_unknown = false;
                } else {
                    let id = unknown.ok_or(EncodeError::missing_byte(byte, offset))?;
                    if !(after_unknown && fuse_unknown) {
                        tokens.push(id);
                    }
                    after_unknown = true;
                }
                offset += invalid.len();
            }
        }
        Ok(())
    }

    /// Appends the fallback tokens of `bytes`, if each byte has one.
    fn append_fallback(&self, bytes: &[u8], tokens: &mut Vec<TokenId>) -> bool {
        let start = tokens.len();
        for &byte in bytes {
            match self.vocabulary.byte_fallback(byte) {
                Some(id) => tokens.push(id),
                None => {
                    tokens.truncate(start);
                    return false;
                }
            }
        }
        true
    }
}

impl fmt::Debug for CanonicalForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CanonicalForm")
            .field("vocabulary", &self.vocabulary)
            .field("atoms", &self.atoms)
            .field("rules", &self.rule_count())
            .field("whole_piece_lookup", &self.whole_piece_lookup)
            .finish_non_exhaustive()
    }
}

/// A rule that can never fire, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DroppedRule {
    /// The rule, as listed.
    pub rule: MergeRule,
    /// Why it never fires.
    pub reason: DropReason,
}

/// Why a rule never fires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DropReason {
    /// Merging the product's own bytes gives something else.
    ProductUnreachable,
    /// The product is there before the first merge.
    ProductIsAtom,
    /// Wherever the product forms, this rule makes it.
    MadeByAnotherRule(MergeRule),
}

fn byte_atoms(vocabulary: &Vocabulary) -> Vec<Option<TokenId>> {
    (0..=255).map(|byte| vocabulary.id_of(&[byte])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranks(tokens: &[(TokenId, &str)]) -> Dictionary {
        Dictionary::from_ranks(Vocabulary::new(tokens.iter().copied()).expect("valid"))
            .expect("valid")
    }

    #[test]
    fn each_token_keeps_the_rule_applied_last_when_its_bytes_are_tokenized() {
        // "aba": ab merges first, so (ab, a) makes it and (a, ba) never fires.
        let dictionary = ranks(&[(0, "a"), (1, "b"), (2, "ab"), (3, "ba"), (4, "aba")]);
        let form = CanonicalForm::new(&dictionary);
        let rule = form.rule(4).expect("reachable");
        assert_eq!((rule.left, rule.right), (2, 0));
        let dropped: Vec<_> = form.dropped_rules(&dictionary).collect();
        assert_eq!(dropped.len(), 1);
        assert_eq!((dropped[0].rule.left, dropped[0].rule.right), (0, 3));
        assert_eq!(dropped[0].reason, DropReason::MadeByAnotherRule(rule));
        assert!(form.is_proper());
    }

    #[test]
    fn a_token_that_merging_does_not_give_is_unreachable() {
        // "abc": no two tokens make it, as with the 588 tokens of Llama 3.
        let dictionary = ranks(&[(0, "a"), (1, "b"), (2, "c"), (9, "abc")]);
        let form = CanonicalForm::new(&dictionary);
        assert_eq!(form.origin(9), Some(TokenOrigin::Unreachable));
        assert_eq!(form.unreachable_tokens().collect::<Vec<_>>(), [9]);
        assert_eq!(form.rule_count(), 0);
        assert_eq!(form.origin(5), None);
    }

    #[test]
    fn ranks_out_of_order_are_improper_only_where_a_canonical_rule_is() {
        // abc (rank 3) is made of ab (rank 4): improper.
        let form = CanonicalForm::new(&ranks(&[
            (0, "a"),
            (1, "b"),
            (2, "c"),
            (3, "abc"),
            (4, "ab"),
        ]));
        let evidence = form.improper_rule().expect("improper");
        assert_eq!((evidence.rule.product, evidence.maker.product), (3, 4));
        // aba (rank 3) could be a+ba with ba too late, but ab+a makes it.
        let dictionary = ranks(&[(0, "a"), (1, "b"), (2, "ab"), (3, "aba"), (4, "ba")]);
        assert!(!dictionary.is_proper());
        assert!(CanonicalForm::new(&dictionary).is_proper());
    }

    #[test]
    fn the_unknown_token_and_fallback_bytes_take_the_place_of_missing_characters() {
        let vocabulary = Vocabulary::with_byte_fallback(
            [(0, "<unk>"), (1, "a"), (2, "é")],
            [(10, 0xC3), (11, 0xA8)],
        )
        .expect("valid");
        let dictionary = Dictionary::from_merges(vocabulary, [])
            .and_then(|dictionary| {
                dictionary.with_atoms(Atoms::Characters {
                    unknown: Some(0),
                    fuse_unknown: true,
                })
            })
            .expect("valid");
        let form = CanonicalForm::new(&dictionary);
        let atoms = |span: &[u8]| {
            let mut tokens = Vec::new();
            form.append_atoms(span, &mut tokens).map(|()| tokens)
        };
        assert_eq!(atoms("aéxy".as_bytes()).expect("known"), [1, 2, 0]);
        assert_eq!(atoms("xèx".as_bytes()).expect("known"), [0, 10, 11, 0]);
        assert_eq!(atoms(b"a\xC3a\xFF").expect("known"), [1, 10, 1, 0]);
        assert!(form.is_complete());
        assert_eq!(form.origin(10), Some(TokenOrigin::Atom));
    }
}

//! The search for canonical rules: which rule of a dictionary is applied last when the bytes of a token are
//! tokenized.
//!
//! Tokens are looked at from short to long. What happens inside the bytes of a token before it forms
//! makes shorter tokens only, whose canonical rules are known by then; so the token is made by the rule
//! `(u, v)` if and only if `u` and `v` stand there when nothing shorter can be made any more. Where no
//! rule among those is improper, that is a question about two neighbours (fact 3 of docs/architecture.md): both
//! are un-merged, always the one made later, and no rule may join what then meets. It takes a few look-ups,
//! where merging takes some for each byte.
//!
//! A token that contains one whose canonical rule is improper is merged as it stands.

use alloc::vec::Vec;

use super::{ATOM, CanonicalForm, Part, UNREACHABLE};
use crate::dictionary::{Atoms, Dictionary, MergeRule};
use crate::encoder::merge_loop::MergeLoop;
use crate::pair_table::PairTable;
use crate::vocabulary::{TokenId, Vocabulary};

/// Fills in where each token of `form` comes from. Returns the table of all rules of `dictionary`, and
/// whether a canonical rule may be improper.
pub(super) fn fill(form: &mut CanonicalForm, dictionary: &Dictionary) -> (PairTable, bool) {
    let mut search = Search::new(dictionary);
    for position in by_length(&form.vocabulary) {
        let part = search.part(form, position as usize);
        if is_improper(form, part) {
            search.improper.push(&form.vocabulary, position);
        }
        form.parts[position as usize] = part;
    }
    let any = !search.improper.tokens.is_empty();
    (search.table, any)
}

struct Search<'d> {
    table: PairTable,
    rules: &'d [MergeRule],
    by_product: ByProduct,
    improper: Improper,
    merge_loop: MergeLoop,
    tokens: Vec<TokenId>,
}

impl<'d> Search<'d> {
    fn new(dictionary: &'d Dictionary) -> Self {
        let rules = dictionary.rules();
        Self {
            table: PairTable::new(rules.len(), rules.iter().copied()),
            rules,
            by_product: ByProduct::new(dictionary.vocabulary(), rules),
            improper: Improper::default(),
            merge_loop: MergeLoop::default(),
            tokens: Vec::new(),
        }
    }

    /// Where the token at `position` comes from, if that is known of all shorter ones.
    fn part(&mut self, form: &CanonicalForm, position: usize) -> Part {
        let vocabulary = &*form.vocabulary;
        let (id, bytes) = (vocabulary.id_at(position), vocabulary.bytes_at(position));
        let none = |priority| Part {
            left: 0,
            right: 0,
            priority,
        };
        match form.atoms {
            Atoms::Bytes if bytes.len() == 1 => return none(ATOM),
            Atoms::Bytes => {}
            Atoms::Characters { unknown, .. } => {
                if bytes.len() == 1 && vocabulary.byte_fallback(bytes[0]) == Some(id) {
                    return none(ATOM);
                }
                match core::str::from_utf8(bytes) {
                    Ok(text) if unknown != Some(id) => {
                        if text.chars().nth(1).is_none() {
                            return none(ATOM);
                        }
                    }
                    // What it stands for is not, or need not be, what it is made of.
                    _ => return self.merged(form, position),
                }
            }
        }
        let candidates = self.by_product.rules(position);
        if candidates.is_empty() {
            return none(UNREACHABLE);
        }
        if self.improper.is_inside(vocabulary, bytes) {
            return self.merged(form, position);
        }
        let mut candidates = candidates.iter().map(|&index| self.rules[index as usize]);
        match candidates.find(|rule| self.are_neighbours(form, rule)) {
            Some(rule) => Part {
                left: rule.left,
                right: rule.right,
                priority: rule.priority.0,
            },
            None => none(UNREACHABLE),
        }
    }

    /// Whether the sides of `rule` are what is left when all shorter tokens of its product's bytes have been
    /// made.
    ///
    /// While the left side ends in `left`, which a rule of priority p consumes, and the right one begins
    /// with `right`, consumed by one of priority q, a rule that joins them fires if it comes before p, and
    /// not after q: of two equal neighbours the left one merges first.
    fn are_neighbours(&self, form: &CanonicalForm, rule: &MergeRule) -> bool {
        let (mut left, mut right) = (rule.left, rule.right);
        let (Some(mut left_part), Some(mut right_part)) =
            (part_of(form, left), part_of(form, right))
        else {
            return false;
        };
        if left_part.priority == UNREACHABLE || right_part.priority == UNREACHABLE {
            return false;
        }
        let (mut left_until, mut right_until) = (u32::MAX, u32::MAX);
        loop {
            let made = |part: Part| (part.priority < UNREACHABLE).then_some(part.priority);
            let (next, is_left) = match (made(left_part), made(right_part)) {
                (None, None) => return true,
                (Some(of_left), of_right) if of_right.is_none_or(|other| of_left > other) => {
                    left = left_part.right;
                    left_until = of_left;
                    (left, true)
                }
                (_, of_right) => {
                    right = right_part.left;
                    right_until = of_right.unwrap_or(u32::MAX);
                    (right, false)
                }
            };
            let Some(part) = part_of(form, next) else {
                return false;
            };
            match is_left {
                true => left_part = part,
                false => right_part = part,
            }
            if let Some(merge) = self.table.get(left, right)
                && merge.priority.0 < left_until
                && merge.priority.0 <= right_until
                && part_of(form, merge.product)
                    .is_some_and(|part| part.priority == merge.priority.0 && part.left == left)
            {
                return false;
            }
        }
    }

    /// As [`Search::part`], by tokenizing the token's bytes.
    fn merged(&mut self, form: &CanonicalForm, position: usize) -> Part {
        let vocabulary = &*form.vocabulary;
        let (id, bytes) = (vocabulary.id_at(position), vocabulary.bytes_at(position));
        let mut part = Part {
            left: 0,
            right: 0,
            priority: UNREACHABLE,
        };
        self.tokens.clear();
        if form.append_atoms(bytes, &mut self.tokens).is_err() {
            // An atom is missing, or the token is itself the unknown token's text.
            return part;
        }
        let last = self.merge_loop.merge_tail(&self.table, &mut self.tokens, 0);
        match (self.tokens.as_slice(), last) {
            ([only], None) if *only == id => part.priority = ATOM,
            ([only], Some((left, right, priority))) if *only == id => {
                part = Part {
                    left,
                    right,
                    priority: priority.0,
                };
            }
            _ => {}
        }
        part
    }
}

fn part_of(form: &CanonicalForm, id: TokenId) -> Option<Part> {
    form.parts.get(form.vocabulary.position_of(id)?).copied()
}

/// Whether a side of the rule that makes a token is made no earlier.
fn is_improper(form: &CanonicalForm, part: Part) -> bool {
    let is_late = |side| {
        let maker = part_of(form, side).map_or(UNREACHABLE, |part| part.priority);
        maker < UNREACHABLE && maker >= part.priority
    };
    part.priority < UNREACHABLE && (is_late(part.left) || is_late(part.right))
}

/// Positions of all tokens, the shortest first, and in the order of ids where they are as long.
fn by_length(vocabulary: &Vocabulary) -> Vec<u32> {
    let mut starts = alloc::vec![0_usize; vocabulary.longest_token() + 2];
    for (_, bytes) in vocabulary.iter() {
        starts[bytes.len() + 1] += 1;
    }
    for length in 1..starts.len() {
        starts[length] += starts[length - 1];
    }
    let mut positions = alloc::vec![0; vocabulary.len()];
    for (position, (_, bytes)) in (0_u32..).zip(vocabulary.iter()) {
        let next = &mut starts[bytes.len()];
        positions[*next] = position;
        *next += 1;
    }
    positions
}

/// Of each token the rules that make it.
struct ByProduct {
    /// Where those of each token, by position, begin in `indices`.
    starts: Vec<u32>,
    indices: Vec<u32>,
}

impl ByProduct {
    fn new(vocabulary: &Vocabulary, rules: &[MergeRule]) -> Self {
        let position = |rule: &MergeRule| vocabulary.position_of(rule.product);
        let mut starts = alloc::vec![0_u32; vocabulary.len() + 2];
        for position in rules.iter().filter_map(position) {
            starts[position + 2] += 1;
        }
        for next in 2..starts.len() {
            starts[next] += starts[next - 1];
        }
        let mut indices = alloc::vec![0; rules.len()];
        for (index, rule) in (0_u32..).zip(rules) {
            if let Some(position) = position(rule) {
                let next = &mut starts[position + 1];
                indices[*next as usize] = index;
                *next += 1;
            }
        }
        Self { starts, indices }
    }

    /// In the order of their priorities.
    fn rules(&self, position: usize) -> &[u32] {
        let range = self.starts[position] as usize..self.starts[position + 1] as usize;
        &self.indices[range]
    }
}

/// So many tokens with improper rules are looked for inside of others. A vocabulary has a few, if any; where
/// there are more, all longer tokens are merged.
const MOST_IMPROPER: usize = 64;

/// Tokens whose canonical rules are improper and that contain no other such token.
#[derive(Default)]
struct Improper {
    tokens: Vec<u32>,
    /// A bit for each two bytes that one of them begins with.
    beginnings: Vec<u64>,
}

impl Improper {
    fn push(&mut self, vocabulary: &Vocabulary, position: u32) {
        let bytes = vocabulary.bytes_at(position as usize);
        if self.tokens.len() > MOST_IMPROPER || self.is_inside(vocabulary, bytes) {
            return;
        }
        self.tokens.push(position);
        self.beginnings.resize(1 << 10, 0);
        if let &[first, second, ..] = bytes {
            let (word, bit) = beginning(first, second);
            self.beginnings[word] |= bit;
        }
    }

    /// Whether one of them stands in `bytes`, or may.
    fn is_inside(&self, vocabulary: &Vocabulary, bytes: &[u8]) -> bool {
        if self.tokens.is_empty() {
            return false;
        }
        if self.tokens.len() > MOST_IMPROPER {
            return true;
        }
        bytes.windows(2).enumerate().any(|(start, two)| {
            let (word, bit) = beginning(two[0], two[1]);
            let begins_here =
                |&token: &u32| bytes[start..].starts_with(vocabulary.bytes_at(token as usize));
            self.beginnings[word] & bit != 0 && self.tokens.iter().any(begins_here)
        })
    }
}

fn beginning(first: u8, second: u8) -> (usize, u64) {
    let two = usize::from(first) << 8 | usize::from(second);
    (two >> 6, 1 << (two & 63))
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use proptest::prelude::*;

    use super::*;

    /// What the search must find: each token is tokenized.
    fn by_merging(dictionary: &Dictionary) -> Vec<Part> {
        let form = CanonicalForm::empty(dictionary);
        let mut search = Search::new(dictionary);
        let fallback = |id, bytes: &[u8]| {
            bytes.len() == 1 && dictionary.vocabulary().byte_fallback(bytes[0]) == Some(id)
        };
        (0..form.vocabulary.len())
            .map(|position| {
                let mut part = search.merged(&form, position);
                let id = form.vocabulary.id_at(position);
                if fallback(id, form.vocabulary.bytes_at(position)) {
                    part.priority = ATOM;
                }
                part
            })
            .collect()
    }

    fn check(dictionary: &Dictionary) -> Result<(), TestCaseError> {
        let form = CanonicalForm::new(dictionary);
        for (position, expected) in by_merging(dictionary).iter().enumerate() {
            let found = form.parts[position];
            let show = |part: &Part| (part.left, part.right, part.priority);
            // Sides of what no rule makes are of no meaning.
            let sides = |part: &Part| match part.priority < UNREACHABLE {
                true => show(part),
                false => (0, 0, part.priority),
            };
            prop_assert_eq!(sides(&found), sides(expected), "token {}", position);
        }
        Ok(())
    }

    /// Tokens over few letters, so that they overlap in many ways.
    fn tokens(letters: u8) -> impl Strategy<Value = Vec<Vec<u8>>> {
        let token = prop::collection::vec(0..letters, 2..7);
        prop::collection::vec(token, 1..40).prop_map(move |mut tokens| {
            let mut seen = vec![];
            tokens.retain(|token| match seen.contains(token) {
                true => false,
                false => {
                    seen.push(token.clone());
                    true
                }
            });
            let mut all: Vec<Vec<u8>> = (0..letters).map(|letter| vec![b'a' + letter]).collect();
            all.extend(tokens.iter().map(|token| {
                token
                    .iter()
                    .map(|letter| b'a' + letter)
                    .collect::<Vec<u8>>()
            }));
            all
        })
    }

    fn vocabulary(tokens: &[Vec<u8>]) -> Vocabulary {
        Vocabulary::new((0..).zip(tokens)).expect("each is there once")
    }

    /// Every split of every token into two others, in an order of `order`'s making.
    fn all_splits(tokens: &[Vec<u8>], order: &[u32]) -> Vec<(TokenId, TokenId)> {
        let vocabulary = vocabulary(tokens);
        let mut splits = Vec::new();
        for token in tokens {
            for at in 1..token.len() {
                let (left, right) = token.split_at(at);
                if let (Some(left), Some(right)) = (vocabulary.id_of(left), vocabulary.id_of(right))
                {
                    let key = order[splits.len() % order.len()];
                    splits.push((key, (left, right)));
                }
            }
        }
        splits.sort_by_key(|split| split.0);
        splits.into_iter().map(|split| split.1).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn rank_dictionaries_have_the_rules_that_merging_finds(tokens in tokens(3)) {
            check(&Dictionary::from_ranks(vocabulary(&tokens)).expect("few"))?;
        }

        #[test]
        fn lists_in_any_order_have_the_rules_that_merging_finds(
            tokens in tokens(2),
            order in prop::collection::vec(0_u32..50, 1..60),
        ) {
            let merges = all_splits(&tokens, &order);
            let dictionary = Dictionary::from_merges(vocabulary(&tokens), merges).expect("tokens");
            check(&dictionary)?;
            let characters = Atoms::Characters { unknown: None, fuse_unknown: false };
            check(&dictionary.with_atoms(characters).expect("no unknown"))?;
        }

        #[test]
        fn nearly_proper_lists_have_the_rules_that_merging_finds(
            tokens in tokens(3),
            late in 0_usize..40,
        ) {
            // By length all is proper; one rule comes last instead of at its place.
            let mut merges = all_splits(&tokens, &[0]);
            let product = |merge: &(TokenId, TokenId)| {
                tokens[merge.0 as usize].len() + tokens[merge.1 as usize].len()
            };
            merges.sort_by_key(product);
            if !merges.is_empty() {
                let rule = merges.remove(late % merges.len());
                merges.push(rule);
            }
            check(&Dictionary::from_merges(vocabulary(&tokens), merges).expect("tokens"))?;
        }
    }
}

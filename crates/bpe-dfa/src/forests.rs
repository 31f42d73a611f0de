//! The two forests of a dictionary, and the rectangles of pairs that are not valid.

use bpe_core::{Atoms, CanonicalForm, MergeRule, TokenId, TokenOrigin};

use crate::error::{Kind, RelationError};

/// Marks "no token".
pub(crate) const NONE: u32 = u32::MAX;

/// The most canonical tokens: numbers inside a block of a 64th of them are kept in 16 bits.
pub(crate) const MOST_TOKENS: usize = 1 << 22;

/// The canonical tokens in the order of their making, atoms by id, then products by priority: the
/// place in this order is a token's *rank*. Each has a number in the successor forest, where its
/// parent is its successor, and one in the predecessor forest. Numbers are given depth first, children
/// from lowest to highest priority (000 section 4.3): what ends, or begins, with a token that a rule
/// finds still there is then one interval.
pub(crate) struct Forests {
    /// Ids by rank.
    pub(crate) ids: Vec<TokenId>,
    /// Numbers in the successor forest, by rank.
    pub(crate) successor_number: Vec<u32>,
    /// Numbers in the predecessor forest, by rank.
    pub(crate) predecessor_number: Vec<u32>,
    /// Of each rule, by priority, the pairs that it makes invalid.
    pub(crate) rectangles: Vec<Rectangle>,
}

/// Pairs (x, y) that are not valid: x has a successor number in `left`, y a predecessor number in
/// `right`.
#[derive(Clone, Copy)]
pub(crate) struct Rectangle {
    pub(crate) left_start: u32,
    pub(crate) left_end: u32,
    pub(crate) right_start: u32,
    pub(crate) right_end: u32,
}

impl Forests {
    /// O(n log n) for n tokens: the rules are sorted by priority, all else is two passes over them.
    pub(crate) fn new(canonical: &CanonicalForm) -> Result<Self, RelationError> {
        if let Some(evidence) = canonical.improper_rule() {
            return Err(RelationError(Kind::Improper {
                product: evidence.rule.product,
                side: evidence.maker.product,
            }));
        }
        let vocabulary = canonical.vocabulary();
        let mut ranks = IdTable::new(vocabulary.iter().map(|(id, _)| id));
        let mut ids = Vec::with_capacity(vocabulary.len());
        let mut rules: Vec<MergeRule> = Vec::with_capacity(canonical.rule_count());
        for (id, bytes) in vocabulary.iter() {
            match canonical.origin(id) {
                Some(TokenOrigin::Rule(rule)) => rules.push(rule),
                Some(TokenOrigin::Atom)
                    if is_one_atom(bytes, canonical.atoms())
                        && vocabulary.id_of(bytes) == Some(id) =>
                {
                    ranks.set(id, ids.len() as u32);
                    ids.push(id);
                }
                // Unreachable tokens, fallback tokens, and the unknown token: no merge has them.
                _ => {}
            }
        }
        if ids.len() + rules.len() > MOST_TOKENS {
            return Err(RelationError(Kind::TooManyTokens { limit: MOST_TOKENS }));
        }
        let atoms = ids.len();
        rules.sort_unstable_by_key(|rule| rule.priority);
        let mut sides = Vec::with_capacity(rules.len());
        for rule in &rules {
            let side = |id| {
                ranks
                    .get(id)
                    .ok_or(RelationError(Kind::NotCanonical { id }))
            };
            let (left, right) = (side(rule.left)?, side(rule.right)?);
            ranks.set(rule.product, ids.len() as u32);
            ids.push(rule.product);
            sides.push((left, right));
        }
        let mut forests = Self {
            successor_number: vec![0; ids.len()],
            predecessor_number: vec![0; ids.len()],
            rectangles: Vec::new(),
            ids,
        };
        forests.number(atoms, &sides);
        Ok(forests)
    }

    /// Number of canonical tokens.
    pub(crate) fn len(&self) -> usize {
        self.ids.len()
    }

    /// Gives the numbers, and finds the rectangles. A token is made after its sides. So from the last
    /// rule to the first, what is below a token is complete when the token is reached; and when a rule
    /// (u, v) is reached, what is below u and v so far is what later rules have made of them: the texts
    /// in which this rule still finds u at the end, and v at the beginning.
    fn number(&mut self, atoms: usize, sides: &[(u32, u32)]) {
        // Tokens that end with a token by a chain of successors, itself included, and that begin with it.
        let mut ends = vec![1_u32; self.len()];
        let mut begins = vec![1_u32; self.len()];
        let mut extents = vec![(0_u32, 0_u32); sides.len()];
        for (index, &(left, right)) in sides.iter().enumerate().rev() {
            let product = atoms + index;
            let (left, right) = (left as usize, right as usize);
            // The left side is taken from the product itself, where both sides are equal, before the
            // product counts, the right side after it: of two equal neighbours the left one merges
            // first, so behind the product's own beginning the rule is still to come.
            let left_extent = ends[left];
            ends[right] += ends[product];
            begins[left] += begins[product];
            extents[index] = (left_extent, begins[right]);
        }
        place(&mut self.successor_number, atoms, &ends, |index| {
            sides[index].1
        });
        place(&mut self.predecessor_number, atoms, &begins, |index| {
            sides[index].0
        });
        let numbers = (&self.successor_number, &self.predecessor_number);
        let rectangle = |(&(left, right), &(ends, begins)): (&(u32, u32), &(u32, u32))| {
            let left_start = numbers.0[left as usize];
            let right_start = numbers.1[right as usize];
            Rectangle {
                left_start,
                left_end: left_start + ends,
                right_start,
                right_end: right_start + begins,
            }
        };
        self.rectangles = sides.iter().zip(&extents).map(rectangle).collect();
    }
}

/// Numbers a forest depth first. From the first rule to the last a parent has its number before its
/// children ask for theirs; the best priority is the last child, so children are placed from the end.
fn place(numbers: &mut [u32], atoms: usize, sizes: &[u32], parent: impl Fn(usize) -> u32) {
    let mut free = vec![0_u32; numbers.len()];
    let mut next = 0;
    for rank in 0..atoms {
        numbers[rank] = next;
        next += sizes[rank];
        free[rank] = next;
    }
    for rank in atoms..numbers.len() {
        let parent = parent(rank - atoms) as usize;
        let end = free[parent];
        free[parent] = end - sizes[rank];
        numbers[rank] = free[parent];
        free[rank] = end;
    }
}

/// Whether a token is one atom: a fallback token or the unknown token is not, whatever it spells.
fn is_one_atom(bytes: &[u8], atoms: Atoms) -> bool {
    match atoms {
        Atoms::Bytes => bytes.len() == 1,
        Atoms::Characters { .. } => {
            core::str::from_utf8(bytes).is_ok_and(|text| text.chars().nth(1).is_none())
        }
    }
}

/// From token ids to numbers.
#[derive(Clone)]
pub(crate) enum IdTable {
    /// One entry an id, where ids are dense enough.
    Dense(Vec<u32>),
    /// Ids in ascending order, and their numbers.
    Sparse(Vec<TokenId>, Vec<u32>),
}

impl IdTable {
    /// A table without numbers for these ids, which ascend.
    pub(crate) fn new(ids: impl ExactSizeIterator<Item = TokenId>) -> Self {
        let count = ids.len();
        let ids: Vec<TokenId> = ids.collect();
        let largest = ids.last().map_or(0, |&id| id as usize);
        if largest < 4 * count + (1 << 16) {
            Self::Dense(vec![NONE; largest + 1])
        } else {
            Self::Sparse(ids, vec![NONE; count])
        }
    }

    #[inline]
    pub(crate) fn get(&self, id: TokenId) -> Option<u32> {
        let number = match self {
            Self::Dense(numbers) => numbers.get(id as usize).copied(),
            Self::Sparse(ids, numbers) => ids.binary_search(&id).ok().map(|at| numbers[at]),
        };
        number.filter(|&number| number != NONE)
    }

    /// Bytes of memory.
    pub(crate) fn memory(&self) -> usize {
        let (Self::Dense(numbers) | Self::Sparse(_, numbers)) = self;
        let ids = match self {
            Self::Dense(_) => 0,
            Self::Sparse(ids, _) => ids.len(),
        };
        (ids + numbers.len()) * size_of::<u32>()
    }

    pub(crate) fn set(&mut self, id: TokenId, number: u32) {
        match self {
            Self::Dense(numbers) => {
                if let Some(place) = numbers.get_mut(id as usize) {
                    *place = number;
                }
            }
            Self::Sparse(ids, numbers) => {
                if let Ok(at) = ids.binary_search(&id) {
                    numbers[at] = number;
                }
            }
        }
    }
}

//! The successor forest, numbered so that one comparison tests a candidate for the last token.

use alloc::vec::Vec;

use bpe_core::{Atoms, CanonicalForm, MergeRule, TokenId, TokenOrigin};

use crate::error::{EngineError, Kind};

/// Marks "no token" where a rank is expected.
pub(crate) const NONE: u32 = u32::MAX;

/// The canonical tokens in the order of their making: atoms by id, then products by the priority of
/// their rules. The place in this order is a token's *rank*.
///
/// The parent of a token in the forest is its successor. Numbers are given in depth-first order,
/// children from lowest to highest priority, so that the tokens below a token, and those below it
/// that a rule has not yet consumed, are intervals (000 section 4.3).
pub(crate) struct Forest {
    pub(crate) nodes: Vec<Node>,
}

/// One token.
#[derive(Clone, Copy)]
pub(crate) struct Node {
    pub(crate) id: TokenId,
    /// Bytes of the token.
    pub(crate) len: u32,
    /// Rank of the right side of the rule that makes it; `NONE` for atoms.
    pub(crate) successor: u32,
    /// The token's own number; those below it have the numbers up to `end`.
    pub(crate) number: u32,
    pub(crate) end: u32,
    /// The token can end the text only where the last token of the text before its successor has
    /// a number in `low..high`. Empty for atoms, which always can.
    pub(crate) low: u32,
    pub(crate) high: u32,
}

impl Node {
    pub(crate) fn is_atom(&self) -> bool {
        self.successor == NONE
    }
}

impl Forest {
    /// The forest of a proper dictionary. O(n log n) for n tokens, for sorting rules by priority;
    /// the numbers take one pass over the rules in each direction.
    pub(crate) fn new(canonical: &CanonicalForm) -> Result<Self, EngineError> {
        if let Some(evidence) = canonical.improper_rule() {
            return Err(EngineError(Kind::Improper {
                product: evidence.rule.product,
                side: evidence.maker.product,
            }));
        }
        let vocabulary = canonical.vocabulary();
        let mut ranks = Ranks::new(vocabulary.iter().map(|(id, _)| id));
        let mut nodes = Vec::new();
        let mut rules: Vec<MergeRule> = Vec::new();
        for (id, bytes) in vocabulary.iter() {
            match canonical.origin(id) {
                Some(TokenOrigin::Rule(rule)) => rules.push(rule),
                Some(TokenOrigin::Atom)
                    if is_one_atom(bytes, canonical.atoms())
                        && vocabulary.id_of(bytes) == Some(id) =>
                {
                    ranks.set(id, nodes.len() as u32);
                    nodes.push(Node::new(id, bytes.len() as u32, NONE));
                }
                // Unreachable tokens, fallback tokens, and the unknown token: no merge has them.
                _ => {}
            }
        }
        let atoms = nodes.len();
        rules.sort_unstable_by_key(|rule| rule.priority);
        let mut predecessors = Vec::with_capacity(rules.len());
        for rule in &rules {
            let missing = |id| EngineError(Kind::NotCanonical { id });
            let side = |id| ranks.get(id).ok_or(missing(id));
            let (left, right) = (side(rule.left)?, side(rule.right)?);
            let bytes = vocabulary.token_bytes(rule.product);
            let len = bytes.ok_or(missing(rule.product))?.len() as u32;
            if nodes[left as usize].len + nodes[right as usize].len != len {
                return Err(missing(rule.product));
            }
            ranks.set(rule.product, nodes.len() as u32);
            nodes.push(Node::new(rule.product, len, right));
            predecessors.push(left);
        }
        number(&mut nodes, atoms, &predecessors);
        Ok(Self { nodes })
    }

    /// Number of tokens.
    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    pub(crate) fn node(&self, rank: u32) -> &Node {
        &self.nodes[rank as usize]
    }
}

impl Node {
    fn new(id: TokenId, len: u32, successor: u32) -> Self {
        Self {
            id,
            len,
            successor,
            number: 0,
            end: 1, // First the size of what is below, then the end of its numbers.
            low: 0,
            high: 0,
        }
    }
}

/// Gives the numbers and intervals. A token is made after its sides, so from the last rule to the
/// first sizes are complete when they are added to the parent's, and from the first to the last a
/// parent has its numbers before its children ask for theirs.
fn number(nodes: &mut [Node], atoms: usize, predecessors: &[u32]) {
    for rank in (atoms..nodes.len()).rev() {
        let size = nodes[rank].end;
        let parent = nodes[rank].successor as usize;
        nodes[parent].end += size;
    }
    let mut next = 0;
    // Where the numbers of the children that are already placed begin: the best priority comes
    // last, and rules come by priority, so children are placed from the end.
    let mut begin = alloc::vec![0_u32; nodes.len()];
    for (rank, node) in nodes[..atoms].iter_mut().enumerate() {
        node.number = next;
        next += node.end;
        node.end = next;
        begin[rank] = next;
    }
    for (index, &predecessor) in predecessors.iter().enumerate() {
        let rank = atoms + index;
        let parent = nodes[rank].successor as usize;
        let end = begin[parent];
        let number = end - nodes[rank].end;
        begin[parent] = number;
        begin[rank] = end;
        // After the token itself has been placed: where both sides are equal, the left one of two
        // merges with the right, so that the token's own numbers are no place to begin it again.
        let low = nodes[predecessor as usize].number;
        let high = begin[predecessor as usize];
        let node = &mut nodes[rank];
        (node.number, node.end) = (number, end);
        (node.low, node.high) = (low, high);
    }
}

/// Whether a token is one atom: a fallback token or the unknown token is not, whatever it spells.
pub(crate) fn is_one_atom(bytes: &[u8], atoms: Atoms) -> bool {
    match atoms {
        Atoms::Bytes => bytes.len() == 1,
        Atoms::Characters { .. } => {
            core::str::from_utf8(bytes).is_ok_and(|text| text.chars().nth(1).is_none())
        }
    }
}

/// From token ids to ranks.
enum Ranks {
    /// One entry an id, where ids are dense enough.
    Table(Vec<u32>),
    /// Ids in ascending order, and their ranks.
    Search(Vec<TokenId>, Vec<u32>),
}

impl Ranks {
    fn new(ids: impl ExactSizeIterator<Item = TokenId>) -> Self {
        let count = ids.len();
        let ids: Vec<TokenId> = ids.collect();
        let largest = ids.last().map_or(0, |&id| id as usize);
        if largest < 4 * count + (1 << 16) {
            Self::Table(alloc::vec![NONE; largest + 1])
        } else {
            Self::Search(ids, alloc::vec![NONE; count])
        }
    }

    fn get(&self, id: TokenId) -> Option<u32> {
        let rank = match self {
            Self::Table(ranks) => ranks.get(id as usize).copied(),
            Self::Search(ids, ranks) => ids.binary_search(&id).ok().map(|at| ranks[at]),
        };
        rank.filter(|&rank| rank != NONE)
    }

    fn set(&mut self, id: TokenId, rank: u32) {
        match self {
            Self::Table(ranks) => ranks[id as usize] = rank,
            Self::Search(ids, ranks) => {
                if let Ok(at) = ids.binary_search(&id) {
                    ranks[at] = rank;
                }
            }
        }
    }
}

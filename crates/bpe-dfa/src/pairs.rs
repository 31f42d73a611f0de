//! Which tokens may stand beside each other.

use std::fmt;
use std::ops::Range;

use bpe_core::{CanonicalForm, TokenId};

use crate::error::RelationError;
use crate::forests::{Forests, IdTable, NONE};
use crate::rows::{Head, Rows};

/// Which pairs of canonical tokens are the tokenization of their own text: the *valid* pairs.
///
/// Inside one pre-token, and without whole-piece look-up, a sequence of tokens is a tokenization if and
/// only if each token is canonical and each neighbouring pair is valid (002 Observation 2). **Not across
/// pre-tokens**: there the pattern cuts, and invalid pairs are right.
///
/// The pairs that are not valid are a union of rectangles, one a rule, when tokens are numbered by
/// depth-first search in the forest of successors on the left and in that of predecessors on the right
/// (docs/theory.md, section 10). So what cannot follow a token is a small set of intervals of the second
/// numbering, its *row*. Tokens with the same row are the same state of the minimal automaton that
/// accepts all tokenizations: its states are the distinct rows.
///
/// Useful for validation, constraints and comparisons at the size of real vocabularies: o200k_base takes
/// some tenths of a second and some 20 MB. Not useful for finding tokens; a span encoder does that.
///
/// ```
/// use bpe_core::{CanonicalForm, Dictionary, Vocabulary};
/// use bpe_dfa::PairRelation;
///
/// let vocabulary = Vocabulary::new([(0, "a"), (1, "b"), (2, "ab"), (3, "aba")])?;
/// let dictionary = Dictionary::from_merges(vocabulary, [(0, 1), (2, 0)])?;
/// let pairs = PairRelation::new(&CanonicalForm::new(&dictionary))?;
/// assert!(pairs.is_valid(1, 0)); // b|a
/// assert!(!pairs.is_valid(0, 1)); // "ab" is one token
/// assert!(!pairs.is_valid(3, 1)); // "abab" is ab|ab
/// assert_eq!(pairs.valid_pairs(), 16 - 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct PairRelation {
    rows: Rows,
    tokens: Tokens,
    /// Rows by predecessor number.
    row_of_number: Vec<u32>,
    /// Ids by predecessor number.
    pub(crate) id_of_number: Vec<TokenId>,
    valid_pairs: u64,
    unrestricting: usize,
    /// The row that forbids nothing, where a token has it.
    empty_row: Option<u32>,
}

/// Pairs that are looked at together.
const TOGETHER: usize = 64;

/// A token as the relation sees it: 16 bytes, so that most pairs are a load a token.
#[derive(Clone, Copy)]
struct Token {
    /// What it forbids, a [`Head`].
    mask: u64,
    first: u32,
    number: u32,
}

impl Token {
    fn head(self) -> Head {
        Head {
            mask: self.mask,
            first: self.first,
        }
    }
}

/// Of an id of no token.
const NO_TOKEN: Token = Token {
    mask: 0,
    first: 0,
    number: NONE,
};

/// Tokens by id.
enum Tokens {
    Dense(Vec<Token>),
    Sparse(IdTable, Vec<Token>),
}

impl PairRelation {
    /// The relation of a proper dictionary. O(n log n) for n tokens, and linear in the intervals of
    /// the rows (some tenths of a second for 200,000 tokens).
    ///
    /// Tokens that merging does not give, and those for unknown characters and for single bytes of
    /// characters ([`bpe_core::Atoms::Characters`]), take no part in merges: no pair with them is valid.
    ///
    /// # Errors
    ///
    /// An improper dictionary, for which the rectangles are not right; or more than four million tokens.
    pub fn new(canonical: &CanonicalForm) -> Result<Self, RelationError> {
        Ok(Self::of(&Forests::new(canonical)?))
    }

    pub(crate) fn of(forests: &Forests) -> Self {
        let (rows, of_rank) = Rows::new(forests);
        let mut id_of_number = vec![0; forests.len()];
        let mut row_of_number = vec![0; forests.len()];
        let mut members = vec![0_u64; rows.len()];
        for (rank, &number) in forests.predecessor_number.iter().enumerate() {
            id_of_number[number as usize] = forests.ids[rank];
            row_of_number[number as usize] = of_rank[rank];
            members[of_rank[rank] as usize] += 1;
        }
        let all = forests.len() as u64;
        let tokens_of =
            |(row, &members): (u32, &u64)| members * (all - u64::from(rows.forbidden(row)));
        let valid_pairs = (0_u32..).zip(&members).map(tokens_of).sum();
        let empty = (0..rows.len() as u32).find(|&row| rows.forbidden(row) == 0);
        let unrestricting = empty.map_or(0, |row| members[row as usize] as usize);
        Self {
            empty_row: empty.filter(|_| unrestricting > 0),
            tokens: Tokens::new(forests, |rank| rows.head(of_rank[rank])),
            rows,
            row_of_number,
            id_of_number,
            valid_pairs,
            unrestricting,
        }
    }

    /// Whether the two tokens, in this order, are the tokenization of their own text. False where one
    /// of them is not canonical, or no token. O(1) in practice: a few loads, then a search among the
    /// intervals of a 64th of the tokens.
    #[inline]
    pub fn is_valid(&self, left: TokenId, right: TokenId) -> bool {
        let (left, right) = (self.tokens.get(left), self.tokens.get(right));
        left.number != NONE && right.number != NONE && !self.rows.forbids(left.head(), right.number)
    }

    /// Whether each of these tokens, given by their indexes, and the one behind it are a valid pair. As
    /// [`PairRelation::is_valid`] for each, but what many wait for is read together. False where an
    /// index has no token behind it.
    ///
    /// ```
    /// use bpe_core::{CanonicalForm, Dictionary, Vocabulary};
    /// use bpe_dfa::PairRelation;
    ///
    /// let vocabulary = Vocabulary::new([(0, "a"), (1, "b"), (2, "ab")])?;
    /// let dictionary = Dictionary::from_merges(vocabulary, [(0, 1)])?;
    /// let pairs = PairRelation::new(&CanonicalForm::new(&dictionary))?;
    /// let ids = [2, 0, 1, 1];
    /// assert!(pairs.are_valid(&ids, &[0, 2]));
    /// assert!(!pairs.are_valid(&ids, &[0, 1])); // a|b
    /// assert!(!pairs.are_valid(&ids, &[3]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn are_valid(&self, ids: &[TokenId], lefts: &[u32]) -> bool {
        lefts.chunks(TOGETHER).all(|lefts| {
            let pairs = lefts.iter().map(|&left| {
                let at = left as usize;
                match (ids.get(at), ids.get(at + 1)) {
                    (Some(&left), Some(&right)) => (self.tokens.get(left), self.tokens.get(right)),
                    _ => (NO_TOKEN, NO_TOKEN),
                }
            });
            self.are_all_valid(pairs)
        })
    }

    /// Whether all of these pairs are valid; at most [`TOGETHER`].
    #[inline]
    fn are_all_valid(&self, pairs: impl Iterator<Item = (Token, Token)>) -> bool {
        let mut open = [(Head::NOTHING, NONE); TOGETHER];
        let (mut count, mut known) = (0, true);
        for (left, right) in pairs {
            known &= left.number != NONE && right.number != NONE;
            // Of most pairs the row has nothing in the block of the right token.
            if let Some(place) = open.get_mut(count) {
                *place = (left.head(), right.number);
            }
            count += usize::from(self.rows.may_forbid(left.head(), right.number));
        }
        known && !self.rows.forbid_any(open.get(..count).unwrap_or_default())
    }

    /// Whether the token takes part in merges and is what its own bytes are tokenized to. O(1).
    #[inline]
    pub fn is_canonical(&self, id: TokenId) -> bool {
        self.tokens.get(id).number != NONE
    }

    /// The index of the first token that is not canonical or not valid after the one before it. One
    /// pass; the tokens are those of one span, from its beginning.
    ///
    /// All tokens before that index are a tokenization of their own text. They need not all be in the
    /// tokenization of the whole text: see [`Validator`](crate::Validator).
    pub fn first_break(&self, ids: &[TokenId]) -> Option<usize> {
        if !self.is_canonical(*ids.first()?) {
            return Some(0);
        }
        let mut from = 0;
        let mut left = self.tokens.get(*ids.first()?);
        for rights in ids.get(1..)?.chunks(TOGETHER) {
            let pairs = rights.iter().map(|&id| {
                let right = self.tokens.get(id);
                (std::mem::replace(&mut left, right), right)
            });
            if !self.are_all_valid(pairs) {
                let part = ids.get(from..from + rights.len() + 1)?;
                let is_wrong = |pair: &[TokenId]| !self.is_valid(pair[0], pair[1]);
                return Some(from + 1 + part.windows(2).position(is_wrong)?);
            }
            from += rights.len();
        }
        None
    }

    /// Number of canonical tokens.
    pub fn len(&self) -> usize {
        self.id_of_number.len()
    }

    /// True where there is no canonical token.
    pub fn is_empty(&self) -> bool {
        self.id_of_number.is_empty()
    }

    /// Number of valid pairs: the transitions between tokens of the automaton that accepts all
    /// tokenizations. O(1).
    pub fn valid_pairs(&self) -> u64 {
        self.valid_pairs
    }

    /// Number of tokens that every canonical token may follow. O(1).
    pub fn unrestricting_tokens(&self) -> usize {
        self.unrestricting
    }

    /// Number of states of the minimal automaton that accepts all tokenizations, a rejecting sink not
    /// counted: the distinct rows, and a start state where no token's row forbids nothing. O(1).
    pub fn state_count(&self) -> usize {
        // An empty row is always there; it is a state whether or not a token has it.
        self.rows.len()
    }

    /// The state before the first token: nothing is forbidden.
    pub fn start_state(&self) -> StateId {
        StateId(0)
    }

    /// The state after a token, whatever stood before it; `None` where the token is not canonical.
    /// O(1).
    #[inline]
    pub fn state_after(&self, id: TokenId) -> Option<StateId> {
        let number = self.tokens.get(id).number;
        self.row_of_number
            .get(number as usize)
            .copied()
            .map(StateId)
    }

    /// Whether the token may come in this state. O(1) in practice.
    #[inline]
    pub fn allows(&self, state: StateId, id: TokenId) -> bool {
        let number = self.tokens.get(id).number;
        number != NONE
            && (state.0 as usize) < self.rows.len()
            && !self.rows.forbids(self.rows.head(state.0), number)
    }

    /// What cannot come in this state, as ascending intervals of [numbers](PairRelation::number), none
    /// of which touch.
    pub fn forbidden(&self, state: StateId) -> impl Iterator<Item = Range<u32>> + Clone {
        self.rows.intervals(state.0.min(self.rows.len() as u32 - 1))
    }

    /// How many tokens cannot come in this state. O(1).
    pub fn forbidden_count(&self, state: StateId) -> usize {
        self.rows.forbidden(state.0.min(self.rows.len() as u32 - 1)) as usize
    }

    /// The number of a canonical token in the order in which rows are intervals: depth first in the
    /// forest of predecessors. O(1).
    #[inline]
    pub fn number(&self, id: TokenId) -> Option<u32> {
        let number = self.tokens.get(id).number;
        (number != NONE).then_some(number)
    }

    /// The canonical token with this number. O(1).
    #[inline]
    pub fn token_with_number(&self, number: u32) -> Option<TokenId> {
        self.id_of_number.get(number as usize).copied()
    }

    /// Bytes of memory.
    pub fn memory(&self) -> usize {
        self.rows.memory()
            + self.id_of_number.len() * size_of::<TokenId>()
            + self.row_of_number.len() * size_of::<u32>()
            + self.tokens.memory()
    }

    /// Whether a row forbids the token with this predecessor number.
    pub(crate) fn forbids(&self, row: u32, number: u32) -> bool {
        self.rows.forbids(self.rows.head(row), number)
    }

    pub(crate) fn rows(&self) -> &Rows {
        &self.rows
    }

    /// Whether a token has the start state's row.
    pub(crate) fn has_unrestricting_token(&self) -> bool {
        self.empty_row.is_some()
    }
}

/// A state of the minimal automaton that accepts all tokenizations ([`PairRelation`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StateId(pub(crate) u32);

impl StateId {
    /// A number below [`PairRelation::state_count`].
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Debug for PairRelation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PairRelation")
            .field("tokens", &self.len())
            .field("states", &self.state_count())
            .field("valid_pairs", &self.valid_pairs)
            .field("start_is_of_a_token", &self.has_unrestricting_token())
            .finish_non_exhaustive()
    }
}

impl Tokens {
    fn new(forests: &Forests, head: impl Fn(usize) -> Head) -> Self {
        let token = |rank: usize| {
            let Head { mask, first } = head(rank);
            Token {
                mask,
                first,
                number: forests.predecessor_number[rank],
            }
        };
        let count = forests.len();
        let largest = forests.ids.iter().max().map_or(0, |&id| id as usize);
        if largest < 4 * count + (1 << 16) {
            let mut tokens = vec![NO_TOKEN; largest + 1];
            for (rank, &id) in forests.ids.iter().enumerate() {
                tokens[id as usize] = token(rank);
            }
            return Self::Dense(tokens);
        }
        let mut ids = forests.ids.clone();
        ids.sort_unstable();
        let mut table = IdTable::new(ids.into_iter());
        for (rank, &id) in forests.ids.iter().enumerate() {
            table.set(id, rank as u32);
        }
        Self::Sparse(table, (0..count).map(token).collect())
    }

    #[inline]
    fn get(&self, id: TokenId) -> Token {
        let token = match self {
            Self::Dense(tokens) => tokens.get(id as usize).copied(),
            Self::Sparse(table, tokens) => table
                .get(id)
                .and_then(|rank| tokens.get(rank as usize).copied()),
        };
        token.unwrap_or(NO_TOKEN)
    }

    fn memory(&self) -> usize {
        match self {
            Self::Dense(tokens) => tokens.len() * size_of::<Token>(),
            Self::Sparse(_, tokens) => tokens.len() * (size_of::<Token>() + 16),
        }
    }
}

//! What cannot follow a token, from its rules alone.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use bpe_core::{CanonicalForm, TokenId};

use crate::error::RelationError;
use crate::forests::{Forests, IdTable, Rectangle};
use crate::rows::unite;

/// What cannot follow a token, gathered from the rules when it is asked for.
///
/// [`PairRelation`](crate::PairRelation) answers the same from rows that it has made of all tokens: with o200k_base in a
/// third of the time, and a twentieth for the longest answers. This makes no rows and needs a third of the memory: for the
/// few tokens of a short generation.
///
/// ```
/// use std::sync::Arc;
/// use bpe_core::{CanonicalForm, Dictionary, Vocabulary};
/// use bpe_dfa::{PairRelation, Rectangles};
///
/// let vocabulary = Vocabulary::new([(0, "a"), (1, "b"), (2, "ab"), (3, "aba")])?;
/// let dictionary = Dictionary::from_merges(vocabulary, [(0, 1), (2, 0)])?;
/// let canonical = Arc::new(CanonicalForm::new(&dictionary));
/// let rectangles = Rectangles::new(&canonical)?;
/// let mut forbidden = Vec::new();
/// assert!(rectangles.forbidden(3, &mut forbidden));
/// let pairs = PairRelation::new(&canonical)?;
/// let state = pairs.state_after(3).expect("a canonical token");
/// assert_eq!(forbidden, pairs.forbidden(state).collect::<Vec<_>>());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Rectangles {
    canonical: Arc<CanonicalForm>,
    /// Numbers in the forest of successors, by id.
    numbers: IdTable,
    by_start: ByStart,
}

impl Rectangles {
    /// The rectangles of a proper dictionary: O(n log n) for n tokens.
    ///
    /// # Errors
    ///
    /// As [`PairRelation::new`](crate::PairRelation::new).
    pub fn new(canonical: &Arc<CanonicalForm>) -> Result<Self, RelationError> {
        let forests = Forests::new(canonical)?;
        let mut numbers = IdTable::new(canonical.vocabulary().iter().map(|token| token.0));
        for (&id, &number) in forests.ids.iter().zip(&forests.successor_number) {
            numbers.set(id, number);
        }
        Ok(Self {
            canonical: Arc::clone(canonical),
            numbers,
            by_start: ByStart::new(&forests),
        })
    }

    /// Sets `forbidden` to what cannot follow this token: ascending intervals of
    /// [numbers](crate::PairRelation::number), none of which touch. False, and none, where the token is not canonical.
    ///
    /// Cost: a step for each token that ends it by a chain of successors, and n log n for the n rules that
    /// are found there.
    pub fn forbidden(&self, id: TokenId, forbidden: &mut Vec<Range<u32>>) -> bool {
        forbidden.clear();
        let Some(number) = self.numbers.get(id) else {
            return false;
        };
        let mut ending = Some(id);
        while let Some(token) = ending {
            let start = self.numbers.get(token).unwrap_or(number);
            let rectangles = self.by_start.at(start).iter();
            // The longest first: those that reach as far as the token.
            let reaching = rectangles.take_while(|rectangle| number < rectangle.left_end);
            forbidden.extend(reaching.map(|rectangle| rectangle.right_start..rectangle.right_end));
            ending = self.canonical.rule(token).map(|rule| rule.right);
        }
        unite(forbidden);
        true
    }

    /// Bytes of memory, those of the canonical form not counted.
    pub fn memory(&self) -> usize {
        self.numbers.memory() + self.by_start.memory()
    }
}

impl fmt::Debug for Rectangles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rectangles")
            .field("rules", &self.by_start.rectangles.len())
            .finish_non_exhaustive()
    }
}

/// Rectangles by the beginning of their left interval, in the order of priority: the longest first.
pub(crate) struct ByStart {
    /// Of each number where its rectangles end.
    ends: Vec<u32>,
    rectangles: Vec<Rectangle>,
}

impl ByStart {
    pub(crate) fn new(forests: &Forests) -> Self {
        let mut ends = vec![0_u32; forests.len() + 1];
        for rectangle in &forests.rectangles {
            ends[rectangle.left_start as usize] += 1;
        }
        let mut start = 0;
        for end in &mut ends {
            start += core::mem::replace(end, start);
        }
        let mut rectangles = forests.rectangles.clone();
        for &rectangle in &forests.rectangles {
            let next = &mut ends[rectangle.left_start as usize];
            rectangles[*next as usize] = rectangle;
            *next += 1;
        }
        Self { ends, rectangles }
    }

    /// Those that begin at this number.
    pub(crate) fn at(&self, number: u32) -> &[Rectangle] {
        let start = match number {
            0 => 0,
            _ => self.ends[number as usize - 1],
        };
        &self.rectangles[start as usize..self.ends[number as usize] as usize]
    }

    fn memory(&self) -> usize {
        self.ends.len() * size_of::<u32>() + self.rectangles.len() * size_of::<Rectangle>()
    }
}

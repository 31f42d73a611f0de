//! Are two dictionaries the same function?

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use bpe_core::encoder::PriorityMerge;
use bpe_core::{Atoms, CanonicalForm, SpanEncoder, TokenId};

use crate::error::{Kind, RelationError};
use crate::forests::NONE;
use crate::pairs::PairRelation;

/// Whether two dictionaries tokenize every text alike; see [`equivalent`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Equivalence {
    /// Every text is cut in the same places.
    Same {
        /// Whether the tokens have the same ids too.
        same_ids: bool,
    },
    /// Some text is not. Of [`equivalent`] this is a shortest.
    Different(Witness),
    /// Neither was found within the limits: these tokens' text is one that the dictionaries tokenize in
    /// different ways, and whether a piece has them is open. Only where a pre-tokenizer cuts
    /// ([`equivalent_in_pieces`](crate::equivalent_in_pieces)).
    Unknown {
        /// The text of the tokens.
        text: Vec<u8>,
    },
}

/// A text that two dictionaries tokenize in different ways; of [`equivalent`] a shortest one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Witness {
    /// The text.
    pub text: Vec<u8>,
    /// Its tokens by the first dictionary; `None` where it has a byte that is no token, and where a
    /// pre-tokenizer cuts it.
    pub first: Option<Vec<TokenId>>,
    /// Its tokens by the second dictionary.
    pub second: Option<Vec<TokenId>>,
}

/// Whether two dictionaries cut every text in the same places, or a shortest text on which they differ.
/// Ids may differ; priorities and the order of rules may too.
///
/// By merges inside one span: pre-tokenizers, special tokens and whole-piece look-up are not looked at.
///
/// They are the same function if and only if their canonical tokens are the same byte strings, and the
/// same pairs are valid. Of a shortest text on which they differ all parts are tokenized alike, so one
/// of the two makes of it one token or two. Rows are compared by the XOR of 128 random bits a token, new
/// ones in every call: the answer "same" is wrong with a probability below 2^-100. A witness is always
/// right: it is tokenized on both sides.
///
/// Cost: two pair relations, and the intervals of their rows, some tenths of a second for 200,000 tokens;
/// with a witness the rows that differ and whose tokens are no longer than it.
///
/// # Errors
///
/// One of them is improper, or over characters.
///
/// ```
/// use std::sync::Arc;
/// use bpe_core::{CanonicalForm, Dictionary, Vocabulary};
/// use bpe_dfa::{Equivalence, equivalent};
///
/// let form = |merges: [(u32, u32); 2]| -> Result<_, Box<dyn std::error::Error>> {
///     let tokens = [(0, "a"), (1, "b"), (2, "c"), (3, "ab"), (4, "bc")];
///     let dictionary = Dictionary::from_merges(Vocabulary::new(tokens)?, merges)?;
///     Ok(Arc::new(CanonicalForm::new(&dictionary)))
/// };
/// let (first, second) = (form([(0, 1), (1, 2)])?, form([(1, 2), (0, 1)])?);
/// let Equivalence::Different(witness) = equivalent(&first, &second)? else {
///     panic!("a|bc or ab|c");
/// };
/// assert_eq!(witness.text, b"abc");
/// assert_eq!((witness.first, witness.second), (Some(vec![3, 2]), Some(vec![0, 4])));
/// assert_eq!(equivalent(&first, &first)?, Equivalence::Same { same_ids: true });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn equivalent(
    first: &Arc<CanonicalForm>,
    second: &Arc<CanonicalForm>,
) -> Result<Equivalence, RelationError> {
    for form in [first, second] {
        if form.atoms() != Atoms::Bytes {
            return Err(RelationError(Kind::NotOverBytes));
        }
    }
    let forms = [first, second];
    let pairs = relations(forms)?;
    let matching = Matching::new(forms, &pairs);
    let mut best = matching.alone.clone();
    let differing = differing_rows(&matching, &pairs);
    if best.is_none() && differing.is_empty() {
        return Ok(Equivalence::Same {
            same_ids: matching.same_ids,
        });
    }
    let search = Search {
        matching: &matching,
        pairs: &pairs,
        by_length: by_length(&matching),
    };
    for &(length, number, rows) in &differing {
        let most = best.as_ref().map_or(usize::MAX, Vec::len);
        if length + 1 >= most {
            break;
        }
        if let Some(right) = search.shortest_right(rows, most - length) {
            let bytes = |number: u32| matching.tokens[number as usize].bytes;
            best = Some([bytes(number), bytes(right)].concat());
        }
    }
    let text = best.unwrap_or_default();
    let tokens = forms.map(|form| {
        let mut encoder = PriorityMerge::new(Arc::clone(form));
        let mut tokens = Vec::new();
        let encoded = encoder.encode_span(&text, &mut tokens);
        encoded.ok().map(|()| tokens)
    });
    let [first, second] = tokens;
    Ok(Equivalence::Different(Witness {
        text,
        first,
        second,
    }))
}

/// The relations of both, which two threads build.
pub(crate) fn relations(
    forms: [&Arc<CanonicalForm>; 2],
) -> Result<[PairRelation; 2], RelationError> {
    std::thread::scope(|scope| {
        let second = std::thread::Builder::new();
        let second = second.spawn_scoped(scope, || PairRelation::new(forms[1]));
        let first = PairRelation::new(forms[0]);
        let Ok(second) = second else {
            // There is no other thread to be had.
            return Ok([first?, PairRelation::new(forms[1])?]);
        };
        let second = second.join();
        // Its panic goes on here.
        let second = second.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Ok([first?, second?])
    })
}

/// A token of both dictionaries.
#[derive(Clone, Copy)]
pub(crate) struct Common<'v> {
    pub(crate) bytes: &'v [u8],
    /// Numbers and states on both sides.
    pub(crate) numbers: [u32; 2],
    pub(crate) rows: [u32; 2],
}

/// Which tokens of two dictionaries are the same bytes.
pub(crate) struct Matching<'v> {
    /// The canonical tokens of both.
    pub(crate) tokens: Vec<Common<'v>>,
    /// Of each number on both sides, the place in `tokens`.
    pub(crate) places: [Vec<u32>; 2],
    /// A shortest canonical token of one side alone.
    alone: Option<Vec<u8>>,
    pub(crate) same_ids: bool,
}

impl<'v> Matching<'v> {
    pub(crate) fn new(forms: [&'v Arc<CanonicalForm>; 2], pairs: &[PairRelation; 2]) -> Self {
        let mut matching = Self {
            tokens: Vec::with_capacity(pairs[0].len()),
            places: [0, 1].map(|side: usize| vec![NONE; pairs[side].len()]),
            alone: None,
            same_ids: true,
        };
        for side in [0, 1] {
            let other = 1 - side;
            for (number, &id) in (0_u32..).zip(pairs[side].ids_by_number()) {
                let bytes = forms[side].vocabulary().token_bytes(id).unwrap_or_default();
                let twin = forms[other].vocabulary().id_of(bytes);
                let twin = twin.filter(|&twin| pairs[other].is_canonical(twin));
                let Some(twin) = twin else {
                    if matching
                        .alone
                        .as_ref()
                        .is_none_or(|best| bytes.len() < best.len())
                    {
                        matching.alone = Some(bytes.to_vec());
                    }
                    continue;
                };
                if side == 1 {
                    continue; // It was met from the first side.
                }
                matching.same_ids &= id == twin;
                let numbers = [number, pairs[1].number(twin).unwrap_or(NONE)];
                let row = |side: usize, id| {
                    let state = pairs[side].state_after(id);
                    state.map_or(NONE, |state| state.0)
                };
                for side in [0, 1] {
                    matching.places[side][numbers[side] as usize] = matching.tokens.len() as u32;
                }
                matching.tokens.push(Common {
                    bytes,
                    numbers,
                    rows: [row(0, id), row(1, twin)],
                });
            }
        }
        matching
    }
}

/// The pairs of rows of one token that differ, each with the shortest token that has them: its length,
/// its place, and the rows; shortest first.
pub(crate) fn differing_rows(
    matching: &Matching<'_>,
    pairs: &[PairRelation; 2],
) -> Vec<(usize, u32, [u32; 2])> {
    let hashes = row_hashes(matching, pairs);
    let mut shortest: HashMap<[u32; 2], (usize, u32)> = HashMap::new();
    for (place, token) in (0_u32..).zip(&matching.tokens) {
        let [first, second] = token.rows;
        if hashes[0][first as usize] != hashes[1][second as usize] {
            let candidate = (token.bytes.len(), place);
            let best = shortest.entry(token.rows).or_insert(candidate);
            *best = candidate.min(*best);
        }
    }
    let mut differing: Vec<_> = shortest
        .into_iter()
        .map(|(rows, (length, place))| (length, place, rows))
        .collect();
    differing.sort_unstable();
    differing
}

/// Of each row on both sides the XOR of the keys of what it forbids. Tokens of one side alone have no
/// key: they are witnesses themselves.
fn row_hashes(matching: &Matching<'_>, pairs: &[PairRelation; 2]) -> [Vec<u128>; 2] {
    let state = RandomState::new();
    let key = |place: u32| {
        let half = |half: u32| u128::from(state.hash_one((place, half)));
        half(0) << 64 | half(1)
    };
    let keys: Vec<u128> = (0..matching.tokens.len() as u32).map(key).collect();
    [0, 1].map(|side: usize| {
        // XOR of the keys of all tokens with smaller numbers: an interval is two of them.
        let mut before = Vec::with_capacity(matching.places[side].len() + 1);
        let mut sum = 0;
        before.push(sum);
        for &place in &matching.places[side] {
            sum ^= keys.get(place as usize).copied().unwrap_or(0);
            before.push(sum);
        }
        let rows = pairs[side].rows();
        let hash = |row| {
            let mut hash = 0;
            rows.for_each_span(row, |start, end| {
                hash ^= before[start as usize] ^ before[end as usize];
            });
            hash
        };
        (0..rows.len() as u32).map(hash).collect()
    })
}

/// The places of tokens, shortest first.
fn by_length(matching: &Matching<'_>) -> Vec<u32> {
    let mut places: Vec<u32> = (0..matching.tokens.len() as u32).collect();
    places.sort_by_key(|&place| matching.tokens[place as usize].bytes.len());
    places
}

struct Search<'m, 'v> {
    matching: &'m Matching<'v>,
    pairs: &'m [PairRelation; 2],
    by_length: Vec<u32>,
}

impl Search<'_, '_> {
    /// A shortest token, of fewer than `limit` bytes, that one of two rows forbids and the other does
    /// not.
    fn shortest_right(&self, rows: [u32; 2], limit: usize) -> Option<u32> {
        let tokens = &self.matching.tokens;
        let length = |place: u32| tokens[place as usize].bytes.len();
        let forbids = |side: usize, place: u32| {
            let number = tokens[place as usize].numbers[side];
            self.pairs[side].forbids(rows[side], number)
        };
        let short = self
            .by_length
            .partition_point(|&place| length(place) < limit);
        let forbidden: u32 = (0..2)
            .map(|side| self.pairs[side].rows().forbidden(rows[side]))
            .sum();
        if short < forbidden as usize {
            let mut short = self.by_length[..short].iter().copied();
            return short.find(|&place| forbids(0, place) != forbids(1, place));
        }
        let mut best = None;
        let mut limit = limit;
        for side in [0, 1] {
            self.pairs[side]
                .rows()
                .for_each_span(rows[side], |start, end| {
                    for &place in &self.matching.places[side][start as usize..end as usize] {
                        if place != NONE && length(place) < limit && !forbids(1 - side, place) {
                            limit = length(place);
                            best = Some(place);
                        }
                    }
                });
        }
        best
    }
}

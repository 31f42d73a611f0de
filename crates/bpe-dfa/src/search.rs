//! Matches of a regular expression in a sequence of tokens, canonical or not.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use bpe_core::{DecodeError, TokenId, Vocabulary};

use crate::explicit::{State, StringDfa};

/// States of the reversed automaton that are kept; 1 KiB each.
const KEPT: usize = 1 << 12;

const NONE: u32 = u32::MAX;

/// Finds what a regular language matches in the text of a sequence of tokens, without making the text.
///
/// The tokens need not be a tokenization: any sequence of ids will do. Matches are the leftmost ones, of
/// those that start at one place the longest, none overlaps another, and none is empty.
///
/// One pass from the end to the beginning finds where matches start, one from the beginning where they
/// end. Memory: a bit for each byte of the text, and a bounded cache of states. Time: linear, but for what
/// is read behind the end of a match to see whether a longer one follows.
///
/// ```
/// use std::sync::Arc;
/// use bpe_core::Vocabulary;
/// use bpe_dfa::TokenSearch;
/// use bpe_dfa::explicit::{Limits, StringDfa};
///
/// let vocabulary = Arc::new(Vocabulary::new([(0, "kit"), (1, "A"), (2, "k"), (3, "ita")])?);
/// let search = TokenSearch::new(&vocabulary, StringDfa::from_regex("kit", &Limits::default())?);
/// // "Akita" and "kit": the first stands across two tokens.
/// let matches = search.find_all(&[1, 2, 3, 0])?;
/// assert_eq!(matches.len(), 2);
/// assert_eq!((matches[0].bytes.clone(), matches[0].tokens.clone()), (1..4, 1..3));
/// assert_eq!((matches[1].bytes.clone(), matches[1].tokens.clone()), (5..8, 3..4));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct TokenSearch {
    vocabulary: Arc<Vocabulary>,
    language: StringDfa,
    /// Of each state the transitions that lead to it.
    incoming: Vec<Vec<(u8, State)>>,
    accepting: Vec<State>,
}

/// A match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenMatch {
    /// Where it stands in the text of the tokens.
    pub bytes: Range<usize>,
    /// The tokens that have a part of it.
    pub tokens: Range<usize>,
}

impl TokenSearch {
    /// A search for the texts of `language`. O(transitions).
    pub fn new(vocabulary: &Arc<Vocabulary>, language: StringDfa) -> Self {
        let language = language.trim().minimize();
        let states = language.state_count() as State;
        let mut incoming = vec![Vec::new(); states as usize];
        for (from, byte, to) in language.transitions() {
            incoming[to as usize].push((byte, from));
        }
        Self {
            vocabulary: Arc::clone(vocabulary),
            accepting: (0..states)
                .filter(|&state| language.is_accepting(state))
                .collect(),
            language,
            incoming,
        }
    }

    /// All matches, in order.
    ///
    /// # Errors
    ///
    /// The first id of no token, with its index.
    pub fn find_all(&self, ids: &[TokenId]) -> Result<Vec<TokenMatch>, DecodeError> {
        let bytes_of = |id| self.vocabulary.token_bytes(id);
        let mut length = 0;
        for (index, &id) in ids.iter().enumerate() {
            length += bytes_of(id)
                .ok_or(DecodeError::unknown_id(id, index))?
                .len();
        }
        let starts = self.starts(ids, length);
        let is_start = |at: usize| starts[at / 64] >> (at % 64) & 1 == 1;
        let mut matches = Vec::new();
        // Where the last match ended.
        let mut free = 0;
        let mut offset = 0;
        for (index, &id) in ids.iter().enumerate() {
            let len = bytes_of(id).map_or(0, <[u8]>::len);
            for inner in 0..len {
                let start = offset + inner;
                if start >= free
                    && is_start(start)
                    && let Some((end, last)) = self.longest(ids, index, inner)
                {
                    free = start + end;
                    matches.push(TokenMatch {
                        bytes: start..free,
                        tokens: index..last + 1,
                    });
                }
            }
            offset += len;
        }
        Ok(matches)
    }

    /// The length of the longest match that starts at this byte of this token, and its last token.
    fn longest(&self, ids: &[TokenId], index: usize, inner: usize) -> Option<(usize, usize)> {
        let mut state = self.language.start();
        let mut length = 0;
        let mut longest = None;
        for (index, &id) in ids.iter().enumerate().skip(index) {
            let skipped = if length == 0 { inner } else { 0 };
            let bytes = self.vocabulary.token_bytes(id).unwrap_or_default();
            for &byte in bytes.get(skipped..).unwrap_or_default() {
                let Some(next) = self.language.next(state, byte) else {
                    return longest;
                };
                state = next;
                length += 1;
                if self.language.is_accepting(state) {
                    longest = Some((length, index));
                }
            }
        }
        longest
    }

    /// A bit for each byte at which a match starts.
    fn starts(&self, ids: &[TokenId], length: usize) -> Vec<u64> {
        let mut starts = vec![0_u64; length / 64 + 1];
        let mut reversed = Reversed::new(self);
        let mut at = length;
        let mut state = 0;
        for &id in ids.iter().rev() {
            for &byte in self
                .vocabulary
                .token_bytes(id)
                .unwrap_or_default()
                .iter()
                .rev()
            {
                at -= 1;
                state = reversed.step(state, byte);
                if reversed.is_start[state as usize] {
                    starts[at / 64] |= 1 << (at % 64);
                }
            }
        }
        starts
    }
}

/// The automaton that reads a text backwards and says where matches start: its states are sets of states,
/// made when they are met.
struct Reversed<'s> {
    search: &'s TokenSearch,
    numbers: HashMap<(bool, Vec<State>), u32>,
    sets: Vec<Vec<State>>,
    /// Whether the start state was reached by the last step.
    is_start: Vec<bool>,
    table: Vec<[u32; 256]>,
}

impl<'s> Reversed<'s> {
    fn new(search: &'s TokenSearch) -> Self {
        let mut reversed = Self {
            search,
            numbers: HashMap::new(),
            sets: Vec::new(),
            is_start: Vec::new(),
            table: Vec::new(),
        };
        reversed.intern(false, search.accepting.clone());
        reversed
    }

    fn step(&mut self, state: u32, byte: u8) -> u32 {
        let known = self.table[state as usize][usize::from(byte)];
        if known != NONE {
            return known;
        }
        let incoming = &self.search.incoming;
        let mut set: Vec<State> = self.sets[state as usize]
            .iter()
            .flat_map(|&to| &incoming[to as usize])
            .filter(|step| step.0 == byte)
            .map(|step| step.1)
            .collect();
        let is_start = set.contains(&self.search.language.start());
        // A match may end here too.
        set.extend(&self.search.accepting);
        set.sort_unstable();
        set.dedup();
        let is_full = self.sets.len() >= KEPT;
        if is_full {
            self.numbers.clear();
            self.sets.clear();
            self.is_start.clear();
            self.table.clear();
        }
        let next = self.intern(is_start, set);
        if !is_full {
            self.table[state as usize][usize::from(byte)] = next;
        }
        next
    }

    fn intern(&mut self, is_start: bool, set: Vec<State>) -> u32 {
        let key = (is_start, set);
        if let Some(&number) = self.numbers.get(&key) {
            return number;
        }
        let number = self.sets.len() as u32;
        self.sets.push(key.1.clone());
        self.is_start.push(is_start);
        self.table.push([NONE; 256]);
        self.numbers.insert(key, number);
        number
    }
}

impl fmt::Debug for TokenSearch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenSearch")
            .field("states", &self.language.state_count())
            .finish_non_exhaustive()
    }
}

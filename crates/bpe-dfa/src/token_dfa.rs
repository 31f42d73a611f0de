//! The canonical tokenizations of a regular language, over a real vocabulary.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use bpe_core::{CanonicalForm, TokenId};

use crate::error::RelationError;
use crate::explicit::{ExplicitDfa, ExplicitError, Limits, State, StringDfa};
use crate::masks::CanonicalMasks;
use crate::pairs::{PairRelation, StateId};
use crate::pending::Tables;

/// Masks of string states that are kept, in words: 32 MB.
const KEPT_WORDS: usize = 1 << 22;

/// The automaton over tokens that accepts the canonical tokenizations of the texts of a regular language,
/// and nothing else; its states are made when they are asked for.
///
/// A state is one of the text automaton and what the last token forbids: by locality (002 Observation 2)
/// nothing else counts. So nothing is built but a mask for each state of the text automaton that is met.
/// The text is one span: no pre-tokenizer cuts it.
///
/// Useful for constrained decoding, where a model must write text of a language in the tokens that the
/// tokenizer would use. A state can be a dead end although its text can go on, where all tokens that
/// continue the text would have been merged with what stands before:
/// [`TokenDfa::can_complete`] finds out.
///
/// ```
/// use bpe_core::{CanonicalForm, Dictionary, Vocabulary};
/// use bpe_dfa::TokenDfa;
/// use bpe_dfa::explicit::{Limits, StringDfa};
///
/// let vocabulary = Vocabulary::new([(0, "a"), (1, "b"), (2, "ab")])?;
/// let dictionary = Dictionary::from_merges(vocabulary, [(0, 1)])?;
/// let language = StringDfa::from_regex("(ab)*a?", &Limits::default())?;
/// let mut dfa = TokenDfa::new(&CanonicalForm::new(&dictionary), language)?;
/// assert!(dfa.accepts(&[2, 0]) && !dfa.accepts(&[0, 1]));
/// let mut mask = [0];
/// let after_ab = dfa.next(dfa.start(), 2).expect("ab");
/// dfa.allowed(after_ab, &mut mask);
/// assert_eq!(mask, [0b101]); // "a" or "ab"
/// assert_eq!(dfa.count(dfa.start(), 2, 1_000), Some(2)); // ab|ab and ab|a
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct TokenDfa {
    language: StringDfa,
    tables: Arc<Tables>,
    masks: CanonicalMasks,
    /// Of each token, in the order of bytes, how many bytes it has in common with the one before.
    common: Vec<u16>,
    /// Of each string state that was met, the tokens whose text goes on from there.
    alive: HashMap<State, Box<[u64]>>,
}

/// A state of a [`TokenDfa`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TokenState {
    text: State,
    last: StateId,
}

impl TokenState {
    /// The state of the text automaton.
    pub fn text_state(self) -> State {
        self.text
    }

    /// The state of the automaton that accepts all tokenizations.
    pub fn last_token_state(self) -> StateId {
        self.last
    }
}

impl TokenDfa {
    /// The automaton for the texts of `language`, which is trimmed and minimised first.
    ///
    /// # Errors
    ///
    /// An improper dictionary, or one over characters.
    pub fn new(canonical: &CanonicalForm, language: StringDfa) -> Result<Self, RelationError> {
        Self::with_relation(canonical, Arc::new(PairRelation::new(canonical)?), language)
    }

    /// The automaton for a relation that is there; `canonical` is what it was made of.
    ///
    /// # Errors
    ///
    /// A dictionary over characters.
    pub fn with_relation(
        canonical: &CanonicalForm,
        pairs: Arc<PairRelation>,
        language: StringDfa,
    ) -> Result<Self, RelationError> {
        let tables = Tables::new(canonical, Arc::clone(&pairs))?;
        let tokens = tables.order.longer(tables.order.root());
        let mut before: &[u8] = &[];
        let common = tokens.iter().map(|&id| {
            let bytes = tables.order.bytes(id);
            let same = before.iter().zip(bytes).take_while(|(a, b)| a == b).count();
            before = bytes;
            same.min(usize::from(u16::MAX)) as u16
        });
        let common = common.collect();
        Ok(Self {
            language: language.trim().minimize(),
            masks: CanonicalMasks::new(pairs, 20 << 20),
            common,
            tables,
            alive: HashMap::new(),
        })
    }

    /// The state before the first token.
    pub fn start(&self) -> TokenState {
        TokenState {
            text: self.language.start(),
            last: self.tables.pairs.start_state(),
        }
    }

    /// The state after a token; `None` where it may not come. O(bytes of the token).
    pub fn next(&self, state: TokenState, token: TokenId) -> Option<TokenState> {
        if !self.tables.pairs.allows(state.last, token) {
            return None;
        }
        let bytes = self.tables.order.bytes(token);
        Some(TokenState {
            text: self.language.walk(state.text, bytes)?,
            last: self.tables.pairs.state_after(token)?,
        })
    }

    /// Whether the tokens so far are a text of the language.
    pub fn is_accepting(&self, state: TokenState) -> bool {
        self.language.is_accepting(state.text)
    }

    /// Whether the tokens are the tokenization of a text of the language.
    pub fn accepts(&self, tokens: &[TokenId]) -> bool {
        let step = |state, &token| self.next(state, token);
        let end = tokens.iter().try_fold(self.start(), step);
        end.is_some_and(|end| self.is_accepting(end))
    }

    /// Sets `mask` to the tokens that may come: bit `id % 64` of word `id / 64`, with as many words as
    /// [`TokenDfa::words`]. Some microseconds where the text state was met before; else a walk over the
    /// vocabulary.
    pub fn allowed(&mut self, state: TokenState, mask: &mut [u64]) {
        mask.fill(0);
        let alive = self.alive(state.text);
        let len = mask.len().min(alive.len());
        mask[..len].copy_from_slice(&alive[..len]);
        self.masks.restrict(state.last, mask);
    }

    /// Length of a mask, in words.
    pub fn words(&self) -> usize {
        self.masks.words()
    }

    /// The tokens that may come, in ascending order.
    pub fn allowed_tokens(&mut self, state: TokenState) -> Vec<TokenId> {
        let mut mask = vec![0; self.words()];
        self.allowed(state, &mut mask);
        let mut tokens = Vec::new();
        for (word, &bits) in (0_u32..).zip(&mask) {
            let mut bits = bits;
            while bits != 0 {
                tokens.push(64 * word + bits.trailing_zeros());
                bits &= bits - 1;
            }
        }
        tokens
    }

    /// The tokens that must come next, as long as there is one way to go on and the text may not end;
    /// at most `limit`. Empty where there is a choice.
    pub fn forced(&mut self, state: TokenState, limit: usize) -> Vec<TokenId> {
        let mut tokens = Vec::new();
        let mut state = state;
        while tokens.len() < limit && !self.is_accepting(state) {
            let allowed = self.allowed_tokens(state);
            let [only] = allowed[..] else {
                break;
            };
            let Some(next) = self.next(state, only) else {
                break;
            };
            tokens.push(only);
            state = next;
        }
        tokens
    }

    /// Whether some tokens lead from here to a text of the language, by a search over states. `None`
    /// where more than `limit` states would have to be looked at.
    pub fn can_complete(&mut self, state: TokenState, limit: usize) -> Option<bool> {
        let mut seen = HashSet::from([state]);
        let mut open = vec![state];
        while let Some(state) = open.pop() {
            if self.is_accepting(state) {
                return Some(true);
            }
            for token in self.allowed_tokens(state) {
                let Some(next) = self.next(state, token) else {
                    continue;
                };
                if self.is_accepting(next) {
                    return Some(true);
                }
                if seen.insert(next) {
                    if seen.len() > limit {
                        return None;
                    }
                    open.push(next);
                }
            }
        }
        Some(false)
    }

    /// The automaton with all its states in memory, those left out that lead to no text of the language,
    /// and minimised: the same as [`ExplicitDfa::new`] has, by another way.
    ///
    /// # Errors
    ///
    /// More states, or a larger table, than the limits allow. Languages without an end over a vocabulary
    /// of 200,000 tokens have as many states as there are rows, and billions of transitions.
    pub fn explicit(&mut self, limits: &Limits) -> Result<ExplicitDfa, ExplicitError> {
        let start = self.start();
        let mut numbers = HashMap::from([(start, 0)]);
        let mut states = vec![start];
        let mut transitions = Vec::new();
        let mut done = 0;
        while let Some(&state) = states.get(done) {
            for token in self.allowed_tokens(state) {
                let Some(next) = self.next(state, token) else {
                    continue;
                };
                let number = *numbers.entry(next).or_insert_with(|| {
                    states.push(next);
                    states.len() as State - 1
                });
                transitions.push((done as State, token, number));
                if transitions.len() * size_of::<(State, TokenId, State)>() > limits.bytes {
                    let doing = "the transitions of a token automaton";
                    return Err(ExplicitError::states(doing, limits.bytes));
                }
            }
            if states.len() > limits.states {
                return Err(ExplicitError::states("a token automaton", limits.states));
            }
            done += 1;
        }
        let accepting = (0..)
            .zip(&states)
            .filter(|(_, state)| self.is_accepting(**state));
        let accepting = accepting.map(|(number, _)| number);
        let vocabulary = self.tables.order.vocabulary();
        let dfa = ExplicitDfa::from_transitions(
            vocabulary,
            states.len(),
            0,
            accepting,
            transitions,
            limits,
        )?;
        Ok(dfa.trim().minimize())
    }

    /// How many sequences of exactly `length` tokens lead from here to a text of the language. `None`
    /// where the number needs more than 128 bits, or more than `limit` states are met.
    pub fn count(&mut self, state: TokenState, length: usize, limit: usize) -> Option<u128> {
        let mut states = HashMap::from([(state, 1_u128)]);
        for _ in 0..length {
            let mut next_states: HashMap<TokenState, u128> = HashMap::new();
            for (&state, &ways) in &states {
                for token in self.allowed_tokens(state) {
                    if let Some(next) = self.next(state, token) {
                        let sum = next_states.entry(next).or_default();
                        *sum = sum.checked_add(ways)?;
                    }
                }
                if next_states.len() > limit {
                    return None;
                }
            }
            states = next_states;
        }
        let accepted = states
            .iter()
            .filter(|(state, _)| self.is_accepting(**state));
        accepted
            .map(|(_, ways)| ways)
            .try_fold(0_u128, |sum, &ways| sum.checked_add(ways))
    }

    /// The tokens whose text goes on from a state of the text automaton.
    fn alive(&mut self, text: State) -> &[u64] {
        if !self.alive.contains_key(&text) {
            let words = self.masks.words();
            if (self.alive.len() + 1) * words > KEPT_WORDS {
                self.alive.clear();
            }
            let mask = self.walk_all(text);
            self.alive.insert(text, mask);
        }
        self.alive.get(&text).map_or(&[], |mask| mask)
    }

    /// Walks all tokens in the order of their bytes: what a token has in common with the one before is
    /// walked once, and tokens that begin with what has failed are passed over.
    fn walk_all(&self, text: State) -> Box<[u64]> {
        let mut mask = vec![0; self.masks.words()].into_boxed_slice();
        let order = &self.tables.order;
        // The states after each byte of the token at hand, as far as it goes.
        let mut path = vec![text];
        for (&id, &common) in order.longer(order.root()).iter().zip(&self.common) {
            let common = usize::from(common);
            if path.len() <= common {
                continue; // It failed where both are still the same.
            }
            path.truncate(common + 1);
            let bytes = order.bytes(id);
            for &byte in bytes.get(common..).unwrap_or_default() {
                let next = path
                    .last()
                    .and_then(|&state| self.language.next(state, byte));
                match next {
                    Some(next) => path.push(next),
                    None => break,
                }
            }
            if path.len() == bytes.len() + 1 {
                mask[id as usize / 64] |= 1 << (id % 64);
            }
        }
        mask
    }
}

impl fmt::Debug for TokenDfa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenDfa")
            .field("text_states", &self.language.state_count())
            .field("masks", &self.alive.len())
            .finish_non_exhaustive()
    }
}

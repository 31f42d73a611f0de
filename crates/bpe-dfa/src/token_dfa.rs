//! The canonical tokenizations of a regular language, over a real vocabulary.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use bpe_core::{CanonicalForm, TokenId};

use crate::boundaries::{Boundaries, FIRST_READINGS, Lexing, NO_READINGS, Readings};
use crate::error::RelationError;
use crate::explicit::{ExplicitDfa, ExplicitError, Limits, State, StringDfa};
use crate::masks::CanonicalMasks;
use crate::pairs::{PairRelation, StateId};
use crate::pending::Tables;

/// Masks of string states that are kept, in words: 64 MB.
const KEPT_WORDS: usize = 1 << 23;

/// The automaton over tokens that accepts the canonical tokenizations of the texts of a regular language,
/// and nothing else; its states are made when they are asked for.
///
/// A state is one of the text automaton and what the last token forbids: by locality (002 Observation 2)
/// nothing else counts. So nothing is built but a mask for each state of the text automaton that is met.
/// The text is one span, unless it is cut into pieces ([`TokenDfa::in_pieces`]).
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
    /// Where pieces start, if a pre-tokenizer cuts.
    lexing: Option<Lexing>,
    /// Of each string state that was met, and its readings, the tokens whose text goes on from there.
    alive: HashMap<(State, Readings), Alive>,
    /// Words of these masks.
    kept: usize,
}

/// Tokens, as bits, whose text goes on from a state.
struct Alive {
    /// Before which no piece starts. Empty where there is none.
    inside: Box<[u64]>,
    /// Before which one does.
    first: Box<[u64]>,
}

/// A state of a [`TokenDfa`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TokenState {
    text: State,
    last: StateId,
    readings: Readings,
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
            lexing: None,
            alive: HashMap::new(),
            kept: 0,
        })
    }

    /// The same automaton for texts that a pre-tokenizer cuts.
    ///
    /// Of readings those are left out that no text of the language makes true; whether its *tokens* can
    /// go on is for [`TokenDfa::can_complete`] to find out, as without boundaries.
    pub fn in_pieces(self, boundaries: Arc<dyn Boundaries>) -> Self {
        Self {
            lexing: Some(Lexing::new(boundaries)),
            alive: HashMap::new(),
            kept: 0,
            ..self
        }
    }

    /// The state before the first token.
    pub fn start(&self) -> TokenState {
        TokenState {
            text: self.language.start(),
            last: self.tables.pairs.start_state(),
            readings: match self.lexing {
                Some(_) => FIRST_READINGS,
                None => NO_READINGS,
            },
        }
    }

    /// The state after a token; `None` where it may not come. O(bytes of the token), where its bytes were
    /// met before.
    pub fn next(&mut self, state: TokenState, token: TokenId) -> Option<TokenState> {
        let last = self.tables.pairs.state_after(token)?;
        let is_allowed = self.tables.pairs.allows(state.last, token);
        let bytes = self.tables.order.bytes(token);
        let text = self.language.walk(state.text, bytes)?;
        let Some(lexing) = &mut self.lexing else {
            return is_allowed.then_some(TokenState {
                text,
                last,
                readings: NO_READINGS,
            });
        };
        let first = lexing.after(state.readings, bytes, true);
        let inside = match is_allowed && !bytes.is_empty() {
            true => lexing.after(state.readings, bytes, false),
            false => NO_READINGS,
        };
        let readings = lexing.union(first, inside);
        let readings = lexing.prune(&self.language, text, readings);
        (readings != NO_READINGS).then_some(TokenState {
            text,
            last,
            readings,
        })
    }

    /// Whether the tokens so far are a text of the language.
    pub fn is_accepting(&self, state: TokenState) -> bool {
        let may_end = |lexing: &Lexing| lexing.accepts(state.readings);
        self.language.is_accepting(state.text) && self.lexing.as_ref().is_none_or(may_end)
    }

    /// Whether the tokens are the tokenization of a text of the language.
    pub fn accepts(&mut self, tokens: &[TokenId]) -> bool {
        let mut state = self.start();
        for &token in tokens {
            match self.next(state, token) {
                Some(next) => state = next,
                None => return false,
            }
        }
        self.is_accepting(state)
    }

    /// Sets `mask` to the tokens that may come: bit `id % 64` of word `id / 64`, with as many words as
    /// [`TokenDfa::words`]. Some microseconds where the text state was met before; else a walk over the
    /// vocabulary.
    pub fn allowed(&mut self, state: TokenState, mask: &mut [u64]) {
        mask.fill(0);
        self.meet(state.text, state.readings);
        let Some(alive) = self.alive.get(&(state.text, state.readings)) else {
            return;
        };
        for (word, inside) in mask.iter_mut().zip(&alive.inside) {
            *word = *inside;
        }
        self.masks.restrict(state.last, mask);
        for (word, first) in mask.iter_mut().zip(&alive.first) {
            *word |= first;
        }
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
    /// where the number needs more than 128 bits, or more than `limit` states are met at once.
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

    /// The sequences of exactly `length` tokens that lead from here to a text of the language, to be
    /// counted and sampled. `None` where their number needs more than 128 bits, or more than `limit`
    /// transitions are met.
    ///
    /// Cost: the transitions of the states that are met within so many tokens, each once a length; some 40
    /// bytes for each of them.
    pub fn sequences(
        &mut self,
        state: TokenState,
        length: usize,
        limit: usize,
    ) -> Option<TokenSequences> {
        // The states after each number of tokens, and the transitions to them.
        let mut layers = vec![vec![state]];
        let mut steps: Vec<Vec<Vec<(TokenId, u32)>>> = Vec::new();
        let mut met = 0;
        for _ in 0..length {
            let states = layers.last().map_or(&[][..], Vec::as_slice).to_vec();
            let mut numbers: HashMap<TokenState, u32> = HashMap::new();
            let mut next_states = Vec::new();
            let mut of_states = Vec::with_capacity(states.len());
            for state in states {
                let mut of_state = Vec::new();
                for token in self.allowed_tokens(state) {
                    let Some(next) = self.next(state, token) else {
                        continue;
                    };
                    let number = *numbers.entry(next).or_insert_with(|| {
                        next_states.push(next);
                        next_states.len() as u32 - 1
                    });
                    of_state.push((token, number));
                }
                met += of_state.len();
                if met > limit {
                    return None;
                }
                of_states.push(of_state);
            }
            steps.push(of_states);
            layers.push(next_states);
        }
        // From the end: how many sequences lead on from each.
        let last = layers.pop().unwrap_or_default();
        let accepted = last.into_iter().map(|state| self.is_accepting(state));
        let mut ways: Vec<u128> = accepted.map(u128::from).collect();
        let mut weighed_steps = Vec::with_capacity(length);
        for of_states in steps.into_iter().rev() {
            let mut before = Vec::with_capacity(of_states.len());
            let mut kept = Vec::with_capacity(of_states.len());
            for of_state in of_states {
                let mut sum = 0_u128;
                let mut weighed = Vec::new();
                for (token, next) in of_state {
                    let more = ways.get(next as usize).copied().unwrap_or(0);
                    sum = sum.checked_add(more)?;
                    if more > 0 {
                        weighed.push((sum, token, next));
                    }
                }
                before.push(sum);
                kept.push(weighed);
            }
            weighed_steps.push(kept);
            ways = before;
        }
        weighed_steps.reverse();
        Some(TokenSequences {
            count: ways.first().copied().unwrap_or(0),
            steps: weighed_steps,
        })
    }

    /// Finds the tokens whose text goes on from a state, where that was not done.
    fn meet(&mut self, text: State, readings: Readings) {
        if self.alive.contains_key(&(text, readings)) {
            return;
        }
        let alive = match self.lexing.take() {
            None => Alive {
                inside: self.walk_all(text, &mut |_, _, _| (), &mut |(), _| true, ()),
                first: Box::default(),
            },
            Some(mut lexing) => {
                let [inside, first] = [false, true].map(|starts| {
                    let lexing = std::cell::RefCell::new(&mut lexing);
                    let mut step = |from: Readings, byte, depth| {
                        let starts = starts && depth == 0;
                        lexing.borrow_mut().step(from, byte, starts)
                    };
                    let mut ends_well = |readings, text| {
                        let mut lexing = lexing.borrow_mut();
                        lexing.prune(&self.language, text, readings) != NO_READINGS
                    };
                    self.walk_all(text, &mut step, &mut ends_well, readings)
                });
                self.lexing = Some(lexing);
                Alive { inside, first }
            }
        };
        // A mask without a token takes no place.
        let [inside, first] = [alive.inside, alive.first].map(|mask| {
            let is_empty = mask.iter().all(|&word| word == 0);
            if is_empty { Box::default() } else { mask }
        });
        let words = inside.len() + first.len();
        if self.kept + words > KEPT_WORDS {
            self.alive.clear();
            self.kept = 0;
        }
        self.kept += words;
        self.alive.insert((text, readings), Alive { inside, first });
    }

    /// Walks all tokens in the order of their bytes: what a token has in common with the one before is
    /// walked once, and tokens that begin with what has failed are passed over. `step` goes on beside the
    /// language, from what stands before a byte and its place, and `ends_well` says whether a token may
    /// end.
    fn walk_all<S: Copy + Beside>(
        &self,
        text: State,
        step: &mut dyn FnMut(S, u8, usize) -> S,
        ends_well: &mut dyn FnMut(S, State) -> bool,
        start: S,
    ) -> Box<[u64]> {
        let mut mask = vec![0; self.masks.words()].into_boxed_slice();
        let order = &self.tables.order;
        // The states after each byte of the token at hand, as far as it goes.
        let mut path = vec![(text, start)];
        for (&id, &common) in order.longer(order.root()).iter().zip(&self.common) {
            let common = usize::from(common);
            if path.len() <= common {
                continue; // It failed where both are still the same.
            }
            path.truncate(common + 1);
            let bytes = order.bytes(id);
            for &byte in bytes.get(common..).unwrap_or_default() {
                let depth = path.len() - 1;
                let next = path.last().and_then(|&(state, beside)| {
                    let state = self.language.next(state, byte)?;
                    let beside = step(beside, byte, depth);
                    (!beside.is_nothing()).then_some((state, beside))
                });
                match next {
                    Some(next) => path.push(next),
                    None => break,
                }
            }
            if path.len() == bytes.len() + 1
                && path
                    .last()
                    .is_some_and(|&(state, beside)| ends_well(beside, state))
            {
                mask[id as usize / 64] |= 1 << (id % 64);
            }
        }
        mask
    }
}

/// What is walked beside the language.
trait Beside {
    /// Whether there is no way to go on.
    fn is_nothing(&self) -> bool;
}

impl Beside for () {
    fn is_nothing(&self) -> bool {
        false
    }
}

impl Beside for Readings {
    fn is_nothing(&self) -> bool {
        *self == NO_READINGS
    }
}

/// Sequences of one length that a [`TokenDfa`] accepts.
#[derive(Debug, Clone)]
pub struct TokenSequences {
    count: u128,
    /// Of each place, and each state there, the tokens that lead to some sequence: how many there are up
    /// to this token, the token, and the state after it.
    steps: Vec<Vec<Vec<(u128, TokenId, u32)>>>,
}

impl TokenSequences {
    /// How many there are. O(1).
    pub fn count(&self) -> u128 {
        self.count
    }

    /// One of them, each with the same probability if `random` gives each number with the same; `None`
    /// where there is none. O(length * log tokens), and two calls of `random` and more.
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
    /// let sequences = dfa.sequences(dfa.start(), 3, 1_000).expect("few states");
    /// assert_eq!(sequences.count(), 2); // ab|ab|ab and ab|ab|a
    /// let mut seed = 1_u64;
    /// let random = || {
    ///     seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
    ///     seed ^ seed >> 32
    /// };
    /// let tokens = sequences.sample(random).expect("two");
    /// assert!(dfa.accepts(&tokens));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn sample(&self, mut random: impl FnMut() -> u64) -> Option<Vec<TokenId>> {
        if self.count == 0 {
            return None;
        }
        // Numbers beyond the last whole multiple would make some more likely than others.
        let beyond = (u128::MAX % self.count + 1) % self.count;
        let mut number = loop {
            let drawn = u128::from(random()) << 64 | u128::from(random());
            if drawn <= u128::MAX - beyond {
                break drawn % self.count;
            }
        };
        let mut tokens = Vec::with_capacity(self.steps.len());
        let mut state = 0;
        for states in &self.steps {
            let weighed: &Vec<(u128, TokenId, u32)> = states.get(state as usize)?;
            let place = weighed.partition_point(|&(sum, ..)| sum <= number);
            let before = place.checked_sub(1).and_then(|place| weighed.get(place));
            number -= before.map_or(0, |before| before.0);
            let &(_, token, next) = weighed.get(place)?;
            tokens.push(token);
            state = next;
        }
        Some(tokens)
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

//! The canonical tokenizations of a regular language, over a real vocabulary.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use bpe_core::{CanonicalForm, TokenId};

use crate::boundaries::{
    Boundaries, FIRST_READINGS, Lexing, NO_READINGS, OnePiece, Reading, Readings,
};
use crate::completion::Completion;
use crate::error::RelationError;
use crate::explicit::{ExplicitDfa, ExplicitError, Limits, State, StringDfa};
use crate::masks::CanonicalMasks;
use crate::pairs::{PairRelation, StateId};
use crate::pending::Tables;
use crate::whole_pieces::whole_tokens;

/// Masks of string states that are kept, in words: 64 MB.
const KEPT_WORDS: usize = 1 << 23;

/// What stands behind a token that only a whole piece becomes: a state that allows nothing, so that a piece
/// must start there.
const BEHIND_WHOLE: StateId = StateId(u32::MAX);

/// The automaton over tokens that accepts the canonical tokenizations of the texts of a regular language,
/// and nothing else; its states are made when they are asked for.
///
/// A state is one of the text automaton and what the last token forbids: by locality (002 Observation 2)
/// nothing else counts. So nothing is built but a mask for each state of the text automaton that is met.
/// The text is one span, unless it is cut into pieces ([`TokenDfa::in_pieces`]). Of a dictionary with
/// whole-piece look-up, a piece that is a token is that one token.
///
/// Useful for constrained decoding, where a model must write text of a language in the tokens that the
/// tokenizer would use. A state can be a dead end although its text can go on, where all tokens that
/// continue the text would have been merged with what stands before: [`TokenDfa::can_complete`] finds out,
/// and [`TokenDfa::allowed_to_complete`] leaves out the tokens that lead to one.
///
/// # Memory
///
/// What is found out is kept, and forgotten when it is too much: 64 MB of masks, and a million each of readings of what
/// a pre-tokenizer may make of the text, and of steps between them ([`TokenDfa::keeping`]). States stay right when it is.
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
/// let after_ab = dfa.next(&dfa.start(), 2).expect("ab");
/// dfa.allowed(&after_ab, &mut mask);
/// assert_eq!(mask, [0b101]); // "a" or "ab"
/// assert_eq!(dfa.count(&dfa.start(), 2, 1_000), Some(2)); // ab|ab and ab|a
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct TokenDfa {
    pub(crate) language: StringDfa,
    pub(crate) tables: Arc<Tables>,
    masks: CanonicalMasks,
    /// Tokens that only a whole piece becomes, ascending.
    pub(crate) wholes: Vec<TokenId>,
    /// Length of a mask.
    words: usize,
    /// Of each token, in the order of bytes, how many bytes it has in common with the one before.
    common: Vec<u16>,
    /// Where pieces start, if a pre-tokenizer cuts.
    pub(crate) lexing: Option<Lexing>,
    /// Of each string state that was met, and its readings, the tokens whose text goes on from there.
    alive: HashMap<(State, Readings), Alive>,
    /// Those of them that lead to a text of the language.
    completing: HashMap<(State, Readings), Alive>,
    /// Words of these masks.
    kept: usize,
    pub(crate) completion: Completion,
    /// Readings that may be kept.
    most_kept: usize,
}

/// Tokens, as bits, whose text goes on from a state.
struct Alive {
    /// Before which no piece starts. Empty where there is none.
    inside: Box<[u64]>,
    /// Before which one does.
    first: Box<[u64]>,
}

impl Alive {
    fn words(&self) -> usize {
        self.inside.len() + self.first.len()
    }
}

/// The tokens of a mask, ascending.
fn tokens_in(mask: &[u64]) -> impl Iterator<Item = TokenId> {
    (0_u32..).zip(mask).flat_map(|(word, &bits)| {
        std::iter::successors((bits != 0).then_some(bits), |bits| {
            let rest = bits & (bits - 1);
            (rest != 0).then_some(rest)
        })
        .map(move |bits| 64 * word + bits.trailing_zeros())
    })
}

/// A state of a [`TokenDfa`]. What is forgotten and found out again does not change it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TokenState {
    text: State,
    last: StateId,
    /// None where nothing cuts.
    readings: Option<Arc<[Reading]>>,
}

/// The same with the number that the readings have now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Node {
    pub(crate) text: State,
    pub(crate) last: StateId,
    pub(crate) readings: Readings,
}

impl TokenState {
    /// The state of the text automaton.
    pub fn text_state(&self) -> State {
        self.text
    }

    /// The state of the automaton that accepts all tokenizations. `None` behind a token that only a whole
    /// piece becomes: what follows is another piece.
    pub fn last_token_state(&self) -> Option<StateId> {
        (self.last != BEHIND_WHOLE).then_some(self.last)
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
        let masks = CanonicalMasks::new(pairs, 20 << 20);
        let mut wholes = whole_tokens(canonical);
        wholes.sort_unstable();
        let words = wholes.last().map_or(0, |&id| id as usize / 64 + 1);
        // A span of such a dictionary is a piece.
        let lexing =
            (!wholes.is_empty()).then(|| Lexing::with_whole_pieces(Arc::new(OnePiece), canonical));
        let language = language.trim().minimize();
        Ok(Self {
            completion: Completion::new(&language, &tables, &wholes),
            language,
            words: words.max(masks.words()),
            masks,
            wholes,
            common,
            tables,
            lexing,
            alive: HashMap::new(),
            completing: HashMap::new(),
            kept: 0,
            most_kept: usize::MAX,
        })
    }

    /// The same automaton for texts that a pre-tokenizer cuts.
    ///
    /// Of readings those are left out that no text of the language makes true; whether its *tokens* can
    /// go on is for [`TokenDfa::can_complete`] to find out, as without boundaries. `canonical` is what the
    /// automaton was made of.
    pub fn in_pieces(mut self, canonical: &CanonicalForm, boundaries: Arc<dyn Boundaries>) -> Self {
        self.lexing = Some(Lexing::with_whole_pieces(boundaries, canonical));
        self.forget();
        let most = self.most_kept;
        self.keeping(most)
    }

    /// The same automaton that keeps fewer readings of texts, steps between them, and answers about them, each
    /// at most this many: less memory, and more is found out anew. Masks are not counted.
    #[must_use]
    pub fn keeping(mut self, most: usize) -> Self {
        self.most_kept = most;
        if let Some(lexing) = &mut self.lexing {
            lexing.keep_answers(most);
        }
        self
    }

    /// Forgets all that was found out.
    fn forget(&mut self) {
        if let Some(lexing) = &mut self.lexing {
            lexing.forget();
        }
        self.alive.clear();
        self.completing.clear();
        self.kept = 0;
        self.completion.forget();
    }

    /// The state with the number that its readings have now, which may be another after each call.
    pub(crate) fn node(&mut self, state: &TokenState) -> Node {
        let most = self.most_kept;
        let is_full = |lexing: &Lexing| lexing.is_full(most);
        if self.lexing.as_ref().is_some_and(is_full) || self.completion.is_full(most) {
            self.forget();
        }
        let readings = match (&mut self.lexing, &state.readings) {
            (Some(lexing), Some(readings)) => lexing.number_of(readings),
            _ => NO_READINGS,
        };
        Node {
            text: state.text,
            last: state.last,
            readings,
        }
    }

    fn state(&self, node: Node) -> TokenState {
        let lexing = self.lexing.as_ref();
        TokenState {
            text: node.text,
            last: node.last,
            readings: lexing.map(|lexing| lexing.shared(node.readings)),
        }
    }

    /// The state before the first token.
    pub fn start(&self) -> TokenState {
        self.state(self.first_node())
    }

    pub(crate) fn first_node(&self) -> Node {
        Node {
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
    pub fn next(&mut self, state: &TokenState, token: TokenId) -> Option<TokenState> {
        let node = self.node(state);
        let next = self.next_node(node, token)?;
        Some(self.state(next))
    }

    pub(crate) fn next_node(&mut self, node: Node, token: TokenId) -> Option<Node> {
        let (text, last) = self.after(node.text, token)?;
        let Some(lexing) = &mut self.lexing else {
            let is_allowed = self.tables.pairs.allows(node.last, token);
            return is_allowed.then_some(Node {
                text,
                last,
                readings: NO_READINGS,
            });
        };
        let bytes = self.tables.order.bytes(token);
        let readings = if last == BEHIND_WHOLE {
            lexing.after_whole(node.readings, bytes)
        } else {
            let first = lexing.after(node.readings, bytes, true);
            let inside = match self.tables.pairs.allows(node.last, token) && !bytes.is_empty() {
                true => lexing.after(node.readings, bytes, false),
                false => NO_READINGS,
            };
            lexing.union(first, inside)
        };
        let readings = lexing.prune(&self.language, text, readings);
        (readings != NO_READINGS).then_some(Node {
            text,
            last,
            readings,
        })
    }

    /// The states of the text and of the last token after a token; `None` where the text does not go on so.
    pub(crate) fn after(&self, text: State, token: TokenId) -> Option<(State, StateId)> {
        let last = match self.tables.pairs.state_after(token) {
            Some(last) => last,
            None => {
                self.wholes.binary_search(&token).ok()?;
                BEHIND_WHOLE
            }
        };
        let text = self.language.walk(text, self.tables.order.bytes(token))?;
        Some((text, last))
    }

    /// Whether the tokens so far are a text of the language.
    pub fn is_accepting(&self, state: &TokenState) -> bool {
        let readings = state.readings.as_deref();
        let may_end = |lexing: &Lexing| lexing.accept_some(readings.unwrap_or_default());
        self.language.is_accepting(state.text) && self.lexing.as_ref().is_none_or(may_end)
    }

    pub(crate) fn accepts_node(&self, node: Node) -> bool {
        let may_end = |lexing: &Lexing| lexing.accepts(node.readings);
        self.language.is_accepting(node.text) && self.lexing.as_ref().is_none_or(may_end)
    }

    /// Whether the tokens are the tokenization of a text of the language.
    pub fn accepts(&mut self, tokens: &[TokenId]) -> bool {
        let mut state = self.start();
        for &token in tokens {
            match self.next(&state, token) {
                Some(next) => state = next,
                None => return false,
            }
        }
        self.is_accepting(&state)
    }

    /// Sets `mask` to the tokens that may come: bit `id % 64` of word `id / 64`, with as many words as
    /// [`TokenDfa::words`]. Some microseconds where the text state was met before; else a walk over the
    /// vocabulary.
    pub fn allowed(&mut self, state: &TokenState, mask: &mut [u64]) {
        let node = self.node(state);
        self.allowed_node(node, mask);
    }

    fn allowed_node(&mut self, node: Node, mask: &mut [u64]) {
        self.meet(node.text, node.readings);
        let alive = self.alive.get(&(node.text, node.readings));
        self.fill(alive, node.last, mask);
    }

    /// As [`TokenDfa::allowed`], without the tokens that lead to a dead end: of the others each leads to a text
    /// of the language. Returns whether all tokens are known to; those of which a search over `limit` states
    /// does not tell are left in.
    ///
    /// Where the text state was met before, it costs what [`TokenDfa::allowed`] does. Else a look at each token
    /// of that mask, and a search over states wherever nothing is known that leads to an end: far more.
    ///
    /// ```
    /// use bpe_core::{CanonicalForm, Dictionary, Vocabulary};
    /// use bpe_dfa::TokenDfa;
    /// use bpe_dfa::explicit::{Limits, StringDfa};
    ///
    /// let vocabulary = Vocabulary::new([(0, "a"), (1, "b"), (2, "ab")])?;
    /// let dictionary = Dictionary::from_merges(vocabulary, [(0, 1)])?;
    /// let language = StringDfa::from_regex("abb", &Limits::default())?;
    /// let mut dfa = TokenDfa::new(&CanonicalForm::new(&dictionary), language)?;
    /// let mut mask = [0];
    /// dfa.allowed(&dfa.start(), &mut mask);
    /// assert_eq!(mask, [0b101]); // "a" or "ab"
    /// // Behind "a" there is only "b", and they would have been "ab".
    /// assert!(dfa.allowed_to_complete(&dfa.start(), &mut mask, 1_000));
    /// assert_eq!(mask, [0b100]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn allowed_to_complete(
        &mut self,
        state: &TokenState,
        mask: &mut [u64],
        limit: usize,
    ) -> bool {
        let node = self.node(state);
        let key = (node.text, node.readings);
        if let Some(completing) = self.completing.get(&key) {
            self.fill(Some(completing), node.last, mask);
            return true;
        }
        self.meet(node.text, node.readings);
        let alive = self.alive.get(&key);
        let masks = alive.map_or_else(Default::default, |alive| {
            [alive.inside.clone(), alive.first.clone()]
        });
        let mut is_known = true;
        let [inside, first] =
            [(false, masks[0].clone()), (true, masks[1].clone())].map(|(starts, mut mask)| {
                for token in tokens_in(&masks[usize::from(starts)]) {
                    match self.leads_to_end(node, token, starts, limit) {
                        Some(true) => {}
                        Some(false) => mask[token as usize / 64] &= !(1 << (token % 64)),
                        None => is_known = false,
                    }
                }
                mask
            });
        let completing = Alive { inside, first };
        self.fill(Some(&completing), node.last, mask);
        if is_known {
            self.make_room(completing.words());
            self.completing.insert(key, completing);
        }
        is_known
    }

    /// Sets `mask` to the tokens of these whose pair is valid, or before which a piece starts.
    fn fill(&self, tokens: Option<&Alive>, last: StateId, mask: &mut [u64]) {
        mask.fill(0);
        let Some(tokens) = tokens else {
            return;
        };
        if last != BEHIND_WHOLE {
            for (word, inside) in mask.iter_mut().zip(&tokens.inside) {
                *word = *inside;
            }
            self.masks.restrict(last, mask);
        }
        for (word, first) in mask.iter_mut().zip(&tokens.first) {
            *word |= first;
        }
    }

    /// Length of a mask, in words.
    pub fn words(&self) -> usize {
        self.words
    }

    /// The tokens that may come, in ascending order.
    pub fn allowed_tokens(&mut self, state: &TokenState) -> Vec<TokenId> {
        let node = self.node(state);
        self.tokens_of_node(node)
    }

    pub(crate) fn tokens_of_node(&mut self, node: Node) -> Vec<TokenId> {
        let mut mask = vec![0; self.words()];
        self.allowed_node(node, &mut mask);
        tokens_in(&mask).collect()
    }

    /// The tokens that must come next, as long as there is one way to go on and the text may not end;
    /// at most `limit`. Empty where there is a choice.
    pub fn forced(&mut self, state: &TokenState, limit: usize) -> Vec<TokenId> {
        let mut tokens = Vec::new();
        let mut node = self.node(state);
        while tokens.len() < limit && !self.accepts_node(node) {
            let allowed = self.tokens_of_node(node);
            let [only] = allowed[..] else {
                break;
            };
            let Some(next) = self.next_node(node, only) else {
                break;
            };
            tokens.push(only);
            node = next;
        }
        tokens
    }

    /// Whether some tokens lead from here to a text of the language, by a search over states. `None`
    /// where more than `limit` states would have to be looked at. What is found is kept for later.
    pub fn can_complete(&mut self, state: &TokenState, limit: usize) -> Option<bool> {
        let node = self.node(state);
        self.completes(node, limit)
    }

    /// The automaton with all its states in memory, those left out that lead to no text of the language,
    /// and minimised: the same as [`ExplicitDfa::new`] has, by another way.
    ///
    /// # Errors
    ///
    /// More states, or a larger table, than the limits allow. Languages without an end over a vocabulary
    /// of 200,000 tokens have as many states as there are rows, and billions of transitions.
    pub fn explicit(&mut self, limits: &Limits) -> Result<ExplicitDfa, ExplicitError> {
        let start = self.first_node();
        let mut numbers = HashMap::from([(start, 0)]);
        let mut states = vec![start];
        let mut transitions = Vec::new();
        let mut done = 0;
        while let Some(&state) = states.get(done) {
            for token in self.tokens_of_node(state) {
                let Some(next) = self.next_node(state, token) else {
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
            .filter(|(_, state)| self.accepts_node(**state));
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
                let [inside, mut first] = [false, true].map(|starts| {
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
                for &token in &self.wholes {
                    let bytes = self.tables.order.bytes(token);
                    let Some(text) = self.language.walk(text, bytes) else {
                        continue;
                    };
                    let after = lexing.after_whole(readings, bytes);
                    if lexing.prune(&self.language, text, after) != NO_READINGS {
                        first[token as usize / 64] |= 1 << (token % 64);
                    }
                }
                self.lexing = Some(lexing);
                Alive { inside, first }
            }
        };
        // A mask without a token takes no place.
        let [inside, first] = [alive.inside, alive.first].map(|mask| {
            let is_empty = mask.iter().all(|&word| word == 0);
            if is_empty { Box::default() } else { mask }
        });
        let alive = Alive { inside, first };
        self.make_room(alive.words());
        self.alive.insert((text, readings), alive);
    }

    /// Counts the words of a mask that is to be kept; where there is no place for it, drops the others.
    fn make_room(&mut self, words: usize) {
        if self.kept + words > KEPT_WORDS {
            self.alive.clear();
            self.completing.clear();
            self.kept = 0;
        }
        self.kept += words;
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
        let mut mask = vec![0; self.words].into_boxed_slice();
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

impl fmt::Debug for TokenDfa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenDfa")
            .field("text_states", &self.language.state_count())
            .field("masks", &self.alive.len())
            .finish_non_exhaustive()
    }
}

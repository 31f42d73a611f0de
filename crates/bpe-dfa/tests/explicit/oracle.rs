//! Dictionaries, languages by enumeration, and definitions transcribed literally.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bpe_core::reference::Reference;
use bpe_core::{CanonicalForm, Dictionary, TokenId, Vocabulary};
use bpe_dfa::explicit::{ExplicitDfa, Limits, State};
use proptest::prelude::*;

/// A dictionary over a few letters with its form, by the texts of its merges.
#[derive(Debug, Clone)]
pub(crate) struct Fixture {
    pub(crate) dictionary: Dictionary,
    pub(crate) form: Arc<CanonicalForm>,
}

impl Fixture {
    /// Merges as `"ab c"`. Tokens get ids in an order that has nothing to do with the merges.
    pub(crate) fn new(letters: &str, merges: &[impl AsRef<str>]) -> Self {
        let sides: Vec<(&str, &str)> = merges
            .iter()
            .map(|merge| merge.as_ref().split_once(' ').expect("two sides"))
            .collect();
        let mut tokens: BTreeSet<String> = letters.chars().map(String::from).collect();
        tokens.extend(sides.iter().map(|(left, right)| format!("{left}{right}")));
        let tokens: Vec<(TokenId, String)> =
            (3..).step_by(2).zip(tokens.into_iter().rev()).collect();
        let vocabulary = Vocabulary::new(tokens).expect("distinct");
        let id = |token: &str| vocabulary.id_of(token.as_bytes()).expect("a token");
        let pairs: Vec<_> = sides.iter().map(|(l, r)| (id(l), id(r))).collect();
        let dictionary = Dictionary::from_merges(vocabulary, pairs).expect("valid");
        let form = Arc::new(CanonicalForm::new(&dictionary));
        Self { dictionary, form }
    }

    pub(crate) fn id(&self, token: &str) -> TokenId {
        let id = self.dictionary.vocabulary().id_of(token.as_bytes());
        id.unwrap_or_else(|| panic!("{token} is no token"))
    }

    /// The ids of tokens that stand with blanks between them.
    pub(crate) fn ids(&self, tokens: &str) -> Vec<TokenId> {
        tokens
            .split_whitespace()
            .map(|token| self.id(token))
            .collect()
    }

    pub(crate) fn vocabulary(&self) -> &Arc<Vocabulary> {
        self.dictionary.vocabulary()
    }

    /// Algorithm 1, literally.
    pub(crate) fn reference(&self, text: &[u8]) -> Vec<TokenId> {
        self.references([text]).remove(0)
    }

    /// Algorithm 1, of each of many texts.
    pub(crate) fn references<'t>(
        &self,
        texts: impl IntoIterator<Item = &'t [u8]>,
    ) -> Vec<Vec<TokenId>> {
        let reference = Reference::new(&self.dictionary);
        let tokens = texts.into_iter().map(|text| reference.standard(text));
        tokens
            .map(|tokens| tokens.expect("letters are tokens"))
            .collect()
    }

    pub(crate) fn automaton(
        &self,
        states: usize,
        accepting: &[State],
        transitions: &[(State, &str, State)],
    ) -> ExplicitDfa {
        let transitions = transitions
            .iter()
            .map(|&(from, token, to)| (from, self.id(token), to));
        ExplicitDfa::from_transitions(
            self.vocabulary(),
            states,
            0,
            accepting.iter().copied(),
            transitions,
            &Limits::default(),
        )
        .expect("a valid automaton")
    }
}

/// All texts of these letters up to a length.
pub(crate) fn words(letters: &str, longest: usize) -> Vec<Vec<u8>> {
    let mut all = vec![Vec::new()];
    let mut first = 0;
    for _ in 0..longest {
        let last = all.len();
        for index in first..last {
            for letter in letters.bytes() {
                all.push([&all[index][..], &[letter]].concat());
            }
        }
        first = last;
    }
    all
}

/// All accepted sequences of up to so many bytes.
pub(crate) fn accepted(dfa: &ExplicitDfa, longest: usize) -> BTreeSet<Vec<TokenId>> {
    let mut found = BTreeSet::new();
    let mut open = vec![(dfa.start(), Vec::new(), 0)];
    while let Some((state, sequence, length)) = open.pop() {
        for (token, to) in dfa.transitions_from(state) {
            let bytes = dfa.vocabulary().token_bytes(token).expect("a token");
            if length + bytes.len() <= longest {
                let mut longer: Vec<TokenId> = sequence.clone();
                longer.push(token);
                open.push((to, longer, length + bytes.len()));
            }
        }
        if dfa.is_accepting(state) {
            found.insert(sequence);
        }
    }
    found
}

/// A dictionary over two or three letters: random sides among what is there, so that it is proper.
pub(crate) fn fixtures(letters: &'static str, most: usize) -> impl Strategy<Value = Fixture> {
    let picks = proptest::collection::vec((any::<u16>(), any::<u16>()), 0..=most);
    picks.prop_map(move |picks| Fixture::new(letters, &merges(letters, &picks)))
}

/// Merges of tokens that are there when they are listed, each product once.
pub(crate) fn merges(letters: &str, picks: &[(u16, u16)]) -> Vec<String> {
    let mut tokens: Vec<String> = letters.chars().map(String::from).collect();
    let mut merges = Vec::new();
    for &(left, right) in picks {
        let pick = |number: u16| tokens[usize::from(number) % tokens.len()].clone();
        let (left, right) = (pick(left), pick(right));
        let product = format!("{left}{right}");
        if product.len() <= 8 && !tokens.contains(&product) {
            merges.push(format!("{left} {right}"));
            tokens.push(product);
        }
    }
    merges
}

/// A token automaton that need not be deterministic, as a set of transitions: Algorithm 2 of 002, line by
/// line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Literal {
    pub(crate) states: BTreeSet<State>,
    pub(crate) accepting: BTreeSet<State>,
    pub(crate) transitions: BTreeSet<(State, TokenId, State)>,
}

impl Literal {
    pub(crate) fn of(dfa: &ExplicitDfa) -> Self {
        let states: BTreeSet<State> = (0..dfa.state_count() as State).collect();
        Self {
            accepting: states
                .iter()
                .copied()
                .filter(|&state| dfa.is_accepting(state))
                .collect(),
            states,
            transitions: dfa.transitions().collect(),
        }
    }

    pub(crate) fn apply(&mut self, u: TokenId, v: TokenId, uv: TokenId) {
        // Lines 2 and 3.
        let before = self.transitions.clone();
        let mut triples = BTreeSet::new();
        for &(s1, first, s2) in &before {
            for &(from, second, s3) in &before {
                if first == u && from == s2 && second == v {
                    triples.insert((s1, s2, s3));
                }
            }
        }
        let middles: BTreeSet<State> = triples.iter().map(|&(_, s2, _)| s2).collect();
        // Lines 4 to 7.
        for &(s1, _, s3) in &triples {
            self.transitions.insert((s1, uv, s3));
        }
        // Lines 8 to 11.
        let mut fresh = BTreeMap::new();
        for &s2 in &middles {
            let new = self.states.len() as State;
            fresh.insert(s2, new);
            self.states.insert(new);
            if self.accepting.contains(&s2) {
                self.accepting.insert(new);
            }
        }
        // Lines 12 to 18.
        for &s2 in &middles {
            for (from, token, to) in self.transitions.clone() {
                if from == s2 && token != v && !(u == v && token == uv) {
                    self.transitions.insert((fresh[&s2], token, to));
                }
            }
        }
        // Lines 19 to 21.
        for (from, token, to) in self.transitions.clone() {
            if token == u && middles.contains(&to) {
                self.transitions.remove(&(from, token, to));
                self.transitions.insert((from, token, fresh[&to]));
            }
        }
    }

    pub(crate) fn is_deterministic(&self) -> bool {
        let keys: BTreeSet<_> = self.transitions.iter().map(|&(q, t, _)| (q, t)).collect();
        keys.len() == self.transitions.len()
    }

    /// The states that runs over `tokens` from state 0 end in.
    pub(crate) fn walk(&self, tokens: &[TokenId]) -> BTreeSet<State> {
        let mut states = BTreeSet::from([0]);
        for &token in tokens {
            let step = |&(from, on, to): &(State, TokenId, State)| {
                (on == token && states.contains(&from)).then_some(to)
            };
            states = self.transitions.iter().filter_map(step).collect();
        }
        states
    }
}

//! Token automata with all their states in memory, and Algorithm 2 of 002.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use bpe_core::{Atoms, CanonicalForm, MergeRule, TokenId, TokenOrigin, Vocabulary};

use super::error::Kind;
use super::partition::{Edge, Graph, Renaming};
use super::{ExplicitError, Limits, State, StringDfa};

/// No transition.
const NONE: State = State::MAX;

/// A deterministic automaton over tokens (002 Definition 1) with all its states in memory.
///
/// Transitions are kept in a column for each token that has some: of each state where the token leads.
/// So a merge finds its places by walking two columns, whatever the number of tokens
/// ([`apply_merge`](Self::apply_merge)). Memory: 4 bytes for each state and column.
///
/// Useful for small dictionaries: to see, draw, count and compare what tokenizations are. Not useful
/// for real vocabularies, whose universal automaton has billions of transitions.
///
/// ```
/// use bpe_core::{CanonicalForm, Dictionary, Vocabulary};
/// use bpe_dfa::explicit::{ExplicitDfa, Limits, StringDfa};
///
/// let vocabulary = Vocabulary::new([(0, "a"), (1, "b"), (2, "aa"), (3, "ba")])?;
/// let form = CanonicalForm::new(&Dictionary::from_merges(vocabulary, [(0, 0), (1, 0)])?);
/// let limits = Limits::default();
///
/// // The tokenizations of all texts of the form (ab)*.
/// let texts = StringDfa::from_regex("(ab)*", &limits)?;
/// let dfa = ExplicitDfa::new(&texts, &form, &limits)?;
/// assert!(dfa.accepts([0, 3, 3, 1])); // a ba ba b
/// assert!(!dfa.accepts([0, 3, 1, 0, 1])); // the same text, not as it is tokenized
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct ExplicitDfa {
    vocabulary: Arc<Vocabulary>,
    start: State,
    accepting: Vec<bool>,
    columns: Vec<Column>,
    /// Of each token that has a column its place.
    column_of: HashMap<TokenId, usize>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Column {
    token: TokenId,
    to: Vec<State>,
}

/// What a merge did to an automaton.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MergeSummary {
    /// States that were added, `|E_{u,v}|` in the terms of 002 section 5.
    pub fresh_states: usize,
    /// Cells of the transition table that were read or written.
    pub cells: u64,
}

impl ExplicitDfa {
    /// The automaton of the tokenizations of the texts of `texts`: the base automaton with each
    /// canonical rule merged into it, from the first to the last (002 Theorem 1).
    ///
    /// A text with a byte, or a character, that is no token has no tokenization, and is left out. A
    /// language without a text that has one gives an automaton that accepts nothing. Whole-piece
    /// look-up is no part of it, nor are tokens that merging cannot make: no accepted sequence has one.
    ///
    /// With n states of `texts`, r rules and l states that one token can end in at most
    /// ([`locality_degree`](Self::locality_degree) for 1), the automaton has at most n + r l states
    /// (Theorem 2). Cost: O(r (n + r l)) for all walks, and O(r l) new states of as many cells as there
    /// are tokens, which is within Theorem 3.
    ///
    /// # Errors
    ///
    /// A dictionary that is improper, or in which a token is not always its own text (an unknown token,
    /// byte fallback); more states or memory than the limits allow.
    pub fn new(
        texts: &StringDfa,
        form: &CanonicalForm,
        limits: &Limits,
    ) -> Result<Self, ExplicitError> {
        if let Some(found) = form.improper_rule() {
            return Err(ExplicitError(Kind::Improper {
                left: found.rule.left,
                right: found.rule.right,
            }));
        }
        let mut dfa = Self::base(texts, form, limits)?;
        let mut rules: Vec<MergeRule> = form.rules().collect();
        rules.sort_unstable_by_key(|rule| rule.priority);
        for rule in &rules {
            dfa.apply_merge(rule, limits)?;
        }
        Ok(dfa)
    }

    /// The automaton of all tokenizations: [`new`](Self::new) over all texts.
    pub fn universal(form: &CanonicalForm, limits: &Limits) -> Result<Self, ExplicitError> {
        Self::new(&StringDfa::universal(), form, limits)
    }

    /// The automaton of the texts of `texts` before the first merge: a token for each atom. It has the
    /// states of `texts`.
    ///
    /// Cost: O(n t) for n states and t bytes of atoms.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new), an improper dictionary excepted.
    pub fn base(
        texts: &StringDfa,
        form: &CanonicalForm,
        limits: &Limits,
    ) -> Result<Self, ExplicitError> {
        let vocabulary = Arc::clone(form.vocabulary());
        if let Atoms::Characters { unknown, .. } = form.atoms()
            && (unknown.is_some() || (0..=255).any(|b| vocabulary.byte_fallback(b).is_some()))
        {
            return Err(ExplicitError(Kind::NotAtomic));
        }
        let mut dfa = Self::empty(vocabulary, texts.state_count(), texts.start());
        for (state, accepting) in (0..).zip(&mut dfa.accepting) {
            *accepting = texts.is_accepting(state);
        }
        for (token, bytes) in form.vocabulary().iter() {
            // With bytes as atoms a fallback token is a second token of a byte, which nothing makes.
            if form.origin(token) != Some(TokenOrigin::Atom)
                || form.vocabulary().id_of(bytes) != Some(token)
            {
                continue;
            }
            let to = (0..texts.state_count() as State)
                .map(|state| texts.walk(state, bytes).unwrap_or(NONE))
                .collect();
            dfa.add_column(Column { token, to }, limits)?;
        }
        Ok(dfa)
    }

    /// An automaton from its parts, over the tokens of `vocabulary`. The states are the numbers below
    /// `states`.
    ///
    /// # Errors
    ///
    /// A state or a token that is none, two transitions of one token from a state, more than the limits
    /// allow.
    pub fn from_transitions(
        vocabulary: &Arc<Vocabulary>,
        states: usize,
        start: State,
        accepting: impl IntoIterator<Item = State>,
        transitions: impl IntoIterator<Item = (State, TokenId, State)>,
        limits: &Limits,
    ) -> Result<Self, ExplicitError> {
        check_states(states, limits)?;
        let check = |state: State| match (state as usize) < states {
            true => Ok(state as usize),
            false => Err(ExplicitError(Kind::NoState { state, states })),
        };
        check(start)?;
        let mut dfa = Self::empty(Arc::clone(vocabulary), states, start);
        for state in accepting {
            dfa.accepting[check(state)?] = true;
        }
        for (from, token, to) in transitions {
            if vocabulary.token_bytes(token).is_none() {
                return Err(ExplicitError(Kind::UnknownToken { id: token }));
            }
            check(to)?;
            let from_index = check(from)?;
            let column = dfa.column_or_new(token, limits)?;
            let cell = &mut dfa.columns[column].to[from_index];
            if *cell != NONE {
                let label = format!("token {token}");
                return Err(ExplicitError(Kind::SecondTransition { from, label }));
            }
            *cell = to;
        }
        Ok(dfa)
    }

    fn empty(vocabulary: Arc<Vocabulary>, states: usize, start: State) -> Self {
        Self {
            vocabulary,
            start,
            accepting: vec![false; states],
            columns: Vec::new(),
            column_of: HashMap::new(),
        }
    }

    /// Adds a column if it has a transition.
    fn add_column(&mut self, column: Column, limits: &Limits) -> Result<(), ExplicitError> {
        if column.to.iter().all(|&to| to == NONE) {
            return Ok(());
        }
        check_cells(self.state_count(), self.columns.len() + 1, limits)?;
        self.column_of.insert(column.token, self.columns.len());
        self.columns.push(column);
        Ok(())
    }

    fn column_or_new(&mut self, token: TokenId, limits: &Limits) -> Result<usize, ExplicitError> {
        if let Some(&column) = self.column_of.get(&token) {
            return Ok(column);
        }
        check_cells(self.state_count(), self.columns.len() + 1, limits)?;
        let to = vec![NONE; self.state_count()];
        self.column_of.insert(token, self.columns.len());
        self.columns.push(Column { token, to });
        Ok(self.columns.len() - 1)
    }

    /// Merges one rule `(u, v) -> uv` into the automaton (002 Algorithm 2): of the texts that it has
    /// tokenizations of, it then has those in which each u that v follows is joined with it, from the
    /// left.
    ///
    /// Useless states may appear ([`trim`](Self::trim)); none does where all states accept.
    ///
    /// Cost: O(|Q|) to find the places, and |columns| cells for each of at most `|E_u|` new states;
    /// Theorem 3 allows O(|Q| |Γ|).
    ///
    /// # Errors
    ///
    /// A product that is not the sides together; an automaton that has runs on u v and on uv, so
    /// that it is not context-invariant (002 Definition 2; nothing is changed then); more than the limits
    /// allow.
    pub fn apply_merge(
        &mut self,
        rule: &MergeRule,
        limits: &Limits,
    ) -> Result<MergeSummary, ExplicitError> {
        let (left, right, product) = (rule.left, rule.right, rule.product);
        let bytes = |id| self.vocabulary.token_bytes(id);
        match (bytes(left), bytes(right), bytes(product)) {
            (Some(l), Some(r), Some(p)) if p.strip_prefix(l) == Some(r) => {}
            _ => {
                return Err(ExplicitError(Kind::NoProduct {
                    left,
                    right,
                    product,
                }));
            }
        }
        let mut summary = MergeSummary {
            fresh_states: 0,
            cells: 0,
        };
        let sides = (self.column_of.get(&left), self.column_of.get(&right));
        let (Some(&u), Some(&v)) = sides else {
            return Ok(summary);
        };
        let before = self.state_count();
        // Lines 2 and 3: where u and then v can be read, and the states between them, each with its
        // fresh copy.
        let mut places = Vec::new();
        let mut middles: Vec<State> = Vec::new();
        let mut fresh_of = vec![NONE; before];
        for (from, &middle) in self.columns[u].to.iter().enumerate() {
            let Some(&to) = self.columns[v].to.get(middle as usize) else {
                continue; // u leads nowhere.
            };
            if to == NONE {
                continue;
            }
            places.push((from, to));
            let fresh = &mut fresh_of[middle as usize];
            if *fresh == NONE {
                *fresh = (before + middles.len()) as State;
                middles.push(middle);
            }
        }
        summary.cells += 2 * before as u64;
        if places.is_empty() {
            return Ok(summary);
        }
        if self.column_of.contains_key(&product) {
            return Err(ExplicitError(Kind::BothWays {
                left,
                right,
                product,
            }));
        }
        check_cells(before + middles.len(), self.columns.len() + 1, limits)?;
        // Lines 4 to 7.
        let uv = self.column_or_new(product, limits)?;
        for &(from, to) in &places {
            self.columns[uv].to[from] = to;
        }
        summary.cells += (before + places.len()) as u64;
        // Lines 8 to 18: copies go where the states they copy go, but not on v; and where a u has just
        // been read, uu cannot come next, since of three u the first two are joined.
        for &middle in &middles {
            self.accepting.push(self.accepting[middle as usize]);
        }
        for (index, column) in self.columns.iter_mut().enumerate() {
            let leaves_out = index == v || (u == v && index == uv);
            let copied = middles.iter().map(|&middle| match leaves_out {
                true => NONE,
                false => column.to[middle as usize],
            });
            let copied: Vec<State> = copied.collect();
            column.to.extend(copied);
        }
        summary.fresh_states = middles.len();
        summary.cells += (middles.len() * self.columns.len()) as u64;
        // Lines 19 to 21.
        for to in &mut self.columns[u].to {
            if let Some(&fresh) = fresh_of.get(*to as usize)
                && fresh != NONE
            {
                *to = fresh;
            }
        }
        summary.cells += self.state_count() as u64;
        Ok(summary)
    }

    /// The vocabulary whose tokens the transitions are on.
    pub fn vocabulary(&self) -> &Arc<Vocabulary> {
        &self.vocabulary
    }

    /// The number of states.
    pub fn state_count(&self) -> usize {
        self.accepting.len()
    }

    /// The state in which reading starts.
    pub fn start(&self) -> State {
        self.start
    }

    /// Whether a tokenization may end in `state`. False for numbers of no state.
    pub fn is_accepting(&self, state: State) -> bool {
        self.accepting.get(state as usize) == Some(&true)
    }

    /// The state after `token` in `state`, where there is one. O(1).
    #[inline]
    pub fn next(&self, state: State, token: TokenId) -> Option<State> {
        let column = &self.columns[*self.column_of.get(&token)?];
        let next = *column.to.get(state as usize)?;
        (next != NONE).then_some(next)
    }

    /// The state after `tokens` in `state`, where there is one. O(n).
    pub fn walk(&self, state: State, tokens: impl IntoIterator<Item = TokenId>) -> Option<State> {
        let mut tokens = tokens.into_iter();
        tokens.try_fold(state, |state, token| self.next(state, token))
    }

    /// Whether `tokens` are in the language. O(n).
    pub fn accepts(&self, tokens: impl IntoIterator<Item = TokenId>) -> bool {
        self.walk(self.start, tokens)
            .is_some_and(|state| self.is_accepting(state))
    }

    /// Whether nothing is accepted. O(transitions).
    pub fn is_empty(&self) -> bool {
        !self.trim().accepting.contains(&true)
    }

    /// The tokens that some transition is on, in no particular order.
    pub fn tokens(&self) -> impl ExactSizeIterator<Item = TokenId> {
        self.columns.iter().map(|column| column.token)
    }

    /// The transitions from `state`, in no particular order. O(columns) in all.
    pub fn transitions_from(&self, state: State) -> impl Iterator<Item = (TokenId, State)> {
        self.columns.iter().filter_map(move |column| {
            let to = *column.to.get(state as usize)?;
            (to != NONE).then_some((column.token, to))
        })
    }

    /// The transitions, by state.
    pub fn transitions(&self) -> impl Iterator<Item = (State, TokenId, State)> {
        (0..self.state_count() as State).flat_map(move |from| {
            self.transitions_from(from)
                .map(move |(token, to)| (from, token, to))
        })
    }

    /// The states that `token` leads to from any state: `E_token` of 002 section 5.
    pub fn ends(&self, token: TokenId) -> HashSet<State> {
        let column = self.column_of.get(&token);
        column
            .iter()
            .flat_map(|&&column| &self.columns[column].to)
            .copied()
            .filter(|&to| to != NONE)
            .collect()
    }

    /// The same language without the states that no accepted sequence passes, the others in their
    /// order. O(transitions).
    pub fn trim(&self) -> Self {
        self.renamed(&self.graph().trim())
    }

    /// The smallest automaton of the language, its states in the order in which a breadth-first search
    /// meets them: over one vocabulary two automata are equal exactly if their languages are.
    /// O(n log n) for n transitions.
    pub fn minimize(&self) -> Self {
        self.renamed(&self.graph().minimal())
    }

    fn graph(&self) -> Graph {
        Graph {
            start: self.start,
            classes: self.accepting.iter().map(|&a| a.then_some(0)).collect(),
            edges: self
                .transitions()
                .map(|(from, label, to)| Edge { from, label, to })
                .collect(),
        }
    }

    fn renamed(&self, renaming: &Renaming) -> Self {
        let representatives = renaming.representatives();
        let mut columns: Vec<Column> = self
            .columns
            .iter()
            .map(|column| Column {
                token: column.token,
                to: representatives
                    .iter()
                    .map(|&from| match column.to[from as usize] {
                        NONE => NONE,
                        to => renaming.ends(from, to).map_or(NONE, |(_, to)| to),
                    })
                    .collect(),
            })
            .filter(|column| column.to.iter().any(|&to| to != NONE))
            .collect();
        columns.sort_unstable_by_key(|column| column.token);
        Self {
            vocabulary: Arc::clone(&self.vocabulary),
            start: renaming.new_of[self.start as usize].unwrap_or(0),
            accepting: representatives
                .iter()
                .map(|&state| self.accepting[state as usize])
                .collect(),
            column_of: (0..)
                .zip(&columns)
                .map(|(index, column)| (column.token, index))
                .collect(),
            columns,
        }
    }
}

/// Same states, start, accepting states and transitions, over vocabularies that are not compared. For
/// equal languages compare what [`minimize`](ExplicitDfa::minimize) gives.
impl PartialEq for ExplicitDfa {
    fn eq(&self, other: &Self) -> bool {
        let same = (self.start, &self.accepting) == (other.start, &other.accepting);
        let has = |dfa: &Self, column: &Column| match dfa.column_of.get(&column.token) {
            Some(&index) => dfa.columns[index].to == column.to,
            None => column.to.iter().all(|&to| to == NONE),
        };
        same && self.columns.iter().all(|column| has(other, column))
            && other.columns.iter().all(|column| has(self, column))
    }
}

impl Eq for ExplicitDfa {}

impl core::fmt::Debug for ExplicitDfa {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}", self.dot())
    }
}

fn check_states(states: usize, limits: &Limits) -> Result<(), ExplicitError> {
    let most = limits.states.min(NONE as usize);
    match states <= most {
        true => Ok(()),
        false => Err(ExplicitError::states("a token automaton", most)),
    }
}

fn check_cells(states: usize, columns: usize, limits: &Limits) -> Result<(), ExplicitError> {
    check_states(states, limits)?;
    let bytes = states
        .saturating_mul(columns)
        .saturating_mul(size_of::<State>());
    match bytes <= limits.bytes {
        true => Ok(()),
        false => Err(ExplicitError::bytes("a token automaton", limits.bytes)),
    }
}

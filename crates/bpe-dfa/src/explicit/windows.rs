//! Local languages, decided by windows: the last k tokens say where an automaton is (002 section 5).

use bpe_core::TokenId;

use super::{ExplicitDfa, ExplicitError, Limits, State};

/// Decides sequences of a k-local automaton by windows of k + 1 neighbouring tokens, each by itself: so
/// a sequence can be looked at from any place on. For automata that accept all tokenizations k is 1 at most,
/// and [`Validator`](crate::Validator) is the same at the size of real vocabularies.
///
/// ```
/// use bpe_core::{CanonicalForm, Dictionary, Vocabulary};
/// use bpe_dfa::explicit::{ExplicitDfa, Limits, StringDfa, WindowValidator};
///
/// let vocabulary = Vocabulary::new([(0, "a"), (1, "b"), (2, "aa")])?;
/// let form = CanonicalForm::new(&Dictionary::from_merges(vocabulary, [(0, 0)])?);
/// let limits = Limits::default();
/// let texts = StringDfa::from_regex("(aab)*", &limits)?;
/// let dfa = ExplicitDfa::new(&texts, &form, &limits)?;
/// let validator = WindowValidator::new(&dfa, &limits)?.expect("a local language");
/// assert_eq!(validator.window(), 2);
/// assert_eq!(validator.first_invalid(&[2, 1, 2, 1]), None);
/// assert_eq!(validator.first_invalid(&[2, 1, 0, 0, 1]), Some(2));
/// // Somewhere inside of a sequence.
/// assert!(validator.is_valid_window(&[1, 2]) && !validator.is_valid_window(&[1, 1]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct WindowValidator {
    dfa: ExplicitDfa,
    locality: usize,
}

impl WindowValidator {
    /// The validator of an automaton, which is trimmed first; `None` where no number of tokens decides.
    /// Cost: that of [`ExplicitDfa::locality`].
    ///
    /// # Errors
    ///
    /// As [`ExplicitDfa::locality`].
    pub fn new(dfa: &ExplicitDfa, limits: &Limits) -> Result<Option<Self>, ExplicitError> {
        let dfa = dfa.trim();
        let locality = dfa.locality(limits)?;
        Ok(locality.map(|locality| Self { dfa, locality }))
    }

    /// Tokens of a window: one more than decide a state.
    pub fn window(&self) -> usize {
        self.locality + 1
    }

    /// Whether these tokens can stand beside each other somewhere in a sequence of the language. All
    /// windows of a sequence decide. O(states) for each of the tokens at most.
    pub fn is_valid_window(&self, tokens: &[TokenId]) -> bool {
        !self.states_after(tokens).is_empty()
    }

    /// The index of the first token with which the sequence is no beginning of one in the language: the
    /// first windows from the start, each other by itself. O(states * window) a token at most.
    pub fn first_invalid(&self, tokens: &[TokenId]) -> Option<usize> {
        let window = self.window();
        let start = tokens.get(..window).unwrap_or(tokens);
        let mut state = self.dfa.start();
        for (index, &token) in start.iter().enumerate() {
            match self.dfa.next(state, token) {
                Some(next) => state = next,
                None => return Some(index),
            }
        }
        let mut windows = tokens.windows(window);
        let invalid = windows.position(|window| !self.is_valid_window(window));
        invalid.map(|place| place + window - 1)
    }

    /// Whether the sequence is in the language: no window is invalid, and the last one may end it.
    pub fn accepts(&self, tokens: &[TokenId]) -> bool {
        if self.first_invalid(tokens).is_some() {
            return false;
        }
        let first = tokens.len().saturating_sub(self.locality);
        let states = match first {
            0 => {
                let next = |state, &token: &TokenId| self.dfa.next(state, token);
                let last = tokens.iter().try_fold(self.dfa.start(), next);
                last.into_iter().collect()
            }
            first => self.states_after(tokens.get(first..).unwrap_or_default()),
        };
        states.iter().any(|&state| self.dfa.is_accepting(state))
    }

    /// Where runs over these tokens end: in one state at most, for as many as decide.
    fn states_after(&self, tokens: &[TokenId]) -> Vec<State> {
        let mut states: Vec<State> = (0..self.dfa.state_count() as State).collect();
        for &token in tokens {
            let next = states
                .iter()
                .filter_map(|&state| self.dfa.next(state, token));
            let mut next: Vec<State> = next.collect();
            next.sort_unstable();
            next.dedup();
            states = next;
        }
        states
    }
}

//! Counting and sampling of the token sequences of a language, by length.

use std::collections::HashMap;

use bpe_core::TokenId;

use crate::token_dfa::{Node, TokenDfa, TokenState};

impl TokenDfa {
    /// How many sequences of exactly `length` tokens lead from here to a text of the language. `None`
    /// where the number needs more than 128 bits, or more than `limit` states are met at once.
    pub fn count(&mut self, state: &TokenState, length: usize, limit: usize) -> Option<u128> {
        let mut states = HashMap::from([(self.node(state), 1_u128)]);
        for _ in 0..length {
            let mut next_states: HashMap<Node, u128> = HashMap::new();
            for (&state, &ways) in &states {
                for token in self.tokens_of_node(state) {
                    if let Some(next) = self.next_node(state, token) {
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
            .filter(|(state, _)| self.accepts_node(**state));
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
        state: &TokenState,
        length: usize,
        limit: usize,
    ) -> Option<TokenSequences> {
        // The states after each number of tokens, and the transitions to them.
        let mut layers = vec![vec![self.node(state)]];
        let mut steps: Vec<Vec<Vec<(TokenId, u32)>>> = Vec::new();
        let mut met = 0;
        for _ in 0..length {
            let states = layers.last().map_or(&[][..], Vec::as_slice).to_vec();
            let mut numbers: HashMap<Node, u32> = HashMap::new();
            let mut next_states = Vec::new();
            let mut of_states = Vec::with_capacity(states.len());
            for state in states {
                let mut of_state = Vec::new();
                for token in self.tokens_of_node(state) {
                    let Some(next) = self.next_node(state, token) else {
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
        let accepted = last.into_iter().map(|state| self.accepts_node(state));
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
    /// let sequences = dfa.sequences(&dfa.start(), 3, 1_000).expect("few states");
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

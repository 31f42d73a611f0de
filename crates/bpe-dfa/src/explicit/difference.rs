//! Where two languages of tokenizations differ.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use bpe_core::TokenId;

use super::error::Kind;
use super::{ExplicitDfa, ExplicitError, Limits, State};

impl ExplicitDfa {
    /// A sequence with as few tokens as possible that one of two automata accepts and the other does
    /// not, `None` where their languages are equal.
    ///
    /// Cost: O(p t) for p pairs of states that a sequence leads to and t tokens. To ask only whether
    /// they are equal, compare what [`minimize`](Self::minimize) gives.
    ///
    /// # Errors
    ///
    /// Automata over vocabularies that give an id different bytes; more pairs than the limits allow
    /// states.
    pub fn difference(
        &self,
        other: &Self,
        limits: &Limits,
    ) -> Result<Option<Vec<TokenId>>, ExplicitError> {
        let mut tokens: Vec<TokenId> = self.tokens().chain(other.tokens()).collect();
        tokens.sort_unstable();
        tokens.dedup();
        let bytes = |dfa: &Self, token| dfa.vocabulary().token_bytes(token).map(<[u8]>::to_vec);
        if tokens.iter().any(|&t| bytes(self, t) != bytes(other, t)) {
            return Err(ExplicitError(Kind::OtherVocabulary));
        }
        // Of each pair that was met where it was met from, and by which token.
        type Pair = (Option<State>, Option<State>);
        let first: Pair = (Some(self.start()), Some(other.start()));
        let mut met = HashMap::from([(first, None)]);
        let mut order = vec![first];
        let mut number = 0;
        while let Some(&(a, b)) = order.get(number) {
            number += 1;
            let accepts = |dfa: &Self, state: Option<State>| {
                state.is_some_and(|state| dfa.is_accepting(state))
            };
            if accepts(self, a) != accepts(other, b) {
                let mut sequence = Vec::new();
                let mut at = (a, b);
                while let Some(&Some((before, token))) = met.get(&at) {
                    sequence.push(token);
                    at = before;
                }
                sequence.reverse();
                return Ok(Some(sequence));
            }
            for &token in &tokens {
                let step = |dfa: &Self, state: Option<State>| dfa.next(state?, token);
                let next = (step(self, a), step(other, b));
                if next == (None, None) {
                    continue;
                }
                if let Entry::Vacant(entry) = met.entry(next) {
                    entry.insert(Some(((a, b), token)));
                    order.push(next);
                    if order.len() > limits.states {
                        let doing = "the comparison of two automata";
                        return Err(ExplicitError::states(doing, limits.states));
                    }
                }
            }
        }
        Ok(None)
    }
}

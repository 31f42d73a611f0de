//! Why an automaton cannot be built.

use core::fmt;

use bpe_core::TokenId;

use super::{Ambiguity, State};

/// Why an explicit automaton or transducer cannot be built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExplicitError(pub(super) Kind);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    Regex {
        message: String,
    },
    TooManyStates {
        doing: &'static str,
        limit: usize,
    },
    TooManyBytes {
        doing: &'static str,
        limit: usize,
    },
    NoState {
        state: State,
        states: usize,
    },
    SecondTransition {
        from: State,
        label: String,
    },
    UnknownToken {
        id: TokenId,
    },
    NotAtomic,
    Improper {
        left: TokenId,
        right: TokenId,
    },
    NoProduct {
        left: TokenId,
        right: TokenId,
        product: TokenId,
    },
    BothWays {
        left: TokenId,
        right: TokenId,
        product: TokenId,
    },
    NotFunctional {
        text: Vec<u8>,
    },
    Untwinned {
        prefix: Vec<u8>,
        cycle: Vec<u8>,
    },
    OtherVocabulary,
}

impl ExplicitError {
    pub(crate) fn states(doing: &'static str, limit: usize) -> Self {
        Self(Kind::TooManyStates { doing, limit })
    }

    pub(super) fn bytes(doing: &'static str, limit: usize) -> Self {
        Self(Kind::TooManyBytes { doing, limit })
    }

    /// The limit that was reached, where the reason is one: of states, or of bytes.
    pub fn limit(&self) -> Option<usize> {
        match self.0 {
            Kind::TooManyStates { limit, .. } | Kind::TooManyBytes { limit, .. } => Some(limit),
            _ => None,
        }
    }

    /// Two texts, where the reason is that a transducer lacks the twinning property: two runs can read
    /// the first and then the second any number of times, and their outputs differ more each time.
    pub fn untwinned(&self) -> Option<(&[u8], &[u8])> {
        match &self.0 {
            Kind::Untwinned { prefix, cycle } => Some((prefix, cycle)),
            _ => None,
        }
    }

    /// A text, where the reason is that a transducer has two outputs for it.
    pub fn text_with_two_outputs(&self) -> Option<&[u8]> {
        match &self.0 {
            Kind::NotFunctional { text } => Some(text),
            _ => None,
        }
    }

    /// Two tokenizations of one text that an automaton has runs on, where the reason is that a merge
    /// was applied to an automaton that is not context-invariant (002 Definition 2).
    pub fn ambiguity(&self) -> Option<Ambiguity> {
        match self.0 {
            Kind::BothWays {
                left,
                right,
                product,
            } => Some(Ambiguity {
                first: vec![left, right],
                second: vec![product],
            }),
            _ => None,
        }
    }
}

impl fmt::Display for ExplicitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Regex { message } => {
                write!(f, "the regular expression has no automaton: {message}")
            }
            Kind::TooManyStates { doing, limit } => {
                write!(f, "{doing} needs more than {limit} states")
            }
            Kind::TooManyBytes { doing, limit } => {
                write!(f, "{doing} needs more than {limit} bytes")
            }
            Kind::NoState { state, states } => {
                write!(f, "state {state} is none of the {states} states")
            }
            Kind::SecondTransition { from, label } => {
                write!(f, "state {from} has two transitions on {label}")
            }
            Kind::UnknownToken { id } => write!(f, "the vocabulary has no token {id}"),
            Kind::NotAtomic => write!(
                f,
                "the dictionary has an unknown token or byte fallback, so a token is not always its text"
            ),
            Kind::Improper { left, right } => write!(
                f,
                "the dictionary is improper: a later rule makes a side of the rule ({left}, {right})"
            ),
            Kind::NoProduct {
                left,
                right,
                product,
            } => write!(
                f,
                "tokens {left} and {right} together are not the bytes of token {product}"
            ),
            Kind::BothWays {
                left,
                right,
                product,
            } => write!(
                f,
                "the automaton is not context-invariant: it has runs on the token {product} and on the tokens \
                 {left}, {right}, which are the same text"
            ),
            Kind::NotFunctional { text } => {
                write!(
                    f,
                    "the transducer has two outputs for \"{}\"",
                    text.escape_ascii()
                )
            }
            Kind::Untwinned { prefix, cycle } => write!(
                f,
                "no subsequential transducer: after \"{}\" the outputs of two runs grow apart with each further \"{}\"",
                prefix.escape_ascii(),
                cycle.escape_ascii()
            ),
            Kind::OtherVocabulary => write!(f, "the two automata are over different vocabularies"),
        }
    }
}

impl core::error::Error for ExplicitError {}

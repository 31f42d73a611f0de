//! Automata and transducers with all their states in memory: the construction of 002 as published.
//!
//! See the sections of the crate's documentation; the parts are
//!
//! - [`StringDfa`]: a regular language of texts, from a regular expression;
//! - [`ExplicitDfa`]: the tokenizations of its texts, by Algorithm 2, one merge at a time; with it
//!   trimming, minimisation, comparison, the degree of locality, context-invariance;
//! - [`Transducer`]: from texts to tokenizations, not deterministic (Observation 3), with the check of the
//!   twinning property;
//! - [`SubsequentialTransducer`]: the same, deterministic: a tokenizer that reads each byte once; with
//!   composition, minimisation and comparison;
//! - [`Dot`]: drawings of all of them.
//!
//! # A worked example
//!
//! ```
//! use bpe_core::{CanonicalForm, Dictionary, Vocabulary};
//! use bpe_dfa::explicit::{ExplicitDfa, Limits, StringDfa};
//!
//! let vocabulary = Vocabulary::new([(0, "a"), (1, "b"), (2, "aa"), (3, "ba")])?;
//! let form = CanonicalForm::new(&Dictionary::from_merges(vocabulary, [(0, 0), (1, 0)])?);
//! let limits = Limits::default();
//!
//! // All texts: one state, with a loop for each letter.
//! let mut dfa = ExplicitDfa::base(&StringDfa::universal(), &form, &limits)?;
//! assert_eq!(dfa.state_count(), 1);
//!
//! // a a -> aa. After an a no a can come any more, so there is a state for that.
//! let mut rules: Vec<_> = form.rules().collect();
//! rules.sort_by_key(|rule| rule.priority);
//! assert_eq!(dfa.apply_merge(&rules[0], &limits)?.fresh_states, 1);
//! assert!(dfa.accepts([2, 0]) && !dfa.accepts([0, 0]) && !dfa.accepts([0, 2]));
//!
//! // b a -> ba. After a b no a can come any more.
//! assert_eq!(dfa.apply_merge(&rules[1], &limits)?.fresh_states, 1);
//! assert!(dfa.accepts([3, 3, 1]) && !dfa.accepts([1, 0]));
//!
//! // One token decides the state, and no text has two tokenizations.
//! assert_eq!(dfa.locality_degree(1, &limits)?, 1);
//! assert_eq!(dfa.context_ambiguity(&limits)?, None);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod ambiguity;
mod difference;
mod dot;
mod error;
mod limits;
mod locality;
mod partition;
mod string_dfa;
mod subsequential;
mod token_dfa;
mod transducer;
mod twinning;
mod windows;

pub use ambiguity::Ambiguity;
pub use dot::Dot;
pub use error::ExplicitError;
pub use limits::Limits;
pub use string_dfa::StringDfa;
pub use subsequential::SubsequentialTransducer;
pub use token_dfa::{ExplicitDfa, MergeSummary};
pub use transducer::{Transducer, TransducerEdge};
pub use windows::WindowValidator;

/// A state's number, from 0 on.
pub type State = u32;

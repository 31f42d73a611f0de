//! Automata over the tokens of byte pair encoding.
//!
//! Inside one pre-token a sequence of tokens is a tokenization if and only if each token is canonical and
//! each neighbouring pair is valid (002 Observation 2). [`PairRelation`] answers for pairs, at the size of
//! real vocabularies, and everything else here stands on it:
//!
//! | type | answers |
//! |---|---|
//! | [`PairRelation`] | may these two tokens stand beside each other; states and transitions of the minimal automaton |
//! | [`Rectangles`] | what cannot follow this token, where the whole relation is not worth its making |
//! | [`Validator`], [`repair`] | where does a stream of tokens stop being what the tokenizer makes; what should it be |
//! | [`equivalent`], [`equivalent_in_pieces`] | are two dictionaries the same function, or what is a shortest text on which they differ |
//! | [`CanonicalMasks`] | which tokens may come next, as bits |
//! | [`TokenDfa`] | the canonical tokenizations of a regular language; which tokens may come next in one |
//! | [`PieceWalk`] | where a pre-tokenizer cuts among tokens, without their bytes |
//! | [`TokenSearch`] | where a regular expression matches in the text of any tokens, which are not decoded |
//! | [`LazyTransducer`] | bytes in, tokens out, one step a byte, each token as early as can be |
//! | [`explicit`] | the automata of the paper, state by state, for small dictionaries |
//!
//! All of it is about **merges inside one span**, but for what is given [`Boundaries`] ([`TokenDfa`],
//! [`equivalent_in_pieces`]), which knows whole-piece look-up too: what a pre-tokenizer cuts, and special tokens,
//! are the business of the crate `bytepair`, which puts these parts together (`Tokenizer::validator`,
//! `Tokenizer::token_dfa`). The dictionary must be proper ([`bpe_core::CanonicalForm::is_proper`]);
//! [`bpe_core::CanonicalForm::properize`] makes most others proper first.
//!
//! Numbers in front of a section (000, 002) name papers: docs/architecture.md, Sources.

#![forbid(unsafe_code)]

mod boundaries;
mod completion;
mod equivalence;
mod error;
pub mod explicit;
mod forests;
mod masks;
mod order;
mod pairs;
mod pending;
mod piece_equivalence;
mod piece_walk;
mod rectangles;
mod rows;
mod search;
mod sequences;
mod token_dfa;
mod transducer;
mod validator;
mod whole_pieces;

pub use boundaries::{Boundaries, OnePiece};
pub use equivalence::{Equivalence, Witness, equivalent};
pub use error::RelationError;
pub use masks::CanonicalMasks;
pub use pairs::{PairRelation, StateId};
pub use piece_equivalence::equivalent_in_pieces;
pub use piece_walk::{PieceWalk, TokenClasses};
pub use rectangles::Rectangles;
pub use search::{TokenMatch, TokenSearch};
pub use sequences::TokenSequences;
pub use token_dfa::{TokenDfa, TokenState};
pub use transducer::{LazyTransducer, TransducerStats};
pub use validator::{Mismatch, Reason, Repair, RepairError, Validator, repair};

/// The examples of the README, as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;

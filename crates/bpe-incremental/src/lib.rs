//! Byte pair encoding as a text grows: the last token of every prefix.
//!
//! The tokens of a text are those of the text before its last token, and its last token. So whoever
//! knows the last token of every prefix knows the tokens of every prefix, and a text that grows by a byte
//! needs one new last token. This crate finds it in a time that is bounded whatever the text is, from
//! a dictionary in canonical form that is proper ([`bpe_core::CanonicalForm::is_proper`]).
//!
//! - [`LastTokenEngine`]: the tables of a dictionary, immutable and shared.
//! - [`History`]: a growing text over them: push bytes, take them back, fork, ask for the tokens of any
//!   prefix.
//! - [`IncrementalEncoder`]: the same as a [`bpe_core::SpanEncoder`].
//!
//! # Cost

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod encoder;
mod engine;
mod error;
mod forest;
mod history;
mod trie;
mod units;
mod wide;

pub use encoder::IncrementalEncoder;
pub use engine::LastTokenEngine;
pub use error::EngineError;
pub use history::{History, PlacedToken, TokensFromEnd};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

//! Byte pair encoding on several threads, with the tokens of one.
//!
//! ```text
//! text      ....the cat. ....... <|end|>   aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa  ............
//! cuts              |        |          |                                   |      |
//! parts     one     |  two   |  three   |  four: dense                      | five | six
//!                                          one long pre-token, cut inside,
//!                                          joined at a token that both parts have
//! ```
//!
//! * [`Synchronised`] tokenizes documents and long texts in parts; what comes out is what sequential
//!   tokenization gives, for every input. Its documentation says how, docs/theory.md why.
//! * [`Queue`] takes work as it comes, while the next is still being read.
//! * [`Workers`] are the threads of both: no global state, shared with the caller's pool where there is
//!   one, started anew in a forked process.
//! * [`Comparison`] are the ways of others, to be measured beside.
//!
//! The crate sees a tokenizer by the trait [`Tokenize`], and what may be done with its texts by
//! [`Seams`]. What is not known of a tokenizer is not used: lexers that may look back run over the whole
//! text, and a span whose encoder does more than merge is encoded as a whole.
//!
//! # Cost
//!
//! That of sequential tokenization, divided by the threads. Special tokens and cuts are found by one
//! thread, at the speed of a search: a look at a thousand bytes around each cut at most. No byte is lexed
//! more than twice, but by threads that come upon the same long pre-token at the same time. Of a long pre-token at
//! most twice its bytes are merged, whatever stands in it ([`PieceReport::merged_bytes`]); where it is not known how
//! far what follows can change tokens ([`Tokenize::influence`]), some hundred bytes at each cut beside. Idle threads
//! wait in a loop for some microseconds before they sleep.
//!
//! # When to take it
//!
//! For texts from some 50 KB on, and for batches of as much in all. Below, waking threads costs more than
//! they do.

#![forbid(unsafe_code)]

mod comparison;
mod documents;
mod exact;
mod join;
mod lexing;
mod piece;
mod queue;
mod runs;
mod synchronised;
mod tokenize;
mod workers;

pub use comparison::Comparison;
pub use documents::{Batch, Divide, OnError, PartSizes, Report};
pub use piece::{Cut, PieceReport, merge_in_parts};
pub use queue::Queue;
pub use synchronised::Synchronised;
pub use tokenize::{Seams, SpanSeams, Tokenize, Tokens, Wanted};
pub use workers::{Team, Workers};

/// The README's example is compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

//! Pre-tokenizers: where are the pieces of a text inside which byte pair merges apply?
//!
//! Four parts work together.
//!
//! * A [`Pattern`] is a regular expression. Its matches, one after the other, are the
//!   pre-tokens. [`Pattern::gpt2`], [`Pattern::cl100k`] and [`Pattern::o200k`] are known;
//!   [`Pattern::new`] takes any other.
//! * A [`Lexer`] runs a pattern: given a segment and a byte offset, where is the next pre-token?
//!   [`lexer`] makes one, on the [`Engine`] that you choose.
//! * A [`SpecialMatcher`] finds special tokens, as text, before any pattern sees it.
//! * A [`Spanner`] puts them together and hands out [`Span`]s with a [`Label`]; a
//!   [`StreamSpanner`] does so for a text that comes in pieces.
//!
//! [`Cuts`] stand beside these: where can a text be cut, so that its parts can be lexed alone?
//! They are derived by an [`Analysis`] of the pattern. The crate knows no vocabulary: it says where pieces are, not what becomes of
//! them.
//!
//! # Example
//!
//! The pattern of gpt2 has seven branches; the first that matches decides:
//! `'s|'t|'re|'ve|'m|'ll|'d` (contractions), ` ?\p{L}+` (a word with a blank before it),
//! ` ?\p{N}+` (a number), ` ?[^\s\p{L}\p{N}]+` (the rest), `\s+(?!\S)` (white space, but not
//! the last blank before a word) and `\s+`. Take this text:
//!
//! ```text
//! I'm   here<|end|>  7!
//!
//! I'm   here              segment        "I"  "'m"  "  "  " here"
//!           <|end|>       special token
//!                  7!     segment        " "  " 7"  "!"
//! ```
//!
//! In `I'm   here` the three blanks: ` ?\p{L}+` needs a letter after the first blank, so it
//! fails, as do the branches after it, until `\s+(?!\S)`. It takes three blanks, sees the `h`,
//! gives one back. So the first two are a pre-token, and the third goes with `here`.
//!
//! ```
//! use bpe_lexers::{Engine, Label, Pattern, Spanner, SpecialMatcher};
//! use std::ops::ControlFlow;
//!
//! let lexer = Pattern::gpt2().lexer(Engine::Auto)?;
//! let mut spanner = Spanner::new(vec![lexer]);
//! let specials = SpecialMatcher::new(["<|end|>"])?;
//!
//! let text = "I'm   here<|end|>  7!";
//! let mut spans = Vec::new();
//! let _: ControlFlow<()> = spanner.for_each_span(text.as_bytes(), &specials, |span| {
//!     spans.push((&text[span.range()], span.label));
//!     ControlFlow::Continue(())
//! })?;
//! assert_eq!(
//!     spans,
//!     [
//!         ("I", Label::Word),
//!         ("'m", Label::Word),
//!         ("  ", Label::Word),
//!         (" here", Label::Word),
//!         ("<|end|>", Label::Special(0)),
//!         (" ", Label::Word),
//!         (" 7", Label::Word),
//!         ("!", Label::Word),
//!     ]
//! );
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Which engine
//!
//! All engines find the same pre-tokens, which the tests of this crate compare.
//! [`Engine::Auto`] is right unless you have a reason.
//!
//! | engine | patterns | makes in | a call | gives up |
//! |---|---|---|---|---|
//! | [`FastLexer`] | the known families | nothing, the first in some ms | linear, no allocation | never |
//! | `AutomataLexer` | no look-around, but for a trailing `\s+(?!\S)\|\s+` | 1 to 3 ms | linear, no allocation once warm | never |
//! | `LogosLexer` | the known families | nothing | linear, no allocation | never |
//! | `ReferenceLexer` | any | 1 to 5 ms | backtracking: exponential in bad cases, up to a step limit | yes, with a [`LexError`] |
//! | [`TranscribedLexer`] | the known families | nothing | linear, no allocation | never |
//!
//! # Text that is not UTF-8
//!
//! The spanner takes any bytes. Each maximal invalid part (what
//! [`String::from_utf8_lossy`] replaces by one U+FFFD) is a word of its own; what stands before
//! and after it is lexed separately, so a look-ahead that stands before it sees the end of the
//! text.
//!
//! # Unicode
//!
//! All engines take their character classes from regex-syntax; [`unicode_version`] says which
//! version of Unicode that is.
//!
//! # Features
//!
//! `automata` and `reference` (both by default) are the engines on regex-automata and on
//! fancy-regex, `logos` the one on compile-time DFAs, which takes minutes to compile. Without them the fast
//! engine, the transcription and the spanner remain.

// Allowed in `fast::simd` alone, which says why.
#![deny(unsafe_code)]

pub mod analysis;
#[cfg(feature = "automata")]
mod automata;
mod classes;
mod contraction;
mod cuts;
mod error;
mod fast;
mod lexer;
#[cfg(feature = "logos")]
mod logos;
mod pattern;
#[cfg(feature = "reference")]
mod reference;
mod spanner;
mod special;
mod stream;
mod transcription;

#[cfg(feature = "automata")]
pub use analysis::automata_difference;
pub use analysis::{Analysis, AnalysisError, ByteMachine, Undecided, difference};
#[cfg(feature = "automata")]
pub use automata::AutomataLexer;
pub use classes::unicode_version;
pub use cuts::Cuts;
pub use error::{LexError, PatternError, SpecialError};
pub use fast::{FastLexer, InstructionSet};
pub use lexer::{Engine, Lexer, lexer};
#[cfg(feature = "logos")]
pub use logos::LogosLexer;
pub use pattern::{Family, Pattern};
#[cfg(feature = "reference")]
pub use reference::{ReferenceLexer, StepLimit};
pub use spanner::{Label, Run, Span, Spanner};
pub use special::SpecialMatcher;
pub use stream::{StreamError, StreamEvent, StreamSpanner};
pub use transcription::TranscribedLexer;

/// The README's example is compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

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
//! - [`EagerEncoder`]: tokens as soon as no continuation can change them, in bounded memory.
//! - [`PrefixTree`]: the tokens of all prefixes as a tree, with the attention mask that it implies.
//! - [`TokenHealer`]: where to cut a prompt so that a model can go on from it.
//!
//! [`mod@descent`] finds last tokens in another way, to check the engine with.
//!
//! # The algorithm
//!
//! Numbers in brackets name papers (docs/architecture.md, Sources); 000 is the one that this crate
//! builds. Statements with proofs are in docs/theory.md.
//!
//! **One token a prefix.** Merging only ever removes places between tokens. So if the tokens of a text
//! have a place at i, no merge has crossed it, and the tokens before i are the tokens of the text before
//! i. Hence the tokens of a text are found from its end: its last token, the last token of what is left,
//! and so on.
//!
//! **How a last token grows.** Follow the last token while the rules are applied. It begins as an atom,
//! and each merge with its left neighbour makes it the right side of a longer token. Every token that
//! merging can make has exactly one rule that makes it, so the right side of that rule, the token's
//! *successor*, is known, and the last token climbs along a chain of tokens that are each other's
//! successors. All these chains together are the *successor forest*. The left side of the rule is the token's
//! *predecessor*.
//!
//! **One question a token.** When does a text s end, at some moment, with a token t = xy, made of its
//! predecessor x and its successor y by rule number r? Look at the text without y. There, after the rules up to r have been
//! applied, x must be the last token: not yet made into something longer by one of these rules. That is also enough.
//! And since what becomes of x afterwards is a chain of the forest, the question can be put to the *final* last token
//! of the shorter text, which is known already: is it x, or does it descend from x by a child of x whose rule comes
//! after r? Number the forest in depth-first order, the children of a token from the last rule to the
//! first, and the answers "yes" are one interval: the question is two comparisons.
//!
//! **One path.** The tokens for which the answer is yes are a chain: from the last atom to the last token of s.
//! So the last token is the end of a path, and whatever way of searching for the end of a path can be
//! used.
//!
//! ## An example
//!
//! ```text
//! 1. e f   -> ef         4. bc def  -> bcdef        7. c d -> cd
//! 2. d ef  -> def        5. a bcdef -> abcdef
//! 3. b c   -> bc         6. a b     -> ab
//!
//! successor forest (a token under its successor, the last rule first):
//!
//! a     b       c       d       e     f     z
//!       |       |       |             |
//!       ab      bc      cd            ef
//!                                     |
//!                                     def
//!                                     |
//!                                     bcdef
//!                                     |
//!                                     abcdef
//! ```
//!
//! The text is `abcdef`, byte by byte. After `ab` the last token is ab. Then comes c. Is bc the last
//! token? Its predecessor is b; the text without c is `ab`, and its last token is ab, below b by a child whose rule, the
//! sixth, comes after the third. Yes: bc takes the b back, and the tokens are a bc. After `abcd`: cd? Its
//! predecessor is c; the last token of `abc` is bc, below c by a child whose rule comes before. No: d stays alone.
//!
//! At the end four tokens ask. In `zbcdef` the first three get a yes, so bcdef is the last token:
//!
//! | token | predecessor | the text without its successor | last token of that | |
//! |---|---|---|---|---|
//! | ef | e | `zbcde` | e | yes |
//! | def | d | `zbcd` | d | yes |
//! | bcdef | bc | `zbc` | bc | yes |
//! | abcdef | a | `z` | z | no |
//!
//! ```
//! use bpe_core::{CanonicalForm, Dictionary, Vocabulary};
//! use bpe_incremental::LastTokenEngine;
//!
//! let tokens = ["a", "b", "c", "d", "e", "f", "z", "ef", "def", "bc", "bcdef", "abcdef", "ab", "cd"];
//! let vocabulary = Vocabulary::new((0..).zip(tokens))?;
//! let rules = [("e", "f"), ("d", "ef"), ("b", "c"), ("bc", "def"), ("a", "bcdef"), ("a", "b"), ("c", "d")];
//! let id = |token: &str| vocabulary.id_of(token.as_bytes()).unwrap();
//! let rules: Vec<_> = rules.iter().map(|(left, right)| (id(left), id(right))).collect();
//! let dictionary = Dictionary::from_merges(vocabulary.clone(), rules)?;
//! let canonical = CanonicalForm::new(&dictionary).into();
//! let engine = LastTokenEngine::new(&canonical)?;
//!
//! // The last token of each prefix.
//! let last_tokens = |text: &str| -> Result<Vec<String>, Box<dyn std::error::Error>> {
//!     let mut history = engine.history();
//!     history.extend(text.as_bytes())?;
//!     let last = (1..=text.len()).filter_map(|len| history.last_token(len));
//!     Ok(last.map(|token| tokens[token.id as usize].to_owned()).collect())
//! };
//! assert_eq!(last_tokens("abcdef")?, ["a", "ab", "bc", "d", "e", "abcdef"]);
//! assert_eq!(last_tokens("zbcdef")?, ["z", "b", "bc", "d", "e", "bcdef"]);
//!
//! // The table: what each of the four tokens asks for is the last token of a shorter prefix.
//! let mut history = engine.history();
//! history.extend(b"zbcdef")?;
//! let answer = |token: &str| {
//!     let rule = canonical.rule(id(token))?;
//!     let successor = canonical.vocabulary().token_bytes(rule.right)?;
//!     let before = history.last_token(6 - successor.len())?;
//!     Some(before.id == rule.left) // No last token here descends from a predecessor.
//! };
//! let answers = ["ef", "def", "bcdef", "abcdef"].map(answer);
//! assert_eq!(answers, [Some(true), Some(true), Some(true), Some(false)]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What is certain
//!
//! A later token can begin only where the text from there on begins a longer token. These places are the
//! last few; what the tokens of all prefixes that end there have in common is in the tokens of every
//! continuation. [`EagerEncoder`] hands that out and forgets it. What it holds back has a bound that
//! follows from the rules: [`held_bytes_bound`], 419 bytes for o200k_base, for any text.
//!
//! # Cost
//!
//! For n tokens of up to t bytes, B bytes in all. Whatever the text is, a byte costs so much:
//!
//! | layout | for | time a byte | memory |
//! |---|---|---|---|
//! | flat | tokens of up to 255 bytes | one load for the automaton, then the longest suffix token and shorter ones: at most 10 tests, or a search tree of O(log t) tests with a binary search each | 9 bytes a place of the table, at most 16 places a state and 2^24 in all (150 MB); 20 bytes a token; up to 16 entries of search trees a token and 2^20 more, 40 bytes each; 512 KiB. o200k_base: 70 MB |
//! | wide | all other dictionaries | amortised O(1) steps of the automaton, each a search among the children of a state; then O(log n log t) tests | 17 bytes a state, of which there are B at most; 60 bytes a token |
//!
//! The engine takes the flat layout where the dictionary fits its limits. The worst case of the wide
//! layout is amortised over pushes: after a truncation the steps that a push has made can be due again,
//! up to t of them.
//!
//! A [`History`] takes 8 bytes a byte of text, and its forks share them.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod bound;
pub mod descent;
mod eager;
mod encoder;
mod engine;
mod error;
mod flat;
mod forest;
mod frontier;
mod healing;
mod history;
mod lanes;
mod prefix_tree;
mod rows;
mod search_trees;
mod trie;
mod units;
mod wide;

pub use bound::held_bytes_bound;
pub use eager::{EagerEncoder, Pending};
pub use encoder::IncrementalEncoder;
pub use engine::LastTokenEngine;
pub use error::EngineError;
pub use healing::{Healing, TokenHealer};
pub use history::{History, PlacedToken, TokensFromEnd};
pub use prefix_tree::{AttentionMask, PrefixTree};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

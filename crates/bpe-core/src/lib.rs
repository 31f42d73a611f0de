//! Byte pair encoding (BPE): vocabularies, merge rules, what they mean, and encoders for one span.
//!
//! BPE cuts a byte string into *tokens*. It starts from *atoms* (single bytes, or characters) and
//! joins neighbours by *merge rules*. Each rule `(left, right) -> product` has a *priority*: its
//! place in the list, where earlier is higher.
//!
//! ```text
//! rules, in order:   1. a b -> ab     2. ab c -> abc     3. b c -> bc
//!
//! a b c b c          atoms of "abcbc"
//! ab  c b c          rule 1 is the best that applies
//! abc   b c          rule 2 applies now, and comes before rule 3
//! abc   bc           rule 3; nothing applies any more: two tokens
//! ```
//!
//! The parts, in the order in which data flows through them:
//!
//! - [`Vocabulary`]: token ids and their bytes. Ids may have gaps.
//! - [`Dictionary`]: a vocabulary with merge rules as a file lists them, from the ranks of a
//!   `.tiktoken` file or from an ordered list of merges, checked on the way in.
//! - [`CanonicalForm`]: what algorithms use: of each token the one rule that makes it. It is built
//!   from a dictionary once; questions about semantics are answered there and nowhere else.
//! - [`SpanEncoder`]: turns the bytes of one span into tokens. Five encoders come with this crate,
//!   all equal in what they return and different in cost: see [`encoder`].
//! - [`mod@reference`]: literal transcriptions of both published semantics, never optimised. They
//!   are what everything else is tested against.
//!
//! ```
//! use std::sync::Arc;
//! use bpe_core::{Algorithm, CanonicalForm, Dictionary, Vocabulary};
//!
//! let vocabulary = Vocabulary::new([(0, "a"), (1, "b"), (2, "c"), (3, "ab"), (4, "abc"), (5, "bc")])?;
//! let dictionary = Dictionary::from_merges(vocabulary, [(0, 1), (3, 2), (1, 2)])?;
//! let canonical = Arc::new(CanonicalForm::new(&dictionary));
//! let mut encoder = Algorithm::PriorityMerge.encoder(&canonical)?;
//!
//! let mut tokens = Vec::new();
//! encoder.encode_span(b"abcbc", &mut tokens)?;
//! assert_eq!(tokens, [4, 5]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Semantics
//!
//! *Standard semantics* applies each rule once, in order, exhaustively, left to right. *SentencePiece
//! semantics* always joins the neighbouring pair of best priority, the leftmost first; tiktoken and
//! Hugging Face's `tokenizers` do this, and so do the encoders here. Both agree on a *proper*
//! dictionary, in which no rule's side is made by a later rule ([`CanonicalForm::is_proper`]). Most
//! improper dictionaries have another order of their rules that is proper and gives the same tokens:
//! [`CanonicalForm::properize`] finds it, [`Properization`] reports on it.
//!
//! This crate is about one span. What cuts a text into spans is another crate's business, and so is
//! whole-piece look-up: a [`Dictionary`] carries the flag, the caller applies it once before the
//! encoder.
//!
//! Numbers in front of a section (000, 001, 002) name papers: docs/architecture.md, Sources.
//!
//! # Features
//!
//! | feature | brings | default |
//! |---|---|---|
//! | `std` | `std` in dependencies, better seeds for hash tables; without it the crate needs `alloc` only | yes |
//! | `backtrack` | the encoder `BpeBacktrack` (aho-corasick) | no |
//! | `tiktoken` | reading and writing `.tiktoken` files (base64) | no |
//! | `gpt2` | reading and writing `vocab.json` and `merges.txt` (serde_json) | no |

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod byte_level;
mod byte_pairs;
mod canonical;
mod compact;
mod dictionary;
pub mod encoder;
#[cfg(feature = "gpt2")]
pub mod gpt2;
mod limits;
mod pair_table;
pub mod properize;
#[cfg(test)]
mod random;
pub mod reference;
#[cfg(feature = "tiktoken")]
pub mod tiktoken;
mod vocabulary;

pub use byte_pairs::BytePairs;
pub use canonical::{CanonicalForm, DropReason, DroppedRule, Merge, TokenOrigin};
pub use compact::CompactError;
pub use dictionary::{Atoms, Dictionary, DictionaryError, ImproperRule, MergeRule, Priority};
pub use encoder::{Algorithm, EncodeError, EncoderError, SpanEncoder};
pub use limits::ReadLimits;
pub use pair_table::PairTable;
pub use properize::{NotProperizable, Properization};
pub use vocabulary::{DecodeError, TokenId, Vocabulary, VocabularyError};

//! Training of byte pair encoding dictionaries: word counts in, a dictionary out.
//!
//! 1. [`WordCounts`] holds how often each pre-token occurs; it is filled from texts by any lexer of
//!    `bpe-lexers`, or by any other engine that can count.
//! 2. [`train`] merges the most frequent pair of neighbours, again and again, until the vocabulary
//!    has the size asked for or no pair is frequent enough.
//! 3. [`Training`] says what was learned, and makes the [`Dictionary`](bpe_core::Dictionary).
//!
//! What is learned depends on the counts and the options alone: not on the order of words, the number
//! of threads, or the [`Algorithm`]. The count of a pair is the number of places at which it stands,
//! those that overlap included (three in `aaaa`), weighted by how often the word occurs; after each
//! merge, which takes the places of a word from left to right, it is as if counted afresh. Between
//! pairs of equal count, [`Ties`] decides.
//!
//! ```
//! use bpe_train::{TrainOptions, WordCounts, train};
//!
//! let mut counts = WordCounts::new();
//! for (word, count) in [("low", 5), ("lower", 2), ("newest", 6), ("widest", 3)] {
//!     counts.add(word.as_bytes(), count)?;
//! }
//! let training = train(&counts, &TrainOptions::new(256 + 4))?;
//! let learned: Vec<&[u8]> = training.merges().map(|merge| merge.token).collect();
//! assert_eq!(learned, [&b"es"[..], b"est", b"lo", b"low"]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

mod count_file;
mod counter;
mod counts;
mod error;
mod fast;
mod heap;
mod indexed;
mod options;
mod runs;
mod seeds;
mod tokens;
mod training;

pub use counter::Counter;
pub use counts::WordCounts;
pub use error::{CountError, TrainError};
pub use options::{Algorithm, Alphabet, Ties, TrainOptions};
pub use training::{LearnedMerge, StopReason, Training, train, train_with};

/// The examples of the README, as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

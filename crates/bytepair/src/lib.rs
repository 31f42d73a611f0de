//! Byte pair encoding for language models: exact, bounded, with the vocabularies embedded.
//!
//! ```
//! let tokenizer = bytepair::Tokenizer::o200k_base();
//! let ids = tokenizer.encode("Hello, world")?;
//! let text = tokenizer.decode(&ids)?;
//! assert_eq!(text, "Hello, world");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Every result equals the reference tokenizer's (tiktoken for the embedded encodings), token for
//! token, on every text. No input makes it quadratic. Text that holds the text of a special token
//! stays text, unless the caller says otherwise: [`Specials`].
//!
//! # What there is
//!
//! | to | use |
//! |---|---|
//! | encode text, any bytes, or a batch | [`Tokenizer::encode`], [`encode_bytes`](Tokenizer::encode_bytes), [`encode_batch`](Tokenizer::encode_batch) |
//! | reuse a vector, or a thread's engines | [`Tokenizer::encode_into`], [`Tokenizer::worker`] |
//! | know where tokens stand | [`Tokenizer::encode_with_offsets`] |
//! | count, or stop at a limit | [`Tokenizer::count`], [`count_up_to`](Tokenizer::count_up_to), [`encode_up_to`](Tokenizer::encode_up_to), [`truncate`](Tokenizer::truncate) |
//! | decode, at once or id by id | [`Tokenizer::decode`], [`decode_bytes`](Tokenizer::decode_bytes), [`decode_lossy`](Tokenizer::decode_lossy), [`decode_stream`](Tokenizer::decode_stream) |
//! | use several threads: a long text, many texts, texts that are still being read | [`Tokenizer::encode_parallel`], [`parallel`](Tokenizer::parallel) |
//! | encode text as it comes, in any pieces | [`Tokenizer::stream`] |
//! | check that ids are what the tokenizer makes, or make them so | `Tokenizer::validator`, `Tokenizer::repair` |
//! | tell two tokenizers apart, or constrain what a model writes | `Tokenizer::equivalent`, `Tokenizer::token_dfa` |
//! | find the encoding of a model | [`Tokenizer::for_model`], [`Tokenizer::from_name`] |
//! | load a file | [`Tokenizer::from_tiktoken`], [`from_tokenizer_json`](Tokenizer::from_tokenizer_json), [`from_gpt2_files`](Tokenizer::from_gpt2_files) |
//! | run every step of a `tokenizer.json`: normalizer, pre-tokenizer, model, post-processor, decoder | `Pipeline` |
//! | put parts together | [`TokenizerBuilder`], [`Tokenizer::to_builder`] |
//!
//! The parts come from crates that can be used alone: `bpe-core` (vocabularies, merge rules,
//! span encoders), `bpe-lexers` (pre-tokenizers), `bpe-incremental` (tokens of open spans) and `bpe-dfa`
//! (valid pairs of tokens).
//!
//! # Features
//!
//! One for each embedded vocabulary: `gpt2`, `r50k_base`, `p50k_base` (with `p50k_edit`),
//! `cl100k_base`, `o200k_base` (with `o200k_harmony`); `tokenizer-json` for the formats in JSON;
//! `reference` for patterns with look-around that automata cannot run; `dfa` for validators. All are on by
//! default.

#![deny(unsafe_code)]

mod builder;
mod decode_stream;
mod embedded;
mod encode;
mod error;
mod fast;
mod files;
mod offsets;
mod parallel;
#[cfg(feature = "dfa")]
mod piece_check;
mod pieces;
#[cfg(feature = "tokenizer-json")]
mod pipeline;
mod pool;
#[cfg(feature = "tokenizer-json")]
mod sentencepiece;
mod specials;
mod stream;
mod stream_error;
#[cfg(feature = "tokenizer-json")]
mod tekken;
#[cfg(feature = "dfa")]
mod token_dfa;
mod tokenizer;
#[cfg(feature = "tokenizer-json")]
pub mod tokenizer_json;
#[cfg(feature = "dfa")]
mod validator;
mod word_piece;
mod worker;
#[cfg(feature = "tokenizer-json")]
mod write;

pub use bpe_core::{
    Algorithm, CanonicalForm, DecodeError, Dictionary, ReadLimits, SpanEncoder, TokenId, Vocabulary,
};
#[cfg(feature = "dfa")]
pub use bpe_dfa::explicit::{Limits as StringDfaLimits, StringDfa};
#[cfg(feature = "dfa")]
pub use bpe_dfa::{
    Equivalence, Mismatch, PairRelation, Reason, Repair, TokenDfa, TokenSequences, TokenState,
    Witness,
};
pub use bpe_lexers::{Engine, Family, Lexer, Pattern, PatternError};

pub use builder::TokenizerBuilder;
pub use decode_stream::DecodeStream;
pub use embedded::ENCODINGS;
pub use error::{EncodeError, LoadError};
pub use files::read_file;
pub use offsets::Encoding;
pub use parallel::{Batch, EncodeQueue, Parallel, ParallelReport};
#[cfg(all(feature = "tokenizer-json", feature = "dfa"))]
pub use pipeline::PipelineValidator;
#[cfg(feature = "tokenizer-json")]
pub use pipeline::{
    InputError, InputOptions, Inspection, ModelInput, PadTo, Padding, Pipeline, PipelineCuts,
    PipelineDecodeStream, PipelineParallel, PipelineStream, Side, Truncation, TruncationStrategy,
};
pub use specials::Specials;
pub use stream::TokenStream;
pub use stream_error::StreamError;
#[cfg(feature = "dfa")]
pub use token_dfa::TokenDfaError;
pub use tokenizer::Tokenizer;
#[cfg(feature = "dfa")]
pub use validator::{RepairError, TokenValidator};
pub use word_piece::WordPiece;
pub use worker::Worker;
#[cfg(feature = "tokenizer-json")]
pub use write::SaveError;

//! Span encoders: the bytes of one span in, its tokens out.
//!
//! All encoders return the same tokens, those of SentencePiece semantics
//! ([`Reference::sentencepiece`](crate::reference::Reference::sentencepiece)); they differ in cost.
//! n is the length of the span in atoms, t the length of the longest token in bytes.
//!
//! | encoder | time | scratch memory | take it |
//! |---|---|---|---|
//! | [`BufferSweep`] | O(n^2) look-ups | n tokens | to understand BPE, and as a check |
//! | [`TailSweep`] | O(n^2) look-ups | none | for spans of a few bytes |
//! | [`MergeHeap`] | O(n) look-ups, O(n^2) steps over a flat array | n pairs | for words |
//! | [`PriorityMerge`] | O(n log n) | n nodes and a tree of keys; long spans less | always: the default, bounded on every input; words go to the array of `MergeHeap` |
//! | `BpeBacktrack` (feature `backtrack`) | O(n) usually, O(n t^2) at worst | n bits | for long spans of natural text, proper dictionaries over bytes |
//!
//! The names and the first four descriptions are those of 001 section 6; the costs are what
//! they really are (`MergeHeap` has no heap, and sweeps are quadratic). `BpeBacktrack`'s worst
//! case is that of 000 App. J.1.

#[cfg(feature = "backtrack")]
mod bpe_backtrack;
mod buffer_sweep;
mod merge_heap;
pub(crate) mod merge_loop;
mod priority_merge;
mod tail_sweep;
mod tournament;
mod windows;

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::panic::{RefUnwindSafe, UnwindSafe};
use core::str::FromStr;

#[cfg(feature = "backtrack")]
pub use bpe_backtrack::BpeBacktrack;
pub use buffer_sweep::BufferSweep;
pub use merge_heap::MergeHeap;
pub use priority_merge::PriorityMerge;
pub use tail_sweep::TailSweep;

use crate::canonical::CanonicalForm;
use crate::vocabulary::TokenId;

/// Turns the bytes of one span into tokens.
///
/// A value belongs to one thread: it owns its scratch memory and reuses it, so that after the
/// longest span it has seen it allocates nothing (the output vector aside). A clone shares the
/// tables and has fresh scratch memory.
///
/// Whole-piece look-up is not its business: the caller does it before. The supertraits hold for
/// every type without interior mutability; they let a prototype be shared and cloned by threads.
pub trait SpanEncoder: Send + Sync + UnwindSafe + RefUnwindSafe {
    /// Appends the tokens of `span` to `tokens`. The cost is the encoder's: see [`Algorithm`].
    ///
    /// # Errors
    ///
    /// A byte or character that no token stands for, with its offset in the span; `tokens` is then
    /// as it was. Never for a complete dictionary ([`CanonicalForm::is_complete`]).
    fn encode_span(&mut self, span: &[u8], tokens: &mut Vec<TokenId>) -> Result<(), EncodeError>;

    /// Another encoder over the same tables, with scratch memory of its own.
    fn clone_box(&self) -> Box<dyn SpanEncoder>;
}

/// The encoders of this crate by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Algorithm {
    /// [`BufferSweep`].
    BufferSweep,
    /// [`TailSweep`].
    TailSweep,
    /// [`MergeHeap`].
    MergeHeap,
    /// [`PriorityMerge`]: the default, since its worst case is O(n log n) and it takes every
    /// dictionary.
    #[default]
    PriorityMerge,
    /// `BpeBacktrack`, with the feature `backtrack`.
    #[cfg(feature = "backtrack")]
    BpeBacktrack,
}

impl Algorithm {
    /// All encoders that this build has.
    pub const ALL: &'static [Algorithm] = &[
        Algorithm::BufferSweep,
        Algorithm::TailSweep,
        Algorithm::MergeHeap,
        Algorithm::PriorityMerge,
        #[cfg(feature = "backtrack")]
        Algorithm::BpeBacktrack,
    ];

    /// The name of 001, in lower case with underscores.
    pub fn name(self) -> &'static str {
        match self {
            Algorithm::BufferSweep => "buffer_sweep",
            Algorithm::TailSweep => "tail_sweep",
            Algorithm::MergeHeap => "merge_heap",
            Algorithm::PriorityMerge => "priority_merge",
            #[cfg(feature = "backtrack")]
            Algorithm::BpeBacktrack => "bpe_backtrack",
        }
    }

    /// An encoder of this kind over `canonical`. O(1), but `BpeBacktrack`, which builds an
    /// automaton over all tokens.
    ///
    /// # Errors
    ///
    /// `BpeBacktrack` refuses dictionaries that are improper or whose atoms are not bytes.
    pub fn encoder(
        self,
        canonical: &Arc<CanonicalForm>,
    ) -> Result<Box<dyn SpanEncoder>, EncoderError> {
        let canonical = Arc::clone(canonical);
        Ok(match self {
            Algorithm::BufferSweep => Box::new(BufferSweep::new(canonical)),
            Algorithm::TailSweep => Box::new(TailSweep::new(canonical)),
            Algorithm::MergeHeap => Box::new(MergeHeap::new(canonical)),
            Algorithm::PriorityMerge => Box::new(PriorityMerge::new(canonical)),
            #[cfg(feature = "backtrack")]
            Algorithm::BpeBacktrack => Box::new(BpeBacktrack::new(canonical)?),
        })
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Algorithm {
    type Err = EncoderError;

    fn from_str(name: &str) -> Result<Self, EncoderError> {
        Self::ALL
            .iter()
            .copied()
            .find(|algorithm| algorithm.name() == name)
            .ok_or(EncoderError(EncoderKind::UnknownName))
    }
}

/// Why an encoder cannot be built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncoderError(EncoderKind);

#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(not(feature = "backtrack"), allow(dead_code))] // Only `BpeBacktrack` refuses anything.
enum EncoderKind {
    UnknownName,
    Improper { product: TokenId, side: TokenId },
    AtomsAreCharacters,
    Automaton,
}

impl EncoderError {
    /// True where the dictionary is improper and the encoder needs a proper one.
    pub fn is_improper(&self) -> bool {
        matches!(self.0, EncoderKind::Improper { .. })
    }
}

impl fmt::Display for EncoderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            EncoderKind::UnknownName => {
                f.write_str("no encoder has that name; there are")?;
                for (index, algorithm) in Algorithm::ALL.iter().enumerate() {
                    let separator = if index == 0 { " " } else { ", " };
                    write!(f, "{separator}{algorithm}")?;
                }
                Ok(())
            }
            EncoderKind::Improper { product, side } => write!(
                f,
                "the dictionary is improper: the rule of token {product} uses token {side}, which a \
                 later rule makes"
            ),
            EncoderKind::AtomsAreCharacters => {
                f.write_str("this encoder needs a dictionary whose atoms are bytes")
            }
            EncoderKind::Automaton => {
                f.write_str("the vocabulary is too large for an automaton over its tokens")
            }
        }
    }
}

impl core::error::Error for EncoderError {}

/// Why a text has no tokens: something in it is no token, and the dictionary has no other way to
/// write it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncodeError {
    offset: usize,
    missing: Missing,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Missing {
    Byte(u8),
    Character(char),
}

impl EncodeError {
    /// For encoders of other crates: no token stands for `byte`, which is `offset` bytes from the start.
    pub fn missing_byte(byte: u8, offset: usize) -> Self {
        let missing = Missing::Byte(byte);
        Self { offset, missing }
    }

    /// The same for a character.
    pub fn missing_character(character: char, offset: usize) -> Self {
        let missing = Missing::Character(character);
        Self { offset, missing }
    }

    /// Offset of what is missing, in bytes from the start of what was encoded.
    pub fn byte_offset(&self) -> usize {
        self.offset
    }

    /// The same error, seen from `bytes` further left: for a caller whose text starts before the
    /// span.
    pub fn shifted(mut self, bytes: usize) -> Self {
        self.offset += bytes;
        self
    }

    /// The same error at byte `offset`: for a caller who knows what the span was made from.
    pub fn at(mut self, offset: usize) -> Self {
        self.offset = offset;
        self
    }
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.missing {
            Missing::Byte(byte) => write!(f, "no token stands for the byte 0x{byte:02X}")?,
            Missing::Character(character) => {
                write!(f, "no token stands for the character {character:?}")?;
            }
        }
        write!(f, " (at byte {})", self.offset)
    }
}

impl core::error::Error for EncodeError {}

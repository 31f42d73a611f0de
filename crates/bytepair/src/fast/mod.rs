//! The fast path: the tokens of many pieces at once.
//!
//! | module | what it holds |
//! |---|---|
//! | `block` | the loops over some hundred pieces: keys, probes, misses, emission |
//! | `cache` | what a thread remembers of pieces, in fixed memory |
//! | `seed` | the vocabulary as pieces, shared by all threads |
//! | `characters` | the units that merging starts from |
//! | `merge` | merging the few units of short pieces, several in turn |
//! | `hash` | the keyed hash of all of these |
//! | `machine` | what the processor and the system can do; the only `unsafe` |
//!
//! The tokens of a piece depend on nothing but its bytes, so what the cache says is what merging would
//! say, whatever the dictionary.

mod block;
mod cache;
mod characters;
mod hash;
#[allow(unsafe_code)]
mod machine;
mod merge;
mod seed;

#[cfg(feature = "dfa")]
pub(crate) use self::machine::prefetch;

use std::sync::Arc;

use bpe_core::{CanonicalForm, EncodeError, SpanEncoder, TokenId};
use bpe_lexers::InstructionSet;

use self::block::{BLOCK, Block};
use self::cache::ID_BITS;
use self::characters::Characters;
use self::hash::Secret;
#[cfg(target_arch = "x86_64")]
use self::machine::Avx512;
use self::machine::{Portable, Tier, Work};
use self::merge::{Ascii, Merging, ROOM};
use self::seed::Seed;
use crate::pieces::{Pieces, WholePieces, encode_plainly};

/// Encodes pieces for one thread.
pub(crate) struct FastEncoder {
    tables: Arc<Tables>,
    /// For pieces of more than some units.
    encoder: Box<dyn SpanEncoder>,
    cache_bytes: usize,
    #[cfg(target_arch = "x86_64")]
    avx512: Option<Avx512>,
    /// Made when the first piece comes.
    block: Option<Box<Block>>,
}

/// What all threads share.
struct Tables {
    whole: Arc<WholePieces>,
    canonical: Arc<CanonicalForm>,
    seed: Seed,
    /// Where merging may start from characters, or at least goes in arrays.
    characters: Option<Characters>,
    ascii: Option<Ascii>,
}

impl FastEncoder {
    /// An encoder over `whole` and `encoder` with instructions of `set`; `None` where ids leave no room
    /// for a number of tokens.
    pub(crate) fn new(
        whole: &Arc<WholePieces>,
        canonical: &Arc<CanonicalForm>,
        encoder: Box<dyn SpanEncoder>,
        cache_bytes: usize,
        set: InstructionSet,
    ) -> Option<Self> {
        let vocabulary = whole.vocabulary();
        let most = vocabulary.max_id().unwrap_or(0);
        let is_dense = most as usize / 4 <= vocabulary.len();
        let characters = Characters::new(canonical);
        let bytes = characters.as_ref().map(|characters| characters.bytes);
        (most < ID_BITS && is_dense).then(|| Self {
            tables: Arc::new(Tables {
                whole: Arc::clone(whole),
                canonical: Arc::clone(canonical),
                seed: Seed::new(whole, Secret::get()),
                characters,
                ascii: bytes.map(|bytes| Ascii::new(canonical.pair_table(), &bytes)),
            }),
            encoder,
            cache_bytes,
            #[cfg(target_arch = "x86_64")]
            avx512: (set == InstructionSet::Avx512)
                .then(Avx512::detect)
                .flatten(),
            block: None,
        })
    }

    /// What merges pieces that are not in the cache.
    pub(crate) fn span_encoder(&self) -> Box<dyn SpanEncoder> {
        self.encoder.clone_box()
    }

    /// Appends the tokens that merging `span` gives.
    pub(crate) fn encode_span(
        &mut self,
        span: &[u8],
        ids: &mut Vec<TokenId>,
    ) -> Result<(), EncodeError> {
        self.encoder.encode_span(span, ids)
    }

    /// Another one over the same tables.
    pub(crate) fn duplicate(&self) -> Self {
        Self {
            tables: Arc::clone(&self.tables),
            encoder: self.encoder.clone_box(),
            cache_bytes: self.cache_bytes,
            #[cfg(target_arch = "x86_64")]
            avx512: self.avx512,
            block: None,
        }
    }

    /// Appends the tokens of all pieces, and to `counts`, if there is one, their numbers.
    ///
    /// # Errors
    ///
    /// As `PieceEncoder::encode`.
    pub(crate) fn encode(
        &mut self,
        text: &[u8],
        pieces: Pieces<'_>,
        ids: &mut Vec<TokenId>,
        counts: Option<&mut Vec<u32>>,
    ) -> Result<(), (usize, EncodeError)> {
        let last = pieces.ends.last().copied().unwrap_or(0);
        if u32::try_from(last).is_err() {
            // Places in the overflow have 32 bits, and such texts are rare.
            let (whole, encoder) = (&self.tables.whole, &mut *self.encoder);
            return encode_plainly(whole, encoder, text, pieces, ids, counts);
        }
        let text = text.get(pieces.offset..).unwrap_or_default();
        #[cfg(target_arch = "x86_64")]
        if let Some(avx512) = self.avx512 {
            let blocks = Blocks {
                encoder: self,
                tier: avx512,
                text,
                pieces,
                ids,
                counts,
            };
            return avx512.run(blocks);
        }
        self.encode_blocks(Portable, text, pieces, ids, counts)
    }

    #[inline(always)]
    fn encode_blocks<T: Tier>(
        &mut self,
        tier: T,
        text: &[u8],
        pieces: Pieces<'_>,
        ids: &mut Vec<TokenId>,
        mut counts: Option<&mut Vec<u32>>,
    ) -> Result<(), (usize, EncodeError)> {
        let mut block = match self.block.take() {
            Some(block) => block,
            None => new_block(self.cache_bytes),
        };
        let mut start = pieces.start;
        let mut done = 0;
        let mut result = Ok(());
        for ends in pieces.ends.chunks(BLOCK) {
            let missed = block.look_up(tier, text, start, ends);
            let settled = match missed {
                0 => Ok(()),
                _ => tier.run(Settling {
                    block: &mut block,
                    tables: &self.tables,
                    encoder: &mut *self.encoder,
                    text,
                    start,
                    ends,
                    missed,
                }),
            };
            let count = match settled {
                Ok(()) => ends.len(),
                Err((piece, _)) => piece,
            };
            block.emit(count, ids, counts.as_deref_mut());
            if let Err((piece, error)) = settled {
                result = Err((done + piece, error));
                break;
            }
            done += ends.len();
            start = ends.last().copied().unwrap_or(start);
        }
        self.block = Some(block);
        result
    }
}

/// A function of its own, since it needs a stack of many pages.
#[cold]
#[inline(never)]
fn new_block(cache_bytes: usize) -> Box<Block> {
    Box::new(Block::new(cache_bytes))
}

/// [`FastEncoder::encode_blocks`], as work.
struct Blocks<'a, T> {
    encoder: &'a mut FastEncoder,
    tier: T,
    text: &'a [u8],
    pieces: Pieces<'a>,
    ids: &'a mut Vec<TokenId>,
    counts: Option<&'a mut Vec<u32>>,
}

impl<T: Tier> Work for Blocks<'_, T> {
    type Output = Result<(), (usize, EncodeError)>;

    #[inline(always)]
    fn run(self) -> Self::Output {
        self.encoder
            .encode_blocks(self.tier, self.text, self.pieces, self.ids, self.counts)
    }
}

/// [`Block::settle`], as work.
struct Settling<'a> {
    block: &'a mut Block,
    tables: &'a Tables,
    encoder: &'a mut dyn SpanEncoder,
    text: &'a [u8],
    start: usize,
    ends: &'a [usize],
    missed: usize,
}

impl Work for Settling<'_> {
    type Output = Result<(), (usize, EncodeError)>;

    #[inline(always)]
    fn run(self) -> Self::Output {
        self.block.settle(
            self.tables,
            self.encoder,
            self.text,
            self.start,
            self.ends,
            self.missed,
        )
    }
}

impl Tables {
    /// Starts to merge a piece in arrays; `false` where that cannot be.
    #[inline(always)]
    fn start(&self, bytes: &[u8], merging: &mut Merging) -> bool {
        if let Some(ascii) = &self.ascii
            && bytes.len() <= ROOM
            && bytes.is_ascii()
        {
            merging.start_ascii(ascii, bytes);
            return true;
        }
        // A character has at most four bytes.
        if let Some(characters) = &self.characters
            && bytes.len() <= 4 * ROOM
            && let Some(count) = characters.units(bytes, merging.units_mut())
        {
            merging.start(self.canonical.pair_table(), count);
            return true;
        }
        false
    }
}

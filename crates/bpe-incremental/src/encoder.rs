//! The engine as a span encoder.

use alloc::boxed::Box;
use alloc::vec::Vec;

use bpe_core::{EncodeError, SpanEncoder, TokenId};

use crate::engine::{EMPTY, LastTokenEngine, Layout, Tables};
use crate::flat::Flat;
use crate::history::History;
use crate::lanes;

/// A [`SpanEncoder`] over a [`LastTokenEngine`].
///
/// Time a byte as a push ([cost](crate#cost)), whatever the span: useful for spans that someone else
/// may make long, and for texts without a pre-tokenizer; not useful for improper dictionaries, which
/// the engine refuses. After the longest span it allocates nothing. A tokenizer of the facade takes it as
/// its encoder through `TokenizerBuilder::custom_encoder`.
///
/// A span of bytes is cut into blocks of up to some 16 KiB at places that no token crosses, so that the
/// last tokens of a block stay in the nearest cache; where there is no such place a block is longer.
/// Several blocks are read at a time, since each waits for memory most of the time.
pub struct IncrementalEncoder {
    /// For dictionaries over characters.
    history: History,
    /// The values of the prefixes of some blocks.
    values: [Vec<u32>; LANES],
}

/// Blocks that are read at a time.
const LANES: usize = 4;

/// The least length of a block, but in spans of fewer than so many blocks,
const BLOCK: usize = 1 << 14;

/// and the least there.
const SHORT: usize = 1 << 8;

impl IncrementalEncoder {
    /// An encoder over `engine`. O(1).
    pub fn new(engine: &LastTokenEngine) -> Self {
        Self {
            history: engine.history(),
            values: Default::default(),
        }
    }
}

impl SpanEncoder for IncrementalEncoder {
    fn encode_span(&mut self, span: &[u8], tokens: &mut Vec<TokenId>) -> Result<(), EncodeError> {
        let tables = &*self.history.engine().tables;
        if tables.characters.is_some() {
            return encode_by_history(&mut self.history, span, tokens);
        }
        let first = tokens.len();
        let encoded = match &tables.layout {
            Layout::Flat(flat) => encode_blocks(flat, tables, span, &mut self.values, tokens),
            Layout::Wide(_) => encode_at_once(tables, span, &mut self.values[0], tokens),
        };
        encoded.map_err(|offset| {
            tokens.truncate(first);
            EncodeError::missing_byte(span[offset], offset)
        })
    }

    fn clone_box(&self) -> Box<dyn SpanEncoder> {
        Box::new(Self::new(self.history.engine()))
    }
}

/// In the flat layout, by blocks.
///
/// # Errors
///
/// The offset of the first byte that no token stands for.
fn encode_blocks(
    flat: &Flat,
    tables: &Tables,
    span: &[u8],
    values: &mut [Vec<u32>; LANES],
    tokens: &mut Vec<TokenId>,
) -> Result<(), usize> {
    let (ids, _) = tables.by_number();
    let mut end = 0;
    while end < span.len() {
        let start = end;
        let least = (span.len() - start).div_ceil(LANES).clamp(SHORT, BLOCK);
        let blocks = [(); LANES].map(|()| {
            let start = end;
            if start < span.len() {
                end = tables.block_end(span, start + least);
            }
            &span[start..end]
        });
        lanes::run(flat.view(), blocks, values).map_err(|offset| start + offset)?;
        let lens = blocks.map(<[u8]>::len);
        let starts = lanes::gather(values, lens, |value| value as usize & 0xFF);
        for ((values, start), len) in values.iter().zip(starts).zip(lens) {
            let values = &values[start..=len];
            tokens.extend(values.iter().map(|&value| ids[(value >> 8) as usize]));
        }
    }
    Ok(())
}

/// In the wide layout.
///
/// # Errors
///
/// As [`encode_blocks`].
fn encode_at_once(
    tables: &Tables,
    span: &[u8],
    values: &mut Vec<u32>,
    tokens: &mut Vec<TokenId>,
) -> Result<(), usize> {
    let (ids, lens) = tables.by_number();
    values.clear();
    values.push(EMPTY);
    let mut state = tables.start();
    tables.push_all(&mut state, span, values, |&value| value, |value, _| value)?;
    let lane = core::array::from_mut(values);
    let [start] = lanes::gather(lane, [span.len()], |value| lens[value as usize] as usize);
    let values = &values[start..];
    tokens.extend(values.iter().map(|&value| ids[value as usize]));
    Ok(())
}

fn encode_by_history(
    history: &mut History,
    span: &[u8],
    tokens: &mut Vec<TokenId>,
) -> Result<(), EncodeError> {
    history.clear();
    history.extend(span)?;
    let start = tokens.len();
    tokens.extend(history.tokens_from_end(span.len()).map(|token| token.id));
    tokens[start..].reverse();
    Ok(())
}

impl core::fmt::Debug for IncrementalEncoder {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("IncrementalEncoder")
            .field("engine", self.history.engine())
            .finish_non_exhaustive()
    }
}

//! Last tokens of all prefixes of whole blocks of text, over either layout.

use alloc::vec::Vec;

use crate::engine::{EMPTY, Value};

/// Stands for "no token" where a value is expected.
pub(crate) const NO_VALUE: Value = u32::MAX;

/// A layout as an automaton over bytes.
pub(crate) trait Step: Copy {
    /// The state of the empty text.
    fn start(self) -> u32;

    /// The state and the value after `byte`, which follows `previous`; `NO_VALUE` where no token ends
    /// there. `history(k)` is the value of the text before the byte without its last k - 1 bytes.
    fn step(
        self,
        state: u32,
        previous: u8,
        byte: u8,
        history: impl Fn(usize) -> Value,
    ) -> (u32, Value);
}

/// Pushes one byte after the other onto a history of any form, which ends with the prefix so far and
/// gets an entry for each more. `state` and `previous` are of the text so far; the state goes on.
///
/// # Errors
///
/// The offset of the first byte that no token stands for; what comes before it is there.
#[inline(always)]
pub(crate) fn push_all<E>(
    steps: impl Step,
    state: &mut u32,
    previous: u8,
    bytes: &[u8],
    history: &mut Vec<E>,
    value_of: impl Fn(&E) -> Value,
    entry: impl Fn(Value, u32) -> E,
) -> Result<(), usize> {
    let (mut now, mut previous) = (*state, previous);
    history.reserve(bytes.len());
    for (offset, &byte) in bytes.iter().enumerate() {
        let so_far = &history[..];
        let (next, value) = steps.step(now, previous, byte, |back| {
            value_of(&so_far[so_far.len() - back])
        });
        if value == NO_VALUE {
            *state = now;
            return Err(offset);
        }
        (now, previous) = (next, byte);
        history.push(entry(value, next));
    }
    *state = now;
    Ok(())
}

/// The values of all prefixes of some texts: of a prefix of n bytes in place n, the empty one's in place
/// 0. The texts are read in turn, byte by byte, so that one goes on while others wait for memory.
///
/// # Errors
///
/// The offset of the first byte that no token stands for, counted over all texts.
#[inline(always)]
pub(crate) fn run<const N: usize>(
    steps: impl Step,
    texts: [&[u8]; N],
    values: &mut [Vec<Value>; N],
) -> Result<(), usize> {
    for (text, values) in texts.iter().zip(values.iter_mut()) {
        if values.len() <= text.len() {
            values.resize(text.len() + 1, EMPTY);
        }
        values[0] = EMPTY;
    }
    // Slices, so that their ends are known in the loops.
    let lanes = values.each_mut().map(|values| &mut values[..]);
    let shortest = texts.iter().map(|text| text.len()).min().unwrap_or(0);
    let mut states = [steps.start(); N];
    let mut previous = [0; N];
    for at in 0..shortest {
        for lane in 0..N {
            let byte = texts[lane][at];
            let so_far = &lanes[lane][..=at];
            let (next, value) = steps.step(states[lane], previous[lane], byte, |back| {
                so_far[so_far.len() - back]
            });
            if value == NO_VALUE {
                return first_missing(steps, &texts);
            }
            lanes[lane][at + 1] = value;
            states[lane] = next;
            previous[lane] = byte;
        }
    }
    for lane in 0..N {
        let (text, values) = (texts[lane], &mut *lanes[lane]);
        let (mut state, mut previous) = (states[lane], previous[lane]);
        for at in shortest..text.len() {
            let so_far = &values[..=at];
            let (next, value) = steps.step(state, previous, text[at], |back| {
                so_far[so_far.len() - back]
            });
            if value == NO_VALUE {
                return first_missing(steps, &texts);
            }
            values[at + 1] = value;
            (state, previous) = (next, text[at]);
        }
    }
    Ok(())
}

/// A byte that is a token is one that some token ends at, whatever is before it.
#[cold]
fn first_missing(steps: impl Step, texts: &[&[u8]]) -> Result<(), usize> {
    let is_missing = |&byte: &u8| steps.step(steps.start(), 0, byte, |_| EMPTY).1 == NO_VALUE;
    let place = texts.iter().copied().flatten().position(is_missing);
    place.map_or(Ok(()), Err)
}

/// Moves the values of the tokens of each text to the end of its values, in their order: returns
/// where they begin. The values are those of all prefixes of texts of `lens` bytes; `len_of` says how long
/// the token of a value is.
///
/// From the end of a text each token says where the one before it ends, one load waiting for the
/// other: the texts are walked in turn.
#[inline(always)]
pub(crate) fn gather<const N: usize>(
    values: &mut [Vec<Value>; N],
    lens: [usize; N],
    len_of: impl Fn(Value) -> usize,
) -> [usize; N] {
    let mut lanes = values.each_mut().map(|values| &mut values[..]);
    let mut ends = lens;
    let mut starts = lens.map(|len| len + 1);
    // A token has a byte at least: what is written is never before what is still to be read.
    let mut walk = |lane: usize, ends: &mut [usize; N], starts: &mut [usize; N]| {
        let values = &mut *lanes[lane];
        let value = values[ends[lane]];
        starts[lane] -= 1;
        values[starts[lane]] = value;
        ends[lane] -= len_of(value);
    };
    while ends.iter().all(|&end| end > 0) {
        for lane in 0..N {
            walk(lane, &mut ends, &mut starts);
        }
    }
    for lane in 0..N {
        while ends[lane] > 0 {
            walk(lane, &mut ends, &mut starts);
        }
    }
    starts
}

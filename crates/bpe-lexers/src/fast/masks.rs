//! Which of 64 bytes are of which class of ASCII, without SIMD.

/// A bit for each of 64 bytes, the first byte in the lowest bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Masks {
    pub(super) upper: u64,
    pub(super) lower: u64,
    pub(super) digit: u64,
    pub(super) blank: u64,
    /// CR, LF
    pub(super) newline: u64,
    /// White space but for these.
    pub(super) white: u64,
    pub(super) apostrophe: u64,
    pub(super) slash: u64,
    /// Control characters but for white space.
    pub(super) control: u64,
    pub(super) non_ascii: u64,
    /// The bytes of a character after its first.
    pub(super) continuation: u64,
}

/// An instruction set. A value exists only where the processor has it.
pub(super) trait Tier: Copy {
    /// The masks of `bytes`.
    fn masks(self, bytes: &[u8; 64]) -> Masks;

    /// The first bytes of characters of three bytes that are known to be caseless letters by their
    /// first byte alone, or by their first two: CJK ideographs from U+4E00 and most Hangul. May miss some.
    fn caseless(self, bytes: &[u8; 64]) -> u64;

    /// The first bytes of characters from U+4E00 to U+9FA5 that are known by their first two. May miss some.
    fn han(self, bytes: &[u8; 64]) -> u64;

    /// Asks for the memory of `text` at a place that will be read soon. Does nothing, or changes nothing but
    /// time.
    #[inline(always)]
    fn prefetch(self, text: &[u8], place: usize) {
        let _ = (text, place);
    }

    /// Writes the numbers of the bits, ascending and counted from `from`, to the start of `room`, and
    /// anything behind them.
    #[inline(always)]
    fn places(self, mut bits: u64, from: usize, room: &mut [usize; 64]) {
        let mut place = 0;
        while bits != 0 {
            // Four at a time, since a branch for each costs more than a few stores too many.
            for next in 0..4 {
                room[(place + next) % 64] = from + bits.trailing_zeros() as usize;
                bits &= bits.wrapping_sub(1);
            }
            place += 4;
        }
    }
}

/// No instruction set in particular.
#[derive(Clone, Copy)]
pub(super) struct Portable;

impl Tier for Portable {
    fn masks(self, bytes: &[u8; 64]) -> Masks {
        let mut planes = [0_u64; 8];
        let (mut non_ascii, mut continuation, mut control) = (0, 0, 0);
        let (words, _) = bytes.as_chunks::<8>();
        for (number, word) in words.iter().enumerate() {
            let shift = number * 8;
            let classes = u64::from_le_bytes(word.map(|byte| CLASSES[usize::from(byte)]));
            for (bit, plane) in planes.iter_mut().enumerate() {
                *plane |= low_bits(classes >> bit) << shift;
            }
            let word = u64::from_le_bytes(*word);
            non_ascii |= low_bits(word >> 7) << shift;
            continuation |= low_bits((word >> 7) & !(word >> 6)) << shift;
            // The highest bit of a byte tells whether it is 0x20 or more, or 0x7F.
            let ascii = word & (0x7F * EACH);
            let printable = (ascii + 0x60 * EACH) & !(ascii + EACH);
            control |= low_bits(!(word | printable) >> 7) << shift;
        }
        let [
            upper,
            lower,
            digit,
            blank,
            newline,
            white,
            apostrophe,
            slash,
        ] = planes;
        Masks {
            upper,
            lower,
            digit,
            blank,
            newline,
            white,
            apostrophe,
            slash,
            control: control & !(newline | white),
            non_ascii,
            continuation,
        }
    }

    /// None: the table that follows knows them all.
    fn caseless(self, _: &[u8; 64]) -> u64 {
        0
    }

    /// None, likewise.
    fn han(self, _: &[u8; 64]) -> u64 {
        0
    }
}

/// 1 in each byte.
const EACH: u64 = 0x0101_0101_0101_0101;

/// The lowest bit of each byte, side by side.
#[inline(always)]
fn low_bits(word: u64) -> u64 {
    (word & EACH).wrapping_mul(0x0102_0408_1020_4080) >> 56
}

/// A bit for each class of [`Masks`], in its order.
static CLASSES: [u8; 256] = {
    let mut classes = [0; 256];
    let mut byte = 0;
    while byte < 128 {
        classes[byte] = match byte as u8 {
            b'A'..=b'Z' => 1,
            b'a'..=b'z' => 1 << 1,
            b'0'..=b'9' => 1 << 2,
            b' ' => 1 << 3,
            b'\r' | b'\n' => 1 << 4,
            b'\t' | 0x0B | 0x0C => 1 << 5,
            b'\'' => 1 << 6,
            b'/' => 1 << 7,
            _ => 0,
        };
        byte += 1;
    }
    classes
};

//! The map of characters that a `.model` file brings along: a double array of strings to be replaced,
//! and what they are replaced with.
//!
//! First the bytes of the array as a 32-bit number, then the array, then the replacements, each with a
//! zero byte behind it. A cell of the array has the byte that leads to it (bits 0 to 7), whether a
//! string ends there (bit 8), and how to go on: its own place, exclusive or its offset (bits 10 to 30,
//! times 256 where bit 9 is set), exclusive or the next byte. The cell where a string ends has the
//! place of its replacement. All numbers are little-endian.

/// A map that was checked: every replacement is text.
#[derive(Debug, Clone, Default)]
pub(super) struct CharsMap {
    cells: Vec<u32>,
    replacements: String,
}

/// `sentencepiece` asks for the matches at a place and takes up to so many, from the shortest on.
const MOST_MATCHES: usize = 32;

impl CharsMap {
    /// The map that `blob` is; one that changes nothing where it is empty. Says what is wrong.
    pub(super) fn read(blob: &[u8]) -> Result<Self, &'static str> {
        if blob.is_empty() {
            return Ok(Self::default());
        }
        let (length, rest) = blob.split_first_chunk::<4>().ok_or("no length")?;
        let length = u32::from_le_bytes(*length) as usize;
        let (cells, replacements) = rest
            .split_at_checked(length)
            .ok_or("the array breaks off")?;
        let (cells, odd) = cells.as_chunks::<4>();
        if !odd.is_empty() || cells.is_empty() {
            return Err("the array has no whole number of cells");
        }
        let replacements =
            str::from_utf8(replacements).map_err(|_| "a replacement is not UTF-8")?;
        if !replacements.is_empty() && !replacements.ends_with('\0') {
            return Err("the last replacement breaks off");
        }
        Ok(Self {
            cells: cells.iter().map(|cell| u32::from_le_bytes(*cell)).collect(),
            replacements: replacements.to_owned(),
        })
    }

    /// Whether nothing is replaced.
    pub(super) fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// The longest string at the start of `text` that is replaced: its length in bytes, which is not 0,
    /// and its replacement.
    ///
    /// Cost: O(bytes of the longest string of the map).
    pub(super) fn longest_match(&self, text: &str) -> Option<(usize, &str)> {
        let offset = |cell: u32| ((cell >> 10) << ((cell & 1 << 9) >> 6)) as usize;
        let mut at = offset(*self.cells.first()?);
        let mut longest = None;
        let mut matches = 0;
        for (index, byte) in text.bytes().enumerate() {
            at ^= usize::from(byte);
            let Some(&cell) = self.cells.get(at) else {
                break;
            };
            // A cell that holds a place, not a byte, has the highest bit.
            if cell & (1 << 31 | 0xFF) != u32::from(byte) {
                break;
            }
            at ^= offset(cell);
            if cell >> 8 & 1 == 1 {
                let place = self.cells.get(at).map(|cell| cell & 0x7FFF_FFFF);
                longest = place.map(|place| (index + 1, place));
                matches += 1;
                if matches == MOST_MATCHES {
                    break;
                }
            }
        }
        let (length, place) = longest?;
        let replacement = self.replacements.get(place as usize..)?;
        let end = replacement.find('\0')?;
        // A map may be made by hand, and end in the middle of a character: no match then.
        let replacement = replacement.get(..end)?;
        text.is_char_boundary(length)
            .then_some((length, replacement))
    }
}

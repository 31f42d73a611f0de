//! Offsets without the white space at the ends of tokens.

use std::ops::Range;

use crate::pipeline::blanks::Blanks;
use crate::pipeline::model_input::ModelInput;

/// Takes blanks away from the ends of each token's range, as many as it has, here and in what overflows. A token's
/// range is counted in characters of the text, as `tokenizers` counts where it gives offsets in characters.
///
/// Cost: O(bytes of the text), and O(log bytes) for each token that has some.
pub(super) fn trim_offsets(input: &mut ModelInput, text: &str, prefix_space: bool) {
    let characters = Characters::of(text);
    trim_part(input, &characters, prefix_space);
    for part in input.overflowing_mut() {
        trim_part(part, &characters, prefix_space);
    }
}

fn trim_part(part: &mut ModelInput, characters: &Characters, prefix_space: bool) {
    for (index, (blanks, range)) in part.offsets_mut().enumerate() {
        let Blanks {
            mut leading,
            trailing,
        } = blanks;
        // One blank before the first token is the one that the pre-tokenizer set there.
        if (index == 0 || range.start == 0) && prefix_space && leading == 1 {
            leading = 0;
        }
        if leading == 0 && trailing == 0 {
            continue;
        }
        let Range { mut start, mut end } = characters.numbers(range);
        start = start.saturating_add(leading).min(end);
        if let Some(trimmed) = end.checked_sub(trailing) {
            end = trimmed.max(start);
        }
        *range = characters.places(start..end);
    }
}

/// Where the characters of a text begin, and its end.
struct Characters {
    /// Nothing where each is one byte.
    starts: Option<Vec<usize>>,
}

impl Characters {
    fn of(text: &str) -> Self {
        let starts = || {
            let starts = text.char_indices().map(|(place, _)| place);
            starts.chain([text.len()]).collect()
        };
        Self {
            starts: (!text.is_ascii()).then(starts),
        }
    }

    /// The characters that begin at these bytes, by their numbers.
    fn numbers(&self, bytes: &Range<usize>) -> Range<usize> {
        let number = |byte: usize| match &self.starts {
            Some(starts) => starts.partition_point(|&start| start < byte),
            None => byte,
        };
        number(bytes.start)..number(bytes.end)
    }

    /// The bytes at which characters of these numbers begin.
    fn places(&self, numbers: Range<usize>) -> Range<usize> {
        let place = |number: usize| match &self.starts {
            Some(starts) => starts.get(number).copied().unwrap_or_default(),
            None => number,
        };
        place(numbers.start)..place(numbers.end)
    }
}

//! What `sentencepiece` does to a text before it is encoded.

use std::ops::Range;

use super::charsmap::CharsMap;

/// The steps, as a file says them.
#[derive(Debug, Clone)]
pub(crate) struct SentencePieceNormalizer {
    pub(super) charsmap: CharsMap,
    /// A blank is set before a text.
    pub(crate) add_dummy_prefix: bool,
    /// Of blanks in a row one stays, and none at the ends.
    pub(crate) remove_extra_whitespaces: bool,
    /// Blanks are written as U+2581.
    pub(crate) escape_whitespaces: bool,
    /// Pieces that stay as they are, sorted.
    pub(super) kept: Vec<String>,
    /// Bytes of the longest of them.
    pub(super) longest_kept: usize,
}

/// A stretch of the normalized text, from `at` to the next one: the bytes of the original that it
/// stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stretch {
    pub(crate) at: usize,
    pub(crate) original: Range<usize>,
}

/// How blanks are written where they are escaped.
const BLANK: char = '\u{2581}';

impl SentencePieceNormalizer {
    /// The normalized text. Where `stretches` are asked for, they say where it comes from.
    ///
    /// Cost: O(bytes), times the longest string of the map of characters.
    pub(crate) fn normalize(&self, text: &str, mut stretches: Option<&mut Vec<Stretch>>) -> String {
        if stretches.is_none() && self.writes_blanks_only() {
            return self.write_blanks(text);
        }
        let mut out = String::with_capacity(text.len() + text.len() / 4 + 3);
        let blank = match self.escape_whitespaces {
            true => BLANK,
            false => ' ',
        };
        let mut put = |out: &mut String, part: &str, original: Range<usize>| {
            if let Some(stretches) = stretches.as_deref_mut() {
                let at = out.len();
                stretches.push(Stretch { at, original });
            }
            match self.escape_whitespaces && part.contains(' ') {
                true => out.extend(part.chars().map(|c| if c == ' ' { BLANK } else { c })),
                false => out.push_str(part),
            }
        };
        let mut at = 0;
        if self.remove_extra_whitespaces {
            while let Some((length, " ")) = self.next(&text[at..]) {
                at += length;
            }
        }
        if at == text.len() {
            return out;
        }
        if self.add_dummy_prefix {
            put(&mut out, " ", at..at);
        }
        let mut after_blank = self.remove_extra_whitespaces;
        while let Some((length, part)) = self.next(&text[at..]) {
            let part = match after_blank {
                true => part.trim_start_matches(' '),
                false => part,
            };
            if !part.is_empty() {
                put(&mut out, part, at..at + length);
                after_blank = self.remove_extra_whitespaces && part.ends_with(' ');
            }
            at += length;
        }
        if self.remove_extra_whitespaces {
            out.truncate(out.trim_end_matches(blank).len());
            if let Some(stretches) = stretches {
                while stretches
                    .pop_if(|stretch| stretch.at >= out.len())
                    .is_some()
                {}
            }
        }
        out
    }

    /// Whether a map of characters comes with the file.
    pub(crate) fn maps_characters(&self) -> bool {
        !self.charsmap.is_empty()
    }

    /// Whether each character becomes what it becomes alone, but for the blank before the text.
    pub(crate) fn is_local(&self) -> bool {
        self.charsmap.is_empty() && !self.remove_extra_whitespaces
    }

    /// What a character becomes then.
    pub(crate) fn written(&self, character: char) -> char {
        match character {
            ' ' if self.escape_whitespaces => BLANK,
            other => other,
        }
    }

    /// The same without a blank before the text.
    pub(crate) fn without_prefix(&self) -> Self {
        Self {
            add_dummy_prefix: false,
            ..self.clone()
        }
    }

    /// Whether all that is done is a blank before the text, and another character for blanks.
    fn writes_blanks_only(&self) -> bool {
        self.charsmap.is_empty() && !self.remove_extra_whitespaces && self.escape_whitespaces
    }

    fn write_blanks(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len() + text.len() / 2 + 3);
        if self.add_dummy_prefix && !text.is_empty() {
            out.push(BLANK);
        }
        let mut words = text.split(' ');
        out.extend(words.next());
        for word in words {
            out.push(BLANK);
            out.push_str(word);
        }
        out
    }

    /// What comes next: its length in the text, and what it becomes. `None` at the end.
    fn next<'t>(&'t self, text: &'t str) -> Option<(usize, &'t str)> {
        let first = text.chars().next()?;
        if let Some(kept) = self.kept_prefix(text) {
            return Some((kept.len(), kept));
        }
        match self.charsmap.longest_match(text) {
            Some(replaced) => Some(replaced),
            None => Some((first.len_utf8(), text.get(..first.len_utf8())?)),
        }
    }

    /// The longest piece at the start of `text` that stays as it is.
    fn kept_prefix<'t>(&self, text: &'t str) -> Option<&'t str> {
        if self.kept.is_empty() {
            return None;
        }
        let first = text.as_bytes().first()?;
        let same_start = self
            .kept
            .partition_point(|kept| kept.as_bytes().first() < Some(first));
        if self.kept.get(same_start)?.as_bytes().first() != Some(first) {
            return None;
        }
        let longest = self.longest_kept.min(text.len());
        let lengths = (1..=longest)
            .rev()
            .filter(|&length| text.is_char_boundary(length));
        let mut prefixes = lengths.filter_map(|length| text.get(..length));
        prefixes.find(|&prefix| {
            self.kept
                .binary_search_by(|kept| kept.as_str().cmp(prefix))
                .is_ok()
        })
    }
}

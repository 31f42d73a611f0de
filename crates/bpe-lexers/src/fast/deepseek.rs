//! deepseek_v3: its three stages in one pass, and the third alone.
//!
//! The first stage makes each group of up to three numbers a segment, the second each run of Han characters
//! and kana, the third cuts what these leave:
//!
//! ```text
//! [!-/:-~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
//! ```
//!
//! (the first class is the punctuation of ASCII). The edges of segments are boundaries, and what stands before
//! one ends there as it does at the end of a text. All else is as in the other families, but for control
//! characters: no branch begins with one, except that one may stand before a word. A run of them is a gap.

use super::masks::Tier;
use super::table::{CASELESS, CONTROL, ClassTable, LOWER, MARK, NUMBER, SYMBOL, UPPER, WHITE};
use super::window::{BYTES, Found, Lexing, behind_last_newline, first_byte_of, groups};

/// How many numbers the first stage makes a segment at most.
const GROUP: usize = 3;

/// The three stages in sequence.
pub(super) struct DeepseekV3;

impl Lexing for DeepseekV3 {
    #[inline(always)]
    fn starts<T: Tier>(
        tier: T,
        table: &ClassTable,
        rest: &[u8],
        bytes: &[u8; BYTES],
        valid: u64,
        at_end: bool,
    ) -> Found {
        let ascii = tier.masks(bytes);
        let letters = ascii.upper | ascii.lower;
        let (blank, newline) = (ascii.blank, ascii.newline);
        let first_bytes = !ascii.continuation;
        let mut word = letters;
        let mut number = ascii.digit;
        let mut white = blank | newline | ascii.white;
        let mut control = ascii.control & valid;
        let mut han_or_kana = 0;
        if ascii.non_ascii != 0 {
            let known = tier.han(bytes);
            han_or_kana = known | known << 1 | known << 2;
            let mut by_class = [0_u64; 8];
            let mut left = ascii.non_ascii & first_bytes & !known;
            while left != 0 {
                let place = left.trailing_zeros() as usize;
                left &= left - 1;
                let first = usize::from(bytes[place % BYTES]);
                let (class, length) = table.after_ascii(rest, place, first);
                let bits = ((1 << length) - 1) << place;
                by_class[usize::from(class & 7)] |= bits;
                if is_han_or_kana(rest, place) {
                    han_or_kana |= bits;
                }
            }
            for class in [UPPER, LOWER, CASELESS, MARK] {
                word |= by_class[usize::from(class)];
            }
            word |= known | known << 1 | known << 2;
            number |= by_class[usize::from(NUMBER)];
            white |= by_class[usize::from(WHITE)];
            control |= by_class[usize::from(CONTROL)];
        }
        let symbol = valid & !(word | number | white | control);

        // Where segments start.
        let number_starts = number & !(number << 1);
        let behind_numbers = (number << 1) & !number;
        let edges = (number_starts | behind_numbers | (han_or_kana ^ (han_or_kana << 1))) & valid;
        let mut starts = edges | groups(GROUP, number, number_starts, first_bytes);

        // Symbols and the newlines behind them.
        let after_symbol = (symbol << 1) & newline & !edges;
        let tail = (newline & !newline.wrapping_add(after_symbol)) | after_symbol;
        let after_blank = (blank << 1) & !edges;
        let symbol_starts = symbol & (!(symbol << 1) | edges) & !after_blank;
        starts |= symbol_starts;

        // White space.
        let white_alone = white & !tail;
        let no_newline = white & !newline;
        starts |= white_alone & !(white_alone << 1);
        starts |= behind_last_newline(newline & !tail, newline, no_newline);
        let last = no_newline & !(white >> 1) & (valid >> 1) & !(edges >> 1);
        starts |= first_byte_of(last, first_bytes);

        // Words. Letters of ASCII behind punctuation of ASCII alone are one pre-token with it, and what goes on
        // behind them is another.
        let punctuation = symbol_starts & !ascii.non_ascii;
        let joined = (punctuation << 1) & letters;
        let word_starts = word & !(word << 1);
        starts |= word_starts & !(no_newline << 1) & !(control << 1) & !joined;
        starts |= letters.wrapping_add(joined) & !letters & word;

        // Control characters, of which the last may stand before a word.
        starts |= control & !(control << 1);
        let before_word = control & !(control >> 1) & (word >> 1) & !(edges >> 1);
        starts |= first_byte_of(before_word, first_bytes);

        if !at_end {
            // These may go on behind the window, and change where the last of them begins.
            let run = white.leading_ones().max(control.leading_ones());
            if run > 0 {
                starts &= u64::MAX >> (run - 1);
            }
        }
        Found {
            starts: starts & !1,
            to_the_end: at_end,
        }
    }

    fn end(table: &ClassTable, text: &[u8], start: usize) -> usize {
        Scalar::<true>::new(table, text, start).end(start)
    }
}

/// Is this pre-token of the three stages none of the third, but what stands between those?
pub(super) fn is_gap(table: &ClassTable, piece: &[u8]) -> bool {
    match table.at(piece, 0) {
        Some((NUMBER, _)) => true,
        Some((CONTROL, length)) => {
            let next = table.at(piece, length);
            next.is_none_or(|(class, _)| class == CONTROL)
        }
        _ => false,
    }
}

/// Returns the end of the match of the third stage, alone, at `start`; `None` where it does not match.
pub(super) fn third_stage(table: &ClassTable, text: &[u8], start: usize) -> Option<usize> {
    Scalar::<false>::new(table, text, start).match_at(start)
}

/// Is the character that starts at `at` one of those that the second stage takes?
#[inline(always)]
pub(super) fn is_han_or_kana(text: &[u8], at: usize) -> bool {
    let byte = |place: usize| u32::from(text.get(at + place).copied().unwrap_or(0));
    let bytes = byte(0) << 16 | byte(1) << 8 | byte(2);
    // U+3040 to U+30FF, U+4E00 to U+9FA5.
    (0xE3_8180..=0xE3_83BF).contains(&bytes) || (0xE4_B880..=0xE9_BEA5).contains(&bytes)
}

/// One pre-token, character by character: of the three stages (`SPLIT`), or of the third on all of a text.
struct Scalar<'t, const SPLIT: bool> {
    table: &'t ClassTable,
    text: &'t [u8],
    /// Which of the segments of the second stage it is.
    han_or_kana: bool,
}

impl<'t, const SPLIT: bool> Scalar<'t, SPLIT> {
    fn new(table: &'t ClassTable, text: &'t [u8], start: usize) -> Self {
        Self {
            table,
            text,
            han_or_kana: SPLIT && is_han_or_kana(text, start),
        }
    }

    /// The end of the piece at `start`, which may be a gap.
    fn end(&self, start: usize) -> usize {
        match self.table.at(self.text, start) {
            Some((NUMBER, _)) if SPLIT => return self.numbers(start),
            Some(_) => {}
            None => return start,
        }
        if let Some(end) = self.match_at(start) {
            return end;
        }
        // Up to where the next match begins.
        let mut at = start;
        while let Some((_, length)) = self.at(at) {
            at += length;
            if self.match_at(at).is_some() {
                break;
            }
        }
        at
    }

    /// The match of the third stage.
    fn match_at(&self, start: usize) -> Option<usize> {
        let (class, length) = self.at(start)?;
        let first = self.text.get(start).copied().unwrap_or(0);
        let second = start + length;
        if first.is_ascii_punctuation() {
            let letters = self.text.get(second..).unwrap_or_default();
            let letters = letters.iter().take_while(|byte| byte.is_ascii_alphabetic());
            let count = letters.count();
            if count > 0 {
                return Some(second + count);
            }
        }
        if Self::in_word(class) {
            return Some(self.run(second, Self::in_word));
        }
        let after = self.at(second).map(|(class, _)| class);
        let is_newline = first == b'\n' || first == b'\r';
        if class != SYMBOL && !is_newline && after.is_some_and(Self::in_word) {
            return Some(self.run(second, Self::in_word));
        }
        if class == SYMBOL || (first == b' ' && after == Some(SYMBOL)) {
            let mut end = self.run(second, |class| class == SYMBOL);
            while matches!(self.at(end), Some((WHITE, _)))
                && matches!(self.text.get(end), Some(b'\n' | b'\r'))
            {
                end += 1;
            }
            return Some(end);
        }
        (class == WHITE).then(|| self.white_space(start))
    }

    /// The class and length of a character of the segment; `None` behind its end.
    #[inline(always)]
    fn at(&self, at: usize) -> Option<(u8, usize)> {
        let (class, length) = self.table.at(self.text, at)?;
        let other_segment =
            SPLIT && (class == NUMBER || is_han_or_kana(self.text, at) != self.han_or_kana);
        (!other_segment).then_some((class, length))
    }

    fn in_word(class: u8) -> bool {
        matches!(class, UPPER | LOWER | CASELESS | MARK)
    }

    /// The end of the characters from `at` whose class is `wanted`.
    #[inline(always)]
    fn run(&self, mut at: usize, wanted: impl Fn(u8) -> bool) -> usize {
        while let Some((class, length)) = self.at(at)
            && wanted(class)
        {
            at += length;
        }
        at
    }

    /// The end of a group of numbers.
    fn numbers(&self, mut at: usize) -> usize {
        for _ in 0..GROUP {
            match self.table.at(self.text, at) {
                Some((NUMBER, length)) => at += length,
                _ => break,
            }
        }
        at
    }

    /// The end of white space: `\s*[\r\n]+|\s+(?!\S)|\s+`.
    fn white_space(&self, start: usize) -> usize {
        let mut at = start;
        let (mut last, mut after_newline) = (start, start);
        while let Some((WHITE, length)) = self.at(at) {
            last = at;
            at += length;
            if matches!(self.text.get(last), Some(b'\n' | b'\r')) {
                after_newline = at;
            }
        }
        if after_newline > start {
            return after_newline;
        }
        match self.at(at).is_none() || last == start {
            true => at,
            // Its last character goes with what follows.
            false => last,
        }
    }
}

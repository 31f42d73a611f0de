//! One pre-token, character by character: for what the masks leave out, and for single calls.

use super::rules::{Contractions, Rules};
use super::table::{CASELESS, CONTROL, ClassTable, LOWER, MARK, NUMBER, SYMBOL, UPPER, WHITE};
use crate::contraction;

/// Returns the end of the pre-token that starts at byte `start` of `text`, a character boundary
/// before its end. Looks at the pre-token, and white space or capitals after it.
pub(super) fn end<R: Rules>(table: &ClassTable, text: &[u8], start: usize) -> usize {
    let place = Place {
        table,
        text,
        rules: core::marker::PhantomData::<R>,
    };
    place.end(start)
}

struct Place<'t, R> {
    table: &'t ClassTable,
    text: &'t [u8],
    rules: core::marker::PhantomData<R>,
}

impl<R: Rules> Place<'_, R> {
    #[inline(always)]
    fn end(&self, start: usize) -> usize {
        let rule = const { R::RULE };
        let Some((class, length)) = self.table.at(self.text, start) else {
            return start;
        };
        let first = self.text.get(start).copied().unwrap_or(0);
        let second = start + length;
        if first == b'\'' {
            let letters = match rule.contractions {
                Contractions::Alone => contraction::in_any_case(self.rest(second)),
                Contractions::AloneInLowerCase => contraction::in_lower_case(self.rest(second)),
                Contractions::AfterWord | Contractions::None => 0,
            };
            if letters > 0 {
                return second + letters;
            }
        }
        if Self::in_word(class) {
            return self.word(start);
        }
        let after = self.table.at(self.text, second).map(|(class, _)| class);
        let newline = first == b'\n' || first == b'\r';
        let takes_prefix = match rule.prefix {
            true => !newline && class != NUMBER,
            false => first == b' ',
        };
        if takes_prefix && after.is_some_and(Self::in_word) {
            return self.word(second);
        }
        if class == NUMBER {
            return self.numbers(start);
        }
        let blank_and_numbers = !rule.prefix && !rule.numbers_first;
        if blank_and_numbers && first == b' ' && after == Some(NUMBER) {
            return self.numbers(second);
        }
        if Self::is_other(class) {
            return self.others(second);
        }
        if first == b' ' && after.is_some_and(Self::is_other) {
            return self.others(second);
        }
        self.white_space(start)
    }

    fn rest(&self, at: usize) -> &[u8] {
        self.text.get(at..).unwrap_or_default()
    }

    /// Is a character of this class part of a word?
    #[inline(always)]
    fn in_word(class: u8) -> bool {
        matches!(class, UPPER | LOWER | CASELESS) || (R::RULE.cases && class == MARK)
    }

    /// `[^\s\p{L}\p{N}]`, which a mark is too.
    #[inline(always)]
    fn is_other(class: u8) -> bool {
        matches!(class, SYMBOL | CONTROL | MARK)
    }

    /// The end of the characters from `at` whose class is `wanted`.
    #[inline(always)]
    fn run(&self, mut at: usize, wanted: impl Fn(u8) -> bool) -> usize {
        while let Some((class, length)) = self.table.at(self.text, at) {
            if !wanted(class) {
                break;
            }
            at += length;
        }
        at
    }

    /// The end of the word whose first letter (or mark) is at `at`.
    #[inline(always)]
    fn word(&self, mut at: usize) -> usize {
        if !R::RULE.cases {
            return self.run(at, Self::in_word);
        }
        // U*L+ first: up to where the upper-case part, which takes all it can, ends.
        let mut caseless_end = None;
        let lower = loop {
            match self.table.at(self.text, at) {
                Some((UPPER, length)) => at += length,
                Some((CASELESS | MARK, length)) => {
                    at += length;
                    caseless_end = Some(at);
                }
                Some((LOWER, _)) => break true,
                _ => break false,
            }
        };
        let end = match (lower, caseless_end) {
            (true, _) => self.run(at, |class| matches!(class, LOWER | CASELESS | MARK)),
            // It gives back what stands behind its last character that L+ can take.
            (false, Some(end)) => end,
            // U+L*, where U+ has nothing that L* could take.
            (false, None) => at,
        };
        if R::RULE.contractions == Contractions::AfterWord && self.text.get(end) == Some(&b'\'') {
            let letters = contraction::in_any_case(self.rest(end + 1));
            if letters > 0 {
                return end + 1 + letters;
            }
        }
        end
    }

    #[inline(always)]
    fn numbers(&self, mut at: usize) -> usize {
        if R::RULE.numbers == 0 {
            return self.run(at, |class| class == NUMBER);
        }
        for _ in 0..R::RULE.numbers {
            match self.table.at(self.text, at) {
                Some((NUMBER, length)) => at += length,
                _ => break,
            }
        }
        at
    }

    /// The end of a run of others that goes on at `at`, and what belongs to it.
    #[inline(always)]
    fn others(&self, at: usize) -> usize {
        let mut end = self.run(at, Self::is_other);
        if R::RULE.newlines {
            while let Some(byte) = self.text.get(end) {
                let belongs = matches!(byte, b'\n' | b'\r') || (R::RULE.slash && *byte == b'/');
                if !belongs {
                    break;
                }
                end += 1;
            }
        }
        end
    }

    #[inline(always)]
    fn white_space(&self, start: usize) -> usize {
        let mut at = start;
        let (mut last, mut after_newline) = (start, start);
        while let Some((WHITE, length)) = self.table.at(self.text, at) {
            last = at;
            at += length;
            if matches!(self.text.get(last), Some(b'\n' | b'\r')) {
                after_newline = at;
            }
        }
        let at_end = match self.table.at(self.text, at) {
            Some((NUMBER, _)) => R::RULE.numbers_first,
            Some(_) => false,
            None => true,
        };
        if R::RULE.newlines && after_newline > start && !(R::RULE.whole_at_end && at_end) {
            return after_newline;
        }
        match at_end || last == start {
            true => at,
            // Its last character goes with what follows.
            false => last,
        }
    }
}

//! What stands in brackets.

use super::{DEEPEST, Reader, Refused, named_set};

/// `\w` inside brackets.
const WORD: &str = r"[\p{Alphabetic}\p{M}\p{Nd}\p{Pc}]";
const NO_WORD: &str = r"[^\p{Alphabetic}\p{M}\p{Nd}\p{Pc}]";

impl Reader<'_> {
    /// Reads a class, behind its `[`.
    pub(super) fn class(&mut self, place: usize) -> Result<(), Refused> {
        if self.depth >= DEEPEST {
            return Err(Refused::at(self.place, "classes nested so deep"));
        }
        self.depth += 1;
        self.regex.push('[');
        let negated = self.eat("^");
        if negated {
            self.regex.push('^');
        }
        // What stands on this side of the last `&&`.
        let mut items = 0_usize;
        loop {
            let start = self.place;
            let Some(character) = self.next() else {
                return Err(Refused::at(place, "a `[` without its `]`"));
            };
            match character {
                ']' if items > 0 => break,
                '[' if self.rest().starts_with(':') => self.bracket(start)?,
                '[' if self.folds => {
                    return Err(Refused::at(
                        start,
                        "a class in a class that matches both cases",
                    ));
                }
                '[' if negated && self.rest().starts_with('^') => {
                    // It goes wrong in Oniguruma where the class inside has all characters.
                    return Err(Refused::at(start, "a negated class in a negated class"));
                }
                '[' => self.class(start)?,
                '&' if self.rest().starts_with('&') => {
                    self.place += 1;
                    if self.folds {
                        let refused = "an intersection that matches both cases";
                        return Err(Refused::at(start, refused));
                    }
                    if items == 0 || self.rest().starts_with(['&', ']']) {
                        return Err(Refused::at(
                            start,
                            "an intersection with nothing on one side",
                        ));
                    }
                    self.regex.push_str("&&");
                    items = 0;
                    continue;
                }
                _ => self.item(start, character)?,
            }
            items += 1;
        }
        self.regex.push(']');
        self.depth -= 1;
        Ok(())
    }

    /// Reads what stands in a class, behind its first character: a range, a character, or a named set.
    fn item(&mut self, start: usize, character: char) -> Result<(), Refused> {
        if character == '\\' {
            let set = self.peek();
            let set = set.and_then(|escaped| named_set(escaped, [WORD, NO_WORD]));
            if let Some(set) = set {
                self.place += 1;
                return self.named(start, set);
            }
            if matches!(self.peek(), Some('p' | 'P')) {
                let property = self.property(start)?;
                return self.named(start, &property);
            }
        }
        let first = self.member(start, character)?;
        let ends = self.rest().starts_with("-]") || self.rest().starts_with("-&&");
        if !self.rest().starts_with('-') || ends {
            return Ok(());
        }
        self.place += 1;
        self.regex.push('-');
        let place = self.place;
        let last = match self.next() {
            Some(last) if !"[-".contains(last) && character != '-' => self.member(place, last)?,
            _ => return Err(Refused::at(start, "a range of this kind")),
        };
        match first <= last {
            // A third end would be one of another range.
            true if self.rest().starts_with('-') && !self.rest().starts_with("-]") => {
                Err(Refused::at(self.place, "a `-` between two ranges"))
            }
            true => Ok(()),
            false => Err(Refused::at(start, "a range that falls")),
        }
    }

    /// Writes a named set in a class.
    fn named(&mut self, start: usize, set: &str) -> Result<(), Refused> {
        if self.folds {
            return Err(Refused::at(
                start,
                "a named set in brackets that matches both cases",
            ));
        }
        if self.rest().starts_with('-') && !self.rest().starts_with("-]") {
            return Err(Refused::at(self.place, "a `-` behind a named set"));
        }
        self.regex.push_str(set);
        Ok(())
    }

    /// Reads a character of a class and writes it.
    fn member(&mut self, start: usize, character: char) -> Result<char, Refused> {
        let member = match character {
            '\\' if self.eat("b") => '\u{8}',
            '\\' => self.escaped_character(start)?,
            // A `-` that is neither first nor last begins no range.
            '-' if !self.rest().starts_with(']') && !self.regex.ends_with(['[', '^']) => {
                return Err(Refused::at(start, "a `-` that is neither first nor last"));
            }
            _ => character,
        };
        if self.folds && !member.is_ascii() {
            let refused = "a character beyond ASCII that matches both cases";
            return Err(Refused::at(start, refused));
        }
        match character {
            '\\' => self.push_escaped(member),
            _ => {
                let special = "[]&~".contains(character) && !self.stands_alone(start, character);
                if special {
                    self.regex.push('\\');
                }
                self.regex.push(character);
            }
        }
        Ok(member)
    }

    /// Whether a character with a meaning in our classes has none here: `&` and `~` that are not doubled.
    fn stands_alone(&self, start: usize, character: char) -> bool {
        "&~".contains(character)
            && !self.rest().starts_with(character)
            && !self
                .pattern
                .get(..start)
                .unwrap_or_default()
                .ends_with(character)
    }

    /// Reads a POSIX bracket, behind its `[`.
    fn bracket(&mut self, start: usize) -> Result<(), Refused> {
        self.place += 1;
        let negated = self.eat("^");
        let name = self.rest().split(":]").next().unwrap_or_default();
        let set = match name {
            "alpha" => r"\p{Alphabetic}",
            "alnum" => r"\p{Alphabetic}\p{Nd}",
            "ascii" => r"\x00-\x7F",
            "blank" => r"\p{Zs}\t",
            "cntrl" => r"\p{Cc}",
            "digit" => r"\p{Nd}",
            "lower" => r"\p{Lowercase}",
            "punct" => r"\p{P}\p{S}",
            "space" => r"\s",
            "upper" => r"\p{Uppercase}",
            "word" => r"\p{Alphabetic}\p{M}\p{Nd}\p{Pc}",
            "xdigit" => "0-9A-Fa-f",
            _ => return Err(Refused::at(start, "a POSIX bracket of this name")),
        };
        self.place += name.len() + 2;
        let sign = if negated { "^" } else { "" };
        self.named(start, &format!("[{sign}{set}]"))
    }
}

//! Patterns as `tokenizers` reads them, by Oniguruma in its own syntax, written in the syntax of our
//! engines.

mod class;

use regex_syntax::is_escapeable_character;

/// How deep groups and classes may be nested.
const DEEPEST: usize = 100;

/// `\w` and the edges of `\b`, outside brackets: letters, marks, digits, connectors and six numbers.
const WORD: &str = r"[\p{Alphabetic}\p{M}\p{Nd}\p{Pc}²³¹¼-¾]";
const NO_WORD: &str = r"[^\p{Alphabetic}\p{M}\p{Nd}\p{Pc}²³¹¼-¾]";

/// A pattern in the syntax of our engines.
#[derive(Debug)]
pub(crate) struct Translated {
    pub(crate) regex: String,
    /// Whether a match can be empty, whatever stands beside it.
    pub(crate) can_be_empty: bool,
}

/// What of a pattern is not done.
#[derive(Debug)]
pub(crate) struct Refused {
    /// The place in the pattern, in bytes.
    pub(crate) place: usize,
    pub(crate) what: &'static str,
}

impl Refused {
    fn at(place: usize, what: &'static str) -> Self {
        Self { place, what }
    }
}

/// Writes `pattern` so that our engines find the same matches. Known patterns stay as they are, and what is
/// written is read again as it is. O(bytes).
///
/// # Errors
///
/// What is not known to mean the same, is malformed, or is nested too deep.
pub(crate) fn translate(pattern: &str) -> Result<Translated, Refused> {
    let mut reader = Reader {
        pattern,
        place: 0,
        regex: String::new(),
        depth: 0,
        folds: false,
        behind: false,
        last_letter: None,
    };
    let can_be_empty = reader.alternatives()?;
    match reader.peek() {
        None => Ok(Translated {
            regex: reader.regex,
            can_be_empty,
        }),
        Some(_) => Err(Refused::at(reader.place, "a `)` without its `(`")),
    }
}

struct Reader<'p> {
    pattern: &'p str,
    /// What is read, in bytes.
    place: usize,
    /// What is written.
    regex: String,
    depth: usize,
    /// Whether letters match both cases here.
    folds: bool,
    /// Whether this is what a look-behind looks for.
    behind: bool,
    /// The letter just read, where it is one that could match a ligature together with the next, and
    /// whether it stands where letters match both cases.
    last_letter: Option<(char, bool)>,
}

/// What a quantifier stands behind.
struct Atom {
    can_be_empty: bool,
    repeatable: bool,
}

const PLAIN: Atom = Atom {
    can_be_empty: false,
    repeatable: true,
};
const ASSERTION: Atom = Atom {
    can_be_empty: true,
    repeatable: false,
};

impl<'p> Reader<'p> {
    fn rest(&self) -> &'p str {
        self.pattern.get(self.place..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let next = self.peek();
        self.place += next.map_or(0, char::len_utf8);
        next
    }

    /// Writes the next character as it is.
    fn copy(&mut self) {
        let next = self.next();
        self.regex.extend(next);
    }

    fn eat(&mut self, text: &str) -> bool {
        let found = self.rest().starts_with(text);
        self.place += if found { text.len() } else { 0 };
        found
    }

    /// Reads up to the end of the group; says whether that can be empty.
    fn alternatives(&mut self) -> Result<bool, Refused> {
        if self.depth >= DEEPEST {
            return Err(Refused::at(self.place, "groups nested so deep"));
        }
        self.depth += 1;
        let mut can_be_empty = self.branch()?;
        while self.eat("|") {
            self.regex.push('|');
            self.last_letter = None;
            can_be_empty |= self.branch()?;
        }
        self.depth -= 1;
        Ok(can_be_empty)
    }

    fn branch(&mut self) -> Result<bool, Refused> {
        let mut can_be_empty = true;
        while let Some(next) = self.peek() {
            if next == '|' || next == ')' {
                break;
            }
            let (place, written) = (self.place, self.regex.len());
            let atom = self.atom()?;
            can_be_empty &= self.quantified(&atom, place, written)?;
        }
        Ok(can_be_empty)
    }

    fn atom(&mut self) -> Result<Atom, Refused> {
        let place = self.place;
        let Some(character) = self.next() else {
            return Err(Refused::at(self.place, "an end where more should follow"));
        };
        match character {
            '(' => return self.group(place),
            '[' => {
                self.last_letter = None;
                self.class(place)?;
            }
            '\\' => return self.escape(place),
            '.' => self.written("."),
            // Lines begin behind each newline but one that ends the text, and end before each and at the end.
            '^' => return Ok(self.assertion(r"(?:\A|(?<=\n)(?!\z))")),
            '$' => return Ok(self.assertion(r"(?:(?=\n)|\z)")),
            '*' | '+' | '?' => {
                return Err(Refused::at(place, "a quantifier with nothing before it"));
            }
            '{' if self.interval().is_some() => {
                return Err(Refused::at(place, "a quantifier with nothing before it"));
            }
            _ => self.literal(place, character)?,
        }
        Ok(PLAIN)
    }

    /// Writes what is no letter.
    fn written(&mut self, regex: &str) {
        self.last_letter = None;
        self.regex.push_str(regex);
    }

    fn assertion(&mut self, regex: &str) -> Atom {
        self.written(regex);
        ASSERTION
    }

    /// Writes what our engines would fold, and Oniguruma does not.
    fn set(&mut self, regex: &str) {
        match self.folds {
            true => self.written(&format!("(?-i:{regex})")),
            false => self.written(regex),
        }
    }

    /// Writes a character that stands for itself.
    fn literal(&mut self, place: usize, character: char) -> Result<(), Refused> {
        self.letter(place, character)?;
        if r"\.+*?()|[]{}^$".contains(character) {
            self.regex.push('\\');
        }
        self.regex.push(character);
        Ok(())
    }

    /// Refuses letters that Oniguruma would fold into one with others, or one into others, as sharp s is.
    fn letter(&mut self, place: usize, character: char) -> Result<(), Refused> {
        if self.folds && !character.is_ascii() {
            let refused = "a character beyond ASCII that matches both cases";
            return Err(Refused::at(place, refused));
        }
        let letter = character.to_ascii_lowercase();
        if let Some((before, folds)) = self.last_letter
            && (folds || self.folds)
            && matches!((before, letter), ('s', 's' | 't') | ('f', 'f' | 'i' | 'l'))
        {
            let refused = "letters of a ligature that match both cases (ss, st, ff, fi, fl)";
            return Err(Refused::at(place, refused));
        }
        self.last_letter = matches!(letter, 's' | 'f').then_some((letter, self.folds));
        Ok(())
    }

    /// Reads a group, behind its `(`.
    fn group(&mut self, place: usize) -> Result<Atom, Refused> {
        let part = |can_be_empty| Atom {
            can_be_empty,
            repeatable: true,
        };
        if !self.eat("?") {
            return Ok(part(self.inner("(", place)?));
        }
        for look in ["=", "!", "<=", "<!"] {
            if self.eat(look) {
                self.last_letter = None;
                let before = self.behind;
                self.behind |= look.starts_with('<');
                let is_empty = self.inner(&format!("(?{look}"), place)?;
                self.behind = before;
                if is_empty && look.starts_with('<') {
                    let refused = "a look-behind at what can be nothing";
                    return Err(Refused::at(place, refused));
                }
                self.last_letter = None;
                return Ok(ASSERTION);
            }
        }
        for kind in [":", ">"] {
            if self.eat(kind) {
                if self.behind && kind == ">" {
                    return Err(Refused::at(place, "a look-behind at what takes all it can"));
                }
                return Ok(part(self.inner(&format!("(?{kind}"), place)?));
            }
        }
        for (flag, folds) in [("i", true), ("-i", false)] {
            let written = format!("(?{flag}:");
            let before = self.folds;
            if self.rest().starts_with(&format!("{flag}:")) {
                self.place += flag.len() + 1;
                self.folds = folds;
                let can_be_empty = self.inner(&written, place)?;
                self.folds = before;
                return Ok(part(can_be_empty));
            }
            if self.rest().starts_with(&format!("{flag})")) {
                // It holds to the end of the group, and takes the alternatives behind it along.
                self.place += flag.len() + 1;
                self.folds = folds;
                self.regex.push_str(&written);
                let can_be_empty = self.alternatives()?;
                self.regex.push(')');
                self.folds = before;
                return Ok(Atom {
                    can_be_empty,
                    repeatable: false,
                });
            }
        }
        Err(Refused::at(place, "a group of this kind"))
    }

    /// Reads a group from behind its beginning, which is written as `open`; says whether it can be empty.
    fn inner(&mut self, open: &str, place: usize) -> Result<bool, Refused> {
        self.regex.push_str(open);
        let can_be_empty = self.alternatives()?;
        if !self.eat(")") {
            return Err(Refused::at(place, "a `(` without its `)`"));
        }
        self.regex.push(')');
        Ok(can_be_empty)
    }

    /// Reads what repeats the atom that was read from `place` on and is written from `written` on.
    /// Says whether that can be empty.
    fn quantified(&mut self, atom: &Atom, place: usize, written: usize) -> Result<bool, Refused> {
        let start = self.place;
        let (least, most) = match self.peek() {
            Some('*') => (0, None),
            Some('+') => (1, None),
            Some('?') => (0, Some(1)),
            Some('{') => match self.interval() {
                Some((least, most, _)) => (least, most),
                None => return Ok(atom.can_be_empty),
            },
            _ => return Ok(atom.can_be_empty),
        };
        if !atom.repeatable {
            return Err(Refused::at(
                self.place,
                "a quantifier behind what is no part of a match",
            ));
        }
        if atom.can_be_empty && most.is_none_or(|most| most > 1) {
            return Err(Refused::at(place, "a repetition of what can match nothing"));
        }
        if most.is_some_and(|most| most < least) {
            return Err(Refused::at(self.place, "a quantifier whose numbers fall"));
        }
        if (least, most) != (1, Some(1)) || self.peek() != Some('{') {
            self.last_letter = None;
        }
        let mut can_be_empty = atom.can_be_empty || least == 0;
        if self.peek() == Some('{') {
            can_be_empty |= self.counted(written);
        } else {
            self.copy();
            if self.behind && self.peek() == Some('+') {
                return Err(Refused::at(
                    self.place,
                    "a look-behind at what takes all it can",
                ));
            }
            if matches!(self.peek(), Some('?' | '+')) {
                // The lazy and the possessive form.
                self.copy();
            }
        }
        let again = matches!(self.peek(), Some('*' | '+' | '?')) || self.interval().is_some();
        if again {
            return Err(Refused::at(start, "a quantifier behind a quantifier"));
        }
        Ok(can_be_empty)
    }

    /// Writes the interval that comes next. `{n}?` is a choice here, and `{n}+` a repetition. Says whether it
    /// is the choice.
    fn counted(&mut self, written: usize) -> bool {
        let length = self.interval().map_or(0, |(.., length)| length);
        let read = self.rest().get(..length).unwrap_or_default();
        self.place += length;
        match read.strip_prefix("{,") {
            Some(read) => self.regex.push_str(&format!("{{0,{read}")),
            None => self.regex.push_str(read),
        }
        let is_fixed = !read.contains(',');
        match self.peek() {
            Some('?') if !is_fixed => self.copy(),
            Some(suffix @ ('?' | '+')) => {
                self.place += 1;
                self.regex.insert_str(written, "(?:");
                self.regex.push(')');
                self.regex.push(suffix);
                return suffix == '?';
            }
            _ => {}
        }
        false
    }

    /// The interval that comes next, if it is one: the least, the most, and its length in bytes. A `{` that
    /// begins none stands for itself.
    fn interval(&self) -> Option<(u32, Option<u32>, usize)> {
        let rest = self.rest().strip_prefix('{')?;
        let (least, rest) = digits(rest);
        let (most, rest) = match rest.strip_prefix(',') {
            Some(rest) => digits(rest),
            None => (least, rest),
        };
        let length = self.rest().len() - rest.strip_prefix('}')?.len();
        if least.is_empty() && most.is_empty() {
            return None;
        }
        let number = |digits: &str| match digits.is_empty() {
            true => Some(None),
            false => digits.parse().ok().map(Some),
        };
        Some((number(least)?.unwrap_or(0), number(most)?, length))
    }

    /// Reads an escape outside brackets, behind its `\`.
    fn escape(&mut self, place: usize) -> Result<Atom, Refused> {
        let escaped = self.peek();
        if let Some(set) = escaped.and_then(|escaped| named_set(escaped, [WORD, NO_WORD])) {
            self.place += 1;
            self.set(set);
            return Ok(PLAIN);
        }
        match escaped {
            Some('b' | 'B' | 'A' | 'z' | 'Z') => {
                self.place += 1;
                let edge = |after, before| {
                    format!("(?:(?<={WORD})(?{after}{WORD})|(?<!{WORD})(?{before}{WORD}))")
                };
                let regex = match escaped {
                    Some('b') => edge("!", "="),
                    Some('B') => edge("=", "!"),
                    Some('A') => r"\A".to_owned(),
                    Some('z') => r"\z".to_owned(),
                    _ => r"(?=\n?\z)".to_owned(),
                };
                return Ok(self.assertion(&regex));
            }
            Some('p' | 'P') => {
                let property = self.property(place)?;
                self.set(&property);
            }
            _ => {
                let character = self.escaped_character(place)?;
                self.letter(place, character)?;
                self.push_escaped(character);
            }
        }
        Ok(PLAIN)
    }

    /// Writes a character that was read as an escape.
    fn push_escaped(&mut self, character: char) {
        match character {
            '\n' => self.regex.push_str(r"\n"),
            '\r' => self.regex.push_str(r"\r"),
            '\t' => self.regex.push_str(r"\t"),
            _ if character.is_control() => {
                self.regex
                    .push_str(&format!("\\x{{{:X}}}", u32::from(character)));
            }
            _ => {
                if is_escapeable_character(character) {
                    self.regex.push('\\');
                }
                self.regex.push(character);
            }
        }
    }

    /// Reads the character that an escape stands for, behind its `\`.
    fn escaped_character(&mut self, place: usize) -> Result<char, Refused> {
        let Some(escaped) = self.next() else {
            return Err(Refused::at(place, "a `\\` at the end"));
        };
        let code = match escaped {
            'n' => return Ok('\n'),
            'r' => return Ok('\r'),
            't' => return Ok('\t'),
            'f' => return Ok('\u{C}'),
            'v' => return Ok('\u{B}'),
            'a' => return Ok('\u{7}'),
            'e' => return Ok('\u{1B}'),
            'x' if self.eat("{") => {
                let digits = self.rest().split('}').next().unwrap_or_default();
                self.place += digits.len();
                hexadecimal(digits, 1..=8).filter(|_| self.eat("}"))
            }
            // Two digits are a byte of UTF-8.
            'x' => self.digits(2).filter(|code| *code < 0x80),
            'u' => self.digits(4),
            _ if escaped.is_alphanumeric() => None,
            _ => return Ok(escaped),
        };
        code.and_then(char::from_u32)
            .ok_or_else(|| Refused::at(place, "an escape of this kind"))
    }

    /// Reads `count` hexadecimal digits.
    fn digits(&mut self, count: usize) -> Option<u32> {
        let digits = self.rest().get(..count)?;
        self.place += count;
        hexadecimal(digits, count..=count)
    }

    /// Reads a property, from its `p` or `P` on, and returns how it is written.
    fn property(&mut self, place: usize) -> Result<String, Refused> {
        let refused = "a property other than a general category or a script";
        let negated = self.next() == Some('P');
        if !self.eat("{") {
            return Err(Refused::at(place, "a property without braces"));
        }
        let negated = negated != self.eat("^");
        let name = self.rest().split('}').next().unwrap_or_default();
        self.place += name.len();
        let is_name = name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        let known = |kind| regex_syntax::parse(&format!(r"\p{{{kind}={name}}}")).is_ok();
        let own = ["Alphabetic", "Lowercase", "Uppercase", "White_Space"];
        if !self.eat("}") || !is_name || !(known("gc") || known("sc") || own.contains(&name)) {
            return Err(Refused::at(place, refused));
        }
        let sign = if negated { 'P' } else { 'p' };
        Ok(format!(r"\{sign}{{{name}}}"))
    }
}

/// The set that an escape names, where `words` are `\w` and `\W`.
fn named_set(escaped: char, words: [&'static str; 2]) -> Option<&'static str> {
    Some(match escaped {
        'w' => words[0],
        'W' => words[1],
        'h' => "[0-9A-Fa-f]",
        'H' => "[^0-9A-Fa-f]",
        'd' => r"\d",
        'D' => r"\D",
        's' => r"\s",
        'S' => r"\S",
        _ => return None,
    })
}

/// The digits that `text` begins with, and what is behind them.
fn digits(text: &str) -> (&str, &str) {
    let rest = text.trim_start_matches(|character: char| character.is_ascii_digit());
    text.split_at(text.len() - rest.len())
}

/// The number that so many hexadecimal digits stand for.
fn hexadecimal(digits: &str, count: std::ops::RangeInclusive<usize>) -> Option<u32> {
    let are_digits = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    (are_digits && count.contains(&digits.len()))
        .then(|| u32::from_str_radix(digits, 16).ok())
        .flatten()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_means_the_same_is_copied_and_the_rest_is_written_anew() {
        for (pattern, written) in [
            (
                r"[^\r\n\p{L}\p{N}]?\p{L}+(?i:'s|'t)",
                r"[^\r\n\p{L}\p{N}]?\p{L}+(?i:'s|'t)",
            ),
            (
                r"[!#$%&'\-./:@\[\\\]^_`{|}~]",
                r"[!#$%&'\-./:@\[\\\]^_`{|}~]",
            ),
            (r"\s+(?!\S)|a*?b++", r"\s+(?!\S)|a*?b++"),
            (r"\p{N}{1,3}+", r"(?:\p{N}{1,3})+"),
            (r"a{2}?b{,3}", r"(?:a{2})?b{0,3}"),
            (r"a{2,2}?-#[a-][^-b]", r"a{2,2}?-#[a-][^-b]"),
            ("ab(?i)c|d", "ab(?i:c|d)"),
            (r"(?i:\p{Lu})[]a]{x", r"(?i:(?-i:\p{Lu}))[\]a]\{x"),
            (
                r"[[:^digit:]~~&x]\h\u00e9\<",
                r"[[^\p{Nd}]\~\~&x][0-9A-Fa-f]é<",
            ),
            (r"a$", r"a(?:(?=\n)|\z)"),
        ] {
            let read = translate(pattern).expect(pattern);
            assert_eq!(read.regex, written);
            assert_eq!(translate(written).expect(written).regex, written);
        }
    }

    #[test]
    fn what_is_not_known_to_mean_the_same_is_refused_with_its_place() {
        for (pattern, place) in [
            (r"a\1", 1),
            (r"\pL", 0),
            ("a(?m:b)", 1),
            ("b(?<name>a)", 1),
            ("a(b", 1),
            ("ab)", 2),
            ("é[a", 2),
            ("*a", 0),
            ("a**", 1),
            ("(?=a)*b", 5),
            ("(a*)+", 0),
            ("a{3,1}", 1),
            (r"(?i)a\xe9", 5),
            ("(?i)ß", 4),
            ("(?i)as(?:s)", 9),
            ("(?i)s{1}s", 8),
            ("(?i)(?:f){1,1}i", 14),
            (r"(?i)[\p{L}]", 5),
            ("[a-c-e]", 4),
            (r"[\w-a]", 3),
            ("[a&&&b]", 2),
            ("[[:graph:]]", 1),
            (r"\p{Foo}", 0),
            ("(?<=a*)b", 0),
            ("(?<!a++)b", 6),
            ("[^[^a]b]", 2),
        ] {
            assert_eq!(
                translate(pattern).expect_err(pattern).place,
                place,
                "{pattern}"
            );
        }
        for nested in [
            "(".repeat(1_000_000),
            "[a".repeat(1_000_000),
            "(?i)".repeat(1_000_000),
            "a{".repeat(1_000_000) + ")",
        ] {
            assert!(translate(&nested).is_err());
        }
    }

    #[test]
    fn patterns_that_can_match_nothing_are_known() {
        for pattern in [
            "a*",
            "(?=b)",
            "a|",
            "(?<!a)(?=[)(])",
            "(?>a*)",
            "a*+",
            r"(?=\()b?",
            "",
            "(?i)",
            "^",
            "a{0}",
            "a{2}?",
        ] {
            assert!(translate(pattern).expect(pattern).can_be_empty, "{pattern}");
        }
        for pattern in [
            r"\s+(?!\S)|\s+",
            "a++",
            "(?>a+)b*",
            "[(?=]+",
            r"\(?=b",
            "(?<=(a))b",
            "a{1,}",
            "a{2,2}?",
        ] {
            assert!(
                !translate(pattern).expect(pattern).can_be_empty,
                "{pattern}"
            );
        }
    }

    const SYNTAX: &str = r"(?:[()\[\]|*+?^$.\\{},:=!<>&~-]|[abdiswpuxzLWS0-9éß]|\(\?[:=!>i-]|\\[pP]\{|\[:|\{2\}|&&){0,12}";

    proptest! {
        #[test]
        fn what_is_written_is_read_again_as_it_is(pattern in SYNTAX) {
            if let Ok(read) = translate(&pattern) {
                let again = translate(&read.regex).ok();
                let again = again.map(|again| (again.regex, again.can_be_empty));
                prop_assert_eq!(again, Some((read.regex, read.can_be_empty)));
            }
        }
    }
}

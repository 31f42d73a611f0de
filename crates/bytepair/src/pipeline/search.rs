//! What steps look for in a text: a string or a pattern.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use bpe_lexers::{Engine, LexError, Lexer, Pattern};
use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, Hir, HirKind};
use serde_json::Value;

use crate::error::LoadError;
use crate::pipeline::node::Node;

/// A string or a pattern, ready to be found.
#[derive(Clone)]
pub(crate) struct Search {
    /// The string, where it is one.
    text: Option<String>,
    /// The pattern, or one that matches the string.
    pattern: Pattern,
    lexer: Box<dyn Lexer>,
    /// The characters of which matches consist; `None` where a match may hang on others. Made when it is asked
    /// for.
    characters: Arc<OnceLock<Option<ClassUnicode>>>,
}

impl Search {
    /// What a `pattern` of a step says.
    pub(crate) fn read(node: &Node<'_>) -> Result<Self, LoadError> {
        let expected = "an object with either String or Regex";
        let Value::Object(object) = node.value() else {
            return Err(node.malformed(expected));
        };
        if object.len() != 1 {
            return Err(node.malformed(expected));
        }
        let (text, regex) = (node.field("String"), node.field("Regex"));
        if !text.is_null() {
            let string = text.text()?;
            if string.is_empty() {
                return Err(text.unsupported("an empty string"));
            }
            return Self::new(
                &text,
                Some(string.to_owned()),
                Pattern::new(&escaped(string)),
            );
        }
        if regex.is_null() {
            return Err(node.malformed(expected));
        }
        let pattern = oniguruma(&regex)?;
        if pattern.family().is_none() && can_match_nothing(pattern.as_str()) {
            // `tokenizers` cuts at such matches.
            return Err(regex.unsupported("a pattern that can match nothing at all"));
        }
        Self::new(&regex, None, pattern)
    }

    /// The string `text`.
    pub(crate) fn of_text(node: &Node<'_>, text: &str) -> Result<Self, LoadError> {
        Self::new(node, Some(text.to_owned()), Pattern::new(&escaped(text)))
    }

    /// `pattern`, made ready; `node` is named where no engine runs it.
    pub(crate) fn new(
        node: &Node<'_>,
        text: Option<String>,
        pattern: Pattern,
    ) -> Result<Self, LoadError> {
        // A string is no spelling of a known pattern: to ask would take longer than all the rest.
        let engine = match text {
            Some(_) => Engine::Automata,
            None => Engine::Auto,
        };
        let lexer = pattern
            .lexer(engine)
            .map_err(|error| LoadError::caused(node.place(), error))?;
        Ok(Self {
            text,
            pattern,
            lexer,
            characters: Arc::default(),
        })
    }

    /// The string, where it is no pattern.
    pub(crate) fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }

    pub(crate) fn pattern(&self) -> &Pattern {
        &self.pattern
    }

    /// Whether it is known of which characters matches consist, and that they hang on no other.
    pub(crate) fn is_known(&self) -> bool {
        self.characters().is_some()
    }

    /// Whether a match may contain `character`, as far as is known.
    pub(crate) fn may_match(&self, character: char) -> bool {
        self.characters().is_none_or(|characters| {
            let ranges = characters.ranges();
            let after = ranges.partition_point(|range| range.start() <= character);
            let range = after.checked_sub(1).and_then(|index| ranges.get(index));
            range.is_some_and(|range| character <= range.end())
        })
    }

    fn characters(&self) -> Option<&ClassUnicode> {
        let characters = self.characters.get_or_init(|| {
            let hir = regex_syntax::parse(self.pattern.as_str()).ok()?;
            let mut characters = ClassUnicode::empty();
            add_characters(&hir, &mut characters).then_some(characters)
        });
        characters.as_ref()
    }

    /// A prototype of what runs the pattern.
    pub(crate) fn lexer(&self) -> &dyn Lexer {
        &*self.lexer
    }
}

impl fmt::Debug for Search {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.text {
            Some(text) => f.debug_tuple("String").field(text).finish(),
            None => f
                .debug_tuple("Regex")
                .field(&self.pattern.as_str())
                .finish(),
        }
    }
}

/// The pattern that `tokenizers` compiles with Oniguruma, in Ruby's syntax. What means something else
/// there is refused: `^` and `$` stand at lines, `(?m)` is about the full stop, `\Z` comes before a last
/// newline. Patterns of a known family have none of it.
fn oniguruma(node: &Node<'_>) -> Result<Pattern, LoadError> {
    let regex = node.text()?;
    let pattern = Pattern::new(regex);
    if pattern.family().is_some() {
        return Ok(pattern);
    }
    let refused = |what: &str| {
        let what = format!("{what}, which is another thing in Oniguruma's syntax,");
        Err(node.unsupported(what))
    };
    let mut depth = 0_usize;
    let mut characters = regex.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\\' => {
                if let Some(escaped) = characters.next().filter(|next| "ZGKRX".contains(*next)) {
                    return refused(&format!("\\{escaped}"));
                }
            }
            '[' => {
                depth += 1;
                characters.next_if_eq(&'^');
                characters.next_if_eq(&']');
            }
            ']' => depth = depth.saturating_sub(1),
            '^' | '$' if depth == 0 => return refused(&character.to_string()),
            '(' if depth == 0 && characters.next_if_eq(&'?').is_some() => {
                while let Some(flag) = characters.next_if(|next| next.is_ascii_lowercase()) {
                    if flag == 'm' || flag == 's' {
                        return refused(&format!("the flag {flag}"));
                    }
                }
            }
            _ => {}
        }
    }
    Ok(pattern)
}

/// Adds all characters that a match can contain. False where it may hang on others: it looks at what stands
/// before or behind it.
fn add_characters(hir: &Hir, characters: &mut ClassUnicode) -> bool {
    match hir.kind() {
        HirKind::Empty => true,
        HirKind::Literal(literal) => match std::str::from_utf8(&literal.0) {
            Ok(text) => {
                let ranges = text.chars().map(|c| ClassUnicodeRange::new(c, c));
                ranges.for_each(|range| characters.push(range));
                true
            }
            Err(_) => false,
        },
        HirKind::Class(Class::Unicode(class)) => {
            characters.union(class);
            true
        }
        HirKind::Class(Class::Bytes(_)) | HirKind::Look(_) => false,
        HirKind::Repetition(repetition) => add_characters(&repetition.sub, characters),
        HirKind::Capture(capture) => add_characters(&capture.sub, characters),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => {
            parts.iter().all(|part| add_characters(part, characters))
        }
    }
}

/// Whether a match of `regex` can be empty, as far as can be seen: what it looks ahead or behind at is no
/// part of a match. No where it is beyond `regex-syntax` even without that.
fn can_match_nothing(regex: &str) -> bool {
    let hir = regex_syntax::parse(&without_looks(regex));
    hir.is_ok_and(|hir| hir.properties().minimum_len() == Some(0))
}

/// `regex` with an empty group in place of each that looks ahead or behind, and without what keeps a
/// match from being tried again (`++`, `(?>`).
fn without_looks(regex: &str) -> String {
    let mut plain = String::new();
    // How deep in a class, and how deep in a group that looks.
    let (mut class, mut look) = (0_usize, 0_usize);
    let mut rest = regex;
    while let Some(character) = rest.chars().next() {
        let looks = ["(?=", "(?!", "(?<=", "(?<!"];
        let mut taken = character.len_utf8();
        let mut written = None;
        match character {
            '\\' => {
                taken += rest
                    .get(1..)
                    .and_then(|rest| rest.chars().next())
                    .map_or(0, char::len_utf8)
            }
            '[' => class += 1,
            ']' => class = class.saturating_sub(1),
            '(' if class == 0 && look > 0 => look += 1,
            '(' if class == 0 && looks.iter().any(|open| rest.starts_with(open)) => {
                look = 1;
                plain.push_str("(?:)");
            }
            '(' if class == 0 && rest.starts_with("(?>") => {
                (taken, written) = (3, Some("(?:"));
            }
            ')' if class == 0 && look > 0 => {
                look -= 1;
                written = Some("");
            }
            '*' | '+' | '?' if class == 0 && rest.get(1..2) == Some("+") => {
                (taken, written) = (2, rest.get(..1));
            }
            _ => {}
        }
        if look == 0 {
            plain.push_str(written.unwrap_or(rest.get(..taken).unwrap_or_default()));
        }
        rest = rest.get(taken..).unwrap_or_default();
    }
    plain
}

/// A regex that matches `text` and nothing else. Only what has a meaning is escaped: an escaped `<`
/// is the start of a word.
fn escaped(text: &str) -> String {
    let mut regex = String::new();
    for character in text.chars() {
        if r"\.+*?()|[]{}^$#&-~".contains(character) {
            regex.push('\\');
        }
        regex.push(character);
    }
    regex
}

/// Calls `visit` for each place of `text` where the string or the pattern is found, in order and
/// without overlap.
pub(crate) fn for_each_match(
    search: &Search,
    text: &str,
    mut visit: impl FnMut(Range<usize>),
) -> Result<(), LexError> {
    if let Some(wanted) = search.text() {
        // This test is quicker than the search.
        if !text.contains(wanted) {
            return Ok(());
        }
        for (start, found) in text.match_indices(wanted) {
            visit(start..start + found.len());
        }
        return Ok(());
    }
    let mut lexer = search.lexer().clone_box();
    let mut start = 0;
    while let Some(found) = lexer.next_pre_token(text, start)? {
        start = found.end;
        visit(found);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_that_can_match_nothing_are_known() {
        for regex in [
            "a*",
            "(?=b)",
            "a|",
            "(?<!a)(?=[)(])",
            "(?>a*)",
            "a*+",
            r"(?=\()b?",
        ] {
            assert!(can_match_nothing(regex), "{regex}");
        }
        for regex in [
            r"\s+(?!\S)|\s+",
            "a++",
            "(?>a+)b*",
            r"[(?=]+",
            r"\(?=b",
            "(?<=(a))b",
        ] {
            assert!(!can_match_nothing(regex), "{regex}");
        }
    }
}

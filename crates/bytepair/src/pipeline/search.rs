//! What steps look for in a text: a string or a pattern.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use bpe_lexers::{Engine, LexError, Lexer, Pattern};
use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, Hir, HirKind};
use serde_json::Value;

use crate::error::LoadError;
use crate::pipeline::node::Node;
use crate::pipeline::oniguruma::{Refused, translate};

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
        let translated = translate(regex.text()?).map_err(|Refused { place, what }| {
            regex.unsupported(format!("{what}, at byte {place} of the pattern,"))
        })?;
        if translated.can_be_empty {
            // `tokenizers` cuts at such matches.
            return Err(regex.unsupported("a pattern that can match nothing at all"));
        }
        Self::new(&regex, None, Pattern::new(&translated.regex))
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

    /// A text, and the bytes of the matches in it.
    type Found = (String, Vec<(usize, usize)>);

    #[test]
    fn patterns_match_what_they_match_in_tokenizers() {
        let cases = include_str!("../../tests/pattern_cases.json");
        let cases: Vec<(String, Vec<Found>)> =
            serde_json::from_str(cases).expect("what pattern_cases.py writes");
        let mut run = 0;
        for (regex, texts) in &cases {
            let object = serde_json::json!({ "Regex": regex });
            let search = match Search::read(&Node::new("pattern", &object)) {
                Ok(search) => search,
                Err(error) if error.is_unsupported() => continue,
                Err(error) => panic!("{regex}: {error}"),
            };
            for (text, expected) in texts {
                let mut found = Vec::new();
                for_each_match(&search, text, |range| found.push((range.start, range.end)))
                    .expect("few steps");
                assert_eq!(&found, expected, "{regex} in {text:?}");
            }
            run += 1;
        }
        assert_eq!(run, 434, "of {}", cases.len());
    }
}

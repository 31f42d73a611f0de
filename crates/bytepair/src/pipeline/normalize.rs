//! Normalizers at work.

use bpe_lexers::LexError;

use crate::pipeline::normalized::{Normalized, Rewriter};
use crate::pipeline::normalizers::{BertNormalizer, Form, Normalizer};
use crate::pipeline::search::{Search, for_each_match};
use crate::pipeline::unicode::{combining_marks, controls, is_han, nonspacing_marks};

impl Normalizer {
    /// `text` after all of `steps`. O(bytes) each, but for a pattern on the backtracking engine; a step
    /// that changes nothing copies nothing.
    ///
    /// # Errors
    ///
    /// A pattern that takes too many steps.
    pub(crate) fn apply_all<'t>(
        steps: &[Self],
        text: Normalized<'t>,
    ) -> Result<Normalized<'t>, LexError> {
        steps.iter().try_fold(text, |text, step| step.apply(text))
    }

    /// As [`Normalizer::apply_all`], for a text that goes on with what stood before a cut: nothing is set
    /// before it.
    pub(crate) fn apply_all_behind<'t>(
        steps: &[Self],
        text: Normalized<'t>,
    ) -> Result<Normalized<'t>, LexError> {
        steps.iter().try_fold(text, |text, step| match step {
            Self::Prepend(_) => Ok(text),
            Self::SentencePiece(normalizer) => Ok(normalizer.without_prefix().apply(text)),
            _ => step.apply(text),
        })
    }

    /// Whether it is seen at once that this changes nothing in `text`, nor in any part of it.
    pub(crate) fn leaves(&self, text: &str) -> bool {
        match self {
            Self::Form(form) => form.leaves(text),
            _ => false,
        }
    }

    fn apply<'t>(&self, text: Normalized<'t>) -> Result<Normalized<'t>, LexError> {
        Ok(match self {
            Self::Form(form) => form.apply(text),
            Self::Lowercase => lowercase(text),
            Self::Strip { left, right } => strip(text, *left, *right),
            Self::StripAccents => {
                let marks = combining_marks();
                filter(text, |character| !marks.contains(character))
            }
            Self::Replace { search, content } => replace(text, search, content)?,
            Self::Prepend(prefix) => prepend(text, prefix),
            Self::Bert(bert) => bert.apply(text),
            Self::Nmt => nmt(text),
            Self::ByteLevel => byte_level(text),
            Self::SentencePiece(normalizer) => normalizer.apply(text),
        })
    }
}

impl BertNormalizer {
    pub(crate) const NFD: Form = Form {
        compatible: false,
        composed: false,
    };

    fn apply(self, mut text: Normalized<'_>) -> Normalized<'_> {
        if self.clean_text {
            text = filter(text, Self::keeps);
            text = map(text, Self::cleaned);
        }
        if self.handle_chinese_chars {
            text = expand(text, is_han, |character, out| {
                out.extend([(' ', 0), (character, 1), (' ', 1)]);
            });
        }
        if self.strip_accents {
            let marks = nonspacing_marks();
            text = filter(Self::NFD.apply(text), |character| {
                !marks.contains(character)
            });
        }
        match self.lowercase {
            true => lowercase(text),
            false => text,
        }
    }

    /// Whether cleaning leaves a character in the text.
    pub(crate) fn keeps(character: char) -> bool {
        let goes = || matches!(character, '\0' | '\u{FFFD}') || controls().contains(character);
        matches!(character, '\t' | '\n' | '\r') || !goes()
    }

    /// What cleaning makes of a character that it leaves there.
    pub(crate) fn cleaned(character: char) -> char {
        match matches!(character, '\t' | '\n' | '\r') || character.is_whitespace() {
            true => ' ',
            false => character,
        }
    }
}

/// `prefix`, and the text behind it, if there is one.
pub(crate) fn prepend<'t>(text: Normalized<'t>, prefix: &str) -> Normalized<'t> {
    if text.text().is_empty() || prefix.is_empty() {
        return text;
    }
    let mut rewriter = Rewriter::new(&text);
    rewriter.insert_before(prefix);
    rewriter.copy_to(text.text().len());
    rewriter.finish()
}

/// Each place where `search` is found, replaced.
fn replace<'t>(
    text: Normalized<'t>,
    search: &Search,
    content: &str,
) -> Result<Normalized<'t>, LexError> {
    let source = text.text();
    let mut rewriter = None;
    for_each_match(search, source, |found| {
        let rewriter = rewriter.get_or_insert_with(|| Rewriter::new(&text));
        rewriter.copy_to(found.start);
        // What is put in stands for the last character that goes.
        rewriter.drop_to(found.end);
        rewriter.insert(content);
    })?;
    Ok(match rewriter {
        None => text,
        Some(mut rewriter) => {
            rewriter.copy_to(source.len());
            rewriter.finish()
        }
    })
}

fn strip(text: Normalized<'_>, left: bool, right: bool) -> Normalized<'_> {
    let source = text.text();
    let start = match left {
        true => source.len() - source.trim_start().len(),
        false => 0,
    };
    let end = match right {
        true => source.trim_end().len().max(start),
        false => source.len(),
    };
    if start == 0 && end == source.len() {
        return text;
    }
    let mut rewriter = Rewriter::new(&text);
    rewriter.drop_to(start);
    rewriter.copy_to(end);
    rewriter.finish()
}

fn filter(text: Normalized<'_>, keep: impl Fn(char) -> bool) -> Normalized<'_> {
    let source = text.text();
    let Some(first) = source.find(|character| !keep(character)) else {
        return text;
    };
    let mut rewriter = Rewriter::new(&text);
    rewriter.copy_to(first);
    let rest = source.get(first..).unwrap_or_default();
    for (index, character) in rest.char_indices() {
        let at = first + index;
        if !keep(character) {
            rewriter.copy_to(at);
            rewriter.drop_to(at + character.len_utf8());
        }
    }
    rewriter.copy_to(source.len());
    rewriter.finish()
}

fn map(text: Normalized<'_>, to: impl Fn(char) -> char) -> Normalized<'_> {
    let changes = |character| to(character) != character;
    expand(text, changes, |character, out| out.push((to(character), 0)))
}

fn lowercase(text: Normalized<'_>) -> Normalized<'_> {
    let changes = |character: char| match character.is_ascii() {
        true => character.is_ascii_uppercase(),
        false => {
            let mut lower = character.to_lowercase();
            lower.next() != Some(character) || lower.next().is_some()
        }
    };
    expand(text, changes, |character, out| {
        let lower = character.to_lowercase().enumerate();
        out.extend(lower.map(|(index, part)| (part, isize::from(index > 0))));
    })
}

/// Each character that `changes` becomes what `becomes` says.
fn expand(
    text: Normalized<'_>,
    changes: impl Fn(char) -> bool,
    becomes: impl Fn(char, &mut Vec<(char, isize)>),
) -> Normalized<'_> {
    let source = text.text();
    let Some(first) = source.find(&changes) else {
        return text;
    };
    let mut rewriter = Rewriter::new(&text);
    let mut parts = Vec::new();
    let rest = source.get(first..).unwrap_or_default();
    for (index, character) in rest.char_indices() {
        if changes(character) {
            rewriter.copy_to(first + index);
            parts.clear();
            becomes(character, &mut parts);
            for &(part, change) in &parts {
                rewriter.put(part, change);
            }
        }
    }
    rewriter.copy_to(source.len());
    rewriter.finish()
}

fn nmt(text: Normalized<'_>) -> Normalized<'_> {
    map(filter(text, |character| !nmt_drops(character)), nmt_map)
}

/// Whether SentencePiece's rules leave out a character.
pub(crate) fn nmt_drops(character: char) -> bool {
    matches!(
        u32::from(character),
        0x01..=0x08 | 0x0B | 0x0E..=0x1F | 0x7F | 0x8F | 0x9F
    )
}

/// What they make of another.
pub(crate) fn nmt_map(character: char) -> char {
    match u32::from(character) {
        0x09
        | 0x0A
        | 0x0C
        | 0x0D
        | 0x1680
        | 0x200B..=0x200F
        | 0x2028
        | 0x2029
        | 0x2581
        | 0xFEFF
        | 0xFFFD => ' ',
        _ => character,
    }
}

/// Each byte as the character that stands for it.
pub(crate) fn byte_level(text: Normalized<'_>) -> Normalized<'_> {
    expand(text, |character| !is_its_own(character), byte_level_parts)
}

/// Whether a character is one byte, which stands for itself.
pub(crate) fn is_its_own(character: char) -> bool {
    character.is_ascii_graphic()
}

/// What a character becomes in the byte-level alphabet.
pub(crate) fn byte_level_parts(character: char, out: &mut Vec<(char, isize)>) {
    let mut buffer = [0; 4];
    let bytes = character.encode_utf8(&mut buffer).bytes().enumerate();
    out.extend(bytes.map(|(index, byte)| {
        let stands_for = bpe_core::byte_level::to_char(byte);
        (stands_for, isize::from(index > 0))
    }));
}

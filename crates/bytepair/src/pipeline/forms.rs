//! The normal forms of Unicode (UAX 15), with each character's place in the text it is made from.

use std::sync::OnceLock;

use unicode_normalization::char::{
    canonical_combining_class, compose, decompose_canonical, decompose_compatible,
};

use crate::pipeline::normalized::{Normalized, Rewriter};
use crate::pipeline::normalizers::Form;
use crate::pipeline::unicode::{CharacterSet, normalizable};

/// No character behind this one decomposes, is a mark, or composes with another.
const LAST_DECOMPOSABLE: char = '\u{2FFFF}';

/// A character, and what became of the source: 1 where it was put in, 0 where it takes the place of a
/// character, less where it takes the place of more.
type Change = (char, isize);

impl Form {
    /// `text` in this form. O(bytes), but for n log n in a run of n marks.
    ///
    /// A character that begins something of its own, and stays as it is, ends what is before it: a run
    /// of others behind one such is dealt with at once, and all else is copied.
    pub(crate) fn apply<'t>(self, text: Normalized<'t>) -> Normalized<'t> {
        let stable = self.stable();
        let source = text.text();
        let Some(first) = first_unstable(source, 0, stable) else {
            return text;
        };
        // Made when the first change comes: most texts with marks are in their form already.
        let mut rewriter = None;
        let mut changes = Vec::new();
        let mut next = Some(first);
        while let Some(unstable) = next {
            // The character before it takes part.
            let before = source.get(..unstable).unwrap_or_default();
            let last = before.chars().next_back().map_or(0, char::len_utf8);
            let start = unstable - last;
            let end = next_stable(source, unstable, stable);
            let part = source.get(start..end).unwrap_or_default();
            changes.clear();
            self.changes(part, &mut changes);
            let stays = part
                .chars()
                .eq(changes.iter().map(|&(character, _)| character));
            if !stays {
                let rewriter = rewriter.get_or_insert_with(|| Rewriter::new(&text));
                rewriter.copy_to(start);
                for &(character, change) in &changes {
                    rewriter.put(character, change);
                }
                rewriter.drop_to(end);
            }
            next = first_unstable(source, end, stable);
        }
        match rewriter {
            None => text,
            Some(mut rewriter) => {
                rewriter.copy_to(source.len());
                rewriter.finish()
            }
        }
    }

    /// Whether no character of `text` can change in this form, whatever stands beside it. O(bytes).
    pub(crate) fn leaves(self, text: &str) -> bool {
        first_unstable(text, 0, self.stable()).is_none()
    }

    /// Whether a character is of class 0, stays as it is, and composes with none before it.
    pub(crate) fn is_stable(self, character: char) -> bool {
        self.stable().contains(character)
    }

    /// Whether some character behind `first` composes with it. Costs some hundred look-ups.
    pub(crate) fn composes_as_first(first: char) -> bool {
        static SECONDS: OnceLock<Vec<char>> = OnceLock::new();
        let seconds = SECONDS.get_or_init(|| {
            let seconds = compose_as_second();
            let all = '\0'..=LAST_DECOMPOSABLE;
            all.filter(|&character| seconds.contains(character))
                .collect()
        });
        seconds
            .iter()
            .any(|&second| compose_known(first, second).is_some())
    }

    /// The characters that are of class 0, stay as they are, and compose with none before them.
    fn stable(self) -> &'static CharacterSet {
        static SETS: [OnceLock<CharacterSet>; 4] = [const { OnceLock::new() }; 4];
        let index = usize::from(self.compatible) * 2 + usize::from(self.composed);
        SETS[index].get_or_init(|| {
            let known = normalizable();
            let second = self.composed.then(compose_as_second);
            let mut changes = Vec::new();
            CharacterSet::filter(|character| {
                if character > LAST_DECOMPOSABLE || !known.contains(character) {
                    return true;
                }
                if canonical_combining_class(character) != 0
                    || second.as_ref().is_some_and(|set| set.contains(character))
                {
                    return false;
                }
                let mut is_itself = true;
                self.decompose(character, |part| is_itself &= part == character);
                is_itself
                    || self.composed && {
                        // Most that fall apart are composed again.
                        changes.clear();
                        self.changes(character.encode_utf8(&mut [0; 4]), &mut changes);
                        changes == [(character, 0)]
                    }
            })
        })
    }

    /// What becomes of `text`.
    fn changes(self, text: &str, changes: &mut Vec<Change>) {
        let mut characters: Vec<(u8, Change)> = Vec::new();
        for character in text.chars() {
            let mut change = 0;
            self.decompose(character, |part| {
                characters.push((class(part), (part, change)));
                change = 1;
            });
        }
        // Marks that follow each other go by their classes.
        let is_mark = |(class, _): &(u8, Change)| *class != 0;
        for marks in characters.chunk_by_mut(|a, b| is_mark(a) && is_mark(b)) {
            marks.sort_by_key(|(class, _)| *class);
        }
        if self.composed {
            compose_all(&characters, changes);
        } else {
            changes.extend(characters.iter().map(|(_, change)| change));
        }
    }

    fn decompose(self, character: char, mut emit: impl FnMut(char)) {
        match self.compatible {
            _ if !normalizable().contains(character) => emit(character),
            true => decompose_compatible(character, emit),
            false => decompose_canonical(character, emit),
        }
    }
}

/// Each character with the last of class 0 before it, where nothing of its own class or a higher one, or
/// of class 0, stands between.
fn compose_all(characters: &[(u8, Change)], changes: &mut Vec<Change>) {
    /// What can still be composed with: where it stands among the changes.
    struct Starter {
        index: usize,
        last_class: Option<u8>,
    }
    let mut starter: Option<Starter> = None;
    for &(class, (character, change)) in characters {
        if let Some(Starter { index, last_class }) = &mut starter {
            let blocked = match last_class {
                None => false,
                Some(last) => *last >= class,
            };
            let (first, change_of_first) = changes[*index];
            if !blocked && let Some(composite) = compose_known(first, character) {
                changes[*index] = (composite, change_of_first + change - 1);
                continue;
            }
            *last_class = Some(class);
        }
        if class == 0 {
            starter = Some(Starter {
                index: changes.len(),
                last_class: None,
            });
        }
        changes.push((character, change));
    }
}

fn class(character: char) -> u8 {
    match normalizable().contains(character) {
        true => canonical_combining_class(character),
        false => 0,
    }
}

fn compose_known(first: char, second: char) -> Option<char> {
    let known = normalizable();
    let composite = compose(first, second)?;
    [first, second, composite]
        .into_iter()
        .all(|character| known.contains(character))
        .then_some(composite)
}

/// The characters that some pair composes with as its second one.
fn compose_as_second() -> CharacterSet {
    let mut seconds = Vec::new();
    let known = normalizable();
    for character in ('\0'..=LAST_DECOMPOSABLE).filter(|&character| known.contains(character)) {
        let mut is_first = true;
        decompose_canonical(character, |part| {
            if !is_first {
                seconds.push((u32::from(part), u32::from(part)));
            }
            is_first = false;
        });
    }
    CharacterSet::new(seconds)
}

/// The first place at or after `from` where a character is not stable.
fn first_unstable(text: &str, from: usize, stable: &CharacterSet) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = from;
    loop {
        // All of ASCII is stable in every form.
        while let Some(eight) = bytes.get(at..at + 8) {
            let word = eight.iter().fold(0, |all, &byte| all | byte);
            if word >= 0x80 {
                break;
            }
            at += 8;
        }
        let character = text.get(at..)?.chars().next()?;
        if !stable.contains(character) {
            return Some(at);
        }
        at += character.len_utf8();
    }
}

/// The first place after `from` where a character is stable.
fn next_stable(text: &str, from: usize, stable: &CharacterSet) -> usize {
    let rest = text.get(from..).unwrap_or_default();
    let found = rest.char_indices().find(|&(_, c)| stable.contains(c));
    from + found.map_or(rest.len(), |(index, _)| index)
}

#[cfg(test)]
mod tests {
    use unicode_normalization::UnicodeNormalization;

    use super::*;

    fn form(compatible: bool, composed: bool) -> Form {
        Form {
            compatible,
            composed,
        }
    }

    /// Texts of a few characters each, that decompose, compose, reorder, block, or do nothing.
    fn texts() -> impl Iterator<Item = String> {
        let characters = [
            "a",
            "e",
            "\u{0301}",
            "\u{0323}",
            "\u{0307}",
            "\u{0344}",
            "é",
            "ﬁ",
            "각",
            "ᄀ",
            "ᅡ",
            "ᆨ",
            "\u{1E0B}\u{0323}",
            "\u{212B}",
            "क\u{093C}",
            "\u{0F71}",
            "\u{0F72}",
            "中",
            "①",
        ];
        let of = move |number: usize, length: u32| -> String {
            (0..length)
                .map(|place| characters[number / characters.len().pow(place) % characters.len()])
                .collect()
        };
        let count = characters.len();
        (1..=4_u32)
            .flat_map(move |length| (0..count.pow(length)).map(move |number| of(number, length)))
    }

    #[test]
    fn forms_are_those_of_the_unicode_library() {
        for text in texts() {
            let ours = |form: Form| {
                let text = form.apply(Normalized::new(&text, 0, false));
                text.text().to_owned()
            };
            assert_eq!(
                ours(form(false, true)),
                text.nfc().collect::<String>(),
                "{text:?}"
            );
            assert_eq!(
                ours(form(false, false)),
                text.nfd().collect::<String>(),
                "{text:?}"
            );
            assert_eq!(
                ours(form(true, true)),
                text.nfkc().collect::<String>(),
                "{text:?}"
            );
            assert_eq!(
                ours(form(true, false)),
                text.nfkd().collect::<String>(),
                "{text:?}"
            );
        }
    }

    #[test]
    fn a_text_that_is_in_the_form_already_is_not_copied() {
        let text = "plain text, über 中文 각 and so on";
        let normalized = form(false, true).apply(Normalized::new(text, 0, true));
        assert!(std::ptr::eq(normalized.text(), text));
    }

    #[test]
    fn each_character_knows_what_it_was_made_from() {
        // e and an accent compose; a composed one stays; the ligature falls apart under NFKC.
        let text = Normalized::new("xe\u{0301}é", 10, true);
        let nfc = form(false, true).apply(text);
        assert_eq!(nfc.text(), "xéé");
        assert_eq!(nfc.original(&(0..1)), 10..11);
        // `tokenizers` gives the range of the first of the two.
        assert_eq!(nfc.original(&(1..3)), 11..12);
        assert_eq!(nfc.original(&(3..5)), 14..16);
        let nfkc = form(true, true).apply(Normalized::new("aﬁb", 0, true));
        assert_eq!(nfkc.text(), "afib");
        assert_eq!(nfkc.original(&(1..2)), 1..4);
        assert_eq!(nfkc.original(&(2..3)), 1..4);
        assert_eq!(nfkc.original(&(3..4)), 4..5);
    }
}

//! The contractions of the known patterns, for the engines that look for them by hand.

/// Returns the length in bytes of what follows the apostrophe in `(?i:'s|'t|'re|'ve|'m|'ll|'d)`, if
/// it stands at the start of `rest`; 0 if not.
///
/// Of the characters outside ASCII only U+017F, the long s, folds to one of these letters.
#[inline]
pub(crate) fn in_any_case(rest: &[u8]) -> usize {
    let at = |place: usize| rest.get(place).map_or(0, |byte| byte | 0x20);
    match at(0) {
        b's' | b't' | b'm' | b'd' => 1,
        b'r' | b'v' if at(1) == b'e' => 2,
        b'l' if at(1) == b'l' => 2,
        _ if rest.starts_with("\u{17F}".as_bytes()) => 2,
        _ => 0,
    }
}

/// As [`in_any_case`], for `'s|'t|'re|'ve|'m|'ll|'d`.
#[inline]
pub(crate) fn in_lower_case(rest: &[u8]) -> usize {
    match rest {
        [b's' | b't' | b'm' | b'd', ..] => 1,
        [b'r' | b'v', b'e', ..] | [b'l', b'l', ..] => 2,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::{in_any_case, in_lower_case};

    const CONTRACTIONS: [&str; 7] = ["s", "t", "re", "ve", "m", "ll", "d"];

    #[test]
    fn any_two_characters_are_a_contraction_exactly_where_the_list_says_so() {
        let characters: Vec<char> = ('\0'..='\u{24F}').chain(['\u{212A}', '\u{1E9E}']).collect();
        for &first in &characters {
            for &second in &characters {
                let text = String::from_iter([first, second]);
                // Case folding of these letters by the standard library's own tables: of all
                // characters only s, S and U+017F have the upper case S, and so on.
                let folded = text.to_uppercase();
                let starts = |contraction: &&&str| {
                    let length = contraction.chars().count();
                    let own: String = text.chars().take(length).collect();
                    folded.starts_with(&contraction.to_uppercase())
                        && own.to_uppercase() == contraction.to_uppercase()
                };
                let expected = CONTRACTIONS.iter().find(starts).map_or(0, |contraction| {
                    text.chars()
                        .take(contraction.len())
                        .map(char::len_utf8)
                        .sum()
                });
                assert_eq!(in_any_case(text.as_bytes()), expected, "{text:?}");
                let expected = CONTRACTIONS.iter().find(|c| text.starts_with(**c));
                let expected = expected.map_or(0, |contraction| contraction.len());
                assert_eq!(in_lower_case(text.as_bytes()), expected, "{text:?}");
            }
        }
    }

    #[test]
    fn nothing_is_no_contraction() {
        assert_eq!(in_any_case(b""), 0);
        assert_eq!(in_any_case(b"l"), 0);
        assert_eq!(in_lower_case(b"r"), 0);
    }
}

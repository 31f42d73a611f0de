//! Text that shows tokens: ids, pieces, JSON strings.

use std::io::Write;

use bytepair::TokenId;

use crate::error::CliError;

/// Writes all of `bytes`.
pub(crate) fn write(out: &mut dyn Write, bytes: impl AsRef<[u8]>) -> Result<(), CliError> {
    out.write_all(bytes.as_ref()).map_err(CliError::writing)
}

/// Writes a line.
pub(crate) fn write_line(out: &mut dyn Write, line: impl AsRef<str>) -> Result<(), CliError> {
    write(out, line.as_ref())?;
    write(out, "\n")
}

/// Appends `number` in decimal digits. Most of the output of `encode` goes through here.
pub(crate) fn push_number(out: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0_u8; 20];
    let mut first = digits.len();
    loop {
        first -= 1;
        digits[first] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[first..]);
}

/// `separator` and the number, for each id.
pub(crate) fn push_ids(out: &mut Vec<u8>, ids: &[TokenId], separator: u8) {
    out.reserve(ids.len() * 7);
    for &id in ids {
        out.push(separator);
        push_number(out, u64::from(id));
    }
}

/// The piece on one line, so that it can be read back: `\n`, `\r`, `\t` and `\\`; `\u{1b}` for other
/// control characters and those that change the direction of text; `\xE9` for each byte that is no
/// part of a whole character.
pub(crate) fn escaped(piece: &[u8]) -> String {
    visible(piece, |byte| format!("\\x{byte:02X}"))
}

/// The piece as `show` has it: as [`escaped`], but `<E9>` for a byte that is no part of a whole
/// character.
pub(crate) fn shown(piece: &[u8]) -> String {
    visible(piece, |byte| format!("<{byte:02X}>"))
}

fn visible(piece: &[u8], show_byte: impl Fn(u8) -> String) -> String {
    let mut text = String::with_capacity(piece.len());
    for chunk in piece.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '\n' => text.push_str("\\n"),
                '\r' => text.push_str("\\r"),
                '\t' => text.push_str("\\t"),
                '\\' => text.push_str("\\\\"),
                c if is_hidden(c) => text.push_str(&format!("\\u{{{:x}}}", u32::from(c))),
                c => text.push(c),
            }
        }
        for &byte in chunk.invalid() {
            text.push_str(&show_byte(byte));
        }
    }
    text
}

/// Characters that a terminal obeys instead of showing them.
pub(crate) fn is_hidden(character: char) -> bool {
    let directions = [
        '\u{2028}'..='\u{202e}',
        '\u{2066}'..='\u{2069}',
        '\u{200b}'..='\u{200f}',
    ];
    character.is_control() || directions.iter().any(|range| range.contains(&character))
}

/// The first `limit` characters of an [`escaped`] text, and what was left off.
pub(crate) fn shortened(text: String, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        Some((end, _)) => format!("{}… ({} bytes more)", &text[..end], text.len() - end),
        None => text,
    }
}

/// `text` as a JSON string with its quotes.
pub(crate) fn json_string(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// The number with a comma before each three digits.
pub(crate) fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_written_in_decimal() {
        let mut out = Vec::new();
        push_ids(&mut out, &[0, 7, 10, 199_999, u32::MAX], b' ');
        assert_eq!(out, b" 0 7 10 199999 4294967295");
        out.clear();
        push_number(&mut out, u64::MAX);
        assert_eq!(out, b"18446744073709551615");
    }

    #[test]
    fn pieces_are_shown_on_one_line_and_without_commands_to_a_terminal() {
        let piece = b"a\n\\\x1b[1m\xE9\xBE\xC3\xA9\xFF\t";
        assert_eq!(escaped(piece), "a\\n\\\\\\u{1b}[1m\\xE9\\xBEé\\xFF\\t");
        assert_eq!(shown(piece), "a\\n\\\\\\u{1b}[1m<E9><BE>é<FF>\\t");
        assert_eq!(escaped("\u{202e}x".as_bytes()), "\\u{202e}x");
    }

    #[test]
    fn long_texts_are_shortened_at_a_character() {
        assert_eq!(shortened("ééé".to_owned(), 3), "ééé");
        assert_eq!(shortened("ééé".to_owned(), 2), "éé… (2 bytes more)");
    }

    #[test]
    fn digits_are_grouped() {
        let grouped: Vec<_> = [0, 999, 1000, 1_234_567].map(grouped).into();
        assert_eq!(grouped, ["0", "999", "1,000", "1,234,567"]);
    }
}

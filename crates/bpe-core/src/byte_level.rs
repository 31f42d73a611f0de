//! GPT-2's byte-level alphabet: a printable character for each byte, in which `vocab.json`,
//! `merges.txt` and `tokenizer.json` spell their tokens.
//!
//! Bytes that are printable in Latin-1 stand for themselves; the 68 others, in ascending order, are
//! the characters from U+0100 on. So a blank is `Ġ` and a newline `Ċ`.
//!
//! ```
//! use bpe_core::byte_level;
//!
//! assert_eq!(byte_level::encode(b" a\n"), "ĠaĊ");
//! assert_eq!(byte_level::decode("ĠaĊ"), Ok(b" a\n".to_vec()));
//! assert_eq!(byte_level::decode("a b"), Err(' '));
//! ```

use alloc::string::String;
use alloc::vec::Vec;

/// The character that stands for `byte`. O(1).
pub fn to_char(byte: u8) -> char {
    match byte {
        0x21..=0x7E | 0xA1..=0xAC | 0xAE..=0xFF => char::from(byte),
        0x00..=0x20 => shifted(u32::from(byte)),
        0x7F..=0xA0 => shifted(u32::from(byte) - 0x7F + 0x21),
        0xAD => shifted(0x21 + 0x22),
    }
}

/// The byte that `character` stands for. O(1).
pub fn to_byte(character: char) -> Option<u8> {
    let code = u32::from(character);
    let byte = match code {
        0x21..=0x7E | 0xA1..=0xAC | 0xAE..=0xFF => code,
        0x100..=0x120 => code - 0x100,
        0x121..=0x142 => code - 0x121 + 0x7F,
        0x143 => 0xAD,
        _ => return None,
    };
    u8::try_from(byte).ok()
}

/// The spelling of `bytes`. O(bytes).
pub fn encode(bytes: &[u8]) -> String {
    bytes.iter().map(|&byte| to_char(byte)).collect()
}

/// The bytes that `text` spells. O(chars).
///
/// # Errors
///
/// The first character that stands for no byte.
pub fn decode(text: &str) -> Result<Vec<u8>, char> {
    let mut bytes = Vec::new();
    decode_into(text, &mut bytes)?;
    Ok(bytes)
}

/// Appends the bytes that `text` spells. O(chars).
///
/// # Errors
///
/// The first character that stands for no byte; `bytes` is then as it was.
pub fn decode_into(text: &str, bytes: &mut Vec<u8>) -> Result<(), char> {
    let start = bytes.len();
    bytes.reserve(text.len());
    for character in text.chars() {
        match to_byte(character) {
            Some(byte) => bytes.push(byte),
            None => {
                bytes.truncate(start);
                return Err(character);
            }
        }
    }
    Ok(())
}

/// The character `offset` places after U+0100.
fn shifted(offset: u32) -> char {
    char::from_u32(0x100 + offset).unwrap_or(char::REPLACEMENT_CHARACTER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_alphabet_is_built_as_gpt_2_builds_it() {
        // The published rule: keep the printable Latin-1 bytes, number the others from 256 on.
        let printable = |byte: u8| {
            (b'!'..=b'~').contains(&byte) || (0xA1..=0xAC).contains(&byte) || byte >= 0xAE
        };
        let mut next = 256;
        for byte in 0..=255u8 {
            let expected = if printable(byte) {
                u32::from(byte)
            } else {
                next += 1;
                next - 1
            };
            assert_eq!(u32::from(to_char(byte)), expected);
            assert_eq!(to_byte(to_char(byte)), Some(byte));
        }
        assert_eq!(next, 256 + 68);
    }

    #[test]
    fn every_other_character_stands_for_no_byte() {
        let alphabet: Vec<char> = (0..=255).map(to_char).collect();
        for character in '\0'..=char::MAX {
            assert_eq!(to_byte(character).is_some(), alphabet.contains(&character));
        }
    }
}

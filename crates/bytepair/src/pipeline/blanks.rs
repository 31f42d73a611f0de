//! White space at the ends of tokens, which post-processors take away from offsets.

/// How many characters at the start and at the end of what a token is written as are white space, or the `Ġ`
/// of the byte-level alphabet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Blanks {
    pub(crate) leading: usize,
    pub(crate) trailing: usize,
}

impl Blanks {
    /// Those of a text.
    pub(crate) fn of_text(text: &str) -> Self {
        let blank = |c: &char| *c == 'Ġ' || c.is_whitespace();
        Self {
            leading: text.chars().take_while(blank).count(),
            trailing: text.chars().rev().take_while(blank).count(),
        }
    }

    /// Those of bytes that are written in the byte-level alphabet.
    pub(crate) fn of_bytes(bytes: &[u8]) -> Self {
        let blank = |byte: &&u8| **byte == b' ';
        Self {
            leading: bytes.iter().take_while(blank).count(),
            trailing: bytes.iter().rev().take_while(blank).count(),
        }
    }
}

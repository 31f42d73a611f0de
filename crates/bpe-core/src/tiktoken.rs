//! `.tiktoken` files: a line a token, its bytes in base64, a blank, its rank, which is its id.
//!
//! ```text
//! IQ== 0
//! Ig== 1
//! IHRoZQ== 261
//! ```
//!
//! Lines may come in any order, ranks may have gaps, blank lines and blanks at the end of a line are
//! skipped, the last newline may be missing. Everything else is an error that names the line: files
//! that were cut, saved as something else, or edited are told rather than half read.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::limits::ReadLimits;
use crate::vocabulary::{TokenId, Vocabulary, VocabularyError};

/// The vocabulary that `file` lists. All 256 single bytes are among its tokens, so that every text
/// can be encoded.
///
/// Cost: O(bytes). Memory: some ten times the file.
///
/// # Errors
///
/// The first line that is no token and rank, or whose token or rank came before; a single byte that
/// no line has; a file, line or token over the limits.
///
/// ```
/// use bpe_core::{ReadLimits, tiktoken};
///
/// let error = tiktoken::read(b"IQ== 0\nIg==\n", &ReadLimits::default()).unwrap_err();
/// assert_eq!(error.line(), Some(2));
/// assert_eq!(error.to_string(), "line 2: no rank after the token");
/// ```
pub fn read(file: &[u8], limits: &ReadLimits) -> Result<Vocabulary, TiktokenError> {
    if file.len() > limits.file {
        return Err(TiktokenError {
            line: None,
            kind: Kind::FileTooLarge { limit: limits.file },
        });
    }
    if file.starts_with(b"\xEF\xBB\xBF") {
        return Err(at(1, Kind::ByteOrderMark));
    }
    let mut entries: Vec<(TokenId, Vec<u8>)> = Vec::new();
    let mut lines: Vec<usize> = Vec::new();
    for (index, text) in file.split(|&byte| byte == b'\n').enumerate() {
        let line = index + 1;
        if text.len() > limits.line {
            return Err(at(line, Kind::LineTooLong { limit: limits.line }));
        }
        if let Some(entry) = read_line(text, limits).map_err(|kind| at(line, kind))? {
            entries.push(entry);
            lines.push(line);
        }
    }
    let tokens = entries.iter().map(|(id, token)| (*id, token));
    let vocabulary = Vocabulary::new(tokens).map_err(|error| {
        let line = line_at_fault(&entries, &lines, error.id());
        TiktokenError {
            line,
            kind: Kind::Vocabulary(error),
        }
    })?;
    match (0..=255).find(|&byte| vocabulary.id_of(&[byte]).is_none()) {
        Some(byte) => Err(TiktokenError {
            line: None,
            kind: Kind::MissingByte { byte },
        }),
        None => Ok(vocabulary),
    }
}

/// `vocabulary` as a `.tiktoken` file, in the order of ids. O(bytes).
pub fn write(vocabulary: &Vocabulary) -> String {
    let mut file = String::new();
    for (id, bytes) in vocabulary.iter() {
        STANDARD.encode_string(bytes, &mut file);
        let _ = writeln!(file, " {id}"); // Writing to a string cannot fail.
    }
    file
}

fn read_line(line: &[u8], limits: &ReadLimits) -> Result<Option<(TokenId, Vec<u8>)>, Kind> {
    if line.ends_with(b"\r") {
        return Err(Kind::CarriageReturn);
    }
    let line = line.trim_ascii_end();
    if line.is_empty() {
        return Ok(None);
    }
    let end = line.iter().position(|&byte| byte == b' ');
    let (token, rank) = line.split_at(end.unwrap_or(line.len()));
    let rank = rank.trim_ascii_start();
    if rank.is_empty() {
        return Err(Kind::NoRank);
    }
    let token = STANDARD.decode(token).map_err(|_| Kind::Base64)?;
    if token.is_empty() {
        return Err(Kind::EmptyToken);
    }
    if token.len() > limits.token {
        return Err(Kind::TokenTooLong {
            limit: limits.token,
        });
    }
    if !rank.iter().all(u8::is_ascii_digit) {
        return Err(Kind::RankNotANumber);
    }
    let mut id = 0_u32;
    for digit in rank {
        id = id
            .checked_mul(10)
            .and_then(|id| id.checked_add(u32::from(digit - b'0')))
            .ok_or(Kind::RankTooLarge)?;
    }
    Ok(Some((id, token)))
}

/// The last line with the id, or with a token that another line has too: the second of the two.
fn line_at_fault(entries: &[(TokenId, Vec<u8>)], lines: &[usize], id: TokenId) -> Option<usize> {
    let token = &entries.iter().find(|entry| entry.0 == id)?.1;
    let last = entries
        .iter()
        .rposition(|entry| entry.0 == id || entry.1 == *token)?;
    lines.get(last).copied()
}

fn at(line: usize, kind: Kind) -> TiktokenError {
    TiktokenError {
        line: Some(line),
        kind,
    }
}

/// Why a file is no `.tiktoken` file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TiktokenError {
    line: Option<usize>,
    kind: Kind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    FileTooLarge { limit: usize },
    LineTooLong { limit: usize },
    TokenTooLong { limit: usize },
    ByteOrderMark,
    CarriageReturn,
    NoRank,
    RankNotANumber,
    RankTooLarge,
    Base64,
    EmptyToken,
    Vocabulary(VocabularyError),
    MissingByte { byte: u8 },
}

impl TiktokenError {
    /// The line at fault, counted from 1; `None` where the whole file is.
    pub fn line(&self) -> Option<usize> {
        self.line
    }
}

impl fmt::Display for TiktokenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        match &self.kind {
            Kind::FileTooLarge { limit } => write!(f, "the file is over {limit} bytes"),
            Kind::LineTooLong { limit } => write!(f, "the line is over {limit} bytes"),
            Kind::TokenTooLong { limit } => write!(f, "the token is over {limit} bytes"),
            Kind::ByteOrderMark => f.write_str("the file begins with a byte order mark"),
            Kind::CarriageReturn => f.write_str("the line ends in CR LF; it must end in LF alone"),
            Kind::NoRank => f.write_str("no rank after the token"),
            Kind::RankNotANumber => f.write_str("the rank is no number"),
            Kind::RankTooLarge => f.write_str("the rank is over 4294967295"),
            Kind::Base64 => f.write_str("the token is no base64"),
            Kind::EmptyToken => f.write_str("the token is empty"),
            Kind::Vocabulary(error) => error.fmt(f),
            Kind::MissingByte { byte } => {
                write!(f, "no token for the single byte 0x{byte:02X}")
            }
        }
    }
}

impl core::error::Error for TiktokenError {}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;
    use alloc::string::ToString;

    fn bytes_and(rest: &str) -> String {
        let bytes = Vocabulary::new((0..=255_u8).map(|byte| (u32::from(byte), [byte])));
        write(&bytes.expect("valid")) + rest
    }

    fn error(file: &str) -> String {
        read(file.as_bytes(), &ReadLimits::default())
            .expect_err("invalid")
            .to_string()
    }

    #[test]
    fn a_file_comes_back_as_it_was_written() {
        let file = bytes_and("YWI= 300\nYWJj 301\n");
        let vocabulary = read(file.as_bytes(), &ReadLimits::default()).expect("valid");
        assert_eq!(vocabulary.id_of(b"abc"), Some(301));
        assert_eq!(write(&vocabulary), file);
    }

    #[test]
    fn blanks_blank_lines_and_a_missing_last_newline_are_harmless() {
        let file = bytes_and("\n\nYWI= 300  \n\nYWJj   301");
        let vocabulary = read(file.as_bytes(), &ReadLimits::default()).expect("valid");
        assert_eq!(vocabulary.len(), 258);
        assert_eq!(vocabulary.id_of(b"abc"), Some(301));
    }

    #[test]
    fn each_fault_is_named_with_its_line() {
        let of = |line: &str| error(&bytes_and(line));
        assert_eq!(of("YWI 256\n"), "line 257: the token is no base64");
        assert_eq!(of("YWI=\n"), "line 257: no rank after the token");
        assert_eq!(of("YWI= x\n"), "line 257: the rank is no number");
        assert_eq!(of("YWI= -1\n"), "line 257: the rank is no number");
        assert_eq!(
            of("YWI= 4294967296\n"),
            "line 257: the rank is over 4294967295"
        );
        assert_eq!(of(" 256\n"), "line 257: the token is empty");
        assert_eq!(
            of("YWI= 256\nYWJj 256\n"),
            "line 258: two tokens have the id 256"
        );
        assert_eq!(
            of("YWI= 257\nYWI= 256\n"),
            "line 258: tokens 256 and 257 have the same bytes"
        );
        assert_eq!(
            of("YWI= 256\r\n"),
            "line 257: the line ends in CR LF; it must end in LF alone"
        );
        assert!(error("<!DOCTYPE html>\n").starts_with("line 1: "));
        assert!(error("\u{FEFF}IQ== 0\n").contains("byte order mark"));
        assert_eq!(error("IQ== 0\n"), "no token for the single byte 0x00");
        assert_eq!(error(""), "no token for the single byte 0x00");
    }

    #[test]
    fn limits_are_checked_and_can_be_set() {
        let long = STANDARD.encode(alloc::vec![b'a'; 70_000]);
        let file = bytes_and(&format!("{long} 256\n"));
        assert_eq!(error(&file), "line 257: the token is over 65536 bytes");
        let mut limits = ReadLimits {
            token: 70_000,
            ..ReadLimits::default()
        };
        assert!(read(file.as_bytes(), &limits).is_ok());
        limits.line = 90_000;
        let refused = read(file.as_bytes(), &limits).expect_err("too long");
        assert_eq!(
            refused.to_string(),
            "line 257: the line is over 90000 bytes"
        );
        limits.file = 1000;
        let refused = read(file.as_bytes(), &limits).expect_err("too large");
        assert_eq!(refused.to_string(), "the file is over 1000 bytes");
    }
}

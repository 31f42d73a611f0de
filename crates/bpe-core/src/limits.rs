//! What a reader accepts at most.

/// Limits of the readers of vocabulary files, in bytes. Files are untrusted: what is over a limit
/// is refused by a typed error. A file is measured before it is read; lines and tokens where they are
/// met, so a reader takes a fixed multiple of the file's limit at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadLimits {
    /// Size of a file. 1 GiB by default.
    pub file: usize,
    /// Length of a line of a text file, its end not counted. 1 MiB by default.
    pub line: usize,
    /// Length of a token. 64 KiB by default.
    pub token: usize,
}

impl Default for ReadLimits {
    fn default() -> Self {
        Self {
            file: 1 << 30,
            line: 1 << 20,
            token: 1 << 16,
        }
    }
}

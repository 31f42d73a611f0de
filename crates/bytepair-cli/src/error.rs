//! Why the command fails, and with which exit status.

use std::fmt::Display;
use std::io;

use bpe_train::CountError;
use bytepair::EncodeError;

/// Why the command fails.
#[derive(Debug)]
pub(crate) enum CliError {
    /// The input cannot be read, encoded or decoded, or the output not written.
    Input(String),
    /// The options do not fit together.
    Usage(String),
    /// The tokenizer cannot be made.
    Vocabulary(String),
    /// A count is over the limit: standard output has said so.
    OverLimit,
    /// Ids are not valid, or vocabularies not equivalent: standard output has said so.
    Differs,
    /// Who read the output has had enough.
    ClosedPipe,
}

impl CliError {
    /// An error of reading `name`.
    pub(crate) fn reading(name: &str, error: impl Display) -> Self {
        Self::Input(format!("cannot read {name}: {error}"))
    }

    /// An error of writing the output.
    pub(crate) fn writing(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::ClosedPipe,
            _ => Self::Input(format!("cannot write the output: {error}")),
        }
    }

    /// An error of encoding the part of `name` that begins at byte `start`. The error knows only
    /// the part, so the place is told here.
    pub(crate) fn encoding(name: &str, start: u64, error: &EncodeError) -> Self {
        let at = start + error.byte_offset() as u64;
        Self::Input(format!("{name}: {} (at byte {at})", Self::reason(error)))
    }

    /// Why something cannot be encoded, without the place.
    pub(crate) fn reason(error: &EncodeError) -> String {
        match (error.forbidden_special(), error.step_limit()) {
            (Some((text, _)), _) => {
                format!("the text holds the special token {text:?}, which is forbidden")
            }
            (_, Some(limit)) => format!("the pattern finds no end within {limit} steps"),
            _ if error.is_missing_token() => "no token stands for this text".to_owned(),
            _ => "the pattern cannot be matched".to_owned(),
        }
    }

    /// The same, with the name of the input at fault.
    pub(crate) fn in_input(self, name: &str) -> Self {
        match self {
            Self::Input(message) => Self::Input(format!("{name}: {message}")),
            other => other,
        }
    }

    pub(crate) fn exit_status(&self) -> u8 {
        match self {
            Self::ClosedPipe => 0,
            Self::Input(_) | Self::OverLimit | Self::Differs => 1,
            Self::Usage(_) => 2,
            Self::Vocabulary(_) => 3,
        }
    }

    /// What standard error says.
    pub(crate) fn message(&self) -> Option<&str> {
        match self {
            Self::Input(message) | Self::Usage(message) | Self::Vocabulary(message) => {
                Some(message)
            }
            Self::OverLimit | Self::Differs | Self::ClosedPipe => None,
        }
    }
}

impl From<CountError> for CliError {
    fn from(error: CountError) -> Self {
        Self::Input(error.to_string())
    }
}

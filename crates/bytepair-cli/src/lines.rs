//! JSON Lines: each line is a document.

use serde_json::Value;

use crate::args::LinesArgs;
use crate::error::CliError;
use crate::input::Block;

/// A line and what became of it.
pub(crate) struct Line<T> {
    /// Its number in the input, counted from 1.
    number: u64,
    result: Result<T, String>,
}

/// What becomes of the text of each line of a block. Lines without anything in them are no documents.
pub(crate) fn each<T>(
    block: &Block,
    field: &str,
    work: impl Fn(&str) -> Result<T, String>,
) -> Vec<Line<T>> {
    let lines = block.bytes.split(|&byte| byte == b'\n').zip(block.line..);
    let lines = lines.filter(|(line, _)| !line.trim_ascii().is_empty());
    let document = |(line, number): (&[u8], u64)| Line {
        number,
        result: text_of(line, field).and_then(|text| work(&text)),
    };
    lines.map(document).collect()
}

/// The text in a field of the object on a line.
pub(crate) fn text_of(line: &[u8], field: &str) -> Result<String, String> {
    match serde_json::from_slice(line) {
        Ok(Value::Object(mut object)) => match object.remove(field) {
            Some(Value::String(text)) => Ok(text),
            Some(_) => Err(format!("the field {field:?} is no text")),
            None => Err(format!("there is no field {field:?}")),
        },
        Ok(_) => Err("this is no JSON object".to_owned()),
        Err(error) => Err(format!("this is no JSON: {error}")),
    }
}

/// Counts lines without a document, or stops at the first.
pub(crate) struct Skipped {
    goes_on: bool,
    lines: u64,
    first: Option<String>,
}

impl Skipped {
    pub(crate) fn new(args: &LinesArgs) -> Self {
        Self {
            goes_on: args.skip_errors,
            lines: 0,
            first: None,
        }
    }

    /// What became of the line, `None` where that is nothing and the work goes on.
    ///
    /// # Errors
    ///
    /// The line has failed, and the work is to stop.
    pub(crate) fn take<T>(&mut self, name: &str, line: Line<T>) -> Result<Option<T>, CliError> {
        let message = match line.result {
            Ok(result) => return Ok(Some(result)),
            Err(reason) => format!("{name}: line {}: {reason}", line.number),
        };
        if !self.goes_on {
            return Err(CliError::Input(message));
        }
        self.lines += 1;
        self.first.get_or_insert(message);
        Ok(None)
    }

    /// What to say at the end, if anything was skipped.
    pub(crate) fn message(&self) -> Option<String> {
        let first = self.first.as_ref()?;
        Some(format!("{} lines skipped; the first: {first}", self.lines))
    }
}

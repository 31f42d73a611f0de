//! The text of all inputs in blocks, from a place on.

use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Sender;

use bpe_lexers::Cuts;
use bytepair::Tokenizer;

use super::progress::Progress;
use crate::cuts::Cutter;
use crate::error::CliError;
use crate::input::{Block, BlockSource, Blocks, Counted, Input};
use crate::lines::text_of;
use crate::unpack::unpack;

/// Size of blocks: what is held out is so much at a time.
const BLOCK_BYTES: usize = 1 << 20;

/// How far the reading is: bytes of text of one of the inputs, all before it having been read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Position {
    pub(super) input: usize,
    pub(super) offset: u64,
    /// Blocks that were read in all.
    pub(super) blocks: u64,
}

type Open<'a> = Blocks<'a, Box<dyn Read + Send + 'a>, Box<dyn FnMut(&str) + Send + 'a>>;

/// Reads the inputs one after the other.
pub(super) struct Texts<'a> {
    inputs: &'a [Input],
    stdin: Option<&'a mut (dyn Read + Send)>,
    cutter: Result<&'a Cutter, &'a str>,
    block_bytes: usize,
    warnings: Sender<String>,
    position: Position,
    open: Option<Open<'a>>,
    /// Bytes that were read of all inputs, packed as they are, and how many there are where known.
    read: Arc<AtomicU64>,
    size: Option<u64>,
    progress: &'a Progress,
}

impl<'a> Texts<'a> {
    pub(super) fn new(
        inputs: &'a [Input],
        stdin: &'a mut (dyn Read + Send),
        cutter: Result<&'a Cutter, &'a str>,
        block_bytes: Option<usize>,
        warnings: Sender<String>,
        progress: &'a Progress,
        position: Position,
    ) -> Self {
        let sizes = inputs.iter().map(size_of_input);
        Self {
            inputs,
            stdin: Some(stdin),
            cutter,
            block_bytes: block_bytes.unwrap_or(BLOCK_BYTES),
            warnings,
            position,
            open: None,
            read: Arc::default(),
            size: sizes.sum(),
            progress,
        }
    }

    /// Where the next block begins.
    pub(super) fn position(&self) -> Position {
        self.position
    }

    /// Whether no block is left.
    pub(super) fn is_done(&self) -> bool {
        self.position.input >= self.inputs.len()
    }

    /// The next block, with its input.
    pub(super) fn next_block(&mut self) -> Result<Option<(&'a Input, Block)>, CliError> {
        while let Some(input) = self.inputs.get(self.position.input) {
            let failed = |error: io::Error| CliError::reading(&input.name(), error);
            if self.open.is_none() {
                self.open = Some(self.open(input)?);
            }
            let next = match &mut self.open {
                Some(open) => open.next_block().map_err(failed)?,
                None => None,
            };
            self.progress
                .counting(self.read.load(Ordering::Relaxed), self.size);
            if let Some(mut block) = next {
                block.start = self.position.offset;
                self.position.offset += block.bytes.len() as u64;
                self.position.blocks += 1;
                return Ok(Some((input, block)));
            }
            self.open = None;
            self.position.input += 1;
            self.position.offset = 0;
        }
        Ok(None)
    }

    /// Opens an input, and skips what was read of it before.
    fn open(&mut self, input: &Input) -> Result<Open<'a>, CliError> {
        let failed = |error: io::Error| CliError::reading(&input.name(), error);
        let reader: Box<dyn Read + Send + 'a> = match input {
            // Named a second time, it is at its end.
            Input::Stdin => match self.stdin.take() {
                Some(stdin) => Box::new(stdin),
                None => Box::new(io::empty()),
            },
            Input::File(path) => Box::new(File::open(path).map_err(failed)?),
        };
        let counted = Counted::new(reader, &self.read);
        let mut reader = unpack(Box::new(counted)).map_err(failed)?;
        let offset = self.position.offset;
        let skipped = io::copy(&mut (&mut reader).take(offset), &mut io::sink());
        if skipped.map_err(failed)? != offset {
            let name = input.name();
            return Err(CliError::Input(format!(
                "{name} is shorter than when the checkpoint was made"
            )));
        }
        let (name, warnings) = (input.name(), self.warnings.clone());
        let warn = move |text: &str| {
            // Who does not listen any more needs no warning.
            let _ = warnings.send(format!("{name}: {text}"));
        };
        Ok(Blocks::new(
            reader,
            self.cutter,
            self.block_bytes,
            Box::new(warn),
        ))
    }
}

/// The size of a file; not known of standard input and of pipes.
fn size_of_input(input: &Input) -> Option<u64> {
    let Input::File(path) = input else {
        return None;
    };
    let data = path.metadata().ok()?;
    data.is_file().then_some(data.len())
}

/// Where blocks may end: for JSON Lines behind a line, else where no word goes across.
pub(super) fn cutter(json_field: Option<&str>, bytes: &Tokenizer) -> Result<Cutter, String> {
    match json_field {
        Some(_) => Ok(Cutter::at(Cuts::at_byte_pairs(|before, _| before == b'\n'))),
        None => Cutter::new(&[bytes]),
    }
}

/// Calls `count` with each text of a block: the block itself, or the field of each of its lines.
pub(super) fn texts_of(
    json_field: Option<&str>,
    (input, block): &(&Input, Block),
    count: &mut dyn FnMut(&[u8]) -> Result<(), CliError>,
) -> Result<(), CliError> {
    let Some(field) = json_field else {
        return count(&block.bytes).map_err(|error| error.in_input(&input.name()));
    };
    let mut start = block.start;
    for line in block.bytes.split_inclusive(|&byte| byte == b'\n') {
        let at = |what: &dyn std::fmt::Display| {
            let name = input.name();
            CliError::Input(format!("{name}, line at byte {start}: {what}"))
        };
        if !line.trim_ascii().is_empty() {
            let text = text_of(line, field).map_err(|error| at(&error))?;
            count(text.as_bytes()).map_err(|error| at(&error.message().unwrap_or_default()))?;
        }
        start += line.len() as u64;
    }
    Ok(())
}

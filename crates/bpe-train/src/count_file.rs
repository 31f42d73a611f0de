//! Files of word counts, written and read word by word. Their form: `WordCounts::add_file`.

use std::io::{self, BufRead, Read, Write};

use crate::error::{CountError, CountKind};

const MAGIC: &[u8; 4] = b"bpwc";
const VERSION: u8 = 1;

/// Writes words that come in ascending order.
pub(crate) struct CountWriter<W> {
    output: W,
    words: u64,
}

impl<W: Write> CountWriter<W> {
    pub(crate) fn new(mut output: W) -> io::Result<Self> {
        output.write_all(MAGIC)?;
        output.write_all(&[VERSION])?;
        Ok(Self { output, words: 0 })
    }

    pub(crate) fn put(&mut self, word: &[u8], count: u64) -> io::Result<()> {
        put_number(&mut self.output, word.len() as u64)?;
        self.output.write_all(word)?;
        put_number(&mut self.output, count)?;
        self.words += 1;
        Ok(())
    }

    pub(crate) fn finish(mut self) -> io::Result<()> {
        put_number(&mut self.output, 0)?;
        put_number(&mut self.output, self.words)?;
        self.output.flush()
    }
}

/// Reads what [`CountWriter`] writes, and refuses everything else.
pub(crate) struct CountReader<R> {
    input: R,
    longest_word: usize,
    words: u64,
    last: Vec<u8>,
}

impl<R: BufRead> CountReader<R> {
    pub(crate) fn new(mut input: R, longest_word: usize) -> Result<Self, CountError> {
        let mut header = [0; 5];
        input
            .read_exact(&mut header)
            .map_err(|error| at(0, error))?;
        if header[..4] != *MAGIC || header[4] != VERSION {
            return Err(CountError(CountKind::Header));
        }
        Ok(Self {
            input,
            longest_word,
            words: 0,
            last: Vec::new(),
        })
    }

    /// Puts the next word into `word` and returns its count; `None` after the last one.
    pub(crate) fn next_word(&mut self, word: &mut Vec<u8>) -> Result<Option<u64>, CountError> {
        let index = self.words + 1;
        let length = number(&mut self.input, index)?;
        if length == 0 {
            return self.finish().map(|()| None);
        }
        if length > self.longest_word as u64 {
            return Err(CountError(CountKind::WordTooLong { index, length }));
        }
        word.clear();
        let read = (&mut self.input).take(length).read_to_end(word);
        if read.map_err(|error| at(index, error))? as u64 != length {
            return Err(at(index, io::ErrorKind::UnexpectedEof.into()));
        }
        let count = number(&mut self.input, index)?;
        if count == 0 || *word <= self.last {
            return Err(CountError(CountKind::Order { index }));
        }
        self.last.clone_from(word);
        self.words = index;
        Ok(Some(count))
    }

    fn finish(&mut self) -> Result<(), CountError> {
        let read = self.words;
        let stated = number(&mut self.input, read)?;
        if stated != read {
            return Err(CountError(CountKind::Words { read, stated }));
        }
        match self.input.fill_buf() {
            Ok([]) => Ok(()),
            Ok(_) => Err(CountError(CountKind::TrailingBytes)),
            Err(error) => Err(at(read, error)),
        }
    }
}

fn put_number(output: &mut impl Write, mut value: u64) -> io::Result<()> {
    while value >= 0x80 {
        output.write_all(&[value as u8 | 0x80])?;
        value >>= 7;
    }
    output.write_all(&[value as u8])
}

fn number(input: &mut impl BufRead, index: u64) -> Result<u64, CountError> {
    let mut value = 0_u64;
    for shift in (0..70).step_by(7) {
        let mut byte = [0];
        input
            .read_exact(&mut byte)
            .map_err(|error| at(index, error))?;
        let part = u64::from(byte[0] & 0x7F);
        if shift == 63 && part > 1 {
            break;
        }
        value |= part << shift;
        if byte[0] < 0x80 {
            return Ok(value);
        }
    }
    Err(CountError(CountKind::Number { index }))
}

fn at(index: u64, error: io::Error) -> CountError {
    CountError(CountKind::Read { index, error })
}

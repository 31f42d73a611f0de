//! How often each word occurs: all that training sees of a text.

use core::fmt;
use std::hash::BuildHasher;
use std::io::{self, BufRead, Write};
use std::ops::ControlFlow;

use bpe_lexers::{Label, LexError, Spanner, SpecialMatcher};
use foldhash::fast::RandomState;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

const MAGIC: &[u8; 4] = b"bpwc";
const VERSION: u8 = 1;

/// Distinct words, each with the number of times that it occurs (003, "Pre-Tokenization").
///
/// Counting can be spread over threads or machines: [`WordCounts::add_all`] adds counts up, and the
/// sum does not depend on the order. Memory: the bytes of each distinct word, and some 30 bytes for
/// each.
///
/// ```
/// use bpe_train::WordCounts;
///
/// let mut counts = WordCounts::new();
/// counts.add(b"low", 5)?;
/// counts.add(b"lower", 2)?;
/// counts.add(b"low", 1)?;
/// assert_eq!(counts.count_of(b"low"), 6);
/// assert_eq!(counts.len(), 2);
/// # Ok::<(), bpe_train::CountError>(())
/// ```
#[derive(Clone, Default)]
pub struct WordCounts {
    arena: Vec<u8>,
    /// Of each word its end in the arena.
    ends: Vec<usize>,
    counts: Vec<u64>,
    places: HashTable<u32>,
    hasher: RandomState,
}

impl WordCounts {
    /// No words.
    pub fn new() -> Self {
        Self::default()
    }

    /// Number of distinct words.
    pub fn len(&self) -> usize {
        self.counts.len()
    }

    /// Whether there is no word.
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// Bytes of all distinct words together.
    pub fn distinct_bytes(&self) -> usize {
        self.arena.len()
    }

    /// How often `word` occurs. O(bytes).
    pub fn count_of(&self, word: &[u8]) -> u64 {
        let hash = self.hasher.hash_one(word);
        let place = self.places.find(hash, |&place| self.word(place) == word);
        place.map_or(0, |&place| self.counts[place as usize])
    }

    /// The words and their counts, in the order in which they were first added.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&[u8], u64)> {
        (0..self.len()).map(|place| (self.word(place as u32), self.counts[place]))
    }

    /// Counts `word` another `count` times. An empty word and a count of 0 add nothing. O(bytes).
    ///
    /// # Errors
    ///
    /// A count beyond 2^64 - 1, or more than 2^32 distinct words; nothing is added then.
    pub fn add(&mut self, word: &[u8], count: u64) -> Result<(), CountError> {
        if word.is_empty() || count == 0 {
            return Ok(());
        }
        let Self {
            arena,
            ends,
            counts,
            places,
            hasher,
        } = self;
        let entry = places.entry(
            hasher.hash_one(word),
            |&place| word_at(arena, ends, place) == word,
            |&place| hasher.hash_one(word_at(arena, ends, place)),
        );
        match entry {
            Entry::Occupied(place) => {
                let total = &mut counts[*place.get() as usize];
                *total = total
                    .checked_add(count)
                    .ok_or(CountError(CountKind::Overflow))?;
            }
            Entry::Vacant(free) => {
                let place =
                    u32::try_from(counts.len()).map_err(|_| CountError(CountKind::TooManyWords))?;
                free.insert(place);
                arena.extend_from_slice(word);
                ends.push(arena.len());
                counts.push(count);
            }
        }
        Ok(())
    }

    /// Adds every count of `other`. O(bytes of its distinct words).
    ///
    /// # Errors
    ///
    /// As [`WordCounts::add`]; the words before the one at fault have been added.
    pub fn add_all(&mut self, other: &Self) -> Result<(), CountError> {
        other
            .iter()
            .try_for_each(|(word, count)| self.add(word, count))
    }

    /// Counts the pre-tokens of `text`: words, and what the pattern does not match; special tokens
    /// are no words.
    ///
    /// # Errors
    ///
    /// The lexer gave up, or a count overflowed; the words before that place have been counted.
    pub fn add_text(
        &mut self,
        spanner: &mut Spanner,
        specials: &SpecialMatcher,
        text: &[u8],
    ) -> Result<(), CountError> {
        let flow = spanner.for_each_span(text, specials, |span| {
            if matches!(span.label, Label::Special(_)) {
                return ControlFlow::Continue(());
            }
            let word = text.get(span.range()).unwrap_or_default();
            match self.add(word, 1) {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => ControlFlow::Break(error),
            }
        });
        match flow {
            Ok(ControlFlow::Continue(())) => Ok(()),
            Ok(ControlFlow::Break(error)) => Err(error),
            Err(error) => Err(CountError(CountKind::Lexer(error))),
        }
    }

    /// Writes the counts. The bytes depend on the counts alone, not on the order in which they came.
    ///
    /// ```text
    /// file   = "bpwc" version=1 number(words) word*     words in ascending order of their bytes
    /// word   = number(length) bytes number(count)
    /// number = LEB128, at most 10 bytes
    /// ```
    ///
    /// # Errors
    ///
    /// What `output` says.
    pub fn write_to(&self, mut output: impl Write) -> io::Result<()> {
        let mut sorted: Vec<u32> = (0..self.len() as u32).collect();
        sorted.sort_unstable_by_key(|&place| self.word(place));
        output.write_all(MAGIC)?;
        output.write_all(&[VERSION])?;
        put_number(&mut output, self.len() as u64)?;
        for place in sorted {
            let word = self.word(place);
            put_number(&mut output, word.len() as u64)?;
            output.write_all(word)?;
            put_number(&mut output, self.counts[place as usize])?;
        }
        output.flush()
    }

    /// Adds the counts that [`WordCounts::write_to`] wrote. The file may be larger than memory would
    /// hold twice: it is read word by word.
    ///
    /// # Errors
    ///
    /// A file that is not of that form (the error gives the number of the word), a word over
    /// `longest_word` bytes, or what `input` says.
    pub fn add_file(
        &mut self,
        mut input: impl BufRead,
        longest_word: usize,
    ) -> Result<(), CountError> {
        let mut header = [0; 5];
        input
            .read_exact(&mut header)
            .map_err(|error| at(0, error))?;
        if header[..4] != *MAGIC || header[4] != VERSION {
            return Err(CountError(CountKind::Header));
        }
        let words = number(&mut input, 0)?;
        let mut last: Option<Vec<u8>> = None;
        let mut word = Vec::new();
        for index in 1..=words {
            let length = number(&mut input, index)?;
            if length > longest_word as u64 {
                return Err(CountError(CountKind::WordTooLong { index, length }));
            }
            word.clear();
            let read = io::Read::read_to_end(&mut io::Read::take(&mut input, length), &mut word);
            if read.map_err(|error| at(index, error))? as u64 != length {
                return Err(at(index, io::ErrorKind::UnexpectedEof.into()));
            }
            let count = number(&mut input, index)?;
            if word.is_empty() || count == 0 || last.as_ref().is_some_and(|last| *last >= word) {
                return Err(CountError(CountKind::Order { index }));
            }
            self.add(&word, count)?;
            core::mem::swap(last.get_or_insert_default(), &mut word);
        }
        match input.fill_buf() {
            Ok([]) => Ok(()),
            Ok(_) => Err(CountError(CountKind::TrailingBytes)),
            Err(error) => Err(at(words, error)),
        }
    }

    fn word(&self, place: u32) -> &[u8] {
        word_at(&self.arena, &self.ends, place)
    }
}

impl fmt::Debug for WordCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WordCounts")
            .field("words", &self.len())
            .finish_non_exhaustive()
    }
}

fn word_at<'a>(arena: &'a [u8], ends: &[usize], place: u32) -> &'a [u8] {
    let place = place as usize;
    let start = match place {
        0 => 0,
        _ => ends[place - 1],
    };
    &arena[start..ends[place]]
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

/// Why words could not be counted.
#[derive(Debug)]
pub struct CountError(CountKind);

#[derive(Debug)]
enum CountKind {
    Overflow,
    TooManyWords,
    Lexer(LexError),
    Header,
    Number { index: u64 },
    WordTooLong { index: u64, length: u64 },
    Order { index: u64 },
    TrailingBytes,
    Read { index: u64, error: io::Error },
}

impl fmt::Display for CountError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            CountKind::Overflow => f.write_str("a word occurs more than 2^64 - 1 times"),
            CountKind::TooManyWords => f.write_str("more than 2^32 distinct words"),
            CountKind::Lexer(error) => error.fmt(f),
            CountKind::Header => f.write_str("not a file of word counts of version 1"),
            CountKind::Number { index } => {
                write!(f, "word {index} of the counts: a number over 64 bits")
            }
            CountKind::WordTooLong { index, length } => {
                write!(
                    f,
                    "word {index} of the counts has {length} bytes, over the limit"
                )
            }
            CountKind::Order { index } => write!(
                f,
                "word {index} of the counts is empty, has no count, or is not in order"
            ),
            CountKind::TrailingBytes => f.write_str("bytes after the last word of the counts"),
            CountKind::Read { index, error } => write!(f, "word {index} of the counts: {error}"),
        }
    }
}

impl std::error::Error for CountError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.0 {
            CountKind::Lexer(error) => Some(error),
            CountKind::Read { error, .. } => Some(error),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bpe_lexers::{Engine, Pattern};

    fn counts(words: &[(&str, u64)]) -> WordCounts {
        let mut counts = WordCounts::new();
        for (word, count) in words {
            counts.add(word.as_bytes(), *count).expect("small");
        }
        counts
    }

    #[test]
    fn the_file_does_not_depend_on_the_order_and_comes_back() {
        let one = counts(&[("b", 2), ("abc", 1 << 40), ("é", 7)]);
        let other = counts(&[("é", 3), ("abc", 1 << 40), ("é", 4), ("b", 2)]);
        let mut files = [Vec::new(), Vec::new()];
        one.write_to(&mut files[0]).expect("memory");
        other.write_to(&mut files[1]).expect("memory");
        assert_eq!(files[0], files[1]);
        assert_eq!(
            files[0],
            b"bpwc\x01\x03\x03abc\x80\x80\x80\x80\x80\x20\x01b\x02\x02\xC3\xA9\x07"
        );
        let mut back = WordCounts::new();
        back.add_file(&files[0][..], 10).expect("valid");
        back.add_file(&files[1][..], 10).expect("valid");
        assert_eq!(back.count_of(b"abc"), 1 << 41);
        assert_eq!(back.len(), 3);
    }

    #[test]
    fn malformed_files_are_refused_with_the_number_of_the_word() {
        let error = |file: &[u8]| {
            let mut counts = WordCounts::new();
            let result = counts.add_file(file, 4);
            result.expect_err("malformed").to_string()
        };
        assert!(error(b"bp").contains("word 0"));
        assert!(error(b"bpwc\x02\x00").contains("version 1"));
        assert!(error(b"bpwc\x01\x01").contains("word 1"));
        assert!(error(b"bpwc\x01\x01\x05abcde\x01").contains("5 bytes, over the limit"));
        assert!(error(b"bpwc\x01\x02\x01b\x01\x01a\x01").contains("word 2"));
        assert!(error(b"bpwc\x01\x01\x01b\x00").contains("no count"));
        assert!(error(b"bpwc\x01\x01\x01b\x01x").contains("after the last"));
        assert!(error(b"bpwc\x01\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x02").contains("64 bits"));
        let mut full = counts(&[("a", u64::MAX)]);
        assert!(full.add(b"a", 1).is_err());
        assert_eq!(full.count_of(b"a"), u64::MAX);
    }

    #[test]
    fn special_tokens_are_no_words_and_bytes_that_are_no_text_are() {
        let mut spanner = Spanner::new(vec![
            Pattern::gpt2()
                .lexer(Engine::Auto)
                .expect("a known pattern"),
        ]);
        let specials = SpecialMatcher::new(["<|end|>"]).expect("not empty");
        let mut counts = WordCounts::new();
        let text = b"the<|end|>the the\xFF\xFE";
        counts
            .add_text(&mut spanner, &specials, text)
            .expect("no limit");
        assert_eq!(counts.count_of(b"the"), 2);
        assert_eq!(counts.count_of(b" the"), 1);
        assert_eq!(counts.count_of(b"\xFF"), 1);
        assert_eq!(counts.count_of(b"\xFE"), 1);
        assert_eq!(counts.len(), 4);
    }
}

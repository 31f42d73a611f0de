//! How often each word occurs: all that training sees of a text.

use core::fmt;
use std::hash::BuildHasher;
use std::io::{self, BufRead, Write};
use std::ops::ControlFlow;

use bpe_lexers::{Run, Spanner, SpecialMatcher};
use foldhash::fast::RandomState;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

use crate::count_file::{CountReader, CountWriter};
use crate::error::{CountError, CountKind};

/// Distinct words, each with the number of times that it occurs (003, "Pre-Tokenization").
///
/// Counting can be spread over threads or machines: [`WordCounts::add_all`] adds counts up, and the
/// sum does not depend on the order. [`Counter`](crate::Counter) does so on the threads of this
/// machine, in bounded memory. Memory: the bytes of each distinct word, and some 30 bytes for each.
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
    recent: Recent,
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

    /// Memory that the words take, in bytes.
    pub fn memory_bytes(&self) -> usize {
        let each = size_of::<usize>() + size_of::<u64>();
        self.arena.capacity() + self.counts.capacity() * each + self.places.allocation_size()
    }

    /// Forgets all words, and gives their memory back.
    pub fn clear(&mut self) {
        *self = Self::default();
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
        self.add_at(word, count).map(|_| ())
    }

    /// As [`WordCounts::add`], and returns the place of the word.
    fn add_at(&mut self, word: &[u8], count: u64) -> Result<u32, CountError> {
        let Self {
            arena,
            ends,
            counts,
            places,
            hasher,
            ..
        } = self;
        let entry = places.entry(
            hasher.hash_one(word),
            |&place| word_at(arena, ends, place) == word,
            |&place| hasher.hash_one(word_at(arena, ends, place)),
        );
        match entry {
            Entry::Occupied(entry) => {
                let place = *entry.get();
                let total = &mut counts[place as usize];
                *total = total
                    .checked_add(count)
                    .ok_or(CountError(CountKind::Overflow))?;
                Ok(place)
            }
            Entry::Vacant(free) => {
                let place =
                    u32::try_from(counts.len()).map_err(|_| CountError(CountKind::TooManyWords))?;
                free.insert(place);
                arena.extend_from_slice(word);
                ends.push(arena.len());
                counts.push(count);
                Ok(place)
            }
        }
    }

    /// Counts the word at `start..end` of `text` once more.
    #[inline]
    fn add_span(&mut self, text: &[u8], start: usize, end: usize) -> Result<(), CountError> {
        let Some(key) = short_key(text, start, end) else {
            return self.add(text.get(start..end).unwrap_or_default(), 1);
        };
        if let Some(place) = self.recent.find(key)
            && let Some(total) = self.counts.get_mut(place as usize)
        {
            *total = total
                .checked_add(1)
                .ok_or(CountError(CountKind::Overflow))?;
            return Ok(());
        }
        let place = self.add_at(text.get(start..end).unwrap_or_default(), 1)?;
        self.recent.put(key, place);
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
        self.recent.prepare();
        let flow = spanner.for_each_run(text, specials, |run| {
            let Run::Pieces {
                offset,
                start,
                ends,
            } = run
            else {
                return ControlFlow::Continue(());
            };
            let mut start = offset + start;
            for end in ends {
                let end = offset + end;
                if let Err(error) = self.add_span(text, start, end) {
                    return ControlFlow::Break(error);
                }
                start = end;
            }
            ControlFlow::Continue(())
        });
        match flow {
            Ok(ControlFlow::Continue(())) => Ok(()),
            Ok(ControlFlow::Break(error)) => Err(error),
            Err(error) => Err(CountError(CountKind::Lexer(error))),
        }
    }

    /// Writes the counts; [`WordCounts::add_file`] has the form. The bytes depend on the counts alone,
    /// not on the order in which they came. O(n log n).
    ///
    /// # Errors
    ///
    /// What `output` says.
    pub fn write_to(&self, output: impl Write) -> io::Result<()> {
        let mut writer = CountWriter::new(output)?;
        for place in self.sorted_places() {
            writer.put(self.word(place), self.counts[place as usize])?;
        }
        writer.finish()
    }

    /// Adds the counts that [`WordCounts::write_to`] or [`Counter::write_to`](crate::Counter::write_to)
    /// wrote. The file is read word by word.
    ///
    /// ```text
    /// file   = "bpwc" version=1 word* 0 number(words)   words in ascending order of their bytes
    /// word   = number(length) bytes number(count)       neither length nor count is 0
    /// number = LEB128, at most 10 bytes
    /// ```
    ///
    /// # Errors
    ///
    /// A file that is not of that form (the error gives the number of the word), a word over
    /// `longest_word` bytes, or what `input` says.
    pub fn add_file(&mut self, input: impl BufRead, longest_word: usize) -> Result<(), CountError> {
        let mut reader = CountReader::new(input, longest_word)?;
        let mut word = Vec::new();
        while let Some(count) = reader.next_word(&mut word)? {
            self.add(&word, count)?;
        }
        Ok(())
    }

    /// The places of the words in ascending order of their bytes.
    pub(crate) fn sorted_places(&self) -> Vec<u32> {
        let mut sorted: Vec<u32> = (0..self.len() as u32).collect();
        sorted.sort_unstable_by_key(|&place| self.word(place));
        sorted
    }

    /// The word at a place, and its count.
    pub(crate) fn at(&self, place: u32) -> (&[u8], u64) {
        (self.word(place), self.counts[place as usize])
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

/// Where the short words that were met last stand: most words of a text are among them, and a look
/// here costs a tenth of one into the table of all words.
#[derive(Clone, Default)]
struct Recent {
    /// Of each slot a word as [`short_key`] writes it, and its place. A key is never 0.
    slots: Vec<(u64, u64, u32)>,
}

const RECENT_BITS: u32 = 14;

impl Recent {
    /// Makes room, which a value that only holds counts does without.
    fn prepare(&mut self) {
        self.slots.resize(1 << RECENT_BITS, (0, 0, 0));
    }

    #[inline]
    fn slot(key: (u64, u64)) -> usize {
        let product =
            u128::from(key.0 ^ 0x9E37_79B9_7F4A_7C15) * u128::from(key.1 ^ 0xD6E8_FEB8_6659_FD93);
        let mixed = (product >> 64) as u64 ^ product as u64;
        (mixed >> (64 - RECENT_BITS)) as usize
    }

    #[inline]
    fn find(&self, key: (u64, u64)) -> Option<u32> {
        let &(first, second, place) = self.slots.get(Self::slot(key))?;
        ((first, second) == key).then_some(place)
    }

    #[inline]
    fn put(&mut self, key: (u64, u64), place: u32) {
        if let Some(slot) = self.slots.get_mut(Self::slot(key)) {
            *slot = (key.0, key.1, place);
        }
    }
}

/// The bytes of a word of 1 to 15 bytes and its length, where the text has 16 bytes from its start.
#[inline]
fn short_key(text: &[u8], start: usize, end: usize) -> Option<(u64, u64)> {
    let length = end.checked_sub(start)?;
    if length == 0 || length > 15 {
        return None;
    }
    let bytes: [u8; 16] = text.get(start..start + 16)?.try_into().ok()?;
    let all = u128::from_le_bytes(bytes);
    let key = all & ((1 << (8 * length)) - 1) | (length as u128) << 120;
    Some((key as u64, (key >> 64) as u64))
}

fn word_at<'a>(arena: &'a [u8], ends: &[usize], place: u32) -> &'a [u8] {
    let place = place as usize;
    let start = match place {
        0 => 0,
        _ => ends[place - 1],
    };
    &arena[start..ends[place]]
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
            b"bpwc\x01\x03abc\x80\x80\x80\x80\x80\x20\x01b\x02\x02\xC3\xA9\x07\0\x03"
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
        assert!(error(b"bpwc\x02\x00\x00").contains("version 1"));
        assert!(error(b"bpwc\x01").contains("word 1"));
        assert!(error(b"bpwc\x01\x03ab").contains("word 1"));
        assert!(error(b"bpwc\x01\x05abcde\x01\0\x01").contains("5 bytes, over the limit"));
        assert!(error(b"bpwc\x01\x01b\x01\x01a\x01\0\x02").contains("word 2"));
        assert!(error(b"bpwc\x01\x01b\x01\x01b\x01\0\x02").contains("word 2"));
        assert!(error(b"bpwc\x01\x01b\x00\0\x01").contains("no count"));
        assert!(error(b"bpwc\x01\x01b\x01\0\x02").contains("1 words instead of 2"));
        assert!(error(b"bpwc\x01\x01b\x01\0\x01x").contains("after the last"));
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

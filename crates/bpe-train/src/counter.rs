//! Counting on several threads, in bounded memory.

use core::fmt;
use std::io::{BufRead, Write};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bpe_lexers::{Spanner, SpecialMatcher};

use crate::counts::WordCounts;
use crate::error::CountError;
use crate::runs::Runs;

/// Counts the words of many texts: on several threads, and in bounded memory, since counts beyond a
/// limit are moved to sorted files and merged in the end. No word is dropped, and neither threads nor
/// limit change the sum.
///
/// Each thread has counts of its own and takes the next text when it is done with one, so texts of
/// different lengths do no harm.
///
/// ```
/// use bpe_lexers::{Engine, Pattern, Spanner, SpecialMatcher};
/// use bpe_train::Counter;
///
/// let spanner = Spanner::new(vec![Pattern::gpt2().lexer(Engine::Auto)?]);
/// let mut counter = Counter::new(spanner, SpecialMatcher::none()).threads(2);
/// counter.add_texts(["the cat", "the hat and the cat"])?;
/// let counts = counter.into_counts()?;
/// assert_eq!(counts.count_of(b" cat"), 2);
/// assert_eq!(counts.count_of(b"the"), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Counter {
    specials: SpecialMatcher,
    workers: Vec<Worker>,
    memory_limit: usize,
    runs: Runs,
}

/// What a thread has for itself.
struct Worker {
    spanner: Spanner,
    counts: WordCounts,
}

impl Counter {
    /// Nothing counted yet; one thread, no limit of memory. Words are what `spanner` cuts; `specials`
    /// are none.
    pub fn new(spanner: Spanner, specials: SpecialMatcher) -> Self {
        Self {
            specials,
            workers: vec![Worker {
                spanner,
                counts: WordCounts::new(),
            }],
            memory_limit: usize::MAX,
            runs: Runs::new(std::env::temp_dir()),
        }
    }

    /// Counts on this many threads; 0 means 1.
    pub fn threads(mut self, threads: usize) -> Self {
        let Some(first) = self.workers.first() else {
            return self;
        };
        let spanner = first.spanner.clone();
        self.workers.resize_with(threads.max(1), || Worker {
            spanner: spanner.clone(),
            counts: WordCounts::new(),
        });
        self
    }

    /// Keeps the counts of all threads together within about this many bytes: those beyond are moved
    /// to files without a name in `folder`, which are gone with the process. The sum that
    /// [`Counter::into_counts`] returns is not limited; [`Counter::write_to`] needs no more than this.
    pub fn memory_limit(mut self, bytes: usize, folder: &Path) -> Self {
        self.memory_limit = bytes;
        self.runs.set_folder(folder.to_owned());
        self
    }

    /// How often counts were moved to disk.
    pub fn spills(&self) -> usize {
        self.runs.written()
    }

    /// Memory that the counts take now, in bytes.
    pub fn memory_bytes(&self) -> usize {
        let counts = self
            .workers
            .iter()
            .map(|worker| worker.counts.memory_bytes());
        counts.sum()
    }

    /// Counts the words of each text. No word goes from one text to the next.
    ///
    /// # Errors
    ///
    /// The lexer gave up, a count overflowed, or counts could not be moved to disk. Of what was
    /// counted then, some is missing: it is of no use any more.
    pub fn add_texts<T: AsRef<[u8]> + Send>(
        &mut self,
        texts: impl IntoIterator<Item = T, IntoIter: Send>,
    ) -> Result<(), CountError> {
        let mut texts = texts.into_iter();
        self.add_blocks(|| Ok(texts.next()), |text, count| count(text.as_ref()))
    }

    /// Counts what `next` gives until it gives `None`. `next` runs on one thread at a time, and so
    /// reads; `texts_of` runs on all of them, and calls its second argument with each text of a block:
    /// to unpack, or to parse.
    ///
    /// # Errors
    ///
    /// As [`Counter::add_texts`], and what `next` and `texts_of` return: of several blocks at fault,
    /// the error of the first.
    pub fn add_blocks<T: Send, E: From<CountError> + Send>(
        &mut self,
        next: impl FnMut() -> Result<Option<T>, E> + Send,
        texts_of: impl Fn(&T, &mut dyn FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> + Sync,
    ) -> Result<(), E> {
        let source = Mutex::new(Source {
            next,
            number: 0,
            is_done: false,
            error: None,
        });
        // A table that grows is twice as large then, so it is moved to disk at half the limit.
        let share = self.memory_limit / self.workers.len().max(1) / 2;
        let specials = &self.specials;
        let runs = Mutex::new(&mut self.runs);
        let work = |worker: &mut Worker| {
            loop {
                let Some((number, block)) = lock(&source).next_block() else {
                    return;
                };
                let Worker { spanner, counts } = worker;
                let result = texts_of(&block, &mut |text| {
                    counts.add_text(spanner, specials, text)?;
                    if counts.memory_bytes() > share {
                        lock(&runs).spill(counts)?;
                    }
                    Ok(())
                });
                if let Err(error) = result {
                    lock(&source).fail(number, error);
                }
            }
        };
        match &mut self.workers[..] {
            [worker] => work(worker),
            workers => std::thread::scope(|scope| {
                for worker in workers {
                    scope.spawn(|| work(worker));
                }
            }),
        }
        let source = source.into_inner().unwrap_or_else(PoisonError::into_inner);
        match source.error {
            Some((_, error)) => Err(error),
            None => Ok(()),
        }
    }

    /// Adds the counts of a file: see [`WordCounts::add_file`].
    ///
    /// # Errors
    ///
    /// As there, and counts that could not be moved to disk.
    pub fn add_file(&mut self, input: impl BufRead, longest_word: usize) -> Result<(), CountError> {
        let share = self.memory_limit / self.workers.len().max(1) / 2;
        let Some(Worker { counts, .. }) = self.workers.first_mut() else {
            return Ok(());
        };
        let mut reader = crate::count_file::CountReader::new(input, longest_word)?;
        let mut word = Vec::new();
        while let Some(count) = reader.next_word(&mut word)? {
            counts.add(&word, count)?;
            if counts.memory_bytes() > share {
                self.runs.spill(counts)?;
            }
        }
        Ok(())
    }

    /// Writes the sum of all counts, as [`WordCounts::write_to`] would. Counting can go on after it.
    ///
    /// # Errors
    ///
    /// A count that overflows, or what the output says, or the files of moved counts.
    pub fn write_to(&mut self, output: impl Write) -> Result<(), CountError> {
        let counts: Vec<&WordCounts> = self.workers.iter().map(|worker| &worker.counts).collect();
        self.runs.write_sum(&counts, output)
    }

    /// The sum of all counts.
    ///
    /// # Errors
    ///
    /// A count that overflows, more than 2^32 distinct words, or files of moved counts that cannot be
    /// read.
    pub fn into_counts(mut self) -> Result<WordCounts, CountError> {
        let mut parts = self.workers.into_iter().map(|worker| worker.counts);
        if self.runs.is_empty() {
            let mut total = parts.next().unwrap_or_default();
            for part in parts {
                total.add_all(&part)?;
            }
            return Ok(total);
        }
        // All to disk first, so that the sum is in memory once.
        parts.try_for_each(|mut part| self.runs.spill(&mut part))?;
        let mut total = WordCounts::new();
        self.runs
            .for_each(&[], |word, count| total.add(word, count))?;
        Ok(total)
    }
}

impl fmt::Debug for Counter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Counter")
            .field("threads", &self.workers.len())
            .field("memory_limit", &self.memory_limit)
            .field("spills", &self.spills())
            .finish_non_exhaustive()
    }
}

/// Where blocks come from, and the first one at fault.
struct Source<N, E> {
    next: N,
    number: u64,
    is_done: bool,
    error: Option<(u64, E)>,
}

impl<N, E> Source<N, E> {
    /// The next block with its number; `None` at the end and after an error.
    fn next_block<T>(&mut self) -> Option<(u64, T)>
    where
        N: FnMut() -> Result<Option<T>, E>,
    {
        if self.is_done {
            return None;
        }
        self.number += 1;
        match (self.next)() {
            Ok(Some(block)) => Some((self.number, block)),
            Ok(None) => {
                self.is_done = true;
                None
            }
            Err(error) => {
                self.fail(self.number, error);
                None
            }
        }
    }

    fn fail(&mut self, number: u64, error: E) {
        if self.error.as_ref().is_none_or(|first| number < first.0) {
            self.error = Some((number, error));
        }
        self.is_done = true;
    }
}

/// A thread that panicked has left nothing half done that another one reads.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

//! Counts that were moved to disk, and their sum with those in memory.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Seek, SeekFrom};
use std::path::PathBuf;

use crate::count_file::{CountReader, CountWriter};
use crate::counts::WordCounts;
use crate::error::{CountError, CountKind};

/// So many runs are merged into one, so that there is a bound on files that are open at once.
const MOST_RUNS: usize = 64;

/// Sorted runs of counts, each a file without a name, which is gone with the process.
pub(crate) struct Runs {
    folder: PathBuf,
    files: Vec<File>,
    written: usize,
}

impl Runs {
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self {
            folder,
            files: Vec::new(),
            written: 0,
        }
    }

    pub(crate) fn set_folder(&mut self, folder: PathBuf) {
        self.folder = folder;
    }

    /// Number of runs that were written.
    pub(crate) fn written(&self) -> usize {
        self.written
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Moves all counts to disk.
    pub(crate) fn spill(&mut self, counts: &mut WordCounts) -> Result<(), CountError> {
        if counts.is_empty() {
            return Ok(());
        }
        let spill = |error| CountError(CountKind::Spill { error });
        let mut file = tempfile::tempfile_in(&self.folder).map_err(spill)?;
        counts.write_to(BufWriter::new(&mut file)).map_err(spill)?;
        counts.clear();
        self.files.push(file);
        self.written += 1;
        if self.files.len() >= MOST_RUNS {
            let mut file = tempfile::tempfile_in(&self.folder).map_err(spill)?;
            self.write_sum(&[], BufWriter::new(&mut file))?;
            self.files = vec![file];
        }
        Ok(())
    }

    /// Writes the sum of all runs and of `others`.
    pub(crate) fn write_sum(
        &mut self,
        others: &[&WordCounts],
        output: impl io::Write,
    ) -> Result<(), CountError> {
        let merge = |error| CountError(CountKind::Merge { error });
        let mut writer = CountWriter::new(output).map_err(merge)?;
        self.for_each(others, |word, count| writer.put(word, count).map_err(merge))?;
        writer.finish().map_err(merge)
    }

    /// Calls `visit` for each word of the sum of all runs and of `others`, in ascending order.
    pub(crate) fn for_each(
        &mut self,
        others: &[&WordCounts],
        mut visit: impl FnMut(&[u8], u64) -> Result<(), CountError>,
    ) -> Result<(), CountError> {
        let mut sources: Vec<Source<'_>> = Vec::new();
        for file in &mut self.files {
            let start = file.seek(SeekFrom::Start(0));
            start.map_err(|error| CountError(CountKind::Merge { error }))?;
            let reader = CountReader::new(BufReader::with_capacity(1 << 16, &*file), usize::MAX)?;
            sources.push(Source::File(reader));
        }
        for &counts in others {
            let places = counts.sorted_places().into_iter();
            sources.push(Source::Memory(counts, places));
        }
        // The next word of each source. A word that comes from several is added up.
        let mut heads = BinaryHeap::new();
        for (index, source) in sources.iter_mut().enumerate() {
            let mut word = Vec::new();
            if let Some(count) = source.next_word(&mut word)? {
                heads.push(Reverse((word, index, count)));
            }
        }
        let mut current = Vec::new();
        let mut total = 0_u64;
        while let Some(Reverse((mut word, index, count))) = heads.pop() {
            if word != current {
                if !current.is_empty() {
                    visit(&current, total)?;
                }
                current.clone_from(&word);
                total = 0;
            }
            let sum = total.checked_add(count);
            total = sum.ok_or(CountError(CountKind::Overflow))?;
            let next = match sources.get_mut(index) {
                Some(source) => source.next_word(&mut word)?,
                None => None,
            };
            if let Some(count) = next {
                heads.push(Reverse((word, index, count)));
            }
        }
        if !current.is_empty() {
            visit(&current, total)?;
        }
        Ok(())
    }
}

/// Words in ascending order.
enum Source<'a> {
    File(CountReader<BufReader<&'a File>>),
    Memory(&'a WordCounts, std::vec::IntoIter<u32>),
}

impl Source<'_> {
    fn next_word(&mut self, word: &mut Vec<u8>) -> Result<Option<u64>, CountError> {
        match self {
            Self::File(reader) => reader.next_word(word),
            Self::Memory(counts, places) => Ok(places.next().map(|place| {
                let (bytes, count) = counts.at(place);
                word.clear();
                word.extend_from_slice(bytes);
                count
            })),
        }
    }
}

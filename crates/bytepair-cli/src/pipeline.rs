//! Blocks through a function, on several threads, in order.

use std::io::{Read, Write};
use std::sync::atomic::Ordering;
use std::sync::mpsc::sync_channel;

use indicatif::{ProgressBar, ProgressStyle};

use crate::cuts::Cutter;
use crate::error::CliError;
use crate::input::{Block, BlockSource, Blocks, Input, LineBlocks, Open};

/// Bytes of the blocks that are read ahead for all threads together, at most.
const BLOCKS_BYTES: usize = 16 << 20;

/// Files over this size show a progress bar to who watches.
const PROGRESS_BYTES: u64 = 32 << 20;

/// What a command works with: its streams, and how it uses the machine.
pub(crate) struct Session<'a> {
    pub(crate) stdin: &'a mut (dyn Read + Send),
    pub(crate) stdout: &'a mut dyn Write,
    /// Says something on standard error that is no failure.
    pub(crate) warn: &'a mut dyn FnMut(&str),
    /// Whether standard error is a terminal, and standard output none that a bar would disturb.
    pub(crate) is_watched: bool,
    /// Whether standard output is a terminal that shows colours.
    pub(crate) has_colors: bool,
    /// Size of blocks, for tests.
    pub(crate) block_bytes: Option<usize>,
}

impl Session<'_> {
    /// Calls `work` for each block of `input`, on `threads` threads, and `sink` with the output and
    /// each result, in order. Stops at the first error of either.
    ///
    /// Memory: some 4 blocks a thread and their results; more where the input cannot be cut.
    pub(crate) fn for_each_block<T: Send>(
        &mut self,
        input: &Input,
        cutter: &Result<Cutter, String>,
        threads: usize,
        work: impl Fn(&Block) -> Result<T, CliError> + Sync,
        mut sink: impl FnMut(&mut dyn Write, T) -> Result<(), CliError>,
    ) -> Result<(), CliError> {
        let block_bytes = self.block_bytes(threads);
        let Open { reader, size, read } = input.open(self.stdin)?;
        let bar = progress_bar(size, self.is_watched);
        let name = input.name();
        let warn = &mut *self.warn;
        let mut warn = |text: &str| warn(&format!("{name}: {text}"));
        let cutter = cutter.as_ref().map_err(String::as_str);
        let blocks = Blocks::new(reader, cutter, block_bytes, &mut warn).one_at_least();
        let stdout = &mut *self.stdout;
        let result = run(blocks, &name, threads, work, |result| {
            bar.set_position(read.load(Ordering::Relaxed));
            sink(stdout, result)
        });
        bar.finish_and_clear();
        result
    }

    /// As `for_each_block`, for input in which each line is a document: blocks end behind newlines.
    ///
    /// Memory: as there, and a line may be as long as it likes.
    pub(crate) fn for_each_block_of_lines<T: Send>(
        &mut self,
        input: &Input,
        threads: usize,
        work: impl Fn(&Block) -> Result<T, CliError> + Sync,
        mut sink: impl FnMut(&mut dyn Write, T) -> Result<(), CliError>,
    ) -> Result<(), CliError> {
        let block_bytes = self.block_bytes(threads);
        let Open { reader, size, read } = input.open(self.stdin)?;
        let bar = progress_bar(size, self.is_watched);
        let blocks = LineBlocks::new(reader, block_bytes);
        let stdout = &mut *self.stdout;
        let result = run(blocks, &input.name(), threads, work, |result| {
            bar.set_position(read.load(Ordering::Relaxed));
            sink(stdout, result)
        });
        bar.finish_and_clear();
        result
    }

    fn block_bytes(&self, threads: usize) -> usize {
        let usual = (BLOCKS_BYTES / threads).clamp(1 << 16, 1 << 20);
        self.block_bytes.unwrap_or(usual)
    }
}

/// Runs `work` on the blocks and `sink` on the results.
fn run<T: Send>(
    mut blocks: impl BlockSource,
    name: &str,
    threads: usize,
    work: impl Fn(&Block) -> Result<T, CliError> + Sync,
    mut sink: impl FnMut(T) -> Result<(), CliError>,
) -> Result<(), CliError> {
    let mut next_block = || {
        let block = blocks.next_block();
        let block = block.map_err(|error| CliError::reading(name, error))?;
        Ok((block, blocks.is_done()))
    };
    let (mut next, is_last) = next_block()?;
    if threads <= 1 || is_last {
        while let Some(block) = next {
            sink(work(&block)?)?;
            next = next_block()?.0;
        }
        return Ok(());
    }
    let work = &work;
    std::thread::scope(|scope| {
        // Block i goes to lane i modulo their number, and results are fetched in the same order:
        // they come in the order of the input. A lane works on one block while the next one waits.
        // The threads last as long as the input, since each has engines of its own.
        let lane = |_| {
            let (blocks, waiting) = sync_channel::<Block>(1);
            let (done, results) = sync_channel(2);
            scope.spawn(move || {
                for block in waiting {
                    if done.send(work(&block)).is_err() {
                        return;
                    }
                }
            });
            (blocks, results)
        };
        let lanes: Vec<_> = (0..threads).map(lane).collect();
        let (mut sent, mut received) = (0, 0);
        let mut read_error = None;
        loop {
            while sent - received < 2 * threads
                && let Some(block) = next.take()
            {
                if lanes[sent % threads].0.send(block).is_err() {
                    return Err(lost_thread());
                }
                sent += 1;
                // What was read before an error is put out, as with one thread.
                match next_block() {
                    Ok((block, _)) => next = block,
                    Err(error) => read_error = Some(error),
                }
            }
            if received == sent {
                return read_error.map_or(Ok(()), Err);
            }
            let result = lanes[received % threads].1.recv();
            received += 1;
            sink(result.map_err(|_| lost_thread())??)?;
        }
    })
}

/// A thread ends before its lane only by a panic, which the scope passes on.
fn lost_thread() -> CliError {
    CliError::Input("a thread has failed".to_owned())
}

/// A bar for an input of this size, hidden where no one sees it or it would only flash up.
fn progress_bar(size: Option<u64>, is_watched: bool) -> ProgressBar {
    match size {
        Some(size) if is_watched && size > PROGRESS_BYTES => {
            let template = "{bar:40} {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left";
            let style = ProgressStyle::with_template(template);
            let bar = ProgressBar::new(size);
            match style {
                Ok(style) => bar.with_style(style),
                Err(_) => bar,
            }
        }
        _ => ProgressBar::hidden(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytepair::Tokenizer;
    use std::io;

    #[test]
    fn results_come_in_the_order_of_the_input_from_any_number_of_threads() {
        let tokenizer = Tokenizer::o200k_base();
        let cutter = Cutter::new(&[&tokenizer]).expect("a known pattern");
        let text: String = (0..3000).map(|n| format!("word{n} ")).collect();
        for threads in [1, 2, 3, 8] {
            let mut warn = |_: &str| {};
            let blocks = Blocks::new(text.as_bytes(), Ok(&cutter), 50, &mut warn);
            let mut joined = Vec::new();
            let work = |block: &Block| Ok(block.bytes.clone());
            let sink = |part: Vec<u8>| {
                joined.extend(part);
                Ok(())
            };
            run(blocks, "text", threads, work, sink).expect("nothing fails");
            assert_eq!(joined, text.as_bytes(), "{threads} threads");
        }
    }

    #[test]
    fn an_error_ends_the_work_and_what_stood_before_it_is_put_out() {
        let tokenizer = Tokenizer::o200k_base();
        let cutter = Cutter::new(&[&tokenizer]).expect("a known pattern");
        let text = "one two three four five six seven eight nine ten ".repeat(50);
        for threads in [1, 3] {
            let mut warn = |_: &str| {};
            let blocks = Blocks::new(text.as_bytes(), Ok(&cutter), 10, &mut warn);
            let mut end = 0;
            let work = |block: &Block| match block.start > 1000 {
                true => Err(CliError::Input(format!("at {}", block.start))),
                false => Ok(block.start + block.bytes.len() as u64),
            };
            let sink = |block_end: u64| {
                end = block_end;
                Ok(())
            };
            let error = run(blocks, "text", threads, work, sink).expect_err("fails");
            // The first block at fault is the one that begins where the last good one ends.
            assert_eq!(error.message(), Some(format!("at {end}").as_str()));
        }
    }

    #[test]
    fn a_read_error_comes_after_the_blocks_before_it() {
        struct Failing(usize);
        impl Read for Failing {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                if self.0 == 0 {
                    return Err(io::Error::other("the disk is gone"));
                }
                self.0 -= 1;
                buffer[0] = if self.0.is_multiple_of(2) { b' ' } else { b'a' };
                Ok(1)
            }
        }
        let tokenizer = Tokenizer::o200k_base();
        let cutter = Cutter::new(&[&tokenizer]).expect("a known pattern");
        for threads in [1, 4] {
            let mut warn = |_: &str| {};
            let blocks = Blocks::new(Failing(1000), Ok(&cutter), 100, &mut warn);
            let mut bytes = 0;
            let work = |block: &Block| Ok(block.bytes.len());
            let sink = |part: usize| {
                bytes += part;
                Ok(())
            };
            let error = run(blocks, "text", threads, work, sink).expect_err("fails");
            assert_eq!(error.message(), Some("cannot read text: the disk is gone"));
            assert!(bytes > 800, "{bytes} bytes before the error");
        }
    }

    #[test]
    fn a_bar_is_shown_for_large_files_that_someone_watches() {
        assert!(progress_bar(Some(PROGRESS_BYTES), true).length().is_none());
        assert!(progress_bar(None, true).length().is_none());
        assert!(progress_bar(Some(1 << 30), false).length().is_none());
        assert_eq!(progress_bar(Some(1 << 30), true).length(), Some(1 << 30));
    }
}

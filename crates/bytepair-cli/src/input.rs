//! Input: files and standard input, read in blocks that can be encoded one by one.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::cuts::Cutter;
use crate::error::CliError;
use crate::unpack::unpack;

/// Input without a cut beyond this many bytes is worth a warning.
const HELD_BYTES: usize = 8 << 20;

/// Where text comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Input {
    /// Standard input.
    Stdin,
    /// A file.
    File(PathBuf),
}

impl Input {
    /// The inputs that `paths` name: `-` is standard input, and so is no path at all.
    pub(crate) fn all(paths: &[PathBuf]) -> Vec<Self> {
        let input = |path: &PathBuf| match path.as_path() == Path::new("-") {
            true => Self::Stdin,
            false => Self::File(path.clone()),
        };
        match paths {
            [] => vec![Self::Stdin],
            _ => paths.iter().map(input).collect(),
        }
    }

    /// The name in messages and in JSON: the path, or `-`.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Stdin => "-".to_owned(),
            Self::File(path) => path.display().to_string(),
        }
    }

    /// Opens it. Files whose names end in `.gz` or `.zst` are unpacked.
    pub(crate) fn open<'s>(&self, stdin: &'s mut (dyn Read + Send)) -> Result<Open<'s>, CliError> {
        let read = Arc::new(AtomicU64::new(0));
        let path = match self {
            Self::Stdin => {
                return Ok(Open {
                    reader: Box::new(Counted::new(stdin, &read)),
                    size: None,
                    read,
                });
            }
            Self::File(path) => path,
        };
        let failed = |error: io::Error| CliError::reading(&self.name(), error);
        let file = File::open(path).map_err(failed)?;
        let data = file.metadata().map_err(failed)?;
        let mut reader: Box<dyn Read + Send> = Box::new(Counted::new(file, &read));
        if path
            .extension()
            .is_some_and(|ending| ending == "gz" || ending == "zst")
        {
            reader = unpack(reader).map_err(failed)?;
        }
        Ok(Open {
            reader,
            size: data.is_file().then_some(data.len()),
            read,
        })
    }
}

/// An input that is being read.
pub(crate) struct Open<'s> {
    pub(crate) reader: Box<dyn Read + Send + 's>,
    /// Its bytes, packed where it is packed; not known of standard input and of pipes.
    pub(crate) size: Option<u64>,
    /// How many of these have been read.
    pub(crate) read: Arc<AtomicU64>,
}

/// Counts what is read.
pub(crate) struct Counted<R> {
    reader: R,
    read: Arc<AtomicU64>,
}

impl<R> Counted<R> {
    /// Adds the bytes to `read`.
    pub(crate) fn new(reader: R, read: &Arc<AtomicU64>) -> Self {
        Self {
            reader,
            read: Arc::clone(read),
        }
    }
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(buffer)?;
        self.read.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

/// What gives the parts of an input one by one.
pub(crate) trait BlockSource {
    /// The next block, never empty; `None` at the end.
    fn next_block(&mut self) -> io::Result<Option<Block>>;

    /// Whether no block follows.
    fn is_done(&self) -> bool;
}

/// A part of an input.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Block {
    /// Where it begins in the input.
    pub(crate) start: u64,
    /// The number of the line that begins there, counted from 1, in input that is read by lines.
    pub(crate) line: u64,
    pub(crate) bytes: Vec<u8>,
}

/// Reads an input in blocks that end at safe cuts, so that what the blocks encode to, in a row, is
/// what the whole encodes to. Holds one block and what follows its cut; more where no cut is found.
pub(crate) struct Blocks<'a, R, W> {
    reader: R,
    /// The cutter, or why there is none.
    cutter: Result<&'a Cutter, &'a str>,
    block_bytes: usize,
    /// Bytes that were read and belong to the next block.
    carry: Vec<u8>,
    start: u64,
    /// Whether a block is to come even if there is no text.
    wants_one: bool,
    at_end: bool,
    warn: W,
    warned: bool,
}

impl<'a, R: Read, W: FnMut(&str)> Blocks<'a, R, W> {
    /// Blocks of about `block_bytes` of what `reader` gives. `warn` is called at most once.
    pub(crate) fn new(
        reader: R,
        cutter: Result<&'a Cutter, &'a str>,
        block_bytes: usize,
        warn: W,
    ) -> Self {
        Self {
            reader,
            cutter,
            block_bytes: block_bytes.max(1),
            carry: Vec::new(),
            start: 0,
            wants_one: false,
            at_end: false,
            warn,
            warned: false,
        }
    }

    /// The same, of one block at least: an empty text is one too, to which special tokens may be added.
    pub(crate) fn one_at_least(mut self) -> Self {
        self.wants_one = true;
        self
    }

    /// Reads until there are `wanted` bytes and notices the end.
    fn read_up_to(&mut self, bytes: &mut Vec<u8>, wanted: usize) -> io::Result<()> {
        let missing = wanted.saturating_sub(bytes.len());
        if missing == 0 || self.at_end {
            return Ok(());
        }
        bytes.reserve_exact(missing);
        let read = (&mut self.reader).take(missing as u64).read_to_end(bytes)?;
        self.at_end = read < missing;
        Ok(())
    }
}

impl<R: Read, W: FnMut(&str)> BlockSource for Blocks<'_, R, W> {
    fn next_block(&mut self) -> io::Result<Option<Block>> {
        let mut bytes = std::mem::take(&mut self.carry);
        let mut wanted = self.block_bytes;
        loop {
            self.read_up_to(&mut bytes, wanted)?;
            let cut = match self.cutter {
                _ if self.at_end => break,
                Ok(cutter) => cutter.last_cut(&bytes),
                Err(_) => None,
            };
            if let Some(cut) = cut {
                self.carry = bytes.split_off(cut);
                break;
            }
            if bytes.len() >= HELD_BYTES && !self.warned {
                self.warned = true;
                match self.cutter {
                    Ok(_) => (self.warn)(
                        "long input without a place to cut it: it is held in memory up to the next one",
                    ),
                    Err(why) => (self.warn)(&format!(
                        "the whole input is held in memory: this tokenizer's text cannot be cut, as {why}"
                    )),
                }
            }
            // Doubled, so that the searches for a cut are linear altogether.
            wanted = bytes.len().max(self.block_bytes).saturating_mul(2);
        }
        if bytes.is_empty() && !self.wants_one {
            return Ok(None);
        }
        self.wants_one = false;
        let start = self.start;
        self.start += bytes.len() as u64;
        let line = 0;
        Ok(Some(Block { start, line, bytes }))
    }

    fn is_done(&self) -> bool {
        self.at_end && self.carry.is_empty()
    }
}

/// Reads an input in blocks that end behind a newline. Holds one block; more where a line is longer.
pub(crate) struct LineBlocks<R> {
    reader: R,
    block_bytes: usize,
    /// The beginning of a line, which belongs to the next block.
    carry: Vec<u8>,
    start: u64,
    line: u64,
    at_end: bool,
}

impl<R: Read> LineBlocks<R> {
    /// Blocks of about `block_bytes` of what `reader` gives.
    pub(crate) fn new(reader: R, block_bytes: usize) -> Self {
        Self {
            reader,
            block_bytes: block_bytes.max(1),
            carry: Vec::new(),
            start: 0,
            line: 1,
            at_end: false,
        }
    }
}

impl<R: Read> BlockSource for LineBlocks<R> {
    fn next_block(&mut self) -> io::Result<Option<Block>> {
        let mut bytes = std::mem::take(&mut self.carry);
        while !self.at_end {
            let seen = bytes.len();
            // Doubled where there is no newline, so that the work is linear altogether.
            let wanted = self.block_bytes.max(seen) as u64;
            let read = (&mut self.reader).take(wanted).read_to_end(&mut bytes)?;
            self.at_end = (read as u64) < wanted;
            let fresh = bytes.get(seen..).unwrap_or_default();
            if let Some(newline) = fresh.iter().rposition(|&byte| byte == b'\n') {
                self.carry = bytes.split_off(seen + newline + 1);
                break;
            }
        }
        if bytes.is_empty() {
            return Ok(None);
        }
        let (start, line) = (self.start, self.line);
        self.start += bytes.len() as u64;
        self.line += bytes.iter().filter(|&&byte| byte == b'\n').count() as u64;
        Ok(Some(Block { start, line, bytes }))
    }

    fn is_done(&self) -> bool {
        self.at_end && self.carry.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytepair::{Specials, Tokenizer};

    const CORPORA: [&str; 6] = [
        "adversarial.txt",
        "chinese.txt",
        "code.txt",
        "english.txt",
        "mixed.txt",
        "structured.txt",
    ];

    fn corpus(name: &str) -> Vec<u8> {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../bench-data/corpora/");
        std::fs::read(format!("{folder}{name}")).expect("a corpus")
    }

    #[test]
    fn of_a_packed_file_the_packed_bytes_are_counted() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("english.txt.gz");
        let file = File::create(&path).expect("a file");
        let mut packer = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
        let text = corpus("english.txt");
        io::Write::write_all(&mut packer, &text).expect("written");
        packer.finish().expect("written");
        let size = path.metadata().expect("it is there").len();
        let mut stdin = io::empty();
        let opened = Input::File(path).open(&mut stdin);
        let mut opened = opened.unwrap_or_else(|_| panic!("it opens"));
        assert_eq!(opened.size, Some(size));
        let mut half = vec![0; text.len() / 2];
        opened.reader.read_exact(&mut half).expect("it unpacks");
        let read = opened.read.load(Ordering::Relaxed);
        assert!(0 < read && read < size, "{read} of {size}");
        opened.reader.read_to_end(&mut half).expect("it unpacks");
        assert!(half == text);
        assert_eq!(opened.read.load(Ordering::Relaxed), size);
    }

    fn blocks_of(text: &[u8], cutter: &Cutter, block_bytes: usize) -> Vec<Block> {
        let mut warn = |_: &str| {};
        let mut blocks = Blocks::new(text, Ok(cutter), block_bytes, &mut warn);
        let mut all = Vec::new();
        while let Some(block) = blocks.next_block().expect("memory can be read") {
            all.push(block);
        }
        assert!(blocks.is_done());
        all
    }

    /// Encodes in blocks and at once, and returns the number of blocks.
    fn check(tokenizer: &Tokenizer, text: &[u8], block_bytes: usize) -> usize {
        let cutter = Cutter::new(&[tokenizer]).expect("a known pattern");
        let blocks = blocks_of(text, &cutter, block_bytes);
        let mut ids = Vec::new();
        let mut start = 0;
        for block in &blocks {
            assert_eq!(block.start, start);
            start += block.bytes.len() as u64;
            tokenizer
                .encode_into(&block.bytes, &mut ids)
                .expect("encodes");
        }
        assert_eq!(start, text.len() as u64);
        let whole = tokenizer.encode_bytes(text).expect("encodes");
        assert!(ids == whole, "blocks of {block_bytes}, {tokenizer:?}");
        blocks.len()
    }

    #[test]
    fn blocks_of_any_size_encode_to_what_the_whole_encodes_to() {
        for encoding in ["r50k_base", "cl100k_base", "o200k_base"] {
            let tokenizer = Tokenizer::from_name(encoding).expect("embedded");
            for name in CORPORA {
                let text = corpus(name);
                for block_bytes in [1, 2, 3, 7, 64, 1000, 65_536] {
                    let blocks = check(&tokenizer, &text, block_bytes);
                    assert!(blocks > 1 || block_bytes > text.len(), "{name} is cut");
                }
            }
        }
    }

    /// Text in which special tokens overlap, touch, are cut short and stand beside words, blanks
    /// and bytes that are not UTF-8.
    fn text_with_specials(specials: &[&str], length: usize) -> Vec<u8> {
        let others: [&[u8]; 14] = [
            b" ",
            b"\n",
            b"  ",
            b"word",
            b" Two",
            b"12",
            b"<|",
            b"|>",
            b"<",
            b"'s",
            b"\xFF",
            b"\xE4\xB8",
            "\u{e9}".as_bytes(),
            b"/",
        ];
        let mut state = 0x2545_F491_4F6C_DD1D_u64;
        let mut random = |below: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 33) as usize % below
        };
        let mut text = Vec::new();
        while text.len() < length {
            let special = specials[random(specials.len())].as_bytes();
            match random(4) {
                0 => text.extend_from_slice(special),
                1 => text.extend_from_slice(&special[..random(special.len() + 1)]),
                _ => text.extend_from_slice(others[random(others.len())]),
            }
        }
        text
    }

    #[test]
    fn special_tokens_across_the_ends_of_blocks_are_found_as_in_the_whole() {
        // Words, prefixes of each other, one inside another, and one with blanks at its ends.
        let specials = [
            "<|end|>",
            "<|end|>\n<|end|>",
            "end",
            " word ",
            "word Two",
            "aaaa",
            "é é",
        ];
        let text = text_with_specials(&specials, 30_000);
        for encoding in ["gpt2", "cl100k_base", "o200k_base"] {
            let tokenizer = Tokenizer::from_name(encoding).expect("embedded");
            let numbered = specials.iter().copied().zip(300_000..);
            let tokenizer = tokenizer.to_builder().special_tokens(numbered).build();
            let tokenizer = tokenizer.expect("special tokens");
            let allowed = tokenizer
                .with_specials(Specials::AllowAll)
                .expect("specials");
            for block_bytes in [1, 2, 5, 16, 40, 333] {
                let blocks = check(&allowed, &text, block_bytes);
                assert!(blocks > 40, "{blocks} blocks of {block_bytes}");
                check(&tokenizer, &text, block_bytes);
            }
        }
    }

    #[test]
    fn added_tokens_that_are_not_special_are_minded_without_any_option() {
        let tokenizer = Tokenizer::o200k_base().to_builder();
        let tokenizer = tokenizer.added_token("two words", 300_000).build();
        let text = "one two words two  two words twotwo words ".repeat(20);
        let tokenizer = tokenizer.expect("an added token");
        assert!(tokenizer.encode(&text).expect("encodes").contains(&300_000));
        for block_bytes in 1..60 {
            check(&tokenizer, text.as_bytes(), block_bytes);
        }
    }

    #[test]
    fn the_second_text_of_a_special_token_is_not_cut() {
        let tokenizer = Tokenizer::o200k_harmony();
        let tokenizer = tokenizer
            .with_specials(Specials::AllowAll)
            .expect("specials");
        let text = "a<|reserved_200018|>b <|reserved_200017|> c<|endofprompt|>".repeat(9);
        for block_bytes in 1..80 {
            check(&tokenizer, text.as_bytes(), block_bytes);
        }
    }

    #[test]
    fn back_to_back_special_tokens_are_cut_between_them() {
        let tokenizer = Tokenizer::o200k_base();
        let tokenizer = tokenizer
            .with_specials(Specials::AllowAll)
            .expect("specials");
        let text = "<|endoftext|>".repeat(1000);
        assert!(check(&tokenizer, text.as_bytes(), 64) > 100);
    }

    #[test]
    fn random_bytes_are_encoded_in_blocks_as_at_once() {
        let text = text_with_specials(&["\u{0}\u{7f}", "\r\n", "\u{10ffff}"], 20_000);
        for encoding in ["gpt2", "cl100k_base", "o200k_base"] {
            let tokenizer = Tokenizer::from_name(encoding).expect("embedded");
            for block_bytes in [1, 4, 100] {
                check(&tokenizer, &text, block_bytes);
            }
        }
    }

    #[test]
    fn input_without_a_cut_is_one_block_with_one_warning() {
        let tokenizer = Tokenizer::o200k_base();
        let cutter = Cutter::new(&[&tokenizer]).expect("a known pattern");
        let text = vec![b'x'; 2 * HELD_BYTES + 5];
        for cutter in [Ok(&cutter), Err("of a reason")] {
            let mut warnings = Vec::new();
            let mut warn = |text: &str| warnings.push(text.to_owned());
            let mut blocks = Blocks::new(text.as_slice(), cutter, 1000, &mut warn);
            let block = blocks.next_block().expect("reads").expect("a block");
            assert_eq!(block.bytes.len(), text.len());
            assert_eq!(blocks.next_block().expect("reads"), None);
            assert_eq!(warnings.len(), 1);
            assert_eq!(warnings[0].contains("as of a reason"), cutter.is_err());
        }
    }

    #[test]
    fn blocks_of_lines_are_whole_lines_and_know_their_numbers() {
        let text = "one\ntwo\n\nfour is a long line of many words\nfive";
        for block_bytes in [1, 4, 10, 1000] {
            let mut blocks = LineBlocks::new(text.as_bytes(), block_bytes);
            let mut joined = Vec::new();
            while let Some(block) = blocks.next_block().expect("memory can be read") {
                assert_eq!(block.start, joined.len() as u64);
                let before = text[..joined.len()].matches('\n').count() as u64;
                assert_eq!(block.line, before + 1);
                joined.extend_from_slice(&block.bytes);
                assert!(block.bytes.ends_with(b"\n") || blocks.is_done());
            }
            assert_eq!(joined, text.as_bytes());
        }
        let mut none = LineBlocks::new(&b""[..], 10);
        assert_eq!(none.next_block().expect("reads"), None);
    }

    #[test]
    fn no_input_is_no_block_or_an_empty_one_and_short_input_is_not_warned_about() {
        let mut warn = |text: &str| panic!("{text}");
        let mut blocks = Blocks::new(&b""[..], Err("of a reason"), 10, &mut warn);
        assert_eq!(blocks.next_block().expect("reads"), None);
        let mut blocks = blocks.one_at_least();
        let only = blocks.next_block().expect("reads");
        assert_eq!(
            only.map(|block| (block.start, block.bytes)),
            Some((0, Vec::new()))
        );
        assert_eq!(blocks.next_block().expect("reads"), None);
        let mut blocks = Blocks::new(&[b'x'; 5000][..], Err("of a reason"), 10, &mut warn);
        assert_eq!(
            blocks.next_block().expect("reads").map(|b| b.start),
            Some(0)
        );
        assert!(blocks.is_done());
    }
}

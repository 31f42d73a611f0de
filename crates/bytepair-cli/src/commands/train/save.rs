//! The vocabulary as files.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use bpe_core::{Atoms, Dictionary, ReadLimits, byte_level, gpt2, tiktoken};
use bpe_train::Training;
use bytepair::{Pattern, Pipeline, Specials, TokenId, Tokenizer, TokenizerBuilder};
use serde_json::Value;

use super::checkpoint::cannot_write;
use super::start::Start;
use crate::args::{AlphabetArg, TrainArgs};
use crate::error::CliError;

/// What is written.
pub(super) enum Format {
    TokenizerJson,
    Tiktoken,
    Gpt2,
}

impl Format {
    pub(super) fn of(path: &Path, alphabet: AlphabetArg) -> Result<Self, CliError> {
        let end = path.extension().and_then(|end| end.to_str());
        match end {
            Some("json") => Ok(Self::TokenizerJson),
            _ if alphabet == AlphabetArg::Characters => Err(CliError::Usage(
                "an alphabet of characters needs an --out that ends in .json: the other formats are \
                 for bytes"
                    .to_owned(),
            )),
            Some("tiktoken") => Ok(Self::Tiktoken),
            None => Ok(Self::Gpt2),
            Some(end) => Err(CliError::Usage(format!(
                "--out ends in .json or .tiktoken, or is a folder: there is no format .{end}"
            ))),
        }
    }
}

/// Fails where what is learned could be written, but not be read again: by what is there before anything
/// is counted.
pub(super) fn check(
    format: &Format,
    untrained: &Training,
    specials: &[&str],
    pattern: &Pattern,
) -> Result<(), CliError> {
    let Format::TokenizerJson = format else {
        return Ok(());
    };
    let dictionary = untrained.dictionary(0);
    let dictionary = dictionary.map_err(|error| CliError::Vocabulary(error.to_string()))?;
    let is_bytes = dictionary.atoms() == Atoms::Bytes;
    for special in specials {
        // In the file, tokens and special tokens have names of one kind.
        let token = match is_bytes {
            true => byte_level::decode(special).ok(),
            false => Some(special.as_bytes().to_vec()),
        };
        if let Some(token) = token
            && (token != special.as_bytes() || dictionary.vocabulary().id_of(&token).is_some())
        {
            return Err(CliError::Usage(format!(
                "--special-token {special:?}: in a tokenizer.json this is how the token {:?} is spelled",
                String::from_utf8_lossy(&token)
            )));
        }
    }
    let first = dictionary.vocabulary().max_id().map_or(0, |last| last + 1);
    let texts = specials.iter().map(|&special| special.to_owned());
    let numbered: Vec<_> = texts.zip(first..).collect();
    let text = tokenizer(&dictionary, &numbered, pattern)?.to_tokenizer_json();
    let text = text.map_err(|error| CliError::Usage(error.to_string()))?;
    let limits = ReadLimits::default();
    let read = match is_bytes {
        true => Tokenizer::from_tokenizer_json(text.as_bytes(), &limits).map(|_| ()),
        false => Pipeline::from_tokenizer_json(text.as_bytes(), &limits).map(|_| ()),
    };
    read.map_err(|error| {
        CliError::Usage(format!(
            "the tokenizer.json could not be read again: {error}"
        ))
    })
}

/// Says what the files will not hold.
pub(super) fn warn_about_losses(
    args: &TrainArgs,
    format: &Format,
    start: &Start,
    warn: &mut dyn FnMut(&str),
) {
    let specials = start.all_specials(args);
    if !matches!(format, Format::TokenizerJson) && !specials.is_empty() {
        warn(&format!(
            "{} has no place for special tokens: who loads it has to name them",
            args.out.display()
        ));
    }
    let Some(path) = &args.continue_from else {
        return;
    };
    let inside = path.join("tokenizer.json");
    let file = if inside.exists() { &inside } else { path };
    let text = fs::read(file).unwrap_or_default();
    let file: Value = serde_json::from_slice(&text).unwrap_or_default();
    let after = &file["post_processor"];
    if !after.is_null() && after["type"] != "ByteLevel" {
        warn(&format!(
            "the post_processor of {} is not carried over",
            path.display()
        ));
    }
}

/// Fails where `out` cannot be written: before hours of training, not after them.
pub(super) fn prepare(format: &Format, out: &Path) -> Result<(), CliError> {
    let path = match format {
        Format::TokenizerJson | Format::Tiktoken => out.to_owned(),
        Format::Gpt2 => {
            let created = fs::create_dir_all(out);
            created.map_err(|error| cannot_write(out, error))?;
            out.join("vocab.json")
        }
    };
    try_writing(&path)
}

/// Fails where there can be no file `path`.
pub(super) fn try_writing(path: &Path) -> Result<(), CliError> {
    if path.is_dir() {
        return Err(cannot_write(path, io::ErrorKind::IsADirectory.into()));
    }
    let new = new_name(&behind_links(path));
    if is_pipe_or_device(path) || new.exists() {
        // Of a run that was broken off, or someone else's: it is for the end to tell.
        return Ok(());
    }
    let written = fs::write(&new, "").and_then(|()| fs::remove_file(&new));
    written.map_err(|error| cannot_write(path, error))
}

/// Writes the vocabulary to `out`.
pub(super) fn save(
    format: &Format,
    out: &Path,
    dictionary: &Dictionary,
    specials: &[(String, TokenId)],
    pattern: &Pattern,
) -> Result<(), CliError> {
    match format {
        Format::TokenizerJson => {
            let text = tokenizer(dictionary, specials, pattern)?.to_tokenizer_json();
            let text = text.map_err(|error| CliError::Vocabulary(error.to_string()))?;
            write(out, &text)
        }
        Format::Tiktoken => write(out, &tiktoken::write(dictionary.vocabulary())),
        Format::Gpt2 => {
            write(&out.join("vocab.json"), &gpt2::write_vocab(dictionary))?;
            write(&out.join("merges.txt"), &gpt2::write_merges(dictionary))
        }
    }
}

/// The tokenizer of what was learned.
pub(super) fn tokenizer(
    dictionary: &Dictionary,
    specials: &[(String, TokenId)],
    pattern: &Pattern,
) -> Result<Tokenizer, CliError> {
    let builder = TokenizerBuilder::new(dictionary)
        .pattern(pattern.clone())
        .special_tokens(specials.iter().cloned())
        .specials(Specials::AllowAll);
    let built = builder.build();
    built.map_err(|error| CliError::Usage(error.to_string()))
}

fn write(path: &Path, text: &str) -> Result<(), CliError> {
    replace(path, |mut file| {
        let written = file.write_all(text.as_bytes()).and_then(|()| file.flush());
        written.map_err(|error| cannot_write(path, error))
    })
}

/// Has a file written whole or not at all: a vocabulary of which a part is missing looks like one. Where
/// `path` is a link, the file behind it is replaced; a pipe or a device is written to as it is.
pub(super) fn replace(
    path: &Path,
    write: impl FnOnce(BufWriter<File>) -> Result<(), CliError>,
) -> Result<(), CliError> {
    let cannot = |error| cannot_write(path, error);
    // Links to pipes may have no name of their own: `/dev/stdout` is one.
    if is_pipe_or_device(path) {
        let file = File::options().write(true).open(path).map_err(cannot)?;
        return write(BufWriter::new(file));
    }
    let real = behind_links(path);
    let new = new_name(&real);
    write(BufWriter::new(File::create(&new).map_err(cannot)?))?;
    fs::rename(&new, &real).map_err(cannot)
}

/// Where a link leads to, be there a file or not.
fn behind_links(path: &Path) -> PathBuf {
    /// So many links in a row are a circle, which then cannot be written.
    const MOST: usize = 40;
    let mut real = path.to_owned();
    for _ in 0..MOST {
        let Ok(next) = fs::read_link(&real) else {
            break;
        };
        real = real.parent().unwrap_or(Path::new("")).join(next);
    }
    real
}

fn is_pipe_or_device(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir())
}

/// What a file is called until it is complete.
fn new_name(path: &Path) -> PathBuf {
    let mut new = path.as_os_str().to_owned();
    new.push(".new");
    new.into()
}

//! The vocabulary as files.

use std::fs;
use std::path::{Path, PathBuf};

use bpe_core::{Dictionary, gpt2, tiktoken};
use bytepair::{Pattern, Specials, TokenId, Tokenizer, TokenizerBuilder};

use super::checkpoint::cannot_write;
use crate::args::AlphabetArg;
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
    let new = new_name(&path);
    let written = fs::write(&new, "").and_then(|()| fs::remove_file(&new));
    written.map_err(|error| cannot_write(&path, error))
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

/// Writes a file whole or not at all: a vocabulary of which a part is missing looks like one.
fn write(path: &Path, text: &str) -> Result<(), CliError> {
    let new = new_name(path);
    let written = fs::write(&new, text).and_then(|()| fs::rename(&new, path));
    written.map_err(|error| cannot_write(path, error))
}

/// What a file is called until it is complete.
fn new_name(path: &Path) -> PathBuf {
    let mut new = path.as_os_str().to_owned();
    new.push(".new");
    new.into()
}

//! What the processes read: vocabularies and texts, written below the target folder.

use std::path::{Path, PathBuf};

use bytepair::Tokenizer;

use crate::Error;
use crate::rival::Source;

/// A folder below the target folder for what this command makes.
pub(crate) fn folder(name: &str) -> Result<PathBuf, Error> {
    let program = std::env::current_exe()?;
    let target = program.ancestors().nth(2).ok_or("no target folder")?;
    let folder = target.join("peers-speed").join(name);
    std::fs::create_dir_all(&folder)?;
    Ok(folder)
}

/// Our embedded vocabulary in the forms that others read.
pub(crate) fn source(encoding: &str) -> Result<Source, Error> {
    let tokenizer = Tokenizer::from_name(encoding)?;
    let folder = folder("vocabularies")?;
    let source = Source {
        encoding: encoding.to_owned(),
        ranks: folder.join(format!("{encoding}.tiktoken")),
        json: folder.join(format!("{encoding}.json")),
    };
    let ranks = bpe_core::tiktoken::write(tokenizer.vocabulary());
    std::fs::write(&source.ranks, ranks)?;
    std::fs::write(&source.json, tokenizer.to_tokenizer_json()?)?;
    Ok(source)
}

/// Texts in one file.
pub(super) struct Texts {
    pub(super) name: String,
    pub(super) path: PathBuf,
    pub(super) lengths: Vec<usize>,
    pub(super) text: String,
}

impl Texts {
    /// Writes `text`, cut into texts of at least `size` bytes at characters.
    pub(super) fn new(name: &str, text: &str, size: usize) -> Result<Self, Error> {
        let path = folder("texts")?.join(Path::new(name).with_extension("txt"));
        std::fs::write(&path, text)?;
        let mut lengths = Vec::new();
        let mut at = 0;
        while at < text.len() {
            let end = text.ceil_char_boundary(at.saturating_add(size));
            lengths.push(end - at);
            at = end;
        }
        Ok(Self {
            name: name.to_owned(),
            path,
            lengths,
            text: text.to_owned(),
        })
    }

    pub(super) fn bytes(&self) -> usize {
        self.text.len()
    }
}

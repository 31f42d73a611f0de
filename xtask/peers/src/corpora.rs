//! The texts to compare and to time on.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::Error;

/// A text of some kind.
pub(crate) struct Corpus {
    /// `bench-data/english`, `data/english`.
    pub(crate) name: String,
    pub(crate) text: String,
}

impl Corpus {
    /// The documents of the text: what stands between blank lines.
    pub(crate) fn documents(&self) -> impl Iterator<Item = &str> {
        self.text.split("\n\n").filter(|text| !text.is_empty())
    }

    /// Cuts the text to `bytes` at most, at a character.
    fn shorten(&mut self, bytes: usize) {
        self.text.truncate(self.text.floor_char_boundary(bytes));
    }
}

/// All corpora of `bench-data` and of `data`, each cut to `bytes` at most.
pub(crate) fn all(data: Option<&Path>, bytes: usize) -> Result<Vec<Corpus>, Error> {
    let mut corpora = folder(&bench_data(), "bench-data")?;
    if let Some(data) = data {
        corpora.extend(folder(&data.join("corpora"), "data")?);
    }
    for corpus in &mut corpora {
        corpus.shorten(bytes);
    }
    Ok(corpora)
}

/// The corpora with these names, from `data` where it is given, else from `bench-data`.
pub(crate) fn named(
    names: &[&str],
    data: Option<&Path>,
    bytes: usize,
) -> Result<Vec<Corpus>, Error> {
    let (path, origin) = match data {
        Some(data) => (data.join("corpora"), "data"),
        None => (bench_data(), "bench-data"),
    };
    let corpora = folder(&path, origin)?;
    let mut chosen = Vec::new();
    for corpus in corpora {
        let name = corpus.name.rsplit('/').next().unwrap_or_default();
        if names.contains(&name) {
            chosen.push(corpus);
        }
    }
    if chosen.len() != names.len() {
        return Err(format!("{} lacks one of {names:?}", path.display()).into());
    }
    for corpus in &mut chosen {
        corpus.shorten(bytes);
    }
    Ok(chosen)
}

fn bench_data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench-data/corpora")
}

/// The texts of a folder, sorted by name: `NAME.txt` and `NAME.txt.gz`.
fn folder(path: &Path, origin: &str) -> Result<Vec<Corpus>, Error> {
    let at = |error| format!("{}: {error}", path.display());
    let mut corpora = Vec::new();
    for entry in fs::read_dir(path).map_err(at)? {
        let file = entry.map_err(at)?.path();
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let (stem, packed) = match (name.strip_suffix(".txt"), name.strip_suffix(".txt.gz")) {
            (Some(stem), _) => (stem, false),
            (_, Some(stem)) => (stem, true),
            _ => continue,
        };
        let bytes = fs::read(&file)?;
        let text = match packed {
            true => {
                let mut text = String::new();
                flate2::read::MultiGzDecoder::new(&*bytes).read_to_string(&mut text)?;
                text
            }
            false => String::from_utf8(bytes)?,
        };
        corpora.push(Corpus {
            name: format!("{origin}/{stem}"),
            text,
        });
    }
    corpora.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(corpora)
}

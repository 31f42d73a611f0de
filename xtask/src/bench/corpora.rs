//! The corpora of bench-data.

use super::Error;
use crate::data;

/// Names and texts of the corpora, sorted by name.
pub(super) fn all() -> Result<Vec<(String, String)>, Error> {
    let folder = data::workspace().join("bench-data/corpora");
    let mut corpora = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if let Some(name) = path.file_stem()
            && path.extension().is_some_and(|extension| extension == "txt")
        {
            let text = String::from_utf8(data::read(&path)?)?;
            corpora.push((name.to_string_lossy().into_owned(), text));
        }
    }
    corpora.sort();
    Ok(corpora)
}

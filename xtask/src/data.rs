//! Where files are, and how they are read.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;

/// The root of the workspace.
pub(crate) fn workspace() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_owned()
}

/// The content of a file, unpacked if its name ends in `.gz`.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, String> {
    let fail = |error: std::io::Error| format!("{}: {error}", path.display());
    let mut file = File::open(path).map_err(fail)?;
    let mut content = Vec::new();
    match path.extension().is_some_and(|extension| extension == "gz") {
        true => GzDecoder::new(file).read_to_end(&mut content),
        false => file.read_to_end(&mut content),
    }
    .map_err(fail)?;
    Ok(content)
}

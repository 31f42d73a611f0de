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

/// As [`read`], but of `name.gz` where there is no `name`.
pub(crate) fn read_or_packed(path: &Path) -> Result<Vec<u8>, String> {
    let mut packed = path.as_os_str().to_owned();
    packed.push(".gz");
    match Path::new(&packed) {
        packed if !path.exists() && packed.exists() => read(packed),
        _ => read(path),
    }
}

/// The files of a folder whose names end so, in the order of their names.
pub(crate) fn files(folder: &Path, ending: &str) -> Result<Vec<PathBuf>, String> {
    let fail = |error: std::io::Error| format!("{}: {error}", folder.display());
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(fail)? {
        let path = entry.map_err(fail)?.path();
        let name = path.file_name().unwrap_or_default();
        if name.to_string_lossy().ends_with(ending) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

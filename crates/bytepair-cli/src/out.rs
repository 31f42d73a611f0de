//! Ids in a file that appears complete or not at all.
//!
//! Everything is written to files of other names in the same folder, which get their names when all is
//! there. A run that is interrupted leaves at most files whose names begin with a dot and end in
//! `.part`. The file of ids comes last: where it is, the ends of its documents are as well.

use std::ffi::OsString;
use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use bytepair::TokenId;
use tempfile::{Builder, NamedTempFile};

use crate::error::CliError;
use crate::output::push_ids;

/// Bytes of the header of an `.npy` file.
const NPY_HEADER: usize = 128;

/// How ids are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// A document a line, blanks between the ids.
    Text,
    /// Little-endian numbers of 16 bits.
    U16,
    /// Little-endian numbers of 32 bits.
    U32,
    /// An array of one dimension of numpy, of 16 bits where all ids fit, else of 32.
    Npy(Width),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Width {
    Two,
    Four,
}

impl Format {
    /// The format that the ending of `path` names.
    ///
    /// # Errors
    ///
    /// The tokenizer has ids that do not fit.
    pub(crate) fn of(path: &Path, max_id: Option<TokenId>) -> Result<Self, CliError> {
        let is_small = max_id.unwrap_or(0) <= u32::from(u16::MAX);
        let ending = path.extension().unwrap_or_default();
        match ending.to_str() {
            Some("u16") if !is_small => Err(CliError::Usage(format!(
                "{}: this tokenizer has ids that do not fit into 16 bits",
                path.display()
            ))),
            Some("u16") => Ok(Self::U16),
            Some("u32") => Ok(Self::U32),
            Some("npy") if is_small => Ok(Self::Npy(Width::Two)),
            Some("npy") => Ok(Self::Npy(Width::Four)),
            _ => Ok(Self::Text),
        }
    }

    /// Appends ids that follow others of the same document, if they are not its `first`.
    pub(crate) fn push(self, bytes: &mut Vec<u8>, ids: &[TokenId]) {
        match self {
            Self::Text => push_ids(bytes, ids, b' '),
            Self::U16 | Self::Npy(Width::Two) => {
                let numbers = ids.iter().map(|&id| u16::try_from(id).unwrap_or(u16::MAX));
                bytes.extend(numbers.flat_map(u16::to_le_bytes));
            }
            Self::U32 | Self::Npy(Width::Four) => {
                bytes.extend(ids.iter().flat_map(|id| id.to_le_bytes()));
            }
        }
    }
}

/// The file of ids, and the one of the ends of documents.
pub(crate) struct OutFile {
    path: PathBuf,
    format: Format,
    ids: BufWriter<NamedTempFile>,
    ends: BufWriter<NamedTempFile>,
    tokens: u64,
    /// Whether the document that is being written has ids.
    has_begun: bool,
}

impl OutFile {
    /// Files that will be at `path` and `path.ends`; where `path` is a link, at what it points to.
    ///
    /// # Errors
    ///
    /// Something else than a file is there, which must not be replaced: a folder, a pipe, a device. Or a file
    /// cannot be made.
    pub(crate) fn create(path: &Path, format: Format) -> Result<Self, CliError> {
        let real;
        let path = match path.symlink_metadata() {
            Ok(found) if found.is_symlink() => {
                real = path.canonicalize().map_err(|error| failed(path, error))?;
                &real
            }
            _ => path,
        };
        if path.metadata().is_ok_and(|found| !found.is_file()) {
            return Err(CliError::Input(format!(
                "cannot write {}: it is no file; without --out, ids go to standard output",
                path.display()
            )));
        }
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let name = path.file_name().unwrap_or_default();
        let create = |name: &OsString| {
            let mut prefix = OsString::from(".");
            prefix.push(name);
            prefix.push(".");
            let mut builder = Builder::new();
            builder.prefix(&prefix).suffix(".part");
            // As any file that a command writes: who may read it, the user's mask says.
            #[cfg(unix)]
            builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
            let file = builder.tempfile_in(folder);
            file.map(|file| BufWriter::with_capacity(1 << 18, file))
                .map_err(|error| failed(path, error))
        };
        let mut out = Self {
            path: path.to_owned(),
            format,
            ids: create(&name.to_owned())?,
            ends: create(&ends_path(Path::new(name)).into_os_string())?,
            tokens: 0,
            has_begun: false,
        };
        if matches!(format, Format::Npy(_)) {
            // The number of ids stands in the header: written when it is known.
            out.write_ids(&[0; NPY_HEADER], 0)?;
        }
        Ok(out)
    }

    /// Writes `count` ids, as [`Format::push`] has made them.
    pub(crate) fn write_ids(&mut self, bytes: &[u8], count: u64) -> Result<(), CliError> {
        let bytes = match (self.format, bytes.split_first()) {
            // No blank before the first id of a line.
            (Format::Text, Some((_, rest))) if !self.has_begun => rest,
            _ => bytes,
        };
        self.has_begun |= count > 0;
        self.tokens += count;
        let path = &self.path;
        self.ids
            .write_all(bytes)
            .map_err(|error| failed(path, error))
    }

    /// Ends a document.
    pub(crate) fn end_document(&mut self) -> Result<(), CliError> {
        self.has_begun = true;
        if self.format == Format::Text {
            self.write_ids(b"\n", 0)?;
        }
        self.has_begun = false;
        let path = &self.path;
        let end = self.tokens.to_le_bytes();
        self.ends
            .write_all(&end)
            .map_err(|error| failed(path, error))
    }

    /// Gives the files their names.
    pub(crate) fn finish(self) -> Result<(), CliError> {
        let Self {
            path,
            format,
            ids,
            ends,
            tokens,
            ..
        } = self;
        let finish = || {
            let mut ids = ids.into_inner().map_err(|error| error.into_error())?;
            let ends = ends.into_inner().map_err(|error| error.into_error())?;
            if let Format::Npy(width) = format {
                ids.seek(SeekFrom::Start(0))?;
                ids.write_all(&npy_header(width, tokens))?;
            }
            ids.as_file().sync_all()?;
            ends.as_file().sync_all()?;
            // An older file of ids must not stand beside the ends of a newer one.
            match std::fs::remove_file(&path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            ends.persist(ends_path(&path))
                .map_err(|error| error.error)?;
            ids.persist(&path).map_err(|error| error.error)?;
            Ok(())
        };
        finish().map_err(|error| failed(&path, error))
    }
}

fn ends_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".ends");
    name.into()
}

fn failed(path: &Path, error: std::io::Error) -> CliError {
    CliError::Input(format!("cannot write {}: {error}", path.display()))
}

/// The header of an array of `count` numbers, version 1.0 of the format.
fn npy_header(width: Width, count: u64) -> Vec<u8> {
    let kind = match width {
        Width::Two => "<u2",
        Width::Four => "<u4",
    };
    let mut header = b"\x93NUMPY\x01\x00".to_vec();
    let length = NPY_HEADER - header.len() - 2;
    header.extend((length as u16).to_le_bytes());
    let text = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': ({count},), }}");
    header.extend(text.as_bytes());
    header.resize(NPY_HEADER - 1, b' ');
    header.push(b'\n');
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_of_an_array_is_that_of_numpy() {
        // `numpy.save` of an array of three numbers begins so.
        let header = npy_header(Width::Four, 3);
        assert_eq!(header.len(), 128);
        let expected =
            b"\x93NUMPY\x01\x00v\x00{'descr': '<u4', 'fortran_order': False, 'shape': (3,), }";
        assert!(header.starts_with(expected));
        assert!(header[expected.len()..127].iter().all(|&byte| byte == b' '));
        assert_eq!(header[127], b'\n');
        assert_eq!(npy_header(Width::Two, u64::MAX).len(), 128);
    }
}

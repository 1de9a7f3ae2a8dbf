//! The row of segments on disk: which there are, and whether one is missing.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use super::super::LogError;
use super::super::files::store;
use super::segment::{self, Header, REMOVED, folder_name};
use crate::events::Offset;
use crate::events::codec::Mark;

/// What lies in the folder of segments.
#[derive(Debug, Default)]
pub(super) struct Row {
    /// The segments of the log, in order, without a gap between them.
    pub(super) segments: Vec<Header>,
    /// Folders that are no part of the log: of a removal or a creation that did not get far.
    pub(super) leftovers: Vec<PathBuf>,
}

/// Reads the row, and compares it with what the witness says.
pub(super) fn read(segments: &Path, mark: Mark) -> Result<Row, LogError> {
    let mut row = Row::default();
    for path in sorted_folders(segments)? {
        if path.extension() == Some(OsStr::new(REMOVED)) {
            row.leftovers.push(path);
            continue;
        }
        match segment::read_header(&path)? {
            Some(header) if header.first() < mark.oldest => row.leftovers.push(path),
            Some(header) => row.segments.push(header),
            None if is_unfinished(&path, mark) => row.leftovers.push(path),
            None => return Err(LogError::damaged(&path, "its file `header` is missing")),
        }
    }
    check(segments, &row.segments, mark)?;
    Ok(row)
}

/// The segments whose headers can be read, whatever else is wrong.
pub(super) fn read_what_is_there(segments: &Path) -> Row {
    let paths = sorted_folders(segments).unwrap_or_default();
    let headers = paths.iter().filter_map(|path| segment::read_header(path).ok().flatten());
    Row { segments: headers.collect(), leftovers: Vec::new() }
}

fn sorted_folders(segments: &Path) -> Result<Vec<PathBuf>, LogError> {
    let mut paths = fs::read_dir(segments)
        .and_then(|entries| {
            entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<Vec<_>, _>>()
        })
        .map_err(store("list", segments))?;
    paths.sort();
    Ok(paths)
}

/// A segment starts to hold acknowledged events only after its header is written.
fn is_unfinished(path: &Path, mark: Mark) -> bool {
    path.file_name() == Some(OsStr::new(&folder_name(mark.head.offset.next())))
}

fn check(segments: &Path, row: &[Header], mark: Mark) -> Result<(), LogError> {
    let missing = |first: Offset| {
        let path = segments.join(folder_name(first));
        Err(LogError::damaged(&path, format_args!("the segment that starts at {first} is missing")))
    };
    let Some(first) = row.first() else { return missing(mark.oldest) };
    if first.first() != mark.oldest {
        return missing(mark.oldest);
    }
    for (earlier, later) in row.iter().zip(row.iter().skip(1)) {
        if later.predecessor != earlier.first() {
            return missing(later.predecessor);
        }
    }
    Ok(())
}

//! Reading the log of a stopped server, without changing anything in its folder.

use std::path::Path;
use std::sync::Arc;

use super::super::{Events, LogError, LogReader};
use super::folder::{self, Access, Contents, FolderLock};
use super::open::verify_tail;
use super::reader::Shared;
use super::segment::Segment;
use super::{SledOptions, row, witness};
use crate::events::{Head, Offset};

/// The log of a stopped server. While this lives, no server can open the folder; others may read it.
#[derive(Debug)]
pub struct OfflineLog {
    shared: Arc<Shared>,
    _lock: FolderLock,
}

/// Opens the log in `dir` for reading, one segment at a time, each as a copy in the folder for temporary files.
///
/// # Errors
///
/// [`LogError::InUse`] while a server has it open, [`LogError::Missing`] when there is no log, and as
/// [`SledLog::open`](super::SledLog::open) when it is damaged.
pub fn open_reader(dir: &Path) -> Result<OfflineLog, LogError> {
    let lock = lock(dir)?;
    let (_, mark) = witness::read(dir)?;
    let segments = folder::segments(dir);
    let row = row::read(&segments, mark)?;
    let newest = *row.segments.last().expect("a row that was read is not empty");
    let cache_bytes = SledOptions::default().cache_bytes;
    let active = Segment::open(&segments, newest, Access::Shared, cache_bytes)?;
    let head = verify_tail(&active, mark.head)?;
    let shared = Shared::new(dir, Access::Shared, cache_bytes, row.segments, head, active);
    Ok(OfflineLog { shared, _lock: lock })
}

/// Makes sure that there is a log and that no server writes it.
pub(super) fn lock(dir: &Path) -> Result<FolderLock, LogError> {
    match folder::contents(dir)? {
        Contents::Nothing => Err(LogError::Missing { path: dir.to_owned() }),
        Contents::Log => FolderLock::take(dir, Access::Shared),
    }
}

impl OfflineLog {
    /// The first offset of each segment, and what it takes on the disk, in bytes.
    #[must_use]
    pub fn segments(&self) -> Vec<(Offset, u64)> {
        self.shared.segment_sizes().into_iter().map(|(header, bytes)| (header.first(), bytes)).collect()
    }
}

impl LogReader for OfflineLog {
    fn head(&self) -> Head {
        self.shared.head()
    }

    fn oldest(&self) -> Offset {
        self.shared.oldest()
    }

    fn head_at(&self, offset: Offset) -> Result<Head, LogError> {
        self.shared.head_at(offset)
    }

    fn read(&self, from: Offset) -> Result<Events<'_>, LogError> {
        self.shared.read_from(from)
    }
}

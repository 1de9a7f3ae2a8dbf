//! Where facts are kept: one trait, and the logs that keep its promises.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use super::codec::BodyError;
use super::{Envelope, Offset};

mod ahead;
mod checkpoint;
mod files;
mod lines;
mod memory;
mod scrub;
mod sled;

pub use super::{ChainHash, Head};
pub use ahead::read_ahead;
pub use checkpoint::{CHECKPOINTS_KEPT, Checkpoints};
pub use lines::{LINES_FORMAT, LinesError, Texts, export, import};
pub use memory::{MemoryFaults, MemoryLog, StoreHealth};
pub use scrub::Scrubber;
pub use sled::{
    Finding, LogCopy, OfflineLog, Retention, SledLog, SledOptions, Verification, copy_log, open_reader,
    relieves, verify,
};

/// Events in order, each read or the reason why it cannot be.
pub type Events<'a> = Box<dyn Iterator<Item = Result<Envelope, LogError>> + Send + 'a>;

/// The reading side of a log. Readers see durable events only, and never hold up the writer.
pub trait LogReader: Send + Sync {
    /// The durable end.
    fn head(&self) -> Head;

    /// The first event that can still be read; one past the head in an empty log.
    fn oldest(&self) -> Offset;

    /// The head of the log when `offset` was its last event: what a saved state is bound to.
    ///
    /// # Errors
    ///
    /// [`LogError::Gone`] when it is more than one below [`oldest`](Self::oldest), [`LogError::Conflict`] above the head.
    fn head_at(&self, offset: Offset) -> Result<Head, LogError>;

    /// Every event from `from` to the durable end of this moment, in order, without gaps.
    ///
    /// # Errors
    ///
    /// [`LogError::Gone`] when `from` is below [`oldest`](Self::oldest). The iterator ends after its first error.
    fn read(&self, from: Offset) -> Result<Events<'_>, LogError>;
}

/// The writing side. There is one per log.
pub trait EventLog: LogReader {
    /// Appends the batch and makes it durable: when this returns, a power cut loses none of it.
    ///
    /// # Errors
    ///
    /// [`LogError::Conflict`] when the batch does not start right after the head or has a gap, and
    /// [`LogError::Body`] when one of its events is too large, and [`LogError::Full`] when the space that is left is
    /// kept for other events; nothing is written, and the log goes on.
    /// After any other error nothing of the batch counts as written, and every append fails with
    /// [`LogError::NeedsRecovery`] until [`recover`](Self::recover) succeeds.
    fn append(&mut self, batch: &[Envelope]) -> Result<(), LogError>;

    /// Brings the log back after a failed append: reopens the store and verifies its tail against the last
    /// durable head. Idempotent; does nothing when nothing failed.
    ///
    /// # Errors
    ///
    /// Whatever still stands in the way.
    fn recover(&mut self) -> Result<(), LogError>;

    /// Removes events below `keep_from`, as many as can be removed cheaply, and says which is the oldest now.
    /// The last event always stays readable where the log keeps events in segments.
    ///
    /// # Errors
    ///
    /// [`LogError::Store`] when the store failed; what is left is a whole log all the same.
    fn truncate_before(&mut self, keep_from: Offset) -> Result<Offset, LogError>;

    /// A reader that lives on its own.
    fn reader(&self) -> Arc<dyn LogReader>;
}

/// Whether the head of the log at `offset` can be told.
fn check_within(offset: Offset, oldest: Offset, head: Offset) -> Result<(), LogError> {
    if offset > head {
        return Err(LogError::Conflict { given: offset, expected: head });
    }
    if offset.next() < oldest {
        return Err(LogError::Gone { requested: offset, oldest });
    }
    Ok(())
}

/// Whether `batch` goes on right after `head`, without a gap.
fn check_follows(head: Offset, batch: &[Envelope]) -> Result<(), LogError> {
    let mut expected = head;
    for envelope in batch {
        expected = expected.next();
        if envelope.offset != expected {
            return Err(LogError::Conflict { given: envelope.offset, expected });
        }
    }
    Ok(())
}

/// Why a log could not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// Bytes are not what was written.
    #[error("the log is damaged at {place}: {detail}")]
    Damaged {
        /// Where: file, segment, offset.
        place: String,
        /// What is wrong there.
        detail: String,
    },
    /// The events asked for were removed by retention.
    #[error("events from {requested} are gone: the oldest that is kept is {oldest}")]
    Gone {
        /// What was asked for.
        requested: Offset,
        /// What can be had.
        oldest: Offset,
    },
    /// The batch does not follow the head.
    #[error("the batch starts at {given}, but the log expects {expected}")]
    Conflict {
        /// Where the batch starts, or where its gap is.
        given: Offset,
        /// What comes next in the log.
        expected: Offset,
    },
    /// An event that no log keeps.
    #[error(transparent)]
    Body(#[from] BodyError),
    /// An earlier append failed, and the log was not recovered since.
    #[error("an earlier append failed: nothing is written before the store is recovered")]
    NeedsRecovery,
    /// The disk is full, and what is kept in reserve is not for this batch.
    #[error("the disk of {} is full: only events that take something away are written until {free_needed} bytes are free", path.display())]
    Full {
        /// The data folder.
        path: PathBuf,
        /// How much has to be free.
        free_needed: u64,
    },
    /// There is no log to read.
    #[error("{} holds no log", path.display())]
    Missing {
        /// The folder that was given.
        path: PathBuf,
    },
    /// Another process has the log open.
    #[error("{} is in use by another process{}", path.display(), holder.as_deref().unwrap_or_default())]
    InUse {
        /// The data folder.
        path: PathBuf,
        /// Who holds it, where it is known, as text to append.
        holder: Option<String>,
    },
    /// The log was written by a newer version of Foldplane.
    #[error("{place} was written by a newer version (format {found}); this one reads up to {known}")]
    Newer {
        /// Where.
        place: String,
        /// The version found.
        found: u32,
        /// The newest version that is understood.
        known: u32,
    },
    /// The store failed.
    #[error("cannot {action} {}", path.display())]
    Store {
        /// What was being done, in the infinitive.
        action: &'static str,
        /// To which file or folder.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
}

impl LogError {
    /// Damage in the file or folder at `path`.
    fn damaged(path: &std::path::Path, detail: impl std::fmt::Display) -> Self {
        Self::Damaged { place: path.display().to_string(), detail: detail.to_string() }
    }
}

//! The durable log: a row of sled databases, of which the newest is open for writing (docs/FORMAT.md).
//!
//! sled promises less than a log has to keep (docs/decisions). What is added here: its file is synced after
//! each flush; values stay so small that it keeps them in that file; a panic of it is an error; and a witness
//! says how far the log was acknowledged, so that a tail that sled drops in silence is noticed.

mod blocks;
mod copy;
mod folder;
mod guard;
mod offline;
mod open;
mod reader;
mod reserve;
mod retention;
mod row;
mod segment;
mod verify;
mod walk;
mod witness;

use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use self::copy::{LogCopy, copy_log};
use self::folder::{Access, FolderLock};
pub use self::offline::{OfflineLog, open_reader};
use self::reader::Shared;
pub use self::reserve::relieves;
use self::reserve::{Reserve, is_full_disk};
pub use self::retention::Retention;
use self::segment::{Header, Segment};
pub use self::verify::{Finding, Verification, verify};
use self::witness::{Durability, Witness};
use super::{Checkpoints, EventLog, Events, LogError, LogReader, check_follows};
use crate::events::codec::{Block, Mark, encode_blocks};
use crate::events::{Envelope, Head, Offset, Timestamp};

/// How the log uses its disk and memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SledOptions {
    /// When the newest segment holds this many events, the next one is begun. Retention removes whole segments.
    pub segment_events: u64,
    /// When the newest segment's file has this size, in bytes, the next one is begun.
    ///
    /// Opening reads the newest one's page table: 64 MiB open in a few tens of milliseconds.
    pub segment_bytes: u64,
    /// Which old events may go.
    pub retention: Retention,
    /// How much space is kept back for removals on a full disk, in bytes. sled needs two of its own segments, 2 MiB
    /// each, to open and to go on writing; as much again holds tens of thousands of removals.
    pub reserve_bytes: u64,
    /// How much memory sled may use for the pages of one open segment, in bytes. It keeps to it only roughly.
    pub cache_bytes: u64,
}

impl Default for SledOptions {
    fn default() -> Self {
        Self {
            segment_events: 250_000,
            segment_bytes: 64 << 20,
            retention: Retention::default(),
            reserve_bytes: 8 << 20,
            cache_bytes: 32 << 20,
        }
    }
}

/// The durable log, open for writing.
#[derive(Debug)]
pub struct SledLog {
    shared: Arc<Shared>,
    options: SledOptions,
    witness: Witness,
    checkpoints: Arc<Checkpoints>,
    reserve: Reserve,
    /// When the newest segment began to be filled.
    active_since: Timestamp,
    state: WriterState,
    _lock: FolderLock,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WriterState {
    Ready,
    /// An append failed: nothing written since the last durable head may be trusted.
    Failed,
}

impl SledLog {
    /// Opens the log in `dir`, and creates it where there is none.
    ///
    /// # Errors
    ///
    /// [`LogError::InUse`] while another process has it open; [`LogError::Damaged`] when the tail, or the row of
    /// segments, is not what was acknowledged; [`LogError::Newer`] when a newer version wrote it.
    pub fn open(dir: &Path, options: SledOptions) -> Result<Self, LogError> {
        open::open(dir, options)
    }

    /// The folder that holds the log.
    #[must_use]
    pub fn dir(&self) -> &Path {
        self.shared.dir()
    }

    /// The saved states of this log. Retention never removes an event that comes after the oldest of them.
    #[must_use]
    pub fn checkpoints(&self) -> Arc<Checkpoints> {
        Arc::clone(&self.checkpoints)
    }

    fn write(&mut self, blocks: &[Block], now: Timestamp) -> Result<(), LogError> {
        let head = self.shared.head();
        let Some(last) = blocks.last() else { return Ok(()) };
        if self.is_full(&*self.shared.active()?, head, now)? {
            self.roll(head, now)?;
            self.retain(now);
        }
        self.shared.active()?.append(blocks)?;
        let mark = Mark { head: last.head, oldest: self.shared.oldest() };
        self.witness.record(mark, Durability::Soon)?;
        self.shared.advance(last.head);
        Ok(())
    }

    fn is_full(&mut self, segment: &Segment, head: Head, now: Timestamp) -> Result<bool, LogError> {
        let SledOptions { segment_events, segment_bytes, retention, .. } = self.options;
        let events = head.offset.since(segment.header().before.offset);
        if self.active_since == Timestamp::default() {
            self.active_since = now;
        }
        let full = events >= segment_events
            || segment.store_bytes()? >= segment_bytes
            || retention.is_segment_old(self.active_since, now);
        Ok(full && events > 0)
    }

    /// Begins the next segment. The witness is synced first, so that it is never behind the newest segment.
    fn roll(&mut self, head: Head, now: Timestamp) -> Result<(), LogError> {
        self.witness.record(Mark { head, oldest: self.shared.oldest() }, Durability::Now)?;
        let predecessor = self.shared.active()?.header().first();
        let header = Header { before: head, predecessor, began: now };
        let segment = Segment::create(&self.segments(), header, self.options.cache_bytes)?;
        self.shared.begin_segment(segment);
        self.active_since = now;
        Ok(())
    }

    /// Removes what may go. It can wait, so that it fails is no reason to refuse what is to be written.
    fn retain(&mut self, now: Timestamp) {
        let removed = self.checkpoints.covers().and_then(|covered| {
            let sizes = self.shared.segment_sizes();
            self.truncate_before(self.options.retention.keep_from(&sizes, now, covered.next()))
        });
        match removed {
            Ok(oldest) => tracing::debug!(%oldest, "a new segment was begun"),
            Err(error) => tracing::warn!(%error, "old events could not be removed"),
        }
    }

    /// Opens the newest segment anew, as it is on the disk and without what was not acknowledged.
    fn reopen(&mut self) -> Result<(), LogError> {
        let head = self.shared.head();
        let header = self.shared.close_active();
        segment::forget_cached(&self.segments().join(header.folder()))?;
        let segment = Segment::open(&self.segments(), header, Access::Exclusive, self.options.cache_bytes)?;
        segment.remove_after(head.offset)?;
        let tail = open::verify_tail(&segment, head)?;
        if tail != head {
            return Err(open::vanished(&segment, tail, head));
        }
        self.shared.reopen_active(segment);
        Ok(())
    }

    fn segments(&self) -> PathBuf {
        folder::segments(self.dir())
    }
}

impl LogReader for SledLog {
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

impl EventLog for SledLog {
    fn append(&mut self, batch: &[Envelope]) -> Result<(), LogError> {
        check_follows(self.shared.head().offset, batch)?;
        match self.state {
            WriterState::Ready => {}
            WriterState::Failed => return Err(LogError::NeedsRecovery),
        }
        let blocks = encode_blocks(self.shared.head(), batch)?;
        self.reserve.admit(batch)?;
        let result =
            self.write(&blocks, batch.first().map_or(Timestamp::default(), |first| first.recorded_at));
        if let Err(error) = &result {
            self.state = WriterState::Failed;
            if is_full_disk(error) {
                self.reserve.release();
            }
            // After a failure sled gives nothing any more, not even what it has: readers need a new one.
            if let Err(error) = self.reopen() {
                tracing::warn!(%error, "the newest events cannot be read until the store works again");
            }
        }
        result
    }

    fn recover(&mut self) -> Result<(), LogError> {
        match self.state {
            WriterState::Ready => return Ok(()),
            WriterState::Failed => {}
        }
        // First the witness: one that knew of more than is left would make the log look shortened after a power cut.
        let mark = Mark { head: self.head(), oldest: self.oldest() };
        self.witness.record(mark, Durability::Now)?;
        self.reopen()?;
        self.state = WriterState::Ready;
        Ok(())
    }

    fn truncate_before(&mut self, keep_from: Offset) -> Result<Offset, LogError> {
        let removed = self.shared.segments_below(keep_from);
        let Some(oldest) = removed.last().map(|(_, next)| *next) else { return Ok(self.oldest()) };
        self.witness.record(Mark { head: self.head(), oldest }, Durability::Now)?;
        self.shared.forget_below(oldest);
        for (header, _) in removed {
            segment::remove(&self.segments().join(header.folder()))?;
        }
        Ok(oldest)
    }

    fn reader(&self) -> Arc<dyn LogReader> {
        Arc::clone(&self.shared) as Arc<dyn LogReader>
    }
}

impl Drop for SledLog {
    fn drop(&mut self) {
        let mark = Mark { head: self.head(), oldest: self.oldest() };
        if self.state == WriterState::Ready
            && let Err(error) = self.witness.record(mark, Durability::Now)
        {
            tracing::warn!(%error, "the witness of the log could not be synced while it was closed");
        }
    }
}

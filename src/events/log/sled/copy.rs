//! A copy of a log in another folder: shorter, to leave damage behind, or with the same events in fewer blocks.

use std::fs;
use std::path::Path;

use super::super::files::{create_dirs, store, sync_dir};
use super::super::{Checkpoints, LogError};
use super::folder;
use super::walk;
use super::witness;
use super::{SledLog, SledOptions, offline, open};
use crate::events::codec::{Block, BlockBuilder};
use crate::events::{Head, Offset, Timestamp};

/// How many events are made durable at once: a few hundred kilobytes.
const EVENTS_AT_ONCE: u64 = 4096;

/// A new log that is filled event by event. Until it is finished its folder says nothing of a log, so that a half of
/// one is not taken for the whole.
#[derive(Debug)]
pub struct LogCopy {
    log: SledLog,
    builder: BlockBuilder,
    waiting: u64,
}

impl LogCopy {
    /// An empty log in `dir`, which must be new or empty, that goes on after `before`.
    ///
    /// # Errors
    ///
    /// [`LogError`] when the folder holds anything, or cannot be written.
    pub fn create(dir: &Path, before: Head, options: SledOptions) -> Result<Self, LogError> {
        let log = open::create_after(dir, options, before)?;
        folder::remove_format(dir)?;
        Ok(Self { log, builder: BlockBuilder::after(before), waiting: 0 })
    }

    /// Adds one event.
    ///
    /// # Errors
    ///
    /// [`LogError`] when the store failed.
    pub fn push(&mut self, schema: u16, body: &[u8]) -> Result<(), LogError> {
        self.builder.push(schema, body);
        self.waiting += 1;
        if self.waiting >= EVENTS_AT_ONCE { self.flush() } else { Ok(()) }
    }

    /// Makes what is left durable, and gives the end of the new log.
    ///
    /// # Errors
    ///
    /// [`LogError`] when the store failed.
    pub fn finish(mut self) -> Result<Head, LogError> {
        self.flush()?;
        folder::write_format(self.log.dir())?;
        Ok(self.builder.head())
    }

    fn flush(&mut self) -> Result<(), LogError> {
        let next = BlockBuilder::after(self.builder.head());
        let blocks: Vec<Block> = std::mem::replace(&mut self.builder, next).finish();
        self.waiting = 0;
        self.log.write(&blocks, Timestamp::default())
    }
}

/// Copies the log in `from` up to `until` into the new folder `to`, with the saved states that fit. The original is
/// not touched. `progress` is told each offset.
///
/// # Errors
///
/// [`LogError::Damaged`] when an event up to `until` is not whole.
pub fn copy_log(
    from: &Path,
    to: &Path,
    until: Option<Offset>,
    mut progress: impl FnMut(Offset),
) -> Result<Head, LogError> {
    let _lock = offline::lock(from)?;
    let mark = witness::read(from).map(|(_, mark)| mark).unwrap_or_default();
    let (row, _) = walk::row(from, mark);
    let before = row.segments.first().map_or(Head::default(), |header| header.before);
    let end = until.unwrap_or(Offset::MAX);
    let mut copy = LogCopy::create(to, before, SledOptions::default())?;
    let mut head = before;
    for header in row.segments.into_iter().take_while(|header| header.first() <= end) {
        if header.before != head {
            let detail =
                format_args!("it goes on after {}, but the events before it end at {head}", header.before);
            return Err(LogError::damaged(&from.join(header.folder()), detail));
        }
        let walked: Result<Head, Stop> = walk::walk(from, header, |step| {
            if step.head.offset > end {
                return Err(Stop::Enough);
            }
            copy.push(step.schema, step.body).map_err(Stop::Failed)?;
            head = step.head;
            progress(head.offset);
            Ok(())
        });
        match walked {
            Ok(_) | Err(Stop::Enough) => {}
            Err(Stop::Failed(_)) if head.offset >= end => {}
            Err(Stop::Failed(error)) => return Err(error),
        }
    }
    copy_checkpoints(from, to, head.offset)?;
    copy.finish()
}

/// Why a walk ended early.
enum Stop {
    Enough,
    Failed(LogError),
}

impl From<LogError> for Stop {
    fn from(error: LogError) -> Self {
        Self::Failed(error)
    }
}

/// Saved states are bound to the chain, which the copy shares.
fn copy_checkpoints(from: &Path, to: &Path, until: Offset) -> Result<(), LogError> {
    let (source, target) = (Checkpoints::of(from), Checkpoints::of(to));
    for offset in source.offsets()?.into_iter().filter(|offset| *offset <= until) {
        create_dirs(target.dir())?;
        let file = target.path(offset);
        fs::copy(source.path(offset), &file).map_err(store("copy a saved state to", &file))?;
        fs::File::open(&file).and_then(|file| file.sync_all()).map_err(store("sync", &file))?;
        sync_dir(target.dir())?;
    }
    Ok(())
}

//! Opening: what the folder holds is compared with what was acknowledged before anything is built on it.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use super::super::files::{create_dirs, store, sync_dir};
use super::super::{Checkpoints, LogError};
use super::blocks::{at, before_block_of, parse};
use super::folder::{self, Access, Contents, FolderLock};
use super::reader::Shared;
use super::reserve::Reserve;
use super::row;
use super::segment::{Header, Segment, folder_name};
use super::witness::{self, Durability, WITNESS_FILE, Witness};
use super::{SledLog, SledOptions, WriterState};
use crate::events::codec::{Mark, Tail, TailError};
use crate::events::{Head, Offset, Timestamp};

pub(super) fn open(dir: &Path, options: SledOptions) -> Result<SledLog, LogError> {
    create_dirs(dir)?;
    let lock = FolderLock::take(dir, Access::Exclusive)?;
    if folder::contents(dir)? == Contents::Nothing {
        create(dir, options, Head::default())?;
    }
    open_locked(dir, options, lock)
}

/// Makes a log in an empty folder that goes on after `before`, for copies of logs.
pub(super) fn create_after(dir: &Path, options: SledOptions, before: Head) -> Result<SledLog, LogError> {
    create_dirs(dir)?;
    let lock = FolderLock::take(dir, Access::Exclusive)?;
    if folder::contents(dir)? == Contents::Log {
        return Err(LogError::damaged(dir, "it holds a log already: name a new folder"));
    }
    create(dir, options, before)?;
    open_locked(dir, options, lock)
}

fn open_locked(dir: &Path, options: SledOptions, lock: FolderLock) -> Result<SledLog, LogError> {
    let (mut witness, mark) = Witness::open(dir)?;
    let segments = folder::segments(dir);
    let row = row::read(&segments, mark)?;
    row.leftovers.iter().try_for_each(|path| remove_leftover(path))?;
    let newest = *row.segments.last().expect("a row that was read is not empty");
    let reserve = Reserve::open(dir, options.reserve_bytes);
    let active = Segment::open(&segments, newest, Access::Exclusive, options.cache_bytes)?;
    let head = verify_tail(&active, mark.head)?;
    witness.record(Mark { head, oldest: mark.oldest }, Durability::Now)?;
    let shared = Shared::new(dir, Access::Exclusive, options.cache_bytes, row.segments, head, active);
    let active_since = newest.began;
    let checkpoints = Arc::new(Checkpoints::of(dir));
    let state = WriterState::Ready;
    Ok(SledLog { shared, options, witness, checkpoints, reserve, active_since, state, _lock: lock })
}

/// Makes an empty log. The format file comes last: without it, the next start begins again.
fn create(dir: &Path, options: SledOptions, before: Head) -> Result<(), LogError> {
    refuse_what_is_no_leftover(dir)?;
    let segments = folder::segments(dir);
    remove_leftover(&segments)?;
    create_dirs(&segments)?;
    let oldest = before.offset.next();
    let header = Header { before, predecessor: oldest, began: Timestamp::default() };
    drop(Segment::create(&segments, header, options.cache_bytes)?);
    Witness::create(dir, Mark { head: before, oldest })?;
    sync_dir(dir)?;
    folder::write_format(dir)
}

/// Without a format file the folder may hold nothing but what an interrupted creation leaves.
fn refuse_what_is_no_leftover(dir: &Path) -> Result<(), LogError> {
    let refuse = |detail: &str| Err(LogError::damaged(dir, detail));
    if dir.join(WITNESS_FILE).exists() && witness::read(dir)?.1.head != Head::default() {
        return refuse("it holds a log, but its file `FORMAT` is missing");
    }
    let first = folder_name(Offset::ZERO.next());
    let entries = fs::read_dir(dir).map_err(store("list", dir))?;
    for entry in entries {
        let name = entry.map_err(store("list", dir))?.file_name();
        if !["LOCK", "FORMAT.new", "segments", WITNESS_FILE].iter().any(|known| name == *known) {
            return refuse("it holds other files: give the log a folder of its own");
        }
    }
    let others = fs::read_dir(folder::segments(dir))
        .map_or(0, |entries| entries.flatten().filter(|entry| entry.file_name() != first.as_str()).count());
    if others > 0 { refuse("it holds segments, but its file `FORMAT` is missing") } else { Ok(()) }
}

/// Removes a folder that is no part of the log, where it is there.
fn remove_leftover(path: &Path) -> Result<(), LogError> {
    if path.exists() { fs::remove_dir_all(path).map_err(store("remove", path)) } else { Ok(()) }
}

/// Reads the newest segment from the acknowledged head to its end, checks every link, and says where it ends.
pub(super) fn verify_tail(segment: &Segment, acknowledged: Head) -> Result<Head, LogError> {
    let before = segment.header().before;
    if acknowledged.offset < before.offset {
        let detail = format_args!("the witness ends at {acknowledged}, before this segment");
        return Err(LogError::damaged(segment.path(), detail));
    }
    let mut tail = Tail::after(before_block_of(segment, acknowledged.offset)?, acknowledged);
    loop {
        const BLOCKS_AT_ONCE: usize = 64;
        let blocks = segment.blocks_from(tail.head().offset.next(), BLOCKS_AT_ONCE)?;
        let Some(_) = blocks.last() else { break };
        for (key, bytes) in blocks {
            let block = parse(segment, key, &bytes)?;
            tail.take(&block).map_err(|error| at(segment, key, &error))?;
        }
    }
    tail.end().map_err(|error| match error {
        TailError::Vanished { found, acknowledged } => vanished(segment, found, acknowledged),
        TailError::Altered { .. } => LogError::damaged(segment.path(), error),
    })
}

/// Acknowledged events are not there any more.
pub(super) fn vanished(segment: &Segment, found: Head, acknowledged: Head) -> LogError {
    let lost = TailError::Vanished { found, acknowledged };
    let detail = format_args!(
        "{lost}; `foldplane log verify` shows what is left, `foldplane log repair --truncate-from {}` makes a copy without the rest",
        found.offset.next()
    );
    LogError::damaged(segment.path(), detail)
}

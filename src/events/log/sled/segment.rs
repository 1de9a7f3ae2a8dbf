//! One sled database: a stretch of the log.
//!
//! Beside sled's own files lies `header`, which says how the stretch goes on after the one before it. It is
//! written last, so that a folder without it is one whose creation did not get far.

use std::env::temp_dir;
use std::fmt;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use ::sled::{Db, IVec, Mode};
use nix::fcntl::{PosixFadviseAdvice, posix_fadvise};
use tempfile::TempDir;

use super::super::LogError;
use super::super::files::{parent, store, sync_dir, write_atomically};
use super::folder::Access;
use super::guard::{self, Panicked};
use crate::events::codec::{Block, FrameError, FrameKind, open_frame, seal_frame};
use crate::events::{ChainHash, Head, Offset, Timestamp};

const HEADER_FILE: &str = "header";

/// The file that sled keeps everything in, as long as values are small enough.
const STORE_FILE: &str = "db";

/// The unit in which sled uses its file. A leaf of more than a quarter of it would go to a file that is never
/// synced, and [`BLOCK_BYTES_MAX`](crate::events::codec::BLOCK_BYTES_MAX) is chosen by that; a larger unit makes
/// opening slower, because sled overwrites the unused rest of the last one.
const STORE_SEGMENT_BYTES: usize = 2 << 20;

/// How often, and how many times, opening is tried while a reader of this process still holds the database:
/// two seconds in all, and readers hold it for milliseconds.
const OPEN_RETRY: Duration = Duration::from_millis(20);
const OPEN_RETRIES_MAX: u32 = 100;

/// How a segment goes on after the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// The head of the log before this segment.
    pub(super) before: Head,
    /// The first offset of the segment before this one; equal to this one's in the first segment of a log.
    pub(super) predecessor: Offset,
    /// When the first event was recorded that did not go into the segment before it; zero in the first segment.
    pub(super) began: Timestamp,
}

impl Header {
    /// The first event that the segment may hold.
    pub(super) fn first(&self) -> Offset {
        self.before.offset.next()
    }

    /// The name of its folder.
    pub(super) fn folder(&self) -> String {
        folder_name(self.first())
    }
}

/// The folder name of a segment: twenty digits, so that names sort like numbers.
pub(super) fn folder_name(first: Offset) -> String {
    format!("{:020}", first.get())
}

/// An open segment.
pub(super) struct Segment {
    /// Taken only when this is dropped.
    db: Option<Db>,
    store: File,
    path: PathBuf,
    header: Header,
    /// Where the store lies when it is not the log's own; removed with this.
    _copy: Option<TempDir>,
}

impl fmt::Debug for Segment {
    /// Without what is in it, which sled would print whole.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Segment")
            .field("path", &self.path)
            .field("header", &self.header)
            .finish_non_exhaustive()
    }
}

impl Segment {
    /// Makes a new, empty segment, durable with its name.
    pub(super) fn create(segments: &Path, header: Header, cache_bytes: u64) -> Result<Self, LogError> {
        let path = segments.join(header.folder());
        // It would start after the acknowledged end, so what is there comes from a creation that failed.
        if path.exists() {
            fs::remove_dir_all(&path).map_err(store("remove the unfinished segment", &path))?;
        }
        fs::create_dir(&path).map_err(store("create the segment", &path))?;
        let segment = Self::over(path.clone(), path, header, cache_bytes)?;
        segment.flush()?;
        let conf = segment.path.join("conf");
        File::open(&conf).and_then(|file| file.sync_all()).map_err(store("sync", &conf))?;
        segment.store.sync_all().map_err(store("sync", &segment.path))?;
        sync_dir(&segment.path)?;
        write_atomically(&segment.path.join(HEADER_FILE), &encode(header))?;
        sync_dir(segments)?;
        Ok(segment)
    }

    /// Opens a segment that exists, in its place or as a copy, by who else may have the folder open.
    ///
    /// sled writes when it opens, and cuts off what it cannot read. Who only reads must not change anything.
    pub(super) fn open(
        segments: &Path,
        header: Header,
        access: Access,
        cache_bytes: u64,
    ) -> Result<Self, LogError> {
        let path = segments.join(header.folder());
        if !path.join(STORE_FILE).is_file() {
            return Err(LogError::damaged(&path, "its file `db` is missing"));
        }
        match access {
            Access::Exclusive => {
                read_through(&path.join(STORE_FILE))?;
                Self::over(path.clone(), path, header, cache_bytes)
            }
            Access::Shared => {
                let copy =
                    TempDir::with_prefix("foldplane-").map_err(store("make a folder in", &temp_dir()))?;
                copy_files(&path, copy.path()).map_err(store("copy", &path))?;
                let mut segment = Self::over(copy.path().to_owned(), path, header, cache_bytes)?;
                segment._copy = Some(copy);
                Ok(segment)
            }
        }
    }

    fn over(place: PathBuf, path: PathBuf, header: Header, cache_bytes: u64) -> Result<Self, LogError> {
        let db = match open_store(&place, &path, cache_bytes) {
            Err(LogError::Damaged { .. }) if set_page_tables_aside(&place)? => {
                tracing::warn!(segment = %path.display(), "the store's page table is unreadable and is made anew");
                open_store(&place, &path, cache_bytes)?
            }
            result => result?,
        };
        let file = place.join(STORE_FILE);
        let store = File::open(&file).map_err(store("open", &file))?;
        Ok(Self { db: Some(db), store, path, header, _copy: None })
    }

    /// Its folder.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// How it goes on after the segment before it.
    pub(super) fn header(&self) -> Header {
        self.header
    }

    /// The size of sled's file, in bytes.
    pub(super) fn store_bytes(&self) -> Result<u64, LogError> {
        self.store.metadata().map(|metadata| metadata.len()).map_err(store("look at", &self.path))
    }

    /// Adds the blocks as one unit, and makes them durable.
    pub(super) fn append(&self, blocks: &[Block]) -> Result<(), LogError> {
        self.run("append to", || match blocks {
            [block] => self.db().insert(key(block.first), block.bytes.as_slice()).map(|_| ()),
            blocks => {
                let mut batch = ::sled::Batch::default();
                for block in blocks {
                    batch.insert(&key(block.first), block.bytes.as_slice());
                }
                self.db().apply_batch(batch)
            }
        })?;
        self.make_durable()
    }

    /// Removes every block that starts after `head`, durably.
    pub(super) fn remove_after(&self, head: Offset) -> Result<(), LogError> {
        self.run("remove unacknowledged events from", || {
            for entry in self.db().range(key(head.next())..) {
                self.db().remove(entry?.0)?;
            }
            Ok(())
        })?;
        self.make_durable()
    }

    /// The block with the greatest first offset up to `offset`, with the key that it lies under.
    pub(super) fn block_at(&self, offset: Offset) -> Result<Option<(Offset, IVec)>, LogError> {
        let entry = self.run("read", || self.db().range(..=key(offset)).next_back().transpose())?;
        entry.map(|(key, value)| Ok((self.offset_of(&key)?, value))).transpose()
    }

    /// Up to `count` blocks whose first offset is `from` or more, in order, with the keys that they lie under.
    pub(super) fn blocks_from(&self, from: Offset, count: usize) -> Result<Vec<(Offset, IVec)>, LogError> {
        let entries =
            self.run("read", || self.db().range(key(from)..).take(count).collect::<Result<Vec<_>, _>>())?;
        entries.into_iter().map(|(key, value)| Ok((self.offset_of(&key)?, value))).collect()
    }

    fn offset_of(&self, key: &IVec) -> Result<Offset, LogError> {
        match <[u8; 8]>::try_from(key.as_ref()) {
            Ok(key) => Ok(Offset::new(u64::from_be_bytes(key))),
            Err(_) => Err(LogError::damaged(&self.path, format_args!("the key {key:?} is no offset"))),
        }
    }

    fn db(&self) -> &Db {
        self.db.as_ref().expect("it is taken only when the segment is dropped")
    }

    /// sled's flush alone leaves what it wrote in the kernel's memory.
    fn make_durable(&self) -> Result<(), LogError> {
        self.flush()?;
        self.store.sync_data().map_err(store("sync", &self.path))
    }

    fn flush(&self) -> Result<(), LogError> {
        self.run("flush", || self.db().flush().map(|_| ()))
    }

    fn run<T>(&self, action: &'static str, work: impl FnOnce() -> ::sled::Result<T>) -> Result<T, LogError> {
        run(action, &self.path, work)
    }
}

impl Drop for Segment {
    /// sled syncs its file when it is dropped, and panics where that fails.
    fn drop(&mut self) {
        if let Err(Panicked(message)) = guard::catch(|| drop(self.db.take())) {
            tracing::warn!(segment = %self.path.display(), message, "the store could not be closed cleanly");
        }
    }
}

/// Reads the whole file once, so that it is in memory.
///
/// sled takes what it cannot read for what was never written, and writes over it: an error of the disk that would pass
/// would be a loss that stays.
fn read_through(file: &Path) -> Result<(), LogError> {
    const READ_BYTES: usize = 1 << 20;
    let read = |opened| io::copy(&mut io::BufReader::with_capacity(READ_BYTES, opened), &mut io::sink());
    File::open(file).and_then(read).map(drop).map_err(store("read", file))
}

/// Makes the system forget what it has of a segment's file in memory, so that the next opening sees the disk.
///
/// After a failed sync the system takes the pages that it could not write for written. Whoever builds on them loses
/// everything after them in a power cut.
pub(super) fn forget_cached(path: &Path) -> Result<(), LogError> {
    let file = path.join(STORE_FILE);
    let store_file = File::open(&file).map_err(store("open", &file))?;
    posix_fadvise(&store_file, 0, 0, PosixFadviseAdvice::POSIX_FADV_DONTNEED)
        .map_err(|error| store("drop from memory", &file)(error.into()))
}

/// The header of the segment in this folder; nothing when its creation did not get as far as that.
pub(super) fn read_header(path: &Path) -> Result<Option<Header>, LogError> {
    let file = path.join(HEADER_FILE);
    let bytes = match fs::read(&file) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(store("read", &file)(error)),
    };
    let payload = open_frame(FrameKind::Segment, &bytes).map_err(|error| match error {
        FrameError::Newer(found) => {
            LogError::Newer { place: file.display().to_string(), found: found.into(), known: 1 }
        }
        FrameError::Damaged => LogError::damaged(&file, error),
    })?;
    let header = decode(payload).ok_or_else(|| LogError::damaged(&file, FrameError::Damaged))?;
    let name = path.file_name().unwrap_or_default();
    if name.to_str() != Some(header.folder().as_str()) {
        return Err(LogError::damaged(&file, format_args!("it belongs to the segment {}", header.folder())));
    }
    Ok(Some(header))
}

fn encode(header: Header) -> Vec<u8> {
    let mut payload = Vec::new();
    payload.extend_from_slice(&header.before.offset.get().to_be_bytes());
    payload.extend_from_slice(&header.predecessor.get().to_be_bytes());
    payload.extend_from_slice(&header.began.as_millis().to_be_bytes());
    payload.extend_from_slice(&header.before.chain.0);
    seal_frame(FrameKind::Segment, &payload)
}

fn decode(payload: &[u8]) -> Option<Header> {
    let (offset, rest) = payload.split_first_chunk()?;
    let (predecessor, rest) = rest.split_first_chunk()?;
    let (began, rest) = rest.split_first_chunk()?;
    let before =
        Head { offset: Offset::new(u64::from_be_bytes(*offset)), chain: ChainHash(rest.try_into().ok()?) };
    let predecessor = Offset::new(u64::from_be_bytes(*predecessor));
    Some(Header { before, predecessor, began: Timestamp::from_millis(u64::from_be_bytes(*began)) })
}

/// Fixed eight bytes, most significant first, so that keys sort like offsets (spacejam/sled#661).
fn key(offset: Offset) -> [u8; 8] {
    offset.get().to_be_bytes()
}

fn open_store(place: &Path, path: &Path, cache_bytes: u64) -> Result<Db, LogError> {
    let config = ::sled::Config::new()
        .path(place)
        .segment_size(STORE_SEGMENT_BYTES)
        .cache_capacity(cache_bytes)
        .mode(Mode::HighThroughput)
        .flush_every_ms(None);
    let mut retries = 0;
    loop {
        match run("open the store in", path, || config.open()) {
            Err(LogError::Store { source, .. }) if is_held(&source) && retries < OPEN_RETRIES_MAX => {
                retries += 1;
                sleep(OPEN_RETRY);
            }
            result => return result,
        }
    }
}

/// Renames sled's saved page tables, which it makes anew from its file: they are written without care for a full
/// disk or a stop in between (spacejam/sled#1533). What it then finds is checked like any other opening.
fn set_page_tables_aside(place: &Path) -> Result<bool, LogError> {
    let mut found = false;
    for entry in fs::read_dir(place).map_err(store("list", place))? {
        let entry = entry.map_err(store("list", place))?;
        let name = entry.file_name();
        if let Some(name) = name.to_str().filter(|name| name.starts_with("snap.")) {
            fs::rename(entry.path(), place.join(format!("unreadable-{name}")))
                .map_err(store("rename", place))?;
            found = true;
        }
    }
    Ok(found)
}

/// Whether sled refused because its file is locked; it has no other sign for it than this text.
fn is_held(error: &io::Error) -> bool {
    error.to_string().contains("could not acquire lock")
}

fn run<T>(
    action: &'static str,
    path: &Path,
    work: impl FnOnce() -> ::sled::Result<T>,
) -> Result<T, LogError> {
    match guard::catch(work) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(::sled::Error::Io(source))) => Err(store(action, path)(source)),
        Ok(Err(error)) => Err(LogError::damaged(path, format_args!("cannot {action} it: {error}"))),
        Err(Panicked(message)) => Err(LogError::damaged(path, format_args!("cannot {action} it: {message}"))),
    }
}

/// Copies the files of a segment, and those of the folders in it.
fn copy_files(from: &Path, to: &Path) -> io::Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            fs::create_dir(&target)?;
            copy_files(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), &target)?;
        }
    }
    Ok(())
}

/// How much the files of a segment take, in bytes.
pub(super) fn size_of(path: &Path) -> u64 {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.metadata().ok()).map(|metadata| metadata.len()).sum()
}

/// Removes the folder of a segment so that a stop in between leaves a folder that is seen as removed.
pub(super) fn remove(path: &Path) -> Result<(), LogError> {
    let gone = path.with_extension(REMOVED);
    fs::rename(path, &gone).map_err(store("rename", path))?;
    sync_dir(parent(path))?;
    fs::remove_dir_all(&gone).map_err(store("remove", &gone))
}

/// The ending of folders that are on their way out.
pub(super) const REMOVED: &str = "removed";

//! The witness: a small file of its own that says how far the log was acknowledged, so that a tail that
//! vanished is noticed.
//!
//! It holds two slots that are written in turn, each within one disk sector, so that a torn write leaves the
//! other one. It is written after each commit and synced at a bounded distance: it never says more than the
//! store has made durable, and after a power cut at most a second of commits less.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "the clock decides when to sync, never what is recorded"
)]

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::super::LogError;
use super::super::files::{parent, store, sync_dir};
use crate::events::codec::{FrameError, FrameKind, open_frame, seal_frame};
use crate::events::{ChainHash, Head, Offset};

/// The file's name in the data folder.
pub(super) const WITNESS_FILE: &str = "witness";

/// The smallest unit that a disk writes whole.
const SLOT_BYTES: usize = 512;

/// How many commits may pass before the witness is synced: one sync in 64 costs a busy writer about one percent.
const COMMITS_UNSYNCED_MAX: u32 = 64;

/// How long a slow writer may go without syncing the witness.
const UNSYNCED_MAX: Duration = Duration::from_secs(1);

/// What the witness says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Mark {
    /// The last acknowledged event.
    pub(super) head: Head,
    /// The first event that retention has left.
    pub(super) oldest: Offset,
}

/// When a mark must have reached the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Durability {
    /// Before the call returns.
    Now,
    /// Within the distance that this module allows.
    Soon,
}

/// The witness file, open for writing.
#[derive(Debug)]
pub(super) struct Witness {
    file: File,
    path: PathBuf,
    sequence: u64,
    commits_unsynced: u32,
    synced_at: Instant,
}

impl Witness {
    /// Writes a new witness.
    pub(super) fn create(dir: &Path, mark: Mark) -> Result<Self, LogError> {
        let path = dir.join(WITNESS_FILE);
        let file = File::create(&path).map_err(store("create", &path))?;
        let mut witness = Self::over(file, path, 0);
        witness.record(mark, Durability::Now)?;
        witness.record(mark, Durability::Now)?;
        sync_dir(parent(&witness.path))?;
        Ok(witness)
    }

    /// Opens the witness of a log.
    pub(super) fn open(dir: &Path) -> Result<(Self, Mark), LogError> {
        let (sequence, mark) = read(dir)?;
        let path = dir.join(WITNESS_FILE);
        let file = OpenOptions::new().write(true).open(&path).map_err(store("open", &path))?;
        Ok((Self::over(file, path, sequence), mark))
    }

    fn over(file: File, path: PathBuf, sequence: u64) -> Self {
        Self { file, path, sequence, commits_unsynced: 0, synced_at: Instant::now() }
    }

    /// Notes how far the log is acknowledged.
    pub(super) fn record(&mut self, mark: Mark, durability: Durability) -> Result<(), LogError> {
        self.sequence += 1;
        let mut slot = seal_frame(FrameKind::Witness, &encode(self.sequence, mark));
        slot.resize(SLOT_BYTES, 0);
        let place = (self.sequence % 2) * SLOT_BYTES as u64;
        self.file.write_all_at(&slot, place).map_err(store("write", &self.path))?;
        self.commits_unsynced += 1;
        let due = self.commits_unsynced >= COMMITS_UNSYNCED_MAX || self.synced_at.elapsed() >= UNSYNCED_MAX;
        if due || durability == Durability::Now { self.sync() } else { Ok(()) }
    }

    fn sync(&mut self) -> Result<(), LogError> {
        self.file.sync_data().map_err(store("sync", &self.path))?;
        self.commits_unsynced = 0;
        self.synced_at = Instant::now();
        Ok(())
    }
}

/// What the witness of a log says, with the number of the writing.
pub(super) fn read(dir: &Path) -> Result<(u64, Mark), LogError> {
    let path = dir.join(WITNESS_FILE);
    let bytes = std::fs::read(&path).map_err(store("read the witness", &path))?;
    let mut slots = Vec::new();
    for slot in bytes.chunks(SLOT_BYTES) {
        match open_frame(FrameKind::Witness, slot) {
            Ok(payload) => slots.extend(decode(payload)),
            Err(FrameError::Newer(found)) => {
                let place = path.display().to_string();
                return Err(LogError::Newer { place, found: found.into(), known: 1 });
            }
            Err(FrameError::Damaged) => {}
        }
    }
    slots.into_iter().max_by_key(|(sequence, _)| *sequence).ok_or_else(|| {
        LogError::damaged(&path, format_args!("neither of its two slots holds what was written"))
    })
}

fn encode(sequence: u64, mark: Mark) -> Vec<u8> {
    let mut payload = Vec::new();
    payload.extend_from_slice(&sequence.to_be_bytes());
    payload.extend_from_slice(&mark.oldest.get().to_be_bytes());
    payload.extend_from_slice(&mark.head.offset.get().to_be_bytes());
    payload.extend_from_slice(&mark.head.chain.0);
    payload
}

fn decode(payload: &[u8]) -> Option<(u64, Mark)> {
    let (sequence, rest) = payload.split_first_chunk()?;
    let (oldest, rest) = rest.split_first_chunk()?;
    let (offset, rest) = rest.split_first_chunk()?;
    let chain = ChainHash(rest.try_into().ok()?);
    let head = Head { offset: Offset::new(u64::from_be_bytes(*offset)), chain };
    Some((u64::from_be_bytes(*sequence), Mark { head, oldest: Offset::new(u64::from_be_bytes(*oldest)) }))
}

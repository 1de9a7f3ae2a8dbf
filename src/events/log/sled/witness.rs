//! The witness: a small file of its own that says how far the log was acknowledged, so that a tail that
//! vanished is noticed.
//!
//! It is written after each commit and synced at a bounded distance: it never says more than the
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
use crate::events::codec::{FrameError, Mark};

/// The file's name in the data folder.
pub(super) const WITNESS_FILE: &str = "witness";

/// How many commits may pass before the witness is synced: one sync in 64 costs a busy writer about one percent.
const COMMITS_UNSYNCED_MAX: u32 = 64;

/// How long a slow writer may go without syncing the witness.
const UNSYNCED_MAX: Duration = Duration::from_secs(1);

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
        let (place, slot) = mark.seal(self.sequence);
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
    match Mark::newest(&bytes) {
        Ok(Some(newest)) => Ok(newest),
        Ok(None) => {
            Err(LogError::damaged(&path, format_args!("neither of its two slots holds what was written")))
        }
        Err(FrameError::Newer(found)) => {
            Err(LogError::Newer { place: path.display().to_string(), found: found.into(), known: 1 })
        }
        Err(damaged @ FrameError::Damaged) => Err(LogError::damaged(&path, damaged)),
    }
}

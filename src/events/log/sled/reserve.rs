//! A little space kept back, so that removals still fit when the disk is full.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use nix::fcntl::posix_fallocate;
use nix::sys::statvfs::statvfs;

use super::super::LogError;
use super::super::files::{parent, store, sync_dir};
use crate::events::{Envelope, Event};

const RESERVE_FILE: &str = "reserve";

/// The reserve is made anew when this many times its size is free, so that it does not come and go with every file.
const FREE_FACTOR: u64 = 2;

/// The space that is kept back.
#[derive(Debug)]
pub(super) struct Reserve {
    path: PathBuf,
    bytes: u64,
    space: Space,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Space {
    /// The reserve is there, and everything is written.
    Ample,
    /// The reserve was given up.
    Tight,
}

impl Reserve {
    /// Finds the reserve, or makes it where there is enough space for it.
    pub(super) fn open(dir: &Path, bytes: u64) -> Self {
        let path = dir.join(RESERVE_FILE);
        let there = fs::metadata(&path).is_ok_and(|file| file.len() == bytes);
        let mut reserve = Self { path, bytes, space: if there { Space::Ample } else { Space::Tight } };
        reserve.restore();
        reserve.make_room();
        reserve
    }

    /// Opening writes, and sled does not come back from an opening that ran out of space.
    fn make_room(&mut self) {
        if self.space == Space::Ample && self.free() < self.bytes / 2 {
            self.release();
        }
    }

    /// Whether these events may be written now.
    pub(super) fn admit(&mut self, batch: &[Envelope]) -> Result<(), LogError> {
        let relieving = batch.iter().all(|envelope| relieves(&envelope.event));
        if relieving || self.restore() == Space::Ample {
            return Ok(());
        }
        Err(LogError::Full { path: parent(&self.path).to_owned(), free_needed: self.free_needed() })
    }

    /// Gives the space back to the disk.
    pub(super) fn release(&mut self) {
        self.space = Space::Tight;
        let removed = fs::remove_file(&self.path)
            .map_err(store("remove the reserve", &self.path))
            .and_then(|()| sync_dir(parent(&self.path)));
        match removed {
            Ok(()) => tracing::warn!("the disk is full: the reserve is used, for removals only"),
            Err(error) => tracing::warn!(%error, "the disk is full, and there is no reserve"),
        }
    }

    fn restore(&mut self) -> Space {
        if self.space == Space::Tight && self.free() >= self.free_needed() {
            self.space = if self.fill().is_ok() { Space::Ample } else { Space::Tight };
        }
        self.space
    }

    /// What is free, in bytes; nothing where the disk does not tell.
    fn free(&self) -> u64 {
        statvfs(parent(&self.path)).map_or(0, |disk| disk.blocks_available() * disk.fragment_size())
    }

    fn free_needed(&self) -> u64 {
        self.bytes * FREE_FACTOR
    }

    /// A file that only claims a length would take no space.
    fn fill(&self) -> io::Result<()> {
        let file = fs::File::create(&self.path)?;
        if let Ok(bytes) = self.bytes.try_into()
            && self.bytes > 0
        {
            posix_fallocate(&file, 0, bytes)?;
        }
        file.sync_all()
    }
}

/// Whether an event takes something out of service, or says whether that happens: what has to be recorded even on a full disk.
#[must_use]
pub fn relieves(event: &Event) -> bool {
    match event {
        Event::WorkerUnready { .. }
        | Event::WorkerDraining { .. }
        | Event::WorkerDisconnected { .. }
        | Event::WorkerReconnected { .. }
        | Event::WorkerHealthReported { .. }
        | Event::WorkerRemoved { .. }
        | Event::HostDraining { .. }
        | Event::HostRemoved { .. }
        | Event::ServiceRetired { .. }
        | Event::ExpiryHeld { .. }
        | Event::ExpiryReleased { .. }
        | Event::ResourceDeleted { .. } => true,
        Event::ReplicaStarted { .. }
        | Event::HostReported { .. }
        | Event::WorkerRegistered { .. }
        | Event::WorkerReady { .. }
        | Event::WorkerReweighted { .. }
        | Event::PortBusy { .. }
        | Event::ServiceDeclared { .. }
        | Event::NodeViewSet { .. }
        | Event::NodeViewRemoved { .. }
        | Event::PolicyChanged { .. }
        | Event::ResourceApplied { .. }
        | Event::UpdateRejected { .. } => false,
    }
}

/// Whether a store failed because there is no space.
pub(super) fn is_full_disk(error: &LogError) -> bool {
    let full =
        |source: &io::Error| matches!(source.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded);
    match error {
        LogError::Store { source, .. } => full(source),
        LogError::Full { .. } => true,
        LogError::Damaged { .. }
        | LogError::Gone { .. }
        | LogError::Conflict { .. }
        | LogError::Body(_)
        | LogError::NeedsRecovery
        | LogError::Missing { .. }
        | LogError::InUse { .. }
        | LogError::Newer { .. } => false,
    }
}

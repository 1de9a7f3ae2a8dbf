//! Saved states: they shorten the way from the oldest event, and are never the truth.
//!
//! Each is one file, written whole under another name, synced and renamed (docs/decisions). It holds what the
//! projection made of the events up to an offset, as bytes that only the projection understands, and the head
//! of the log there: a state of another log, or of events that were altered since, is not believed.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::files::{create_dirs, store, sync_dir, write_atomically};
use super::{LogError, LogReader};
use crate::events::codec::{FrameKind, open_frame, seal_frame};
use crate::events::{ChainHash, Head, Offset};

/// How many saved states are kept: when the newest one is bad, the one before it is used.
pub const CHECKPOINTS_KEPT: usize = 2;

const FOLDER: &str = "checkpoints";

/// The saved states of a log.
#[derive(Debug)]
pub struct Checkpoints {
    dir: PathBuf,
}

impl Checkpoints {
    /// The saved states of the log in `dir`.
    #[must_use]
    pub fn of(dir: &Path) -> Self {
        Self { dir: dir.join(FOLDER) }
    }

    /// Saves a state: the projection of all events up to `head`. Older ones are removed, but for one.
    ///
    /// It does not touch the writer, so it may run beside it.
    ///
    /// # Errors
    ///
    /// [`LogError::Store`]; what was saved before is still there.
    pub fn save(&self, head: Head, state: &[u8]) -> Result<(), LogError> {
        create_dirs(&self.dir)?;
        let mut payload = Vec::with_capacity(40 + state.len());
        payload.extend_from_slice(&head.offset.get().to_be_bytes());
        payload.extend_from_slice(&head.chain.0);
        payload.extend_from_slice(state);
        let path = self.path(head.offset);
        write_atomically(&path, &seal_frame(FrameKind::Checkpoint, &payload))?;
        let outdated = self.offsets()?.into_iter().rev().skip(CHECKPOINTS_KEPT);
        for offset in outdated {
            let path = self.path(offset);
            fs::remove_file(&path).map_err(store("remove", &path))?;
        }
        sync_dir(&self.dir)
    }

    /// Where the saved states are, in order.
    ///
    /// # Errors
    ///
    /// [`LogError::Store`] when the folder cannot be listed.
    pub fn offsets(&self) -> Result<Vec<Offset>, LogError> {
        let entries = match fs::read_dir(&self.dir) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(store("list", &self.dir)(error)),
        };
        let mut offsets = Vec::new();
        for entry in entries {
            let name = entry.map_err(store("list", &self.dir))?.file_name();
            // Anything else is a file that a stop left half-written.
            offsets.extend(name.to_str().and_then(|name| name.parse().ok()).map(Offset::new));
        }
        offsets.sort_unstable();
        Ok(offsets)
    }

    /// The first offset that is not needed to go on from the oldest saved state: what retention may remove ends
    /// before the offset after it. Nothing may go while there are fewer than [`CHECKPOINTS_KEPT`].
    pub(super) fn covers(&self) -> Result<Offset, LogError> {
        let offsets = self.offsets()?;
        let oldest = offsets.first().filter(|_| offsets.len() >= CHECKPOINTS_KEPT);
        Ok(oldest.copied().unwrap_or(Offset::ZERO))
    }

    /// The newest saved state that `log` confirms and `decode` understands. Others are skipped with a warning.
    ///
    /// # Errors
    ///
    /// [`LogError::Store`] when the folder cannot be listed, and [`LogError::Damaged`] when no state can be used
    /// although the events before the oldest one are gone.
    pub fn newest<S, E: std::fmt::Display>(
        &self,
        log: &dyn LogReader,
        decode: impl Fn(&[u8]) -> Result<S, E>,
    ) -> Result<Option<(Head, S)>, LogError> {
        for offset in self.offsets()?.into_iter().rev() {
            match self.load(offset, log, &decode) {
                Ok(found) => return Ok(Some(found)),
                Err(reason) => {
                    let path = self.path(offset);
                    tracing::warn!(checkpoint = %path.display(), reason, "a saved state is skipped");
                }
            }
        }
        let oldest = log.oldest();
        if oldest > Offset::ZERO.next() {
            let detail =
                format_args!("the log starts at {oldest}, and no saved state that can be used leads there");
            return Err(LogError::damaged(&self.dir, detail));
        }
        Ok(None)
    }

    /// The state saved at `offset`, or why it cannot be used.
    ///
    /// # Errors
    ///
    /// A sentence for people.
    pub fn load<S, E: std::fmt::Display>(
        &self,
        offset: Offset,
        log: &dyn LogReader,
        decode: impl Fn(&[u8]) -> Result<S, E>,
    ) -> Result<(Head, S), String> {
        let (head, state) = self.read(offset)?;
        let found = log.head_at(offset).map_err(|error| error.to_string())?;
        if found != head {
            return Err("it was saved from other events".to_owned());
        }
        decode(&state).map(|state| (head, state)).map_err(|error| error.to_string())
    }

    /// The bytes of the state saved at `offset`, and the head that they are bound to, without looking at a log.
    ///
    /// # Errors
    ///
    /// A sentence for people.
    pub fn read(&self, offset: Offset) -> Result<(Head, Vec<u8>), String> {
        let bytes = fs::read(self.path(offset)).map_err(|error| error.to_string())?;
        let payload = open_frame(FrameKind::Checkpoint, &bytes).map_err(|error| error.to_string())?;
        let (head, state) = split(payload).ok_or("it is too short")?;
        if head.offset == offset {
            Ok((head, state.to_vec()))
        } else {
            Err(format!("it was saved at {}", head.offset))
        }
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(super) fn path(&self, offset: Offset) -> PathBuf {
        self.dir.join(format!("{:020}", offset.get()))
    }
}

fn split(payload: &[u8]) -> Option<(Head, &[u8])> {
    let (offset, rest) = payload.split_first_chunk()?;
    let (chain, state) = rest.split_first_chunk()?;
    Some((Head { offset: Offset::new(u64::from_be_bytes(*offset)), chain: ChainHash(*chain) }, state))
}

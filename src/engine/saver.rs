//! Saves the state now and then, beside the writer and never in its way, so that a start need not fold the
//! whole log.

use std::fmt;
use std::sync::Arc;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::events::Offset;
use crate::events::log::{Checkpoints, LogError, LogReader};
use crate::projection::state::State;
use crate::projection::{Snapshot, checkpoint};

/// How many events apart states are saved: folding as many takes milliseconds, and saving a state of a hundred
/// thousand workers some tens of them, off the writer's thread.
const EVENTS_BETWEEN: u64 = 4096;

/// What saves states.
pub struct Saver {
    checkpoints: Arc<Checkpoints>,
    log: Arc<dyn LogReader>,
    snapshots: watch::Receiver<Arc<Snapshot>>,
    saved: Offset,
}

impl fmt::Debug for Saver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Saver").field("saved", &self.saved).finish_non_exhaustive()
    }
}

impl Saver {
    /// Saves what `snapshots` shows of `log`.
    #[must_use]
    pub fn new(
        checkpoints: Arc<Checkpoints>,
        log: Arc<dyn LogReader>,
        snapshots: watch::Receiver<Arc<Snapshot>>,
        saved: Offset,
    ) -> Self {
        Self { checkpoints, log, snapshots, saved }
    }

    /// Runs until `shutdown`, and then saves what was published last.
    pub async fn run(mut self, shutdown: CancellationToken) {
        loop {
            tokio::select! {
                () = shutdown.cancelled() => break,
                changed = self.snapshots.changed() => if changed.is_err() { break },
            }
            let offset = self.snapshots.borrow_and_update().offset();
            if offset.since(self.saved) >= EVENTS_BETWEEN {
                self.save().await;
            }
        }
        if self.snapshots.borrow().offset() > self.saved {
            self.save().await;
        }
    }

    /// A failure is no reason to stop: a state that was not saved makes the next start slower and nothing else.
    async fn save(&mut self) {
        let snapshot = Arc::clone(&self.snapshots.borrow());
        let (checkpoints, log) = (Arc::clone(&self.checkpoints), Arc::clone(&self.log));
        self.saved = snapshot.offset();
        let saved = tokio::task::spawn_blocking(move || {
            let head = log.head_at(snapshot.offset())?;
            checkpoints.save(head, &checkpoint::encode(snapshot.state()))
        });
        match saved.await {
            Ok(Ok(())) => tracing::debug!(offset = %self.saved, "the state was saved"),
            Ok(Err(error)) => tracing::warn!(%error, "the state could not be saved"),
            Err(panicked) => tracing::error!(%panicked, "the state could not be saved"),
        }
    }
}

/// The newest state that was saved and can be used, and where it was saved; the empty one where there is none.
///
/// # Errors
///
/// As [`Checkpoints::newest`].
pub fn saved_state(log: &dyn LogReader, checkpoints: &Checkpoints) -> Result<(Offset, State), LogError> {
    let newest = checkpoints.newest(log, checkpoint::decode)?;
    Ok(newest.map_or_else(Default::default, |(head, state)| (head.offset, state)))
}

//! THE ONE WRITER: wishes in, durable facts out, snapshots published; always in this order: decide, append,
//! flush, publish, answer.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a shell: it owns the clock and the tasks"
)]

mod batch;
#[cfg(test)]
mod lease_tests;
mod leases;
mod meters;
mod open;
mod saver;
#[cfg(test)]
mod scenarios;
mod timers;
mod writer;
#[cfg(test)]
mod writer_tests;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{broadcast, mpsc, oneshot, watch};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

pub use batch::Batch;
pub use meters::Meters;
pub use open::{Opened, open};
pub use saver::{Saver, saved_state};
pub use timers::{Settings, Timers};
pub use writer::Writer;

use crate::command::{Command, Rejection};
use crate::events::event::DisconnectCause;
use crate::events::log::{EventLog, LogReader};
use crate::events::{Actor, CorrelationId, Envelope, Offset, SessionId, Timestamp};
use crate::projection::Snapshot;
use crate::projection::resources::Resources;

/// How many wishes may wait for the writer. At some hundred thousand a second this is a few milliseconds of work;
/// whoever comes later waits for room, so that load is felt where it comes from.
pub const QUEUE_COMMANDS_MAX: usize = 4096;

/// How many batches of events a slow follower may fall behind before it is told that it missed some.
const FOLLOWERS_BATCHES_MAX: usize = 1024;

/// One wish on its way to the writer.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) command: Command,
    pub(crate) actor: Actor,
    pub(crate) correlation: Option<CorrelationId>,
    pub(crate) answer: Option<oneshot::Sender<Result<Accepted, SubmitError>>>,
}

/// What came of a wish: what was asked holds, durably, from `offset` on.
#[derive(Clone, Debug)]
pub struct Accepted {
    /// The last event that it made, or the offset at which it was so already.
    pub offset: Offset,
    /// The published snapshot that shows it.
    pub snapshot: Arc<Snapshot>,
}

/// A wish that the writer has.
#[derive(Debug)]
pub struct Pending(oneshot::Receiver<Result<Accepted, SubmitError>>);

impl Pending {
    /// Waits until what came of the wish is durable and published.
    ///
    /// # Errors
    ///
    /// Why it came to nothing.
    pub async fn answer(self) -> Result<Accepted, SubmitError> {
        self.0.await.map_err(|_| SubmitError::Stopping)?
    }
}

/// Why a wish came to nothing.
#[derive(Clone, Debug, thiserror::Error)]
pub enum SubmitError {
    /// It was refused.
    #[error(transparent)]
    Rejected(#[from] Rejection),
    /// The log cannot be written now; nothing was changed.
    #[error("the log cannot be written: {reason}")]
    StorageUnavailable {
        /// Why.
        reason: String,
    },
    /// The control plane is stopping.
    #[error("the control plane is stopping")]
    Stopping,
}

/// Where a probe did not get through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Stuck {
    /// The queue of the writer is full and stays full.
    #[error("the queue of the writer stays full")]
    Queue,
    /// The writer has taken it and does not answer: deciding, the log or publishing takes too long.
    #[error("the writer does not answer: the log or the fold takes too long")]
    Writer,
    /// There is no writer any more.
    #[error("the writer has stopped")]
    Stopped,
}

/// Whether the log can be written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Storage {
    /// It can.
    #[default]
    Writable,
    /// It cannot, and is tried again.
    Unavailable {
        /// Why.
        reason: String,
    },
}

/// The way to the writer, and to what it publishes. Cheap to clone.
#[derive(Clone)]
pub struct Handle {
    requests: mpsc::Sender<Request>,
    doors: CancellationToken,
    snapshots: watch::Receiver<Arc<Snapshot>>,
    resources: watch::Receiver<Arc<Resources>>,
    storage: watch::Receiver<Storage>,
    events: broadcast::Sender<Arc<[Envelope]>>,
    log: Arc<dyn LogReader>,
    meters: Meters,
}

impl std::fmt::Debug for Handle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Handle").field("offset", &self.snapshot().offset()).finish_non_exhaustive()
    }
}

impl Handle {
    /// Submits a wish and waits until what came of it is durable and published.
    ///
    /// # Errors
    ///
    /// Why it came to nothing. Nothing of it is in the log then.
    pub async fn submit(&self, actor: Actor, command: Command) -> Result<Accepted, SubmitError> {
        self.begin(actor, command).await?.answer().await
    }

    /// Hands a wish to the writer, which keeps the order of wishes, and leaves the waiting to the caller.
    ///
    /// # Errors
    ///
    /// [`SubmitError::Stopping`].
    pub async fn begin(&self, actor: Actor, command: Command) -> Result<Pending, SubmitError> {
        let (answer, answered) = oneshot::channel();
        let request = Request { command, actor, correlation: None, answer: Some(answer) };
        self.requests.send(request).await.map_err(|_| SubmitError::Stopping)?;
        Ok(Pending(answered))
    }

    /// Submits a wish that must come true sooner or later: the writer repeats it while the log cannot be written.
    pub async fn notify(&self, actor: Actor, command: Command) {
        let request = Request { command, actor, correlation: None, answer: None };
        // A writer that has stopped leaves it to the next start, which awaits every worker anew.
        let _stopped = self.requests.send(request).await;
    }

    /// Sends a wish for nothing through queue, decision, log and publisher, as every wish goes.
    ///
    /// # Errors
    ///
    /// Where it is stuck, when it has not come back within `within`. A log that cannot be written is not stuck.
    pub async fn probe(&self, within: Duration) -> Result<(), Stuck> {
        let nobody = SessionId::new("probe").expect("a word is a name");
        let nothing = Command::CloseSession { session: nobody, cause: DisconnectCause::Closed };
        let begun = timeout(within, self.begin(Actor::System, nothing)).await.map_err(|_| Stuck::Queue)?;
        let Ok(pending) = begun else { return Err(Stuck::Stopped) };
        match timeout(within, pending.answer()).await {
            Err(_) => Err(Stuck::Writer),
            Ok(Err(SubmitError::Stopping)) => Err(Stuck::Stopped),
            Ok(Ok(_) | Err(SubmitError::Rejected(_) | SubmitError::StorageUnavailable { .. })) => Ok(()),
        }
    }

    /// Says that workers can reach us from now on: their time to come back starts to run.
    pub fn doors_are_open(&self) {
        self.doors.cancel();
    }

    /// What is published now.
    #[must_use]
    pub fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(&self.snapshots.borrow())
    }

    /// What is published, as it changes; the latest wins.
    #[must_use]
    pub fn snapshots(&self) -> watch::Receiver<Arc<Snapshot>> {
        self.snapshots.clone()
    }

    /// The resources that are published, as they change; the latest wins.
    #[must_use]
    pub fn resources(&self) -> watch::Receiver<Arc<Resources>> {
        self.resources.clone()
    }

    /// Whether the log can be written, as it changes.
    #[must_use]
    pub fn storage(&self) -> watch::Receiver<Storage> {
        self.storage.clone()
    }

    /// Durable events from now on, batch by batch.
    #[must_use]
    pub fn events(&self) -> broadcast::Receiver<Arc<[Envelope]>> {
        self.events.subscribe()
    }

    /// What the writer has done since its start.
    #[must_use]
    pub const fn meters(&self) -> &Meters {
        &self.meters
    }

    /// The log, for reading.
    #[must_use]
    pub fn log(&self) -> &Arc<dyn LogReader> {
        &self.log
    }
}

/// This machine's wall clock, for the record.
#[must_use]
pub fn wall_clock() -> Timestamp {
    let since_epoch = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_millis(u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX))
}

/// Makes a writer over an opened log, and the way to it. The writer works while its
/// [`run`](Writer::run) is polled.
#[must_use]
pub fn engine(
    log: Box<dyn EventLog>,
    snapshot: Snapshot,
    settings: Settings,
    wall_clock: fn() -> Timestamp,
) -> (Handle, Writer) {
    let (requests, queue) = mpsc::channel(QUEUE_COMMANDS_MAX);
    let doors = CancellationToken::new();
    let (events, _) = broadcast::channel(FOLLOWERS_BATCHES_MAX);
    let reader = log.reader();
    let snapshot = Arc::new(snapshot);
    let resources = watch::Sender::new(Arc::clone(snapshot.resources()));
    let snapshots = watch::Sender::new(snapshot);
    let storage = watch::Sender::new(Storage::Writable);
    let handle = Handle {
        requests,
        doors: doors.clone(),
        snapshots: snapshots.subscribe(),
        resources: resources.subscribe(),
        storage: storage.subscribe(),
        events: events.clone(),
        log: reader,
        meters: Meters::default(),
    };
    let meters = handle.meters.clone();
    let outlets = writer::Outlets { snapshots, resources, storage, events, meters };
    (handle, Writer::new(log, queue, doors, outlets, settings, wall_clock))
}

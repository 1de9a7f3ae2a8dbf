//! The loop that owns the log.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{broadcast, mpsc, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::meters::{ACCEPTED, UNAVAILABLE};
use super::timers::subject;
use super::{Accepted, Batch, Meters, Request, Settings, Storage, SubmitError, Timers};
use crate::command::Command;
use crate::events::log::{EventLog, LogError};
use crate::events::{Actor, Envelope, Event, Offset, Timestamp};
use crate::projection::Snapshot;
use crate::projection::resources::Resources;

/// How many wishes one flush may cover: beyond it a batch gains little and its first wish waits longer.
const BATCH_COMMANDS_MAX: usize = 1024;

/// How long a log that cannot be written is left alone before it is tried again, unless somebody asks before.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Where the writer publishes.
#[derive(Debug)]
pub(super) struct Outlets {
    pub(super) snapshots: watch::Sender<Arc<Snapshot>>,
    pub(super) resources: watch::Sender<Arc<Resources>>,
    pub(super) storage: watch::Sender<Storage>,
    pub(super) events: broadcast::Sender<Arc<[Envelope]>>,
    pub(super) meters: Meters,
}

/// The one writer of a log.
pub struct Writer {
    log: Option<Box<dyn EventLog>>,
    queue: mpsc::Receiver<Request>,
    doors: CancellationToken,
    outlets: Outlets,
    timers: Timers,
    owed: Owed,
    wall_clock: fn() -> Timestamp,
    started: Instant,
}

impl std::fmt::Debug for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer").field("storage", &*self.outlets.storage.borrow()).finish_non_exhaustive()
    }
}

/// Wishes that nobody waits for and that must come true all the same, kept while the log cannot be written. They are
/// bounded by what lives: one closing a session, a few timers a worker, and nobody new can come in meanwhile.
#[derive(Default)]
struct Owed {
    requests: Vec<Request>,
    /// When the log is tried again; `None` while it can be written.
    retry_at: Option<Instant>,
}

impl Owed {
    fn take_due(&mut self) -> Option<Vec<Request>> {
        let due = self.retry_at.is_some_and(|at| at <= Instant::now());
        due.then(|| std::mem::take(&mut self.requests))
    }
}

/// One decided request: who waits for it, and what will be said if the batch becomes durable.
struct Decided {
    request: Request,
    verdict: Result<Offset, SubmitError>,
}

impl Writer {
    pub(super) fn new(
        log: Box<dyn EventLog>,
        queue: mpsc::Receiver<Request>,
        doors: CancellationToken,
        outlets: Outlets,
        settings: Settings,
        wall_clock: fn() -> Timestamp,
    ) -> Self {
        let timers = Timers::resume(settings, wall_clock(), outlets.snapshots.borrow().state());
        let (owed, started) = (Owed::default(), Instant::now());
        Self { log: Some(log), queue, doors, outlets, timers, owed, wall_clock, started }
    }

    /// Works until `shutdown` is asked for or every handle is gone, then closes the log. What was taken from the
    /// queue is finished; what still waits in it is answered with [`SubmitError::Stopping`].
    pub async fn run(mut self, shutdown: CancellationToken) {
        let mut awaiting_doors = true;
        let mut requests = Vec::new();
        loop {
            let due = self.next_due();
            tokio::select! {
                biased;
                () = shutdown.cancelled() => break,
                () = self.doors.cancelled(), if awaiting_doors => {
                    awaiting_doors = false;
                    let (now_ms, snapshot) = (self.now_ms(), self.snapshot());
                    self.timers.doors_are_open(now_ms, snapshot.state());
                }
                received = self.queue.recv_many(&mut requests, BATCH_COMMANDS_MAX) => {
                    if received == 0 {
                        break;
                    }
                }
                () = tokio::time::sleep_until(due) => {}
            }
            self.hear_renewals(&requests);
            // What waits still may be a renewal: nothing is due before it is read.
            if requests.len() < BATCH_COMMANDS_MAX {
                let (now_ms, snapshot) = (self.now_ms(), self.snapshot());
                requests.extend(self.timers.take_due(now_ms, snapshot.state()).into_iter().map(own));
            }
            let retry = self.owed.take_due();
            let is_retry = retry.is_some();
            // What is owed is older than what has come since.
            requests.splice(0..0, retry.unwrap_or_default());
            if is_retry || !requests.is_empty() {
                self.step(std::mem::take(&mut requests)).await;
            }
            if self.log.is_none() {
                break;
            }
        }
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(&self.outlets.snapshots.borrow())
    }

    fn hear_renewals(&mut self, requests: &[Request]) {
        let (now_ms, snapshot) = (self.now_ms(), self.snapshot());
        for request in requests {
            if let Command::Renew { worker } = &request.command {
                self.timers.renew(now_ms, worker, snapshot.state());
            }
        }
    }

    fn next_due(&self) -> Instant {
        /// How long the writer sleeps when nothing is due: any time is right, since whatever comes wakes it.
        const NOTHING_DUE: Duration = Duration::from_secs(3600);
        let timer = self.timers.next_ms().map(|at_ms| self.started + Duration::from_millis(at_ms));
        let due = [timer, self.owed.retry_at].into_iter().flatten().min();
        due.unwrap_or_else(|| Instant::now() + NOTHING_DUE)
    }

    async fn step(&mut self, requests: Vec<Request>) {
        if let Err(decided) = self.try_together(requests).await {
            // A disk that is full still takes removals, if they come alone.
            for Decided { request, .. } in decided {
                let alone = self.try_together(vec![request]).await;
                debug_assert!(alone.is_ok(), "one request is never split");
            }
        }
    }

    /// Decides, appends, publishes and answers. A batch of several that a full disk refused comes back.
    async fn try_together(&mut self, requests: Vec<Request>) -> Result<(), Vec<Decided>> {
        let base = self.snapshot();
        let mut batch = Batch::new(base.state().clone(), (self.wall_clock)());
        let decided: Vec<Decided> =
            requests.into_iter().map(|request| decide_one(&mut batch, request)).collect();
        match self.make_durable(batch.events()).await {
            Ok(()) => self.publish(&base, batch, decided),
            Err(Undurable { kind: UndurableKind::Full, .. }) if decided.len() > 1 => return Err(decided),
            Err(undurable) => self.withhold(&undurable, decided),
        }
        Ok(())
    }

    /// Appends and flushes on a thread that may block. A log that failed before is brought back first.
    async fn make_durable(&mut self, events: &[Envelope]) -> Result<(), Undurable> {
        let unavailable = *self.outlets.storage.borrow() != Storage::Writable;
        if events.is_empty() && !unavailable {
            return Ok(());
        }
        let Some(mut log) = self.log.take() else { return Err(Undurable::broken("the log is closed")) };
        let (batch, begun) = (events.to_vec(), Instant::now());
        let worked = tokio::task::spawn_blocking(move || {
            let result = append(log.as_mut(), &batch, unavailable);
            (log, result)
        });
        match worked.await {
            Ok((log, result)) => {
                self.log = Some(log);
                if result.is_ok() && !events.is_empty() {
                    self.outlets.meters.commit(events.len(), begun.elapsed());
                }
                result.map_err(|fault| Undurable::from(&fault))
            }
            Err(panicked) => {
                tracing::error!(%panicked, "the log is lost to a fault of its own; stop and start again");
                Err(Undurable::broken("the log failed in a way that it cannot come back from"))
            }
        }
    }

    fn publish(&mut self, base: &Snapshot, batch: Batch, decided: Vec<Decided>) {
        self.outlets.storage.send_if_modified(|storage| {
            let was_unavailable = *storage != Storage::Writable;
            *storage = Storage::Writable;
            was_unavailable
        });
        // The log works again: what is owed is due at once.
        self.owed.retry_at = (!self.owed.requests.is_empty()).then(Instant::now);
        let (events, state) = batch.finish();
        if !events.is_empty() {
            let snapshot = Arc::new(base.advance(state));
            let now_ms = self.now_ms();
            for envelope in &events {
                say_of_expiry(&envelope.event);
                self.timers.observe(now_ms, envelope, snapshot.state());
            }
            self.outlets.resources.send_replace(Arc::clone(snapshot.resources()));
            self.outlets.snapshots.send_replace(snapshot);
            // No follower is no fault.
            let _followers = self.outlets.events.send(events.into());
        }
        let snapshot = self.snapshot();
        self.timers.log_works(self.now_ms(), snapshot.state());
        for Decided { request, verdict } in decided {
            self.outlets.meters.count(outcome(&verdict));
            let result = verdict.map(|offset| Accepted { offset, snapshot: Arc::clone(&snapshot) });
            match (request.answer, result) {
                // Whoever asked has gone; what was decided stays decided.
                (Some(answer), result) => drop(answer.send(result)),
                (None, Ok(_)) => {}
                (None, Err(refusal)) => {
                    tracing::debug!(%refusal, worker = ?subject(&request.command), "a late command was refused");
                }
            }
        }
    }

    /// Nothing of the batch is true: the state stays the last durable one.
    fn withhold(&mut self, Undurable { kind, reason }: &Undurable, decided: Vec<Decided>) {
        tracing::error!(reason, "the log cannot be written; reads and xDS go on from memory");
        self.outlets.storage.send_replace(Storage::Unavailable { reason: reason.clone() });
        self.owed.retry_at = Some(Instant::now() + RETRY_AFTER);
        match kind {
            UndurableKind::Broken => self.timers.log_fails(),
            // Removals are written all the same, for as long as there is space for them.
            UndurableKind::Full => {}
        }
        let (now_ms, snapshot) = (self.now_ms(), self.snapshot());
        for Decided { request, .. } in decided {
            match request.answer {
                Some(answer) => {
                    self.outlets.meters.count(UNAVAILABLE);
                    let unavailable = SubmitError::StorageUnavailable { reason: reason.clone() };
                    drop(answer.send(Err(unavailable)));
                }
                None if self.timers.takes_back(now_ms, &request.command, snapshot.state()) => {}
                None => self.owed.requests.push(request),
            }
        }
    }
}

/// What came of a wish.
const fn outcome(verdict: &Result<Offset, SubmitError>) -> &'static str {
    match verdict {
        Ok(_) => ACCEPTED,
        Err(SubmitError::Rejected(rejection)) => rejection.code.as_str(),
        Err(SubmitError::StorageUnavailable { .. } | SubmitError::Stopping) => UNAVAILABLE,
    }
}

/// Why a batch is not durable.
struct Undurable {
    kind: UndurableKind,
    reason: String,
}

enum UndurableKind {
    /// The space that is left is kept for removals.
    Full,
    /// The store failed.
    Broken,
}

impl Undurable {
    fn broken(reason: &str) -> Self {
        Self { kind: UndurableKind::Broken, reason: reason.to_owned() }
    }
}

impl From<&LogError> for Undurable {
    fn from(fault: &LogError) -> Self {
        let is_full = matches!(fault, LogError::Full { .. });
        let kind = if is_full { UndurableKind::Full } else { UndurableKind::Broken };
        Self { kind, reason: chain(fault) }
    }
}

fn append(log: &mut dyn EventLog, batch: &[Envelope], recover_first: bool) -> Result<(), LogError> {
    if recover_first {
        log.recover()?;
    }
    if batch.is_empty() { Ok(()) } else { log.append(batch) }
}

fn decide_one(batch: &mut Batch, request: Request) -> Decided {
    let verdict = batch
        .push(&request.command, &request.actor, request.correlation.as_ref())
        .map_err(SubmitError::Rejected);
    Decided { request, verdict }
}

/// What keeps endpoints that may be dead is said where people look first.
fn say_of_expiry(event: &Event) {
    if let Event::ExpiryHeld { reason, until } = event {
        tracing::warn!(reason, %until, "nobody expires for now: a crowd fell silent at once");
    }
    if let Event::ExpiryReleased { reason } = event {
        tracing::info!(reason, "silent workers expire again");
    }
}

/// A command of our own clock.
fn own(command: Command) -> Request {
    Request { command, actor: Actor::System, correlation: None, answer: None }
}

/// A fault with all its causes, on one line.
fn chain(fault: &dyn std::error::Error) -> String {
    let mut text = fault.to_string();
    let mut source = fault.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

//! The writer's promises: an answer follows durability, and what is not durable is not visible.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::{Handle, Settings, Storage, Stuck, SubmitError, engine, open, wall_clock};
use crate::command::{Command, Registering};
use crate::events::event::{DisconnectCause, HostReport, Lease, Locality, PortRange};
use crate::events::log::{EventLog, Events, LogError, LogReader, MemoryLog, StoreHealth};
use crate::events::{
    Actor, Envelope, Event, Generation, Head, HostName, Offset, ReplicaId, ServiceName, SessionId, WorkerId,
    WorkerKey, WorkerRef,
};
use crate::projection::state::State;
use crate::projection::{Snapshot, StateDigest};

fn started(log: MemoryLog) -> (Handle, CancellationToken, tokio::task::JoinHandle<()>) {
    let (handle, writer) = engine(Box::new(log), Snapshot::default(), Settings::default(), wall_clock);
    let shutdown = CancellationToken::new();
    let task = tokio::spawn(writer.run(shutdown.clone()));
    (handle, shutdown, task)
}

fn report(host: usize) -> Command {
    let report = HostReport {
        addresses: vec!["192.0.2.1".parse().unwrap()],
        port_range: PortRange::default(),
        locality: Locality::default(),
    };
    Command::ReportHost { host: HostName::new(&format!("h{host}")).unwrap(), report }
}

#[tokio::test]
async fn wishes_that_come_together_share_a_flush_and_each_gets_its_own_offset() {
    let log = MemoryLog::new();
    let reader = log.reader();
    let (handle, _shutdown, _task) = started(log);
    let mut followed = handle.events();
    let wishes = (0..300).map(|host| {
        let handle = handle.clone();
        async move { handle.submit(Actor::System, report(host)).await.unwrap().offset }
    });
    let mut offsets = futures_util::future::join_all(wishes).await;
    offsets.sort_unstable();
    assert_eq!(offsets, (1..=300).map(Offset::new).collect::<Vec<_>>());
    assert_eq!(reader.head().offset, Offset::new(300));
    let mut batches = 0;
    while followed.try_recv().is_ok() {
        batches += 1;
    }
    assert!(batches < 100, "300 wishes took {batches} flushes");
}

#[tokio::test]
async fn what_is_answered_is_durable_and_visible() {
    let log = MemoryLog::new();
    let reader = log.reader();
    let (handle, _shutdown, _task) = started(log);
    let accepted = handle.submit(Actor::System, report(1)).await.unwrap();
    assert_eq!(reader.head().offset, accepted.offset);
    assert_eq!(handle.snapshot().offset(), accepted.offset);
    assert_eq!(accepted.snapshot.offset(), accepted.offset);
}

// apache/couchdb#3576, strongloop/strong-pm#368, openvstorage/alba#573
#[tokio::test(start_paused = true)]
async fn a_store_that_fails_changes_nothing_and_comes_back_by_itself() {
    let log = MemoryLog::new();
    let (faults, reader) = (log.faults(), log.reader());
    let (handle, _shutdown, _task) = started(log);
    handle.submit(Actor::System, report(1)).await.unwrap();
    let before = StateDigest::of(handle.snapshot().state());

    faults.set(StoreHealth::Failing);
    let refused = handle.submit(Actor::System, report(2)).await.unwrap_err();
    assert!(matches!(refused, SubmitError::StorageUnavailable { .. }), "{refused}");
    assert_eq!(StateDigest::of(handle.snapshot().state()), before, "what is not durable is not visible");
    assert!(matches!(&*handle.storage().borrow(), Storage::Unavailable { .. }));

    faults.set(StoreHealth::Healthy);
    let mut storage = handle.storage();
    storage.wait_for(|storage| *storage == Storage::Writable).await.unwrap();
    let accepted = handle.submit(Actor::System, report(2)).await.unwrap();
    assert_eq!(accepted.offset, Offset::new(2), "offsets have no gap");
    assert_eq!(reader.head().offset, Offset::new(2));
}

#[tokio::test]
async fn a_wish_that_is_too_large_for_the_log_is_refused_alone() {
    let (handle, _shutdown, _task) = started(MemoryLog::new());
    let replica = ReplicaId::new("r1").unwrap();
    let large = Command::StartReplica { replica, version: "x".repeat(30_000) };
    let (large, small) =
        tokio::join!(handle.submit(Actor::System, large), handle.submit(Actor::System, report(1)));
    let refused = large.unwrap_err();
    assert!(matches!(&refused, SubmitError::Rejected(_)), "{refused}");
    assert_eq!(small.unwrap().offset, Offset::new(1));
    assert_eq!(*handle.storage().borrow(), Storage::Writable);
}

#[tokio::test(start_paused = true)]
async fn what_must_come_true_is_kept_while_the_store_fails() {
    let log = MemoryLog::new();
    let (faults, reader) = (log.faults(), log.reader());
    let (handle, _shutdown, _task) = started(log);
    faults.set(StoreHealth::Failing);
    let replica = ReplicaId::new("r1").unwrap();
    let must = Command::StartReplica { replica, version: String::new() };
    handle.notify(Actor::System, must).await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(reader.head().offset, Offset::ZERO);
    faults.set(StoreHealth::Healthy);
    let mut snapshots = handle.snapshots();
    snapshots.wait_for(|snapshot| snapshot.offset() == Offset::new(1)).await.unwrap();
}

/// Registers a worker whose lost connection is waited for five seconds, and loses it.
async fn lost_worker(handle: &Handle) -> WorkerRef {
    let worker = WorkerKey {
        service: ServiceName::new("web").unwrap(),
        host: HostName::new("h1").unwrap(),
        id: WorkerId::new("a").unwrap(),
    };
    let session = SessionId::new("s1").unwrap();
    let lease = Lease::Session { disconnect_grace_ms: 5_000 };
    let wish = Registering::new(worker.clone(), session.clone(), lease);
    let accepted = handle.submit(Actor::System, Command::Register(wish)).await.unwrap();
    let close = Command::CloseSession { session, cause: DisconnectCause::Closed };
    handle.submit(Actor::System, close).await.unwrap();
    WorkerRef { key: worker, generation: Generation::at(accepted.offset) }
}

// Its rejoin was refused for longer than anybody waits for it.
#[tokio::test(start_paused = true)]
async fn a_grace_does_not_end_while_the_log_fails_and_begins_anew_when_it_works() {
    let log = MemoryLog::new();
    let faults = log.faults();
    let (handle, _shutdown, _task) = started(log);
    let worker = lost_worker(&handle).await;
    let rejoin = || {
        let session = SessionId::new("s2").unwrap();
        handle.submit(Actor::System, Command::Rejoin { worker: worker.clone(), session })
    };
    let lives = || handle.snapshot().state().current(&worker).is_ok();
    faults.set(StoreHealth::Failing);
    assert!(matches!(rejoin().await, Err(SubmitError::StorageUnavailable { .. })));
    tokio::time::sleep(Duration::from_secs(60)).await;
    faults.set(StoreHealth::Healthy);
    handle.storage().wait_for(|storage| *storage == Storage::Writable).await.unwrap();
    tokio::time::sleep(Duration::from_millis(4_900)).await;
    assert!(lives(), "its grace began anew");
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(!lives(), "and ends");

    let worker = lost_worker(&handle).await;
    faults.set(StoreHealth::Failing);
    let session = || SessionId::new("s3").unwrap();
    let rejoin = || Command::Rejoin { worker: worker.clone(), session: session() };
    assert!(handle.submit(Actor::System, rejoin()).await.is_err());
    tokio::time::sleep(Duration::from_secs(60)).await;
    faults.set(StoreHealth::Healthy);
    handle.submit(Actor::System, rejoin()).await.expect("it has its place");
}

#[tokio::test]
async fn a_replay_gives_the_state_that_was_live() {
    let log = MemoryLog::new();
    let reader = log.reader();
    let (handle, shutdown, task) = started(log);
    for host in 0..20 {
        handle.submit(Actor::System, report(host % 7)).await.unwrap();
    }
    let closed =
        Command::CloseSession { session: SessionId::new("nobody").unwrap(), cause: DisconnectCause::Closed };
    assert_eq!(handle.submit(Actor::System, closed).await.unwrap().offset, Offset::new(7));
    let live = StateDigest::of(handle.snapshot().state());
    shutdown.cancel();
    task.await.unwrap();
    let replayed = open(Arc::as_ref(&reader), State::default(), None).unwrap();
    assert_eq!(StateDigest::of(replayed.snapshot.state()), live);
    assert!(matches!(handle.submit(Actor::System, report(99)).await, Err(SubmitError::Stopping)));
}

/// A log in memory whose appends are done as the test wants.
struct OddLog<F> {
    inner: MemoryLog,
    append: F,
}

impl<F: Send + Sync> LogReader for OddLog<F> {
    fn head(&self) -> Head {
        self.inner.head()
    }

    fn oldest(&self) -> Offset {
        self.inner.oldest()
    }

    fn head_at(&self, offset: Offset) -> Result<Head, LogError> {
        self.inner.head_at(offset)
    }

    fn read(&self, from: Offset) -> Result<Events<'_>, LogError> {
        self.inner.read(from)
    }
}

impl<F> EventLog for OddLog<F>
where
    F: Fn(&mut MemoryLog, &[Envelope]) -> Result<(), LogError> + Send + Sync,
{
    fn append(&mut self, batch: &[Envelope]) -> Result<(), LogError> {
        (self.append)(&mut self.inner, batch)
    }

    fn recover(&mut self) -> Result<(), LogError> {
        self.inner.recover()
    }

    fn truncate_before(&mut self, keep_from: Offset) -> Result<Offset, LogError> {
        self.inner.truncate_before(keep_from)
    }

    fn reader(&self) -> Arc<dyn LogReader> {
        self.inner.reader()
    }
}

pub(super) fn started_with<F>(append: F) -> Handle
where
    F: Fn(&mut MemoryLog, &[Envelope]) -> Result<(), LogError> + Send + Sync + 'static,
{
    let log = OddLog { inner: MemoryLog::new(), append };
    let (handle, writer) = engine(Box::new(log), Snapshot::default(), Settings::default(), wall_clock);
    drop(tokio::spawn(writer.run(CancellationToken::new())));
    handle
}

#[tokio::test]
async fn a_full_disk_that_still_takes_removals_gets_them_alone() {
    let handle = started_with(|log, batch| {
        let is_removal = |envelope: &Envelope| matches!(envelope.event, Event::HostRemoved { .. });
        if log.head().offset == Offset::ZERO || batch.iter().all(is_removal) {
            return log.append(batch);
        }
        Err(LogError::Full { path: "the disk".into(), free_needed: 1 })
    });
    handle.submit(Actor::System, report(1)).await.unwrap();
    let host = HostName::new("h1").unwrap();
    let (refused, removed) = tokio::join!(
        handle.submit(Actor::System, report(2)),
        handle.submit(Actor::System, Command::RemoveHost { host }),
    );
    assert!(matches!(refused, Err(SubmitError::StorageUnavailable { .. })), "{refused:?}");
    assert_eq!(removed.unwrap().offset, Offset::new(2));
}

// kubernetes/kubernetes#70819, istio/istio#10126
#[tokio::test]
async fn a_writer_that_is_stuck_is_not_alive_and_the_stage_is_named() {
    let stuck = Arc::new(AtomicBool::new(false));
    let gate = Arc::clone(&stuck);
    let handle = started_with(move |log, batch| {
        while gate.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(1));
        }
        log.append(batch)
    });
    let within = Duration::from_millis(200);
    assert_eq!(handle.probe(within).await, Ok(()));
    stuck.store(true, Ordering::Relaxed);
    handle.notify(Actor::System, report(1)).await;
    // The writer must have taken the wish before the probe comes, so that the probe waits behind it.
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(handle.probe(within).await, Err(Stuck::Writer));
    stuck.store(false, Ordering::Relaxed);
    assert_eq!(handle.probe(Duration::from_secs(5)).await, Ok(()));
}

//! Leases on the real writer: time, clocks that are set, and a log that stalls (faults.md E).

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::writer_tests::started_with;
use super::{Handle, Settings, engine, open};
use crate::command::{Command, Registering};
use crate::events::event::Lease;
use crate::events::log::{EventLog, MemoryLog};
use crate::events::{Actor, Envelope, Event, HostName, Offset, ServiceName, SessionId, WorkerId};
use crate::events::{Timestamp, WorkerKey, WorkerRef};
use crate::projection::state::State;

thread_local! {
    static WALL_MS: Cell<u64> = const { Cell::new(1_767_225_600_000) };
}

fn wall() -> Timestamp {
    Timestamp::from_millis(WALL_MS.get())
}

fn key(id: &str) -> WorkerKey {
    WorkerKey {
        service: ServiceName::new("web").unwrap(),
        host: HostName::new("h1").unwrap(),
        id: WorkerId::new(id).unwrap(),
    }
}

async fn register(handle: &Handle, id: &str, ttl_ms: u32) -> WorkerRef {
    let wish = Registering::new(key(id), SessionId::new(id).unwrap(), Lease::Ttl { ttl_ms });
    let accepted = handle.submit(Actor::System, Command::Register(wish)).await.unwrap();
    let generation = accepted.snapshot.state().workers().get(&key(id)).unwrap().generation;
    WorkerRef { key: key(id), generation }
}

fn lives(handle: &Handle, id: &str) -> bool {
    handle.snapshot().state().workers().contains_key(&key(id))
}

async fn seconds(count: u64) {
    tokio::time::sleep(Duration::from_secs(count)).await;
}

fn started_at(log: MemoryLog) -> (Handle, CancellationToken) {
    let snapshot = open(&log, State::default(), None).unwrap().snapshot;
    let (handle, writer) = engine(Box::new(log), snapshot, Settings::default(), wall);
    let shutdown = CancellationToken::new();
    drop(tokio::spawn(writer.run(shutdown.clone())));
    (handle, shutdown)
}

// etcd-io/etcd#12291 (F31)
#[tokio::test(start_paused = true)]
async fn f31_a_clock_that_is_set_ends_no_lease_early_or_late() {
    const HOUR_MS: i64 = 3_600_000;
    for jump_ms in [HOUR_MS, -HOUR_MS] {
        let (handle, _shutdown) = started_at(MemoryLog::new());
        register(&handle, "a", 60_000).await;
        seconds(10).await;
        WALL_MS.set(WALL_MS.get().saturating_add_signed(jump_ms));
        seconds(49).await;
        assert!(lives(&handle, "a"), "early, after {jump_ms} ms");
        seconds(2).await;
        assert!(!lives(&handle, "a"), "late, after {jump_ms} ms");
    }
}

// etcd-io/etcd#15247 (F32)
#[tokio::test(start_paused = true)]
async fn f32_a_log_that_stalls_expires_nobody_who_renewed() {
    let stalls = Arc::new(AtomicBool::new(false));
    let gate = Arc::clone(&stalls);
    let handle = started_with(move |log, batch| {
        while gate.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(1));
        }
        log.append(batch)
    });
    let renewing = register(&handle, "a", 30_000).await;
    let silent = register(&handle, "b", 30_000).await;
    stalls.store(true, Ordering::Relaxed);
    let stuck = handle.begin(Actor::System, Command::Ready { worker: silent }).await.unwrap();
    let mut renewals = Vec::new();
    for _ in 0..6 {
        tokio::time::advance(Duration::from_secs(10)).await;
        let renewal = Command::Renew { worker: renewing.clone() };
        renewals.push(handle.begin(Actor::System, renewal).await.unwrap());
    }
    stalls.store(false, Ordering::Relaxed);
    stuck.answer().await.unwrap();
    for renewal in renewals {
        renewal.answer().await.unwrap();
    }
    // What the silent one said meanwhile might wait unread: its lease lasts its whole time again, once.
    seconds(20).await;
    handle.submit(Actor::System, Command::Renew { worker: renewing }).await.unwrap();
    seconds(11).await;
    assert!(lives(&handle, "a"), "it renewed all the time");
    assert!(!lives(&handle, "b"), "nobody heard from it");
}

// hashicorp/nomad#16762 (F26)
#[tokio::test(start_paused = true)]
async fn f26_after_our_absence_each_lease_has_its_whole_time_once_more() {
    let log = MemoryLog::new();
    let reader = log.reader();
    let (handle, shutdown) = started_at(log);
    register(&handle, "a", 30_000).await;
    let renewing = register(&handle, "b", 30_000).await;
    shutdown.cancel();
    seconds(600).await;

    let events: Vec<Envelope> = reader.read(Offset::new(1)).unwrap().collect::<Result<_, _>>().unwrap();
    assert!(events.iter().all(|envelope| matches!(envelope.event, Event::WorkerRegistered { .. })));
    let (handle, _shutdown) = started_at(MemoryLog::with_events(&events).unwrap());
    seconds(28).await;
    assert!(lives(&handle, "a") && lives(&handle, "b"), "each has its whole time");
    handle.submit(Actor::System, Command::Renew { worker: renewing }).await.unwrap();
    seconds(4).await;
    assert!(!lives(&handle, "a") && lives(&handle, "b"));
}

// hashicorp/nomad#26424, hashicorp/nomad#16983 (F27)
#[tokio::test(start_paused = true)]
async fn f27_no_renewal_is_good_while_the_worker_is_not_there() {
    let (handle, _shutdown) = started_at(MemoryLog::new());
    let worker = register(&handle, "a", 5_000).await;
    for _ in 0..40 {
        seconds(1).await;
        let renewal = handle.submit(Actor::System, Command::Renew { worker: worker.clone() }).await;
        assert_eq!(renewal.is_ok(), lives(&handle, "a"));
        if handle.snapshot().offset().get() == 1 {
            // It falls silent for a while, and is late.
            seconds(7).await;
        }
    }
    assert!(!lives(&handle, "a"));
}

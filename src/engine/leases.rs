//! Who has to be heard from by when, and who is late. Pure: the monotonic time since start, in milliseconds, is an argument.

use std::collections::{BTreeMap, BTreeSet};

use crate::events::WorkerRef;

/// How late the end of a lease is noticed when it was we who stood still, and not the worker: a process that is awake is
/// never this late.
const STOOD_STILL_MS: u64 = 1000;

/// Workers that have to be heard from, each by its time.
#[derive(Debug, Default)]
pub(super) struct Leases {
    by_worker: BTreeMap<WorkerRef, Lease>,
    /// When each ends, so that only what ends is looked at.
    ends: BTreeSet<(u64, WorkerRef)>,
}

#[derive(Clone, Copy, Debug)]
struct Lease {
    ttl_ms: u64,
    ends_ms: u64,
    /// Whether its whole time was given again without a word of the worker: once, so that silence always ends.
    spared: bool,
}

impl Leases {
    /// The worker was heard: its lease lasts its whole time again.
    pub(super) fn begin(&mut self, now_ms: u64, worker: WorkerRef, ttl_ms: u64) {
        self.insert(worker, Lease { ttl_ms, ends_ms: now_ms.saturating_add(ttl_ms), spared: false });
    }

    fn insert(&mut self, worker: WorkerRef, lease: Lease) {
        self.end(&worker);
        self.ends.insert((lease.ends_ms, worker.clone()));
        self.by_worker.insert(worker, lease);
    }

    /// Nobody waits for this worker any more.
    pub(super) fn end(&mut self, worker: &WorkerRef) {
        if let Some(lease) = self.by_worker.remove(worker) {
            self.ends.remove(&(lease.ends_ms, worker.clone()));
        }
    }

    /// Everybody's lease lasts its whole time again.
    pub(super) fn begin_all(&mut self, now_ms: u64) {
        self.ends.clear();
        for (worker, lease) in std::mem::take(&mut self.by_worker) {
            self.begin(now_ms, worker, lease.ttl_ms);
        }
    }

    /// When the next lease ends.
    pub(super) fn next_ms(&self) -> Option<u64> {
        self.ends.first().map(|(ends_ms, _)| *ends_ms)
    }

    /// Takes out those that have ended.
    pub(super) fn take_ended(&mut self, now_ms: u64) -> BTreeSet<WorkerRef> {
        std::iter::from_fn(|| self.take_first(now_ms)).map(|(worker, _)| worker).collect()
    }

    /// Takes out those that were silent until their end, as long as we listened. An end that passed while we stood still
    /// says nothing: what was said meanwhile may wait unread in a socket, so that lease lasts its whole time again.
    pub(super) fn take_silent(&mut self, now_ms: u64) -> BTreeSet<WorkerRef> {
        let (mut silent, mut unheard) = (BTreeSet::new(), Vec::new());
        while let Some((worker, lease)) = self.take_first(now_ms) {
            if lease.spared || now_ms - lease.ends_ms < STOOD_STILL_MS {
                silent.insert(worker);
            } else {
                unheard.push((
                    worker,
                    Lease { ends_ms: now_ms.saturating_add(lease.ttl_ms), spared: true, ..lease },
                ));
            }
        }
        for (worker, lease) in unheard {
            self.insert(worker, lease);
        }
        silent
    }

    fn take_first(&mut self, now_ms: u64) -> Option<(WorkerRef, Lease)> {
        let (_, worker) = self.ends.first().filter(|(ends_ms, _)| *ends_ms <= now_ms).cloned()?;
        let lease = self.by_worker.get(&worker).copied()?;
        self.end(&worker);
        Some((worker, lease))
    }

    /// Those that were not heard for more than half of their time. Who renews three times as often, as is asked for, has
    /// missed a renewal by then.
    pub(super) fn quiet(&self, now_ms: u64) -> BTreeSet<WorkerRef> {
        let is_quiet = |lease: &Lease| lease.ends_ms.saturating_sub(now_ms) < lease.ttl_ms / 2;
        let quiet = self.by_worker.iter().filter(|(_, lease)| is_quiet(lease));
        quiet.map(|(worker, _)| worker.clone()).collect()
    }
}

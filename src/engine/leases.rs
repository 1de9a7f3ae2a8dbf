//! Who has to be heard from by when, and who is late. Pure: the monotonic time since start, in milliseconds, is an argument.

use std::collections::{BTreeMap, BTreeSet};

use crate::events::WorkerRef;

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
}

impl Leases {
    /// The worker was heard: its lease lasts its whole time again.
    pub(super) fn begin(&mut self, now_ms: u64, worker: WorkerRef, ttl_ms: u64) {
        self.end(&worker);
        let ends_ms = now_ms.saturating_add(ttl_ms);
        self.ends.insert((ends_ms, worker.clone()));
        self.by_worker.insert(worker, Lease { ttl_ms, ends_ms });
    }

    /// Nobody waits for this worker any more.
    pub(super) fn end(&mut self, worker: &WorkerRef) {
        if let Some(lease) = self.by_worker.remove(worker) {
            self.ends.remove(&(lease.ends_ms, worker.clone()));
        }
    }

    /// When the next lease ends.
    pub(super) fn next_ms(&self) -> Option<u64> {
        self.ends.first().map(|(ends_ms, _)| *ends_ms)
    }

    /// Takes out those that have ended.
    pub(super) fn take_ended(&mut self, now_ms: u64) -> BTreeSet<WorkerRef> {
        let mut ended = BTreeSet::new();
        while let Some((_, worker)) = self.ends.first().filter(|(ends_ms, _)| *ends_ms <= now_ms).cloned() {
            self.end(&worker);
            ended.insert(worker);
        }
        ended
    }

    /// Those that were not heard for more than half of their time. Who renews three times as often, as is asked for, has
    /// missed a renewal by then.
    pub(super) fn quiet(&self, now_ms: u64) -> BTreeSet<WorkerRef> {
        let is_quiet = |lease: &Lease| lease.ends_ms.saturating_sub(now_ms) < lease.ttl_ms / 2;
        let quiet = self.by_worker.iter().filter(|(_, lease)| is_quiet(lease));
        quiet.map(|(worker, _)| worker.clone()).collect()
    }
}

//! Who is connected, and what each was sent, accepted and refused.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::node::Node;
use super::protocol::{Machine, StreamId};
pub use super::protocol::{Rejection, Served, TypeStatus, Variant};
use crate::events::event::UpdateRejection;
use crate::events::{Offset, Timestamp, ViewName};
use crate::projection::resources::{ResourceSet, Resources, TypeUrl};

/// How many refusals are remembered, so that each is reported once. When they are more, all are forgotten, and one
/// that is still going on is reported a second time.
const REPORTED_MAX: usize = 10_000;

/// Every open stream and how it stands. Cheap to clone: clones show the same.
#[derive(Clone, Debug, Default)]
pub struct Ledger(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    streams: Mutex<BTreeMap<StreamId, Arc<Mutex<StreamStatus>>>>,
    reported: Mutex<BTreeSet<(String, TypeUrl, String)>>,
    counters: Counters,
    changes: watch::Sender<u64>,
}

impl Default for Inner {
    fn default() -> Self {
        Self {
            streams: Mutex::default(),
            reported: Mutex::default(),
            counters: Counters::default(),
            changes: watch::Sender::new(0),
        }
    }
}

#[derive(Debug, Default)]
struct Counters {
    opened: AtomicU64,
    requests: AtomicU64,
    responses: AtomicU64,
    rejections: AtomicU64,
    reports_dropped: AtomicU64,
    oversized: AtomicU64,
}

/// What was counted since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Streams that were opened.
    pub opened: u64,
    /// Messages from clients.
    pub requests: u64,
    /// Messages to clients.
    pub responses: u64,
    /// Responses that clients refused.
    pub rejections: u64,
    /// Refusals that were not recorded in the log, because too many were waiting.
    pub reports_dropped: u64,
    /// Responses above the 4 MiB that clients accept by default, which could not be split.
    pub oversized: u64,
}

/// How one stream stands. Cheap to clone.
#[derive(Clone, Debug)]
pub struct StreamStatus {
    /// Which stream.
    pub stream: StreamId,
    /// Who, as it calls itself.
    pub node: Node,
    /// From where, where that is known.
    pub peer: Option<SocketAddr>,
    /// Which variant of the protocol it speaks.
    pub variant: Variant,
    /// Which service it called.
    pub served: Served,
    /// The views that are for its node. None means that it sees everything.
    pub views: Vec<ViewName>,
    /// When it was opened.
    pub since: Timestamp,
    /// The newest resources that were compared with what it holds.
    pub seen: Arc<Resources>,
    /// Up to this offset it has answered for everything that concerns it.
    pub settled: Offset,
    /// How each type stands that it asked for.
    pub types: BTreeMap<TypeUrl, TypeStatus>,
}

impl StreamStatus {
    /// The resources of a type as it gets them.
    #[must_use]
    pub fn world(&self, type_url: TypeUrl) -> &ResourceSet {
        self.variant.of(&self.seen, type_url)
    }

    /// How many events it is behind.
    #[must_use]
    pub fn lag(&self) -> u64 {
        self.seen.offset().since(self.settled)
    }
}

impl Ledger {
    /// Every open stream, by node id, then by age.
    #[must_use]
    pub fn snapshot(&self) -> Vec<StreamStatus> {
        let entries: Vec<_> = lock(&self.0.streams).values().cloned().collect();
        let mut streams: Vec<_> = entries.iter().map(|entry| lock(entry).clone()).collect();
        streams.sort_by(|a, b| (a.node.id(), a.since, a.stream).cmp(&(b.node.id(), b.since, b.stream)));
        streams
    }

    /// How many streams are open.
    #[must_use]
    pub fn open_streams(&self) -> usize {
        lock(&self.0.streams).len()
    }

    /// How many streams have answered for everything that concerns them up to `offset`.
    #[must_use]
    pub fn settled_streams(&self, offset: Offset) -> usize {
        lock(&self.0.streams).values().filter(|entry| lock(entry).settled >= offset).count()
    }

    /// What was counted since the start.
    #[must_use]
    pub fn totals(&self) -> Totals {
        let Counters { opened, requests, responses, rejections, reports_dropped, oversized } =
            &self.0.counters;
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Totals {
            opened: read(opened),
            requests: read(requests),
            responses: read(responses),
            rejections: read(rejections),
            reports_dropped: read(reports_dropped),
            oversized: read(oversized),
        }
    }

    /// Tells when something in the ledger changed, for callers that wait.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.0.changes.subscribe()
    }

    /// Enters a stream; it leaves when the entry is dropped.
    pub(super) fn open(&self, status: StreamStatus) -> Entry {
        let stream = status.stream;
        let status = Arc::new(Mutex::new(status));
        lock(&self.0.streams).insert(stream, Arc::clone(&status));
        add(&self.0.counters.opened);
        self.touch();
        Entry { ledger: self.clone(), stream, status }
    }

    /// The fact to record about a refusal, when it is the first of its node, type and version (xds-rules 18).
    pub(super) fn report(
        &self,
        node: &Node,
        type_url: TypeUrl,
        rejection: &Rejection,
    ) -> Option<UpdateRejection> {
        let version = rejection.version.to_string();
        let mut reported = lock(&self.0.reported);
        if reported.len() >= REPORTED_MAX {
            reported.clear();
        }
        reported.insert((node.id().to_owned(), type_url, version.clone())).then(|| UpdateRejection {
            node: node.id().to_owned(),
            type_url: type_url.as_str().to_owned(),
            names: rejection.names.iter().map(ToString::to_string).collect(),
            version,
            message: rejection.message.as_ref().to_owned(),
        })
    }

    pub(super) fn count_request(&self) {
        add(&self.0.counters.requests);
    }

    pub(super) fn count_response(&self) {
        add(&self.0.counters.responses);
    }

    pub(super) fn count_rejection(&self) {
        add(&self.0.counters.rejections);
    }

    pub(super) fn count_report_dropped(&self) {
        add(&self.0.counters.reports_dropped);
    }

    pub(super) fn count_oversized(&self) {
        add(&self.0.counters.oversized);
    }

    fn touch(&self) {
        self.0.changes.send_modify(|count| *count += 1);
    }
}

/// A stream's line in the ledger.
#[derive(Debug)]
pub(super) struct Entry {
    ledger: Ledger,
    stream: StreamId,
    status: Arc<Mutex<StreamStatus>>,
}

impl Entry {
    /// Who it is: said in the first message, and remembered (xds-rules 14).
    pub(super) fn set_node(&self, node: Node) {
        lock(&self.status).node = node;
    }

    /// Which views are for it now.
    pub(super) fn set_views(&self, views: Vec<ViewName>) {
        lock(&self.status).views = views;
    }

    /// Writes down how the stream stands now.
    pub(super) fn update(&self, machine: &Machine) {
        let mut status = lock(&self.status);
        for type_url in TypeUrl::ALL {
            if let Some(of_type) = machine.status(type_url) {
                status.types.insert(type_url, of_type);
            }
        }
        status.seen = Arc::clone(machine.seen());
        status.settled = machine.settled();
        drop(status);
        self.ledger.touch();
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        lock(&self.ledger.0.streams).remove(&self.stream);
        self.ledger.touch();
    }
}

fn add(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// A writer that panicked leaves a line that is at most outdated.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

//! What the owner of a session says and hears.

use std::time::Duration;

use crate::proto;

/// A worker in this session's hands, from `add` to its [`Notice::Gone`]. Chosen by the owner, never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// What the owner wants to be true of a worker. The latest wish wins; the session sends what is missing, also
/// after a lost connection.
#[derive(Clone, Debug, PartialEq)]
pub enum Wish {
    /// It runs, and cannot serve yet.
    Starting,
    /// It can serve.
    Ready,
    /// It cannot serve now.
    Unready {
        /// In a few words.
        reason: String,
    },
    /// It gets no new requests, and is removed after `drain_ms`.
    Draining {
        /// In a few words.
        reason: String,
        /// Milliseconds until removal.
        drain_ms: u32,
    },
    /// It is gone.
    Gone {
        /// How its process ended, where it did.
        exit: Option<proto::exit::Status>,
    },
}

impl Wish {
    /// Whether a worker that the control plane no longer knows should be registered anew.
    pub(super) fn outlives_removal(&self) -> bool {
        match self {
            Self::Starting | Self::Ready | Self::Unready { .. } => true,
            Self::Draining { .. } | Self::Gone { .. } => false,
        }
    }
}

/// What somebody who watches a worker thinks of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Opinion {
    /// How it is.
    pub verdict: proto::Verdict,
    /// In a few words.
    pub reason: String,
}

impl Opinion {
    /// All is well: what holds for every source that never said anything.
    #[must_use]
    pub fn healthy() -> Self {
        Self { verdict: proto::Verdict::Healthy, reason: String::new() }
    }
}

/// What happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Notice {
    /// The session is open.
    Connected,
    /// The session is lost, or could not be opened. It is tried again after `retry`.
    Disconnected {
        /// What was wrong.
        problem: String,
        /// When the next attempt is made.
        retry: Duration,
    },
    /// The worker is registered: first, or anew after the control plane had removed it.
    Registered {
        /// Which worker.
        ticket: Ticket,
        /// Its name and generation.
        worker: proto::WorkerRef,
        /// Where it is to listen, in the order of the registration.
        ports: Vec<proto::Port>,
    },
    /// What was wished is durable and visible to proxies.
    Reported {
        /// Which worker.
        ticket: Ticket,
        /// What holds now.
        wish: Wish,
        /// From which log offset on.
        offset: u64,
    },
    /// The control plane refused. It is asked again after `retry`, until the owner wishes something else.
    Refused {
        /// Which worker.
        ticket: Ticket,
        /// Why.
        refusal: proto::Rejected,
        /// When it is asked again.
        retry: Duration,
    },
    /// The control plane refused what the host lends; what it knew before holds.
    HostRefused {
        /// Why.
        refusal: proto::Rejected,
    },
    /// The control plane empties the worker: it gets no new requests, and is removed after `drain_ms`.
    Draining {
        /// Which worker.
        ticket: Ticket,
        /// Milliseconds until removal.
        drain_ms: u32,
    },
    /// The control plane no longer holds the worker, and the session has forgotten it.
    Gone {
        /// Which worker.
        ticket: Ticket,
        /// Why.
        cause: Departure,
    },
}

/// Why a worker is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Departure {
    /// The owner wished it.
    Wished,
    /// The control plane removed it and asks it to stop, for instance because it was `drained`.
    Stopped {
        /// In the control plane's words.
        cause: String,
    },
    /// Another registration took its name.
    Replaced,
}

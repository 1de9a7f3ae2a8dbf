//! One live worker.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};

use crate::events::event::{DisconnectCause, HealthSource, Registration, Verdict};
use crate::events::{Generation, SessionId, Timestamp};
use crate::projection::ClusterName;

/// A worker between its registration and its removal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Worker {
    /// Which registration this is.
    pub generation: Generation,
    /// When it was recorded.
    pub registered_at: Timestamp,
    /// As what it was admitted.
    pub registration: Registration,
    /// In which cluster each of its endpoints is.
    pub clusters: Vec<ClusterName>,
    /// What it says of itself.
    pub phase: Phase,
    /// Who speaks for it.
    pub link: Link,
    /// Its share of the load, as it was last set.
    pub weight: Option<NonZeroU32>,
    /// What those who watch it say, each its newest.
    pub verdicts: BTreeMap<HealthSource, Opinion>,
    /// How many starts of the control plane it could have answered with a sign of life, and has not.
    pub missed_rejoins: u8,
}

/// A verdict and its reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opinion {
    /// What.
    pub verdict: Verdict,
    /// In the source's words.
    pub reason: String,
}

/// How far a worker has come.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Phase {
    /// It has not said yet whether it can serve.
    Registered,
    /// It can serve.
    Ready,
    /// It could serve, and says that it cannot now.
    Unready {
        /// In its words.
        reason: String,
        /// Whether anything was published of it before, and so must be published as unhealthy.
        was: Served,
    },
    /// It finishes what is in flight; its removal is due `drain_ms` after `since`.
    Draining {
        /// Why.
        reason: String,
        /// How long it has, in milliseconds.
        drain_ms: u32,
        /// From when.
        since: Timestamp,
        /// Whether anything was published of it before, and so must be published as draining.
        was: Served,
    },
}

/// Whether clients were ever told of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Served {
    /// It was published.
    Published,
    /// It never was.
    Never,
}

/// Who speaks for a worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Link {
    /// This connection.
    Connected {
        /// Which one.
        session: SessionId,
    },
    /// Nobody: its connection ended, and its grace runs.
    Disconnected {
        /// How it ended.
        cause: DisconnectCause,
    },
    /// Nobody yet: the control plane restarted, which is not the worker's fault.
    AwaitingRejoin,
}

impl Worker {
    /// The worst that anybody says of it; healthy when nobody says anything.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        self.verdicts.values().map(|opinion| opinion.verdict).max().unwrap_or(Verdict::Healthy)
    }

    /// The connection that speaks for it, if one does.
    #[must_use]
    pub const fn session(&self) -> Option<&SessionId> {
        match &self.link {
            Link::Connected { session } => Some(session),
            Link::Disconnected { .. } | Link::AwaitingRejoin => None,
        }
    }

    /// Whether this connection speaks for it.
    #[must_use]
    pub fn is_spoken_for_by(&self, session: &SessionId) -> bool {
        self.session() == Some(session)
    }
}

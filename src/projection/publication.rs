//! What clients are told of a worker: one function for every door.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::state::{Link, Phase, Served, Worker};
use crate::events::event::{ClusterPolicy, DegradedAs, Readiness, UnreadyAs, Verdict};

/// A health status as clients are told it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum HealthStatus {
    /// Gets requests.
    Healthy,
    /// Gets requests when there are not enough healthy ones.
    Degraded,
    /// Gets none, unless nearly all others are unhealthy too and the cluster has a panic threshold.
    Unhealthy,
    /// Gets no new ones.
    Draining,
}

impl HealthStatus {
    /// The name in the xDS protocol.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Healthy => "HEALTHY",
            Self::Degraded => "DEGRADED",
            Self::Unhealthy => "UNHEALTHY",
            Self::Draining => "DRAINING",
        }
    }
}

impl fmt::Display for HealthStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// What is published of this worker's endpoints; `None` keeps them out.
///
/// The first that holds: never ready keeps it out, whatever else happens to it, since what was never in must not
/// come in as unhealthy or draining; draining; unready, by policy absent; disconnected; any verdict of unhealthy;
/// degraded, by policy; healthy.
#[must_use]
pub fn health(worker: &Worker, policy: &ClusterPolicy) -> Option<HealthStatus> {
    match (&worker.phase, worker.registration.readiness) {
        (Phase::Registered, Readiness::Reported)
        | (Phase::Unready { was: Served::Never, .. } | Phase::Draining { was: Served::Never, .. }, _) => None,
        (Phase::Draining { was: Served::Published, .. }, _) => Some(HealthStatus::Draining),
        (Phase::Unready { was: Served::Published, .. }, _) => match policy.unready {
            UnreadyAs::Unhealthy => Some(HealthStatus::Unhealthy),
            UnreadyAs::Absent => None,
        },
        (Phase::Registered, Readiness::Assumed) | (Phase::Ready, _) => Some(watched(worker, policy)),
    }
}

/// A worker that says it can serve, as its connection and those who watch it have it.
fn watched(worker: &Worker, policy: &ClusterPolicy) -> HealthStatus {
    match (&worker.link, worker.verdict(), policy.degraded) {
        (Link::Disconnected { .. }, _, _) | (_, Verdict::Unhealthy, _) => HealthStatus::Unhealthy,
        (Link::Connected { .. } | Link::AwaitingRejoin, Verdict::Degraded, DegradedAs::Degraded) => {
            HealthStatus::Degraded
        }
        (Link::Connected { .. } | Link::AwaitingRejoin, Verdict::Healthy | Verdict::Degraded, _) => {
            HealthStatus::Healthy
        }
    }
}

//! What clients are told of a worker: one function for every door.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::state::{Link, Phase, Served, Worker};
use crate::events::event::{Readiness, Verdict};

/// A health status as clients are told it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum HealthStatus {
    /// Gets requests.
    Healthy,
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
/// come in as unhealthy or draining; draining; unready; disconnected; any verdict of unhealthy; healthy.
#[must_use]
pub fn health(worker: &Worker) -> Option<HealthStatus> {
    match (&worker.phase, worker.registration.readiness) {
        (Phase::Registered, Readiness::Reported)
        | (Phase::Unready { was: Served::Never, .. } | Phase::Draining { was: Served::Never, .. }, _) => None,
        (Phase::Draining { was: Served::Published, .. }, _) => Some(HealthStatus::Draining),
        (Phase::Unready { was: Served::Published, .. }, _) => Some(HealthStatus::Unhealthy),
        (Phase::Registered, Readiness::Assumed) | (Phase::Ready, _) => Some(watched(worker)),
    }
}

/// A worker that says it can serve, as its connection and those who watch it have it. Degraded is published as
/// healthy: gRPC sends no requests to a degraded endpoint (xds-rules 27).
fn watched(worker: &Worker) -> HealthStatus {
    match (&worker.link, worker.verdict()) {
        (Link::Disconnected { .. }, _) | (_, Verdict::Unhealthy) => HealthStatus::Unhealthy,
        (Link::Connected { .. } | Link::AwaitingRejoin, Verdict::Healthy | Verdict::Degraded) => {
            HealthStatus::Healthy
        }
    }
}

//! Every fact that Foldplane knows.
//!
//! An event is never changed, only versioned (docs/FORMAT.md). Variants are appended, never moved: their
//! order is in the bytes.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};

use super::{HostName, PortName, ReplicaId, ServiceName, SessionId, WorkerKey, WorkerRef};

/// A fact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Event {
    /// This copy of the control plane opened the log; every live session of the one before it is over.
    ReplicaStarted {
        /// The new copy.
        replica: ReplicaId,
        /// The version of the program.
        version: String,
    },
    /// A host said what it lends.
    HostReported {
        /// Which host.
        host: HostName,
        /// What it lends.
        report: HostReport,
    },
    /// A worker was admitted; its generation is this event's offset.
    WorkerRegistered {
        /// Which worker.
        worker: WorkerKey,
        /// As what.
        registration: Registration,
    },
    /// The worker says that it can serve.
    WorkerReady {
        /// Which registration.
        worker: WorkerRef,
    },
    /// The worker says that it cannot serve now.
    WorkerUnready {
        /// Which registration.
        worker: WorkerRef,
        /// In its words.
        reason: String,
    },
    /// The worker is being emptied: no new requests, removal after `drain_ms`.
    WorkerDraining {
        /// Which registration.
        worker: WorkerRef,
        /// Why.
        reason: String,
        /// How long requests in flight have, in milliseconds from the recorded time.
        drain_ms: u32,
    },
    /// The connection that spoke for the worker is gone; removal follows after its grace.
    WorkerDisconnected {
        /// Which registration.
        worker: WorkerRef,
        /// How the connection ended.
        cause: DisconnectCause,
    },
    /// A new connection speaks for the same registration.
    WorkerReconnected {
        /// Which registration.
        worker: WorkerRef,
        /// The new connection.
        session: SessionId,
    },
    /// The worker is gone.
    WorkerRemoved {
        /// Which registration.
        worker: WorkerRef,
        /// Why.
        cause: RemovalCause,
    },
    /// A proxy refused what it was sent (a NACK); recorded once per node, type and version.
    UpdateRejected {
        /// What was refused, by whom.
        rejection: UpdateRejection,
    },
}

impl Event {
    /// The variant's name, as it is written in dumps, metrics and documents.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::ReplicaStarted { .. } => "ReplicaStarted",
            Self::HostReported { .. } => "HostReported",
            Self::WorkerRegistered { .. } => "WorkerRegistered",
            Self::WorkerReady { .. } => "WorkerReady",
            Self::WorkerUnready { .. } => "WorkerUnready",
            Self::WorkerDraining { .. } => "WorkerDraining",
            Self::WorkerDisconnected { .. } => "WorkerDisconnected",
            Self::WorkerReconnected { .. } => "WorkerReconnected",
            Self::WorkerRemoved { .. } => "WorkerRemoved",
            Self::UpdateRejected { .. } => "UpdateRejected",
        }
    }

    /// Which service this is about, where it is about one.
    #[must_use]
    pub fn service(&self) -> Option<&ServiceName> {
        self.worker().map(|key| &key.service)
    }

    /// Which worker this is about, where it is about one.
    #[must_use]
    pub fn worker(&self) -> Option<&WorkerKey> {
        match self {
            Self::WorkerRegistered { worker, .. } => Some(worker),
            Self::WorkerReady { worker }
            | Self::WorkerUnready { worker, .. }
            | Self::WorkerDraining { worker, .. }
            | Self::WorkerDisconnected { worker, .. }
            | Self::WorkerReconnected { worker, .. }
            | Self::WorkerRemoved { worker, .. } => Some(&worker.key),
            Self::ReplicaStarted { .. } | Self::HostReported { .. } | Self::UpdateRejected { .. } => None,
        }
    }
}

/// What a host lends to workers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostReport {
    /// Where its workers can be reached; the first is used for endpoints that name none.
    pub addresses: Vec<IpAddr>,
    /// The ports it hands out.
    pub port_range: PortRange,
    /// Where it stands.
    pub locality: Locality,
}

/// Ports from `first` to `last`, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PortRange {
    /// The lowest.
    pub first: u16,
    /// The highest.
    pub last: u16,
}

impl Default for PortRange {
    /// Below Linux's range for outgoing connections (32768 and up), so that no stranger's socket sits on a port.
    fn default() -> Self {
        Self { first: 20_000, last: 32_000 }
    }
}

impl fmt::Display for PortRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.first, self.last)
    }
}

/// Where something stands, as in the xDS protocol; empty text means unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Locality {
    /// Such as `eu-central`.
    pub region: String,
    /// Such as `eu-central-1a`.
    pub zone: String,
    /// Finer than the zone.
    pub sub_zone: String,
}

/// As what a worker was admitted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Registration {
    /// The operating system's process, where the caller knows it.
    pub process: Option<Process>,
    /// Where it serves: the first is the service's own cluster, the others are `service:port`.
    pub endpoints: Vec<Endpoint>,
    /// Whether it counts as able to serve before it says so.
    pub readiness: Readiness,
    /// Its share of the load within its locality; 1 where none is given.
    pub weight: Option<NonZeroU32>,
    /// 0 is used first; higher numbers take over when lower ones fail.
    pub priority: u32,
    /// Where it stands, if not where its host stands.
    pub locality: Option<Locality>,
    /// Labels for policies and people.
    pub metadata: BTreeMap<String, String>,
    /// The connection that speaks for it.
    pub session: SessionId,
    /// What keeps it alive.
    pub lease: Lease,
}

/// A process, so identified that a reused number is not mistaken for it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Process {
    /// The process id.
    pub pid: u32,
    /// When it started, in clock ticks since boot.
    pub start_ticks: u64,
    /// Which boot of the host.
    pub boot_id: String,
}

/// One place where a worker serves.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Endpoint {
    /// What the worker calls the port.
    pub port: PortName,
    /// Where it listens.
    pub address: EndpointAddress,
}

/// Where an endpoint listens. An enumeration with room for more kinds, because its bytes are in the log.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum EndpointAddress {
    /// An IP address and port.
    Ip(SocketAddr),
}

/// Whether registration alone means that a worker can serve.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Readiness {
    /// Registered is healthy.
    #[default]
    Assumed,
    /// Not published before its first ready.
    Reported,
}

/// What keeps a registration alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Lease {
    /// The connection itself. When it ends, the worker is disconnected, and removed after the grace.
    Session {
        /// Milliseconds between the loss of the connection and removal; 0 removes at once.
        disconnect_grace_ms: u32,
    },
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum DisconnectCause {
    /// Closed or reset by the other side: proof of death.
    Closed,
    /// Silent for longer than the keepalive allows.
    Silent,
}

/// Why a worker is gone.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum RemovalCause {
    /// It said goodbye.
    Deregistered,
    /// Its process ended.
    Exited(ExitStatus),
    /// Its connection ended and the grace, if any, is over.
    Disconnected(DisconnectCause),
    /// The control plane restarted and it did not come back in time.
    DidNotRejoin,
    /// Another registration took its key.
    Replaced,
    /// Its drain time is over.
    Drained,
    /// An operator took it out.
    Operator,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ExitStatus {
    /// With this exit code.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

impl fmt::Display for RemovalCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Deregistered => f.write_str("deregistered"),
            Self::Exited(status) => status.fmt(f),
            Self::Disconnected(DisconnectCause::Closed) => f.write_str("disconnected"),
            Self::Disconnected(DisconnectCause::Silent) => f.write_str("silent"),
            Self::DidNotRejoin => f.write_str("did not rejoin"),
            Self::Replaced => f.write_str("replaced"),
            Self::Drained => f.write_str("drained"),
            Self::Operator => f.write_str("operator"),
        }
    }
}

/// What a proxy refused.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct UpdateRejection {
    /// Who: the node id that the proxy gave, cut to the length of a name.
    pub node: String,
    /// Of which type.
    pub type_url: String,
    /// Which resources the refused response held, at most a few.
    pub names: Vec<String>,
    /// The version that was refused.
    pub version: String,
    /// Why, in the proxy's words, cut to 2 KiB.
    pub message: String,
}

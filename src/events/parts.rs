//! What events are made of. Variants are appended, never moved: their order is in the bytes.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};

use super::{PortName, SessionId, SocketPath};

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
    /// A Unix domain socket, on the machine of whoever dials it.
    Unix(SocketPath),
}

impl EndpointAddress {
    /// The number of its port; none for a socket with a path.
    #[must_use]
    pub const fn port(&self) -> Option<u16> {
        match self {
            Self::Ip(address) => Some(address.port()),
            Self::Unix(_) => None,
        }
    }
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
    /// Renewals, for callers without a connection that lasts. Silence for longer than this removes the worker.
    Ttl {
        /// Milliseconds from one renewal to the end.
        ttl_ms: u32,
    },
}

impl Lease {
    /// How long a lost connection is waited for, in milliseconds, where the connection is the lease.
    #[must_use]
    pub const fn disconnect_grace_ms(self) -> Option<u32> {
        match self {
            Self::Session { disconnect_grace_ms } => Some(disconnect_grace_ms),
            Self::Ttl { .. } => None,
        }
    }

    /// How long a renewal lasts, in milliseconds, where renewals are the lease.
    #[must_use]
    pub const fn ttl_ms(self) -> Option<u32> {
        match self {
            Self::Session { .. } => None,
            Self::Ttl { ttl_ms } => Some(ttl_ms),
        }
    }
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
    /// Its host was removed.
    HostRemoved,
    /// Its lease was not renewed in time.
    LeaseExpired,
    /// Its service was retired.
    ServiceRetired,
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
            Self::HostRemoved => f.write_str("host removed"),
            Self::LeaseExpired => f.write_str("lease expired"),
            Self::ServiceRetired => f.write_str("service retired"),
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

/// Who watches a worker. Each has one verdict at a time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum HealthSource {
    /// The worker itself.
    Worker,
    /// The monitor of its process: exits and restarts.
    Process,
    /// The monitor of its memory.
    Memory,
    /// The monitor of its load.
    Utilization,
    /// Somebody else.
    Custom(PortName),
}

impl fmt::Display for HealthSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Worker => f.write_str("worker"),
            Self::Process => f.write_str("process"),
            Self::Memory => f.write_str("memory"),
            Self::Utilization => f.write_str("utilization"),
            Self::Custom(name) => write!(f, "custom:{name}"),
        }
    }
}

/// What somebody who watches a worker says of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Verdict {
    /// It is well.
    Healthy,
    /// It serves, and is not at its best.
    Degraded,
    /// It should get no requests.
    Unhealthy,
}

impl Verdict {
    /// Its name, as it is written in messages and documents.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Healthy => "healthy",
            Self::Degraded => "degraded",
            Self::Unhealthy => "unhealthy",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

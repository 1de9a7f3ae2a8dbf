//! WISHES: what may be asked, and the pure decision that turns a wish into facts or a reason why not.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

mod check;
mod content;
mod decide;
mod ports;
mod rejection;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::num::{NonZeroU16, NonZeroU32};

pub use check::{ip_literal, listen, port_number, port_range, weight};
pub use decide::{
    APPLIED_RESOURCES_MAX, CHANGE_RESOURCES_MAX, CROWD_HOSTS_MIN, CROWD_LEASES_MIN, HOLD_MS_MAX,
    REJOINS_MISSED_MAX, decide,
};
pub use rejection::{Rejection, RejectionCode};

use crate::events::event::{
    DisconnectCause, HealthSource, HostReport, Lease, Locality, Policy, Process, Readiness, RemovalCause,
    ServiceSpec, UpdateRejection, Verdict,
};
use crate::events::view::NodeView;
use crate::events::{
    HostName, MessageBytes, Offset, PortName, ReplicaId, ResourceKey, ServiceName, SessionId, SocketPath,
    ViewName, WorkerKey, WorkerRef,
};

/// A wish.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// This copy of the control plane has opened the log.
    StartReplica {
        /// Which copy.
        replica: ReplicaId,
        /// The version of the program.
        version: String,
    },
    /// A host says what it lends.
    ReportHost {
        /// Which host.
        host: HostName,
        /// What it lends.
        report: HostReport,
    },
    /// A worker wants to be admitted.
    Register(Registering),
    /// A connection wants to speak for a worker that is registered.
    Rejoin {
        /// Which registration.
        worker: WorkerRef,
        /// The connection.
        session: SessionId,
    },
    /// A worker that renews its lease lives. Never an event while it is spoken for: the log grows with changes only.
    Renew {
        /// Which registration.
        worker: WorkerRef,
    },
    /// The time of these is over, as far as nobody hears from them.
    ExpireSilent {
        /// Whose time is over.
        overdue: BTreeSet<WorkerRef>,
        /// Who has said nothing for longer than usual, though their time is not over.
        quiet: BTreeSet<WorkerRef>,
    },
    /// Expiry is held because a crowd is silent: it may be heard again.
    ReviewHold {
        /// Which hold: where it began.
        since: Offset,
        /// Who has said nothing for longer than usual.
        quiet: BTreeSet<WorkerRef>,
    },
    /// Expiry has been held for as long as it may be.
    EndHold {
        /// Which hold: where it began.
        since: Offset,
        /// Whose time is over.
        overdue: BTreeSet<WorkerRef>,
    },
    /// A worker can serve.
    Ready {
        /// Which registration.
        worker: WorkerRef,
    },
    /// A worker cannot serve now.
    Unready {
        /// Which registration.
        worker: WorkerRef,
        /// In its words.
        reason: String,
    },
    /// A worker is to be emptied.
    Drain {
        /// Which registration.
        worker: WorkerRef,
        /// Why.
        reason: String,
        /// How long requests in flight have, in milliseconds; absent is what the service declares.
        drain_ms: Option<u32>,
    },
    /// A worker is gone, or is to go at once.
    Remove {
        /// Which registration.
        worker: WorkerRef,
        /// Why.
        cause: RemovalCause,
    },
    /// Somebody who watches a worker says how it is.
    ReportHealth {
        /// Which registration.
        worker: WorkerRef,
        /// Who says so.
        source: HealthSource,
        /// What.
        verdict: Verdict,
        /// In the source's words.
        reason: String,
    },
    /// A worker is to have another share of the load.
    Reweight {
        /// Which registration.
        worker: WorkerRef,
        /// The new share.
        weight: Option<NonZeroU32>,
    },
    /// A port that a worker was given is taken by a stranger.
    ReportBusyPort {
        /// Which host.
        host: HostName,
        /// Which port.
        port: NonZeroU16,
    },
    /// A host is to be emptied.
    DrainHost {
        /// Which host.
        host: HostName,
        /// Why.
        reason: String,
        /// How long requests in flight have, in milliseconds; absent is what the service declares.
        drain_ms: Option<u32>,
    },
    /// A host is gone, or is to go at once.
    RemoveHost {
        /// Which host.
        host: HostName,
    },
    /// An operator says what a service is.
    DeclareService {
        /// Which service.
        service: ServiceName,
        /// What it is.
        spec: ServiceSpec,
    },
    /// A service is over, and all its workers are to go at once.
    RetireService {
        /// Which service.
        service: ServiceName,
    },
    /// An operator says what decides over endpoints.
    SetPolicy {
        /// Of which service; absent is of all that have no hook of their own.
        service: Option<ServiceName>,
        /// What decides; empty is what always decides.
        policy: Policy,
    },
    /// A connection ended.
    CloseSession {
        /// Which one.
        session: SessionId,
        /// How.
        cause: DisconnectCause,
    },
    /// The time to come back after a lost connection is over for this worker.
    EndGrace {
        /// Which registration.
        worker: WorkerRef,
    },
    /// A group of nodes is to see these services.
    SetView {
        /// Which view.
        name: ViewName,
        /// Who, and what.
        view: NodeView,
    },
    /// A view is to go.
    RemoveView {
        /// Which view.
        name: ViewName,
    },
    /// A proxy refused what it was sent.
    RecordRejection {
        /// What, and who.
        rejection: UpdateRejection,
    },
    /// An operator's own resources are to be as given.
    ChangeResources(ResourceChange),
}

/// What is to become of an operator's own resources: all of it, or nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourceChange {
    /// These are to be there.
    pub apply: Vec<Applying>,
    /// These are not.
    pub delete: Vec<ResourceKey>,
    /// What if a resource names one that is not there.
    pub references: References,
}

/// A resource that is to be there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applying {
    /// Which.
    pub key: ResourceKey,
    /// What clients are to be sent.
    pub message: MessageBytes,
}

/// What if a resource names one that is not there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum References {
    /// It is refused.
    #[default]
    Checked,
    /// It is taken: what it names comes later, or somewhere else.
    Unchecked,
}

/// What a worker asks for when it wants to be admitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registering {
    /// Which worker.
    pub worker: WorkerKey,
    /// Its ports: the first is the service's own cluster.
    pub ports: Vec<PortRequest>,
    /// Whether it counts as able to serve before it says so.
    pub readiness: Readiness,
    /// Its share of the load.
    pub weight: Option<NonZeroU32>,
    /// 0 is used first.
    pub priority: u32,
    /// Where it stands, if not where its host stands.
    pub locality: Option<Locality>,
    /// Labels.
    pub metadata: BTreeMap<String, String>,
    /// Its process.
    pub process: Option<Process>,
    /// The connection that asks.
    pub session: SessionId,
    /// What keeps it alive.
    pub lease: Lease,
}

impl Registering {
    /// What the least of workers asks for: no port, counted as able to serve, without weight, priority or labels.
    #[must_use]
    pub const fn new(worker: WorkerKey, session: SessionId, lease: Lease) -> Self {
        Self {
            worker,
            ports: Vec::new(),
            readiness: Readiness::Assumed,
            weight: None,
            priority: 0,
            locality: None,
            metadata: BTreeMap::new(),
            process: None,
            session,
            lease,
        }
    }
}

/// One port that a worker asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortRequest {
    /// What the worker calls it.
    pub name: PortName,
    /// Where it wants to listen.
    pub listen: Listen,
}

/// Where a worker wants to listen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listen {
    /// On a port of its host.
    Port {
        /// Which number; absent is any that is free.
        number: Option<NonZeroU16>,
        /// On which address; absent is the host's first.
        address: Option<IpAddr>,
    },
    /// On a Unix domain socket.
    Path(SocketPath),
}

impl Listen {
    /// The port's number, where it is asked for.
    #[must_use]
    pub const fn number(&self) -> Option<NonZeroU16> {
        match self {
            Self::Port { number, .. } => *number,
            Self::Path(_) => None,
        }
    }
}

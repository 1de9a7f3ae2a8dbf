//! Every fact that Foldplane knows.
//!
//! An event is never changed, only versioned (docs/FORMAT.md). Variants are appended, never moved: their
//! order is in the bytes.

use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};

pub use super::parts::{
    DisconnectCause, Endpoint, EndpointAddress, ExitStatus, HealthSource, HostReport, Lease, Locality,
    PortRange, Process, Readiness, Registration, RemovalCause, UpdateRejection, Verdict,
};
pub use super::policy::Policy;
pub use super::service::{
    ClusterPolicy, DegradedAs, Delivery, LbPolicy, LocalityWeighting, PortSpec, Protocol, ServiceSpec,
    UnreadyAs,
};
use super::view::NodeView;
use super::{
    HostName, MessageBytes, ReplicaId, ResourceKey, ServiceName, SessionId, Timestamp, ViewName, WorkerKey,
    WorkerRef,
};

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
    /// One of those who watch the worker says how it is. It holds until the same one says otherwise.
    WorkerHealthReported {
        /// Which registration.
        worker: WorkerRef,
        /// Who says so.
        source: HealthSource,
        /// What.
        verdict: Verdict,
        /// In the source's words.
        reason: String,
    },
    /// The worker's share of the load changed.
    WorkerReweighted {
        /// Which registration.
        worker: WorkerRef,
        /// The new share; 1 where none is given.
        weight: Option<NonZeroU32>,
    },
    /// The host is being emptied: its workers drain, and no new ones are admitted.
    HostDraining {
        /// Which host.
        host: HostName,
        /// Why.
        reason: String,
    },
    /// The host is gone, and all that lived there.
    HostRemoved {
        /// Which host.
        host: HostName,
    },
    /// A stranger listens on a port that the host lends.
    PortBusy {
        /// Which host.
        host: HostName,
        /// Which port.
        port: u16,
    },
    /// An operator said what a service is.
    ServiceDeclared {
        /// Which service.
        service: ServiceName,
        /// What it is.
        spec: ServiceSpec,
    },
    /// The service is over: its declaration holds no longer, and no worker of it lives.
    ServiceRetired {
        /// Which service.
        service: ServiceName,
    },
    /// A group of nodes sees these services from now on.
    NodeViewSet {
        /// Which view.
        name: ViewName,
        /// Who, and what.
        view: NodeView,
    },
    /// This view is gone: its nodes see what their other views show, or everything.
    NodeViewRemoved {
        /// Which view.
        name: ViewName,
    },
    /// An operator said what decides over the endpoints of a service, or of all that have no hook of their own.
    PolicyChanged {
        /// Which service; absent is all.
        service: Option<ServiceName>,
        /// What decides from now on; empty is what always decides.
        policy: Policy,
    },
    /// So many leases are silent at once that the fault is more likely in the network or here: none expires until this is
    /// released.
    ExpiryHeld {
        /// How many, of how many.
        reason: String,
        /// When it ends at the latest, for people.
        until: Timestamp,
    },
    /// Leases expire again.
    ExpiryReleased {
        /// Why.
        reason: String,
    },
    /// An operator brought a resource, in the place of whatever was served under its name.
    ResourceApplied {
        /// Which resource.
        resource: ResourceKey,
        /// What clients are sent.
        message: MessageBytes,
    },
    /// An operator took back a resource.
    ResourceDeleted {
        /// Which resource.
        resource: ResourceKey,
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
            Self::WorkerHealthReported { .. } => "WorkerHealthReported",
            Self::WorkerReweighted { .. } => "WorkerReweighted",
            Self::HostDraining { .. } => "HostDraining",
            Self::HostRemoved { .. } => "HostRemoved",
            Self::PortBusy { .. } => "PortBusy",
            Self::ServiceDeclared { .. } => "ServiceDeclared",
            Self::ServiceRetired { .. } => "ServiceRetired",
            Self::NodeViewSet { .. } => "NodeViewSet",
            Self::NodeViewRemoved { .. } => "NodeViewRemoved",
            Self::PolicyChanged { .. } => "PolicyChanged",
            Self::ExpiryHeld { .. } => "ExpiryHeld",
            Self::ExpiryReleased { .. } => "ExpiryReleased",
            Self::ResourceApplied { .. } => "ResourceApplied",
            Self::ResourceDeleted { .. } => "ResourceDeleted",
        }
    }

    /// Which service this is about, where it is about one.
    #[must_use]
    pub fn service(&self) -> Option<&ServiceName> {
        match self {
            Self::ServiceDeclared { service, .. } | Self::ServiceRetired { service } => Some(service),
            Self::PolicyChanged { service, .. } => service.as_ref(),
            Self::ReplicaStarted { .. }
            | Self::HostReported { .. }
            | Self::WorkerRegistered { .. }
            | Self::WorkerReady { .. }
            | Self::WorkerUnready { .. }
            | Self::WorkerDraining { .. }
            | Self::WorkerDisconnected { .. }
            | Self::WorkerReconnected { .. }
            | Self::WorkerRemoved { .. }
            | Self::UpdateRejected { .. }
            | Self::WorkerHealthReported { .. }
            | Self::WorkerReweighted { .. }
            | Self::HostDraining { .. }
            | Self::HostRemoved { .. }
            | Self::PortBusy { .. }
            | Self::NodeViewSet { .. }
            | Self::NodeViewRemoved { .. }
            | Self::ExpiryHeld { .. }
            | Self::ExpiryReleased { .. }
            | Self::ResourceApplied { .. }
            | Self::ResourceDeleted { .. } => self.worker().map(|key| &key.service),
        }
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
            | Self::WorkerRemoved { worker, .. }
            | Self::WorkerHealthReported { worker, .. }
            | Self::WorkerReweighted { worker, .. } => Some(&worker.key),
            Self::ReplicaStarted { .. }
            | Self::HostReported { .. }
            | Self::UpdateRejected { .. }
            | Self::HostDraining { .. }
            | Self::HostRemoved { .. }
            | Self::PortBusy { .. }
            | Self::ServiceDeclared { .. }
            | Self::ServiceRetired { .. }
            | Self::NodeViewSet { .. }
            | Self::NodeViewRemoved { .. }
            | Self::PolicyChanged { .. }
            | Self::ExpiryHeld { .. }
            | Self::ExpiryReleased { .. }
            | Self::ResourceApplied { .. }
            | Self::ResourceDeleted { .. } => None,
        }
    }
}

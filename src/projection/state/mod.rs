//! What is true at an offset. Cheap to clone: clones share their structure.

mod applied;
mod changes;
mod cluster;
mod host;
mod service;
mod worker;

use std::sync::Arc;

use imbl::{OrdMap, OrdSet};
use serde::{Deserialize, Serialize};

pub use applied::{Applied, Restored};
pub use changes::Changes;
pub(super) use changes::LastChanges;
pub use cluster::{Cluster, Member, Published};
pub use host::{Host, PortKey, Rest, RestCause};
pub use service::Service;
pub use worker::{Link, Opinion, Phase, Served, Worker};

use super::ClusterName;
use super::hooks::{Around, CompiledPolicy, Hook, HookFailure, Hooks};
use crate::events::event::{ClusterPolicy, Endpoint, EndpointAddress, Policy, UpdateRejection};
use crate::events::view::NodeView;
use crate::events::{
    Generation, HostName, Offset, PortName, ReplicaId, ResourceKey, ServiceName, SessionId, Timestamp,
    ViewName, WorkerKey, WorkerRef,
};
use crate::projection::resources::TypeUrl;

/// The state at an offset.
///
/// It holds facts and what follows from them, the offsets of versions among it, so that a start from a saved
/// state and a replay from the first event give the same version strings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    pub(super) offset: Offset,
    pub(super) replica: Option<Replica>,
    pub(super) hosts: OrdMap<HostName, Arc<Host>>,
    pub(super) services: OrdMap<ServiceName, Arc<Service>>,
    pub(super) workers: OrdMap<WorkerKey, Arc<Worker>>,
    pub(super) ports: OrdMap<PortKey, WorkerKey>,
    pub(super) resting: OrdMap<PortKey, Rest>,
    pub(super) addresses: OrdMap<EndpointAddress, WorkerKey>,
    pub(super) sessions: OrdMap<SessionId, OrdSet<WorkerKey>>,
    pub(super) clusters: OrdMap<ClusterName, Arc<Cluster>>,
    pub(super) views: OrdMap<ViewName, Arc<NodeView>>,
    pub(super) views_changed: Offset,
    pub(super) applied: OrdMap<ResourceKey, Arc<Applied>>,
    pub(super) restored: OrdMap<ResourceKey, Restored>,
    pub(super) changed: LastChanges,
    pub(super) rejections: OrdMap<RejectionKey, UpdateRejection>,
    pub(super) anomalies: u64,
    pub(super) policies: OrdMap<Option<ServiceName>, Arc<CompiledPolicy>>,
    pub(super) failures: OrdMap<WorkerKey, Arc<[HookFailed]>>,
    pub(super) around: Around,
    pub(super) expiry_hold: Option<ExpiryHold>,
}

/// A hook that gave no answer for an endpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookFailed {
    /// Which of the worker's ports.
    pub port: PortName,
    /// Which hook.
    pub hook: Hook,
    /// Why.
    pub failure: HookFailure,
}

/// Leases do not expire for a while, because too many were silent at once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExpiryHold {
    /// Where it began.
    pub since: Offset,
    /// How many were silent, of how many.
    pub reason: String,
    /// When it ends at the latest, for people.
    pub until: Timestamp,
}

/// The copy of the control plane that last opened the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Replica {
    /// Which copy.
    pub id: ReplicaId,
    /// The version of the program.
    pub version: String,
    /// Where its start was recorded.
    pub started: Offset,
    /// When.
    pub started_at: Timestamp,
}

/// Who refused what: a node's newest rejection of each type is kept.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RejectionKey {
    /// The node id.
    pub node: String,
    /// The type.
    pub type_url: String,
}

impl State {
    /// A state at the beginning of a log that is folded with these hooks.
    #[must_use]
    pub fn with_hooks(hooks: Arc<dyn Hooks>) -> Self {
        let around = Around { name: hooks.name().to_owned(), hooks: Some(hooks) };
        Self { around, ..Self::default() }
    }

    /// The name of the hooks that it was folded with; empty without any.
    #[must_use]
    pub fn hooks_name(&self) -> &str {
        &self.around.name
    }

    /// The policy of a service, or the one for all.
    #[must_use]
    pub fn policy(&self, service: Option<&ServiceName>) -> Option<&Policy> {
        self.policies.get(&service.cloned()).map(|compiled| compiled.source())
    }

    /// Every policy; the one for all has no service.
    pub fn policies(&self) -> impl Iterator<Item = (Option<&ServiceName>, &Policy)> {
        self.policies.iter().map(|(service, compiled)| (service.as_ref(), compiled.source()))
    }

    /// Which hooks gave no answer for which workers.
    #[must_use]
    pub const fn failures(&self) -> &OrdMap<WorkerKey, Arc<[HookFailed]>> {
        &self.failures
    }

    /// What is published of an endpoint of a live worker, and in which cluster.
    #[must_use]
    pub fn member(&self, worker: &Worker, endpoint: &Endpoint) -> Option<(&ClusterName, &Member)> {
        let endpoints = worker.registration.endpoints.iter();
        let (_, name) = endpoints.zip(&worker.clusters).find(|(known, _)| *known == endpoint)?;
        let (name, cluster) = self.clusters.get_key_value(name)?;
        Some((name, cluster.members.get(&endpoint.address)?))
    }

    /// The last event that was folded.
    #[must_use]
    pub const fn offset(&self) -> Offset {
        self.offset
    }

    /// The copy of the control plane that last opened the log.
    #[must_use]
    pub const fn replica(&self) -> Option<&Replica> {
        self.replica.as_ref()
    }

    /// Every host that reported or has workers.
    #[must_use]
    pub const fn hosts(&self) -> &OrdMap<HostName, Arc<Host>> {
        &self.hosts
    }

    /// Every service that is declared or has live workers.
    #[must_use]
    pub const fn services(&self) -> &OrdMap<ServiceName, Arc<Service>> {
        &self.services
    }

    /// Every live worker.
    #[must_use]
    pub const fn workers(&self) -> &OrdMap<WorkerKey, Arc<Worker>> {
        &self.workers
    }

    /// The live workers of one service, sorted by host and id.
    pub fn workers_of<'a>(
        &'a self,
        service: &'a ServiceName,
    ) -> impl Iterator<Item = (&'a WorkerKey, &'a Arc<Worker>)> {
        let first = WorkerKey::first_of(service.clone());
        self.workers.range(first..).take_while(move |(key, _)| key.service == *service)
    }

    /// The live workers that this connection speaks for, sorted by key.
    pub fn spoken_for_by<'a>(
        &'a self,
        session: &SessionId,
    ) -> impl Iterator<Item = (&'a WorkerKey, &'a Arc<Worker>)> {
        let keys = self.sessions.get(session).into_iter().flatten();
        keys.filter_map(|key| self.workers.get_key_value(key))
    }

    /// The live worker that this names.
    ///
    /// # Errors
    ///
    /// [`Stale`] when there is none, or one with another generation.
    pub fn current(&self, worker: &WorkerRef) -> Result<&Arc<Worker>, Stale> {
        match self.workers.get(&worker.key) {
            None => Err(Stale::Unknown),
            Some(live) if live.generation == worker.generation => Ok(live),
            Some(live) => Err(Stale::Generation { live: live.generation }),
        }
    }

    /// Who holds each port of each host.
    #[must_use]
    pub const fn ports(&self) -> &OrdMap<PortKey, WorkerKey> {
        &self.ports
    }

    /// Ports that were given back, or on which a stranger was found, with when.
    #[must_use]
    pub const fn resting(&self) -> &OrdMap<PortKey, Rest> {
        &self.resting
    }

    /// Who holds each address.
    #[must_use]
    pub const fn addresses(&self) -> &OrdMap<EndpointAddress, WorkerKey> {
        &self.addresses
    }

    /// Who speaks for which workers: connections, and callers that renew.
    #[must_use]
    pub const fn sessions(&self) -> &OrdMap<SessionId, OrdSet<WorkerKey>> {
        &self.sessions
    }

    /// Every published cluster.
    #[must_use]
    pub const fn clusters(&self) -> &OrdMap<ClusterName, Arc<Cluster>> {
        &self.clusters
    }

    /// What groups of nodes see.
    #[must_use]
    pub const fn views(&self) -> &OrdMap<ViewName, Arc<NodeView>> {
        &self.views
    }

    /// Where a view last changed.
    #[must_use]
    pub const fn views_changed(&self) -> Offset {
        self.views_changed
    }

    /// The clusters of a service, sorted by name: that of its own name, and those that begin with it and a colon, which no
    /// name of a service holds.
    pub fn clusters_of(
        &self,
        service: &ServiceName,
    ) -> impl Iterator<Item = (&ClusterName, &Arc<Cluster>)> + use<'_> {
        let own = self.clusters.get_key_value(service.as_str());
        let first = ClusterName::before_ports_of(service);
        let others = self.clusters.range(first.clone()..);
        let others = others.take_while(move |(name, _)| name.as_str().starts_with(first.as_str()));
        own.into_iter().chain(others)
    }

    /// The newest rejection of each node and type.
    #[must_use]
    pub const fn rejections(&self) -> &OrdMap<RejectionKey, UpdateRejection> {
        &self.rejections
    }

    /// How many events made no sense where they stood, and changed nothing.
    #[must_use]
    pub const fn anomalies(&self) -> u64 {
        self.anomalies
    }

    /// Whether leases do not expire now, and why.
    #[must_use]
    pub const fn expiry_hold(&self) -> Option<&ExpiryHold> {
        self.expiry_hold.as_ref()
    }

    /// Every resource that an operator applied. Each is served in the place of what workers make under its name.
    #[must_use]
    pub const fn applied(&self) -> &OrdMap<ResourceKey, Arc<Applied>> {
        &self.applied
    }

    /// Whether workers or their service make a resource of this kind and name, served or hidden.
    #[must_use]
    pub fn workers_make(&self, key: &ResourceKey) -> bool {
        let cluster = self.clusters.get(key.name.as_str());
        cluster.is_some_and(|cluster| cluster.last_change(key.kind).is_some())
    }

    /// Where the resources of this type last changed.
    #[must_use]
    pub const fn changed(&self, type_url: TypeUrl) -> Changes {
        self.changed.of(type_url)
    }

    /// How clients are to use the clusters of a service.
    #[must_use]
    pub fn policy_of(&self, service: &ServiceName) -> ClusterPolicy {
        self.services.get(service).map(|service| service.policy()).unwrap_or_default()
    }

    /// The name of the cluster under which this port of a service is published: the service for its first port,
    /// `service:port` for the others.
    #[must_use]
    pub fn cluster_name(&self, service: &ServiceName, port: &PortName) -> ClusterName {
        match self.services.get(service).and_then(|known| known.ports().next()) {
            Some(first) if first != port => ClusterName::of_port(service, port),
            Some(_) | None => ClusterName::of_service(service),
        }
    }
}

/// Why a reference to a worker is not, or no longer, good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stale {
    /// No such worker lives.
    Unknown,
    /// Another registration has taken its key.
    Generation {
        /// The one that lives.
        live: Generation,
    },
}

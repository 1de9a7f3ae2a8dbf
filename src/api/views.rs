//! What people and scripts are shown: the same for REST, the command line and replay, each a function of one snapshot.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::events::event::{EndpointAddress, HealthSource, Locality};
use crate::events::{ServiceName, WorkerKey};
use crate::projection::ClusterName;
use crate::projection::resources::{Resources, TypeUrl};
use crate::projection::state::{Cluster, Link, Member, Opinion, Phase, Published, State, Worker};
use crate::projection::{HealthStatus, Snapshot, StateDigest, health};

/// A list, and the offset that it shows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listing<T> {
    /// The log offset that the list is from.
    pub offset: u64,
    /// Sorted by name.
    pub items: Vec<T>,
}

/// A live worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerView {
    /// What it serves.
    pub service: String,
    /// What it calls itself.
    pub id: String,
    /// Where it runs.
    pub host: String,
    /// The offset of its registration.
    pub generation: u64,
    /// `registered`, `ready`, `unready`, `draining`, `disconnected` or `awaiting_rejoin`.
    pub state: String,
    /// Why, where there is a reason.
    pub reason: Option<String>,
    /// What those who watch it say, each its newest.
    #[serde(default)]
    pub verdicts: Vec<VerdictView>,
    /// What proxies are told of its first endpoint; nothing when it is not published.
    pub health: Option<HealthStatus>,
    /// Where it serves.
    pub endpoints: Vec<PortView>,
    /// Its share of the load, where one was given.
    pub weight: Option<u32>,
    /// Milliseconds between the loss of its connection and its removal, where its connection is its lease.
    pub disconnect_grace_ms: Option<u32>,
    /// Milliseconds that a renewal lasts, where renewals are its lease.
    pub ttl_ms: Option<u32>,
    /// Its labels.
    pub metadata: BTreeMap<String, String>,
    /// Its process id, where it is known.
    pub pid: Option<u32>,
    /// When it was registered, in RFC 3339.
    pub registered_at: String,
}

/// What one of those who watch a worker says of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerdictView {
    /// `worker`, `process`, `memory`, `utilization` or `custom:NAME`.
    pub source: String,
    /// `healthy`, `degraded` or `unhealthy`.
    pub verdict: String,
    /// In the source's words; of a worker that is well, its status.
    pub reason: String,
}

/// One port of a worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortView {
    /// Its name.
    pub port: String,
    /// `host:port`, with brackets around IPv6, or `unix:/path`.
    pub address: String,
}

/// A published endpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndpointView {
    /// Its service.
    pub service: String,
    /// Which of the service's ports.
    pub port: String,
    /// The cluster that it is in.
    pub cluster: String,
    /// `host:port`, with brackets around IPv6, or `unix:/path`.
    pub address: String,
    /// The IP address alone, without brackets; absent for a Unix domain socket.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The port number alone; absent for a Unix domain socket.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port_number: Option<u16>,
    /// The path of a Unix domain socket, alone. Clients of gRPC are not told of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// What proxies are told.
    pub health: HealthStatus,
    /// Whose it is.
    pub worker: String,
    /// 0 is used first.
    pub priority: u32,
    /// Its share of the load, where one was given.
    pub weight: Option<u32>,
    /// Where it stands.
    pub locality: Locality,
}

/// One resource as clients are sent it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VersionView {
    /// `CDS`, `EDS`, `LDS` or `RDS`.
    pub r#type: String,
    /// The resource's name; `*` is the whole type.
    pub name: String,
    /// `<offset>-<digest>`.
    pub version: String,
}

/// The whole at one offset: two that agree on it agree on everything.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateView {
    /// The last event that was folded.
    pub offset: u64,
    /// The BLAKE3 hash of the state.
    pub state_digest: String,
    /// How many events made no sense where they stood.
    pub anomalies: u64,
    /// Every version that clients are sent.
    pub versions: Vec<VersionView>,
}

impl<T> Listing<T> {
    pub(super) fn new(snapshot: &Snapshot, items: impl Iterator<Item = T>) -> Self {
        Self { offset: snapshot.offset().get(), items: items.collect() }
    }
}

/// Every live worker, or those of one service.
#[must_use]
pub fn workers(snapshot: &Snapshot, service: Option<&ServiceName>) -> Listing<WorkerView> {
    let all = snapshot.state().workers().iter();
    let wanted = all.filter(|(key, _)| service.is_none_or(|wanted| key.service == *wanted));
    Listing::new(snapshot, wanted.map(|(key, worker)| worker_view(snapshot.state(), key, worker)))
}

fn worker_view(state: &State, key: &WorkerKey, worker: &Worker) -> WorkerView {
    let registration = &worker.registration;
    // What is published is what the hooks have decided; without an endpoint nobody asks them.
    let health = match registration.endpoints.first() {
        Some(first) => {
            state.member(worker, first).and_then(|(_, member)| Some(member.published.as_ref()?.health))
        }
        None => health(worker, &state.policy_of(&key.service)),
    };
    let (state, reason) = condition(worker);
    WorkerView {
        service: key.service.to_string(),
        id: key.id.to_string(),
        host: key.host.to_string(),
        generation: worker.generation.offset().get(),
        state: state.to_owned(),
        reason,
        verdicts: worker.verdicts.iter().map(verdict_view).collect(),
        health,
        endpoints: registration
            .endpoints
            .iter()
            .map(|endpoint| PortView {
                port: endpoint.port.to_string(),
                address: endpoint.address.to_string(),
            })
            .collect(),
        weight: worker.weight.map(std::num::NonZeroU32::get),
        disconnect_grace_ms: registration.lease.disconnect_grace_ms(),
        ttl_ms: registration.lease.ttl_ms(),
        metadata: registration.metadata.clone(),
        pid: registration.process.as_ref().map(|process| process.pid),
        registered_at: worker.registered_at.to_string(),
    }
}

fn verdict_view((source, opinion): (&HealthSource, &Opinion)) -> VerdictView {
    VerdictView {
        source: source.to_string(),
        verdict: opinion.verdict.to_string(),
        reason: opinion.reason.clone(),
    }
}

/// Every state of a worker, as [`WorkerView::state`] names it.
pub(super) const CONDITIONS: [&str; 6] =
    ["registered", "ready", "unready", "draining", "disconnected", "awaiting_rejoin"];

/// The state of a worker, and why.
pub(super) fn condition(worker: &Worker) -> (&'static str, Option<String>) {
    match (&worker.phase, &worker.link) {
        (Phase::Draining { reason, .. }, _) => ("draining", Some(reason.clone())),
        (_, Link::Disconnected { .. }) => ("disconnected", None),
        (_, Link::AwaitingRejoin) => ("awaiting_rejoin", None),
        (Phase::Unready { reason, .. }, Link::Connected { .. }) => ("unready", Some(reason.clone())),
        (Phase::Registered, Link::Connected { .. }) => ("registered", None),
        (Phase::Ready, Link::Connected { .. }) => ("ready", None),
    }
}

/// Every published endpoint, or those of one service.
#[must_use]
pub fn endpoints(snapshot: &Snapshot, service: Option<&ServiceName>) -> Listing<EndpointView> {
    let all = snapshot.state().clusters().iter();
    let wanted = all.filter(|(_, cluster)| service.is_none_or(|wanted| cluster.service == *wanted));
    Listing::new(snapshot, wanted.flat_map(|(name, cluster)| endpoint_views(name, cluster)))
}

fn endpoint_views<'a>(
    name: &'a ClusterName,
    cluster: &'a Cluster,
) -> impl Iterator<Item = EndpointView> + 'a {
    cluster.members.iter().filter_map(move |(address, member)| {
        let published = member.published.as_ref()?;
        Some(endpoint_view(name, cluster, address, published, member))
    })
}

fn endpoint_view(
    name: &ClusterName,
    cluster: &Cluster,
    address: &EndpointAddress,
    published: &Published,
    member: &Member,
) -> EndpointView {
    let (socket, path) = match address {
        EndpointAddress::Ip(socket) => (Some(socket), None),
        EndpointAddress::Unix(path) => (None, Some(path.to_string())),
    };
    EndpointView {
        service: cluster.service.to_string(),
        port: member.port.to_string(),
        cluster: name.to_string(),
        address: address.to_string(),
        host: socket.map(|socket| socket.ip().to_string()),
        port_number: socket.map(SocketAddr::port),
        path,
        health: published.health,
        worker: member.worker.to_string(),
        priority: published.priority,
        weight: published.weight.map(std::num::NonZeroU32::get),
        locality: published.locality.clone(),
    }
}

/// The digest of the state, and every version.
#[must_use]
pub fn state(snapshot: &Snapshot) -> StateView {
    StateView {
        offset: snapshot.offset().get(),
        state_digest: StateDigest::of(snapshot.state()).to_string(),
        anomalies: snapshot.state().anomalies(),
        versions: TypeUrl::ALL
            .into_iter()
            .flat_map(|type_url| versions(snapshot.resources(), type_url))
            .collect(),
    }
}

fn versions(resources: &Resources, type_url: TypeUrl) -> impl Iterator<Item = VersionView> + '_ {
    let set = resources.of(type_url);
    let view = move |name: &str, version: crate::projection::resources::Version| VersionView {
        r#type: type_url.to_string(),
        name: name.to_owned(),
        version: version.to_string(),
    };
    let whole = view("*", set.version());
    std::iter::once(whole)
        .chain(set.iter().map(move |resource| view(resource.name.as_str(), resource.version)))
}

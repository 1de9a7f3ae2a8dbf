//! Keeps clusters in step with workers and declarations.
//!
//! An offset of a version moves only when what clients are told has changed (xds-rules 2), and it is decided here,
//! event by event, so that it does not depend on when resources are rendered.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::collections::{self, is_collected};
use crate::events::event::{ClusterPolicy, EndpointAddress, Protocol};
use crate::events::{PortName, ResourceKey, ResourceKind, ServiceName, WorkerKey};
use crate::projection::ClusterName;
use crate::projection::hooks::decide;
use crate::projection::render::WAYS;
use crate::projection::resources::TypeUrl;
use crate::projection::state::{Changes, Cluster, HookFailed, Member, Published, State, Worker};

/// Brings the worker's endpoints up to date where they belong, and takes them from where they did.
pub(super) fn publish(state: &mut State, key: &WorkerKey, worker: &mut Worker) {
    for name in place(state, key, worker) {
        sweep(state, &name);
    }
}

/// The same for every worker of a service, whose clusters come, change and go with its declaration.
pub(super) fn publish_service(state: &mut State, service: &ServiceName) {
    let workers: Vec<(WorkerKey, Arc<Worker>)> =
        state.workers_of(service).map(|(key, worker)| (key.clone(), Arc::clone(worker))).collect();
    for (key, mut worker) in workers {
        // Which clusters have other ports now is not asked: all of the service are looked at below.
        place(state, &key, Arc::make_mut(&mut worker));
        state.workers.insert(key, worker);
    }
    for port in declared_ports(state, service) {
        let name = state.cluster_name(service, &port);
        found(state, &name, service, &port);
    }
    let clusters: Vec<ClusterName> = state.clusters_of(service).map(|(name, _)| name.clone()).collect();
    for name in clusters {
        sweep(state, &name);
    }
}

/// Takes the worker's endpoints out of their clusters.
pub(super) fn withdraw(state: &mut State, key: &WorkerKey, worker: &Worker) {
    state.failures.remove(key);
    for (endpoint, name) in worker.registration.endpoints.iter().zip(&worker.clusters) {
        detach(state, name, &endpoint.address);
        sweep(state, name);
    }
}

fn declared_ports(state: &State, service: &ServiceName) -> Vec<PortName> {
    let service = state.services.get(service);
    let ports = service.iter().flat_map(|service| service.declared_ports());
    ports.map(|port| port.name.clone()).collect()
}

/// Puts every endpoint where it belongs now; gives the clusters that it left or that have endpoints of a new port.
fn place(state: &mut State, key: &WorkerKey, worker: &mut Worker) -> Vec<ClusterName> {
    let at_host = state.hosts.get(&key.host).map(|host| host.locality()).unwrap_or_default();
    let locality = worker.registration.locality.clone().unwrap_or(at_host);
    let (mut names, mut touched, mut failed) = (Vec::new(), Vec::new(), Vec::new());
    let mut before = worker.clusters.iter();
    for endpoint in &worker.registration.endpoints {
        let decision = decide(state, key, worker, &locality, endpoint);
        let name = decision.cluster;
        if let Some(before) = before.next().filter(|before| **before != name) {
            detach(state, before, &endpoint.address);
            touched.push(before.clone());
        }
        found(state, &name, &key.service, &endpoint.port);
        let published = decision.health.map(|health| Published {
            priority: worker.registration.priority,
            locality: locality.clone(),
            health,
            weight: worker.weight,
        });
        let (worker, port, changed) = (key.clone(), endpoint.port.clone(), state.offset);
        let member = Member { worker, port, published, changed };
        if attach(state, &name, &endpoint.address, member) == Joined::AsFirstOfItsPort {
            touched.push(name.clone());
        }
        let failures = decision.failures.into_iter();
        failed.extend(failures.map(|(hook, failure)| HookFailed {
            port: endpoint.port.clone(),
            hook,
            failure,
        }));
        names.push(name);
    }
    worker.clusters = names;
    note_failures(state, key, failed);
    touched
}

fn note_failures(state: &mut State, key: &WorkerKey, failed: Vec<HookFailed>) {
    if failed.is_empty() {
        state.failures.remove(key);
    } else if state.failures.get(key).is_none_or(|known| **known != *failed) {
        state.failures.insert(key.clone(), failed.into());
    }
}

/// Makes the cluster, unless it is there, for endpoints of this port.
fn found(state: &mut State, name: &ClusterName, service: &ServiceName, port: &PortName) {
    if state.clusters.contains_key(name.as_str()) {
        return;
    }
    let offset = state.offset;
    let port = declared_port(state, service, name).unwrap_or_else(|| port.clone());
    let protocol = protocol(state, service, &port);
    let policy = state.policy_of(service);
    let cluster = Cluster {
        service: service.clone(),
        ports: BTreeMap::new(),
        protocol,
        policy,
        changed: offset,
        routed: is_routed(protocol).then_some(offset),
        endpoints_changed: Changes::at(offset),
        collection: is_collected(&policy).then_some(offset),
        departed: 0,
        groups_changed: offset,
        members: imbl::OrdMap::new(),
    };
    tell_all(state, name, &cluster);
    state.clusters.insert(name.clone(), Arc::new(cluster));
}

fn protocol(state: &State, service: &ServiceName, port: &PortName) -> Protocol {
    let declared = state.services.get(service).and_then(|service| service.declared_port(port));
    declared.map(|port| port.protocol).unwrap_or_default()
}

/// Whether proxyless gRPC is led to clusters that speak this.
const fn is_routed(protocol: Protocol) -> bool {
    match protocol {
        Protocol::Http1 | Protocol::Http2 => true,
        Protocol::Tcp => false,
    }
}

/// How an endpoint came into a cluster.
#[derive(PartialEq, Eq)]
enum Joined {
    /// The port that decides over the cluster's attributes may be another now.
    AsFirstOfItsPort,
    /// Nothing of the kind.
    AsOneMore,
}

fn attach(state: &mut State, name: &ClusterName, address: &EndpointAddress, mut member: Member) -> Joined {
    let offset = state.offset;
    let Some(shared) = state.clusters.get_mut(name.as_str()) else { return Joined::AsOneMore };
    let before = shared.members.get(address);
    let was = before.and_then(|member| member.published.clone());
    let is_news = was != member.published;
    if let Some(before) = before.filter(|_| !is_news) {
        member.changed = before.changed;
    }
    if before == Some(&member) {
        return Joined::AsOneMore;
    }
    let is_new = before.is_none();
    let grouped = collections::groups(shared);
    let cluster = Arc::make_mut(shared);
    let of_port = cluster.ports.entry(member.port.clone()).or_default();
    *of_port += u32::from(is_new);
    let joined = if is_new && *of_port == 1 { Joined::AsFirstOfItsPort } else { Joined::AsOneMore };
    cluster.members.insert(address.clone(), member);
    if is_news {
        cluster.endpoints_changed.touch(address, offset);
        if cluster.collection.is_some() {
            collections::note(cluster, grouped.as_ref(), was.as_ref(), offset);
            tell_of_collections(state, name);
        }
        tell_of_endpoint(state, name, address);
    }
    joined
}

fn detach(state: &mut State, name: &ClusterName, address: &EndpointAddress) {
    let offset = state.offset;
    let Some(cluster) = state.clusters.get_mut(name.as_str()).map(Arc::make_mut) else { return };
    let grouped = collections::groups(cluster);
    let Some(left) = cluster.members.remove(address) else { return };
    if let Some(of_port) = cluster.ports.get_mut(&left.port) {
        *of_port = of_port.saturating_sub(1);
    }
    cluster.ports.retain(|_, count| *count > 0);
    if left.published.is_some() {
        cluster.endpoints_changed.touch(address, offset);
        if cluster.collection.is_some() {
            collections::note(cluster, grouped.as_ref(), left.published.as_ref(), offset);
            tell_of_collections(state, name);
        }
        tell_of_endpoint(state, name, address);
    }
}

/// Gives the cluster the attributes that its service has by now. Where endpoints of several ports are in it, the port
/// that is declared to be published there counts, or else the first by name.
fn settle(state: &mut State, name: &ClusterName) {
    let offset = state.offset;
    let Some(cluster) = state.clusters.get(name.as_str()).cloned() else { return };
    let service = &cluster.service;
    let port = declared_port(state, service, name).or_else(|| cluster.ports.keys().next().cloned());
    let policy = state.policy_of(service);
    let protocol = port.map_or(cluster.protocol, |port| protocol(state, service, &port));
    let mut next = Cluster { protocol, policy, ..cluster.as_ref().clone() };
    if attributes(&next) != attributes(&cluster) {
        next.changed = offset;
        tell(state, ResourceKind::Cluster, name);
    }
    let renewed = next.changed == offset || cluster.collection.is_none();
    match is_collected(&policy) {
        true if renewed => collections::begin(&mut next, offset),
        true => {}
        false => next.collection = None,
    }
    if next.collection != cluster.collection {
        tell_of_collections(state, name);
    }
    if is_routed(protocol) != cluster.routed.is_some() {
        next.routed = is_routed(protocol).then_some(offset);
        WAYS.into_iter().for_each(|kind| tell(state, kind, name));
    }
    if next != *cluster {
        state.clusters.insert(name.clone(), Arc::new(next));
    }
}

/// What of a cluster is in its bytes beside its name.
fn attributes(cluster: &Cluster) -> impl PartialEq + use<> {
    let ClusterPolicy { lb, connect_timeout_ms, panic_threshold, locality_weighting, .. } = cluster.policy;
    (cluster.protocol == Protocol::Http2, lb, connect_timeout_ms, panic_threshold, locality_weighting)
}

/// The declared port whose own cluster this is.
fn declared_port(state: &State, service: &ServiceName, name: &ClusterName) -> Option<PortName> {
    let ports = declared_ports(state, service);
    ports.into_iter().find(|port| state.cluster_name(service, port) == *name)
}

/// Ends a cluster that nobody is in any more, and that is not declared; another gets the attributes that it has left.
fn sweep(state: &mut State, name: &ClusterName) {
    let Some(cluster) = state.clusters.get(name.as_str()).cloned() else { return };
    if !cluster.members.is_empty() || declared_port(state, &cluster.service, name).is_some() {
        return settle(state, name);
    }
    tell_all(state, name, &cluster);
    state.clusters.remove(name.as_str());
    for kind in ResourceKind::ALL {
        state.restored.remove(&key(kind, name));
    }
}

/// A cluster came or went, with all that is made of it.
fn tell_all(state: &mut State, name: &ClusterName, cluster: &Cluster) {
    let always = [ResourceKind::Cluster, ResourceKind::ClusterLoadAssignment];
    let ways = WAYS.into_iter().filter(|_| cluster.routed.is_some());
    always.into_iter().chain(ways).for_each(|kind| tell(state, kind, name));
    if cluster.collection.is_some() {
        tell_of_collections(state, name);
    }
}

/// Something that is made of workers changed, of which clients are told unless an operator's own resource hides it.
fn tell(state: &mut State, kind: ResourceKind, name: &ClusterName) {
    if !state.applied.contains_key(&key(kind, name)) {
        state.changed.advance(kind.into(), Changes::at(state.offset));
    }
}

/// The same of an endpoint, which not every client can dial.
fn tell_of_endpoint(state: &mut State, name: &ClusterName, address: &EndpointAddress) {
    if !state.applied.contains_key(&key(ResourceKind::ClusterLoadAssignment, name)) {
        let mut changes = Changes::default();
        changes.touch(address, state.offset);
        state.changed.advance(TypeUrl::ClusterLoadAssignment, changes);
    }
}

/// As [`tell`], of the endpoints one by one: an assignment that an operator applied hides them too.
fn tell_of_collections(state: &mut State, name: &ClusterName) {
    if !state.applied.contains_key(&key(ResourceKind::ClusterLoadAssignment, name)) {
        state.changed.advance(TypeUrl::LbEndpoint, Changes::at(state.offset));
    }
}

fn key(kind: ResourceKind, name: &ClusterName) -> ResourceKey {
    ResourceKey { kind, name: name.as_str().to_owned() }
}

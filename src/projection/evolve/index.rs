//! Keeps what follows from the workers in step with them: ports, addresses, services, clusters.
//!
//! An offset of a version moves only when what clients are told has changed (xds-rules 2), and it is decided here,
//! event by event, so that it does not depend on when resources are rendered.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Anomaly;
use crate::events::event::{Endpoint, EndpointAddress, HostReport, Locality, Registration};
use crate::events::{Envelope, HostName, Offset, PortName, ServiceName, WorkerKey};
use crate::projection::publication::health;
use crate::projection::state::{
    Cluster, ClusterName, Member, PortKey, Published, Rest, RestCause, Service, State, Worker,
};

/// Whether no other worker holds any of these addresses or ports, and none is given twice.
pub(super) fn is_free(state: &State, key: &WorkerKey, registration: &Registration) -> bool {
    let mut seen = BTreeSet::new();
    registration.endpoints.iter().all(|endpoint| {
        seen.insert(endpoint.address.clone())
            && !state.addresses.contains_key(&endpoint.address)
            && port_key(key, endpoint).is_none_or(|port| !state.ports.contains_key(&port))
    })
}

/// Takes in a worker whose key and addresses are free.
pub(super) fn insert(state: &mut State, key: &WorkerKey, worker: Worker) {
    let mut host = state.hosts.get(&key.host).map(|host| host.as_ref().clone()).unwrap_or_default();
    host.workers.insert(key.clone());
    learn_ports(state, &key.service, &worker.registration.endpoints);
    for endpoint in &worker.registration.endpoints {
        if let Some(port) = port_key(key, endpoint) {
            host.next_port = port.number.saturating_add(1);
            state.resting.remove(&port);
            state.ports.insert(port, key.clone());
        }
        state.addresses.insert(endpoint.address.clone(), key.clone());
    }
    let locality = host.locality();
    state.hosts.insert(key.host.clone(), Arc::new(host));
    publish(state, key, &worker, &locality);
    settle(state, key, worker);
}

/// Puts a new version of a live worker in the place of the old one.
pub(super) fn update(state: &mut State, key: &WorkerKey, worker: Worker) {
    let locality = state.hosts.get(&key.host).map(|host| host.locality()).unwrap_or_default();
    publish(state, key, &worker, &locality);
    settle(state, key, worker);
}

/// Takes a live worker out, and frees what it held.
pub(super) fn remove(state: &mut State, key: &WorkerKey, worker: &Worker, envelope: &Envelope) {
    state.workers.remove(key);
    forget_in_session(state, key, worker);
    for endpoint in &worker.registration.endpoints {
        let name = state.cluster_name(&key.service, &endpoint.port);
        leave_cluster(state, &name, &endpoint.address);
        state.addresses.remove(&endpoint.address);
        if let Some(port) = port_key(key, endpoint) {
            state.ports.remove(&port);
            let rest = Rest { since: envelope.recorded_at, cause: RestCause::Released };
            state.resting.insert(port, rest);
        }
    }
    forget_in_host(state, key);
    forget_in_service(state, &key.service);
}

/// Takes in what a host says of itself; its workers move with it.
pub(super) fn report_host(state: &mut State, name: &HostName, report: &HostReport) {
    let mut host = state.hosts.get(name).map(|host| host.as_ref().clone()).unwrap_or_default();
    host.report = Some(report.clone());
    let workers = host.workers.clone();
    state.hosts.insert(name.clone(), Arc::new(host));
    for key in &workers {
        if let Some(worker) = state.workers.get(key).cloned() {
            publish(state, key, &worker, &report.locality);
        }
    }
}

/// No new workers are admitted here from now on.
pub(super) fn drain_host(state: &mut State, name: &HostName, reason: &str) {
    let mut host = state.hosts.get(name).map(|host| host.as_ref().clone()).unwrap_or_default();
    host.draining = Some(reason.to_owned());
    state.hosts.insert(name.clone(), Arc::new(host));
}

/// Forgets a host on which nobody lives, and the rest of its ports with it.
pub(super) fn remove_host(state: &mut State, name: &HostName) -> Result<(), Anomaly> {
    if state.hosts.get(name).is_some_and(|host| !host.workers.is_empty()) {
        return Err(Anomaly::HostInUse);
    }
    state.hosts.remove(name);
    let first = PortKey { host: name.clone(), number: 0 };
    let last = PortKey { host: name.clone(), number: u16::MAX };
    let rested: Vec<PortKey> = state.resting.range(first..=last).map(|(key, _)| key.clone()).collect();
    for key in &rested {
        state.resting.remove(key);
    }
    Ok(())
}

fn port_key(key: &WorkerKey, endpoint: &Endpoint) -> Option<PortKey> {
    match endpoint.address {
        EndpointAddress::Ip(address) => Some(PortKey { host: key.host.clone(), number: address.port() }),
    }
}

fn learn_ports(state: &mut State, name: &ServiceName, endpoints: &[Endpoint]) {
    let known = state.services.get(name);
    let mut service =
        known.map_or_else(|| Service { ports: Vec::new(), workers: 0 }, |service| service.as_ref().clone());
    service.workers += 1;
    for endpoint in endpoints {
        if !service.ports.contains(&endpoint.port) {
            service.ports.push(endpoint.port.clone());
        }
    }
    state.services.insert(name.clone(), Arc::new(service));
}

fn forget_in_service(state: &mut State, name: &ServiceName) {
    let Some(service) = state.services.get_mut(name).map(Arc::make_mut) else { return };
    service.workers = service.workers.saturating_sub(1);
    if service.workers == 0 {
        state.services.remove(name);
    }
}

/// Makes this the worker that lives under its key.
fn settle(state: &mut State, key: &WorkerKey, worker: Worker) {
    if let Some(before) = state.workers.get(key).cloned() {
        forget_in_session(state, key, &before);
    }
    if let Some(session) = worker.session() {
        state.sessions.entry(session.clone()).or_default().insert(key.clone());
    }
    state.workers.insert(key.clone(), Arc::new(worker));
}

fn forget_in_session(state: &mut State, key: &WorkerKey, worker: &Worker) {
    let Some(session) = worker.session() else { return };
    let Some(workers) = state.sessions.get_mut(session) else { return };
    workers.remove(key);
    if workers.is_empty() {
        state.sessions.remove(session);
    }
}

fn forget_in_host(state: &mut State, key: &WorkerKey) {
    if let Some(host) = state.hosts.get_mut(&key.host).map(Arc::make_mut) {
        host.workers.remove(key);
    }
}

/// Brings the worker's members up to date in every cluster that it has an endpoint for.
fn publish(state: &mut State, key: &WorkerKey, worker: &Worker, host_locality: &Locality) {
    let registration = &worker.registration;
    let published = health(worker).map(|health| Published {
        priority: registration.priority,
        locality: registration.locality.as_ref().unwrap_or(host_locality).clone(),
        health,
        weight: worker.weight,
    });
    for endpoint in &registration.endpoints {
        let name = state.cluster_name(&key.service, &endpoint.port);
        let member = Member { worker: key.clone(), published: published.clone() };
        join_cluster(state, name, &key.service, &endpoint.port, &endpoint.address, member);
    }
}

fn join_cluster(
    state: &mut State,
    name: ClusterName,
    service: &ServiceName,
    port: &PortName,
    address: &EndpointAddress,
    member: Member,
) {
    let offset = state.offset;
    let shared = state.clusters.entry(name).or_insert_with(|| {
        state.clusters_changed = offset;
        state.endpoints_changed = offset;
        Arc::new(new_cluster(service, port, offset))
    });
    let before = shared.members.get(address);
    if before == Some(&member) {
        return;
    }
    let is_news = before.and_then(|member| member.published.as_ref()) != member.published.as_ref();
    let cluster = Arc::make_mut(shared);
    cluster.members.insert(address.clone(), member);
    if is_news {
        cluster.endpoints_changed = offset;
        state.endpoints_changed = offset;
    }
}

fn new_cluster(service: &ServiceName, port: &PortName, offset: Offset) -> Cluster {
    Cluster {
        service: service.clone(),
        port: port.clone(),
        changed: offset,
        endpoints_changed: offset,
        members: imbl::OrdMap::new(),
    }
}

fn leave_cluster(state: &mut State, name: &ClusterName, address: &EndpointAddress) {
    let offset = state.offset;
    let Some(cluster) = state.clusters.get_mut(name.as_str()).map(Arc::make_mut) else { return };
    let left = cluster.members.remove(address);
    if left.is_some_and(|member| member.published.is_some()) {
        cluster.endpoints_changed = offset;
        state.endpoints_changed = offset;
    }
    if cluster.members.is_empty() {
        state.clusters.remove(name.as_str());
        state.clusters_changed = offset;
        state.endpoints_changed = offset;
    }
}

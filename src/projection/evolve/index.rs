//! Keeps what follows from the workers in step with them: ports, addresses, hosts, services, sessions.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Anomaly;
use super::publish::{publish, publish_service, withdraw};
use crate::events::event::{Endpoint, HostReport, Policy, Registration, ServiceSpec};
use crate::events::{Envelope, HostName, ServiceName, WorkerKey};
use crate::projection::hooks::CompiledPolicy;
use crate::projection::state::{PortKey, Rest, RestCause, State, Worker};

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
    state.hosts.insert(key.host.clone(), Arc::new(host));
    update(state, key, worker);
}

/// Puts a new version of a live worker in the place of the old one.
pub(super) fn update(state: &mut State, key: &WorkerKey, mut worker: Worker) {
    publish(state, key, &mut worker);
    settle(state, key, worker);
}

/// Takes a live worker out, and frees what it held.
pub(super) fn remove(state: &mut State, key: &WorkerKey, worker: &Worker, envelope: &Envelope) {
    state.workers.remove(key);
    forget_in_session(state, key, worker);
    withdraw(state, key, worker);
    for endpoint in &worker.registration.endpoints {
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
        if let Some(worker) = state.workers.get(key) {
            update(state, key, Worker::clone(worker));
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

/// Takes in what a service is declared to be; its workers and clusters follow.
pub(super) fn declare_service(state: &mut State, name: &ServiceName, spec: &ServiceSpec) {
    let service = state.services.entry(name.clone()).or_default();
    Arc::make_mut(service).spec = Some(Arc::new(spec.clone()));
    publish_service(state, name);
}

/// Forgets a service of which nobody lives, and its clusters with it.
pub(super) fn retire_service(state: &mut State, name: &ServiceName) -> Result<(), Anomaly> {
    if state.services.get(name).is_some_and(|service| service.workers > 0) {
        return Err(Anomaly::ServiceInUse);
    }
    state.services.remove(name);
    publish_service(state, name);
    Ok(())
}

/// Takes in what decides over the endpoints of a service, or of all; they are decided over anew.
pub(super) fn change_policy(state: &mut State, service: Option<&ServiceName>, policy: &Policy) {
    if policy.is_empty() {
        state.policies.remove(&service.cloned());
    } else {
        state.policies.insert(service.cloned(), Arc::new(CompiledPolicy::new(policy.clone())));
    }
    let all = || state.services.keys().cloned().collect();
    let concerned: Vec<ServiceName> = service.map_or_else(all, |service| vec![service.clone()]);
    concerned.iter().for_each(|service| publish_service(state, service));
}

fn port_key(key: &WorkerKey, endpoint: &Endpoint) -> Option<PortKey> {
    endpoint.address.port().map(|number| PortKey { host: key.host.clone(), number })
}

fn learn_ports(state: &mut State, name: &ServiceName, endpoints: &[Endpoint]) {
    let service = Arc::make_mut(state.services.entry(name.clone()).or_default());
    service.workers += 1;
    for endpoint in endpoints {
        if !service.known_ports.contains(&endpoint.port) {
            service.known_ports.push(endpoint.port.clone());
        }
    }
}

fn forget_in_service(state: &mut State, name: &ServiceName) {
    let Some(service) = state.services.get_mut(name).map(Arc::make_mut) else { return };
    service.workers = service.workers.saturating_sub(1);
    if service.workers == 0 {
        service.known_ports.clear();
        if service.spec.is_none() {
            state.services.remove(name);
        }
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

//! What is asked of and about services.

use std::collections::BTreeSet;

use super::{Event, Rejection, State, check, check_drain, reference, unless};
use crate::command::ports::PORTS_MAX;
use crate::events::ServiceName;
use crate::events::event::{ClusterPolicy, Policy, RemovalCause, ServiceSpec};
use crate::projection::ClusterName;
use crate::projection::hooks::CompiledPolicy;

/// The longest time that a connection may take, in milliseconds: a minute, after which no request waits any more.
const CONNECT_TIMEOUT_MS_MAX: u32 = 60_000;

/// Takes in what a service is.
pub(super) fn declare(
    state: &State,
    service: &ServiceName,
    spec: &ServiceSpec,
) -> Result<Vec<Event>, Rejection> {
    check_ports(service, spec)?;
    check_policy(&spec.cluster)?;
    check_drain(spec.drain_ms.unwrap_or_default())?;
    let known = state.services().get(service).and_then(|known| known.spec.as_deref());
    Ok(unless(known == Some(spec), || Event::ServiceDeclared {
        service: service.clone(),
        spec: spec.clone(),
    }))
}

/// Removes every worker of the service, then the service. One that is not known is over already.
pub(super) fn retire(state: &State, service: &ServiceName) -> Vec<Event> {
    if !state.services().contains_key(service) {
        return Vec::new();
    }
    let removed = state.workers_of(service).map(|(key, worker)| Event::WorkerRemoved {
        worker: reference(key, worker),
        cause: RemovalCause::ServiceRetired,
    });
    removed.chain([Event::ServiceRetired { service: service.clone() }]).collect()
}

/// Takes in what decides over the endpoints of a service, or of all.
pub(super) fn set_policy(
    state: &State,
    service: Option<&ServiceName>,
    policy: &Policy,
) -> Result<Vec<Event>, Rejection> {
    CompiledPolicy::check(policy).map_err(|fault| {
        Rejection::invalid(fault.to_string(), "docs/policies.md has what hooks can look at")
    })?;
    let already = state.policy(service).map_or(policy.is_empty(), |known| known == policy);
    Ok(unless(already, || Event::PolicyChanged { service: service.cloned(), policy: policy.clone() }))
}

fn check_ports(service: &ServiceName, spec: &ServiceSpec) -> Result<(), Rejection> {
    if spec.ports.len() > PORTS_MAX {
        return Err(Rejection::invalid(
            format!("{} ports are declared, at most {PORTS_MAX} are allowed", spec.ports.len()),
            "declare fewer, or more than one service",
        ));
    }
    let (mut names, mut numbers) = (BTreeSet::new(), BTreeSet::new());
    for port in &spec.ports {
        check::cluster_name(&ClusterName::of_port(service, &port.name))?;
        if !names.insert(&port.name) {
            return Err(Rejection::invalid(
                format!("the port {} is declared twice", port.name),
                "give each port its own name",
            ));
        }
        if let Some(number) = port.number.filter(|number| !numbers.insert(*number)) {
            return Err(Rejection::invalid(
                format!("two ports have the number {number}"),
                "give each port its own number, or none to let the control plane choose",
            ));
        }
    }
    Ok(())
}

fn check_policy(policy: &ClusterPolicy) -> Result<(), Rejection> {
    if let Some(timeout_ms) = policy.connect_timeout_ms.filter(|ms| ms.get() > CONNECT_TIMEOUT_MS_MAX) {
        return Err(Rejection::invalid(
            format!("connect_timeout_ms: {timeout_ms} is more than {CONNECT_TIMEOUT_MS_MAX}"),
            "give a minute at most",
        ));
    }
    if let Some(threshold) = policy.panic_threshold.filter(|threshold| *threshold > 100) {
        return Err(Rejection::invalid(
            format!("panic_threshold: {threshold} is not a percentage"),
            "give 0 to 100; 0 turns it off, none leaves it to the client (Envoy: 50)",
        ));
    }
    Ok(())
}

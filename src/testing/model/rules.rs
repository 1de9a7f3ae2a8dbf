//! What the policies of the generators say, in plain code.

use crate::events::event::{Endpoint, Locality, Policy, Verdict};
use crate::events::{Envelope, Event, ServiceName};

use super::lives::{Health, Life};

/// The policy of a service, or the one for all, as it was set last.
pub(super) fn policy(events: &[Envelope], name: Option<&ServiceName>) -> Policy {
    let last = events.iter().rev().find_map(|envelope| match &envelope.event {
        Event::PolicyChanged { service, policy } if service.as_ref() == name => Some(policy.clone()),
        _ => None,
    });
    last.unwrap_or_default()
}

/// The hooks that hold for a service: each its own, or the one for all.
pub(super) fn hooks(events: &[Envelope], service: &ServiceName) -> Policy {
    let (own, for_all) = (policy(events, Some(service)), policy(events, None));
    Policy {
        include: own.include.or(for_all.include),
        cluster: own.cluster.or(for_all.cluster),
        health: own.health.or(for_all.health),
    }
}

/// Whether an endpoint is published at all. The second rule fails, as nobody has labels; the third was never taken.
pub(super) fn includes(hooks: &Policy, life: &Life<'_>) -> bool {
    hooks.include.as_deref() != Some("worker.host != 'h2'") || life.key.host.as_str() != "h2"
}

/// In which cluster it is: a rule that names one of another service, or none, fails.
pub(super) fn cluster(hooks: &Policy, life: &Life<'_>, default: String) -> String {
    match hooks.cluster.as_deref() {
        Some("worker.id == '1' ? default + ':canary' : default") if life.key.id.as_str() == "1" => {
            format!("{default}:canary")
        }
        Some("worker.service") => life.key.service.to_string(),
        Some("'pay'") if life.key.service.as_str() == "pay" => "pay".to_owned(),
        _ => default,
    }
}

/// As what. What drains, and what was never ready, is asked nothing.
pub(super) fn health(
    hooks: &Policy,
    life: &Life<'_>,
    endpoint: &Endpoint,
    default: Option<Health>,
) -> Option<Health> {
    let degraded = || life.opinions().iter().map(|(_, verdict, _)| *verdict).max() == Some(Verdict::Degraded);
    match hooks.health.as_deref() {
        _ if !life.is_open() => default,
        Some("worker.verdict == 'degraded' ? 'UNHEALTHY' : default") if degraded() => Some(Health::Unhealthy),
        Some("worker.endpoint.port == 'admin' ? 'ABSENT' : default") if endpoint.port.as_str() == "admin" => {
            None
        }
        _ => default,
    }
}

/// How many hooks give no answer for an endpoint.
pub(super) fn failures(hooks: &Policy, life: &Life<'_>, stands: &Locality) -> usize {
    let include = matches!(hooks.include.as_deref(), Some("worker.metadata.track == 'x'" | "(("));
    let cluster = match hooks.cluster.as_deref() {
        Some("'pay'") => life.key.service.as_str() != "pay",
        Some("default + '::'") => true,
        _ => false,
    };
    let health =
        hooks.health.as_deref() == Some("worker.locality.zone == '' ? 1 : default") && stands.zone.is_empty();
    usize::from(include) + usize::from(cluster) + usize::from(health && life.is_open())
}

//! What must come of wishes about services, and what a declaration asks of their workers.

use std::collections::BTreeSet;

use crate::command::{Listen, Registering, RejectionCode};
use crate::events::event::{Policy, ServiceSpec};
use crate::events::{Envelope, ServiceName};

use super::answers::unless;
use super::lives::{living, spec};
use super::rules::policy;

/// The events of a declaration.
pub(super) fn declare(
    events: &[Envelope],
    service: &ServiceName,
    said: &ServiceSpec,
) -> Result<Vec<&'static str>, RejectionCode> {
    let numbers: Vec<_> = said.ports.iter().filter_map(|port| port.number).collect();
    if numbers.iter().collect::<BTreeSet<_>>().len() < numbers.len() {
        return Err(RejectionCode::InvalidArgument);
    }
    Ok(unless(spec(events, service) == Some(said), "ServiceDeclared"))
}

/// The events of a retirement.
pub(super) fn retire(events: &[Envelope], service: &ServiceName) -> Vec<&'static str> {
    let workers = living(events).iter().filter(|life| life.key.service == *service).count();
    let known = spec(events, service).is_some() || workers > 0;
    [vec!["WorkerRemoved"; workers], unless(!known, "ServiceRetired")].concat()
}

/// The events of a policy.
pub(super) fn set_policy(
    events: &[Envelope],
    service: Option<&ServiceName>,
    said: &Policy,
) -> Result<Vec<&'static str>, RejectionCode> {
    if said.include.as_deref() == Some("((") {
        return Err(RejectionCode::InvalidArgument);
    }
    Ok(unless(policy(events, service) == *said, "PolicyChanged"))
}

/// The wish with the numbers that its service is declared to have; nothing where it asks for something else.
pub(super) fn as_declared(events: &[Envelope], wish: &Registering) -> Option<Registering> {
    let declared = spec(events, &wish.worker.service).map(|spec| spec.ports.clone()).unwrap_or_default();
    if declared.is_empty() {
        return Some(wish.clone());
    }
    let mut wish = wish.clone();
    for request in &mut wish.ports {
        let port = declared.iter().find(|port| port.name == request.name)?;
        let Some(fixed) = port.number else { continue };
        match &mut request.listen {
            Listen::Port { number, .. } if number.is_none_or(|asked| asked == fixed) => *number = Some(fixed),
            Listen::Port { .. } | Listen::Path(_) => return None,
        }
    }
    Some(wish)
}

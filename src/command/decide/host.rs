//! What is asked of and about hosts.

use std::num::NonZeroU16;

use super::{
    Event, Phase, Rejection, RejectionCode, State, check, check_drain, drain_time, reference, unless,
};
use crate::events::event::{HostReport, RemovalCause};
use crate::events::{HostName, Timestamp, WorkerRef};
use crate::projection::state::{Host, PortKey, RestCause, Worker};

/// Takes in what a host lends.
pub(super) fn report(state: &State, host: &HostName, report: &HostReport) -> Result<Vec<Event>, Rejection> {
    check::host_report(report)?;
    let known = state.hosts().get(host).and_then(|host| host.report.as_ref());
    Ok(unless(known == Some(report), || Event::HostReported { host: host.clone(), report: report.clone() }))
}

/// A port on which a stranger was found is left alone for a while. Said twice at one time, it is one event.
pub(super) fn report_busy(
    state: &State,
    host: &HostName,
    port: NonZeroU16,
    now: Timestamp,
) -> Result<Vec<Event>, Rejection> {
    known(state, host)?;
    let key = PortKey { host: host.clone(), number: port.get() };
    let rest = state.resting().get(&key);
    let already = rest.is_some_and(|rest| rest.cause == RestCause::Busy && rest.since == now);
    Ok(unless(already, || Event::PortBusy { host: host.clone(), port: port.get() }))
}

/// Drains every worker of the host, and admits no new ones.
pub(super) fn drain(
    state: &State,
    host: &HostName,
    reason: &str,
    drain_ms: Option<u32>,
) -> Result<Vec<Event>, Rejection> {
    check_drain(drain_ms.unwrap_or_default())?;
    let reason = check::shortened(reason);
    let known = known(state, host)?;
    let mut events = unless(known.draining.is_some(), || Event::HostDraining {
        host: host.clone(),
        reason: reason.clone(),
    });
    let serving = workers(state, known).filter(|(_, worker)| !matches!(worker.phase, Phase::Draining { .. }));
    events.extend(serving.map(|(worker, _)| Event::WorkerDraining {
        drain_ms: drain_time(state, &worker.key.service, drain_ms),
        worker,
        reason: reason.clone(),
    }));
    Ok(events)
}

/// Removes every worker of the host, then the host. One that is not known is gone already.
pub(super) fn remove(state: &State, host: &HostName) -> Result<Vec<Event>, Rejection> {
    let Ok(known) = known(state, host) else { return Ok(Vec::new()) };
    let cause = RemovalCause::HostRemoved;
    let removed =
        workers(state, known).map(|(worker, _)| Event::WorkerRemoved { worker, cause: cause.clone() });
    Ok(removed.chain([Event::HostRemoved { host: host.clone() }]).collect())
}

fn known<'a>(state: &'a State, host: &HostName) -> Result<&'a Host, Rejection> {
    state.hosts().get(host).map(AsRef::as_ref).ok_or_else(|| {
        Rejection::new(
            RejectionCode::UnknownHost,
            format!("no host {host} has reported or has workers"),
            "check the name",
        )
    })
}

fn workers<'a>(state: &'a State, host: &'a Host) -> impl Iterator<Item = (WorkerRef, &'a Worker)> {
    host.workers.iter().filter_map(|key| {
        let worker = state.workers().get(key)?;
        Some((reference(key, worker), worker.as_ref()))
    })
}

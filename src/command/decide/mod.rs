//! One wish against one state. An empty answer means that it is so already: every wish can be repeated.

mod host;
mod register;
mod resources;
mod service;
mod silence;
mod view;
mod watch;

pub use resources::{APPLIED_RESOURCES_MAX, CHANGE_RESOURCES_MAX};
pub use silence::{CROWD_HOSTS_MIN, CROWD_LEASES_MIN, HOLD_MS_MAX};

use super::{Command, Rejection, RejectionCode, check};
use crate::events::event::{DisconnectCause, RemovalCause, UpdateRejection};
use crate::events::{Event, ReplicaId, ServiceName, SessionId, Timestamp, WorkerKey, WorkerRef};
use crate::projection::state::{Link, Phase, RejectionKey, Stale, State, Worker};

/// How many starts of the control plane a worker may leave unanswered: a worker that nobody has heard of through
/// three full graces is gone, however often we restart.
pub const REJOINS_MISSED_MAX: u8 = 3;

/// How long a drain takes when neither the request nor the declaration of the service says, in milliseconds: longer
/// than most requests.
const DRAIN_MS_DEFAULT: u32 = 5000;

/// The longest drain, in milliseconds: an hour outlasts any request that is still worth waiting for.
const DRAIN_MS_MAX: u32 = 3_600_000;

/// Decides what a wish makes true, at wall time `now`.
///
/// # Errors
///
/// The reason why it was refused.
pub fn decide(state: &State, command: &Command, now: Timestamp) -> Result<Vec<Event>, Rejection> {
    match command {
        Command::StartReplica { replica, version } => Ok(start(state, replica, version)),
        Command::ReportHost { host, report } => host::report(state, host, report),
        Command::Register(wish) => register::register(state, wish, now),
        Command::Rejoin { worker, session } => rejoin(state, worker, session),
        Command::Renew { worker } => renew(state, worker),
        Command::ExpireSilent { overdue, quiet } => Ok(silence::expire(state, overdue, quiet, now)),
        Command::ReviewHold { since, quiet } => Ok(silence::review(state, *since, quiet)),
        Command::EndHold { since, overdue } => Ok(silence::end_hold(state, *since, overdue)),
        Command::Ready { worker } => ready(state, worker),
        Command::Unready { worker, reason } => unready(state, worker, reason),
        Command::Drain { worker, reason, drain_ms } => drain(state, worker, reason, *drain_ms),
        Command::Remove { worker, cause } => remove(state, worker, cause),
        Command::ReportHealth { worker, source, verdict, reason } => {
            watch::report_health(state, worker, source, *verdict, reason)
        }
        Command::Reweight { worker, weight } => watch::reweight(state, worker, *weight),
        Command::ReportBusyPort { host, port } => host::report_busy(state, host, *port, now),
        Command::DrainHost { host, reason, drain_ms } => host::drain(state, host, reason, *drain_ms),
        Command::RemoveHost { host } => host::remove(state, host),
        Command::DeclareService { service, spec } => service::declare(state, service, spec),
        Command::RetireService { service } => Ok(service::retire(state, service)),
        Command::SetPolicy { service, policy } => service::set_policy(state, service.as_ref(), policy),
        Command::CloseSession { session, cause } => Ok(close_session(state, session, *cause)),
        Command::EndGrace { worker } => Ok(end_grace(state, worker)),
        Command::SetView { name, view } => view::set(state, name, view),
        Command::RemoveView { name } => Ok(view::remove(state, name)),
        Command::RecordRejection { rejection } => Ok(record(state, rejection)),
        Command::ChangeResources(change) => resources::change(state, change),
    }
}

fn start(state: &State, replica: &ReplicaId, version: &str) -> Vec<Event> {
    if state.replica().is_some_and(|known| known.id == *replica) {
        return Vec::new();
    }
    let lost =
        |worker: &Worker| worker.link == Link::AwaitingRejoin && worker.missed_rejoins >= REJOINS_MISSED_MAX;
    let mut events = removals(state, |_, worker| lost(worker).then_some(RemovalCause::DidNotRejoin));
    events.push(Event::ReplicaStarted { replica: replica.clone(), version: version.to_owned() });
    events
}

fn rejoin(state: &State, worker: &WorkerRef, session: &SessionId) -> Result<Vec<Event>, Rejection> {
    let live = live(state, worker)?;
    Ok(unless(live.is_spoken_for_by(session), || Event::WorkerReconnected {
        worker: worker.clone(),
        session: session.clone(),
    }))
}

fn renew(state: &State, worker: &WorkerRef) -> Result<Vec<Event>, Rejection> {
    let live = live(state, worker)?;
    if live.registration.lease.ttl_ms().is_none() {
        return Err(Rejection::invalid(
            format!("the lease of {} is its connection", worker.key),
            "only workers that are registered with a time to live renew it",
        ));
    }
    Ok(unless(live.session().is_some(), || Event::WorkerReconnected {
        worker: worker.clone(),
        session: live.registration.session.clone(),
    }))
}

fn ready(state: &State, worker: &WorkerRef) -> Result<Vec<Event>, Rejection> {
    let live = serving(state, worker)?;
    Ok(unless(live.phase == Phase::Ready, || Event::WorkerReady { worker: worker.clone() }))
}

fn unready(state: &State, worker: &WorkerRef, reason: &str) -> Result<Vec<Event>, Rejection> {
    let live = serving(state, worker)?;
    let reason = check::shortened(reason);
    let already = matches!(&live.phase, Phase::Unready { reason: known, .. } if *known == reason);
    Ok(unless(already, || Event::WorkerUnready { worker: worker.clone(), reason }))
}

fn drain(
    state: &State,
    worker: &WorkerRef,
    reason: &str,
    drain_ms: Option<u32>,
) -> Result<Vec<Event>, Rejection> {
    let drain_ms = drain_time(state, &worker.key.service, drain_ms);
    check_drain(drain_ms)?;
    let live = live(state, worker)?;
    Ok(unless(matches!(live.phase, Phase::Draining { .. }), || Event::WorkerDraining {
        worker: worker.clone(),
        reason: check::shortened(reason),
        drain_ms,
    }))
}

/// How long workers of this service drain.
fn drain_time(state: &State, service: &ServiceName, asked_ms: Option<u32>) -> u32 {
    let declared_ms = || state.services().get(service)?.spec.as_ref()?.drain_ms;
    asked_ms.or_else(declared_ms).unwrap_or(DRAIN_MS_DEFAULT)
}

fn check_drain(drain_ms: u32) -> Result<(), Rejection> {
    if drain_ms <= DRAIN_MS_MAX {
        return Ok(());
    }
    Err(Rejection::invalid(
        format!("a drain of {drain_ms} ms is longer than {DRAIN_MS_MAX} ms"),
        "give an hour at most",
    ))
}

fn remove(state: &State, worker: &WorkerRef, cause: &RemovalCause) -> Result<Vec<Event>, Rejection> {
    match state.current(worker) {
        Ok(_) => Ok(vec![Event::WorkerRemoved { worker: worker.clone(), cause: cause.clone() }]),
        Err(Stale::Unknown) => Ok(Vec::new()),
        Err(stale @ Stale::Generation { .. }) => Err(refusal(worker, stale)),
    }
}

/// A closed connection is proof of death; a grace, where a worker has one, is for connections that break alone. One that
/// fell silent proves nothing yet: its workers are waited for.
fn close_session(state: &State, session: &SessionId, cause: DisconnectCause) -> Vec<Event> {
    state
        .spoken_for_by(session)
        .filter_map(|(key, worker)| {
            let grace_ms = worker.registration.lease.disconnect_grace_ms()?;
            let worker = reference(key, worker);
            Some(match (cause, grace_ms) {
                (DisconnectCause::Closed, 0) => {
                    Event::WorkerRemoved { worker, cause: RemovalCause::Disconnected(cause) }
                }
                (DisconnectCause::Closed | DisconnectCause::Silent, _) => {
                    Event::WorkerDisconnected { worker, cause }
                }
            })
        })
        .collect()
}

/// The grace of a closed connection. One that fell silent ends with [`Command::ExpireSilent`].
fn end_grace(state: &State, worker: &WorkerRef) -> Vec<Event> {
    match state.current(worker).map(|live| &live.link) {
        Ok(Link::Disconnected { cause: cause @ DisconnectCause::Closed }) => {
            vec![Event::WorkerRemoved { worker: worker.clone(), cause: RemovalCause::Disconnected(*cause) }]
        }
        Ok(
            Link::Disconnected { cause: DisconnectCause::Silent }
            | Link::Connected { .. }
            | Link::AwaitingRejoin,
        )
        | Err(_) => Vec::new(),
    }
}

fn record(state: &State, rejection: &UpdateRejection) -> Vec<Event> {
    let key = RejectionKey { node: rejection.node.clone(), type_url: rejection.type_url.clone() };
    let already = state.rejections().get(&key).is_some_and(|known| known.version == rejection.version);
    unless(already, || Event::UpdateRejected { rejection: rejection.clone() })
}

fn removals(state: &State, cause: impl Fn(&WorkerKey, &Worker) -> Option<RemovalCause>) -> Vec<Event> {
    let workers = state.workers().iter();
    workers
        .filter_map(|(key, worker)| {
            let cause = cause(key, worker)?;
            Some(Event::WorkerRemoved { worker: reference(key, worker), cause })
        })
        .collect()
}

fn unless(already: bool, event: impl FnOnce() -> Event) -> Vec<Event> {
    if already { Vec::new() } else { vec![event()] }
}

fn reference(key: &WorkerKey, worker: &Worker) -> WorkerRef {
    WorkerRef { key: key.clone(), generation: worker.generation }
}

/// The live worker that can still say how it is.
fn serving<'a>(state: &'a State, worker: &WorkerRef) -> Result<&'a Worker, Rejection> {
    let live = live(state, worker)?;
    match live.phase {
        Phase::Draining { .. } => Err(Rejection::new(
            RejectionCode::Draining,
            format!("{} is draining", worker.key),
            "wait until it is removed, then register it again",
        )),
        Phase::Registered | Phase::Ready | Phase::Unready { .. } => Ok(live),
    }
}

fn live<'a>(state: &'a State, worker: &WorkerRef) -> Result<&'a Worker, Rejection> {
    state.current(worker).map(AsRef::as_ref).map_err(|stale| refusal(worker, stale))
}

fn refusal(worker: &WorkerRef, stale: Stale) -> Rejection {
    match stale {
        Stale::Unknown => Rejection::new(
            RejectionCode::UnknownWorker,
            format!("no worker {} lives", worker.key),
            "register it again",
        ),
        Stale::Generation { live } => Rejection::new(
            RejectionCode::StaleGeneration,
            format!("{} has been registered again at {live}, after {}", worker.key, worker.generation),
            "this registration is over: stop, or register again under another id",
        ),
    }
}

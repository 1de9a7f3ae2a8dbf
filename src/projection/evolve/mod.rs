//! The fold: one event, one step. It never refuses and never fails.

mod applied;
mod collections;
mod index;
mod publish;

use std::collections::BTreeMap;
use std::sync::Arc;

use super::publication::health;
use super::state::{
    ExpiryHold, Link, Opinion, Phase, PortKey, RejectionKey, Replica, Rest, RestCause, Served, State, Worker,
};
use crate::events::event::{ClusterPolicy, Registration, UpdateRejection};
use crate::events::view::NodeView;
use crate::events::{Envelope, Event, Generation, ViewName, WorkerKey, WorkerRef};

/// What an event did to a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was folded in.
    Folded,
    /// It was folded in before; nothing changed.
    Repeated,
    /// It made no sense where it stood; it was counted and changed nothing else.
    Ignored(Anomaly),
}

/// Why an event made no sense. The same live and on replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Anomaly {
    /// It is about a worker that does not live.
    #[error("no such worker lives")]
    UnknownWorker,
    /// It is about a registration that another has replaced.
    #[error("another registration has taken the worker's key")]
    OtherGeneration,
    /// It registers a worker whose key is taken.
    #[error("the worker's key is taken")]
    KeyTaken,
    /// It gives an address or a port of a host that another worker holds, or gives one twice.
    #[error("another worker holds one of its addresses or ports")]
    AddressTaken,
    /// It removes a host on which workers live.
    #[error("workers live on the host")]
    HostInUse,
    /// It retires a service of which workers live.
    #[error("workers of the service live")]
    ServiceInUse,
    /// It removes a view that there is not.
    #[error("there is no such view")]
    UnknownView,
    /// It takes back a resource that nobody applied.
    #[error("no such resource was applied")]
    NotApplied,
    /// It would bring a draining worker back.
    #[error("the worker is draining")]
    Draining,
}

/// Folds one event into the state.
pub fn evolve(state: &mut State, envelope: &Envelope) -> Outcome {
    if envelope.offset <= state.offset {
        return Outcome::Repeated;
    }
    state.offset = envelope.offset;
    match fold(state, envelope) {
        Ok(()) => Outcome::Folded,
        Err(anomaly) => {
            state.anomalies += 1;
            Outcome::Ignored(anomaly)
        }
    }
}

fn fold(state: &mut State, envelope: &Envelope) -> Result<(), Anomaly> {
    match &envelope.event {
        Event::ReplicaStarted { replica, version } => {
            let (started, started_at) = (envelope.offset, envelope.recorded_at);
            start(state, Replica { id: replica.clone(), version: version.clone(), started, started_at });
        }
        Event::HostReported { host, report } => {
            index::report_host(state, host, report);
        }
        Event::WorkerRegistered { worker, registration } => register(state, envelope, worker, registration)?,
        Event::WorkerReady { worker } => {
            change_phase(state, worker, |_| Phase::Ready)?;
        }
        Event::WorkerUnready { worker, reason } => {
            change_phase(state, worker, |was| Phase::Unready { reason: reason.clone(), was })?;
        }
        Event::WorkerDraining { worker, reason, drain_ms } => {
            change_phase(state, worker, |was| Phase::Draining {
                reason: reason.clone(),
                drain_ms: *drain_ms,
                since: envelope.recorded_at,
                was,
            })?;
        }
        Event::WorkerDisconnected { worker, cause } => {
            change(state, worker, |live| live.link = Link::Disconnected { cause: *cause })?;
        }
        Event::WorkerReconnected { worker, session } => {
            change(state, worker, |live| {
                live.link = Link::Connected { session: session.clone() };
                live.missed_rejoins = 0;
            })?;
        }
        Event::WorkerRemoved { worker, .. } => {
            let live = Arc::clone(current(state, worker)?);
            index::remove(state, &worker.key, &live, envelope);
        }
        Event::UpdateRejected { rejection } => record_rejection(state, rejection),
        Event::WorkerHealthReported { worker, source, verdict, reason } => {
            let opinion = Opinion { verdict: *verdict, reason: reason.clone() };
            change(state, worker, |live| drop(live.verdicts.insert(source.clone(), opinion)))?;
        }
        Event::WorkerReweighted { worker, weight } => {
            change(state, worker, |live| live.weight = *weight)?;
        }
        Event::HostDraining { host, reason } => index::drain_host(state, host, reason),
        Event::HostRemoved { host } => index::remove_host(state, host)?,
        Event::PortBusy { host, port } => {
            let key = PortKey { host: host.clone(), number: *port };
            state.resting.insert(key, Rest { since: envelope.recorded_at, cause: RestCause::Busy });
        }
        Event::ServiceDeclared { service, spec } => index::declare_service(state, service, spec),
        Event::ServiceRetired { service } => index::retire_service(state, service)?,
        Event::NodeViewSet { name, view } => set_view(state, name, view),
        Event::NodeViewRemoved { name } => remove_view(state, name)?,
        Event::PolicyChanged { service, policy } => index::change_policy(state, service.as_ref(), policy),
        Event::ExpiryHeld { reason, until } => {
            let (since, reason) = (envelope.offset, reason.clone());
            state.expiry_hold = Some(ExpiryHold { since, reason, until: *until });
        }
        Event::ExpiryReleased { .. } => state.expiry_hold = None,
        Event::ResourceApplied { resource, message } => applied::apply(state, resource, message),
        Event::ResourceDeleted { resource } => applied::delete(state, resource)?,
    }
    Ok(())
}

/// How long a copy must have run for who did not come back to have missed it, in milliseconds: longer than any good client
/// waits before it tries again. A copy that fails at once, again and again, costs nobody its place.
const RUN_MISSED_MS_MIN: u64 = 10_000;

/// Every connection of the copy before is over: who lives keeps its status and is awaited.
fn start(state: &mut State, replica: Replica) {
    let since = state.replica.as_ref().map_or(replica.started_at, |before| before.started_at);
    // A clock that was set back says nothing.
    let ran_ms = replica.started_at.as_millis().saturating_sub(since.as_millis());
    state.replica = Some(replica);
    let everyone: Vec<(WorkerKey, Arc<Worker>)> =
        state.workers.iter().map(|(key, worker)| (key.clone(), Arc::clone(worker))).collect();
    for (key, worker) in everyone {
        let mut awaited = Worker::clone(&worker);
        if awaited.link != Link::AwaitingRejoin || ran_ms >= RUN_MISSED_MS_MIN {
            awaited.missed_rejoins = awaited.missed_rejoins.saturating_add(1);
        }
        awaited.link = match awaited.link {
            Link::Connected { .. } | Link::AwaitingRejoin => Link::AwaitingRejoin,
            Link::Disconnected { cause } => Link::Disconnected { cause },
        };
        index::update(state, &key, awaited);
    }
    collections::begin_all(state);
}

fn register(
    state: &mut State,
    envelope: &Envelope,
    key: &WorkerKey,
    registration: &Registration,
) -> Result<(), Anomaly> {
    if state.workers.contains_key(key) {
        return Err(Anomaly::KeyTaken);
    }
    if !index::is_free(state, key, registration) {
        return Err(Anomaly::AddressTaken);
    }
    let worker = Worker {
        generation: Generation::at(envelope.offset),
        registered_at: envelope.recorded_at,
        registration: registration.clone(),
        clusters: Vec::new(),
        phase: Phase::Registered,
        weight: registration.weight,
        verdicts: BTreeMap::new(),
        link: Link::Connected { session: registration.session.clone() },
        missed_rejoins: 0,
    };
    index::insert(state, key, worker);
    Ok(())
}

fn current<'a>(state: &'a State, worker: &WorkerRef) -> Result<&'a Arc<Worker>, Anomaly> {
    state.current(worker).map_err(|stale| match stale {
        super::state::Stale::Unknown => Anomaly::UnknownWorker,
        super::state::Stale::Generation { .. } => Anomaly::OtherGeneration,
    })
}

fn change_phase(
    state: &mut State,
    worker: &WorkerRef,
    next: impl FnOnce(Served) -> Phase,
) -> Result<(), Anomaly> {
    let live = current(state, worker)?;
    if matches!(live.phase, Phase::Draining { .. }) {
        return Err(Anomaly::Draining);
    }
    // What it says of itself counts, not what a policy of the day makes of it.
    let was =
        if health(live, &ClusterPolicy::default()).is_some() { Served::Published } else { Served::Never };
    change(state, worker, |live| live.phase = next(was))
}

fn change(state: &mut State, worker: &WorkerRef, edit: impl FnOnce(&mut Worker)) -> Result<(), Anomaly> {
    let mut next = Worker::clone(current(state, worker)?);
    edit(&mut next);
    index::update(state, &worker.key, next);
    Ok(())
}

fn set_view(state: &mut State, name: &ViewName, view: &NodeView) {
    if state.views.get(name).is_none_or(|known| **known != *view) {
        state.views.insert(name.clone(), Arc::new(view.clone()));
        state.views_changed = state.offset;
    }
}

fn remove_view(state: &mut State, name: &ViewName) -> Result<(), Anomaly> {
    state.views.remove(name).ok_or(Anomaly::UnknownView)?;
    state.views_changed = state.offset;
    Ok(())
}

fn record_rejection(state: &mut State, rejection: &UpdateRejection) {
    let key = RejectionKey { node: rejection.node.clone(), type_url: rejection.type_url.clone() };
    state.rejections.insert(key, rejection.clone());
}

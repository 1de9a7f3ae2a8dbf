//! Admission: which registrations are taken in, and with which ports.

use std::sync::Arc;

use super::{Event, Phase, Rejection, RejectionCode, State, Worker, check, reference};
use crate::command::{Registering, ports};
use crate::events::Timestamp;
use crate::events::event::{Registration, RemovalCause};
use crate::projection::ClusterName;

/// Admits a worker; one that lives under the same key is replaced, unless it asks for what it has.
pub(super) fn register(state: &State, wish: &Registering, now: Timestamp) -> Result<Vec<Event>, Rejection> {
    check_text(wish)?;
    let registration = Registration {
        process: wish.process.clone(),
        endpoints: ports::allocate(state, wish, now)?,
        readiness: wish.readiness,
        weight: wish.weight,
        priority: wish.priority,
        locality: wish.locality.clone(),
        metadata: wish.metadata.clone(),
        session: wish.session.clone(),
        lease: wish.lease,
    };
    let before = state.workers().get(&wish.worker);
    let same =
        |live: &&Arc<Worker>| live.registration == registration && live.is_spoken_for_by(&wish.session);
    if let Some(live) = before.filter(same) {
        return match &live.phase {
            Phase::Registered | Phase::Ready | Phase::Unready { .. } => Ok(Vec::new()),
            // Asking again must not look like being served again, nor undo what an operator wanted.
            Phase::Draining { reason, .. } => Err(Rejection::new(
                RejectionCode::Draining,
                format!("{} is being emptied: {reason}", wish.worker),
                "wait for its removal, then register it again",
            )),
        };
    }
    let replaced = before.map(|live| Event::WorkerRemoved {
        worker: reference(&wish.worker, live),
        cause: RemovalCause::Replaced,
    });
    let registered = Event::WorkerRegistered { worker: wish.worker.clone(), registration };
    Ok(replaced.into_iter().chain([registered]).collect())
}

fn check_text(wish: &Registering) -> Result<(), Rejection> {
    check::metadata(&wish.metadata)?;
    check::lease(wish.lease)?;
    if let Some(locality) = &wish.locality {
        check::locality(locality)?;
    }
    wish.ports.iter().try_for_each(|request| {
        check::cluster_name(&ClusterName::of_port(&wish.worker.service, &request.name))
    })
}

//! What must come of silence, by the words of the design: more than half of at least ten live leases, on two hosts or
//! more, hold expiry; closed connections are not held back.

use std::collections::BTreeSet;

use crate::events::event::DisconnectCause;
use crate::events::{Envelope, Offset, WorkerRef};

use super::answers::the;
use super::lives::{Life, hold, living};

type Names = Vec<&'static str>;

pub(super) fn expire(
    events: &[Envelope],
    overdue: &BTreeSet<WorkerRef>,
    quiet: &BTreeSet<WorkerRef>,
) -> Names {
    let dying = dying(events, overdue);
    if hold(events).is_some() || dying.is_empty() {
        return vec![];
    }
    let silent = overdue | quiet;
    if is_a_crowd(events, &silent) { vec!["ExpiryHeld"] } else { dying }
}

pub(super) fn review(events: &[Envelope], since: Offset, quiet: &BTreeSet<WorkerRef>) -> Names {
    let is_over = hold(events) == Some(since) && !is_a_crowd(events, quiet);
    if is_over { vec!["ExpiryReleased"] } else { vec![] }
}

pub(super) fn end_hold(events: &[Envelope], since: Offset, overdue: &BTreeSet<WorkerRef>) -> Names {
    if hold(events) != Some(since) {
        return vec![];
    }
    [vec!["ExpiryReleased"], dying(events, overdue)].concat()
}

fn dying(events: &[Envelope], overdue: &BTreeSet<WorkerRef>) -> Names {
    let living = living(events);
    let dying = overdue.iter().filter(|worker| the(&living, worker).is_ok_and(Life::can_be_silent));
    vec!["WorkerRemoved"; dying.count()]
}

fn is_a_crowd(events: &[Envelope], said_to_be_silent: &BTreeSet<WorkerRef>) -> bool {
    let living = living(events);
    let live: Vec<&Life<'_>> =
        living.iter().filter(|life| life.lost() != Some(DisconnectCause::Closed)).collect();
    let is_said = |life: &Life<'_>| {
        let own = WorkerRef { key: life.key.clone(), generation: life.generation };
        said_to_be_silent.contains(&own) && life.can_be_silent()
    };
    let silent: Vec<&&Life<'_>> =
        live.iter().filter(|life| life.lost() == Some(DisconnectCause::Silent) || is_said(life)).collect();
    let hosts: BTreeSet<_> = silent.iter().map(|life| &life.key.host).collect();
    live.len() >= 10 && silent.len() * 2 > live.len() && hosts.len() >= 2
}

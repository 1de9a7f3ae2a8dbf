//! What must come of a wish, worked out from all events by the words of the design.

use crate::command::{Command, RejectionCode};
use crate::events::event::{DisconnectCause, HealthSource, Lease, UpdateRejection, Verdict};
use crate::events::{Envelope, Event, HostName, ReplicaId, Timestamp, WorkerRef};

use super::answers::{Answer, names, the, unless};
use super::lives::{Life, is_emptied, living, report, views};
use super::services;
use super::silence;
use super::{admission, brought};

/// So many starts may go by without a sign of life.
const STARTS_MISSED_MAX: usize = 3;

/// Fails unless this answer of [`decide`](crate::command::decide) is right after these events, at this time.
///
/// # Panics
///
/// When it is not.
#[track_caller]
pub fn check_decision(events: &[Envelope], command: &Command, now: Timestamp, answer: &Answer) {
    if let Command::Register(wish) = command {
        return admission::check(events, wish, now, answer);
    }
    let expected = expected(events, command, now);
    let given = answer.as_ref().map(|made| names(made)).map_err(|rejection| rejection.code);
    assert_eq!(given, expected, "{command:?}");
}

fn expected(
    events: &[Envelope],
    command: &Command,
    now: Timestamp,
) -> Result<Vec<&'static str>, RejectionCode> {
    let living = living(events);
    Ok(match command {
        Command::StartReplica { replica, .. } => start(events, replica),
        Command::ReportHost { host, report: said } => {
            unless(report(events, host) == Some(said), "HostReported")
        }
        Command::Register(_) => unreachable!("checked apart"),
        Command::Rejoin { worker, session } => {
            unless(the(&living, worker)?.speaker() == Some(session), "WorkerReconnected")
        }
        Command::Ready { worker } => {
            let last = serving(&living, worker)?.last_word();
            unless(matches!(last, Some(Event::WorkerReady { .. })), "WorkerReady")
        }
        Command::Unready { worker, reason: said } => {
            let last = serving(&living, worker)?.last_word();
            unless(
                matches!(last, Some(Event::WorkerUnready { reason, .. }) if reason == said),
                "WorkerUnready",
            )
        }
        Command::Drain { worker, .. } => unless(the(&living, worker)?.is_draining(), "WorkerDraining"),
        Command::Remove { worker, .. } => match the(&living, worker) {
            Err(RejectionCode::UnknownWorker) => vec![],
            found => found.map(|_| vec!["WorkerRemoved"])?,
        },
        Command::CloseSession { session, cause } => {
            let mut spoken_for: Vec<&Life<'_>> =
                living.iter().filter(|life| life.speaker() == Some(session) && !life.is_renewed()).collect();
            spoken_for.sort_by_key(|life| life.key);
            spoken_for.into_iter().map(|life| end_of_connection(life, *cause)).collect()
        }
        Command::EndGrace { worker } => {
            let waits = the(&living, worker).is_ok_and(|life| life.lost() == Some(DisconnectCause::Closed));
            unless(!waits, "WorkerRemoved")
        }
        Command::Renew { worker } => renew(the(&living, worker)?)?,
        Command::ExpireSilent { overdue, quiet } => silence::expire(events, overdue, quiet),
        Command::ReviewHold { since, quiet } => silence::review(events, *since, quiet),
        Command::EndHold { since, overdue } => silence::end_hold(events, *since, overdue),
        Command::ReportHealth { worker, source, verdict, reason } => {
            report_health(the(&living, worker)?, source, *verdict, reason)
        }
        Command::Reweight { worker, weight } => {
            unless(the(&living, worker)?.weight() == *weight, "WorkerReweighted")
        }
        Command::ReportBusyPort { host, port } => {
            known_host(events, host)?;
            unless(admission::rest(events, host, port.get()) == Some((now, admission::BUSY_MS)), "PortBusy")
        }
        Command::DeclareService { service, spec } => services::declare(events, service, spec)?,
        Command::RetireService { service } => services::retire(events, service),
        Command::SetPolicy { service, policy } => services::set_policy(events, service.as_ref(), policy)?,
        Command::ChangeResources(change) => brought::expected(events, change)?,
        Command::DrainHost { host, .. } => drain_host(events, host)?,
        Command::RemoveHost { host } => remove_host(events, host),
        Command::SetView { name, view } => unless(views(events).get(name) == Some(&view), "NodeViewSet"),
        Command::RemoveView { name } => unless(!views(events).contains_key(name), "NodeViewRemoved"),
        Command::RecordRejection { rejection } => record_rejection(events, rejection),
    })
}

fn record_rejection(events: &[Envelope], rejection: &UpdateRejection) -> Vec<&'static str> {
    let known = events.iter().rev().find_map(|envelope| match &envelope.event {
        Event::UpdateRejected { rejection: known } if known.node == rejection.node => Some(known),
        _ => None,
    });
    unless(known.is_some_and(|known| known.version == rejection.version), "UpdateRejected")
}

fn start(events: &[Envelope], replica: &ReplicaId) -> Vec<&'static str> {
    let newest = events.iter().rev().find_map(|envelope| match &envelope.event {
        Event::ReplicaStarted { replica, .. } => Some(replica),
        _ => None,
    });
    if newest == Some(replica) {
        return vec![];
    }
    let lost = |life: &Life<'_>| life.is_awaited() && life.missed_starts() >= STARTS_MISSED_MAX;
    let lost = living(events).iter().filter(|life| lost(life)).count();
    [vec!["WorkerRemoved"; lost], vec!["ReplicaStarted"]].concat()
}

fn drain_host(events: &[Envelope], host: &HostName) -> Result<Vec<&'static str>, RejectionCode> {
    known_host(events, host)?;
    let serving = |life: &Life<'_>| life.key.host == *host && !life.is_draining();
    let serving = living(events).iter().filter(|life| serving(life)).count();
    Ok([unless(is_emptied(events, host), "HostDraining"), vec!["WorkerDraining"; serving]].concat())
}

fn remove_host(events: &[Envelope], host: &HostName) -> Vec<&'static str> {
    if known_host(events, host).is_err() {
        return vec![];
    }
    let there = living(events).iter().filter(|life| life.key.host == *host).count();
    [vec!["WorkerRemoved"; there], vec!["HostRemoved"]].concat()
}

/// A host is known from its first report, worker or emptying until it is removed.
fn known_host(events: &[Envelope], name: &HostName) -> Result<(), RejectionCode> {
    let last = events.iter().rev().find_map(|envelope| match &envelope.event {
        Event::HostReported { host, .. } | Event::HostDraining { host, .. } if host == name => Some(true),
        Event::WorkerRegistered { worker, .. } if worker.host == *name => Some(true),
        Event::HostRemoved { host } if host == name => Some(false),
        _ => None,
    });
    if last == Some(true) { Ok(()) } else { Err(RejectionCode::UnknownHost) }
}

fn renew(life: &Life<'_>) -> Result<Vec<&'static str>, RejectionCode> {
    let spoken_for = life.speaker().is_some();
    if life.is_renewed() {
        Ok(unless(spoken_for, "WorkerReconnected"))
    } else {
        Err(RejectionCode::InvalidArgument)
    }
}

fn report_health(
    life: &Life<'_>,
    source: &HealthSource,
    verdict: Verdict,
    reason: &str,
) -> Vec<&'static str> {
    let opinions = life.opinions();
    let known = opinions.iter().find(|(known, _, _)| *known == source);
    // Who never said anything said that all is well.
    let (said, why) = known.map_or((Verdict::Healthy, ""), |(_, verdict, reason)| (*verdict, *reason));
    // A monitor's reason counts while something is wrong, the worker's own always: it is its status.
    let chatter = verdict == Verdict::Healthy && *source != HealthSource::Worker;
    unless(said == verdict && (why == reason || chatter), "WorkerHealthReported")
}

fn end_of_connection(life: &Life<'_>, cause: DisconnectCause) -> &'static str {
    match life.registration.lease {
        Lease::Session { disconnect_grace_ms: 0 } if cause == DisconnectCause::Closed => "WorkerRemoved",
        Lease::Session { .. } => "WorkerDisconnected",
        Lease::Ttl { .. } => unreachable!("no connection speaks for it"),
    }
}

fn serving<'a, 'b>(living: &'a [Life<'b>], worker: &WorkerRef) -> Result<&'a Life<'b>, RejectionCode> {
    the(living, worker)
        .and_then(|life| if life.is_draining() { Err(RejectionCode::Draining) } else { Ok(life) })
}

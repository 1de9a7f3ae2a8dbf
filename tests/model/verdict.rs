//! What must come of a wish, worked out from all events by the words of the design.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use foldplane::command::{Command, PortRequest, Registering, Rejection, RejectionCode};
use foldplane::events::event::{
    DisconnectCause, Endpoint, EndpointAddress, HealthSource, Lease, PortRange, Registration,
    UpdateRejection, Verdict,
};
use foldplane::events::{Envelope, Event, HostName, ReplicaId, Timestamp, WorkerRef};

use crate::brought;
use crate::dull::{Life, address, addresses, is_emptied, lives, living, report, takes_out, views};
use crate::services;
use crate::silence;

/// A port rests so long after its owner is gone (design: 30 s).
const REST_MS: u64 = 30_000;

/// A port on which a stranger was found is left alone so long (design: ten minutes).
const BUSY_MS: u64 = 600_000;

/// So many starts may go by without a sign of life.
const STARTS_MISSED_MAX: usize = 3;

type Answer = Result<Vec<Event>, Rejection>;

/// Fails unless this answer is right after these events, at this time.
#[track_caller]
pub(crate) fn check(events: &[Envelope], command: &Command, now: Timestamp, answer: &Answer) {
    if let Command::Register(wish) = command {
        return check_registering(events, wish, now, answer);
    }
    let expected = expected(events, command, now);
    let given = answer.as_ref().map(|made| names(made)).map_err(|rejection| rejection.code);
    assert_eq!(given, expected, "{command:?}");
}

fn names(events: &[Event]) -> Vec<&'static str> {
    events.iter().map(Event::name).collect()
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
            unless(rest(events, host, port.get()) == Some((now, BUSY_MS)), "PortBusy")
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

pub(crate) fn unless(already: bool, name: &'static str) -> Vec<&'static str> {
    if already { vec![] } else { vec![name] }
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

pub(crate) fn the<'a, 'b>(living: &'a [Life<'b>], worker: &WorkerRef) -> Result<&'a Life<'b>, RejectionCode> {
    let life = living.iter().find(|life| *life.key == worker.key).ok_or(RejectionCode::UnknownWorker)?;
    if life.generation == worker.generation { Ok(life) } else { Err(RejectionCode::StaleGeneration) }
}

fn serving<'a, 'b>(living: &'a [Life<'b>], worker: &WorkerRef) -> Result<&'a Life<'b>, RejectionCode> {
    the(living, worker)
        .and_then(|life| if life.is_draining() { Err(RejectionCode::Draining) } else { Ok(life) })
}

/// What a host's ports look like to a worker that wants some.
struct Ports<'a> {
    /// Fixed numbers that are asked for.
    fixed: Vec<u16>,
    /// Held by other workers of the host.
    held_by_others: BTreeSet<u16>,
    /// Held by this worker, by name.
    own: Vec<(&'a str, u16)>,
    /// Those of them on which no stranger was found.
    rested: Vec<(&'a str, u16)>,
    /// In the host's range, held by nobody, rested, and not asked for by number.
    free: BTreeSet<u16>,
}

impl<'a> Ports<'a> {
    fn new(events: &'a [Envelope], wish: &Registering, now: Timestamp) -> Self {
        let lives = lives(events);
        let held = |life: &&Life<'_>| life.ended.is_none() && life.key.host == wish.worker.host;
        let others = lives.iter().filter(held).filter(|life| *life.key != wish.worker);
        let held_by_others = others.flat_map(|life| addresses(life.registration)).map(|a| a.port()).collect();
        let mine = lives.iter().filter(held).filter(|life| *life.key == wish.worker);
        let own: Vec<(&str, u16)> = mine
            .flat_map(|life| life.registration.endpoints.iter().zip(addresses(life.registration)))
            .map(|(endpoint, address)| (endpoint.port.as_str(), address.port()))
            .collect();
        let rested =
            own.iter().copied().filter(|(_, number)| !rests(events, &wish.worker.host, *number, now));
        let rested = rested.collect();
        let fixed =
            wish.ports.iter().filter_map(|request| request.number).map(|number| number.get()).collect();
        let mut ports = Self { fixed, held_by_others, own, rested, free: BTreeSet::new() };
        let PortRange { first, last } =
            report(events, &wish.worker.host).map_or(PortRange::default(), |report| report.port_range);
        let free =
            (first..=last).filter(|n| !ports.is_used(*n) && !rests(events, &wish.worker.host, *n, now));
        ports.free = free.collect();
        ports
    }

    fn is_used(&self, number: u16) -> bool {
        self.held_by_others.contains(&number)
            || self.fixed.contains(&number)
            || self.own.iter().any(|(_, held)| *held == number)
    }

    /// The number that the worker keeps for a port that may be any.
    fn kept(&self, request: &PortRequest) -> Option<u16> {
        let own = self.rested.iter().find(|(name, _)| *name == request.name.as_str());
        own.map(|(_, number)| *number).filter(|number| !self.fixed.contains(number))
    }

    fn missing(&self, wish: &Registering) -> usize {
        let any = wish.ports.iter().filter(|request| request.number.is_none());
        any.filter(|request| self.kept(request).is_none()).count()
    }
}

fn rests(events: &[Envelope], host: &HostName, number: u16, now: Timestamp) -> bool {
    // A time in the future means that the clock was set back.
    rest(events, host, number).is_some_and(|(since, for_ms)| {
        now.as_millis().checked_sub(since.as_millis()).is_some_and(|rested| rested < for_ms)
    })
}

/// Since when a port rests, and for how long: what happened to it last, since it or its host was given away.
fn rest(events: &[Envelope], host: &HostName, number: u16) -> Option<(Timestamp, u64)> {
    let lives = lives(events);
    let had = lives.iter().filter(|life| {
        life.key.host == *host && addresses(life.registration).any(|address| address.port() == number)
    });
    let lent = had.clone().map(|life| (life.generation.offset(), None));
    let released = had.filter_map(|life| life.ended).map(|(offset, at)| (offset, Some((at, REST_MS))));
    let told = events.iter().filter_map(|envelope| match &envelope.event {
        Event::PortBusy { host: of, port } if of == host && *port == number => {
            Some((envelope.offset, Some((envelope.recorded_at, BUSY_MS))))
        }
        Event::HostRemoved { host: gone } if gone == host && takes_out(events, host, envelope.offset) => {
            Some((envelope.offset, None))
        }
        _ => None,
    });
    lent.chain(released).chain(told).max_by_key(|(offset, _)| *offset).and_then(|(_, rest)| rest)
}

#[track_caller]
fn check_registering(events: &[Envelope], wish: &Registering, now: Timestamp, answer: &Answer) {
    let Some(wish) = &services::as_declared(events, wish) else {
        let code = answer.as_ref().map_err(|rejection| rejection.code);
        assert!(matches!(code, Err(RejectionCode::NotDeclared | RejectionCode::HostDraining)), "{answer:?}");
        return;
    };
    let ports = Ports::new(events, wish, now);
    let twice = ports.fixed.iter().collect::<BTreeSet<_>>().len() < ports.fixed.len();
    let taken = ports.fixed.iter().any(|number| ports.held_by_others.contains(number));
    let exhausted = ports.missing(wish) > ports.free.len();
    match answer {
        Err(rejection) => match rejection.code {
            RejectionCode::InvalidArgument => assert!(twice, "{rejection}"),
            RejectionCode::PortTaken => assert!(taken, "{rejection}"),
            RejectionCode::PortsExhausted => {
                assert!(
                    exhausted || usable_at_worst(events, wish, &ports) < ports.missing(wish),
                    "{rejection}"
                );
            }
            RejectionCode::AddressTaken => assert!(address_may_be_taken(events, wish), "{rejection}"),
            RejectionCode::HostDraining => assert!(is_emptied(events, &wish.worker.host), "{rejection}"),
            RejectionCode::UnknownWorker
            | RejectionCode::StaleGeneration
            | RejectionCode::Draining
            | RejectionCode::UnknownHost
            | RejectionCode::NotDeclared
            | RejectionCode::UnknownReference
            | RejectionCode::ResourceInUse => {
                panic!("no reason to refuse a registration: {rejection}")
            }
        },
        Ok(made) => {
            assert!(!twice && !taken && !exhausted, "{wish:?} had to be refused, and gave {made:?}");
            check_admission(events, wish, &ports, made);
        }
    }
}

/// How many free numbers are left to the request that has the fewest: another host's worker may hold one at its address.
fn usable_at_worst(events: &[Envelope], wish: &Registering, ports: &Ports<'_>) -> usize {
    let living = living(events);
    let others = living.iter().filter(|life| *life.key != wish.worker);
    let held: BTreeSet<SocketAddr> = others.flat_map(|life| addresses(life.registration)).collect();
    let host = address(events, &wish.worker.host);
    let usable = |request: &PortRequest| {
        let ip = request.address.unwrap_or(host);
        ports.free.iter().filter(|number| !held.contains(&SocketAddr::new(ip, **number))).count()
    };
    wish.ports.iter().filter(|request| request.number.is_none()).map(usable).min().unwrap_or(0)
}

fn address_may_be_taken(events: &[Envelope], wish: &Registering) -> bool {
    let living = living(events);
    let others = living.iter().filter(|life| *life.key != wish.worker);
    let held: BTreeSet<_> = others.flat_map(|life| addresses(life.registration)).map(|a| a.ip()).collect();
    let host = address(events, &wish.worker.host);
    wish.ports.iter().any(|request| held.contains(&request.address.unwrap_or(host)))
}

#[track_caller]
fn check_admission(events: &[Envelope], wish: &Registering, ports: &Ports<'_>, made: &[Event]) {
    let living = living(events);
    let before = living.iter().find(|life| *life.key == wish.worker);
    let Some(Event::WorkerRegistered { worker, registration }) = made.last() else {
        let before = before.expect("nothing to do for a worker that does not live");
        assert!(made.is_empty());
        assert_eq!(before.speaker(), Some(&wish.session), "another connection asks");
        return check_endpoints(events, wish, ports, before.registration);
    };
    let replaced = if before.is_some() { vec!["WorkerRemoved"] } else { vec![] };
    assert_eq!(names(made), [replaced, vec!["WorkerRegistered"]].concat());
    assert_eq!(*worker, wish.worker);
    check_endpoints(events, wish, ports, registration);
}

#[track_caller]
fn check_endpoints(events: &[Envelope], wish: &Registering, ports: &Ports<'_>, registration: &Registration) {
    assert_eq!(registration.endpoints.len(), wish.ports.len());
    let host = address(events, &wish.worker.host);
    for (request, Endpoint { port, address }) in wish.ports.iter().zip(&registration.endpoints) {
        let EndpointAddress::Ip(address) = *address;
        assert_eq!(*port, request.name);
        let allowed = match (request.number, ports.kept(request)) {
            (Some(number), _) => number.get() == address.port(),
            (None, Some(kept)) => kept == address.port(),
            (None, None) => ports.free.contains(&address.port()),
        };
        assert!(allowed, "{request:?} got {address}");
        assert_eq!(address, SocketAddr::new(request.address.unwrap_or(host), address.port()));
    }
}

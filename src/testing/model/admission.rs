//! Which registrations must be taken in, and at which places.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU16;

use crate::command::{Listen, PortRequest, Registering, RejectionCode};
use crate::events::event::{Endpoint, EndpointAddress, PortRange, Registration};
use crate::events::{Envelope, Event, HostName, SocketPath, Timestamp};

use super::answers::{Answer, names};
use super::lives::{Life, address, addresses, is_emptied, lives, living, report, takes_out};
use super::services;

/// A port rests so long after its owner is gone (design: 30 s).
const REST_MS: u64 = 30_000;

/// A port on which a stranger was found is left alone so long (design: ten minutes).
pub(super) const BUSY_MS: u64 = 600_000;

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
            .flat_map(|life| &life.registration.endpoints)
            .filter_map(|endpoint| Some((endpoint.port.as_str(), endpoint.address.port()?)))
            .collect();
        let rested =
            own.iter().copied().filter(|(_, number)| !rests(events, &wish.worker.host, *number, now));
        let rested = rested.collect();
        let fixed =
            wish.ports.iter().filter_map(|request| request.listen.number()).map(NonZeroU16::get).collect();
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
        any_ports(wish).filter(|(request, _)| self.kept(request).is_none()).count()
    }
}

/// What may be any port, with the address at which it is wanted.
fn any_ports(wish: &Registering) -> impl Iterator<Item = (&PortRequest, Option<IpAddr>)> {
    wish.ports.iter().filter_map(|request| match request.listen {
        Listen::Port { number: None, address } => Some((request, address)),
        Listen::Port { number: Some(_), .. } | Listen::Path(_) => None,
    })
}

/// The paths of sockets that are asked for.
fn paths(wish: &Registering) -> Vec<&SocketPath> {
    let listens = wish.ports.iter().map(|request| &request.listen);
    listens.filter_map(|listen| if let Listen::Path(path) = listen { Some(path) } else { None }).collect()
}

fn rests(events: &[Envelope], host: &HostName, number: u16, now: Timestamp) -> bool {
    // A time in the future means that the clock was set back.
    rest(events, host, number).is_some_and(|(since, for_ms)| {
        now.as_millis().checked_sub(since.as_millis()).is_some_and(|rested| rested < for_ms)
    })
}

/// Since when a port rests, and for how long: what happened to it last, since it or its host was given away.
pub(super) fn rest(events: &[Envelope], host: &HostName, number: u16) -> Option<(Timestamp, u64)> {
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
pub(super) fn check(events: &[Envelope], wish: &Registering, now: Timestamp, answer: &Answer) {
    let Some(wish) = &services::as_declared(events, wish) else {
        let code = answer.as_ref().map_err(|rejection| rejection.code);
        assert!(matches!(code, Err(RejectionCode::NotDeclared | RejectionCode::HostDraining)), "{answer:?}");
        return;
    };
    let ports = Ports::new(events, wish, now);
    let twice = ports.fixed.iter().collect::<BTreeSet<_>>().len() < ports.fixed.len()
        || paths(wish).iter().collect::<BTreeSet<_>>().len() < paths(wish).len();
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
            RejectionCode::Draining => {
                let living = living(events);
                let before = living.iter().find(|life| life.key == &wish.worker).expect("it drains");
                assert!(before.is_draining() && before.speaker() == Some(&wish.session), "{rejection}");
                check_endpoints(events, wish, &ports, before.registration);
            }
            RejectionCode::UnknownWorker
            | RejectionCode::StaleGeneration
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
    let usable = |(_, address): (&PortRequest, Option<IpAddr>)| {
        let ip = address.unwrap_or(host);
        ports.free.iter().filter(|number| !held.contains(&SocketAddr::new(ip, **number))).count()
    };
    any_ports(wish).map(usable).min().unwrap_or(0)
}

fn address_may_be_taken(events: &[Envelope], wish: &Registering) -> bool {
    let living = living(events);
    let others = living.iter().filter(|life| *life.key != wish.worker);
    let held: Vec<&EndpointAddress> =
        others.flat_map(|life| &life.registration.endpoints).map(|one| &one.address).collect();
    let host = address(events, &wish.worker.host);
    wish.ports.iter().any(|request| {
        held.iter().any(|held| match (held, &request.listen) {
            (EndpointAddress::Ip(held), Listen::Port { address, .. }) => held.ip() == address.unwrap_or(host),
            (EndpointAddress::Unix(held), Listen::Path(path)) => held == path,
            (EndpointAddress::Ip(_), Listen::Path(_)) | (EndpointAddress::Unix(_), Listen::Port { .. }) => {
                false
            }
        })
    })
}

#[track_caller]
fn check_admission(events: &[Envelope], wish: &Registering, ports: &Ports<'_>, made: &[Event]) {
    let living = living(events);
    let before = living.iter().find(|life| *life.key == wish.worker);
    let Some(Event::WorkerRegistered { worker, registration }) = made.last() else {
        let before = before.expect("nothing to do for a worker that does not live");
        assert!(made.is_empty() && !before.is_draining());
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
        assert_eq!(*port, request.name);
        let (number, ip) = match &request.listen {
            Listen::Port { number, address } => (number, address.unwrap_or(host)),
            Listen::Path(path) => {
                assert_eq!(*address, EndpointAddress::Unix(path.clone()));
                continue;
            }
        };
        let EndpointAddress::Ip(address) = *address else { panic!("{request:?} got {address}") };
        let allowed = match (number, ports.kept(request)) {
            (Some(number), _) => number.get() == address.port(),
            (None, Some(kept)) => kept == address.port(),
            (None, None) => ports.free.contains(&address.port()),
        };
        assert!(allowed, "{request:?} got {address}");
        assert_eq!(address, SocketAddr::new(ip, address.port()));
    }
}

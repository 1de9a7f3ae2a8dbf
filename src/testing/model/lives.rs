//! The model: every life of every worker, worked out from all events each time somebody asks.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::num::NonZeroU32;

use crate::events::event::{
    ClusterPolicy, DegradedAs, DisconnectCause, EndpointAddress, HealthSource, HostReport, Lease, Locality,
    Readiness, Registration, ServiceSpec, UnreadyAs, Verdict,
};
use crate::events::view::NodeView;
use crate::events::{
    Envelope, Event, Generation, HostName, Offset, PortName, ServiceName, SessionId, Timestamp, ViewName,
    WorkerKey, WorkerRef,
};

/// One registration, from its start to its end.
#[derive(Clone, Debug)]
pub struct Life<'a> {
    /// Whose it is.
    pub key: &'a WorkerKey,
    /// Which one.
    pub generation: Generation,
    /// As what the worker was admitted.
    pub registration: &'a Registration,
    /// What was said of it, as far as it made sense, starts of the control plane among it.
    pub said: Vec<&'a Event>,
    /// When the control plane started since anybody spoke for it.
    pub starts: Vec<Timestamp>,
    /// Where and when it ended, if it has.
    pub ended: Option<(Offset, Timestamp)>,
}

/// What clients are told of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// That it should get requests.
    Healthy,
    /// That it serves, and is not at its best.
    Degraded,
    /// That it should get none.
    Unhealthy,
    /// That it should get no new ones.
    Draining,
}

/// Every life that these events tell of, the ended ones too, by generation.
pub fn lives(events: &[Envelope]) -> Vec<Life<'_>> {
    let mut lives: Vec<Life<'_>> = Vec::new();
    for envelope in events {
        let event = &envelope.event;
        match event {
            Event::WorkerRegistered { worker, registration } => {
                if may_begin(&lives, worker, registration) {
                    let generation = Generation::at(envelope.offset);
                    let (said, starts, ended) = (Vec::new(), Vec::new(), None);
                    lives.push(Life { key: worker, generation, registration, said, starts, ended });
                }
            }
            Event::WorkerReady { worker }
            | Event::WorkerUnready { worker, .. }
            | Event::WorkerDraining { worker, .. } => {
                if let Some(life) = meant(&mut lives, worker).filter(|life| !life.is_draining()) {
                    life.said.push(event);
                }
            }
            Event::WorkerReconnected { worker, .. } => {
                if let Some(life) = meant(&mut lives, worker) {
                    life.said.push(event);
                    life.starts.clear();
                }
            }
            Event::WorkerDisconnected { worker, .. }
            | Event::WorkerHealthReported { worker, .. }
            | Event::WorkerReweighted { worker, .. } => {
                if let Some(life) = meant(&mut lives, worker) {
                    life.said.push(event);
                }
            }
            Event::WorkerRemoved { worker, .. } => {
                if let Some(life) = meant(&mut lives, worker) {
                    life.ended = Some((envelope.offset, envelope.recorded_at));
                }
            }
            Event::ReplicaStarted { .. } => {
                for life in lives.iter_mut().filter(|life| life.ended.is_none()) {
                    life.said.push(event);
                    life.starts.push(envelope.recorded_at);
                }
            }
            Event::HostReported { .. }
            | Event::UpdateRejected { .. }
            | Event::HostDraining { .. }
            | Event::HostRemoved { .. }
            | Event::PortBusy { .. }
            | Event::ServiceDeclared { .. }
            | Event::ServiceRetired { .. }
            | Event::NodeViewSet { .. }
            | Event::NodeViewRemoved { .. }
            | Event::PolicyChanged { .. }
            | Event::ExpiryHeld { .. }
            | Event::ExpiryReleased { .. }
            | Event::ResourceApplied { .. }
            | Event::ResourceDeleted { .. } => {}
        }
    }
    lives
}

/// Every view, as it was set last.
pub fn views(events: &[Envelope]) -> BTreeMap<&ViewName, &NodeView> {
    let mut views = BTreeMap::new();
    for envelope in events {
        match &envelope.event {
            Event::NodeViewSet { name, view } => drop(views.insert(name, view)),
            Event::NodeViewRemoved { name } => drop(views.remove(name)),
            _ => {}
        }
    }
    views
}

/// The lives that go on.
pub fn living(events: &[Envelope]) -> Vec<Life<'_>> {
    lives(events).into_iter().filter(|life| life.ended.is_none()).collect()
}

/// A key, an address and a port of a host have one owner at a time.
fn may_begin(lives: &[Life<'_>], key: &WorkerKey, registration: &Registration) -> bool {
    let wanted: Vec<&EndpointAddress> = registration.endpoints.iter().map(|one| &one.address).collect();
    let unique = wanted.iter().all(|address| wanted.iter().filter(|other| *other == address).count() == 1);
    let free = lives.iter().filter(|life| life.ended.is_none()).all(|life| {
        let clash = |held: &EndpointAddress| {
            let same_port = |address: &EndpointAddress| {
                key.host == life.key.host && address.port().is_some() && address.port() == held.port()
            };
            wanted.iter().any(|address| *address == held || same_port(address))
        };
        life.key != key && !life.registration.endpoints.iter().any(|one| clash(&one.address))
    });
    unique && free
}

fn meant<'a, 'b>(lives: &'a mut [Life<'b>], worker: &WorkerRef) -> Option<&'a mut Life<'b>> {
    lives
        .iter_mut()
        .find(|life| life.ended.is_none() && *life.key == worker.key && life.generation == worker.generation)
}

/// At which IP addresses a registration listens.
pub(super) fn addresses(registration: &Registration) -> impl Iterator<Item = SocketAddr> + '_ {
    registration.endpoints.iter().filter_map(|endpoint| match endpoint.address {
        EndpointAddress::Ip(address) => Some(address),
        EndpointAddress::Unix(_) => None,
    })
}

impl Life<'_> {
    pub(super) fn is_draining(&self) -> bool {
        self.said.iter().any(|event| matches!(event, Event::WorkerDraining { .. }))
    }

    /// The last thing that the worker said of itself.
    pub(super) fn last_word(&self) -> Option<&Event> {
        let words = self.said.iter().rev();
        words.copied().find(|e| {
            matches!(
                e,
                Event::WorkerReady { .. } | Event::WorkerUnready { .. } | Event::WorkerDraining { .. }
            )
        })
    }

    /// How its connection was lost, if nobody has spoken for it since.
    pub(super) fn lost(&self) -> Option<DisconnectCause> {
        let last = self.said.iter().rev().find_map(|event| match event {
            Event::WorkerDisconnected { cause, .. } => Some(Some(*cause)),
            Event::WorkerReconnected { .. } => Some(None),
            _ => None,
        });
        last.flatten()
    }

    /// Whether its connection was lost, and nobody has spoken for it since.
    pub(super) fn is_disconnected(&self) -> bool {
        self.lost().is_some()
    }

    /// Whether silence is what it would die of: not of a connection that is there, nor of one that was closed.
    pub(super) fn can_be_silent(&self) -> bool {
        match self.lost() {
            Some(DisconnectCause::Closed) => false,
            Some(DisconnectCause::Silent) => true,
            None => self.is_renewed() || self.is_awaited(),
        }
    }

    /// Who speaks for it.
    pub(super) fn speaker(&self) -> Option<&SessionId> {
        let mut speaker = Some(&self.registration.session);
        for event in &self.said {
            match event {
                Event::WorkerReconnected { session, .. } => speaker = Some(session),
                Event::WorkerDisconnected { .. } | Event::ReplicaStarted { .. } => speaker = None,
                _ => {}
            }
        }
        speaker
    }

    /// How often the control plane has started since anybody spoke for it; one that did not run for ten seconds before the
    /// next start could not be answered, and does not count.
    pub(super) fn missed_starts(&self) -> usize {
        let ran_ms = |pair: &[Timestamp]| pair[1].as_millis().saturating_sub(pair[0].as_millis());
        let answerable = self.starts.windows(2).filter(|pair| ran_ms(pair) >= 10_000).count();
        answerable + usize::from(!self.starts.is_empty())
    }

    /// Whether its lease is renewed, and no connection is its life.
    pub(super) fn is_renewed(&self) -> bool {
        matches!(self.registration.lease, Lease::Ttl { .. })
    }

    /// Whether the control plane waits for it after a start.
    pub(super) fn is_awaited(&self) -> bool {
        self.speaker().is_none() && !self.is_disconnected()
    }

    /// What each of those who watch it said last.
    pub(super) fn opinions(&self) -> Vec<(&HealthSource, Verdict, &str)> {
        let mut opinions: Vec<(&HealthSource, Verdict, &str)> = Vec::new();
        for event in &self.said {
            if let Event::WorkerHealthReported { source, verdict, reason, .. } = event {
                opinions.retain(|(known, _, _)| *known != source);
                opinions.push((source, *verdict, reason));
            }
        }
        opinions
    }

    /// Its share of the load.
    pub(super) fn weight(&self) -> Option<NonZeroU32> {
        let last = self.said.iter().rev().find_map(|event| match event {
            Event::WorkerReweighted { weight, .. } => Some(*weight),
            _ => None,
        });
        last.unwrap_or(self.registration.weight)
    }

    /// Whether a policy has a say in its health: not once it drains, and not before it was ready.
    pub(super) fn is_open(&self) -> bool {
        !matches!(self.health(&ClusterPolicy::default()), None | Some(Health::Draining))
    }

    /// What is published of it; what was never in does not come in as unhealthy or draining.
    pub(super) fn health(&self, policy: &ClusterPolicy) -> Option<Health> {
        let was_ready = self.said.iter().any(|event| matches!(event, Event::WorkerReady { .. }));
        if self.registration.readiness == Readiness::Reported && !was_ready {
            return None;
        }
        let says = |said: Verdict| self.opinions().iter().any(|(_, verdict, _)| *verdict == said);
        Some(match self.last_word() {
            Some(Event::WorkerDraining { .. }) => Health::Draining,
            Some(Event::WorkerUnready { .. }) if policy.unready == UnreadyAs::Absent => return None,
            Some(Event::WorkerUnready { .. }) => Health::Unhealthy,
            _ if self.is_disconnected() || says(Verdict::Unhealthy) => Health::Unhealthy,
            _ if says(Verdict::Degraded) && policy.degraded == DegradedAs::Degraded => Health::Degraded,
            _ => Health::Healthy,
        })
    }
}

/// What a host said last.
pub(super) fn report<'a>(events: &'a [Envelope], name: &HostName) -> Option<&'a HostReport> {
    let last = events.iter().rev().find_map(|envelope| match &envelope.event {
        Event::HostReported { host, report } if host == name => Some(Some(report)),
        Event::HostRemoved { host } if host == name && takes_out(events, host, envelope.offset) => Some(None),
        _ => None,
    });
    last.flatten()
}

/// Whether the host is being emptied, as was said since it was last removed.
pub(super) fn is_emptied(events: &[Envelope], name: &HostName) -> bool {
    let last = events.iter().rev().find_map(|envelope| match &envelope.event {
        Event::HostDraining { host, .. } if host == name => Some(true),
        Event::HostRemoved { host } if host == name && takes_out(events, host, envelope.offset) => {
            Some(false)
        }
        _ => None,
    });
    last == Some(true)
}

/// Whether a removal of the host there takes it out: it makes no sense while somebody lives on it.
pub(super) fn takes_out(events: &[Envelope], host: &HostName, offset: Offset) -> bool {
    let there = |life: &Life<'_>| {
        life.key.host == *host
            && life.generation.offset() < offset
            && life.ended.is_none_or(|(ended, _)| ended > offset)
    };
    !lives(events).iter().any(there)
}

/// Where the hold of expiry began that is not released.
pub(super) fn hold(events: &[Envelope]) -> Option<Offset> {
    let last = events.iter().rev().find_map(|envelope| match &envelope.event {
        Event::ExpiryHeld { .. } => Some(Some(envelope.offset)),
        Event::ExpiryReleased { .. } => Some(None),
        _ => None,
    });
    last.flatten()
}

/// Where a host stands.
pub(super) fn locality(events: &[Envelope], host: &HostName) -> Locality {
    report(events, host).map(|report| report.locality.clone()).unwrap_or_default()
}

/// The address of endpoints that name none.
pub(super) fn address(events: &[Envelope], host: &HostName) -> IpAddr {
    report(events, host).map_or(IpAddr::V4(Ipv4Addr::LOCALHOST), |report| report.addresses[0])
}

/// What a service is declared to be. A retirement while somebody lives makes no sense, and changes nothing.
pub(super) fn spec<'a>(events: &'a [Envelope], name: &ServiceName) -> Option<&'a ServiceSpec> {
    let lived = |index| living(&events[..index]).iter().any(|life| life.key.service == *name);
    let last = events.iter().enumerate().rev().find_map(|(index, envelope)| match &envelope.event {
        Event::ServiceDeclared { service, spec } if service == name => Some(Some(spec)),
        Event::ServiceRetired { service } if service == name && !lived(index) => Some(None),
        _ => None,
    });
    last.flatten()
}

/// Every service that was ever declared.
pub(super) fn declared(events: &[Envelope]) -> BTreeSet<&ServiceName> {
    let named = events.iter().filter_map(|envelope| match &envelope.event {
        Event::ServiceDeclared { service, .. } => Some(service),
        _ => None,
    });
    named.collect()
}

/// The name under which a port of a service is published: the service for the port that is declared first, or else was
/// known first since the service last had nobody; `service:port` for the others.
pub(super) fn cluster(
    spec: Option<&ServiceSpec>,
    lives: &[Life<'_>],
    service: &ServiceName,
    port: &PortName,
) -> String {
    let of_service = || lives.iter().filter(|life| life.key.service == *service);
    let mut first: Option<&PortName> = None;
    for life in of_service() {
        let lived = |other: &Life<'_>| {
            other.generation < life.generation
                && other.ended.is_none_or(|(offset, _)| offset > life.generation.offset())
        };
        if !of_service().any(lived) {
            first = None;
        }
        first = first.or(life.registration.endpoints.first().map(|endpoint| &endpoint.port));
    }
    let declared = spec.and_then(|spec| spec.ports.first()).map(|port| &port.name);
    if declared.or(first) == Some(port) { service.to_string() } else { format!("{service}:{port}") }
}

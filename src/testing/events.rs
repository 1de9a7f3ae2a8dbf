//! Events that nobody decided: from an older build, from a damaged mind, in any order.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::num::NonZeroU32;
use std::ops::Range;

use proptest::collection::vec;
use proptest::option::weighted;
use proptest::prelude::*;
use proptest::sample::Index;

use super::names::{host, port, service, session, socket_path, view_name, worker};
use super::parts::{
    busy_port, disconnect_cause, health_source, lease, locality, node_view, readiness, reason, rejection,
    removal_cause, report, rules, spec, verdict,
};
use super::resources::{applying, key};
use crate::command::Applying;
use crate::events::event::{Endpoint, EndpointAddress, Registration};
use crate::events::{Actor, Envelope, Event, Generation, Offset, ReplicaId, Timestamp, WorkerRef};

/// Events as a log could hold them: in order, and otherwise without much sense. Half of what is said of workers is
/// said of registrations that were.
pub fn events(count: Range<usize>) -> impl Strategy<Value = Vec<Envelope>> {
    vec((event(), 0..40_000_u64, weighted(0.5, any::<Index>())), count).prop_map(|events| {
        let mut now_ms = 0;
        let mut registered: Vec<WorkerRef> = Vec::new();
        let place = |(number, (mut event, after_ms, aim)): (u64, (Event, u64, Option<Index>))| {
            now_ms += after_ms;
            let offset = Offset::new(number);
            if let Event::WorkerRegistered { worker, .. } = &event {
                registered.push(WorkerRef { key: worker.clone(), generation: Generation::at(offset) });
            }
            if let (Some(worker), Some(aim), false) = (reference_of(&mut event), aim, registered.is_empty()) {
                *worker = aim.get(&registered).clone();
            }
            let recorded_at = Timestamp::from_millis(now_ms);
            Envelope { offset, recorded_at, actor: Actor::System, correlation: None, event }
        };
        (1..).zip(events).map(place).collect()
    })
}

/// Which registration an event is about.
fn reference_of(event: &mut Event) -> Option<&mut WorkerRef> {
    match event {
        Event::WorkerReady { worker }
        | Event::WorkerUnready { worker, .. }
        | Event::WorkerDraining { worker, .. }
        | Event::WorkerDisconnected { worker, .. }
        | Event::WorkerReconnected { worker, .. }
        | Event::WorkerRemoved { worker, .. }
        | Event::WorkerHealthReported { worker, .. }
        | Event::WorkerReweighted { worker, .. } => Some(worker),
        Event::ReplicaStarted { .. }
        | Event::HostReported { .. }
        | Event::WorkerRegistered { .. }
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
        | Event::ResourceDeleted { .. } => None,
    }
}

/// Low offsets, of registrations that mostly never were.
fn reference() -> impl Strategy<Value = WorkerRef> {
    (worker(), 1..12_u64).prop_map(|(key, at)| WorkerRef { key, generation: Generation::at(Offset::new(at)) })
}

fn event() -> impl Strategy<Value = Event> {
    let replica = ReplicaId::new("r").expect("a valid name");
    prop_oneof![
        1 => Just(Event::ReplicaStarted { replica, version: String::new() }),
        2 => (host(), report()).prop_map(|(host, report)| Event::HostReported { host, report }),
        8 => (worker(), registration())
            .prop_map(|(worker, registration)| Event::WorkerRegistered { worker, registration }),
        4 => reference().prop_map(|worker| Event::WorkerReady { worker }),
        3 => (reference(), "[a-z]{0,3}").prop_map(|(worker, reason)| Event::WorkerUnready { worker, reason }),
        4 => (reference(), any::<u32>()).prop_map(|(worker, drain_ms)| Event::WorkerDraining {
            worker,
            reason: String::new(),
            drain_ms
        }),
        2 => (reference(), disconnect_cause())
            .prop_map(|(worker, cause)| Event::WorkerDisconnected { worker, cause }),
        2 => (reference(), session())
            .prop_map(|(worker, session)| Event::WorkerReconnected { worker, session }),
        2 => (reference(), removal_cause()).prop_map(|(worker, cause)| Event::WorkerRemoved { worker, cause }),
        1 => rejection().prop_map(|rejection| Event::UpdateRejected { rejection }),
        2 => (reference(), health_source(), verdict(), reason()).prop_map(
            |(worker, source, verdict, reason)| Event::WorkerHealthReported { worker, source, verdict, reason }
        ),
        2 => (reference(), 0..1_000_u32)
            .prop_map(|(worker, weight)| Event::WorkerReweighted { worker, weight: NonZeroU32::new(weight) }),
        1 => (host(), reason()).prop_map(|(host, reason)| Event::HostDraining { host, reason }),
        1 => host().prop_map(|host| Event::HostRemoved { host }),
        1 => (host(), busy_port()).prop_map(|(host, port)| Event::PortBusy { host, port: port.get() }),
        2 => (service(), spec()).prop_map(|(service, spec)| Event::ServiceDeclared { service, spec }),
        1 => service().prop_map(|service| Event::ServiceRetired { service }),
        1 => (view_name(), node_view()).prop_map(|(name, view)| Event::NodeViewSet { name, view }),
        1 => view_name().prop_map(|name| Event::NodeViewRemoved { name }),
        2 => (weighted(0.7, service()), rules())
            .prop_map(|(service, policy)| Event::PolicyChanged { service, policy }),
        1 => Just(Event::ExpiryHeld { reason: String::new(), until: Timestamp::from_millis(1) }),
        1 => Just(Event::ExpiryReleased { reason: String::new() }),
        2 => applying().prop_map(|Applying { key, message }| Event::ResourceApplied { resource: key, message }),
        2 => key().prop_map(|resource| Event::ResourceDeleted { resource }),
    ]
}

fn registration() -> impl Strategy<Value = Registration> {
    let ip = (1..3_u8, 20_000..20_004_u16).prop_map(|(last, number)| {
        EndpointAddress::Ip(SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, last)), number))
    });
    let address = prop_oneof![5 => ip, 1 => socket_path().prop_map(EndpointAddress::Unix)];
    let endpoint = (port(), address).prop_map(|(port, address)| Endpoint { port, address });
    let share = (weighted(0.5, 1..100_u32), 0..3_u32);
    let parts = (vec(endpoint, 0..3), readiness(), share, weighted(0.2, locality()), session(), lease());
    parts.prop_map(|(endpoints, readiness, (weight, priority), locality, session, lease)| Registration {
        process: None,
        endpoints,
        readiness,
        weight: weight.and_then(NonZeroU32::new),
        priority,
        locality,
        metadata: BTreeMap::new(),
        session,
        lease,
    })
}

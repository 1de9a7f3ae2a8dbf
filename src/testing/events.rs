//! Events that nobody decided: from an older build, from a damaged mind, in any order.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::num::NonZeroU32;
use std::ops::Range;

use proptest::collection::vec;
use proptest::option::weighted;
use proptest::prelude::*;

use super::names::{host, port, session, worker};
use super::steps::{disconnect_cause, lease, locality, readiness, rejection, removal_cause, report};
use crate::events::event::{Endpoint, EndpointAddress, Registration};
use crate::events::{Actor, Envelope, Event, Generation, Offset, ReplicaId, Timestamp, WorkerRef};

/// Events as a log could hold them: in order, and otherwise without any sense.
pub fn events(count: Range<usize>) -> impl Strategy<Value = Vec<Envelope>> {
    vec((event(), 0..40_000_u64), count).prop_map(|events| {
        let mut now_ms = 0;
        let place = |(number, (event, after_ms)): (u64, (Event, u64))| {
            now_ms += after_ms;
            Envelope {
                offset: Offset::new(number),
                recorded_at: Timestamp::from_millis(now_ms),
                actor: Actor::System,
                correlation: None,
                event,
            }
        };
        (1..).zip(events).map(place).collect()
    })
}

/// Low offsets, so that some of the references are good.
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
        2 => (reference(), any::<u32>()).prop_map(|(worker, drain_ms)| Event::WorkerDraining {
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
    ]
}

fn registration() -> impl Strategy<Value = Registration> {
    let endpoint = (port(), 1..3_u8, 20_000..20_004_u16).prop_map(|(port, last, number)| Endpoint {
        port,
        address: EndpointAddress::Ip(SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, last)), number)),
    });
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

//! Workers that have nothing to do with each other may report in any order.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use foldplane::events::event::{
    DisconnectCause, Endpoint, EndpointAddress, Lease, Locality, Readiness, Registration, RemovalCause,
};
use foldplane::events::{
    Actor, Envelope, Event, Generation, HostName, Offset, PortName, ServiceName, SessionId, Timestamp,
    WorkerId, WorkerKey, WorkerRef,
};
use foldplane::projection::Snapshot;
use foldplane::projection::resources::TypeUrl;
use proptest::collection::vec;
use proptest::prelude::*;

/// What a worker does after its registration.
#[derive(Clone, Copy, Debug)]
enum Act {
    Ready,
    Unready,
    Drain,
    Disconnect,
    Remove,
}

/// One worker's whole life; the number tells it from the others.
#[derive(Clone, Debug)]
struct Script {
    number: u8,
    zone: bool,
    readiness: Readiness,
    acts: Vec<Act>,
}

impl Script {
    fn key(&self) -> WorkerKey {
        WorkerKey {
            service: ServiceName::new("web").unwrap(),
            host: HostName::new(&format!("h{}", self.number)).unwrap(),
            id: WorkerId::new("1").unwrap(),
        }
    }

    fn registered(&self) -> Event {
        let ip = IpAddr::V4(Ipv4Addr::new(192, 0, 2, self.number));
        let registration = Registration {
            process: None,
            endpoints: vec![Endpoint {
                port: PortName::new("http").unwrap(),
                address: EndpointAddress::Ip(SocketAddr::new(ip, 20_000)),
            }],
            readiness: self.readiness,
            weight: None,
            priority: u32::from(self.number % 2),
            locality: self.zone.then(|| Locality { zone: "a".to_owned(), ..Locality::default() }),
            metadata: BTreeMap::new(),
            session: SessionId::new("s").unwrap(),
            lease: Lease::Session { disconnect_grace_ms: 0 },
        };
        Event::WorkerRegistered { worker: self.key(), registration }
    }

    fn event(&self, place: usize, generation: Generation) -> Event {
        let worker = WorkerRef { key: self.key(), generation };
        match self.acts[place] {
            Act::Ready => Event::WorkerReady { worker },
            Act::Unready => Event::WorkerUnready { worker, reason: String::new() },
            Act::Drain => Event::WorkerDraining { worker, reason: String::new(), drain_ms: 1 },
            Act::Disconnect => Event::WorkerDisconnected { worker, cause: DisconnectCause::Silent },
            Act::Remove => Event::WorkerRemoved { worker, cause: RemovalCause::Operator },
        }
    }
}

/// A log in which the workers take turns as `turns` says; whoever is not called comes at the end.
fn log(scripts: &[Script], turns: &[usize]) -> Vec<Envelope> {
    let mut generations: BTreeMap<u8, Generation> = BTreeMap::new();
    let mut done: BTreeMap<u8, usize> = BTreeMap::new();
    let mut log: Vec<Envelope> = Vec::new();
    let rest = scripts.iter().enumerate().flat_map(|(index, script)| vec![index; script.acts.len() + 1]);
    for turn in turns.iter().map(|turn| turn % scripts.len()).chain(rest) {
        let script = &scripts[turn];
        let offset = log.last().map_or(Offset::new(1), |last| last.offset.next());
        let place = done.entry(script.number).or_default();
        let event = match generations.get(&script.number) {
            None => {
                generations.insert(script.number, Generation::at(offset));
                script.registered()
            }
            Some(_) if *place == script.acts.len() => continue,
            Some(generation) => {
                *place += 1;
                script.event(*place - 1, *generation)
            }
        };
        let recorded_at = Timestamp::from_millis(0);
        log.push(Envelope { offset, recorded_at, actor: Actor::System, correlation: None, event });
    }
    log
}

/// Names and bytes of all resources, without their versions, which tell of places in the log.
fn content(log: &[Envelope]) -> BTreeSet<(String, Vec<u8>)> {
    let (snapshot, _) = Snapshot::default().fold(log);
    let sets = TypeUrl::ALL.map(|type_url| snapshot.resources().of(type_url).clone());
    sets.iter().flat_map(|set| set.iter()).map(|r| (r.name.to_string(), r.any().to_vec())).collect()
}

fn scripts() -> impl Strategy<Value = Vec<Script>> {
    let act = prop::sample::select(vec![Act::Ready, Act::Unready, Act::Drain, Act::Disconnect, Act::Remove]);
    let readiness = prop::sample::select(vec![Readiness::Assumed, Readiness::Reported]);
    let life = (any::<bool>(), readiness, vec(act, 0..5));
    vec(life, 2..8).prop_map(|lives| {
        let script = |(number, (zone, readiness, acts))| Script { number, zone, readiness, acts };
        (1..).zip(lives).map(script).collect()
    })
}

proptest! {
    // F44: kumahq/kuma#17166, istio/istio#18088, istio/istio#40930
    #[test]
    fn independent_workers_may_report_in_any_order(
        scripts in scripts(),
        one in vec(0..8_usize, 0..40),
        other in vec(0..8_usize, 0..40),
    ) {
        prop_assert_eq!(content(&log(&scripts, &one)), content(&log(&scripts, &other)));
    }
}

//! Events to write: one of every kind, and as many as a test wants.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use foldplane::events::event::{
    ClusterPolicy, DegradedAs, Delivery, DisconnectCause, Endpoint, EndpointAddress, ExitStatus,
    HealthSource, HostReport, LbPolicy, Lease, Locality, LocalityWeighting, Policy, PortRange, PortSpec,
    Process, Protocol, Readiness, Registration, RemovalCause, ServiceSpec, UnreadyAs, UpdateRejection,
    Verdict,
};
use foldplane::events::log::{EventLog, LogError, LogReader};
use foldplane::events::view::{NodeSelector, NodeView};
use foldplane::events::{
    Actor, CorrelationId, Envelope, Event, Generation, Glob, HostName, Offset, PortName, ReplicaId,
    ResourceKey, ResourceKind, ServiceName, SessionId, SocketPath, Timestamp, ViewName, WorkerId, WorkerKey,
    WorkerRef,
};

/// One event of every kind, in the order of their numbers in the bytes.
pub(crate) fn every_event() -> Vec<Event> {
    let worker = worker_ref(7);
    vec![
        Event::ReplicaStarted { replica: ReplicaId::new("r-1").unwrap(), version: "0.1.0".to_owned() },
        Event::HostReported { host: worker.key.host.clone(), report: host_report() },
        Event::WorkerRegistered { worker: worker.key.clone(), registration: registration() },
        Event::WorkerReady { worker: worker.clone() },
        Event::WorkerUnready { worker: worker.clone(), reason: "warming its cache".to_owned() },
        Event::WorkerDraining { worker: worker.clone(), reason: "deploy".to_owned(), drain_ms: 5_000 },
        Event::WorkerDisconnected { worker: worker.clone(), cause: DisconnectCause::Silent },
        Event::WorkerReconnected { worker: worker.clone(), session: SessionId::new("s-2").unwrap() },
        Event::WorkerRemoved { worker: worker.clone(), cause: RemovalCause::Exited(ExitStatus::Signal(9)) },
        Event::UpdateRejected { rejection: rejection() },
        Event::WorkerHealthReported {
            worker: worker.clone(),
            source: HealthSource::Custom(PortName::new("disk").unwrap()),
            verdict: Verdict::Unhealthy,
            reason: "99 % full".to_owned(),
        },
        Event::WorkerReweighted { worker: worker.clone(), weight: 5.try_into().ok() },
        Event::HostDraining { host: worker.key.host.clone(), reason: "kernel update".to_owned() },
        Event::HostRemoved { host: worker.key.host.clone() },
        Event::PortBusy { host: worker.key.host, port: 20_017 },
        Event::ServiceDeclared { service: worker.key.service.clone(), spec: service_spec() },
        Event::ServiceRetired { service: worker.key.service.clone() },
        Event::NodeViewSet { name: ViewName::new("edge").unwrap(), view: view() },
        Event::NodeViewRemoved { name: ViewName::new("edge").unwrap() },
        Event::PolicyChanged { service: Some(worker.key.service), policy: policy() },
        Event::ExpiryHeld {
            reason: "12 of 20 live leases are silent, on 3 hosts".to_owned(),
            until: Timestamp::from_millis(1_800_000_300_000),
        },
        Event::ExpiryReleased { reason: "it was held for 300 s".to_owned() },
        Event::ResourceApplied {
            resource: resource(),
            message: vec![0x0A, 0x04, b'e', b'd', b'g', b'e'].into(),
        },
        Event::ResourceDeleted { resource: resource() },
        Event::WorkerRegistered { worker: worker_ref(7).key, registration: registration_of_a_socket() },
    ]
}

fn resource() -> ResourceKey {
    ResourceKey { kind: ResourceKind::Listener, name: "edge".to_owned() }
}

fn worker_ref(generation: u64) -> WorkerRef {
    let key = WorkerKey {
        service: ServiceName::new("pay").unwrap(),
        host: HostName::new("h1").unwrap(),
        id: WorkerId::new("a").unwrap(),
    };
    WorkerRef { key, generation: Generation::at(Offset::new(generation)) }
}

fn host_report() -> HostReport {
    HostReport {
        addresses: vec!["192.0.2.1".parse().unwrap(), "2001:db8::1".parse().unwrap()],
        port_range: PortRange::default(),
        locality: Locality { region: "eu".to_owned(), zone: "eu-1".to_owned(), sub_zone: String::new() },
    }
}

fn registration() -> Registration {
    let address = |text: &str| EndpointAddress::Ip(text.parse().unwrap());
    let port = |name: &str| PortName::new(name).unwrap();
    Registration {
        process: Some(Process { pid: 4711, start_ticks: 123_456_789, boot_id: "b0".to_owned() }),
        endpoints: vec![
            Endpoint { port: port("http"), address: address("192.0.2.1:9001") },
            Endpoint { port: port("grpc"), address: address("[2001:db8::1]:9002") },
        ],
        readiness: Readiness::Reported,
        weight: 3.try_into().ok(),
        priority: 1,
        locality: Some(Locality::default()),
        metadata: BTreeMap::from([("colour".to_owned(), "blue".to_owned())]),
        session: SessionId::new("s-1").unwrap(),
        lease: Lease::Session { disconnect_grace_ms: 250 },
    }
}

fn registration_of_a_socket() -> Registration {
    let path = SocketPath::new("/run/pay.sock").unwrap();
    let endpoint = Endpoint { port: PortName::new("http").unwrap(), address: EndpointAddress::Unix(path) };
    Registration { endpoints: vec![endpoint], ..registration() }
}

fn policy() -> Policy {
    Policy {
        include: Some("!has(worker.metadata.test)".to_owned()),
        cluster: None,
        health: Some("worker.monitors.memory == 'degraded' ? 'UNHEALTHY' : default".to_owned()),
    }
}

fn service_spec() -> ServiceSpec {
    let port = |name: &str, number: Option<u16>, protocol| PortSpec {
        name: PortName::new(name).unwrap(),
        number: number.and_then(|number| number.try_into().ok()),
        protocol,
    };
    ServiceSpec {
        ports: vec![port("http", None, Protocol::Tcp), port("grpc", Some(9_002), Protocol::Http2)],
        cluster: ClusterPolicy {
            lb: LbPolicy::RingHash,
            connect_timeout_ms: 250.try_into().ok(),
            panic_threshold: Some(0),
            locality_weighting: LocalityWeighting::On,
            degraded: DegradedAs::Degraded,
            unready: UnreadyAs::Absent,
            delivery: Delivery::Leds,
        },
        drain_ms: Some(30_000),
    }
}

fn view() -> NodeView {
    let glob = |text: &str| Glob::new(text).unwrap();
    let nodes = NodeSelector {
        ids: vec![glob("edge-*")],
        clusters: vec![glob("front")],
        metadata: BTreeMap::from([("zone".to_owned(), "a".to_owned())]),
    };
    NodeView { nodes, services: vec![glob("web"), glob("pay-?")] }
}

fn rejection() -> UpdateRejection {
    UpdateRejection {
        node: "proxy-1".to_owned(),
        type_url: "type.googleapis.com/envoy.config.cluster.v3.Cluster".to_owned(),
        names: vec!["pay".to_owned()],
        version: "7-0011223344556677".to_owned(),
        message: "bad port".to_owned(),
    }
}

/// The event at `offset` in every log of these tests: all kinds in turn, and recognisable by its time.
pub(crate) fn envelope(offset: u64) -> Envelope {
    let kinds = every_event();
    let index = usize::try_from(offset).unwrap() % kinds.len();
    Envelope {
        offset: Offset::new(offset),
        recorded_at: Timestamp::from_millis(1_800_000_000_000 + offset),
        actor: Actor::Anonymous { peer: "127.0.0.1:51234".to_owned() },
        correlation: (offset.is_multiple_of(3)).then(|| CorrelationId(format!("c-{offset}"))),
        event: kinds[index].clone(),
    }
}

/// The events from `first` to `last`.
pub(crate) fn envelopes(first: u64, last: u64) -> Vec<Envelope> {
    (first..=last).map(envelope).collect()
}

/// Appends the events from the head on up to `last`, `batch` at a time.
pub(crate) fn fill(log: &mut dyn EventLog, last: u64, batch: u64) {
    let mut first = log.head().offset.get() + 1;
    while first <= last {
        let end = last.min(first + batch - 1);
        log.append(&envelopes(first, end)).unwrap();
        first = end + 1;
    }
}

/// Everything from `from` on, or the first error.
pub(crate) fn read_all(log: &dyn LogReader, from: u64) -> Result<Vec<Envelope>, LogError> {
    log.read(Offset::new(from))?.collect()
}

/// Checks that the log holds the events from `first` to `last`, unaltered, and ends there.
#[track_caller]
pub(crate) fn check_holds(log: &dyn LogReader, first: u64, last: u64) {
    assert_eq!(log.head().offset.get(), last);
    let found = read_all(log, first).unwrap();
    assert_eq!(found.len() as u64, last + 1 - first);
    assert!(found == envelopes(first, last), "an event differs from what was written");
}

/// The content of every file below `dir`, by its path from there.
pub(crate) fn every_file(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                files.insert(path.strip_prefix(dir).unwrap().to_owned(), std::fs::read(&path).unwrap());
            }
        }
    }
    files
}

/// Copies a folder with all that is in it.
pub(crate) fn copy(from: &Path, to: &Path) {
    for (path, bytes) in every_file(from) {
        let target = to.join(path);
        std::fs::create_dir_all(target.parent().unwrap()).unwrap();
        std::fs::write(target, bytes).unwrap();
    }
}

/// How many rounds a test runs: few by default, the full number by the environment variable (docs/FORMAT.md).
pub(crate) fn number_of(variable: &str, default: u64) -> u64 {
    std::env::var(variable).map_or(default, |text| text.parse().unwrap())
}

/// Numbers that look like chance and are the same in every run.
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// A number below `end`; zero when `end` is zero.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16).checked_rem(end).unwrap_or(0)
    }
}

/// Lives of a few workers that follow one another as they would: registered, ready, unready, disconnected, removed.
pub(crate) fn lives(seed: u64, count: u64) -> Vec<Envelope> {
    let mut chance = Chance::new(seed);
    let mut generations = [None; 8];
    (1..=count)
        .map(|offset| {
            let index = chance.below(8) as usize;
            let event = next_of_life(index, offset, &mut generations[index], &mut chance);
            Envelope { event, ..envelope(offset) }
        })
        .collect()
}

fn next_of_life(index: usize, offset: u64, generation: &mut Option<u64>, chance: &mut Chance) -> Event {
    let key = WorkerKey { id: WorkerId::new(&format!("w{index}")).unwrap(), ..worker_ref(1).key };
    let Some(at) = *generation else {
        *generation = Some(offset);
        let address = format!("192.0.2.{index}:{}", 9_000 + index);
        let endpoint = Endpoint {
            port: PortName::new("http").unwrap(),
            address: EndpointAddress::Ip(address.parse().unwrap()),
        };
        let registration = Registration { endpoints: vec![endpoint], ..registration() };
        return Event::WorkerRegistered { worker: key, registration };
    };
    let worker = WorkerRef { key, generation: Generation::at(Offset::new(at)) };
    match chance.below(6) {
        0 | 1 => Event::WorkerReady { worker },
        2 => Event::WorkerUnready { worker, reason: "warming".to_owned() },
        3 => Event::WorkerDraining { worker, reason: "deploy".to_owned(), drain_ms: 10 },
        4 => Event::WorkerDisconnected { worker, cause: DisconnectCause::Closed },
        _ => {
            *generation = None;
            Event::WorkerRemoved { worker, cause: RemovalCause::Drained }
        }
    }
}

/// So many workers that live at once, on many hosts and of many services.
pub(crate) fn crowd(workers: u64) -> Vec<Envelope> {
    const OF_A_SERVICE: u64 = 100;
    (1..=workers)
        .map(|offset| {
            let [host, port] = [offset / 10_000, offset % 10_000];
            let worker = WorkerKey {
                service: ServiceName::new(&format!("s{}", offset / OF_A_SERVICE)).unwrap(),
                host: HostName::new(&format!("h{host}")).unwrap(),
                id: WorkerId::new(&format!("w{offset}")).unwrap(),
            };
            let address = format!("192.0.2.{host}:{}", 20_000 + port);
            let endpoint = Endpoint {
                port: PortName::new("http").unwrap(),
                address: EndpointAddress::Ip(address.parse().unwrap()),
            };
            let registration = Registration { endpoints: vec![endpoint], ..registration() };
            Envelope { event: Event::WorkerRegistered { worker, registration }, ..envelope(offset) }
        })
        .collect()
}

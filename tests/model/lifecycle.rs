//! The lifecycle as a table: what every command and every event does in every state. Nothing is left to chance: the table is
//! `tests/testdata/lifecycle.txt`, and `UPDATE_EXPECT=1 cargo test --test model lifecycle` writes it anew. Read what differs.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::num::NonZeroU16;

use expect_test::expect_file;
use foldplane::command::{Command, Listen, PortRequest, Registering, ResourceChange, decide};
use foldplane::events::event::{
    DisconnectCause, HealthSource, HostReport, Lease, Locality, Policy, PortRange, Readiness, Registration,
    RemovalCause, ServiceSpec, UpdateRejection, Verdict,
};
use foldplane::events::view::{NodeSelector, NodeView};
use foldplane::events::{
    Actor, Envelope, Event, Generation, HostName, Offset, PortName, ReplicaId, ResourceKey, ResourceKind,
    ServiceName, SessionId, Timestamp, ViewName, WorkerId, WorkerKey, WorkerRef,
};
use foldplane::projection::state::{Link, Phase, State};
use foldplane::projection::{Outcome, evolve, health};

/// When everything here happens.
const NOW: Timestamp = Timestamp::from_millis(1_000_000);

const GRACE: Lease = Lease::Session { disconnect_grace_ms: 5_000 };
const NO_GRACE: Lease = Lease::Session { disconnect_grace_ms: 0 };
const RENEWED: Lease = Lease::Ttl { ttl_ms: 20_000 };

fn key() -> WorkerKey {
    WorkerKey { service: ServiceName::new("web").unwrap(), host: host(), id: WorkerId::new("a").unwrap() }
}

fn host() -> HostName {
    HostName::new("h1").unwrap()
}

fn session(name: &str) -> SessionId {
    SessionId::new(name).unwrap()
}

fn report() -> HostReport {
    HostReport {
        addresses: vec!["192.0.2.1".parse().unwrap()],
        port_range: PortRange { first: 20_000, last: 20_009 },
        locality: Locality::default(),
    }
}

fn registering(readiness: Readiness, lease: Lease, name: &str) -> Registering {
    let listen = Listen::Port { number: NonZeroU16::new(20_000), address: None };
    let ports = vec![PortRequest { name: PortName::new("http").unwrap(), listen }];
    Registering { ports, readiness, ..Registering::new(key(), session(name), lease) }
}

/// A state, and the worker that it is about.
struct Case {
    name: &'static str,
    state: State,
    readiness: Readiness,
    lease: Lease,
}

impl Case {
    fn fold(&self, event: Event) -> (State, Outcome) {
        let mut state = self.state.clone();
        let outcome = happen(&mut state, event);
        (state, outcome)
    }

    fn worker(&self) -> WorkerRef {
        let live = self.state.workers().get(&key());
        let generation = live.map_or(Generation::at(Offset::new(2)), |live| live.generation);
        WorkerRef { key: key(), generation }
    }
}

fn happen(state: &mut State, event: Event) -> Outcome {
    let offset = state.offset().next();
    evolve(state, &Envelope { offset, recorded_at: NOW, actor: Actor::System, correlation: None, event })
}

/// The state after these wishes, each of which must be granted.
fn case(name: &'static str, readiness: Readiness, lease: Lease, steps: &[&str]) -> Case {
    let mut state = State::default();
    for step in std::iter::once(&"host").chain(steps) {
        let before = Case { name, state: state.clone(), readiness, lease };
        let command = command(&before, step);
        for event in decide(&state, &command, NOW).unwrap() {
            assert_eq!(happen(&mut state, event), Outcome::Folded);
        }
    }
    Case { name, state, readiness, lease }
}

/// Every state in which a worker can be.
fn cases() -> Vec<Case> {
    let (assumed, reported) = (Readiness::Assumed, Readiness::Reported);
    vec![
        case("none", assumed, GRACE, &[]),
        case("removed", assumed, GRACE, &["register", "remove"]),
        case("registered, readiness assumed", assumed, GRACE, &["register"]),
        case("registered, readiness reported", reported, GRACE, &["register"]),
        case("ready", reported, GRACE, &["register", "ready"]),
        case("ready, no grace", reported, NO_GRACE, &["register", "ready"]),
        case("ready, a source says unhealthy", assumed, GRACE, &["register", "ready", "report health"]),
        case("unready after it was served", assumed, GRACE, &["register", "unready"]),
        case("unready before its first ready", reported, GRACE, &["register", "unready"]),
        case("draining", assumed, GRACE, &["register", "drain"]),
        case("draining, never ready", reported, GRACE, &["register", "drain"]),
        case("disconnected, closed", assumed, GRACE, &["register", "close session"]),
        case("disconnected, silent", assumed, NO_GRACE, &["register", "lose session"]),
        case("awaiting its rejoin", assumed, GRACE, &["register", "start"]),
        case("renewed", assumed, RENEWED, &["register"]),
        case("renewed, after our start", assumed, RENEWED, &["register", "start"]),
        case("on a host that is emptied", assumed, GRACE, &["register", "drain host"]),
    ]
}

/// The rows: a short name for each command.
const COMMANDS: [&str; 34] = [
    "start",
    "host",
    "register",
    "register from another session",
    "rejoin",
    "rejoin from another session",
    "rejoin, older generation",
    "renew",
    "renew, older generation",
    "ready",
    "ready, older generation",
    "unready",
    "drain",
    "remove",
    "remove, older generation",
    "report health",
    "reweight",
    "busy port",
    "drain host",
    "remove host",
    "close session",
    "lose session",
    "end grace",
    "expire",
    "expire, older generation",
    "review hold",
    "end hold",
    "refused update",
    "declare service",
    "retire service",
    "set view",
    "remove view",
    "set policy",
    "change resources",
];

fn command(case: &Case, row: &str) -> Command {
    let old = WorkerRef { generation: Generation::at(Offset::new(1)), ..case.worker() };
    let worker = if row.ends_with("older generation") { old } else { case.worker() };
    let since = Offset::new(1);
    let close = |cause| Command::CloseSession { session: session("s1"), cause };
    let source = HealthSource::Memory;
    match row.trim_end_matches(", older generation") {
        "start" => Command::StartReplica { replica: ReplicaId::new("r").unwrap(), version: "1".into() },
        "host" => Command::ReportHost { host: host(), report: report() },
        "register" => Command::Register(registering(case.readiness, case.lease, "s1")),
        "register from another session" => Command::Register(registering(case.readiness, case.lease, "s2")),
        "rejoin" => Command::Rejoin { worker, session: session("s1") },
        "rejoin from another session" => Command::Rejoin { worker, session: session("s2") },
        "renew" => Command::Renew { worker },
        "ready" => Command::Ready { worker },
        "unready" => Command::Unready { worker, reason: "full".into() },
        "drain" => Command::Drain { worker, reason: "deploy".into(), drain_ms: Some(5_000) },
        "remove" => Command::Remove { worker, cause: RemovalCause::Deregistered },
        "report health" => {
            Command::ReportHealth { worker, source, verdict: Verdict::Unhealthy, reason: "rss".into() }
        }
        "reweight" => Command::Reweight { worker, weight: 5.try_into().ok() },
        "busy port" => Command::ReportBusyPort { host: host(), port: 20_000.try_into().unwrap() },
        "drain host" => Command::DrainHost { host: host(), reason: "kernel".into(), drain_ms: Some(5_000) },
        "remove host" => Command::RemoveHost { host: host() },
        "close session" => close(DisconnectCause::Closed),
        "lose session" => close(DisconnectCause::Silent),
        "end grace" => Command::EndGrace { worker },
        "expire" => Command::ExpireSilent { overdue: BTreeSet::from([worker]), quiet: BTreeSet::new() },
        "review hold" => Command::ReviewHold { since, quiet: BTreeSet::from([worker]) },
        "end hold" => Command::EndHold { since, overdue: BTreeSet::from([worker]) },
        "refused update" => Command::RecordRejection { rejection: rejection() },
        "declare service" => Command::DeclareService { service: key().service, spec: ServiceSpec::default() },
        "retire service" => Command::RetireService { service: key().service },
        "set view" => Command::SetView { name: view_name(), view: view() },
        "remove view" => Command::RemoveView { name: view_name() },
        "set policy" => Command::SetPolicy { service: None, policy: policy() },
        "change resources" => Command::ChangeResources(ResourceChange::default()),
        other => panic!("no such row: {other}"),
    }
}

fn edge() -> ResourceKey {
    ResourceKey { kind: ResourceKind::Listener, name: "edge".into() }
}

fn rejection() -> UpdateRejection {
    let text = str::to_owned;
    UpdateRejection {
        node: text("envoy"),
        type_url: text("CDS"),
        names: vec![],
        version: text("1-a"),
        message: text("no"),
    }
}

fn policy() -> Policy {
    Policy { include: Some("false".into()), ..Policy::default() }
}

fn view_name() -> ViewName {
    ViewName::new("edge").unwrap()
}

fn view() -> NodeView {
    let nodes = NodeSelector { ids: vec![], clusters: vec![], metadata: BTreeMap::new() };
    NodeView { nodes, services: vec!["web".parse().unwrap()] }
}

/// A new command breaks this, and so gets a row.
fn kind(command: &Command) -> u8 {
    match command {
        Command::StartReplica { .. } => 0,
        Command::ReportHost { .. } => 1,
        Command::Register(_) => 2,
        Command::Rejoin { .. } => 3,
        Command::Renew { .. } => 4,
        Command::ExpireSilent { .. } => 5,
        Command::ReviewHold { .. } => 6,
        Command::EndHold { .. } => 7,
        Command::Ready { .. } => 8,
        Command::Unready { .. } => 9,
        Command::Drain { .. } => 10,
        Command::Remove { .. } => 11,
        Command::ReportHealth { .. } => 12,
        Command::Reweight { .. } => 13,
        Command::ReportBusyPort { .. } => 14,
        Command::DrainHost { .. } => 15,
        Command::RemoveHost { .. } => 16,
        Command::CloseSession { .. } => 17,
        Command::EndGrace { .. } => 18,
        Command::RecordRejection { .. } => 19,
        Command::DeclareService { .. } => 20,
        Command::RetireService { .. } => 21,
        Command::SetView { .. } => 22,
        Command::RemoveView { .. } => 23,
        Command::SetPolicy { .. } => 24,
        Command::ChangeResources(_) => 25,
    }
}

const KINDS: u8 = 26;

/// One event of every kind that is about this worker, or could be; those of an older registration too.
fn events(case: &Case) -> Vec<(&'static str, Event)> {
    let worker = case.worker();
    let old = WorkerRef { generation: Generation::at(Offset::new(1)), ..worker.clone() };
    let registration = Registration {
        process: None,
        endpoints: vec![],
        readiness: Readiness::Assumed,
        weight: None,
        priority: 0,
        locality: None,
        metadata: BTreeMap::new(),
        session: session("s3"),
        lease: NO_GRACE,
    };
    let health = |worker| Event::WorkerHealthReported {
        worker,
        source: HealthSource::Process,
        verdict: Verdict::Unhealthy,
        reason: String::new(),
    };
    let cause = RemovalCause::Operator;
    let closed = DisconnectCause::Closed;
    vec![
        (
            "ReplicaStarted",
            Event::ReplicaStarted { replica: ReplicaId::new("r9").unwrap(), version: "1".into() },
        ),
        ("HostReported", Event::HostReported { host: host(), report: report() }),
        ("WorkerRegistered", Event::WorkerRegistered { worker: key(), registration }),
        ("WorkerReady", Event::WorkerReady { worker: worker.clone() }),
        ("WorkerReady, older", Event::WorkerReady { worker: old.clone() }),
        ("WorkerUnready", Event::WorkerUnready { worker: worker.clone(), reason: "x".into() }),
        ("WorkerDraining", Event::WorkerDraining { worker: worker.clone(), reason: "x".into(), drain_ms: 1 }),
        ("WorkerDisconnected", Event::WorkerDisconnected { worker: worker.clone(), cause: closed }),
        ("WorkerReconnected", Event::WorkerReconnected { worker: worker.clone(), session: session("s3") }),
        ("WorkerHealthReported", health(worker.clone())),
        ("WorkerReweighted", Event::WorkerReweighted { worker: worker.clone(), weight: 7.try_into().ok() }),
        ("WorkerRemoved", Event::WorkerRemoved { worker, cause: cause.clone() }),
        ("WorkerRemoved, older", Event::WorkerRemoved { worker: old, cause }),
        ("UpdateRejected", Event::UpdateRejected { rejection: rejection() }),
        ("HostDraining", Event::HostDraining { host: host(), reason: "x".into() }),
        ("HostRemoved", Event::HostRemoved { host: host() }),
        ("PortBusy", Event::PortBusy { host: host(), port: 20_000 }),
        ("ServiceDeclared", Event::ServiceDeclared { service: key().service, spec: ServiceSpec::default() }),
        ("NodeViewSet", Event::NodeViewSet { name: view_name(), view: view() }),
        ("NodeViewRemoved", Event::NodeViewRemoved { name: view_name() }),
        ("PolicyChanged", Event::PolicyChanged { service: None, policy: policy() }),
        ("ServiceRetired", Event::ServiceRetired { service: key().service }),
        ("ExpiryHeld", Event::ExpiryHeld { reason: "x".into(), until: NOW }),
        ("ExpiryReleased", Event::ExpiryReleased { reason: "x".into() }),
        ("ResourceDeleted", Event::ResourceDeleted { resource: edge() }),
        ("ResourceApplied", Event::ResourceApplied { resource: edge(), message: vec![].into() }),
    ]
}

/// How the worker is, as people would say it.
fn shown(state: &State) -> String {
    let Some(live) = state.workers().get(&key()) else { return "gone".to_owned() };
    let phase = match &live.phase {
        Phase::Registered => "registered",
        Phase::Ready => "ready",
        Phase::Unready { .. } => "unready",
        Phase::Draining { .. } => "draining",
    };
    let link = match &live.link {
        Link::Connected { session } => session.as_str(),
        Link::Disconnected { cause: DisconnectCause::Closed } => "closed",
        Link::Disconnected { cause: DisconnectCause::Silent } => "silent",
        Link::AwaitingRejoin => "awaited",
    };
    let policy = state.policy_of(&key().service);
    let published = health(live, &policy).map_or("unpublished", foldplane::projection::HealthStatus::as_str);
    format!("{phase} {link} {published}")
}

/// What a wish does, having checked that it can be made again and that what was decided can be folded.
fn decided(case: &Case, command: &Command) -> String {
    let made = match decide(&case.state, command, NOW) {
        Err(rejection) => return format!("refused: {}", rejection.code),
        Ok(made) if made.is_empty() => return "so already".to_owned(),
        Ok(made) => made,
    };
    let mut state = case.state.clone();
    for event in &made {
        assert_eq!(happen(&mut state, event.clone()), Outcome::Folded, "{}: {command:?}", case.name);
    }
    assert_eq!(decide(&state, command, NOW), Ok(vec![]), "{}: wished twice: {command:?}", case.name);
    let names: Vec<&str> = made.iter().map(Event::name).collect();
    format!("{} -> {}", names.join(" + "), shown(&state))
}

fn folded(case: &Case, event: Event) -> String {
    match case.fold(event) {
        (state, Outcome::Folded) => shown(&state),
        (state, Outcome::Ignored(anomaly)) => {
            assert_eq!(shown(&state), shown(&case.state), "{}: an anomaly changed something", case.name);
            format!("ignored: {anomaly}")
        }
        (_, Outcome::Repeated) => panic!("the offset is a new one"),
    }
}

#[test]
fn every_state_has_an_answer_to_every_command_and_every_event() {
    let mut table = String::new();
    for case in cases() {
        writeln!(table, "## {}: {}\n", case.name, shown(&case.state)).unwrap();
        for row in COMMANDS {
            writeln!(table, "{row:30} {}", decided(&case, &command(&case, row))).unwrap();
        }
        writeln!(table).unwrap();
        for (row, event) in events(&case) {
            writeln!(table, "{row:30} {}", folded(&case, event)).unwrap();
        }
        writeln!(table).unwrap();
    }
    expect_file!["../testdata/lifecycle.txt"].assert_eq(&table);
}

#[test]
fn every_kind_of_command_and_event_has_a_row() {
    let none = case("none", Readiness::Assumed, GRACE, &[]);
    let kinds: BTreeSet<u8> = COMMANDS.iter().map(|row| kind(&command(&none, row))).collect();
    assert_eq!(kinds, (0..KINDS).collect());
    let names: BTreeSet<&str> = events(&none).iter().map(|(_, event)| event.name()).collect();
    assert_eq!(names.len(), 24, "a kind of event has no row: {names:?}");
}

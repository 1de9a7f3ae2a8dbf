//! Wishes in, events and endpoints out: what the pure rooms do together, as scenarios.

use std::collections::BTreeMap;
use std::num::NonZeroU16;

use expect_test::{Expect, expect};

use super::Batch;
use crate::api::views;
use crate::command::{Command, PortRequest, Registering, Rejection};
use crate::events::event::{
    DisconnectCause, ExitStatus, HealthSource, HostReport, Lease, Locality, PortRange, Readiness,
    RemovalCause, Verdict,
};
use crate::events::{
    Actor, HostName, PortName, ReplicaId, ServiceName, SessionId, Timestamp, WorkerId, WorkerKey, WorkerRef,
};
use crate::projection::Snapshot;
use crate::projection::state::State;

/// A state that wishes are made of.
#[derive(Default)]
struct World {
    state: State,
    now_ms: u64,
}

impl World {
    /// Does it, and writes down the events, or the reason why not.
    fn wish(&mut self, command: &Command) -> String {
        let mut batch = Batch::new(self.state.clone(), Timestamp::from_millis(self.now_ms));
        match batch.push(command, &Actor::System, None) {
            Err(Rejection { code, message, .. }) => format!("{code}: {message}"),
            Ok(_) => {
                let (events, state) = batch.finish();
                self.state = state;
                let lines = events.iter().map(|envelope| format!("{} {}", envelope.offset, envelope.event));
                lines.collect::<Vec<_>>().join("\n")
            }
        }
    }

    /// What proxies are told.
    fn endpoints(&self) -> String {
        let listing = views::endpoints(&Snapshot::of(self.state.clone()), None);
        let lines =
            listing.items.iter().map(|item| format!("{} {} {}", item.cluster, item.address, item.health));
        lines.collect::<Vec<_>>().join("\n")
    }

    fn current(&self, name: &str) -> WorkerRef {
        let key = key(name);
        let generation = self.state.workers().get(&key).expect("the worker lives").generation;
        WorkerRef { key, generation }
    }
}

/// `web/a@h1`.
fn key(name: &str) -> WorkerKey {
    let (service, rest) = name.split_once('/').unwrap();
    let (id, host) = rest.split_once('@').unwrap();
    WorkerKey {
        service: ServiceName::new(service).unwrap(),
        host: HostName::new(host).unwrap(),
        id: WorkerId::new(id).unwrap(),
    }
}

fn session(name: &str) -> SessionId {
    SessionId::new(name).unwrap()
}

/// `http` is any port, `http=80` that one.
fn registering(name: &str, ports: &[&str]) -> Registering {
    let port = |text: &&str| {
        let (name, number) = text.split_once('=').unwrap_or((text, ""));
        PortRequest {
            name: PortName::new(name).unwrap(),
            number: number.parse::<NonZeroU16>().ok(),
            address: None,
        }
    };
    Registering {
        worker: key(name),
        ports: ports.iter().map(port).collect(),
        readiness: Readiness::Assumed,
        weight: None,
        priority: 0,
        locality: None,
        metadata: BTreeMap::new(),
        process: None,
        session: session("s1"),
        lease: Lease::Session { disconnect_grace_ms: 0 },
    }
}

fn register(name: &str, ports: &[&str]) -> Command {
    Command::Register(registering(name, ports))
}

fn report(host: &str, first: u16, last: u16) -> Command {
    let report = HostReport {
        addresses: vec!["192.0.2.1".parse().unwrap()],
        port_range: PortRange { first, last },
        locality: Locality::default(),
    };
    Command::ReportHost { host: HostName::new(host).unwrap(), report }
}

#[track_caller]
fn check(actual: &str, expected: Expect) {
    expected.assert_eq(actual);
}

#[test]
fn a_worker_comes_drains_and_goes() {
    let mut world = World::default();
    check(
        &world.wish(&register("web/a@h1", &["http", "admin=9000"])),
        expect!["@1 WorkerRegistered web/a@h1 http=127.0.0.1:20000 admin=127.0.0.1:9000"],
    );
    check(
        &world.endpoints(),
        expect![[r#"
            web 127.0.0.1:20000 HEALTHY
            web:admin 127.0.0.1:9000 HEALTHY"#]],
    );
    let worker = world.current("web/a@h1");
    let drain = Command::Drain { worker: worker.clone(), reason: "deploy".into(), drain_ms: 5000 };
    check(&world.wish(&drain), expect![[r#"@2 WorkerDraining web/a@h1 for 5000 ms "deploy""#]]);
    check(
        &world.endpoints(),
        expect![[r#"
            web 127.0.0.1:20000 DRAINING
            web:admin 127.0.0.1:9000 DRAINING"#]],
    );
    check(&world.wish(&Command::Ready { worker: worker.clone() }), expect!["draining: web/a@h1 is draining"]);
    let exited = RemovalCause::Exited(ExitStatus::Code(0));
    let remove = Command::Remove { worker, cause: exited };
    check(&world.wish(&remove), expect!["@3 WorkerRemoved web/a@h1 exited with code 0"]);
    check(&world.endpoints(), expect![""]);
    check(&world.wish(&remove), expect![""]);
}

#[test]
fn a_worker_without_endpoint_is_shown_and_never_published() {
    let mut world = World::default();
    check(
        &world.wish(&register("cron/a@h1", &[])),
        expect!["@1 WorkerRegistered cron/a@h1 without endpoint"],
    );
    check(&world.endpoints(), expect![""]);
    assert_eq!(views::workers(&Snapshot::of(world.state), None).items.len(), 1);
}

// hashicorp/consul#341, hashicorp/consul#2268
#[test]
fn registered_is_not_ready_when_the_worker_reports_readiness() {
    let mut world = World::default();
    let mut wish = registering("web/a@h1", &["http"]);
    wish.readiness = Readiness::Reported;
    world.wish(&Command::Register(wish.clone()));
    check(&world.endpoints(), expect![""]);
    let first = world.current("web/a@h1");
    world.wish(&Command::Unready { worker: first.clone(), reason: "warming".into() });
    check(&world.endpoints(), expect![""]);
    world.wish(&Command::Ready { worker: first });
    check(&world.endpoints(), expect!["web 127.0.0.1:20000 HEALTHY"]);

    wish.session = session("s2");
    world.wish(&Command::Register(wish));
    check(&world.endpoints(), expect![""]);
}

// kumahq/kuma#1738
#[test]
fn a_late_goodbye_does_not_reach_a_newer_registration() {
    let mut world = World::default();
    world.wish(&register("web/a@h1", &["http"]));
    let first = world.current("web/a@h1");
    let mut again = registering("web/a@h1", &["http"]);
    again.session = session("s2");
    check(
        &world.wish(&Command::Register(again)),
        expect![[r#"
            @2 WorkerRemoved web/a@h1 replaced
            @3 WorkerRegistered web/a@h1 http=127.0.0.1:20000"#]],
    );
    check(
        &world.wish(&Command::Remove { worker: first, cause: RemovalCause::Deregistered }),
        expect!["stale_generation: web/a@h1 has been registered again at @3, after @1"],
    );
    let closed = Command::CloseSession { session: session("s1"), cause: DisconnectCause::Closed };
    check(&world.wish(&closed), expect![""]);
    check(&world.endpoints(), expect!["web 127.0.0.1:20000 HEALTHY"]);
}

// hashicorp/consul#8930, hashicorp/consul-esm#135, hashicorp/consul-k8s#82
#[test]
fn one_id_on_two_hosts_is_two_workers() {
    let mut world = World::default();
    world.wish(&register("web/w1@h1", &["http=9001"]));
    world.wish(&register("web/w1@h2", &["http=9002"]));
    world.wish(&Command::Remove { worker: world.current("web/w1@h1"), cause: RemovalCause::Operator });
    check(&world.endpoints(), expect!["web 127.0.0.1:9002 HEALTHY"]);
}

#[test]
fn a_closed_session_takes_its_workers_out_and_a_grace_keeps_them() {
    let mut world = World::default();
    world.wish(&register("web/a@h1", &["http"]));
    let mut patient = registering("web/b@h1", &["http"]);
    patient.lease = Lease::Session { disconnect_grace_ms: 1000 };
    world.wish(&Command::Register(patient));
    let closed = Command::CloseSession { session: session("s1"), cause: DisconnectCause::Closed };
    check(
        &world.wish(&closed),
        expect![[r#"
            @3 WorkerRemoved web/a@h1 disconnected
            @4 WorkerDisconnected web/b@h1"#]],
    );
    check(&world.endpoints(), expect!["web 127.0.0.1:20001 UNHEALTHY"]);
    let worker = world.current("web/b@h1");
    let rejoin = Command::Rejoin { worker: worker.clone(), session: session("s2") };
    check(&world.wish(&rejoin), expect!["@5 WorkerReconnected web/b@h1"]);
    check(&world.endpoints(), expect!["web 127.0.0.1:20001 HEALTHY"]);
    check(&world.wish(&Command::EndGrace { worker }), expect![""]);
}

#[test]
fn our_restart_is_not_the_workers_fault_three_times() {
    let mut world = World::default();
    world.wish(&register("web/a@h1", &["http"]));
    let version = || "1.0.0".to_owned();
    let mut start = |name: &str| {
        world.wish(&Command::StartReplica { replica: ReplicaId::new(name).unwrap(), version: version() })
    };
    check(&start("r1"), expect!["@2 ReplicaStarted r1 version 1.0.0"]);
    check(&start("r1"), expect![""]);
    start("r2");
    check(&start("r3"), expect!["@4 ReplicaStarted r3 version 1.0.0"]);
    check(
        &start("r4"),
        expect![[r#"
            @5 WorkerRemoved web/a@h1 did not rejoin
            @6 ReplicaStarted r4 version 1.0.0"#]],
    );
}

#[test]
fn who_does_not_rejoin_is_removed_when_the_grace_is_over() {
    let mut world = World::default();
    world.wish(&register("web/a@h1", &["http"]));
    world.wish(&register("web/b@h1", &["http"]));
    world.wish(&Command::StartReplica { replica: ReplicaId::new("r1").unwrap(), version: String::new() });
    let before = Snapshot::of(world.state.clone());
    world.wish(&Command::Rejoin { worker: world.current("web/a@h1"), session: session("s9") });
    let after = before.advance(world.state.clone());
    assert_eq!(views::state(&before).versions, views::state(&after).versions, "no proxy sees a rejoin");
    check(&world.wish(&Command::EndRejoin), expect!["@5 WorkerRemoved web/b@h1 did not rejoin"]);
}

// hashicorp/nomad#24904, moby/moby#4628
#[test]
fn ports_rest_after_their_owner_and_are_never_shared() {
    let mut world = World::default();
    world.wish(&report("h1", 21_000, 21_001));
    check(
        &world.wish(&register("web/a@h1", &["http"])),
        expect!["@2 WorkerRegistered web/a@h1 http=192.0.2.1:21000"],
    );
    check(
        &world.wish(&register("api/b@h1", &["http"])),
        expect!["@3 WorkerRegistered api/b@h1 http=192.0.2.1:21001"],
    );
    world.wish(&Command::Remove { worker: world.current("web/a@h1"), cause: RemovalCause::Deregistered });
    check(
        &world.wish(&register("web/c@h1", &["http"])),
        expect![
            "ports_exhausted: host h1 has no free port in 21000-21001: 1 in use, 1 resting after their owner left or a stranger was found"
        ],
    );
    check(
        &world.wish(&register("web/c@h1", &["http=21001"])),
        expect!["port_taken: port 21001 of host h1 belongs to api/b@h1"],
    );
    world.now_ms += 30_000;
    check(
        &world.wish(&register("web/c@h1", &["http"])),
        expect!["@5 WorkerRegistered web/c@h1 http=192.0.2.1:21000"],
    );
}

// grpc/grpc-go#5710
#[test]
fn an_address_belongs_to_one_worker() {
    let mut world = World::default();
    world.wish(&register("web/a@h1", &["http=9001"]));
    check(
        &world.wish(&register("web/a@h2", &["http=9001"])),
        expect!["address_taken: 127.0.0.1:9001 belongs to web/a@h1"],
    );
}

#[test]
fn asking_again_for_what_one_has_changes_nothing() {
    let mut world = World::default();
    world.wish(&register("web/a@h1", &["http", "admin"]));
    check(&world.wish(&register("web/a@h1", &["http", "admin"])), expect![""]);
    check(
        &world.wish(&report("h1", 30_000, 30_001)),
        expect!["@2 HostReported h1 192.0.2.1 ports 30000-30001"],
    );
    check(&world.wish(&report("h1", 30_000, 30_001)), expect![""]);
}

#[test]
fn any_bad_verdict_takes_a_worker_out_until_its_source_takes_it_back() {
    let mut world = World::default();
    world.wish(&register("web/a@h1", &["http"]));
    let worker = world.current("web/a@h1");
    let says = |world: &mut World, source: HealthSource, verdict| {
        let reason = "rss".to_owned();
        world.wish(&Command::ReportHealth { worker: worker.clone(), source, verdict, reason })
    };
    check(&says(&mut world, HealthSource::Memory, Verdict::Healthy), expect![""]);
    check(
        &says(&mut world, HealthSource::Memory, Verdict::Unhealthy),
        expect![[r#"@2 WorkerHealthReported web/a@h1 memory says unhealthy "rss""#]],
    );
    check(&world.endpoints(), expect!["web 127.0.0.1:20000 UNHEALTHY"]);
    says(&mut world, HealthSource::Worker, Verdict::Healthy);
    check(&world.endpoints(), expect!["web 127.0.0.1:20000 UNHEALTHY"]);
    says(&mut world, HealthSource::Memory, Verdict::Degraded);
    check(&world.endpoints(), expect!["web 127.0.0.1:20000 HEALTHY"]);
}

#[test]
fn a_host_is_emptied_and_removed_with_all_that_lives_there() {
    let mut world = World::default();
    let host = HostName::new("h1").unwrap();
    world.wish(&register("web/a@h1", &["http"]));
    world.wish(&register("web/b@h2", &["http=9002"]));
    let drain = Command::DrainHost { host: host.clone(), reason: "kernel".into(), drain_ms: 100 };
    check(
        &world.wish(&drain),
        expect![[r#"
            @3 HostDraining h1 "kernel"
            @4 WorkerDraining web/a@h1 for 100 ms "kernel""#]],
    );
    check(&world.wish(&drain), expect![""]);
    check(
        &world.wish(&register("web/c@h1", &["http"])),
        expect!["host_draining: host h1 is being emptied: kernel"],
    );
    let remove = Command::RemoveHost { host };
    check(
        &world.wish(&remove),
        expect![[r#"
            @5 WorkerRemoved web/a@h1 host removed
            @6 HostRemoved h1"#]],
    );
    check(&world.wish(&remove), expect![""]);
    check(&world.endpoints(), expect!["web 127.0.0.1:9002 HEALTHY"]);
}

// hashicorp/nomad#4285
#[test]
fn a_port_on_which_a_stranger_listens_is_left_alone() {
    let mut world = World::default();
    world.wish(&register("web/a@h1", &["http"]));
    let busy = Command::ReportBusyPort {
        host: HostName::new("h1").unwrap(),
        port: NonZeroU16::new(20_000).unwrap(),
    };
    check(&world.wish(&busy), expect!["@2 PortBusy h1 20000"]);
    let mut again = registering("web/a@h1", &["http"]);
    again.session = session("s2");
    check(
        &world.wish(&Command::Register(again)),
        expect![[r#"
            @3 WorkerRemoved web/a@h1 replaced
            @4 WorkerRegistered web/a@h1 http=127.0.0.1:20001"#]],
    );
}

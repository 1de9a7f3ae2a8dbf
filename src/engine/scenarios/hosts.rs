//! Hosts, ports and addresses: lent to one worker at a time.

use expect_test::expect;

use super::*;

// hashicorp/consul#341, hashicorp/consul#2268 (F30)
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

// hashicorp/consul#8930, hashicorp/consul-esm#135, hashicorp/consul-k8s#82 (F29)
#[test]
fn one_id_on_two_hosts_is_two_workers() {
    let mut world = World::default();
    world.wish(&register("web/w1@h1", &["http=9001"]));
    world.wish(&register("web/w1@h2", &["http=9002"]));
    world.wish(&Command::Remove { worker: world.current("web/w1@h1"), cause: RemovalCause::Operator });
    check(&world.endpoints(), expect!["web 127.0.0.1:9002 HEALTHY"]);
}

// hashicorp/nomad#24904 (F34), moby/moby#4628 (F35)
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

// F18: grpc/grpc-go#5710
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
fn a_host_is_emptied_and_removed_with_all_that_lives_there() {
    let mut world = World::default();
    let host = HostName::new("h1").unwrap();
    world.wish(&register("web/a@h1", &["http"]));
    world.wish(&register("web/b@h2", &["http=9002"]));
    let drain = Command::DrainHost { host: host.clone(), reason: "kernel".into(), drain_ms: Some(100) };
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

// hashicorp/nomad#4285 (F33)
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

#[test]
fn two_hosts_at_one_address_get_different_ports() {
    let mut world = World::default();
    check(
        &world.wish(&register("web/a@h1", &["http"])),
        expect!["@1 WorkerRegistered web/a@h1 http=127.0.0.1:20000"],
    );
    check(
        &world.wish(&register("web/a@h2", &["http"])),
        expect!["@2 WorkerRegistered web/a@h2 http=127.0.0.1:20001"],
    );
}

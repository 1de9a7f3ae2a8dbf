//! What keeps a worker alive: its connection, or its renewals; and what our own restart leaves alone.

use expect_test::expect;

use super::*;

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
        world.now_ms += 10_000;
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
fn a_control_plane_that_fails_at_once_again_and_again_costs_nobody_its_place() {
    let mut world = World::default();
    world.wish(&register("web/a@h1", &["http"]));
    for number in 1..20 {
        world.now_ms += 9_999;
        let replica = ReplicaId::new(&format!("r{number}")).unwrap();
        let said = world.wish(&Command::StartReplica { replica, version: String::new() });
        check(
            &said.replace(char::is_numeric, "N").replace("NN", "N"),
            expect!["@N ReplicaStarted rN version "],
        );
    }
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
    let overdue = ["web/a@h1", "web/b@h1"].map(|name| world.current(name));
    check(&world.expire(&overdue, &[]), expect!["@5 WorkerRemoved web/b@h1 did not rejoin"]);
}

// hashicorp/nomad#26424, hashicorp/nomad#16983, hashicorp/nomad#16762
#[test]
fn a_renewal_is_never_good_while_the_worker_is_not_there() {
    let mut world = World::default();
    let mut wish = registering("web/a@h1", &["http"]);
    wish.lease = Lease::Ttl { ttl_ms: 5000 };
    world.wish(&Command::Register(wish));
    let worker = world.current("web/a@h1");
    let renew = Command::Renew { worker: worker.clone() };
    check(&world.wish(&renew), expect![""]);
    world.wish(&Command::StartReplica { replica: ReplicaId::new("r1").unwrap(), version: String::new() });
    check(&world.wish(&renew), expect!["@3 WorkerReconnected web/a@h1"]);
    check(&world.expire(&[worker], &[]), expect!["@4 WorkerRemoved web/a@h1 lease expired"]);
    check(&world.wish(&renew), expect!["unknown_worker: no worker web/a@h1 lives"]);
}

#[test]
fn only_those_who_were_admitted_with_a_time_to_live_renew_it() {
    let mut world = World::default();
    world.wish(&register("web/a@h1", &["http"]));
    let worker = world.current("web/a@h1");
    check(
        &world.wish(&Command::Renew { worker: worker.clone() }),
        expect!["invalid_argument: the lease of web/a@h1 is its connection"],
    );
    check(&world.expire(&[worker], &[]), expect![""]);
    let mut wish = registering("web/b@h1", &["http"]);
    wish.lease = Lease::Ttl { ttl_ms: 10 };
    check(
        &world.wish(&Command::Register(wish)),
        expect!["invalid_argument: a time to live of 10 ms is not between 1000 and 86400000 ms"],
    );
}

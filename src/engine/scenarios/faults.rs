//! Faults that other registries had in production (faults.md D and F).

use expect_test::expect;

use super::*;

// Netflix/eureka#802, Netflix/eureka#955 (F25)
#[test]
fn who_takes_a_verdict_back_leaves_what_the_worker_said_last() {
    let mut world = World::default();
    let mut wish = registering("web/a@h1", &["http"]);
    wish.readiness = Readiness::Reported;
    world.wish(&Command::Register(wish));
    let worker = world.current("web/a@h1");
    // A clock that was set back decides nothing: the order is that of the log.
    world.now_ms = 1_000;
    world.wish(&Command::Unready { worker: worker.clone(), reason: "starting".into() });
    world.now_ms = 900;
    world.wish(&Command::Ready { worker: worker.clone() });
    check(&world.endpoints(), expect!["web 127.0.0.1:20000 HEALTHY"]);
    let operator = HealthSource::Custom(PortName::new("operator").unwrap());
    let says = |verdict| Command::ReportHealth {
        worker: worker.clone(),
        source: operator.clone(),
        verdict,
        reason: "out".into(),
    };
    world.wish(&says(Verdict::Unhealthy));
    check(&world.endpoints(), expect!["web 127.0.0.1:20000 UNHEALTHY"]);
    world.wish(&says(Verdict::Healthy));
    check(&world.endpoints(), expect!["web 127.0.0.1:20000 HEALTHY"]);
}

// hashicorp/nomad#24904, hashicorp/nomad#1191 (F34)
#[test]
fn a_port_is_not_free_while_its_owner_stops() {
    let mut world = World::default();
    world.wish(&report("h1", 21_000, 21_001));
    world.wish(&register("web/a@h1", &["http"]));
    let worker = world.current("web/a@h1");
    let drain = Command::Drain { worker: worker.clone(), reason: "stop".into(), drain_ms: Some(5_000) };
    world.wish(&drain);
    check(
        &world.wish(&register("web/b@h1", &["http"])),
        expect!["@4 WorkerRegistered web/b@h1 http=192.0.2.1:21001"],
    );
    let next = register("web/c@h1", &["http"]);
    check(
        &world.wish(&next),
        expect![
            "ports_exhausted: host h1 has no free port in 21000-21001: 2 in use, 0 resting after their owner left or a stranger was found"
        ],
    );
    world.wish(&Command::Remove { worker, cause: RemovalCause::Drained });
    world.now_ms += 29_999;
    check(
        &world.wish(&next),
        expect![
            "ports_exhausted: host h1 has no free port in 21000-21001: 1 in use, 1 resting after their owner left or a stranger was found"
        ],
    );
    world.now_ms += 1;
    check(&world.wish(&next), expect!["@6 WorkerRegistered web/c@h1 http=192.0.2.1:21000"]);
}

//! Workers: they come, serve, and go.

use expect_test::expect;

use super::*;

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
    let drain = Command::Drain { worker: worker.clone(), reason: "deploy".into(), drain_ms: None };
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

// kumahq/kuma#1738 (F24)
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
    check(
        &says(&mut world, HealthSource::Worker, Verdict::Healthy),
        expect![[r#"@3 WorkerHealthReported web/a@h1 worker says healthy "rss""#]],
    );
    check(&says(&mut world, HealthSource::Worker, Verdict::Healthy), expect![""]);
    check(&world.endpoints(), expect!["web 127.0.0.1:20000 UNHEALTHY"]);
    says(&mut world, HealthSource::Memory, Verdict::Degraded);
    check(&world.endpoints(), expect!["web 127.0.0.1:20000 HEALTHY"]);
}

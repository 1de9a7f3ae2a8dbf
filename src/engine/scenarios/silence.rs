//! Many fall silent at once: the network, or we, are more likely at fault than all of them.

use expect_test::expect;

use super::*;

/// `count` workers on each of these hosts, half of them renewing, half of them on one session a host.
fn fleet(world: &mut World, hosts: &[&str], count: usize) {
    for host in hosts {
        for number in 0..count {
            let mut wish = registering(&format!("web/w{number}@{host}"), &[]);
            if number % 2 == 0 {
                wish.lease = Lease::Ttl { ttl_ms: 30_000 };
            }
            wish.session = session(host);
            world.wish(&Command::Register(wish));
        }
    }
}

fn workers(world: &World, host: &str, numbers: &[usize]) -> Vec<WorkerRef> {
    numbers.iter().map(|number| world.current(&format!("web/w{number}@{host}"))).collect()
}

fn lose(world: &mut World, host: &str, cause: DisconnectCause) {
    world.wish(&Command::CloseSession { session: session(host), cause });
}

#[test]
fn a_crowd_that_falls_silent_is_held_for_five_minutes_at_most() {
    let mut world = World::default();
    fleet(&mut world, &["h1", "h2"], 6);
    lose(&mut world, "h1", DisconnectCause::Silent);
    let overdue = workers(&world, "h1", &[0, 1, 2, 3]);
    let quiet = workers(&world, "h2", &[0, 2]);
    check(
        &world.expire(&overdue, &quiet),
        expect![[
            r#"@16 ExpiryHeld until 1970-01-01T00:05:00.000Z "7 of 12 live leases are silent, on 2 hosts""#
        ]],
    );
    check(&world.expire(&overdue, &[]), expect![""]);
    let hold = |world: &World| world.state.expiry_hold().unwrap().since;
    let (since, overdue) = (hold(&world), overdue.into_iter().collect());
    check(
        &world.wish(&Command::EndHold { since, overdue }),
        expect![[r#"
            @17 ExpiryReleased "it was held for 300 s"
            @18 WorkerRemoved web/w0@h1 lease expired
            @19 WorkerRemoved web/w1@h1 silent
            @20 WorkerRemoved web/w2@h1 lease expired
            @21 WorkerRemoved web/w3@h1 silent"#]],
    );
}

#[test]
fn a_crowd_that_is_heard_again_loses_nobody() {
    let mut world = World::default();
    fleet(&mut world, &["h1", "h2"], 6);
    let overdue = workers(&world, "h1", &[0, 2, 4]);
    lose(&mut world, "h2", DisconnectCause::Silent);
    let quiet: Vec<WorkerRef> = workers(&world, "h2", &[0, 2]);
    world.expire(&overdue, &quiet);
    let since = world.state.expiry_hold().unwrap().since;
    let still: std::collections::BTreeSet<WorkerRef> = overdue.into_iter().collect();
    check(
        &world.wish(&Command::ReviewHold { since, quiet: &still | &quiet.into_iter().collect() }),
        expect![""],
    );
    check(
        &world.wish(&Command::ReviewHold { since, quiet: still }),
        expect![[r#"@17 ExpiryReleased "6 of 12 live leases are silent, on 2 hosts""#]],
    );
    assert_eq!(world.state.workers().len(), 12);
}

#[test]
fn half_of_them_a_few_of_them_or_one_host_alone_are_no_crowd() {
    let mut world = World::default();
    fleet(&mut world, &["h1", "h2"], 6);
    let half = [workers(&world, "h1", &[0, 2, 4]), workers(&world, "h2", &[0, 2, 4])].concat();
    let (overdue, quiet) = half.split_at(1);
    check(&world.expire(overdue, quiet), expect!["@13 WorkerRemoved web/w0@h1 lease expired"]);

    let mut world = World::default();
    fleet(&mut world, &["h1"], 12);
    lose(&mut world, "h1", DisconnectCause::Silent);
    let overdue = workers(&world, "h1", &[0]);
    let quiet = workers(&world, "h1", &[2, 4, 6]);
    check(&world.expire(&overdue, &quiet), expect!["@19 WorkerRemoved web/w0@h1 lease expired"]);

    let mut world = World::default();
    fleet(&mut world, &["h1", "h2", "h3"], 3);
    let overdue: Vec<WorkerRef> =
        ["h1", "h2", "h3"].iter().flat_map(|host| workers(&world, host, &[0, 2])).collect();
    assert_eq!(world.expire(&overdue, &[]).lines().count(), 6);
}

#[test]
fn a_closed_connection_is_not_held_back() {
    let mut world = World::default();
    fleet(&mut world, &["h1", "h2"], 6);
    let overdue = [workers(&world, "h1", &[0, 2, 4]), workers(&world, "h2", &[0, 2, 4])].concat();
    lose(&mut world, "h1", DisconnectCause::Silent);
    check(
        &world.expire(&overdue, &[]),
        expect![[
            r#"@16 ExpiryHeld until 1970-01-01T00:05:00.000Z "9 of 12 live leases are silent, on 2 hosts""#
        ]],
    );
    let closed = Command::CloseSession { session: session("h2"), cause: DisconnectCause::Closed };
    check(
        &world.wish(&closed),
        expect![[r#"
            @17 WorkerRemoved web/w1@h2 disconnected
            @18 WorkerRemoved web/w3@h2 disconnected
            @19 WorkerRemoved web/w5@h2 disconnected"#]],
    );
}

#[test]
fn a_silent_connection_is_waited_for_even_without_a_grace() {
    let mut world = World::default();
    world.wish(&register("web/a@h1", &["http"]));
    let silent = Command::CloseSession { session: session("s1"), cause: DisconnectCause::Silent };
    check(&world.wish(&silent), expect!["@2 WorkerDisconnected web/a@h1"]);
    check(&world.endpoints(), expect!["web 127.0.0.1:20000 UNHEALTHY"]);
    let worker = world.current("web/a@h1");
    check(&world.wish(&Command::EndGrace { worker: worker.clone() }), expect![""]);
    check(&world.expire(&[worker], &[]), expect!["@3 WorkerRemoved web/a@h1 silent"]);
}

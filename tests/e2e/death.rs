//! A killed worker gets no more requests.

use std::time::{Duration, Instant};

use foldplane::demo::load::Load;
use foldplane::demo::ports::free_address;

use crate::support::worker::{self, Witness};
use crate::support::{SOON, World, envoy, eventually};

/// How often it is killed.
const ROUNDS: usize = 10;

/// The promise: no request later than this after the socket closed.
const PROMISE: Duration = Duration::from_millis(100);

/// What a single round may take when other tests use the same two cores.
const SLACK: Duration = Duration::from_millis(1000);

/// The worker's supervisor dies by SIGKILL, as if the machine had lost it; the place where it served stays, and tells
/// when it was asked last.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_request_reaches_a_killed_worker_for_long() {
    let world = World::start().await;
    let steady = worker::start(&world.plane, "web", "steady");
    envoy::hosts_become(&world.proxy, "web", &[steady.address]).await;
    let load = Load::start(world.proxy.listener, "web");
    let mut times = Vec::new();
    for round in 0..ROUNDS {
        times.push(one_death(&world, &load, round).await);
        envoy::hosts_become(&world.proxy, "web", &[steady.address]).await;
    }
    let tally = load.finish().await;
    times.sort_unstable();
    let (median, worst) = (times[ROUNDS / 2], times[ROUNDS - 1]);
    eprintln!("last request after the kill: {times:?}; {} requests", tally.answered());
    assert_eq!(tally.failed, 0, "{:?}", tally.failures);
    assert!(median <= PROMISE, "the promise is {PROMISE:?}: {times:?}");
    assert!(worst <= SLACK, "{times:?}");
}

/// From the kill to the last request that reached the worker's place. The agent is told not to wait for its program to
/// listen, since it is the witness who does.
async fn one_death(world: &World, load: &Load, round: usize) -> Duration {
    let address = free_address().unwrap();
    let port = format!("http={}", address.port());
    let id = format!("victim-{round}");
    let mark = world.plane.folder().join(&id);
    let script = format!("touch '{}'; exec sleep 1000", mark.display());
    let mut agent =
        worker::run(&world.plane, "web", &id, &["--port", &port, "--ready", "now"], &["sh", "-c", &script]);
    // The agent makes sure that the port is free before it starts the program; only then may the witness take it.
    eventually(
        "the start of the victim",
        async || {
            if mark.exists() { Ok(()) } else { Err(agent.last_lines()) }
        },
    )
    .await;
    let witness = Witness::at(address).await;
    eventually("requests to the victim", async || {
        let asked = witness.asked().len();
        if asked >= 20 { Ok(()) } else { Err(format!("{asked} requests, {:?}", load.tally().failures)) }
    })
    .await;
    let killed = Instant::now();
    agent.kill(SOON).await.unwrap();
    // Long enough that a late request would be seen.
    tokio::time::sleep(Duration::from_millis(500)).await;
    witness.asked().last().unwrap().saturating_duration_since(killed)
}

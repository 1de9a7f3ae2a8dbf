//! Agents in front of a real Envoy under load: what its users notice of a restart, a drain and a verdict is nothing.

use std::net::SocketAddr;
use std::time::Duration;

use foldplane::demo::load::Load;
use foldplane::demo::ports::free_address;
use nix::sys::signal::Signal;

use crate::support::worker::{self, Worker};
use crate::support::{SOON, World, envoy};

const WORKERS: usize = 10;

fn start(world: &World, number: usize) -> Worker {
    worker::start(&world.plane, "web", &format!("w{number}"))
}

fn addresses(workers: &[Worker]) -> Vec<SocketAddr> {
    workers.iter().map(|worker| worker.address).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rolling_restart_of_ten_workers_fails_no_request() {
    let world = World::start().await;
    let mut workers: Vec<Worker> = (0..WORKERS).map(|number| start(&world, number)).collect();
    envoy::hosts_become(&world.proxy, "web", &addresses(&workers)).await;
    let load = Load::start(world.proxy.listener, "web");
    for number in 0..WORKERS {
        let mut old = workers.remove(0);
        old.agent.signal(Signal::SIGTERM);
        let status = old.agent.ended(SOON).await.unwrap();
        assert_eq!(status.code(), Some(0), "{}", old.agent.last_lines());
        workers.push(start(&world, number));
        envoy::hosts_become(&world.proxy, "web", &addresses(&workers)).await;
    }
    let tally = load.finish().await;
    eprintln!("{} requests during the restarts, longest pause {:?}", tally.answered(), tally.longest_pause);
    assert_eq!(tally.failed, 0, "{:?}", tally.failures);
    assert_eq!(tally.workers.len(), WORKERS);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_request_reaches_a_worker_after_its_drain() {
    let world = World::start().await;
    let (stays, mut goes) = (start(&world, 0), start(&world, 1));
    envoy::hosts_become(&world.proxy, "web", &[stays.address, goes.address]).await;
    let load = Load::start(world.proxy.listener, "web");
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(load.tally().workers.contains_key("w1"));
    goes.agent.signal(Signal::SIGTERM);
    envoy::hosts_become(&world.proxy, "web", &[stays.address]).await;
    let drained = load.tally();
    goes.agent.ended(SOON).await.unwrap();
    tokio::time::sleep(Duration::from_millis(300)).await;
    let after = load.finish().await;
    assert_eq!(after.since(&drained).workers.get("w1"), None);
    assert_eq!(after.failed, 0, "{:?}", after.failures);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_memory_verdict_takes_a_worker_out_and_back() {
    let world = World::start().await;
    let steady = start(&world, 0);
    let address = free_address().unwrap();
    let port = format!("http={}", address.port());
    let options = ["--port", &port, "--memory-max", "64M"];
    let script = crate::world::worker("server.py");
    let greedy = worker::run(&world.plane, "web", "greedy", &options, &["python3", &script, "--greedy"]);
    let published = |health: &'static str| {
        move |hosts: &foldplane::demo::proxy::Hosts| hosts.get(&address).is_some_and(|seen| seen == health)
    };
    let unhealthy = published("UNHEALTHY");
    world.proxy.hosts_become("web", "the greedy worker UNHEALTHY", SOON, unhealthy).await.unwrap();
    greedy.signal(Signal::SIGUSR1);
    envoy::hosts_become(&world.proxy, "web", &[steady.address, address]).await;
}

//! The cases that the project began with, each with a real Envoy and real requests.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::support::World;
use crate::support::envoy::{self, ask, hosts_become};
use crate::support::plane::Plane;
use crate::support::wire::Wire;
use crate::support::worker::{self, Worker};

#[tokio::test]
async fn registering_a_worker_adds_its_endpoint() {
    let world = World::start().await;
    assert_eq!(ask(&world.proxy, "web").await.0, 503, "nobody is there yet");
    let a = worker::start(&world.plane, "web", "a");
    hosts_become(&world.proxy, "web", &[a.address]).await;
    assert_eq!(ask(&world.proxy, "web").await, (200, "a".to_owned()));
}

#[tokio::test]
async fn a_worker_without_endpoint_is_shown_and_never_published() {
    let world = World::start().await;
    let _silent = worker::run(&world.plane, "batch", "silent", &[], &["sleep", "1000"]);
    world.plane.workers_are_ready("batch", 1).await;
    // Another service's endpoint shows that Envoy has taken everything up to here.
    let a = worker::start(&world.plane, "web", "a");
    hosts_become(&world.proxy, "web", &[a.address]).await;
    assert_eq!(world.proxy.hosts("batch").await.unwrap(), BTreeMap::new());
    assert_eq!(ask(&world.proxy, "batch").await.0, 503);
    let endpoints = world.plane.get("/v1/endpoints").await;
    assert_eq!(endpoints["items"].as_array().unwrap().len(), 1, "{endpoints}");
}

#[tokio::test]
async fn several_workers_share_the_load() {
    const REQUESTS: usize = 300;
    let world = World::start().await;
    let workers = ["a", "b", "c"].map(|id| worker::start(&world.plane, "web", id));
    hosts_become(&world.proxy, "web", &workers.each_ref().map(|worker| worker.address)).await;
    let counts = answers(&world, "web", REQUESTS).await;
    assert_eq!(counts.values().sum::<usize>(), REQUESTS, "{counts:?}");
    for id in ["a", "b", "c"] {
        assert!(counts.get(id).is_some_and(|count| *count * 4 >= REQUESTS), "uneven: {counts:?}");
    }
}

#[tokio::test]
async fn several_services_are_separate_clusters() {
    let world = World::start().await;
    let web = worker::start(&world.plane, "web", "w");
    let pay = worker::start(&world.plane, "pay", "p");
    hosts_become(&world.proxy, "web", &[web.address]).await;
    hosts_become(&world.proxy, "pay", &[pay.address]).await;
    assert_eq!(answers(&world, "web", 20).await, BTreeMap::from([("w".to_owned(), 20)]));
    assert_eq!(answers(&world, "pay", 20).await, BTreeMap::from([("p".to_owned(), 20)]));
}

#[tokio::test]
async fn removal_takes_the_endpoint_out_and_recovery_brings_it_back() {
    let world = World::start().await;
    let a = worker::start(&world.plane, "web", "a");
    let mut b = worker::start(&world.plane, "web", "b");
    hosts_become(&world.proxy, "web", &[a.address, b.address]).await;
    b.agent.kill(crate::support::SOON).await.unwrap();
    hosts_become(&world.proxy, "web", &[a.address]).await;
    assert_eq!(answers(&world, "web", 20).await, BTreeMap::from([("a".to_owned(), 20)]));

    let b = worker::start_at(&world.plane, "web", "b", b.address);
    hosts_become(&world.proxy, "web", &[a.address, b.address]).await;
    let counts = answers(&world, "web", 40).await;
    assert_eq!(counts.keys().collect::<Vec<_>>(), ["a", "b"], "{counts:?}");
}

#[tokio::test]
async fn the_last_worker_that_goes_leaves_an_empty_service() {
    let world = World::start().await;
    let mut a = worker::start(&world.plane, "web", "a");
    hosts_become(&world.proxy, "web", &[a.address]).await;
    a.agent.signal(nix::sys::signal::Signal::SIGTERM);
    assert_eq!(a.agent.ended(crate::support::SOON).await.unwrap().code(), Some(0));
    hosts_become(&world.proxy, "web", &[]).await;
    assert_eq!(ask(&world.proxy, "web").await.0, 503);
}

#[tokio::test]
async fn a_stream_that_reconnects_gets_the_snapshot_of_now() {
    let plane = Plane::start().await;
    let wire = Wire::to(plane.xds).await;
    let proxy = envoy::start("edge", wire.address, plane.folder()).await;
    let (a, b) = (worker::start(&plane, "web", "a"), worker::start(&plane, "web", "b"));
    let old = worker::start(&plane, "old", "o");
    hosts_become(&proxy, "web", &[a.address, b.address]).await;
    hosts_become(&proxy, "old", &[old.address]).await;

    wire.cut();
    drop((b, old));
    let c = worker::start(&plane, "web", "c");
    let new = worker::start(&plane, "new", "n");
    plane.workers_are_ready("web", 2).await;
    plane.workers_are_ready("new", 1).await;
    plane.workers_are_ready("old", 0).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(
        proxy.hosts("new").await.unwrap().is_empty(),
        "the wire is cut, and still something came through"
    );

    wire.mend();
    hosts_become(&proxy, "web", &[a.address, c.address]).await;
    hosts_become(&proxy, "new", &[new.address]).await;
    hosts_become(&proxy, "old", &[]).await;
}

#[tokio::test]
async fn envoy_routes_each_request_to_what_it_discovered() {
    let world = World::start().await;
    let services = ["web", "pay", "cart"];
    let workers: Vec<Worker> = services
        .iter()
        .map(|service| worker::start(&world.plane, service, &format!("{service}-1")))
        .collect();
    for (service, worker) in services.iter().zip(&workers) {
        hosts_become(&world.proxy, service, &[worker.address]).await;
        let named = format!("{service}-1");
        assert_eq!(ask(&world.proxy, service).await, (200, named.clone()), "by host");
        assert_eq!(ask(&world.proxy, &format!("{service}.localhost")).await, (200, named), "by local name");
    }
    let (status, text) = ask(&world.proxy, "nobody").await;
    assert_eq!(status, 503);
    assert!(text.contains("no such service here"), "{text}");
    let (status, _) = ask(&world.proxy, "_foldplane").await;
    assert_eq!(status, 503, "the control plane is no service");
}

/// Who answered how many of `requests` requests; a failure counts under its status.
async fn answers(world: &World, service: &str, requests: usize) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for _ in 0..requests {
        let (status, text) = ask(&world.proxy, service).await;
        *counts.entry(if status == 200 { text } else { status.to_string() }).or_default() += 1;
    }
    counts
}

//! The log alone says what was true: live, from another process, and from disk.

use serde_json::Value;

use crate::support::plane::{Plane, foldplane, foldplane_json};
use crate::support::worker;
use crate::support::{SOON, World, envoy, eventually};

#[tokio::test]
async fn the_log_gives_the_versions_and_bytes_that_were_live() {
    let mut world = World::start().await;
    let mut moments = vec![world.plane.state().await];
    let a = worker::start(&world.plane, "web", "a");
    envoy::hosts_become(&world.proxy, "web", &[a.address]).await;
    moments.push(world.plane.state().await);
    let mut b = worker::start(&world.plane, "web", "b");
    let pay = worker::start(&world.plane, "pay", "p");
    envoy::hosts_become(&world.proxy, "pay", &[pay.address]).await;
    envoy::hosts_become(&world.proxy, "web", &[a.address, b.address]).await;
    moments.push(world.plane.state().await);
    b.agent.kill(SOON).await.unwrap();
    envoy::hosts_become(&world.proxy, "web", &[a.address]).await;
    moments.push(world.plane.state().await);

    let url = world.plane.url();
    for live in &moments {
        assert_eq!(&replayed(&["--server", &url], live).await, live);
    }
    accepted_is_replayed(&world, &url, moments.last().unwrap()).await;
    world.plane.kill().await;
    let data = world.plane.data();
    for live in &moments {
        assert_eq!(&replayed(&[&data], live).await, live);
    }
    world.plane.restart().await;
    let last = moments.last().unwrap();
    assert_eq!(world.plane.state().await["versions"], last["versions"], "a restart is no news");
}

#[tokio::test]
async fn an_offset_beyond_the_end_is_not_found() {
    let plane = Plane::start().await;
    let output = foldplane(&["replay", "--server", &plane.url(), "--until", "@1000"]).await;
    assert_eq!(output.status.code(), Some(3));
    assert!(output.stdout.is_empty());
}

/// What Envoy has accepted (ACK) are the versions that a replay gives.
async fn accepted_is_replayed(world: &World, url: &str, live: &Value) {
    let replayed = replayed(&["--server", url], live).await;
    let versions = replayed["versions"].as_array().unwrap();
    let whole =
        |kind: &Value| versions.iter().find(|version| version["type"] == *kind && version["name"] == "*");
    eventually("the newest ACK of Envoy", async || {
        let proxies = world.plane.get("/v1/proxies").await;
        let types = proxies["items"][0]["types"].as_array().ok_or("no proxy")?.clone();
        // Its wildcard of listeners leaves out those of proxyless gRPC.
        let types: Vec<&Value> = types.iter().filter(|item| item["type"] != "LDS").collect();
        let agree = types.iter().all(|item| item["acked"] == whole(&item["type"]).unwrap()["version"]);
        if agree && types.len() == 2 { Ok(()) } else { Err(format!("{types:?} instead of {versions:?}")) }
    })
    .await;
}

/// The state at the offset of `live`, folded from a source by another process.
async fn replayed(source: &[&str], live: &Value) -> Value {
    let until = live["offset"].to_string();
    let mut replayed = foldplane_json(&[&["replay", "--until", &until, "-o", "json"], source].concat()).await;
    replayed["state"].take()
}

//! What streams cost a real server, and that they leave nothing behind.

use std::fs;
use std::time::Duration;

use foldplane::projection::resources::TypeUrl;
use foldplane::xds::client::Client;
use foldplane::xds::protocol::Variant;
use serde_json::Value;

use crate::support::eventually;
use crate::support::plane::Plane;

/// What an idle stream may take, with its connection.
const IDLE_BYTES_MAX: u64 = 40_000;

/// A number of times, smaller by default than in the reports.
fn times(variable: &str, default: usize) -> usize {
    std::env::var(variable).map_or(default, |text| text.parse().unwrap())
}

/// The memory of the control plane, in bytes.
fn resident(plane: &Plane) -> u64 {
    const PAGE: u64 = 4096;
    let text = fs::read_to_string(format!("/proc/{}/statm", plane.process.pid())).unwrap();
    text.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * PAGE
}

async fn streams_are(plane: &Plane, count: usize) {
    eventually(&format!("{count} streams"), async || {
        let proxies: Value = plane.get("/v1/proxies").await;
        let found = proxies["items"].as_array().unwrap().len();
        if found == count { Ok(()) } else { Err(format!("{found}")) }
    })
    .await;
}

/// A client that has asked for everything that an Envoy asks for, and was answered.
async fn subscribed(uri: &str) -> Client {
    let mut client = Client::connect(uri, "edge", Variant::Delta).await.unwrap();
    client.subscribe(TypeUrl::Cluster, &[]).await.unwrap();
    let names: Vec<String> = (0..20).map(|number| format!("service-{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    client.subscribe(TypeUrl::ClusterLoadAssignment, &names).await.unwrap();
    for _ in 0..2 {
        let update = client.next().await.unwrap();
        client.accept(&update).await.unwrap();
    }
    client
}

#[tokio::test]
async fn idle_streams_are_light() {
    let plane = Plane::start().await;
    let uri = format!("http://{}", plane.xds);
    let count = times("FOLDPLANE_IDLE_STREAMS", 200);
    drop(subscribed(&uri).await);
    streams_are(&plane, 0).await;
    let before = resident(&plane);
    let mut clients = Vec::new();
    for _ in 0..count {
        clients.push(subscribed(&uri).await);
    }
    // Until what was sent is also forgotten.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let each = (resident(&plane) - before) / u64::try_from(count).unwrap();
    println!("each of {count} idle streams takes {each} bytes");
    assert!(each <= IDLE_BYTES_MAX, "{each} bytes");
}

#[tokio::test]
async fn rule_30_streams_that_are_gone_leave_no_memory_behind() {
    // F17: envoyproxy/go-control-plane#570
    let plane = Plane::start().await;
    let uri = format!("http://{}", plane.xds);
    let cycles = times("FOLDPLANE_CYCLES", 1_000);
    let mut sizes = Vec::new();
    // The first half warms up what is kept for reuse.
    for _ in 0..2 {
        for cycle in 0..cycles {
            let mut client = Client::connect(&uri, "edge", Variant::Delta).await.unwrap();
            client.subscribe(TypeUrl::Cluster, &[]).await.unwrap();
            if cycle % 2 == 0 {
                client.next().await.unwrap();
            }
        }
        streams_are(&plane, 0).await;
        sizes.push(resident(&plane));
    }
    println!("memory before and after {cycles} connections: {sizes:?} bytes");
    let [before, after] = sizes[..] else { unreachable!() };
    assert!(after <= before + before / 20, "more than 5 % was left behind: {before} and {after} bytes");
}

//! When the doors open, and that they close.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use foldplane::demo::load::Load;
use foldplane::events::event::{HostReport, Locality, PortRange};
use foldplane::events::log::{EventLog, LogReader, SledLog, SledOptions};
use foldplane::events::{Actor, Envelope, Event, HostName, Timestamp};
use foldplane::projection::resources::TypeUrl;
use foldplane::xds::client::Client;
use foldplane::xds::protocol::Variant;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::support::plane::Plane;
use crate::support::{SOON, World, envoy, worker};

/// How many events a start has to fold: `FOLDPLANE_COLD_START_EVENTS=200000` as in the report.
fn events_to_fold() -> u64 {
    std::env::var("FOLDPLANE_COLD_START_EVENTS").map_or(100_000, |text| text.parse().unwrap())
}

/// Appends events that concern no proxy.
fn lengthen(data: &str, count: u64) -> u64 {
    const BATCH: u64 = 1_000;
    let mut log = SledLog::open(data.as_ref(), SledOptions::default()).unwrap();
    for batch in 0..count.div_ceil(BATCH) {
        let mut offset = log.head().offset;
        let events = (0..BATCH.min(count - batch * BATCH)).map(|number| {
            offset = offset.next();
            let report = HostReport {
                addresses: vec!["192.0.2.1".parse().unwrap()],
                port_range: PortRange::default(),
                locality: Locality { zone: format!("z{}", number % 2), ..Locality::default() },
            };
            let event = Event::HostReported { host: HostName::new("elsewhere").unwrap(), report };
            let recorded_at = Timestamp::from_millis(1_767_225_600_000);
            Envelope { offset, recorded_at, actor: Actor::System, correlation: None, event }
        });
        log.append(&events.collect::<Vec<_>>()).unwrap();
    }
    log.head().offset.get()
}

/// The first clusters and endpoints that anybody can get.
async fn first_answer(uri: &str) -> BTreeMap<String, Vec<u8>> {
    let start = Instant::now();
    let mut client = loop {
        match Client::connect(uri, "early", Variant::Sotw).await {
            Ok(client) => break client,
            Err(_) if start.elapsed() < SOON => tokio::time::sleep(Duration::from_millis(2)).await,
            Err(fault) => panic!("{fault}"),
        }
    };
    client.subscribe(TypeUrl::Cluster, &[]).await.unwrap();
    let clusters = client.next().await.unwrap();
    assert!(clusters.resources.contains_key("web"), "served before the log was folded: {clusters:?}");
    client.subscribe(TypeUrl::ClusterLoadAssignment, &["web"]).await.unwrap();
    let endpoints = client.next().await.unwrap().resources;
    endpoints.into_iter().map(|(name, held)| (name, held.message)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rule_5_nothing_is_answered_before_the_log_is_folded() {
    // F13: istio/istio#24117
    let mut world = World::start().await;
    let a = worker::start(&world.plane, "web", "a");
    envoy::hosts_become(&world.proxy, "web", &[a.address]).await;
    let uri = format!("http://{}", world.plane.xds);
    let before = first_answer(&uri).await;
    let load = Load::start(world.proxy.listener, "web");

    world.plane.kill().await;
    let head = lengthen(&world.plane.data(), events_to_fold());
    let start = Instant::now();
    let ((), first) = tokio::join!(world.plane.restart(), first_answer(&uri));
    println!("{head} events were folded in {:?}", start.elapsed());
    assert!(world.plane.state().await["offset"].as_u64().unwrap() >= head, "ready before the end of the log");
    assert_eq!(first, before);
    world.plane.workers_are_ready("web", 1).await;
    let tally = load.finish().await;
    assert_eq!(tally.failed, 0, "{:?}", tally.failures);
    envoy::hosts_become(&world.proxy, "web", &[a.address]).await;
}

#[tokio::test]
async fn open_streams_and_a_hung_caller_hold_up_no_end() {
    // F41: hyperium/hyper#2787, #1885
    const STREAMS: usize = 50;
    let mut plane = Plane::start().await;
    let uri = format!("http://{}", plane.xds);
    let mut streams = Vec::new();
    for _ in 0..STREAMS {
        let mut client = Client::connect(&uri, "edge", Variant::Delta).await.unwrap();
        client.subscribe(TypeUrl::Cluster, &[]).await.unwrap();
        client.next().await.unwrap();
        streams.push(client);
    }
    let mut hung = TcpStream::connect(plane.api).await.unwrap();
    hung.write_all(b"GET /v1/state HTTP/1.1\r\nhost: x\r\n").await.unwrap();
    let before = plane.events().await;
    timeout(Duration::from_secs(10), plane.stop()).await.expect("an end within 10 s");
    plane.restart().await;
    assert_eq!(plane.events().await[..before.len()], before[..]);
}

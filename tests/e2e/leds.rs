//! Endpoints one by one with real Envoys (xds-rules 35): what changes is sent alone, and nothing that is gone stays.

use foldplane::bootstrap::XdsVariant;
use serde_json::Value;

use crate::support::envoy::{ask, bootstrap, hosts_become, start, start_with};
use crate::support::plane::{Plane, foldplane};
use crate::support::wire::Wire;
use crate::support::{eventually, text, worker};

async fn declare(plane: &Plane, options: &[&str]) {
    let words = ["service", "declare", "web", "--port", "http", "--delivery", "leds"];
    let done = foldplane(&[&words, options, &["--server", &plane.url()]].concat()).await;
    assert!(done.status.success(), "{done:?}");
}

/// The versions of one type that a node has accepted.
async fn acked(plane: &Plane, node: &str, of_type: &str) -> Option<String> {
    let proxies = plane.get("/v1/proxies").await;
    let mut streams = proxies["items"].as_array().unwrap().iter().filter(|item| item["node"] == node);
    let types = streams.next()?["types"].as_array().unwrap().clone();
    let found = types.into_iter().find(|found| found["type"] == of_type)?;
    found["acked"].as_str().map(str::to_owned)
}

#[tokio::test]
async fn rule_35_one_change_sends_one_endpoint_and_others_get_whole_assignments() {
    let plane = Plane::start().await;
    declare(&plane, &[]).await;
    let one = worker::start(&plane, "web", "one");
    plane.workers_are_ready("web", 1).await;
    let delta = start("delta", plane.xds, plane.folder()).await;
    let mut sotw = bootstrap("sotw", plane.xds);
    sotw.variant = XdsVariant::StateOfTheWorld;
    let sotw = start_with(&sotw, plane.folder()).await;
    for proxy in [&delta, &sotw] {
        hosts_become(proxy, "web", &[one.address]).await;
        assert_eq!(ask(proxy, "web").await, (200, "one".to_owned()));
    }
    let (assignments, endpoints) =
        (acked(&plane, "delta", "EDS").await, acked(&plane, "delta", "LEDS").await);
    assert!(endpoints.is_some(), "it follows a collection");
    assert_eq!(acked(&plane, "sotw", "LEDS").await, None);

    let two = worker::start(&plane, "web", "two");
    for proxy in [&delta, &sotw] {
        hosts_become(proxy, "web", &[one.address, two.address]).await;
    }
    assert_eq!(acked(&plane, "delta", "EDS").await, assignments, "its assignment is what it was");
    assert_ne!(acked(&plane, "delta", "LEDS").await, endpoints);
    let before = delta.counters("cluster.web.update_rejected").await.unwrap();
    drop(two);
    for proxy in [&delta, &sotw] {
        hosts_become(proxy, "web", &[one.address]).await;
    }
    assert_eq!(acked(&plane, "delta", "EDS").await, assignments);
    assert_eq!(before.values().sum::<u64>(), 0);
}

#[tokio::test]
async fn rule_35_a_socket_is_delivered_by_itself_too() {
    let plane = Plane::start().await;
    declare(&plane, &[]).await;
    let path = text(&plane.folder().join("web.sock"));
    let script = format!("{}/tests/agent/workers/server.py", env!("CARGO_MANIFEST_DIR"));
    let port = format!("http={path}");
    let worker = worker::run(&plane, "web", "socket", &["--port", &port], &["python3", &script]);
    plane.workers_are_ready("web", 1).await;
    let proxy = start("delta", plane.xds, plane.folder()).await;
    eventually("an answer through the socket", async || {
        let (status, said) = ask(&proxy, "web").await;
        if status == 200 { Ok(()) } else { Err(format!("{status} {said}")) }
    })
    .await;
    assert!(acked(&plane, "delta", "LEDS").await.is_some(), "it follows a collection");
    drop(worker);
    eventually("the socket to go", async || {
        let hosts = proxy.text("/clusters").await.unwrap();
        if hosts.contains(&path) { Err(hosts) } else { Ok(()) }
    })
    .await;
}

#[tokio::test]
async fn rule_35_what_left_while_the_stream_was_down_does_not_stay() {
    let plane = Plane::start().await;
    declare(&plane, &[]).await;
    let (one, two) = (worker::start(&plane, "web", "one"), worker::start(&plane, "web", "two"));
    plane.workers_are_ready("web", 2).await;
    let wire = Wire::to(plane.xds).await;
    let proxy = start("away", wire.address, plane.folder()).await;
    hosts_become(&proxy, "web", &[one.address, two.address]).await;
    wire.cut();
    drop(two);
    eventually("the worker to be gone", async || {
        let workers = plane.workers("web").await;
        if workers.len() == 1 { Ok(()) } else { Err(format!("{workers:?}")) }
    })
    .await;
    wire.mend();
    hosts_become(&proxy, "web", &[one.address]).await;
}

#[tokio::test]
async fn rule_35_no_change_of_the_cluster_and_no_restart_fails_a_request_or_loses_an_endpoint() {
    let mut plane = Plane::start().await;
    declare(&plane, &[]).await;
    let (one, two) = (worker::start(&plane, "web", "one"), worker::start(&plane, "web", "two"));
    plane.workers_are_ready("web", 2).await;
    let proxy = start("steady", plane.xds, plane.folder()).await;
    let both = [one.address, two.address];
    hosts_become(&proxy, "web", &both).await;
    let asking = async {
        for _ in 0..300 {
            assert_eq!(ask(&proxy, "web").await.0, 200);
        }
    };
    let changing = async {
        for timeout in ["100", "200", "300"] {
            let before = acked(&plane, "steady", "EDS").await;
            declare(&plane, &["--connect-timeout-ms", timeout]).await;
            eventually("the new assignment to be accepted", async || {
                let now = acked(&plane, "steady", "EDS").await;
                if now == before { Err(format!("{now:?}")) } else { Ok(()) }
            })
            .await;
        }
    };
    tokio::join!(asking, changing);
    hosts_become(&proxy, "web", &both).await;
    // A start begins the collections anew: what happens next arrives.
    plane.kill().await;
    plane.restart().await;
    plane.workers_are_ready("web", 2).await;
    drop(two);
    hosts_become(&proxy, "web", &[one.address]).await;
    assert_eq!(ask(&proxy, "web").await, (200, "one".to_owned()));
    let versions = plane.state().await["versions"].clone();
    let of_type = |entry: &&Value| entry["type"] == "LEDS" && entry["name"] != "*";
    assert_eq!(versions.as_array().unwrap().iter().filter(of_type).count(), 1, "{versions}");
}

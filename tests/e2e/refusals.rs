//! A client that refuses is shown with version, reason and time, and becomes one fact in the log.

use foldplane::projection::resources::TypeUrl;
use foldplane::xds::client::Client;
use foldplane::xds::protocol::Variant;
use serde_json::{Value, json};

use crate::support::eventually;
use crate::support::plane::{Plane, foldplane, foldplane_json};

const REASON: &str = "no such filter";

/// A client that refuses the newest clusters.
async fn refuse(plane: &Plane) -> Client {
    let uri = format!("http://{}", plane.xds);
    let mut client = Client::connect(&uri, "picky", Variant::Delta).await.unwrap();
    client.subscribe(TypeUrl::Cluster, &[]).await.unwrap();
    let update = client.next().await.unwrap();
    client.reject(&update, REASON).await.unwrap();
    client
}

async fn refusals(plane: &Plane) -> Vec<Value> {
    let events = plane.events().await.into_iter().map(|line| line["event"]["UpdateRejected"].clone());
    events.filter(Value::is_object).collect()
}

/// The type on which the client stands refused.
async fn shown(plane: &Plane) -> Value {
    eventually("the refusal to be shown", async || {
        let proxies = foldplane_json(&["get", "proxies", "-o", "json", "--server", &plane.url()]).await;
        let of_type = proxies["items"][0]["types"][0].clone();
        if of_type["rejected"].is_object() { Ok(of_type) } else { Err(proxies.to_string()) }
    })
    .await
}

#[tokio::test]
async fn a_refusal_is_shown_with_its_reason_and_time_and_recorded_once() {
    let mut plane = Plane::start().await;
    let body = json!({"host": "h1", "ttl_ms": 60_000, "ports": [{"name": "http"}]});
    let url = format!("{}/v1/services/web/workers/a", plane.url());
    reqwest::Client::new().put(url).json(&body).send().await.unwrap().error_for_status().unwrap();
    let before = jiff::Timestamp::now();
    let client = refuse(&plane).await;
    let of_type = shown(&plane).await;
    let rejected = &of_type["rejected"];
    assert_eq!((&of_type["type"], &rejected["names"]), (&json!("CDS"), &json!(["web"])));
    assert!(rejected["message"].as_str().unwrap().starts_with(REASON), "{rejected}");
    assert!(of_type["sent"].is_string() && of_type["acked"].is_null(), "{of_type}");
    let at: jiff::Timestamp = rejected["at"].as_str().unwrap().parse().unwrap();
    let off_by = (at.as_millisecond() - before.as_millisecond()).abs();
    assert!(off_by < 60_000, "{at} is the time of the refusal, after {before}");
    let wide = foldplane(&["get", "proxies", "-o", "wide", "--server", &plane.url()]).await;
    let wide = String::from_utf8(wide.stdout).unwrap();
    assert!(wide.contains(rejected["at"].as_str().unwrap()) && wide.contains(REASON), "{wide}");

    // It comes back and refuses the same, also at the next copy of the server: that is known.
    drop(client);
    let again = refuse(&plane).await;
    shown(&plane).await;
    drop(again);
    plane.kill().await;
    plane.restart().await;
    let _still = refuse(&plane).await;
    shown(&plane).await;
    let known = refusals(&plane).await;
    assert_eq!(known.len(), 1, "{known:?}");
    let fact = &known[0]["rejection"];
    assert_eq!((&fact["node"], &fact["version"]), (&json!("picky"), &rejected["version"]), "{fact}");
}

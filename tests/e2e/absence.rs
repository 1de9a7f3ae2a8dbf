//! Our own stops and crashes are nobody's death, and ports stay with their owners.

use foldplane::agent::client::{Client, Config, Notice, Ticket, Wish};
use foldplane::proto;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::support::plane::Plane;

/// How many workers there are when we stop.
const WORKERS: u64 = 100;

// kumahq/kuma#1738 (F24)
#[tokio::test(flavor = "multi_thread")]
async fn our_stop_says_nothing_of_the_workers() {
    let mut plane = Plane::start().await;
    let config = Config { server: plane.url(), host: None, seed: 1 };
    let mut client = Client::start(&config).unwrap();
    for number in 0..WORKERS {
        let register = proto::Register {
            service: "web".to_owned(),
            host: "h1".to_owned(),
            id: format!("w{number}"),
            readiness: proto::Readiness::Reported.into(),
            ..Default::default()
        };
        client.add(Ticket(number), register).await;
        client.wish(Ticket(number), Wish::Ready).await;
        while !matches!(client.next().await.unwrap(), Notice::Reported { .. }) {}
    }
    // The session lives as long as somebody listens to it.
    let mut session = JoinSet::new();
    session.spawn(async move { while client.next().await.is_some() {} });
    plane.stop().await;
    plane.restart().await;
    plane.workers_are_ready("web", 100).await;
    let said = |event: &Value| {
        let event = &event["event"];
        event.get("WorkerRemoved").or(event.get("WorkerDisconnected")).is_some()
    };
    let events = plane.events().await;
    assert!(!events.iter().any(said), "our own stop was taken for somebody's death");
}

// moby/moby#4628 (F35)
#[tokio::test(flavor = "multi_thread")]
async fn ports_stay_with_their_owners_when_we_die() {
    let mut plane = Plane::start().await;
    let register = async |plane: &Plane, id: &str, ports: &[&str]| -> Value {
        let ports: Vec<Value> = ports.iter().map(|name| json!({"name": name})).collect();
        let body = json!({"host": "h1", "ttl_ms": 60_000, "ports": ports});
        let url = format!("{}/v1/services/web/workers/{id}", plane.url());
        let answer = reqwest::Client::new().put(url).json(&body).send().await.unwrap();
        answer.json().await.unwrap()
    };
    let first = register(&plane, "a", &["http", "grpc"]).await;
    assert_eq!(first["ports"], json!({"http": "127.0.0.1:20000", "grpc": "127.0.0.1:20001"}));
    plane.kill().await;
    plane.restart().await;
    let other = register(&plane, "b", &["http"]).await;
    assert_eq!(other["ports"], json!({"http": "127.0.0.1:20002"}));
    let again = register(&plane, "a", &["http", "grpc"]).await;
    assert_eq!(again["ports"], first["ports"], "the same is asked for, and the same is given");
}

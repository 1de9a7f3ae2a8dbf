//! Everything that a worker can say over REST: said twice it is said once, an old generation is fenced off, and nothing is
//! answered with success about a worker that is not there.

use reqwest::{Client, Method, StatusCode};
use serde_json::{Value, json};

use crate::support::plane::Plane;

/// What can be said of a registration, with what it adds to the fence, and the event that it makes the first time.
fn verbs() -> [(Method, &'static str, Value, Option<&'static str>); 6] {
    [
        (Method::POST, "/renew", json!({}), None),
        (Method::POST, "/ready", json!({}), Some("WorkerReady")),
        (Method::POST, "/unready", json!({"reason": "full"}), Some("WorkerUnready")),
        (
            Method::POST,
            "/health",
            json!({"source": "memory", "verdict": "unhealthy", "reason": "rss"}),
            Some("WorkerHealthReported"),
        ),
        (Method::POST, "/drain", json!({"reason": "deploy", "drain_ms": 60_000}), Some("WorkerDraining")),
        (Method::DELETE, "", json!({}), Some("WorkerRemoved")),
    ]
}

struct Caller<'a> {
    plane: &'a Plane,
    client: Client,
}

impl Caller<'_> {
    async fn ask(&self, method: Method, id: &str, verb: &str, body: &Value) -> (StatusCode, Value) {
        let url = format!("{}/v1/services/web/workers/{id}{verb}", self.plane.url());
        let answer = self.client.request(method, url).json(body).send().await.unwrap();
        (answer.status(), answer.json().await.unwrap())
    }

    /// Registers a worker, and gives its generation.
    async fn register(&self, id: &str) -> u64 {
        let body =
            json!({"host": "h1", "ttl_ms": 60_000, "readiness": "reported", "ports": [{"name": "http"}]});
        let (status, registered) = self.ask(Method::PUT, id, "", &body).await;
        assert_eq!(status, StatusCode::CREATED, "{registered}");
        registered["generation"].as_u64().unwrap()
    }

    async fn events(&self) -> Vec<String> {
        let events = self.plane.events().await;
        let name = |event: &Value| event["event"].as_object().unwrap().keys().next().unwrap().clone();
        events.iter().map(name).collect()
    }
}

fn fenced(generation: u64, more: &Value) -> Value {
    let mut body = more.clone();
    body["host"] = "h1".into();
    body["generation"] = generation.into();
    body
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_said_twice_is_said_once() {
    let plane = Plane::start().await;
    let caller = Caller { plane: &plane, client: Client::new() };
    let generation = caller.register("a").await;
    for (method, verb, more, event) in verbs() {
        let body = fenced(generation, &more);
        let before = caller.events().await.len();
        let (status, first) = caller.ask(method.clone(), "a", verb, &body).await;
        assert_eq!(status, StatusCode::OK, "{verb}: {first}");
        let made = caller.events().await.split_off(before);
        assert_eq!(made, event.into_iter().collect::<Vec<_>>(), "{verb}");
        let (status, again) = caller.ask(method, "a", verb, &body).await;
        assert_eq!((status, again), (StatusCode::OK, first), "{verb}, again");
        assert_eq!(caller.events().await.len(), before + made.len(), "{verb}, again");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_older_generation_is_fenced_off_whatever_it_says() {
    let plane = Plane::start().await;
    let caller = Caller { plane: &plane, client: Client::new() };
    let old = caller.register("a").await;
    let body = json!({"host": "h1", "ttl_ms": 30_000});
    let (status, _) = caller.ask(Method::PUT, "a", "", &body).await;
    assert_eq!(status, StatusCode::CREATED, "another lease is another registration");
    let before = caller.events().await;
    for (method, verb, more, _) in verbs() {
        let (status, problem) = caller.ask(method, "a", verb, &fenced(old, &more)).await;
        assert_eq!(status, StatusCode::CONFLICT, "{verb}: {problem}");
        assert_eq!(problem["code"], "stale_generation", "{verb}");
    }
    assert_eq!(caller.events().await, before);
}

// hashicorp/nomad#26424, hashicorp/nomad#16983 (F27)
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_well_of_a_worker_that_is_not_there() {
    let plane = Plane::start().await;
    let caller = Caller { plane: &plane, client: Client::new() };
    let generation = caller.register("a").await;
    let gone = fenced(generation, &json!({}));
    assert_eq!(caller.ask(Method::DELETE, "a", "", &gone).await.0, StatusCode::OK);
    let before = caller.events().await;
    for (method, verb, more, _) in verbs() {
        let (status, answer) = caller.ask(method.clone(), "a", verb, &fenced(generation, &more)).await;
        if method == Method::DELETE {
            assert_eq!(status, StatusCode::OK, "it is gone, as was asked: {answer}");
        } else {
            assert_eq!(status, StatusCode::NOT_FOUND, "{verb}: {answer}");
            assert_eq!(answer["code"], "unknown_worker", "{verb}");
            assert_eq!(answer["hint"], "register it again", "{verb}");
        }
    }
    assert_eq!(caller.events().await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_without_its_fence_is_a_problem_that_names_it() {
    let plane = Plane::start().await;
    let caller = Caller { plane: &plane, client: Client::new() };
    caller.register("a").await;
    for (method, verb, more, _) in verbs() {
        let (status, problem) = caller.ask(method, "a", verb, &more).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{verb}: {problem}");
        assert!(problem["detail"].as_str().unwrap().contains("missing field `host`"), "{verb}: {problem}");
    }
}

//! Workers over REST: registered with a time to live, renewed, fenced, and gone when they fall silent.

use std::time::Duration;

use reqwest::{Client, Method, StatusCode};
use serde_json::{Value, json};

use crate::support::eventually;
use crate::support::plane::Plane;

struct Rest {
    client: Client,
    base: String,
}

impl Rest {
    fn new(plane: &Plane) -> Self {
        let base = format!("{}/v1/services/web/workers/", plane.url());
        Self { client: Client::new(), base }
    }

    async fn ask(&self, method: Method, path: &str, body: &Value) -> (StatusCode, Value) {
        let request = self.client.request(method, format!("{}{path}", self.base)).json(body);
        let response = request.send().await.unwrap();
        (response.status(), response.json().await.unwrap())
    }

    async fn register(&self, id: &str, ttl_ms: u32) -> (StatusCode, Value) {
        let body = json!({"host": "h1", "ttl_ms": ttl_ms, "ports": [{"name": "http"}]});
        self.ask(Method::PUT, id, &body).await
    }
}

async fn states(plane: &Plane) -> Vec<String> {
    let workers = plane.get("/v1/workers").await;
    let items = workers["items"].as_array().unwrap();
    items.iter().map(|item| format!("{} {}", item["id"].as_str().unwrap(), item["health"])).collect()
}

// hashicorp/nomad#26424, hashicorp/nomad#16983
#[tokio::test]
async fn a_renewed_worker_lives_and_a_silent_one_has_to_register_again() {
    let plane = Plane::start().await;
    let rest = Rest::new(&plane);
    let (status, registered) = rest.register("a", 1500).await;
    assert_eq!(status, StatusCode::CREATED, "{registered}");
    assert!(registered["ports"]["http"].as_str().unwrap().starts_with("127.0.0.1:"), "{registered}");
    let (_, silent) = rest.register("b", 1000).await;
    let fence = json!({"host": "h1", "generation": registered["generation"]});
    for _ in 0..8 {
        tokio::time::sleep(Duration::from_millis(250)).await;
        let (status, answer) = rest.ask(Method::POST, "a/renew", &fence).await;
        assert_eq!(status, StatusCode::OK, "{answer}");
    }
    assert_eq!(states(&plane).await, ["a \"HEALTHY\""]);
    let late = json!({"host": "h1", "generation": silent["generation"]});
    let (status, problem) = rest.ask(Method::POST, "b/renew", &late).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    assert_eq!(problem["code"], "unknown_worker");
    assert_eq!(problem["hint"], "register it again");
    let (status, _) = rest.register("b", 60_000).await;
    assert_eq!(status, StatusCode::CREATED);
    assert_eq!(states(&plane).await, ["a \"HEALTHY\"", "b \"HEALTHY\""]);
}

#[tokio::test]
async fn asking_again_is_no_news_and_an_old_generation_is_fenced_off() {
    let plane = Plane::start().await;
    let rest = Rest::new(&plane);
    let (_, first) = rest.register("a", 60_000).await;
    let (status, again) = rest.register("a", 60_000).await;
    assert_eq!((status, &again["generation"]), (StatusCode::OK, &first["generation"]));
    let (status, second) = rest.register("a", 30_000).await;
    assert_eq!(status, StatusCode::CREATED, "another lease is another registration");
    let old = json!({"host": "h1", "generation": first["generation"]});
    let (status, problem) = rest.ask(Method::DELETE, "a", &old).await;
    assert_eq!((status, &problem["code"]), (StatusCode::CONFLICT, &json!("stale_generation")));
    let fence = json!({"host": "h1", "generation": second["generation"]});
    let sick = json!({"host": "h1", "generation": second["generation"], "source": "memory",
        "verdict": "unhealthy", "reason": "rss"});
    assert_eq!(rest.ask(Method::POST, "a/health", &sick).await.0, StatusCode::OK);
    assert_eq!(states(&plane).await, ["a \"UNHEALTHY\""]);
    assert_eq!(rest.ask(Method::DELETE, "a", &fence).await.0, StatusCode::OK);
    assert!(states(&plane).await.is_empty());
}

// hashicorp/nomad#16762
#[tokio::test]
async fn after_a_restart_a_renewal_finds_the_worker_as_it_was() {
    let mut plane = Plane::start().await;
    let rest = Rest::new(&plane);
    let (_, registered) = rest.register("a", 5_000).await;
    rest.register("b", 1_000).await;
    plane.kill().await;
    plane.restart().await;
    let rest = Rest::new(&plane);
    let fence = json!({"host": "h1", "generation": registered["generation"]});
    let (status, answer) = rest.ask(Method::POST, "a/renew", &fence).await;
    assert_eq!(status, StatusCode::OK, "{answer}");
    eventually("the silent one to go", async || {
        let states = states(&plane).await;
        if states == ["a \"HEALTHY\""] { Ok(()) } else { Err(format!("{states:?}")) }
    })
    .await;
}

#[tokio::test]
async fn a_body_that_cannot_be_read_is_a_problem_and_not_a_fault() {
    let plane = Plane::start().await;
    let rest = Rest::new(&plane);
    for (body, status) in [
        (json!({"host": "h1", "ports": [{"name": "http", "address": "db.example"}]}), 400),
        (json!({"host": "h1", "ports": [{"name": "http", "number": 0}]}), 400),
        (json!({"host": "h1", "ports": [{"name": "http", "path": "web.sock"}]}), 400),
        (json!({"host": "h1", "ports": [{"name": "http", "path": "/run/web.sock", "number": 80}]}), 400),
        (json!({"host": "h1", "weight": 0}), 400),
        (json!({"host": "", "ports": []}), 400),
        (json!({"host": "h1", "prots": []}), 422),
        (json!([]), 422),
    ] {
        let (got, problem) = rest.ask(Method::PUT, "a", &body).await;
        assert_eq!(got.as_u16(), status, "{body}: {problem}");
        assert_eq!(problem["code"], "invalid_argument", "{problem}");
        assert!(!problem["hint"].as_str().unwrap().is_empty());
    }
    assert!(states(&plane).await.is_empty());
}

#[tokio::test]
async fn a_worker_of_the_standard_library_serves_and_says_goodbye() {
    let plane = Plane::start().await;
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/worker.py");
    let mut worker = tokio::process::Command::new("python3")
        .args([script, "web"])
        .env("FOLDPLANE_SERVER", plane.url())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    plane.workers_are_ready("web", 1).await;
    let endpoints = plane.get("/v1/endpoints?service=web").await;
    let address = endpoints["items"][0]["address"].as_str().unwrap().to_owned();
    let name = Client::new().get(format!("http://{address}/")).send().await.unwrap().text().await.unwrap();
    assert_eq!(name.trim(), format!("py-{}", worker.id().unwrap()));

    let pid = nix::unistd::Pid::from_raw(worker.id().unwrap().try_into().unwrap());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).unwrap();
    assert!(worker.wait().await.unwrap().success());
    let last = plane.events().await.pop().unwrap();
    assert_eq!(last["event"]["WorkerRemoved"]["cause"], "Deregistered", "{last}");
}

//! The examples of docs/policies.md at work, in front of a real Envoy.

use std::net::SocketAddr;
use std::time::Duration;

use foldplane::demo::load::Load;
use foldplane::demo::ports::free_address;
use serde_json::{Value, json};

use crate::support::plane::{Plane, foldplane, foldplane_json};
use crate::support::worker::Witness;
use crate::support::{World, envoy, eventually, text};

/// The policy below a heading of docs/policies.md.
fn example(heading: &str) -> Value {
    let document = include_str!("../../docs/policies.md");
    let (_, section) = document.split_once(&format!("### {heading}\n")).expect("the heading is there");
    let (_, block) = section.split_once("```json\n").expect("an example follows");
    serde_json::from_str(block.split_once("\n```").expect("it ends").0).unwrap()
}

/// A worker over REST, at a place that answers.
struct Place {
    address: SocketAddr,
    path: String,
    fence: Value,
    _witness: Witness,
}

impl Place {
    async fn register(plane: &Plane, service: &str, id: &str, metadata: Value) -> Self {
        let address = free_address().unwrap();
        let witness = Witness::at(address).await;
        let path = format!("/v1/services/{service}/workers/{id}");
        let port = json!([{"name": "http", "number": address.port()}]);
        let body = json!({"host": "h1", "ports": port, "metadata": metadata, "ttl_ms": 600_000});
        let (status, registered) = send(plane, reqwest::Method::PUT, &path, &body).await;
        assert_eq!(status, 201, "{registered}");
        let fence = json!({"host": "h1", "generation": registered["generation"]});
        Self { address, path, fence, _witness: witness }
    }

    /// Says something of itself, beside which registration it is.
    async fn say(&self, plane: &Plane, what: &str, more: &[(&str, &str)]) {
        let mut body = self.fence.clone();
        more.iter().for_each(|(name, value)| body[*name] = json!(value));
        let path = format!("{}/{what}", self.path);
        let (status, answer) = send(plane, reqwest::Method::POST, &path, &body).await;
        assert_eq!(status, 200, "{answer}");
    }
}

async fn send(plane: &Plane, method: reqwest::Method, path: &str, body: &Value) -> (u16, Value) {
    let url = format!("{}{path}", plane.url());
    let response = reqwest::Client::new().request(method, url).json(body).send().await.unwrap();
    (response.status().as_u16(), response.json().await.unwrap())
}

async fn set(plane: &Plane, service: &str, policy: &Value) -> Value {
    let path = format!("/v1/services/{service}/policy");
    let (status, answer) = send(plane, reqwest::Method::PUT, &path, policy).await;
    assert_eq!(status, 200, "{answer}");
    answer
}

#[tokio::test]
async fn every_example_is_taken() {
    let plane = Plane::start().await;
    let document = include_str!("../../docs/policies.md");
    let headings: Vec<&str> = document.lines().filter_map(|line| line.strip_prefix("### ")).collect();
    assert_eq!(headings.len(), document.matches("```json").count());
    for heading in headings {
        set(&plane, "web", &example(heading)).await;
        let shown = foldplane_json(&["policy", "get", "--service", "web", "--server", &plane.url()]).await;
        for (hook, expression) in example(heading).as_object().unwrap() {
            assert_eq!(shown[hook], *expression, "{heading}");
        }
    }
}

#[tokio::test]
async fn an_include_hook_takes_endpoints_away_and_gives_them_back() {
    let World { proxy, plane } = World::start().await;
    let steady = Place::register(&plane, "web", "steady", json!({})).await;
    let trial = Place::register(&plane, "web", "trial", json!({"trial": "yes"})).await;
    let mut both = [steady.address, trial.address];
    both.sort_unstable();
    envoy::hosts_become(&proxy, "web", &both).await;

    let file = plane.folder().join("policy.json");
    std::fs::write(&file, example("Leave out what is tried").to_string()).unwrap();
    let (file, url) = (text(&file), plane.url());
    let words = ["policy", "set", "--service", "web", "-f", &file, "--server", &url];
    let before = plane.events().await.len();
    let preview = foldplane_json(&[&words[..], &["--dry-run", "-o", "json"]].concat()).await;
    let change = json!([{
        "worker": "web/trial@h1", "port": "http",
        "before": {"cluster": "web", "health": "HEALTHY"}, "after": null,
    }]);
    assert_eq!(preview["changes"], change);
    assert_eq!(plane.events().await.len(), before, "a dry run writes nothing");
    envoy::hosts_become(&proxy, "web", &both).await;

    assert!(foldplane(&words).await.status.success());
    envoy::hosts_become(&proxy, "web", &[steady.address]).await;
    let deleted = foldplane(&["policy", "delete", "--service", "web", "--server", &url]).await;
    assert!(deleted.status.success(), "{deleted:?}");
    envoy::hosts_become(&proxy, "web", &both).await;
}

// Netflix/eureka#802, Netflix/eureka#955 (F25)
#[tokio::test]
async fn f25_what_an_operator_took_out_comes_back_as_it_is_by_now() {
    let plane = Plane::start().await;
    let worker = Place::register(&plane, "web", "w1", json!({})).await;
    set(&plane, "web", &json!({"include": "worker.id != 'w1'"})).await;
    let ready = async || {
        let endpoints = plane.get("/v1/endpoints?service=web&ready=true").await;
        endpoints["items"].as_array().unwrap().len()
    };
    assert_eq!(ready().await, 0);
    worker.say(&plane, "unready", &[]).await;
    worker.say(&plane, "ready", &[]).await;
    assert_eq!(ready().await, 0, "the worker does not undo what the operator said");
    send(&plane, reqwest::Method::DELETE, "/v1/services/web/policy", &json!({})).await;
    assert_eq!(ready().await, 1, "and need not register again");
}

#[tokio::test]
async fn a_health_hook_turns_an_endpoint_unhealthy_by_its_monitors_and_back() {
    let World { proxy, plane } = World::start().await;
    let first = Place::register(&plane, "web", "first", json!({})).await;
    let second = Place::register(&plane, "web", "second", json!({})).await;
    set(&plane, "web", &example("A degraded worker gets nothing")).await;
    first.say(&plane, "health", &[("source", "memory"), ("verdict", "degraded"), ("reason", "90 %")]).await;
    let sick = proxy.hosts_become("web", "one is sick", crate::support::SOON, |hosts| {
        hosts.len() == 2 && !envoy::healthy(hosts, first.address) && envoy::healthy(hosts, second.address)
    });
    sick.await.unwrap();
    let workers = plane.get("/v1/workers?service=web").await;
    assert_eq!(workers["items"][0]["health"], "UNHEALTHY", "REST says what Envoy is told");
    first.say(&plane, "health", &[("source", "memory"), ("verdict", "healthy")]).await;
    let mut both = [first.address, second.address];
    both.sort_unstable();
    envoy::hosts_become(&proxy, "web", &both).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_hook_splits_off_a_canary_without_a_failed_request() {
    let World { proxy, plane } = World::start().await;
    let stable = Place::register(&plane, "web", "stable", json!({})).await;
    let canary = Place::register(&plane, "web", "canary", json!({"track": "canary"})).await;
    let mut both = [stable.address, canary.address];
    both.sort_unstable();
    envoy::hosts_become(&proxy, "web", &both).await;

    let load = Load::start(proxy.listener, "web");
    set(&plane, "web", &example("A canary beside the rest")).await;
    envoy::hosts_become(&proxy, "web", &[stable.address]).await;
    envoy::hosts_become(&proxy, "web:canary", &[canary.address]).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    send(&plane, reqwest::Method::DELETE, "/v1/services/web/policy", &json!({})).await;
    envoy::hosts_become(&proxy, "web", &both).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    let tally = load.finish().await;
    assert!(tally.answered() > 20, "{tally:?}");
    assert_eq!(tally.failed, 0, "{:?}", tally.failures);
}

#[tokio::test]
async fn without_a_panic_threshold_nobody_asks_the_unready() {
    let World { proxy, plane } = World::start().await;
    let spec = json!({"cluster": {"panic_threshold": 0}});
    send(&plane, reqwest::Method::PUT, "/v1/services/strict", &spec).await;
    for service in ["strict", "lenient"] {
        let place = Place::register(&plane, service, "a", json!({})).await;
        envoy::hosts_become(&proxy, service, &[place.address]).await;
        assert_eq!(envoy::ask(&proxy, service).await.0, 200);
        place.say(&plane, "unready", &[]).await;
        let gone = proxy.hosts_become(service, "nobody is ready", crate::support::SOON, |hosts| {
            !envoy::healthy(hosts, place.address)
        });
        gone.await.unwrap();
        // Envoy's own default sends to all when less than half are healthy.
        let expected = if service == "strict" { 503 } else { 200 };
        assert_eq!(envoy::ask(&proxy, service).await.0, expected, "{service}");
    }
}

#[tokio::test]
async fn a_hook_that_fails_is_a_finding_and_holds_up_nobody() {
    let plane = Plane::start().await;
    let _labelled = Place::register(&plane, "web", "a", json!({"track": "canary"})).await;
    let plain = Place::register(&plane, "web", "b", json!({})).await;
    let policy = json!({"cluster": "default + ':' + worker.metadata.track"});
    let (status, preview) =
        send(&plane, reqwest::Method::PUT, "/v1/services/web/policy?dry_run=true", &policy).await;
    let finding = &preview["findings"][0];
    assert_eq!((status, &finding["about"]), (200, &json!("web/b@h1 http")), "{preview}");
    assert_eq!(finding["kind"], "hook_failed");
    set(&plane, "web", &policy).await;
    let clusters = |endpoints: &Value| -> Vec<String> {
        let items = endpoints["items"].as_array().unwrap().iter();
        items.map(|item| format!("{} {}", item["worker"], item["cluster"])).collect()
    };
    let endpoints = plane.get("/v1/endpoints?service=web").await;
    assert_eq!(clusters(&endpoints), ["\"web/b@h1\" \"web\"", "\"web/a@h1\" \"web:canary\""]);
    let service = plane.get("/v1/services/web").await;
    assert_eq!((&service["clusters"], &service["ready"]), (&json!(["web", "web:canary"]), &json!(2)));

    let url = plane.url();
    let findings = foldplane_json(&["get", "findings", "-o", "json", "--server", &url]).await;
    let detail = "the hook cluster gives no answer: No such key: track";
    let found = &findings["items"][0];
    let said = ["kind", "severity", "about", "detail"].map(|field| found[field].as_str().unwrap());
    assert_eq!(said, ["hook_failed", "warning", "web/b@h1 http", detail]);
    assert_eq!(findings["items"].as_array().unwrap().len(), 1);
    let (status, _) = send(&plane, reqwest::Method::DELETE, &plain.path, &plain.fence).await;
    assert_eq!(status, 200);
    let none = eventually("no findings", async || {
        let findings = plane.get("/v1/findings").await;
        if findings["items"] == json!([]) { Ok(()) } else { Err(findings.to_string()) }
    });
    none.await;
}

#[tokio::test]
async fn what_cannot_be_a_policy_is_refused_with_what_is_wrong() {
    let plane = Plane::start().await;
    let url = plane.url();
    for (words, says) in [
        (&["--include", "worker.metdata.track == 'x'"][..], "there is no field metdata"),
        (&["--cluster", "'web' +"], "Syntax error"),
        (&["--health", "now()"], "there is no function now"),
        (&["-f", "/does/not/exist.json"], "cannot read"),
        (&[], "required"),
        (&["--include", "true", "-o", "json"], "--dry-run"),
    ] {
        let refused = foldplane(&[&["policy", "set", "--server", &url], words].concat()).await;
        let complaint = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(2), "{words:?}: {complaint}");
        assert!(complaint.contains(says), "{words:?}: {complaint}");
    }
    assert!(!plane.events().await.iter().any(|event| event["event"]["PolicyChanged"].is_object()));
}

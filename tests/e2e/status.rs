//! How the control plane is, as people and scripts are told.

use serde_json::{Value, json};

use crate::support::plane::{Plane, foldplane, foldplane_json};
use crate::support::text;

async fn put(plane: &Plane, path: &str, body: &Value) {
    let url = format!("{}/v1/services/{path}", plane.url());
    let answer = reqwest::Client::new().put(url).json(body).send().await.unwrap();
    assert!(answer.status().is_success(), "{}", answer.text().await.unwrap());
}

fn names(findings: &Value) -> Vec<(String, String)> {
    let word = |finding: &Value, key: &str| finding[key].as_str().unwrap().to_owned();
    findings.as_array().unwrap().iter().map(|found| (word(found, "kind"), word(found, "about"))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn status_says_how_it_is_and_what_to_look_at() {
    let plane = Plane::start().await;
    let url = plane.url();
    let status = async |format: &str| foldplane(&["status", "--server", &url, "-o", format]).await;
    let idle = status("table").await;
    assert!(idle.status.success());
    assert!(String::from_utf8_lossy(&idle.stdout).contains("nothing to look at"), "{idle:?}");

    put(
        &plane,
        "web/workers/a",
        &json!({"host": "h1", "ports": [{"name": "http"}], "readiness": "reported"}),
    )
    .await;
    put(&plane, "cron/workers/b", &json!({"host": "h1"})).await;
    let found = foldplane_json(&["status", "--server", &url, "-o", "json"]).await;
    assert_eq!(found["workers"]["registered"], 2);
    assert_eq!(found["durable_offset"], found["offset"]);
    let expected = [("none_ready", "web"), ("without_endpoint", "cron/b@h1")];
    assert_eq!(names(&found["findings"]), expected.map(|(kind, about)| (kind.to_owned(), about.to_owned())));
    let text = status("text").await;
    assert_eq!(String::from_utf8_lossy(&text.stdout), "none_ready web\nwithout_endpoint cron/b@h1\n");
    let wide = status("wide").await;
    assert!(String::from_utf8_lossy(&wide.stdout).contains("WHAT TO DO"), "{wide:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_may_not_be_as_it_is_meant_is_said() {
    let plane = Plane::start().await;
    let url = plane.url();
    put(&plane, "sock/workers/a", &json!({"host": "h1", "ports": [{"name": "http", "path": "/run/a.sock"}]}))
        .await;
    let cluster = json!({"delivery": "leds", "locality_weighting": "on"});
    let spec = json!({"ports": [{"name": "http"}], "cluster": cluster});
    put(&plane, "near", &spec).await;
    put(&plane, "near/workers/b", &json!({"host": "h1", "ports": [{"name": "http"}]})).await;
    put(&plane, "web/workers/c", &json!({"host": "h1", "ports": [{"name": "http"}]})).await;
    let file = plane.folder().join("web.yaml");
    let own =
        "\"@type\": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment\ncluster_name: web\n";
    std::fs::write(&file, own).unwrap();
    let applied = foldplane(&["apply", "-f", &text(&file), "--server", &url]).await;
    assert!(applied.status.success(), "{applied:?}");
    let found = foldplane_json(&["get", "findings", "-o", "json", "--server", &url]).await;
    let expected = [("endpoints_hidden", "web"), ("sockets_only", "sock"), ("leds_off", "near")];
    assert_eq!(names(&found["items"]), expected.map(|(kind, about)| (kind.to_owned(), about.to_owned())));
}

#[tokio::test(flavor = "multi_thread")]
async fn status_fails_when_nobody_answers() {
    let nobody = foldplane(&["status", "--server", "http://127.0.0.1:9"]).await;
    assert_eq!(nobody.status.code(), Some(5));
    assert!(nobody.stdout.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_are_numbers_that_prometheus_reads() {
    let plane = Plane::start().await;
    put(&plane, "web/workers/a", &json!({"host": "h1", "ports": [{"name": "http"}]})).await;
    let nobody = json!({"host": "h1", "generation": 1});
    let ready = format!("{}/v1/services/web/workers/nobody/ready", plane.url());
    reqwest::Client::new().post(ready).json(&nobody).send().await.unwrap();
    let answer = reqwest::get(format!("{}/metrics", plane.url())).await.unwrap();
    let kind = answer.headers()["content-type"].to_str().unwrap().to_owned();
    assert!(kind.starts_with("application/openmetrics-text"), "{kind}");
    let text = answer.text().await.unwrap();
    for line in [
        "foldplane_workers{state=\"registered\"} 1",
        "foldplane_endpoints{health=\"HEALTHY\"} 1",
        "foldplane_ports{use=\"held\"} 1",
        "foldplane_log_writable 1",
        "foldplane_expiry_held 0",
        "foldplane_offset 2",
        "foldplane_commit_events_count 2",
        "foldplane_commit_events_sum 2.0",
        "foldplane_commit_seconds_count 2",
        "foldplane_wishes_total{outcome=\"unknown_worker\"} 1",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} in\n{text}");
    }
    assert!(text.ends_with("# EOF\n"));
}

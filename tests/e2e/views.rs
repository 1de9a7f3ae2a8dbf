//! Views with real Envoys: each sees what is for it, and a change of view fails no request.

use std::net::SocketAddr;

use foldplane::demo::proxy::Proxy;
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::support::envoy::{ask, bootstrap, hosts_become, start_with};
use crate::support::eventually;
use crate::support::plane::{Plane, foldplane, foldplane_json};
use crate::support::worker::{self, Worker};

async fn view(plane: &Plane, words: &[&str]) -> u64 {
    let done = foldplane(&[&["view"], words, &["--server", &plane.url()]].concat()).await;
    assert!(done.status.success(), "{done:?}");
    let text = String::from_utf8(done.stdout).unwrap();
    text.trim().trim_start_matches('@').parse().unwrap()
}

async fn wait(plane: &Plane) {
    let done = foldplane(&["wait", "--server", &plane.url()]).await;
    assert!(done.status.success(), "{done:?}");
}

async fn envoy(plane: &Plane, node: &str) -> Proxy {
    start_with(&bootstrap(node, plane.xds), plane.folder()).await
}

/// The clusters that an Envoy has from the control plane.
async fn clusters(proxy: &Proxy, of: &[&str]) -> Vec<String> {
    let text = proxy.text("/clusters").await.unwrap();
    let known = |name: &&&str| text.lines().any(|line| line.starts_with(&format!("{name}::")));
    of.iter().filter(known).map(|name| (*name).to_owned()).collect()
}

async fn two_services(plane: &Plane) -> [Worker; 2] {
    let workers = ["web", "pay"].map(|service| worker::start(plane, service, service));
    plane.workers_are_ready("web", 1).await;
    plane.workers_are_ready("pay", 1).await;
    workers
}

#[tokio::test]
async fn two_envoys_see_two_views_and_a_change_of_view_fails_no_request() {
    let plane = Plane::start().await;
    let [web, pay] = two_services(&plane).await;
    view(&plane, &["set", "edge", "--id", "edge-*", "--services", "web"]).await;
    let (edge, inner) = (envoy(&plane, "edge-1").await, envoy(&plane, "inner-1").await);
    let both: &[(&str, SocketAddr)] = &[("web", web.address), ("pay", pay.address)];
    hosts_become(&edge, "web", &[web.address]).await;
    for (service, address) in both {
        hosts_become(&inner, service, &[*address]).await;
    }
    wait(&plane).await;
    assert_eq!(clusters(&edge, &["web", "pay"]).await, ["web"]);
    assert_eq!(ask(&edge, "web").await, (200, "web".to_owned()));
    assert_eq!(ask(&edge, "pay").await.0, 503, "it does not exist there");
    let proxies = foldplane_json(&["get", "proxies", "-o", "json", "--server", &plane.url()]).await;
    let views = |node: &str| {
        let mut items = proxies["items"].as_array().unwrap().iter();
        items.find(|item| item["node"] == node).unwrap()["views"].clone()
    };
    assert_eq!((views("edge-1"), views("inner-1")), (json!(["edge"]), json!([])));

    // Wider, then the other half; nobody who asks for what stays notices.
    let asking = async {
        for _ in 0..200 {
            assert_eq!(ask(&inner, "web").await.0, 200);
            assert_eq!(ask(&edge, "web").await.0, 200);
        }
    };
    let changing = async {
        view(&plane, &["set", "edge", "--id", "edge-*", "--services", "web", "p?y"]).await;
        hosts_become(&edge, "pay", &[pay.address]).await;
        view(&plane, &["set", "rest", "--cluster", "no-such", "--services", "web"]).await;
    };
    tokio::join!(asking, changing);
    view(&plane, &["set", "edge", "--id", "edge-*", "--services", "pay"]).await;
    wait(&plane).await;
    assert_eq!(clusters(&edge, &["web", "pay"]).await, ["pay"], "it had the wait's word for it");
    assert_eq!(ask(&edge, "web").await.0, 503);

    view(&plane, &["delete", "edge"]).await;
    wait(&plane).await;
    assert_eq!(clusters(&edge, &["web", "pay"]).await, ["web", "pay"], "no view is everything");
    for proxy in [&edge, &inner] {
        let refused = proxy.counters("cluster_manager.cds.update_rejected").await.unwrap();
        assert_eq!(refused.values().sum::<u64>(), 0);
    }
}

#[tokio::test]
async fn a_view_survives_a_restart_and_is_set_once() {
    let mut plane = Plane::start().await;
    let words = ["set", "eu", "--cluster", "front", "--metadata", "region=eu", "--services", "eu-*", "web"];
    let first = view(&plane, &words).await;
    assert_eq!(view(&plane, &words).await, first, "it is so already");
    plane.kill().await;
    plane.restart().await;
    let listing = foldplane_json(&["get", "views", "-o", "json", "--server", &plane.url()]).await;
    let expected = json!([{"view": "eu", "ids": [], "clusters": ["front"], "metadata": {"region": "eu"},
        "services": ["eu-*", "web"]}]);
    assert_eq!(listing["items"], expected);
    let table = foldplane(&["get", "views", "--server", &plane.url()]).await;
    let table = String::from_utf8(table.stdout).unwrap();
    assert_eq!(
        table.lines().nth(1).unwrap().split_whitespace().collect::<Vec<_>>(),
        ["eu", "-", "front", "region=eu", "eu-*,web"]
    );
    view(&plane, &["delete", "eu"]).await;
    let nobody = view(&plane, &["delete", "eu"]).await;
    eventually("the view to be gone", async || {
        let listing = plane.get(&format!("/v1/views?min_offset={nobody}")).await;
        if listing["items"] == json!([]) { Ok(()) } else { Err(listing.to_string()) }
    })
    .await;
}

#[tokio::test]
async fn a_view_that_cannot_be_meant_is_refused() {
    let plane = Plane::start().await;
    let url = plane.url();
    for (words, why) in [
        (&["set", "edge", "--services", "web"][..], "--id"),
        (&["set", "edge", "--id", "e*"], "--services"),
        (&["set", "edge", "--id", "e[12]", "--services", "web"], "only `*` and `?` are special"),
        (&["set", "edge", "--metadata", "zone", "--services", "web"], "KEY=VALUE"),
        (&["set", "a b", "--id", "*", "--services", "web"], "is not allowed"),
    ] {
        let refused = foldplane(&[&["view"], words, &["--server", &url]].concat()).await;
        assert_eq!(refused.status.code(), Some(2), "{words:?}: {refused:?}");
        let error = String::from_utf8(refused.stderr).unwrap();
        assert!(error.contains(why), "{words:?}: {error}");
    }
    let put = async |body: Value| {
        let request = reqwest::Client::new().put(format!("{url}/v1/views/edge")).json(&body);
        let answer = request.send().await.unwrap();
        (answer.status(), answer.json::<Value>().await.unwrap())
    };
    for body in [json!({"services": ["web"]}), json!({"ids": vec!["a"; 257], "services": []})] {
        let (status, problem) = put(body).await;
        assert_eq!((status, &problem["code"]), (StatusCode::BAD_REQUEST, &json!("invalid_argument")));
    }
    let (status, problem) = put(json!({"ids": ["{a,b}"], "services": []})).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(problem["detail"].as_str().unwrap().contains("only `*` and `?`"), "{problem}");
    assert_eq!(plane.get("/v1/views").await["items"], json!([]));
}

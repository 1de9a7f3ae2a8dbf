//! Resources of an operator's own: applied, served by a real Envoy, kept over a restart, taken back.

use std::net::SocketAddr;
use std::process::Output;

use foldplane::demo::ports::free_address;
use serde_json::{Value, json};

use crate::support::envoy::{ask, hosts_become};
use crate::support::plane::{Plane, foldplane, foldplane_json};
use crate::support::{World, eventually, text, worker};

const TYPE: &str = "type.googleapis.com/envoy.config";
const EXTENSION: &str = "type.googleapis.com/envoy.extensions.filters";

/// A listener, its route, and a cluster that is no service.
fn edge(listener: SocketAddr, upstream: SocketAddr) -> String {
    let address = |address: SocketAddr| {
        format!("{{ socket_address: {{ address: {}, port_value: {} }} }}", address.ip(), address.port())
    };
    let (listener, upstream) = (address(listener), address(upstream));
    format!(
        r#"
"@type": {TYPE}.listener.v3.Listener
name: edge
address: {listener}
filter_chains:
- filters:
  - name: http
    typed_config:
      "@type": {EXTENSION}.network.http_connection_manager.v3.HttpConnectionManager
      stat_prefix: edge
      rds: {{ route_config_name: edge, config_source: {{ ads: {{}}, resource_api_version: V3 }} }}
      http_filters:
      - name: envoy.filters.http.router
        typed_config: {{ "@type": {EXTENSION}.http.router.v3.Router }}
---
"@type": {TYPE}.route.v3.RouteConfiguration
name: edge
virtual_hosts:
- name: all
  domains: ["*"]
  routes:
  - match: {{ prefix: / }}
    route: {{ cluster: legacy }}
---
"@type": {TYPE}.cluster.v3.Cluster
name: legacy
connectTimeout: 1s
load_assignment:
  cluster_name: legacy
  endpoints:
  - lb_endpoints:
    - endpoint: {{ address: {upstream} }}
"#
    )
}

async fn run(plane: &Plane, arguments: &[&str]) -> Output {
    foldplane(&[arguments, &["--server", &plane.url()]].concat()).await
}

/// What a command says on stderr, which must end with this code.
#[track_caller]
fn failed(output: &Output, code: i32) -> String {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{said}");
    said
}

/// Applies a file, and gives what came of each resource.
async fn apply(plane: &Plane, file: &str) -> Vec<String> {
    let changed = foldplane_json(&["apply", "-f", file, "-o", "json", "--server", &plane.url()]).await;
    let lines = changed["changes"].as_array().unwrap().iter();
    let word = |line: &Value, field: &str| line[field].as_str().unwrap().to_owned();
    lines
        .map(|line| format!("{} {}/{}", word(line, "change"), word(line, "kind"), word(line, "name")))
        .collect()
}

async fn status(listener: SocketAddr) -> Result<u16, String> {
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let answer = client.get(format!("http://{listener}/")).send().await;
    answer.map(|answer| answer.status().as_u16()).map_err(|fault| fault.to_string())
}

async fn answers(listener: SocketAddr, expected: u16) {
    eventually(&format!("status {expected} at {listener}"), async || match status(listener).await {
        Ok(status) if status == expected => Ok(()),
        seen => Err(format!("{seen:?}")),
    })
    .await;
}

#[tokio::test]
async fn a_listener_route_and_cluster_are_applied_served_kept_and_taken_back() {
    let mut world = World::start().await;
    let web = worker::start(&world.plane, "web", "a");
    hosts_become(&world.proxy, "web", &[web.address]).await;
    let listener = free_address().unwrap();
    let file = text(&world.plane.folder().join("edge.yaml"));
    std::fs::write(&file, edge(listener, web.address)).unwrap();

    let before = world.plane.events().await.len();
    let dry = run(&world.plane, &["apply", "-f", &file, "--dry-run"]).await;
    assert!(dry.status.success());
    assert_eq!(world.plane.events().await.len(), before, "a dry run wrote something");
    let created = ["created listener/edge", "created route/edge", "created cluster/legacy"];
    assert_eq!(apply(&world.plane, &file).await, created);
    answers(listener, 200).await;

    let state = world.plane.state().await;
    let unchanged = ["unchanged listener/edge", "unchanged route/edge", "unchanged cluster/legacy"];
    assert_eq!(apply(&world.plane, &file).await, unchanged);
    assert_eq!(world.plane.state().await, state, "applying the same again changed something");

    // What is served can be edited and applied again.
    let shown = run(&world.plane, &["get", "resources", "route", "edge", "-o", "yaml"]).await;
    let shown = String::from_utf8(shown.stdout).unwrap();
    std::fs::write(&file, shown.replace("cluster: legacy", "cluster: web")).unwrap();
    assert_eq!(apply(&world.plane, &file).await, ["changed route/edge"]);
    answers(listener, 200).await;

    world.plane.kill().await;
    world.plane.restart().await;
    world.plane.workers_are_ready("web", 1).await;
    let versions = |state: &Value| {
        let all = state["versions"].as_array().unwrap().iter();
        all.filter(|line| line["name"] == "edge" || line["name"] == "legacy").cloned().collect::<Vec<_>>()
    };
    let kept = versions(&world.plane.state().await);
    assert_eq!(kept.len(), 3, "{kept:?}");
    answers(listener, 200).await;
    let replayed = foldplane_json(&["replay", "--server", &world.plane.url(), "-o", "json"]).await;
    assert_eq!(versions(&replayed["state"]), kept);

    let deleted = run(&world.plane, &["delete", "listener", "edge"]).await;
    assert!(deleted.status.success(), "{}", String::from_utf8_lossy(&deleted.stderr));
    eventually("the end of the listener", async || match status(listener).await {
        Ok(status) => Err(format!("it still answers {status}")),
        Err(_) => Ok(()),
    })
    .await;
    assert_eq!(ask(&world.proxy, "web").await.0, 200, "the rest goes on");
}

#[tokio::test]
async fn what_is_applied_takes_the_place_of_what_workers_make_until_it_is_deleted() {
    let world = World::start().await;
    let (web, pay) = (worker::start(&world.plane, "web", "w"), worker::start(&world.plane, "pay", "p"));
    hosts_become(&world.proxy, "web", &[web.address]).await;
    let file = text(&world.plane.folder().join("web.json"));
    let socket = json!({ "address": pay.address.ip().to_string(), "port_value": pay.address.port() });
    let endpoint = json!({ "endpoint": { "address": { "socket_address": socket } } });
    let endpoints = json!({
        "@type": format!("{TYPE}.endpoint.v3.ClusterLoadAssignment"),
        "cluster_name": "web",
        "endpoints": [{ "locality": {}, "load_balancing_weight": 1, "lb_endpoints": [endpoint] }],
    });
    std::fs::write(&file, endpoints.to_string()).unwrap();
    assert_eq!(apply(&world.plane, &file).await, ["created endpoints/web"]);
    hosts_become(&world.proxy, "web", &[pay.address]).await;
    let listed = world.plane.get("/v1/resources?kind=endpoints&name=web").await;
    assert_eq!(listed["items"][0]["origin"], "operator", "{listed}");
    assert_eq!(listed["items"][0]["hides_workers"], true, "{listed}");
    assert!(run(&world.plane, &["delete", "-f", &file]).await.status.success());
    hosts_become(&world.proxy, "web", &[web.address]).await;
}

#[tokio::test]
async fn what_is_wrong_is_refused_whole_with_its_place_and_what_to_do() {
    let plane = Plane::start().await;
    let file = text(&plane.folder().join("bad.yaml"));
    let check = async |content: &str, code: i32, said: &str| {
        std::fs::write(&file, content).unwrap();
        let output = run(&plane, &["apply", "-f", &file]).await;
        let told = failed(&output, code);
        assert!(told.contains(said) && told.contains("hint: "), "{told}");
    };
    let good = edge("127.0.0.1:1000".parse().unwrap(), "127.0.0.1:1001".parse().unwrap());
    check("a: [1", 2, "neither YAML nor JSON").await;
    check("", 2, "no resource").await;
    check("name: x", 2, "apply[0] (\"x\"): @type: it is missing").await;
    check(&good.replace("port_value: 1001", "port_value: high"), 2, "endpoints[0].lb_endpoints[0]").await;
    check(
        &good.replace("address: 127.0.0.1, port_value: 1001", "address: db.example, port_value: 1001"),
        2,
        "\"db.example\" is not an IP address",
    )
    .await;
    let upstream = "{ socket_address: { address: 127.0.0.1, port_value: 1001 } }";
    let pipe = format!("{{ pipe: {{ path: /{} }} }}", "a".repeat(107));
    check(&good.replace(upstream, &pipe), 2, "address.pipe.path: a socket's path has 1 to 107 bytes").await;
    check(&good.replace("http.router.v3.Router", "http.rooter.v3.Router"), 2, "http_filters[0].typed_config")
        .await;
    check(
        &good.replace("cluster: legacy }", "cluster: legasy }"),
        1,
        "virtual_hosts[0].routes[0].route.cluster: there is no cluster/legasy",
    )
    .await;
    check(&format!("{good}---{good}"), 2, "is in the change twice").await;
    assert_eq!(plane.get("/v1/resources").await["items"], json!([]), "something of it was applied");

    std::fs::write(&file, good).unwrap();
    assert_eq!(apply(&plane, &file).await.len(), 3);
    let told = failed(&run(&plane, &["delete", "cluster", "legacy"]).await, 1);
    assert!(told.contains("cluster/legacy is named by route/edge"), "{told}");
    failed(&run(&plane, &["delete", "cluster", "nobody"]).await, 3);
    failed(&run(&plane, &["delete", "secret", "x"]).await, 2);
    failed(&run(&plane, &["get", "resources", "cluster", "nobody"]).await, 3);
    assert!(run(&plane, &["delete", "cluster", "legacy", "--allow-missing"]).await.status.success());
}

//! Proxyless gRPC: a real client of the C core finds the workers of a service by its name.

use foldplane::demo::ports::free_address;
use foldplane::demo::process::Process;
use foldplane::provision::{GrpcPython, GrpcSearch, Progress, default_cache};
use serde_json::{Value, json};

use crate::support::plane::Plane;
use crate::support::{SOON, envoy, eventually, launcher, text, worker};

/// So many answers in a row show who is in the rotation.
const IN_A_ROW: usize = 30;

#[tokio::test]
async fn a_grpc_client_follows_workers_and_outlives_the_control_plane() {
    let python = python().await;
    let mut plane = Plane::start().await;
    let _a = start_worker(&plane, &python, "a");
    let mut b = start_worker(&plane, &python, "b");
    plane.workers_are_ready("names", 2).await;
    let client = start_client(&plane, &python);
    answers_come_from(&client, &["a", "b"]).await;

    b.kill(SOON).await.unwrap();
    answers_come_from(&client, &["a"]).await;
    // A call that was with the killed worker fails: nobody repeats it for a proxyless client.
    let failures = failures(&client);
    assert!(failures.len() <= 1, "{failures:?}");

    plane.kill().await;
    let during = said(&client).len();
    eventually("calls without a control plane", async || enough(&client, during)).await;
    plane.restart().await;
    plane.workers_are_ready("names", 1).await;
    let _c = start_worker(&plane, &python, "c");
    answers_come_from(&client, &["a", "c"]).await;
    assert_eq!(self::failures(&client), failures, "the outage was noticed");
}

// gRPC takes no endpoint but an IP address, and refuses the whole assignment in which there is another.
#[tokio::test]
async fn a_grpc_client_is_not_told_of_a_socket_and_an_envoy_is() {
    let python = python().await;
    let plane = Plane::start().await;
    let path = text(&plane.folder().join("names.sock"));
    let _socket = worker::run(
        &plane,
        "names",
        "socket",
        &["--port", &format!("grpc={path}")],
        &[&python, &script("worker.py")],
    );
    let _port = start_worker(&plane, &python, "port");
    plane.workers_are_ready("names", 2).await;
    let client = start_client(&plane, &python);
    let envoy = envoy::start("edge", plane.xds, plane.folder()).await;
    answers_come_from(&client, &["port"]).await;
    eventually("the socket in Envoy", async || {
        let hosts = envoy.text("/clusters").await.unwrap();
        if hosts.contains(&format!("names::{path}::")) { Ok(()) } else { Err(hosts) }
    })
    .await;
    let (client_before, envoy_before) = (acked(&plane, "client-1").await, acked(&plane, "edge").await);
    assert_ne!(client_before, envoy_before, "they are told of different endpoints");
    // A second socket comes, and nothing is sent to the client: for it nothing changed.
    let other = format!("grpc={}", text(&plane.folder().join("other.sock")));
    let command = [python.as_str(), &script("worker.py")];
    let _other = worker::run(&plane, "names", "other", &["--port", &other], &command);
    eventually("the other socket in Envoy", async || {
        let acked = acked(&plane, "edge").await;
        if acked == envoy_before { Err(acked.to_string()) } else { Ok(()) }
    })
    .await;
    assert_eq!(acked(&plane, "client-1").await, client_before);
    assert_eq!(plane.get("/v1/findings").await["items"], json!([]), "nobody refused anything");
    assert_eq!(failures(&client), Vec::<String>::new());
}

/// The version of the endpoints that a node has accepted.
async fn acked(plane: &Plane, node: &str) -> Value {
    let proxies = plane.get("/v1/proxies").await;
    let mut items = proxies["items"].as_array().unwrap().iter();
    let types = &items.find(|item| item["node"] == node).unwrap()["types"];
    types.as_array().unwrap().iter().find(|of| of["type"] == "EDS").unwrap()["acked"].clone()
}

async fn python() -> String {
    let search = GrpcSearch { cache: default_cache().unwrap() };
    match GrpcPython::locate(&search, &Progress::stderr()).await {
        Ok(found) => text(&found.python),
        Err(fault) => panic!("this test needs gRPC for Python: {fault}\nhint: {}", fault.hint()),
    }
}

fn script(name: &str) -> String {
    format!("{}/tests/e2e/grpc/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn start_worker(plane: &Plane, python: &str, id: &str) -> Process {
    let port = format!("grpc={}", free_address().unwrap().port());
    worker::run(plane, "names", id, &["--port", &port], &[python, &script("worker.py")])
}

fn start_client(plane: &Plane, python: &str) -> Process {
    let bootstrap = json!({
        "xds_servers": [{
            "server_uri": plane.xds.to_string(),
            "channel_creds": [{"type": "insecure"}],
            "server_features": ["xds_v3", "ignore_resource_deletion"],
        }],
        "node": {"id": "client-1"},
    });
    let variable = format!("GRPC_XDS_BOOTSTRAP_CONFIG={bootstrap}");
    let words = ["env", &variable, python, &script("client.py"), "names"].map(str::to_owned);
    let command: Vec<String> = launcher().into_iter().chain(words).collect();
    Process::start("client", &command, plane.folder()).unwrap()
}

/// What the client has printed.
fn said(client: &Process) -> Vec<String> {
    let text = std::fs::read_to_string(client.log()).unwrap();
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole.lines().map(str::to_owned).collect()
}

fn failures(client: &Process) -> Vec<String> {
    said(client).into_iter().filter(|line| line.starts_with("failed")).collect()
}

fn enough(client: &Process, since: usize) -> Result<(), String> {
    let said = said(client);
    if said.len() >= since + IN_A_ROW { Ok(()) } else { Err(client.last_lines()) }
}

/// Waits until the last answers come from all of these workers and nobody else.
async fn answers_come_from(client: &Process, wanted: &[&str]) {
    eventually(&format!("answers from {wanted:?}"), async || {
        let said = said(client);
        let recent = &said[said.len().saturating_sub(IN_A_ROW)..];
        let only = recent.iter().all(|name| wanted.contains(&name.as_str()));
        let all = wanted.iter().all(|name| recent.iter().any(|answer| answer == name));
        if only && all && recent.len() == IN_A_ROW { Ok(()) } else { Err(format!("{recent:?}")) }
    })
    .await;
}

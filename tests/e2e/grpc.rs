//! Proxyless gRPC: a real client of the C core finds the workers of a service by its name.

use foldplane::demo::ports::free_address;
use foldplane::demo::process::Process;
use foldplane::provision::{GrpcPython, GrpcSearch, Progress, default_cache};
use serde_json::json;

use crate::support::plane::Plane;
use crate::support::{SOON, eventually, launcher, text, worker};

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

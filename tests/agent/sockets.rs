//! Workers that serve a Unix domain socket: Envoy dials it, and whoever else sits on it is found.

use std::os::unix::net::UnixListener;

use crate::support::envoy::ask;
use crate::support::plane::foldplane;
use crate::support::{SOON, World, eventually, text, worker};
use crate::world::{Server, worker as script};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn envoy_reaches_a_worker_through_its_socket_for_as_long_as_it_lives() {
    let world = World::start().await;
    let path = text(&world.plane.folder().join("web.sock"));
    // One that died without removing it.
    drop(UnixListener::bind(&path).unwrap());
    let port = format!("http={path}");
    let command = ["python3", &script("server.py")];
    let mut agent = worker::run(&world.plane, "web", "s", &["--port", &port], &command);
    eventually("an answer through the socket", async || {
        let (status, said) = ask(&world.proxy, "web").await;
        if status == 200 { Ok(()) } else { Err(format!("{status} {said}: {}", agent.last_lines())) }
    })
    .await;
    let hosts = world.proxy.text("/clusters").await.unwrap();
    assert!(hosts.contains(&format!("web::{path}::health_flags::healthy")), "{hosts}");

    let endpoints = world.plane.get("/v1/endpoints").await;
    let endpoint = &endpoints["items"][0];
    assert_eq!(endpoint["address"], format!("unix:{path}"));
    assert_eq!((&endpoint["path"], &endpoint["host"]), (&path.as_str().into(), &serde_json::Value::Null));
    let listed = foldplane(&["get", "endpoints", "--server", &world.plane.url()]).await;
    let listed = String::from_utf8(listed.stdout).unwrap();
    assert!(listed.contains(&format!("unix:{path}")), "{listed}");

    agent.kill(SOON).await.unwrap();
    eventually("the endpoint to go", async || {
        let hosts = world.proxy.text("/clusters").await.unwrap();
        if hosts.contains(&path) { Err(hosts) } else { Ok(()) }
    })
    .await;
}

#[test]
fn a_socket_on_which_a_stranger_listens_is_not_shared_with_it() {
    let server = Server::start();
    let path = server.folder().join("web.sock");
    let _stranger = UnixListener::bind(&path).unwrap();
    let port = format!("http={}", path.display());
    let options = ["--service", "web", "--id", "a", "--port", &port];
    let mut agent = server.agent(&options, &["python3", &script("server.py")]);
    assert_eq!(agent.ended().code(), Some(1));
    assert_eq!(server.story("a"), ["WorkerRegistered", "WorkerRemoved"]);
    let said = agent.said();
    assert!(said.contains("another program listens on") && said.contains("give another path"), "{said}");
}

#[test]
fn a_worker_is_ready_once_it_answers_through_its_socket() {
    let server = Server::start();
    let path = server.folder().join("web.sock");
    let port = format!("http={}", path.display());
    let options = ["--service", "web", "--id", "a", "--port", &port, "--ready", "http:/"];
    let _agent = server.agent(&options, &["python3", &script("server.py")]);
    server.wait_for("WorkerReady web/a@h");
}

#[test]
fn a_path_that_no_socket_can_have_is_refused_before_anything_starts() {
    let server = Server::start();
    let long = format!("http=/{}", "a".repeat(107));
    for (port, why) in [("http=web.sock", "absolute path"), (long.as_str(), "at most 107 bytes")] {
        let mut agent = server.agent(&["--service", "web", "--port", port], &["true"]);
        assert_eq!(agent.ended().code(), Some(2));
        let said = agent.said();
        assert!(said.contains(why), "{said}");
    }
}

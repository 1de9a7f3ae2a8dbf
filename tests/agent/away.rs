//! A control plane that is not there yet, goes away, comes back, or comes back too late.

use std::time::Duration;

use nix::sys::signal::Signal;

use crate::world::{Server, runs, worker};

const OPTIONS: [&str; 6] = ["--service", "web", "--id", "a", "--port", "http"];

#[test]
fn an_agent_waits_for_a_control_plane_and_then_starts_its_child() {
    let mut server = Server::absent(Vec::new());
    let script = worker("server.py");
    let _agent = server.agent(&OPTIONS, &["python3", &script]);
    std::thread::sleep(Duration::from_millis(500));
    server.restart();
    server.wait_for("WorkerReady web/a@h");
}

#[test]
fn an_agent_that_waits_in_vain_says_what_for() {
    let server = Server::absent(Vec::new());
    let options = ["--service", "web", "--wait", "0.3"];
    let mut agent = server.agent(&options, &["sh", "-c", "echo ran"]);
    assert_eq!(agent.ended().code(), Some(5));
    assert_eq!(agent.child_line(), "");
    let said = agent.said();
    assert!(said.contains("foldplane serve") && said.contains("gave up waiting"), "{said}");
}

#[test]
fn a_control_plane_that_is_killed_and_comes_back_finds_the_worker_as_it_was() {
    let mut server = Server::start();
    let script = worker("server.py");
    let mut agent = server.agent(&OPTIONS, &["python3", &script]);
    let child = agent.child_line().parse().unwrap();
    server.wait_for("WorkerReady web/a@h");
    server.kill();
    std::thread::sleep(Duration::from_millis(500));
    assert!(runs(child));
    server.restart();
    server.wait_for("WorkerReconnected web/a@h");
    assert_eq!(server.story("a"), ["WorkerRegistered", "WorkerReady", "WorkerReconnected"]);
    agent.signal(Signal::SIGTERM);
    assert_eq!(agent.ended().code(), Some(7));
}

// hashicorp/nomad#26424
#[test]
fn a_worker_that_comes_back_too_late_registers_anew_on_the_port_that_it_has() {
    let mut server = Server::start_with(&["--rejoin-grace", "1"]);
    let script = worker("server.py");
    let mut agent = server.agent(&OPTIONS, &["python3", &script]);
    let child = agent.child_line().parse().unwrap();
    let before = server.wait_for("WorkerRegistered web/a@h");
    server.wait_for("WorkerReady web/a@h");
    server.kill();
    agent.signal(Signal::SIGSTOP);
    server.restart();
    server.wait_for("WorkerRemoved did not rejoin");
    agent.signal(Signal::SIGCONT);
    let expected = ["WorkerRegistered", "WorkerReady", "WorkerRemoved", "WorkerRegistered", "WorkerReady"];
    server.wait_for_story("a", &expected);
    let log = server.log();
    let after = log.lines().rfind(|line| line.contains("WorkerRegistered web/a@h")).unwrap();
    let port = |line: &str| line.split_once("http=").map(|(_, address)| address.to_owned());
    assert_eq!(port(after), port(&before));
    assert!(runs(child));
}

#[test]
fn a_child_that_ends_while_the_control_plane_is_away_is_not_a_ghost_afterwards() {
    let mut server = Server::start_with(&["--rejoin-grace", "1"]);
    let mut agent = server.agent(&OPTIONS[..4], &["sh", "-c", "sleep 1; exit 9"]);
    server.wait_for("WorkerReady web/a@h");
    server.kill();
    assert_eq!(agent.ended().code(), Some(9));
    server.restart();
    server.wait_for("WorkerRemoved did not rejoin");
}

//! Every way in which a worker can begin and end.

use std::time::Duration;

use nix::sys::signal::{Signal, kill};

use crate::world::{Agent, Server, eventually, pid, runs, worker};

fn start(server: &Server, id: &str, options: &[&str], arguments: &[&str]) -> (Agent, u32) {
    let script = worker("server.py");
    let options = [&["--service", "web", "--port", "http", "--id", id], options].concat();
    let command = [&["python3", script.as_str()], arguments].concat();
    let mut agent = server.agent(&options, &command);
    let child = agent.child_line().parse().unwrap_or_else(|_| panic!("no child: {}", agent.said()));
    (agent, child)
}

#[test]
fn a_worker_is_published_when_it_listens_and_not_before() {
    let server = Server::start();
    let (_agent, _) = start(&server, "a", &[], &[]);
    assert_eq!(server.story("a"), ["WorkerRegistered"]);
    server.wait_for("WorkerReady web/a@h");
}

#[test]
fn a_killed_child_is_out_at_once_and_its_signal_is_the_cause() {
    let server = Server::start();
    let (mut agent, child) = start(&server, "a", &[], &[]);
    server.wait_for("WorkerReady web/a@h");
    let before = jiff::Timestamp::now();
    kill(pid(child), Signal::SIGKILL).unwrap();
    let removed = server.wait_for("WorkerRemoved killed by signal 9");
    assert_eq!(agent.ended().code(), Some(137));
    let recorded: jiff::Timestamp = removed.split_whitespace().nth(1).unwrap().parse().unwrap();
    let took = recorded.duration_since(before);
    // Some 5 ms where nobody else needs the processor.
    assert!(took.as_millis() < 500, "{took:?}");
}

#[test]
fn a_killed_agent_takes_its_child_along() {
    let server = Server::start();
    let (agent, child) = start(&server, "a", &[], &[]);
    server.wait_for("WorkerReady web/a@h");
    assert!(runs(child));
    agent.signal(Signal::SIGKILL);
    server.wait_for("WorkerRemoved web/a@h disconnected");
    eventually(|| (!runs(child)).then_some(())).expect("the child lives on");
}

#[test]
fn asked_to_stop_the_worker_is_drained_first() {
    let server = Server::start();
    let (mut agent, child) = start(&server, "a", &["--drain", "0.5"], &[]);
    server.wait_for("WorkerReady web/a@h");
    agent.signal(Signal::SIGTERM);
    server.wait_for("WorkerDraining web/a@h");
    assert!(runs(child));
    assert_eq!(agent.ended().code(), Some(7));
    assert_eq!(server.story("a"), ["WorkerRegistered", "WorkerReady", "WorkerDraining", "WorkerRemoved"]);
}

#[test]
fn a_second_signal_does_not_wait_for_the_drain() {
    let server = Server::start();
    let (mut agent, _) = start(&server, "a", &["--drain", "600"], &[]);
    server.wait_for("WorkerReady web/a@h");
    agent.signal(Signal::SIGTERM);
    server.wait_for("WorkerDraining web/a@h");
    agent.signal(Signal::SIGTERM);
    assert_eq!(agent.ended().code(), Some(7));
    server.wait_for("WorkerRemoved exited with code 7");
}

#[test]
fn a_child_that_ignores_the_request_to_stop_is_killed() {
    let server = Server::start();
    let options = ["--drain", "0", "--stop-within", "0.3"];
    let (mut agent, _) = start(&server, "a", &options, &["--stubborn"]);
    server.wait_for("WorkerReady web/a@h");
    agent.signal(Signal::SIGTERM);
    assert_eq!(agent.ended().code(), Some(137));
    server.wait_for("WorkerRemoved killed by signal 9");
    assert!(agent.said().contains("did not stop within"));
}

#[test]
fn a_child_that_never_listens_is_never_published_and_ends_as_a_fault() {
    let server = Server::start();
    let (mut agent, child) = start(&server, "a", &["--ready-within", "3"], &["--deaf"]);
    assert_eq!(agent.ended().code(), Some(1));
    assert!(!runs(child));
    server.wait_for("WorkerRemoved exited with code 7");
    assert_eq!(server.story("a"), ["WorkerRegistered", "WorkerRemoved"]);
}

#[test]
fn what_a_child_leaves_behind_in_its_group_ends_with_the_agent() {
    let server = Server::start();
    let (mut agent, helper) = start(&server, "a", &[], &["--fork"]);
    assert_eq!(agent.ended().code(), Some(0));
    assert!(!runs(helper));
    server.wait_for("WorkerRemoved exited with code 0");
}

#[test]
fn a_child_that_fails_is_started_again_under_the_same_registration() {
    let server = Server::start();
    let folder = tempfile::tempdir().unwrap();
    let marker = folder.path().join("failed");
    let arguments = ["--fail-once", marker.to_str().unwrap()];
    let (_agent, _) = start(&server, "a", &["--restart", "on-failure"], &arguments);
    server.wait_for("WorkerReady web/a@h");
    assert_eq!(server.story("a"), ["WorkerRegistered", "WorkerUnready", "WorkerReady"]);
}

#[test]
fn a_frozen_agent_and_child_go_on_as_if_nothing_had_been() {
    let server = Server::start();
    let (agent, child) = start(&server, "a", &[], &[]);
    server.wait_for("WorkerReady web/a@h");
    agent.signal(Signal::SIGSTOP);
    kill(pid(child), Signal::SIGSTOP).unwrap();
    std::thread::sleep(Duration::from_secs(1));
    agent.signal(Signal::SIGCONT);
    kill(pid(child), Signal::SIGCONT).unwrap();
    assert_eq!(server.story("a"), ["WorkerRegistered", "WorkerReady"]);
}

#[test]
fn a_program_that_does_not_exist_gives_what_shells_give() {
    let server = Server::start();
    let mut agent = server.agent(&["--service", "web", "--id", "a"], &["no-such-program"]);
    assert_eq!(agent.ended().code(), Some(127));
    server.wait_for("WorkerRemoved exited with code 127");
    assert!(agent.said().contains("no-such-program"));
}

#[test]
fn a_worker_without_ports_is_ready_at_once_and_ends_with_its_code() {
    let server = Server::start();
    let options = ["--service", "jobs", "--id", "a"];
    let mut agent = server.agent(&options, &["sh", "-c", "test -z \"$PORT\" && sleep 0.3; exit 42"]);
    server.wait_for("WorkerReady jobs/a@h");
    assert_eq!(agent.ended().code(), Some(42));
    server.wait_for("WorkerRemoved exited with code 42");
}

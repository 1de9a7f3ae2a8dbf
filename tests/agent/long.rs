//! Outages that are longer than anybody waits. Waiting is all that they do, so they do it beside each other.

use std::thread::{scope, sleep};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};

use crate::world::{Agent, Server, eventually, pid, runs, worker};

/// Longer than a silent session is waited for: 30 s until it is asked for a sign of life, 10 s for the answer, and 30 s more,
/// in case it is the network.
const LONGER_THAN_A_SESSION: Duration = Duration::from_secs(75);

/// Longer than an agent waits for a sign of life, which it asks for after 10 s.
const LONGER_THAN_AN_AGENT: Duration = Duration::from_secs(20);

/// Twice the time that workers have to come back, which runs from when there is somebody to come back to.
const A_MINUTE: Duration = Duration::from_secs(60);

#[test]
fn who_was_away_or_stood_still_for_longer_than_anybody_waits_is_found_again() {
    scope(|scope| {
        scope.spawn(a_control_plane_that_is_away_for_a_minute_finds_the_worker_as_it_was);
        scope.spawn(an_agent_and_child_that_stood_still_are_removed_and_come_back_on_their_port);
        scope.spawn(a_control_plane_that_stood_still_finds_the_worker_again);
    });
}

/// A worker that serves, and its process.
fn serving(server: &Server, options: &[&str]) -> (Agent, u32) {
    let options = [&["--service", "web", "--id", "a", "--port", "http"], options].concat();
    let mut agent = server.agent(&options, &["python3", &worker("server.py")]);
    let child = agent.child_line().parse().unwrap();
    server.wait_for("WorkerReady web/a@h");
    (agent, child)
}

fn a_control_plane_that_is_away_for_a_minute_finds_the_worker_as_it_was() {
    let mut server = Server::start();
    let (_agent, child) = serving(&server, &[]);
    server.kill();
    sleep(A_MINUTE);
    server.restart();
    server.wait_for("WorkerReconnected web/a@h");
    assert_eq!(server.story("a"), ["WorkerRegistered", "WorkerReady", "WorkerReconnected"]);
    assert!(runs(child));
}

fn an_agent_and_child_that_stood_still_are_removed_and_come_back_on_their_port() {
    let server = Server::start();
    let (agent, child) = serving(&server, &[]);
    let before = server.wait_for("WorkerRegistered web/a@h");
    agent.signal(Signal::SIGSTOP);
    kill(pid(child), Signal::SIGSTOP).unwrap();
    sleep(LONGER_THAN_A_SESSION);
    server.wait_for("WorkerRemoved web/a@h");
    agent.signal(Signal::SIGCONT);
    kill(pid(child), Signal::SIGCONT).unwrap();
    let again =
        || server.story("a").ends_with(&["WorkerRegistered".into(), "WorkerReady".into()]).then_some(());
    eventually(again).unwrap_or_else(|| panic!("{}", server.log()));
    let log = server.log();
    let after = log.lines().rfind(|line| line.contains("WorkerRegistered web/a@h")).unwrap();
    let address = |line: &str| line.split_once("http=").map(|(_, address)| address.to_owned());
    assert_eq!(address(after), address(&before));
    assert_ne!(after, before);
    assert!(runs(child), "the child was started anew");
}

fn a_control_plane_that_stood_still_finds_the_worker_again() {
    let server = Server::start();
    let (_agent, child) = serving(&server, &["--disconnect-grace", "30"]);
    server.signal(Signal::SIGSTOP);
    sleep(LONGER_THAN_AN_AGENT);
    server.signal(Signal::SIGCONT);
    server.wait_for("WorkerReconnected web/a@h");
    // Whether the end of the old session or the new one is heard first is chance; nobody is removed in either case.
    let mut story = server.story("a");
    story.retain(|event| event != "WorkerDisconnected");
    assert_eq!(story, ["WorkerRegistered", "WorkerReady", "WorkerReconnected"]);
    assert!(runs(child));
}

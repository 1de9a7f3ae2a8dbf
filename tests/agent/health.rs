//! What a worker says of itself and what its monitors see: in the log, in the lists, and only as it changes.

use nix::sys::signal::Signal;

use crate::world::{Agent, Server, eventually, worker};

const OPTIONS: [&str; 8] = ["--service", "web", "--id", "a", "--port", "http", "--ready", "notify"];

/// A worker that says what it is told to say, and is ready.
fn relay(server: &Server, options: &[&str]) -> Agent {
    let script = worker("server.py");
    let options = [&OPTIONS[..], options].concat();
    let mut agent = server.agent_with_input(&options, &["python3", &script, "--relay"]);
    agent.input("READY=1\n");
    server.wait_for("WorkerReady web/a@h");
    agent
}

#[track_caller]
fn shown(server: &Server, status: &str) {
    let list = || Some(server.get(&["workers", "-o", "wide"])).filter(|list| list.contains(status));
    eventually(list)
        .unwrap_or_else(|| panic!("{status:?} is not in\n{}", server.get(&["workers", "-o", "wide"])));
}

#[test]
fn what_a_worker_says_of_itself_and_its_parts_is_in_the_log_and_in_the_lists() {
    let server = Server::start();
    let mut agent = relay(&server, &[]);
    agent.input("STATUS=warming up\n");
    shown(&server, "warming up");
    agent.input("X_FOLDPLANE_HEALTH_DB=unhealthy: no answer\n");
    server.wait_for("WorkerHealthReported web/a@h custom:db unhealthy no answer");
    shown(&server, "warming up; custom:db unhealthy: no answer");
    assert!(server.get(&["endpoints", "web"]).contains("UNHEALTHY"));
    agent.input("X_FOLDPLANE_HEALTH_DB=healthy\n");
    server.wait_for("WorkerHealthReported web/a@h custom:db healthy");
    agent.input("X_FOLDPLANE_HEALTH=degraded: cache is cold\n");
    shown(&server, "worker degraded: cache is cold");
    assert!(!server.get(&["endpoints", "web"]).contains("UNHEALTHY"));
}

#[test]
fn a_worker_that_counts_its_requests_is_degraded_from_its_threshold_on() {
    let server = Server::start();
    let mut agent = relay(&server, &["--requests-max", "10", "--drain", "0"]);
    for active in [3, 12, 11, 12, 5] {
        agent.input(&format!("X_FOLDPLANE_METRICS=requests_active={active} requests_total=40\n"));
    }
    agent.input("X_FOLDPLANE_METRICS=requests_active=many\n");
    server.wait_for("WorkerHealthReported web/a@h utilization degraded 12 requests of 10");
    server.wait_for("WorkerHealthReported web/a@h utilization healthy");
    let reports = ["WorkerRegistered", "WorkerReady", "WorkerHealthReported", "WorkerHealthReported"];
    assert_eq!(server.story("a"), reports);
    agent.signal(Signal::SIGTERM);
    assert_eq!(agent.ended().code(), Some(7));
    let said = agent.said();
    assert!(said.contains("the worker served 40 requests"), "{said}");
    assert!(said.contains("cannot be read: \"X_FOLDPLANE_METRICS=requests_active=many\""), "{said}");
}

#[test]
fn a_worker_that_ends_again_and_again_is_degraded_then_gets_no_requests() {
    let server = Server::start();
    let options = ["--service", "jobs", "--id", "a", "--restart", "on-failure"];
    let _agent = server.agent(&options, &["sh", "-c", "sleep 0.2; exit 3"]);
    server.wait_for("WorkerHealthReported jobs/a@h process degraded ended 2 times");
    server.wait_for("WorkerHealthReported jobs/a@h process unhealthy ended 5 times");
}

#[test]
fn a_worker_that_knows_that_it_is_stuck_is_aborted() {
    let server = Server::start();
    let mut agent = relay(&server, &["--watchdog", "600"]);
    agent.input("WATCHDOG=trigger\n");
    assert_eq!(agent.ended().code(), Some(134));
    server.wait_for("WorkerUnready web/a@h no sign of life");
    server.wait_for("WorkerRemoved killed by signal 6");
}

#[test]
fn the_watchdog_of_the_agents_own_supervisor_is_not_the_workers() {
    let server = Server::start();
    let outer = [("WATCHDOG_PID", "1"), ("WATCHDOG_USEC", "1")];
    let script = "echo \"${WATCHDOG_PID-none} ${WATCHDOG_USEC-none}\"";
    let options = ["--service", "jobs", "--id", "a"];
    let line = |options: &[&str]| server.agent_in(&outer, options, &["sh", "-c", script]).child_line();
    assert_eq!(line(&options), "none none");
    assert_eq!(line(&[&options[..], &["--watchdog", "2"]].concat()), "none 2000000");
}

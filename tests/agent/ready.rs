//! The signs by which a worker can serve, cannot, and can again.

use nix::sys::signal::Signal;

use crate::world::{Agent, Server, worker};

const OPTIONS: [&str; 6] = ["--service", "web", "--id", "a", "--port", "http"];

fn start(server: &Server, options: &[&str], arguments: &[&str]) -> Agent {
    let script = worker("server.py");
    server.agent(&[&OPTIONS[..], options].concat(), &[&["python3", script.as_str()], arguments].concat())
}

#[test]
fn a_worker_that_reports_by_itself_is_ready_unready_and_stopping_when_it_says_so() {
    let server = Server::start();
    let mut agent = start(&server, &["--ready", "notify", "--drain", "0.3"], &["--notify"]);
    server.wait_for("WorkerReady web/a@h");
    agent.signal(Signal::SIGUSR1);
    server.wait_for("WorkerUnready web/a@h the database is away");
    agent.signal(Signal::SIGUSR2);
    // The status that came with the first ready is told as well.
    let again = ["WorkerRegistered", "WorkerReady", "WorkerHealthReported", "WorkerUnready", "WorkerReady"];
    server.wait_for_story("a", &again);
    agent.signal(Signal::SIGHUP);
    server.wait_for("WorkerDraining web/a@h about to end");
    assert_eq!(agent.ended().code(), Some(7));
    let said = agent.said();
    assert!(said.contains("the worker says: up") && said.contains("the worker says: back"), "{said}");
}

#[test]
fn a_worker_that_listens_but_says_nothing_is_not_ready_where_it_should_say_so() {
    let server = Server::start();
    let mut agent = start(&server, &["--ready", "notify", "--ready-within", "2"], &[]);
    assert_eq!(agent.ended().code(), Some(1));
    assert_eq!(server.story("a"), ["WorkerRegistered", "WorkerRemoved"]);
    assert!(agent.said().contains("READY=1"));
}

#[test]
fn a_worker_is_ready_once_it_answers_with_success() {
    let server = Server::start();
    let _agent = start(&server, &["--ready", "http:/"], &[]);
    server.wait_for("WorkerReady web/a@h");
}

#[test]
fn an_answer_without_success_is_no_readiness() {
    let server = Server::start();
    let mut agent = start(&server, &["--ready", "http:/no-such-page", "--ready-within", "2"], &[]);
    assert_eq!(agent.ended().code(), Some(1));
    assert_eq!(server.story("a"), ["WorkerRegistered", "WorkerRemoved"]);
}

#[test]
fn a_worker_that_takes_too_much_memory_is_unhealthy_until_it_gives_it_back() {
    let server = Server::start();
    let agent = start(&server, &["--memory-max", "64M"], &["--greedy"]);
    server.wait_for("WorkerHealthReported web/a@h memory unhealthy");
    agent.signal(Signal::SIGUSR1);
    server.wait_for("WorkerHealthReported web/a@h memory healthy");
}

#[test]
fn a_worker_without_a_sign_of_life_is_unready_then_gone() {
    let server = Server::start();
    let options = ["--ready", "notify", "--watchdog", "0.5"];
    let mut agent = start(&server, &options, &["--notify"]);
    server.wait_for("WorkerUnready web/a@h no sign of life");
    assert_eq!(agent.ended().code(), Some(134));
    server.wait_for("WorkerRemoved killed by signal 6");
}

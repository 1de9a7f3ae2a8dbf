//! Ports: handed over, tried before use, and never taken from a stranger.

use std::io::{Read, Write};
use std::net::TcpListener;

use crate::world::{Server, worker};

#[test]
fn the_child_finds_its_ports_in_environment_and_arguments() {
    let server = Server::start();
    let script = "echo $HOST $PORT $PORT_HTTP $PORT_ADMIN_UI $FOLDPLANE_SERVICE $FOLDPLANE_WORKER $FOLDPLANE_GENERATION $0 $1";
    let options = ["--service", "web", "--id", "a", "--port", "http", "--port", "admin-ui", "--ready", "now"];
    let mut agent = server.agent(&options, &["sh", "-c", script, "{port:admin-ui}", "{worker}"]);
    let line = agent.child_line();
    let registered = server.wait_for("WorkerRegistered web/a@h");
    let words: Vec<&str> = line.split(' ').collect();
    let [host, port, http, admin, service, id, generation, filled, worker] = words[..] else {
        panic!("{line}");
    };
    assert_eq!([host, service, id, filled, worker], ["127.0.0.1", "web", "a", admin, "a"]);
    assert_eq!(port, http);
    assert!(registered.starts_with(&format!("@{generation} ")), "{registered}");
    assert!(registered.contains(&format!("http=127.0.0.1:{http}")), "{registered}");
    assert!(registered.contains(&format!("admin-ui=127.0.0.1:{admin}")), "{registered}");
}

// hashicorp/nomad#4285
#[test]
fn a_port_on_which_a_stranger_sits_is_given_back_for_another() {
    let server = Server::start();
    let options = ["--service", "web", "--id", "a", "--port", "http", "--ready", "now"];
    let mut first = server.agent(&options, &["sh", "-c", "echo $PORT"]);
    let port: u16 = first.child_line().parse().unwrap();
    let _stranger = TcpListener::bind(("127.0.0.1", port + 1)).unwrap();
    let options = ["--service", "web", "--id", "b", "--port", "http"];
    let script = worker("server.py");
    let _second = server.agent(&options, &["python3", &script]);
    server.wait_for("WorkerReady web/b@h");
    let expected = ["WorkerRegistered", "WorkerRemoved", "WorkerRegistered", "WorkerReady"];
    assert_eq!(server.story("b"), expected);
}

/// The child waits, a thief takes its port, and only then the child tries.
fn steal(options: &[&str], thief: impl FnOnce(TcpListener)) {
    let server = Server::start();
    let options = [&["--service", "web", "--id", "a", "--port", "http"], options].concat();
    let script = "echo $PORT; read line; exec python3 \"$0\"";
    let mut agent = server.agent_with_input(&options, &["sh", "-c", script, &worker("server.py")]);
    let port: u16 = agent.child_line().parse().unwrap();
    thief(TcpListener::bind(("127.0.0.1", port)).unwrap());
    // Long enough to be mistaken for the worker.
    std::thread::sleep(std::time::Duration::from_millis(500));
    agent.input("go\n");
    assert_eq!(agent.ended().code(), Some(1));
    server.wait_for("WorkerRemoved exited with code 1");
    assert_eq!(server.story("a"), ["WorkerRegistered", "WorkerRemoved"]);
}

#[test]
fn a_port_stolen_between_trial_and_use_is_the_childs_failure_and_never_published() {
    let mut kept = None;
    steal(&[], |thief| kept = Some(thief));
    drop(kept);
}

#[test]
fn a_thief_that_answers_with_success_is_not_taken_for_the_child() {
    steal(&["--ready", "http:/"], |thief| {
        let answer = move || {
            for connection in thief.incoming() {
                let mut connection = connection.unwrap();
                let _asked = connection.read(&mut [0; 1024]);
                let _gone = connection
                    .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
            }
        };
        // Ends with the test's process.
        drop(std::thread::spawn(answer));
    });
}

#[test]
fn a_port_asked_for_by_number_that_is_in_use_is_one_clear_error() {
    let server = Server::start();
    let stranger = TcpListener::bind("127.0.0.1:0").unwrap();
    let number = stranger.local_addr().unwrap().port();
    let port = format!("http={number}");
    let mut agent =
        server.agent(&["--service", "web", "--id", "a", "--port", &port], &["sh", "-c", "echo ran"]);
    assert_eq!(agent.ended().code(), Some(1));
    assert!(agent.said().contains(&format!("port {number} is in use by another program")));
    assert_eq!(agent.child_line(), "");
    assert_eq!(server.story("a"), ["WorkerRegistered", "WorkerRemoved"]);
}

#[test]
fn a_port_that_another_worker_of_the_host_has_is_refused_with_its_name() {
    let server = Server::start();
    let options = ["--service", "web", "--id", "a", "--port", "http", "--ready", "now"];
    let mut first = server.agent(&options, &["sh", "-c", "echo $PORT; sleep 600"]);
    let port = format!("http={}", first.child_line());
    let mut second = server.agent(&["--service", "api", "--id", "b", "--port", &port], &["true"]);
    assert_eq!(second.ended().code(), Some(1));
    let said = second.said();
    assert!(said.contains("port_taken") && said.contains("web/a@h"), "{said}");
}

#[test]
fn bad_input_is_a_usage_error() {
    let server = Server::start();
    for (options, reason) in [
        (&["--service", "a/b"][..], "'/' is not allowed"),
        (&["--service", ""], "must not be empty"),
        (&["--service", "web", "--port", "http=0"], "no port number from 1 to 65535"),
        (&["--service", "web", "--port", "http=x"], "no port number from 1 to 65535"),
        (&["--service", "web", "--port", "a-b", "--port", "a_b"], "PORT_A_B"),
        (&["--service", "web", "--address", "localhost"], "invalid value 'localhost'"),
        (&["--service", "web", "--ready", "port"], "this --ready needs a --port"),
        (&["--service", "web", "--drain=-1"], "number of seconds"),
        (&["--service", "web", "--drain=1e9"], "number of seconds"),
        (&["--service", "web", "--ready", "http:x"], "starts with '/'"),
        (&["--service", "web", "--ready", "soon"], "none of now, port, notify"),
        (&["--service", "web", "--memory-max", "0"], "no size"),
        (&["--service", "web", "--memory-max", "99999999999G"], "no size"),
        (&["--service", "web", "--cpu-max", "nan"], "no number of processors"),
        (&["--service", "web", "--metadata", "x"], "no KEY=VALUE"),
        (&["--service", "web", "--server", "not a url"], "not a URL"),
        (&[], "--service"),
    ] {
        let mut agent = server.agent(options, &["true"]);
        assert_eq!(agent.ended().code(), Some(2), "{options:?}");
        let said = agent.said();
        assert!(said.contains(reason), "{options:?}: {said}");
    }
}

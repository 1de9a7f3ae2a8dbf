//! What an agent says of its host.

use crate::world::{Server, worker};

const OPTIONS: [&str; 8] = ["--service", "web", "--id", "a", "--port", "http", "--ready", "now"];

#[test]
fn an_agent_tells_where_its_host_is_reached_which_ports_it_lends_and_where_it_stands() {
    let server = Server::start();
    let (first, last) = server.ports();
    let range = format!("{}-{last}", first + 3);
    let said =
        ["--host-address", "127.0.0.1,[::1]", "--port-range", &range, "--region", "eu", "--zone", "eu-1"];
    let mut agent =
        server.agent(&[&OPTIONS[..], &said].concat(), &["sh", "-c", "echo $HOST $PORT; sleep 600"]);
    assert_eq!(agent.child_line(), format!("127.0.0.1 {}", first + 3));
    let hosts = server.get(&["hosts"]);
    assert!(hosts.contains("127.0.0.1,::1") && hosts.contains(&range), "{hosts}");
    let endpoints = server.get(&["endpoints", "web", "-o", "json"]);
    assert!(endpoints.contains("\"eu\"") && endpoints.contains("\"eu-1\""), "{endpoints}");
}

// l7mp/stunner#231 (F55)
#[test]
fn a_host_that_is_reached_by_ipv6_alone_has_its_workers_there() {
    let server = Server::start();
    let (first, last) = server.ports();
    let range = format!("{first}-{last}");
    let said = ["--host-address", "::1", "--port-range", &range];
    let mut agent = server.agent(&[&OPTIONS[..], &said].concat(), &["sh", "-c", "echo $HOST; sleep 600"]);
    assert_eq!(agent.child_line(), "::1");
    assert_eq!(server.get(&["endpoints", "web", "-o", "text"]), format!("[::1]:{first}\n"));
}

#[test]
fn the_addresses_of_an_interface_are_those_of_the_host() {
    let server = Server::start();
    let (first, last) = server.ports();
    let range = format!("{first}-{last}");
    let script = worker("server.py");
    let options =
        ["--service", "web", "--id", "a", "--port", "http", "--interface", "lo", "--port-range", &range];
    let _agent = server.agent(&options, &["python3", &script]);
    server.wait_for("WorkerReady web/a@h");
    assert!(server.get(&["hosts"]).contains(" 127.0.0.1"));
}

#[test]
fn what_cannot_be_said_of_a_host_is_a_usage_error() {
    let server = Server::start();
    for (options, reason) in [
        (&["--interface", "no-such-one"][..], "there is no interface \"no-such-one\""),
        (&["--interface", "lo", "--host-address", "::1"], "cannot be used with"),
        (&["--host-address", "db.example"], "is not an IP address"),
        (&["--host-address", "0.0.0.0"], "nobody can connect to 0.0.0.0"),
        (&["--port-range", "30-20"], "30-20 is empty"),
        (&["--port-range", "0-20"], "no range of port numbers"),
        (&["--port-range", "20"], "no range of port numbers"),
        (&["--zone", "a\nb"], "printable"),
        (&["--zone", ""], "printable"),
    ] {
        let mut agent = server.agent(&[&OPTIONS[..], options].concat(), &["true"]);
        let code = agent.ended().code();
        let said = agent.said();
        assert_eq!(code, Some(2), "{options:?}: {said}");
        assert!(said.contains(reason), "{options:?}: {said}");
    }
    assert!(!server.log().contains("WorkerRegistered"));
}

// hashicorp/nomad#4285, hashicorp/nomad#2500, hashicorp/nomad#85 (F33)
#[test]
fn ports_that_the_kernel_uses_for_outgoing_connections_are_warned_of() {
    let server = Server::start();
    let kernels = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap();
    let low: u16 = kernels.split_whitespace().next().unwrap().parse().unwrap();
    let range = format!("{}-{}", low - 1, low);
    let options = ["--service", "jobs", "--id", "a", "--port-range", &range];
    let mut agent = server.agent(&options, &["true"]);
    assert_eq!(agent.ended().code(), Some(0));
    let said = agent.said();
    assert!(said.contains(&format!("ports {range} overlap with {low}-")), "{said}");
}

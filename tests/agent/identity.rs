//! Who is who: sessions that ended, hosts with one name for two workers, and process ids that were used before.

use std::process::Command;
use std::time::Duration;

use foldplane::agent::client::{Client, Config, Notice, Ticket};
use foldplane::proto;
use tokio::time::timeout;

use crate::world::{Server, eventually, runs};

async fn registered(server: &Server, registrations: Vec<proto::Register>) -> Client {
    let config = Config { server: server.url(), host: None, seed: 1 };
    let mut client = Client::start(&config).unwrap();
    let mut left = registrations.len();
    for (register, ticket) in registrations.into_iter().zip(0..) {
        client.add(Ticket(ticket), register).await;
    }
    while left > 0 {
        let notice = timeout(Duration::from_secs(20), client.next()).await.expect("in time").unwrap();
        if matches!(notice, Notice::Registered { .. }) {
            left -= 1;
        } else {
            assert_eq!(notice, Notice::Connected);
        }
    }
    client
}

fn worker(host: &str, id: &str) -> proto::Register {
    proto::Register { service: "jobs".into(), host: host.into(), id: id.into(), ..Default::default() }
}

// kumahq/kuma#1738 (F24)
#[tokio::test(flavor = "multi_thread")]
async fn f24_a_control_plane_that_is_stopped_says_nothing_of_its_workers() {
    let mut server = tokio::task::block_in_place(Server::start);
    let hundred = (0..100).map(|number| worker("h", &format!("w{number}"))).collect();
    let _client = registered(&server, hundred).await;
    server.stop();
    server.restart();
    let rejoined = || {
        let log = server.log();
        (log.lines().filter(|line| line.contains("WorkerReconnected")).count() == 100).then_some(log)
    };
    let log = eventually(rejoined).expect("all rejoin");
    assert!(!log.contains("WorkerRemoved") && !log.contains("WorkerDisconnected"), "{log}");
}

// hashicorp/consul#8930 (F29)
#[tokio::test(flavor = "multi_thread")]
async fn f29_one_id_on_two_hosts_is_two_workers() {
    let server = tokio::task::block_in_place(Server::start);
    let one = registered(&server, vec![worker("h1", "w")]).await;
    let _other = registered(&server, vec![worker("h2", "w")]).await;
    drop(one);
    server.wait_for("WorkerRemoved jobs/w@h1");
    assert_eq!(server.get(&["workers", "-o", "text"]), "jobs/w@h2\n");
}

// jdx/pitchfork#878, rsyslog/rsyslog#407 (F36)
#[tokio::test(flavor = "multi_thread")]
async fn f36_a_process_id_that_belongs_to_somebody_else_by_now_is_never_signalled() {
    let server = tokio::task::block_in_place(Server::start);
    let mut stranger = Command::new("sleep").arg("600").spawn().unwrap();
    let process = Some(proto::Process { pid: stranger.id(), start_ticks: 1, boot_id: "another boot".into() });
    let before = registered(&server, vec![proto::Register { process, ..worker("h", "a") }]).await;
    let mut agent = server.agent(&["--service", "jobs", "--id", "a"], &["true"]);
    assert_eq!(agent.ended().code(), Some(0), "the name is free for whoever runs");
    server.wait_for("WorkerRemoved jobs/a@h replaced");
    drop(before);
    assert!(runs(stranger.id()));
    stranger.kill().unwrap();
    stranger.wait().unwrap();
}

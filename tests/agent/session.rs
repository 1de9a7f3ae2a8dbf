//! The session as a library: a supervisor that speaks for many.

use std::sync::Arc;

use foldplane::agent::client::{Client, Config, Departure, Notice, Ticket, Wish};
use foldplane::proto;
use tokio::time::{Duration, timeout};

use crate::supervisor::supervise;
use crate::world::{Server, eventually};

struct Supervisor {
    client: Client,
}

impl Supervisor {
    fn attach(server: &Server) -> Self {
        let config = Config { server: server.url(), host: None, seed: 1 };
        Self { client: Client::start(&config).unwrap() }
    }

    async fn next(&mut self) -> Notice {
        timeout(Duration::from_secs(20), self.client.next()).await.expect("in time").expect("a session")
    }

    async fn next_that<T>(&mut self, mut wanted: impl FnMut(Notice) -> Option<T>) -> T {
        loop {
            if let Some(found) = wanted(self.next().await) {
                return found;
            }
        }
    }
}

fn register(id: &str) -> proto::Register {
    proto::Register {
        service: "pool".to_owned(),
        host: "h".to_owned(),
        id: id.to_owned(),
        ports: vec![proto::Port { name: "http".to_owned(), ..proto::Port::default() }],
        readiness: proto::Readiness::Reported.into(),
        ..Default::default()
    }
}

fn gone(notice: Notice) -> Option<(Ticket, Departure)> {
    if let Notice::Gone { ticket, cause } = notice { Some((ticket, cause)) } else { None }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_session_speaks_for_ten_workers_and_its_end_takes_them_all() {
    let server = tokio::task::block_in_place(Server::start);
    let mut supervisor = Supervisor::attach(&server);
    for number in 0..10 {
        let ticket = Ticket(number);
        supervisor.client.add(ticket, register(&format!("w{number}"))).await;
        supervisor.client.wish(ticket, Wish::Ready).await;
    }
    let mut ports = Vec::new();
    let mut ready = 0;
    while ready < 10 {
        let notice = supervisor.next().await;
        if let Notice::Registered { ports: given, .. } = notice {
            ports.push(given[0].number);
        } else if let Notice::Reported { wish: Wish::Ready, .. } = notice {
            ready += 1;
        } else {
            assert_eq!(notice, Notice::Connected);
        }
    }
    ports.sort_unstable();
    ports.dedup();
    assert_eq!(ports.len(), 10);
    drop(supervisor);
    for number in 0..10 {
        server.wait_for(&format!("WorkerRemoved pool/w{number}@h disconnected"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_thousand_workers_rejoin_a_control_plane_that_was_killed_and_nothing_else_is_written() {
    let mut server = tokio::task::block_in_place(Server::start);
    let mut supervisor = Supervisor::attach(&server);
    for number in 0..2000 {
        let register = proto::Register { ports: Vec::new(), ..register(&format!("w{number}")) };
        supervisor.client.add(Ticket(number), register).await;
    }
    for _ in 0..2000 {
        supervisor.next_that(|notice| matches!(notice, Notice::Registered { .. }).then_some(())).await;
    }
    server.kill();
    server.restart();
    let count = |log: &str, name: &str| log.lines().filter(|line| line.contains(name)).count();
    let rejoined = || Some(server.log()).filter(|log| count(log, "WorkerReconnected") == 2000);
    let log = eventually(rejoined).expect("all rejoin");
    assert_eq!(count(&log, "WorkerRegistered"), 2000);
    // Twice the start of a copy, once what the host lends, and the two above for each worker.
    assert_eq!(log.lines().count(), 4003);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_session_under_the_same_name_replaces_the_first_which_is_told() {
    let server = tokio::task::block_in_place(Server::start);
    let mut first = Supervisor::attach(&server);
    first.client.add(Ticket(1), register("w")).await;
    first.next_that(|notice| matches!(notice, Notice::Registered { .. }).then_some(())).await;
    let second = Supervisor::attach(&server);
    second.client.add(Ticket(1), register("w")).await;
    let (_, cause) = first.next_that(gone).await;
    assert_eq!(cause, Departure::Stopped { cause: "replaced".to_owned() });
    first.client.wish(Ticket(1), Wish::Ready).await;
    server.wait_for("WorkerRegistered pool/w@h");
    assert_eq!(server.story("w"), ["WorkerRegistered", "WorkerRemoved", "WorkerRegistered"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_registration_is_told_with_code_and_hint() {
    let server = tokio::task::block_in_place(Server::start);
    let mut supervisor = Supervisor::attach(&server);
    supervisor.client.add(Ticket(1), register("a\u{1}b")).await;
    let refusal = supervisor
        .next_that(|notice| if let Notice::Refused { refusal, .. } = notice { Some(refusal) } else { None })
        .await;
    assert_eq!(refusal.code, "invalid_argument");
    assert!(refusal.message.contains("worker id") && !refusal.hint.is_empty(), "{refusal:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drained_worker_is_told_to_stop_when_its_time_is_over() {
    let server = tokio::task::block_in_place(Server::start);
    let mut supervisor = Supervisor::attach(&server);
    supervisor.client.add(Ticket(1), register("w")).await;
    supervisor.next_that(|notice| matches!(notice, Notice::Registered { .. }).then_some(())).await;
    let drain = Wish::Draining { reason: "test".to_owned(), drain_ms: 300 };
    supervisor.client.wish(Ticket(1), drain).await;
    let (_, cause) = supervisor.next_that(gone).await;
    assert_eq!(cause, Departure::Stopped { cause: "drained".to_owned() });
}

#[tokio::test(flavor = "multi_thread")]
async fn the_example_supervisor_publishes_its_workers_and_drains_them() {
    let server = Arc::new(tokio::task::block_in_place(Server::start));
    let watched = Arc::clone(&server);
    let stop = async {
        let ready = move || {
            (0..10).for_each(|number| drop(watched.wait_for(&format!("WorkerReady pool/w{number}@"))))
        };
        tokio::task::spawn_blocking(ready).await.unwrap();
    };
    let supervised = supervise(server.url(), "h", stop);
    timeout(Duration::from_secs(20), supervised).await.expect("in time").unwrap();
    for number in 0..10 {
        server.wait_for(&format!("WorkerRemoved pool/w{number}@h drained"));
    }
}

//! A fleet that changes all the time, and then rests: state and model agree, and the log has the changes and nothing else.
//!
//! `FOLDPLANE_CHURN=full cargo test --test agent churn` takes 10,000 workers on 100 hosts, 500 changes a second for a minute, and
//! a minute of rest.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "its size is a matter of the environment, and it looks at when files were written"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use foldplane::agent::client::{Client, Config, Notice, Ticket, Wish};
use foldplane::proto;
use serde_json::Value;
use tokio::sync::Barrier;
use tokio::task::JoinSet;
use tokio::time::{Instant, interval, sleep};

use crate::world::Server;

/// How large and how long.
#[derive(Clone, Copy, Debug)]
struct Size {
    hosts: u64,
    workers_per_host: u64,
    changes_per_second: u64,
    lasts: Duration,
    rests: Duration,
}

fn size() -> Size {
    let (second, minute) = (Duration::from_secs(1), Duration::from_secs(60));
    match std::env::var("FOLDPLANE_CHURN").as_deref() {
        Ok("full") => {
            Size { hosts: 100, workers_per_host: 100, changes_per_second: 500, lasts: minute, rests: minute }
        }
        _ => Size {
            hosts: 10,
            workers_per_host: 20,
            changes_per_second: 100,
            lasts: 3 * second,
            rests: second,
        },
    }
}

/// What the model knows of a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Known {
    ticket: Ticket,
    state: &'static str,
    health: Option<&'static str>,
    address: String,
}

/// One host with its session. It makes a change, and waits until it is durable.
struct Host {
    name: String,
    client: Client,
    workers: BTreeMap<u64, Known>,
    tickets: u64,
    /// How many events its changes must have made.
    events: u64,
    chance: u64,
}

impl Host {
    fn attach(server: &str, number: u64) -> Self {
        let name = format!("h{number}");
        let lends = proto::ReportHost {
            host: name.clone(),
            addresses: vec![format!("127.1.{number}.1")],
            ..Default::default()
        };
        let config = Config { server: server.to_owned(), host: Some(lends), seed: number };
        let client = Client::start(&config).unwrap();
        let chance = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        Self { name, client, workers: BTreeMap::new(), tickets: 0, events: 0, chance }
    }

    fn below(&mut self, end: u64) -> u64 {
        self.chance ^= self.chance << 13;
        self.chance ^= self.chance >> 7;
        self.chance ^= self.chance << 17;
        (self.chance >> 16) % end
    }

    async fn next_that<T>(&mut self, mut wanted: impl FnMut(&Notice) -> Option<T>) -> T {
        loop {
            if let Some(found) = wanted(&self.client.next().await.expect("a session")) {
                return found;
            }
        }
    }

    async fn register(&mut self, number: u64) {
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        let port = proto::Port { name: "http".to_owned(), ..Default::default() };
        let register = proto::Register {
            service: "pool".to_owned(),
            host: self.name.clone(),
            id: format!("w{number}"),
            ports: vec![port],
            readiness: proto::Readiness::Reported.into(),
            ..Default::default()
        };
        self.client.add(ticket, register).await;
        let registered = |notice: &Notice| {
            let Notice::Registered { ticket: of, ports, .. } = notice else { return None };
            (*of == ticket).then(|| ports[0].clone())
        };
        let port = self.next_that(registered).await;
        let address = format!("{}:{}", port.address, port.number.unwrap());
        self.workers.insert(number, Known { ticket, state: "registered", health: None, address });
        self.events += 1;
    }

    /// One change of one worker: ready, unready, or gone and there again.
    async fn change(&mut self, workers: u64) {
        let number = self.below(workers);
        let known = self.workers[&number].clone();
        if self.below(4) == 0 {
            self.client.wish(known.ticket, Wish::Gone { exit: None }).await;
            let gone = |notice: &Notice| {
                matches!(notice, Notice::Gone { ticket, .. } if *ticket == known.ticket).then_some(())
            };
            self.next_that(gone).await;
            self.events += 1;
            return self.register(number).await;
        }
        let (wish, state, health) = if known.state == "ready" {
            (Wish::Unready { reason: "full".to_owned() }, "unready", Some("UNHEALTHY"))
        } else {
            (Wish::Ready, "ready", Some("HEALTHY"))
        };
        self.client.wish(known.ticket, wish).await;
        let reported = |notice: &Notice| {
            matches!(notice, Notice::Reported { ticket, .. } if *ticket == known.ticket).then_some(())
        };
        self.next_that(reported).await;
        self.events += 1;
        self.workers.insert(number, Known { state, health, ..known });
    }
}

/// Lives of one host: its entry, its changes, and what is left in the end.
async fn live(mut host: Host, size: Size, entered: Arc<Barrier>) -> Host {
    for number in 0..size.workers_per_host {
        host.register(number).await;
    }
    entered.wait().await;
    let mut tick = interval(
        Duration::from_secs(1) * u32::try_from(size.hosts).unwrap()
            / u32::try_from(size.changes_per_second).unwrap(),
    );
    let end = Instant::now() + size.lasts;
    while Instant::now() < end {
        tick.tick().await;
        host.change(size.workers_per_host).await;
    }
    host
}

async fn get(server: &str, path: &str) -> Value {
    reqwest::get(format!("{server}{path}")).await.unwrap().json().await.unwrap()
}

/// Every file of the log, with when it was written last.
fn files(server: &Server) -> BTreeMap<PathBuf, (u64, SystemTime)> {
    let mut found = BTreeMap::new();
    let mut folders = vec![server.folder().to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let about = entry.metadata().unwrap();
            if about.is_dir() {
                folders.push(entry.path());
            } else {
                found.insert(entry.path(), (about.len(), about.modified().unwrap()));
            }
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fleet_that_changes_all_the_time_and_rests() {
    let size = size();
    let server = tokio::task::block_in_place(Server::start);
    let url = server.url();
    let before = get(&url, "/v1/status").await["offset"].as_u64().unwrap();
    let entered = Arc::new(Barrier::new(usize::try_from(size.hosts).unwrap()));
    let mut hosts = JoinSet::new();
    for number in 0..size.hosts {
        hosts.spawn(live(Host::attach(&url, number), size, Arc::clone(&entered)));
    }
    let hosts = hosts.join_all().await;

    let workers = get(&url, "/v1/workers").await;
    let found: BTreeMap<String, (String, Option<String>, String)> = workers["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|worker| {
            let text = |key: &str| worker[key].as_str().map(str::to_owned);
            let address = worker["endpoints"][0]["address"].as_str().unwrap().to_owned();
            let name = format!("{}@{}", text("id").unwrap(), text("host").unwrap());
            (name, (text("state").unwrap(), text("health"), address))
        })
        .collect();
    let expected = hosts.iter().flat_map(|host| {
        host.workers.iter().map(|(number, known)| {
            let health = known.health.map(str::to_owned);
            (format!("w{number}@{}", host.name), (known.state.to_owned(), health, known.address.clone()))
        })
    });
    assert_eq!(found, expected.collect(), "the state, and what the model says");
    let addresses: BTreeSet<&String> = found.values().map(|(_, _, address)| address).collect();
    assert_eq!(addresses.len(), found.len(), "a port has two owners");

    let changes: u64 = hosts.iter().map(|host| host.events).sum();
    let after = get(&url, "/v1/status").await["offset"].as_u64().unwrap();
    assert_eq!(after - before, size.hosts + changes, "each host's report, each change, and nothing else");
    // What was written last is on its way to the disk still.
    sleep(Duration::from_secs(1)).await;
    let files_before = files(&server);
    sleep(size.rests).await;
    assert_eq!(get(&url, "/v1/status").await["offset"].as_u64().unwrap(), after);
    assert_eq!(files(&server), files_before, "an idle control plane wrote");
    eprintln!("{size:?}: {changes} changes, none lost, none in vain");
}

//! The work of the benchmark, in any size.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use foldplane::projection::resources::{ContentDigest, TypeUrl};
use foldplane::xds::client::Client;
use foldplane::xds::protocol::Variant;
use tokio::task::JoinSet;

use crate::server::{Server, put_endpoints, put_service};

/// How long a crowd may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// A server with some services.
pub(crate) struct Site {
    pub(crate) server: Server,
}

impl Site {
    pub(crate) async fn start(services: u8) -> Self {
        let server = Server::start().await;
        server.change(|next| {
            for number in 0..services {
                put_service(next, &name(number), &[endpoint(number, 0, 0)]);
            }
        });
        Self { server }
    }

    /// One endpoint of one service changes.
    pub(crate) async fn change_small(&self) {
        let turn = turn(&self.server);
        self.server.change(|next| put_endpoints(next, &name(0), &[endpoint(0, turn, 1)]));
    }

    /// A service of ten thousand endpoints changes.
    pub(crate) async fn change_large(&self) {
        let turn = turn(&self.server);
        let endpoints: Vec<_> =
            (0..10_000_u16).map(|number| endpoint(1, turn, number.saturating_add(1))).collect();
        self.server.change(|next| put_endpoints(next, &name(1), &endpoints));
    }

    /// Waits until so many streams have answered for everything.
    pub(crate) async fn reached(&self, streams: usize) {
        let offset = self.server.resources().offset();
        let start = Instant::now();
        while self.server.ledger.settled_streams(offset) < streams {
            assert!(start.elapsed() < PATIENCE, "the clients do not answer");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// Waits until so many streams are open.
    pub(crate) async fn open(&self, streams: usize) {
        let start = Instant::now();
        while self.server.ledger.open_streams() != streams {
            assert!(start.elapsed() < PATIENCE, "not {streams} streams");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// How long it takes until a change has reached so many streams: the middle one of several.
    pub(crate) async fn median(&self, streams: usize, change: impl AsyncFn(&Self)) -> Duration {
        let spans = self.spans(streams, change).await;
        spans.get(spans.len() / 2).copied().unwrap_or_default()
    }

    /// The same several times, the shortest first, which other work on the machine disturbed least.
    pub(crate) async fn spans(&self, streams: usize, change: impl AsyncFn(&Self)) -> Vec<Duration> {
        let mut spans = Vec::new();
        for _ in 0..9 {
            let start = Instant::now();
            change(self).await;
            self.reached(streams).await;
            spans.push(start.elapsed());
        }
        spans.sort();
        spans
    }

    /// What the clients were told in the end.
    pub(crate) fn digest(&self) -> ContentDigest {
        self.server.resources().of(TypeUrl::ClusterLoadAssignment).version().digest
    }
}

/// Clients that stay.
pub(crate) struct Crowd {
    pub(crate) reading: usize,
    pub(crate) stalled: usize,
}

impl Crowd {
    /// Connects them all and lets them read, until the process or the task ends.
    pub(crate) async fn attend(&self, address: SocketAddr) {
        let mut clients = JoinSet::new();
        for _ in 0..self.reading {
            let mut client = subscribed(address).await;
            clients.spawn(async move {
                while let Ok(update) = client.next().await {
                    if client.accept(&update).await.is_err() {
                        return;
                    }
                }
            });
        }
        let mut stalled = Vec::new();
        for _ in 0..self.stalled {
            stalled.push(subscribed(address).await);
        }
        while clients.join_next().await.is_some() {}
        if !stalled.is_empty() {
            std::future::pending::<()>().await;
        }
    }
}

/// Connects and leaves, so many times.
pub(crate) async fn cycle(address: SocketAddr, times: usize) {
    for number in 0..times {
        let mut client = subscribed(address).await;
        if number % 2 == 0 {
            let _ = client.next().await;
        }
    }
}

async fn subscribed(address: SocketAddr) -> Client {
    let mut client = Client::connect(&format!("http://{address}"), "crowd", Variant::Delta).await.unwrap();
    client.subscribe(TypeUrl::Cluster, &[]).await.unwrap();
    let names: Vec<_> = (0..20).map(name).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    client.subscribe(TypeUrl::ClusterLoadAssignment, &names).await.unwrap();
    client
}

/// How much memory this process has, in bytes.
pub(crate) fn resident() -> usize {
    const PAGE: usize = 4096;
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    text.split_whitespace().nth(1).and_then(|pages| pages.parse().ok()).map_or(0, |pages: usize| pages * PAGE)
}

fn name(number: u8) -> String {
    format!("service-{number}")
}

/// Another one at each offset for long enough, so that each change is one.
fn turn(server: &Server) -> u8 {
    u8::try_from(server.resources().offset().get() % 251).unwrap_or_default()
}

fn endpoint(service: u8, turn: u8, port: u16) -> SocketAddr {
    SocketAddr::from(([10, service, turn, 1], port.saturating_add(1)))
}

//! A session whose network fails: it says nothing any more, and nobody closed it.

#![allow(
    clippy::disallowed_methods,
    reason = "these tests wait, and their network is a task that ends with them"
)]

use std::net::SocketAddr;
use std::time::Duration;

use foldplane::agent::client::{Client, Config, Notice, Ticket};
use foldplane::engine::{self, Handle, Settings};
use foldplane::events::event::{DisconnectCause, RemovalCause};
use foldplane::events::log::MemoryLog;
use foldplane::events::{Event, Offset};
use foldplane::ingest::Ingest;
use foldplane::listen::{self, Limits};
use foldplane::projection::Snapshot;
use foldplane::proto;
use foldplane::proto::workers_server::WorkersServer;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tonic::server::NamedService;

/// Short, so that the test is.
const LIMITS: fn() -> Limits = || Limits {
    ping_interval: Duration::from_millis(200),
    ping_timeout: Duration::from_millis(300),
    ..Limits::default()
};

struct Plane {
    handle: Handle,
    address: SocketAddr,
    _tasks: JoinSet<()>,
}

impl Plane {
    fn start() -> Self {
        let (handle, writer) = engine::engine(
            Box::new(MemoryLog::new()),
            Snapshot::default(),
            Settings::default(),
            engine::wall_clock,
        );
        let shutdown = CancellationToken::new();
        let ingest = Ingest::new(handle.clone(), shutdown.clone());
        let path = format!("/{}/{{*method}}", WorkersServer::<Ingest>::NAME);
        let router = axum::Router::new().route_service(&path, ingest.service());
        let listener = listen::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = listener.local_addr().unwrap();
        let mut tasks = JoinSet::new();
        tasks.spawn(writer.run(shutdown.clone()));
        tasks.spawn(listen::serve(listener, router, shutdown, LIMITS()));
        Self { handle, address, _tasks: tasks }
    }

    fn events(&self) -> Vec<Event> {
        let log = self.handle.log();
        log.read(Offset::new(1)).unwrap().map(|envelope| envelope.unwrap().event).collect()
    }

    /// Waits for the end of its worker's connection, as the log has it.
    async fn end(&self) -> Event {
        let is_end =
            |event: &Event| matches!(event, Event::WorkerDisconnected { .. } | Event::WorkerRemoved { .. });
        let found = async {
            loop {
                if let Some(end) = self.events().into_iter().find(is_end) {
                    return end;
                }
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(Duration::from_secs(20), found).await.expect("in time")
    }
}

/// What lies between a worker and us. Once `fails` is cancelled nothing goes through, and both ends stay open.
async fn network(plane: SocketAddr, fails: CancellationToken) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut near, _) = listener.accept().await.unwrap();
        let mut far = TcpStream::connect(plane).await.unwrap();
        tokio::select! {
            _ = tokio::io::copy_bidirectional(&mut near, &mut far) => {}
            () = fails.cancelled() => std::future::pending().await,
        }
    });
    address
}

async fn registered(through: SocketAddr) -> Client {
    let config = Config { server: format!("http://{through}"), host: None, seed: 1 };
    let mut client = Client::start(&config).unwrap();
    let register = proto::Register {
        service: "web".to_owned(),
        host: "h1".to_owned(),
        id: "a".to_owned(),
        ..Default::default()
    };
    client.add(Ticket(1), register).await;
    let wait =
        async { while !matches!(client.next().await.expect("a session"), Notice::Registered { .. }) {} };
    timeout(Duration::from_secs(20), wait).await.expect("in time");
    client
}

#[tokio::test(flavor = "multi_thread")]
async fn a_network_that_fails_is_silence_and_no_proof_of_death() {
    let (plane, fails) = (Plane::start(), CancellationToken::new());
    let _client = registered(network(plane.address, fails.clone()).await).await;
    fails.cancel();
    let end = plane.end().await;
    assert!(matches!(end, Event::WorkerDisconnected { cause: DisconnectCause::Silent, .. }), "{end:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_is_closed_is_proof_of_death() {
    let (plane, fails) = (Plane::start(), CancellationToken::new());
    drop(registered(network(plane.address, fails.clone()).await).await);
    let end = plane.end().await;
    let closed = RemovalCause::Disconnected(DisconnectCause::Closed);
    assert!(matches!(&end, Event::WorkerRemoved { cause, .. } if *cause == closed), "{end:?}");
}

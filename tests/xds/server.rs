//! A server on a port of its own, and programs that its clusters lead to.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use foldplane::events::event::UpdateRejection;
use foldplane::listen;
use foldplane::projection::resources::{Resources, ResourcesBuilder, builders};
use foldplane::xds::{self, Ledger};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio::task::{AbortHandle, JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;

/// How long anything may take that is awaited, on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// The server, with resources that the test changes.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) ledger: Ledger,
    pub(crate) rejections: mpsc::Receiver<UpdateRejection>,
    publisher: watch::Sender<Arc<Resources>>,
    shutdown: CancellationToken,
    serving: JoinHandle<()>,
}

impl Server {
    pub(crate) async fn start() -> Self {
        Self::start_on("127.0.0.1:0".parse().unwrap(), Arc::default()).await
    }

    pub(crate) async fn start_on(address: SocketAddr, resources: Arc<Resources>) -> Self {
        Self::start_with(address, resources, xds::Limits::default()).await
    }

    pub(crate) async fn start_with(
        address: SocketAddr,
        resources: Arc<Resources>,
        limits: xds::Limits,
    ) -> Self {
        Self::start_listening(address, resources, limits, listen::Limits::default()).await
    }

    pub(crate) async fn start_listening(
        address: SocketAddr,
        resources: Arc<Resources>,
        limits: xds::Limits,
        of_connections: listen::Limits,
    ) -> Self {
        let listener = listen::bind(address).unwrap();
        let address = listener.local_addr().unwrap();
        let (publisher, resources) = watch::channel(resources);
        let (ledger, shutdown) = (Ledger::default(), CancellationToken::new());
        let (sender, rejections) = mpsc::channel(100);
        let router = xds::router_with_limits(resources, ledger.clone(), sender, shutdown.clone(), limits);
        let serving = tokio::spawn(listen::serve(listener, router, shutdown.clone(), of_connections));
        Self { address, ledger, rejections, publisher, shutdown, serving }
    }

    /// Publishes one event's changes.
    pub(crate) fn change(&self, edit: impl FnOnce(&mut ResourcesBuilder)) {
        let earlier = self.resources();
        let mut next = earlier.builder(earlier.offset().next());
        edit(&mut next);
        self.publisher.send_replace(Arc::new(next.build()));
    }

    pub(crate) fn resources(&self) -> Arc<Resources> {
        Arc::clone(&self.publisher.borrow())
    }

    /// Waits until `clients` streams have answered for everything that there is. Gives how long it took.
    pub(crate) async fn settled(&self, clients: usize) -> Duration {
        let start = Instant::now();
        let offset = self.resources().offset();
        let mut changes = self.ledger.changes();
        let waiting = async {
            loop {
                let streams = self.ledger.snapshot();
                let settled = streams.iter().filter(|stream| stream.settled >= offset).count();
                if settled >= clients {
                    break;
                }
                changes.changed().await.unwrap();
            }
        };
        let result = tokio::time::timeout(PATIENCE, waiting).await;
        assert!(result.is_ok(), "not settled: {:#?}", self.ledger.snapshot());
        start.elapsed()
    }

    /// Ends as on SIGTERM.
    pub(crate) async fn stop(self) -> (SocketAddr, Arc<Resources>) {
        let resources = self.resources();
        self.shutdown.cancel();
        self.serving.await.unwrap();
        (self.address, resources)
    }
}

/// Programs that answer every request with their name.
#[derive(Default)]
pub(crate) struct Upstreams(JoinSet<()>);

impl Upstreams {
    pub(crate) async fn start(&mut self, name: &'static str) -> SocketAddr {
        self.start_stoppable(name).await.0
    }

    pub(crate) async fn start_stoppable(&mut self, name: &'static str) -> (SocketAddr, AbortHandle) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new().fallback(move || async move { name });
        let handle = self.0.spawn(async move { axum::serve(listener, router).await.unwrap() });
        (address, handle)
    }
}

/// A cluster and its endpoints.
pub(crate) fn put_service(next: &mut ResourcesBuilder, name: &str, endpoints: &[SocketAddr]) {
    next.put(name, &builders::cluster(name));
    put_endpoints(next, name, endpoints);
}

pub(crate) fn put_endpoints(next: &mut ResourcesBuilder, name: &str, endpoints: &[SocketAddr]) {
    let endpoints = endpoints.iter().map(|address| builders::endpoint(*address)).collect();
    next.put(name, &builders::load_assignment(name, endpoints));
}

//! The services that clients call. They only move messages: what is answered is decided in `protocol`.

mod csds;
mod grpc;
mod rest;
mod session;
mod sight;
mod watchdog;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::routing::post;
use envoy_types::pb::envoy::service::status::v3::client_status_discovery_service_server::ClientStatusDiscoveryServiceServer;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use tonic::server::NamedService;

use super::Ledger;
use super::protocol::{Served, StreamId, Variant};
use super::wire::{DeltaMessage, SotwMessage};
use crate::events::ResourceKind;
use crate::events::event::UpdateRejection;
use crate::projection::resources::{Resources, TypeUrl};
use csds::Csds;
use sight::Lenses;

/// What every stream needs.
#[derive(Debug)]
struct Shared {
    resources: watch::Receiver<Arc<Resources>>,
    lenses: Arc<Lenses>,
    ledger: Ledger,
    rejections: mpsc::Sender<UpdateRejection>,
    shutdown: CancellationToken,
    next_stream: AtomicU64,
    limits: Limits,
}

/// How long a client may keep a stream busy with nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How long it may leave what it was sent unread; then its connection is closed (xds-rules 20).
    pub unread: Duration,
    /// How long it may owe an answer and say nothing at all; then the stream ends. Envoy withholds answers while a
    /// cluster warms, some 15 seconds at most.
    pub silence: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { unread: Duration::from_secs(60), silence: Duration::from_secs(300) }
    }
}

impl Shared {
    fn next_stream(&self) -> StreamId {
        StreamId(self.next_stream.fetch_add(1, Ordering::Relaxed))
    }
}

/// The xDS services as routes, for [`crate::listen::serve`] or any other HTTP/2 server.
///
/// Serves the newest of `resources`, which must show the whole log before the first client is let in (xds-rules 5).
/// Writes into `ledger` how every stream stands, and into `rejections` what clients refuse, once for a node, type and
/// version; when that queue is full the refusal is dropped and counted. When `shutdown` is cancelled every stream
/// ends with `UNAVAILABLE`.
///
/// ```
/// use std::sync::Arc;
/// use foldplane::projection::resources::Resources;
/// use tokio::sync::{mpsc, watch};
///
/// let (publisher, resources) = watch::channel(Arc::new(Resources::default()));
/// let (rejections, _receiver) = mpsc::channel(100);
/// let router = foldplane::xds::router(
///     resources,
///     foldplane::xds::Ledger::default(),
///     rejections,
///     tokio_util::sync::CancellationToken::new(),
/// );
/// # drop((publisher, router));
/// ```
pub fn router(
    resources: watch::Receiver<Arc<Resources>>,
    ledger: Ledger,
    rejections: mpsc::Sender<UpdateRejection>,
    shutdown: CancellationToken,
) -> Router {
    router_with_limits(resources, ledger, rejections, shutdown, Limits::default())
}

/// As [`router`], with limits of one's own. A connection is closed by way of a [`CancellationToken`] that the HTTP
/// server puts into each request's extensions, as [`crate::listen::serve`] does.
pub fn router_with_limits(
    resources: watch::Receiver<Arc<Resources>>,
    ledger: Ledger,
    rejections: mpsc::Sender<UpdateRejection>,
    shutdown: CancellationToken,
    limits: Limits,
) -> Router {
    // A start of its own for every process, so that a nonce of another one is never mistaken for ours (xds-rules 3).
    let next_stream = AtomicU64::new(uuid::Uuid::now_v7().as_u64_pair().1);
    let shared = Arc::new(Shared {
        resources,
        lenses: Arc::default(),
        ledger,
        rejections,
        shutdown,
        next_stream,
        limits,
    });
    let csds = ClientStatusDiscoveryServiceServer::new(Csds(shared.ledger.clone()));
    let of_csds = format!("/{}/{{*method}}", ClientStatusDiscoveryServiceServer::<Csds>::NAME);
    let mut router = Router::new().fallback(grpc::unknown).route_service(&of_csds, csds);
    for (served, service, sotw, delta) in SERVICES {
        let path = |method| format!("/envoy.service.{service}/{method}");
        let of = |variant| (Arc::clone(&shared), variant, served);
        let (of_sotw, of_delta) = (of(Variant::Sotw), of(Variant::Delta));
        if let Some(sotw) = sotw {
            let open = post(move |request| grpc::stream::<SotwMessage>(of_sotw.clone(), request));
            router = router.route(&path(sotw), open);
        }
        let open = post(move |request| grpc::stream::<DeltaMessage>(of_delta.clone(), request));
        router = router.route(&path(delta), open);
    }
    for kind in ResourceKind::ALL {
        let polled = (Arc::clone(&shared), kind);
        let path = format!("/v3/discovery:{}", rest::noun(kind));
        let route = post(move |body| rest::answer(polled.clone(), body));
        router = router.route(&path, route.layer(DefaultBodyLimit::max(rest::REQUEST_BYTES_MAX)));
    }
    router
}

/// What each service serves, its name, and its methods for the two variants.
const SERVICES: [(Served, &str, Option<&str>, &str); 1 + TypeUrl::ALL.len()] = [
    (
        Served::All,
        "discovery.v3.AggregatedDiscoveryService",
        Some("StreamAggregatedResources"),
        "DeltaAggregatedResources",
    ),
    (
        Served::Only(TypeUrl::Cluster),
        "cluster.v3.ClusterDiscoveryService",
        Some("StreamClusters"),
        "DeltaClusters",
    ),
    (
        Served::Only(TypeUrl::ClusterLoadAssignment),
        "endpoint.v3.EndpointDiscoveryService",
        Some("StreamEndpoints"),
        "DeltaEndpoints",
    ),
    (
        Served::Only(TypeUrl::LbEndpoint),
        "endpoint.v3.LocalityEndpointDiscoveryService",
        None,
        "DeltaLocalityEndpoints",
    ),
    (
        Served::Only(TypeUrl::Listener),
        "listener.v3.ListenerDiscoveryService",
        Some("StreamListeners"),
        "DeltaListeners",
    ),
    (
        Served::Only(TypeUrl::RouteConfiguration),
        "route.v3.RouteDiscoveryService",
        Some("StreamRoutes"),
        "DeltaRoutes",
    ),
];

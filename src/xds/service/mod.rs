//! The services that clients call. They only move messages: what is answered is decided in `protocol`.

mod grpc;
mod session;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::Router;
use axum::routing::post;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::Ledger;
use super::protocol::{Served, StreamId, Variant};
use super::wire::{DeltaMessage, SotwMessage};
use crate::events::event::UpdateRejection;
use crate::projection::resources::{Resources, TypeUrl};

/// What every stream needs.
#[derive(Debug)]
struct Shared {
    resources: watch::Receiver<Arc<Resources>>,
    ledger: Ledger,
    rejections: mpsc::Sender<UpdateRejection>,
    shutdown: CancellationToken,
    next_stream: AtomicU64,
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
    // A start of its own for every process, so that a nonce of another one is never mistaken for ours (xds-rules 3).
    let next_stream = AtomicU64::new(uuid::Uuid::now_v7().as_u64_pair().1);
    let shared = Arc::new(Shared { resources, ledger, rejections, shutdown, next_stream });
    let mut router = Router::new().fallback(grpc::unknown);
    for (served, service, sotw, delta) in SERVICES {
        let path = |method| format!("/envoy.service.{service}/{method}");
        let of = |variant| (Arc::clone(&shared), variant, served);
        let (of_sotw, of_delta) = (of(Variant::Sotw), of(Variant::Delta));
        router = router
            .route(&path(sotw), post(move |request| grpc::stream::<SotwMessage>(of_sotw.clone(), request)))
            .route(
                &path(delta),
                post(move |request| grpc::stream::<DeltaMessage>(of_delta.clone(), request)),
            );
    }
    router
}

/// What each service serves, its name, and its methods for the two variants.
const SERVICES: [(Served, &str, &str, &str); 1 + TypeUrl::ALL.len()] = [
    (
        Served::All,
        "discovery.v3.AggregatedDiscoveryService",
        "StreamAggregatedResources",
        "DeltaAggregatedResources",
    ),
    (Served::Only(TypeUrl::Cluster), "cluster.v3.ClusterDiscoveryService", "StreamClusters", "DeltaClusters"),
    (
        Served::Only(TypeUrl::ClusterLoadAssignment),
        "endpoint.v3.EndpointDiscoveryService",
        "StreamEndpoints",
        "DeltaEndpoints",
    ),
    (
        Served::Only(TypeUrl::Listener),
        "listener.v3.ListenerDiscoveryService",
        "StreamListeners",
        "DeltaListeners",
    ),
    (
        Served::Only(TypeUrl::RouteConfiguration),
        "route.v3.RouteDiscoveryService",
        "StreamRoutes",
        "DeltaRoutes",
    ),
];

//! THE DOOR FOR WORKERS: the gRPC session in which workers and supervisors report.
#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "a shell: it talks to sockets")]

mod convert;
mod orders;
mod rest;
mod session;

use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::ConnectInfo;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tonic::{Request, Response, Status, Streaming};

use crate::engine::Handle;
use crate::events::Actor;
use crate::listen::Ending;
use crate::proto::workers_server::{Workers, WorkersServer};
use crate::proto::{AttachRequest, AttachResponse};
use orders::Orders;
use session::{Session, new_session_id};

/// How many answers and orders may wait for a session's reader. One that does not read holds up its own requests,
/// and nobody else's.
const RESPONSES_MAX: usize = 256;

/// The longest request, in bytes: a registration with every label at its limit is below 100 kB.
const REQUEST_BYTES_MAX: usize = 1 << 20;

/// The worker service. Clones serve the same sessions.
#[derive(Clone, Debug)]
pub struct Ingest {
    handle: Handle,
    orders: Arc<Orders>,
    sessions: TaskTracker,
    shutdown: CancellationToken,
}

impl Ingest {
    /// A service that submits to `handle`. On `shutdown` its sessions end, and their workers are not taken for dead.
    #[must_use]
    pub fn new(handle: Handle, shutdown: CancellationToken) -> Self {
        let orders = Arc::new(Orders::default());
        let sessions = TaskTracker::new();
        sessions.spawn(orders::follow(Arc::clone(&orders), handle.events(), shutdown.clone()));
        Self { handle, orders, sessions, shutdown }
    }

    /// The service as it is mounted.
    #[must_use]
    pub fn service(&self) -> WorkersServer<Self> {
        WorkersServer::new(self.clone()).max_decoding_message_size(REQUEST_BYTES_MAX)
    }

    /// The same for callers without gRPC: registrations that are renewed.
    pub fn rest(&self) -> axum::Router {
        rest::router(self.handle.clone())
    }

    /// Waits until every session has ended. Call it after `shutdown`.
    pub async fn ended(&self) {
        self.sessions.close();
        self.sessions.wait().await;
    }
}

#[tonic::async_trait]
impl Workers for Ingest {
    type AttachStream = ReceiverStream<Result<AttachResponse, Status>>;

    async fn attach(
        &self,
        request: Request<Streaming<AttachRequest>>,
    ) -> Result<Response<Self::AttachStream>, Status> {
        let actor = Actor::Anonymous { peer: peer(&request) };
        let ending = request.extensions().get::<Ending>().cloned().unwrap_or_default();
        let (responses, stream) = mpsc::channel(RESPONSES_MAX);
        let session = Session {
            id: new_session_id(),
            actor,
            handle: self.handle.clone(),
            orders: Arc::clone(&self.orders),
            responses,
            ending,
        };
        self.sessions.spawn(session.run(request.into_inner(), self.shutdown.clone()));
        Ok(Response::new(ReceiverStream::new(stream)))
    }
}

fn peer<T>(request: &Request<T>) -> String {
    let known = request.extensions().get::<ConnectInfo<SocketAddr>>().map(|peer| peer.0);
    known.map_or_else(|| "unknown".to_owned(), |address| address.to_string())
}

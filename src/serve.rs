//! The control plane put together: open the log, fold it, open the doors, serve, close in the other order.
#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "a shell: it starts everything")]

use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tonic::server::NamedService;

use crate::api::{self, Sources};
use crate::command::Command;
use crate::config::Config;
use crate::engine::{self, Handle, Settings, SubmitError};
use crate::events::log::{EventLog, LogError, SledLog, SledOptions};
use crate::events::{Actor, ReplicaId};
use crate::ingest::Ingest;
use crate::projection::state::State;
use crate::proto::workers_server::WorkersServer;

/// Where to listen: bound, so that a port in use is found before anything is written.
#[derive(Debug)]
pub struct Doors {
    /// For proxies.
    pub xds: TcpListener,
    /// For workers, scripts and people.
    pub api: TcpListener,
}

/// Why a control plane could not serve, or stopped.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// The log cannot be used.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The start could not be recorded.
    #[error("the start could not be recorded")]
    Start(#[source] SubmitError),
    /// The writer stopped by itself.
    #[error("the writer stopped")]
    Writer,
}

/// Serves until `shutdown`. `opened` is called once the doors are open.
///
/// # Errors
///
/// [`Fault`]. Every acknowledged event is in the log whatever happens.
pub async fn serve<R>(
    config: &Config,
    doors: Doors,
    opened: impl AsyncFnOnce() -> R,
    shutdown: CancellationToken,
) -> Result<R, Fault> {
    let log = SledLog::open(&config.data_dir, SledOptions::default())?;
    let start = engine::open(log.reader().as_ref(), State::default(), None)?;
    tracing::info!(offset = %start.snapshot.offset(), folded = start.folded, "the log is open");

    let settings = Settings { rejoin_grace_ms: config.rejoin_grace_ms };
    let (handle, writer) = engine::engine(Box::new(log), start.snapshot, settings, engine::wall_clock);
    // The writer outlives the doors, so that what came in last is still written.
    let writer_shutdown = CancellationToken::new();
    let mut tasks = JoinSet::new();
    tasks.spawn(writer.run(writer_shutdown.clone()));
    record_start(&handle).await?;

    let ingest = Ingest::new(handle.clone(), shutdown.clone());
    let router = api::router(Sources { handle: handle.clone() });
    let router =
        router.route_service(&format!("/{}/{{*method}}", WorkersServer::<Ingest>::NAME), ingest.service());
    let stop = shutdown.clone();
    let api = axum::serve(doors.api, router).with_graceful_shutdown(async move { stop.cancelled().await });
    let api = tokio::spawn(async move { api.await });
    let _ = doors.xds;

    handle.doors_are_open();
    let result = opened().await;
    tokio::select! {
        () = shutdown.cancelled() => {}
        _ = tasks.join_next() => return Err(Fault::Writer),
    }
    ingest.ended().await;
    let _ = api.await;
    writer_shutdown.cancel();
    while tasks.join_next().await.is_some() {}
    Ok(result)
}

async fn record_start(handle: &Handle) -> Result<(), Fault> {
    let replica = ReplicaId::new(&uuid::Uuid::now_v7().to_string()).expect("a UUID is a name");
    let version = env!("CARGO_PKG_VERSION").to_owned();
    handle.submit(Actor::System, Command::StartReplica { replica, version }).await.map_err(Fault::Start)?;
    Ok(())
}

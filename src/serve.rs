//! The control plane put together: open the log, fold it, open the doors, serve, close in the other order.
#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "a shell: it starts everything")]

use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tonic::server::NamedService;

use crate::api::{self, Sources};
use crate::command::Command;
use crate::config::Config;
use crate::engine::{self, Handle, Saver, Settings, SubmitError};
use crate::events::event::UpdateRejection;
use crate::events::log::{EventLog, LogError, SledLog, SledOptions};
use crate::events::{Actor, ReplicaId};
use crate::ingest::Ingest;
use crate::listen::{self, Limits};
use crate::proto::workers_server::WorkersServer;
use crate::xds::{self, Ledger};

/// How many refusals of proxies may wait to be recorded: each is recorded once a node, type and version, so that this
/// is a whole fleet refusing at once.
const REJECTIONS_WAITING_MAX: usize = 1024;

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
    let options = SledOptions { retention: config.retention, ..SledOptions::default() };
    let log = SledLog::open(&config.data_dir, options)?;
    let checkpoints = log.checkpoints();
    let (saved, state) = engine::saved_state(&log, &checkpoints)?;
    let start = engine::open(log.reader().as_ref(), state, None)?;
    tracing::info!(offset = %start.snapshot.offset(), %saved, folded = start.folded, "the log is open");

    let settings = Settings { rejoin_grace_ms: config.rejoin_grace_ms };
    let (handle, writer) = engine::engine(Box::new(log), start.snapshot, settings, engine::wall_clock);
    // The writer outlives the doors, so that what came in last is still written.
    let writer_shutdown = CancellationToken::new();
    let mut writer = tokio::spawn(writer.run(writer_shutdown.clone()));
    let saver = Saver::new(checkpoints, Arc::clone(handle.log()), handle.snapshots(), saved);
    let saver_shutdown = CancellationToken::new();
    let saver = tokio::spawn(saver.run(saver_shutdown.clone()));
    record_start(&handle).await?;

    let mut open = OpenDoors::new(&handle, doors, &shutdown);
    handle.doors_are_open();
    let result = opened().await;
    let outcome = tokio::select! {
        () = shutdown.cancelled() => Ok(result),
        _ = &mut writer => Err(Fault::Writer),
    };
    shutdown.cancel();
    open.closed().await;
    writer_shutdown.cancel();
    if outcome.is_ok() {
        writer.await.map_err(|_| Fault::Writer)?;
    }
    saver_shutdown.cancel();
    if let Err(panicked) = saver.await {
        tracing::error!(%panicked, "the state was not saved: the next start folds more of the log");
    }
    outcome
}

/// Everything that talks to somebody.
struct OpenDoors {
    ingest: Ingest,
    tasks: JoinSet<()>,
}

impl OpenDoors {
    fn new(handle: &Handle, doors: Doors, shutdown: &CancellationToken) -> Self {
        let mut tasks = JoinSet::new();
        let ledger = Ledger::default();
        let (rejections, refused) = mpsc::channel(REJECTIONS_WAITING_MAX);
        tasks.spawn(record_rejections(handle.clone(), refused));
        let xds = xds::router(handle.resources(), ledger.clone(), rejections, shutdown.clone());
        tasks.spawn(listen::serve(doors.xds, xds, shutdown.clone(), Limits::default()));

        let ingest = Ingest::new(handle.clone(), shutdown.clone());
        let sessions = format!("/{}/{{*method}}", WorkersServer::<Ingest>::NAME);
        let api = api::router(Sources { handle: handle.clone(), ledger })
            .merge(ingest.rest())
            .route_service(&sessions, ingest.service());
        tasks.spawn(listen::serve(doors.api, api, shutdown.clone(), Limits::default()));
        Self { ingest, tasks }
    }

    /// Waits until everybody has gone; the listeners close what stays too long.
    async fn closed(&mut self) {
        self.ingest.ended().await;
        while self.tasks.join_next().await.is_some() {}
    }
}

/// What proxies refuse becomes a fact.
async fn record_rejections(handle: Handle, mut refused: mpsc::Receiver<UpdateRejection>) {
    while let Some(rejection) = refused.recv().await {
        handle.notify(Actor::System, Command::RecordRejection { rejection }).await;
    }
}

async fn record_start(handle: &Handle) -> Result<(), Fault> {
    let replica = ReplicaId::new(&uuid::Uuid::now_v7().to_string()).expect("a UUID is a name");
    let version = env!("CARGO_PKG_VERSION").to_owned();
    handle.submit(Actor::System, Command::StartReplica { replica, version }).await.map_err(Fault::Start)?;
    Ok(())
}

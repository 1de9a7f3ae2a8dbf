//! What saving a large state does to the writer beside it.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use foldplane::command::Command;
use foldplane::engine::{Handle, Saver, Settings, engine, open, wall_clock};
use foldplane::events::event::{HostReport, Locality, PortRange};
use foldplane::events::log::{Checkpoints, EventLog, SledLog, SledOptions};
use foldplane::events::{Actor, HostName, Offset};
use foldplane::projection::state::State;
use tokio_util::sync::CancellationToken;

use crate::world::crowd;

/// How long wishes waited that were made one after another, while a state was saved and while none was.
#[derive(Default)]
pub(crate) struct Waits {
    pub(crate) saving: Vec<Duration>,
    pub(crate) quiet: Vec<Duration>,
    pub(crate) rounds: Vec<Round>,
}

/// One saving of the state.
pub(crate) struct Round {
    /// The longest that a wish waited meanwhile.
    pub(crate) longest: Duration,
    pub(crate) took: Duration,
}

/// Saves the state of so many workers `rounds` times beside a writer at work.
pub(crate) fn waits(dir: &Path, workers: u64, rounds: u32) -> Waits {
    let mut log = SledLog::open(dir, SledOptions::default()).unwrap();
    for batch in crowd(workers).chunks(1_000) {
        log.append(batch).unwrap();
    }
    let checkpoints = log.checkpoints();
    let snapshot = open(&log, State::default(), None).unwrap().snapshot;
    let (handle, writer) = engine(Box::new(log), snapshot, Settings::default(), wall_clock);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let stop = CancellationToken::new();
        let writer = tokio::spawn(writer.run(stop.clone()));
        let mut waits = Waits::default();
        for _ in 0..rounds {
            let begun = Instant::now();
            let mut saving = while_saving(&handle, &checkpoints).await;
            let took = begun.elapsed();
            let mut quiet = wishes(&handle, |begun| begun.elapsed() >= took).await;
            let longest = saving.iter().copied().max().unwrap_or_default();
            waits.rounds.push(Round { longest, took });
            waits.saving.append(&mut saving);
            waits.quiet.append(&mut quiet);
        }
        stop.cancel();
        writer.await.unwrap();
        waits
    })
}

/// Makes wishes from when the state begins to be saved until it is.
async fn while_saving(handle: &Handle, checkpoints: &Arc<Checkpoints>) -> Vec<Duration> {
    let before = checkpoints.offsets().unwrap().last().copied();
    let stop = CancellationToken::new();
    let (log, snapshots) = (Arc::clone(handle.log()), handle.snapshots());
    let saver = Saver::new(Arc::clone(checkpoints), log, snapshots, Offset::ZERO);
    let saver = tokio::spawn(saver.run(stop.clone()));
    let waits = wishes(handle, |_| checkpoints.offsets().unwrap().last().copied() > before).await;
    stop.cancel();
    saver.await.unwrap();
    waits
}

async fn wishes(handle: &Handle, mut is_over: impl FnMut(Instant) -> bool) -> Vec<Duration> {
    let begun = Instant::now();
    let mut waits = Vec::new();
    while !is_over(begun) {
        let asked = Instant::now();
        handle.submit(Actor::System, wish(handle)).await.unwrap();
        waits.push(asked.elapsed());
    }
    waits
}

/// A small change: the ports that a host without workers lends.
fn wish(handle: &Handle) -> Command {
    let last = 30_000 + u16::try_from(handle.snapshot().offset().get() % 1_000).unwrap();
    let report = HostReport {
        addresses: vec!["192.0.2.1".parse().unwrap()],
        port_range: PortRange { first: 20_000, last },
        locality: Locality::default(),
    };
    Command::ReportHost { host: HostName::new("idle").unwrap(), report }
}

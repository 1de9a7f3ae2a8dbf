//! Notices a reader that takes nothing any more (xds-rules 20).
//!
//! A stream is only asked for its next piece when the wire has room. One that has handed out a piece and is not asked
//! again is stalled, and cannot notice that itself; another task does, and closes the connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

/// How much of the limit passes between two looks.
const LOOKS: u32 = 4;

/// Watches one stream for as long as it lives.
#[derive(Debug)]
pub(super) struct Watchdog {
    start: Instant,
    /// When the last piece was handed out, in milliseconds since the start; zero when the stream was asked since.
    waiting_since: Arc<AtomicU64>,
    _task: JoinSet<()>,
}

impl Watchdog {
    /// Cancels `connection` when a piece is not taken for `limit`.
    pub(super) fn new(connection: CancellationToken, limit: Duration) -> Self {
        let (start, waiting_since) = (Instant::now(), Arc::new(AtomicU64::new(0)));
        let watched = Arc::clone(&waiting_since);
        let mut task = JoinSet::new();
        task.spawn(async move {
            loop {
                sleep(limit / LOOKS).await;
                let since = watched.load(Ordering::Relaxed);
                if since > 0 && milliseconds(start).saturating_sub(since) >= milliseconds_of(limit) {
                    tracing::info!("a client that takes nothing any more is disconnected");
                    connection.cancel();
                    return;
                }
            }
        });
        Self { start, waiting_since, _task: task }
    }

    /// A piece was handed out.
    pub(super) fn handed_out(&self) {
        self.waiting_since.store(milliseconds(self.start).max(1), Ordering::Relaxed);
    }

    /// The stream was asked for more: there is room.
    pub(super) fn asked(&self) {
        self.waiting_since.store(0, Ordering::Relaxed);
    }
}

fn milliseconds(start: Instant) -> u64 {
    milliseconds_of(start.elapsed())
}

fn milliseconds_of(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

//! Health for supervisors and load balancers.

use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;

use super::Sources;
use crate::engine::Storage;
use crate::problem::Problem;

/// How long a wish for nothing may take. A flush takes a millisecond; a disk that stalls for seconds is still alive.
const LIVE_WITHIN: Duration = Duration::from_secs(5);

/// Alive is what a wish can go through: queue, decision, log and publisher (kubernetes/kubernetes#70819).
pub(super) async fn livez(State(sources): State<Sources>) -> Result<&'static str, Problem> {
    sources.handle.probe(LIVE_WITHIN).await.map(|()| "ok\n").map_err(|stuck| {
        let status = StatusCode::SERVICE_UNAVAILABLE;
        Problem::new(status, "stuck", stuck.to_string(), "see the server's log; a restart loses nothing")
    })
}

/// Ready from the moment at which the listener answers: it opens after the fold has reached the end of the log.
pub(super) async fn readyz(State(sources): State<Sources>) -> Result<&'static str, Problem> {
    match &*sources.handle.storage().borrow() {
        Storage::Writable => Ok("ok\n"),
        Storage::Unavailable { reason } => Err(Problem::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "storage_unavailable",
            format!("the log cannot be written: {reason}"),
            "reads and xDS go on; writes come back by themselves when the store does",
        )),
    }
}

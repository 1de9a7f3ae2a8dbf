//! A worker for the demo: a small HTTP server that says who it is.

use std::net::SocketAddr;

use axum::Router;
use axum::routing::get;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use super::DemoError;

/// The response header with the worker's process id.
pub const PID_HEADER: &str = "x-worker-pid";

/// Serves on `address` and answers every request with `name`, until SIGTERM.
///
/// # Errors
///
/// [`DemoError::Serve`] when it cannot listen there.
pub async fn serve(address: SocketAddr, name: String) -> Result<(), DemoError> {
    let failed = |source| DemoError::Serve { address, source };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let mut terminated = signal(SignalKind::terminate()).map_err(failed)?;
    let pid = std::process::id().to_string();
    let app = Router::new().fallback(get(move || answer(name.clone(), pid.clone())));
    let stop = async move {
        terminated.recv().await;
    };
    axum::serve(listener, app).with_graceful_shutdown(stop).await.map_err(failed)
}

async fn answer(name: String, pid: String) -> ([(&'static str, String); 1], String) {
    ([(PID_HEADER, pid)], format!("{name}\n"))
}

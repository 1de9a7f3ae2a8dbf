//! THE DOOR FOR PEOPLE: REST for scripts and the command line, health for supervisors.
#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "a shell: it talks to sockets")]

mod events;
pub mod findings;
mod health;
pub mod hosts;
mod lists;
mod metrics;
mod min_offset;
pub mod node_views;
pub mod obey;
pub mod policies;
pub mod proxies;
pub mod resources;
pub mod services;
pub mod status;
pub mod views;
pub mod wait;

use axum::Router;
use axum::http::StatusCode;
use axum::middleware::from_fn_with_state;
use axum::routing::{delete, get, post, put};

use crate::engine::Handle;
use crate::problem::Problem;
use crate::xds::Ledger;

/// What the handlers look at.
#[derive(Clone, Debug)]
pub struct Sources {
    /// Snapshots and the log.
    pub handle: Handle,
    /// Who was sent what.
    pub ledger: Ledger,
}

/// Every route, relative to the root of the API listener.
pub fn router(sources: Sources) -> Router {
    let one_policy = get(policies::get).put(policies::set).delete(policies::delete);
    Router::new()
        .route("/livez", get(health::livez))
        .route("/readyz", get(health::readyz))
        .route("/v1/services", get(services::list))
        .route("/v1/services/{service}", get(services::get).put(services::declare).delete(services::retire))
        .route("/metrics", get(metrics::metrics))
        .route("/v1/status", get(status::status))
        .route("/v1/workers", get(lists::workers))
        .route("/v1/endpoints", get(lists::endpoints))
        .route("/v1/proxies", get(lists::proxies))
        .route("/v1/hosts", get(hosts::list))
        .route("/v1/hosts/{host}", delete(hosts::remove))
        .route("/v1/hosts/{host}/drain", post(hosts::drain))
        .route("/v1/views", get(node_views::list))
        .route("/v1/views/{name}", put(node_views::set).delete(node_views::remove))
        .route("/v1/services/{service}/policy", one_policy.clone())
        .route("/v1/policy", one_policy)
        .route("/v1/findings", get(findings::list))
        .route("/v1/resources", get(resources::list).post(resources::change))
        .route("/v1/state", get(lists::state))
        .route("/v1/events", get(events::events))
        .route("/v1/wait", get(wait::wait))
        .fallback(unknown)
        .layer(from_fn_with_state(sources.clone(), min_offset::wait))
        .with_state(sources)
}

async fn unknown(uri: axum::http::Uri) -> Problem {
    Problem::new(
        StatusCode::NOT_FOUND,
        "not_found",
        format!("there is nothing at {}", uri.path()),
        "the lists are /v1/services, /v1/workers, /v1/endpoints, /v1/hosts, /v1/resources, /v1/proxies, /v1/views, /v1/findings, /v1/status, /v1/state and /v1/events; /v1/wait waits for them",
    )
}

//! Lists, each of one snapshot.

use axum::Json;
use axum::extract::State;
use serde::Deserialize;

use super::proxies::{self, ProxyView};
use super::views::{self, EndpointView, Listing, StateView, WorkerView};
use super::{Sources, services};
use crate::events::ServiceName;
use crate::problem::{Problem, QueryOf};
use crate::projection::{HealthStatus, Snapshot};

/// What a list may be narrowed to.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Filter {
    service: Option<String>,
    ready: Option<bool>,
}

impl Filter {
    /// The service asked for, which must be declared or have live workers.
    fn service(&self, snapshot: &Snapshot) -> Result<Option<ServiceName>, Problem> {
        let Some(text) = &self.service else { return Ok(None) };
        services::known(snapshot, text).map(|(name, _)| Some(name.clone()))
    }
}

pub(super) async fn workers(
    State(sources): State<Sources>,
    QueryOf(filter): QueryOf<Filter>,
) -> Result<Json<Listing<WorkerView>>, Problem> {
    let snapshot = sources.handle.snapshot();
    let service = filter.service(&snapshot)?;
    let mut listing = views::workers(&snapshot, service.as_ref());
    if let Some(ready) = filter.ready {
        listing.items.retain(|worker| (worker.health == Some(HealthStatus::Healthy)) == ready);
    }
    Ok(Json(listing))
}

pub(super) async fn endpoints(
    State(sources): State<Sources>,
    QueryOf(filter): QueryOf<Filter>,
) -> Result<Json<Listing<EndpointView>>, Problem> {
    let snapshot = sources.handle.snapshot();
    let service = filter.service(&snapshot)?;
    let mut listing = views::endpoints(&snapshot, service.as_ref());
    if let Some(ready) = filter.ready {
        listing.items.retain(|endpoint| (endpoint.health == HealthStatus::Healthy) == ready);
    }
    Ok(Json(listing))
}

pub(super) async fn proxies(State(sources): State<Sources>) -> Json<Listing<ProxyView>> {
    let offset = sources.handle.snapshot().offset().get();
    Json(Listing { offset, items: proxies::views(&sources.ledger) })
}

pub(super) async fn state(State(sources): State<Sources>) -> Json<StateView> {
    Json(views::state(&sources.handle.snapshot()))
}

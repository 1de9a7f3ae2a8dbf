//! Services: those that are declared, and those that are known by their workers.

use std::net::SocketAddr;

use axum::Json;
use axum::extract::{ConnectInfo, Path, State};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};

use super::Sources;
use super::obey::{OffsetBody, obey};
use super::views::Listing;
use crate::command::Command;
use crate::events::event::ServiceSpec;
use crate::events::{PortName, ServiceName};
use crate::problem::{JsonBody, Problem};
use crate::projection::state::{Cluster, Service};
use crate::projection::{HealthStatus, Snapshot};

/// A service that is declared, or has live workers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceView {
    /// Its name.
    pub service: String,
    /// Its ports; the first is published under the service's own name.
    pub ports: Vec<String>,
    /// How many live workers it has.
    pub workers: u32,
    /// How many endpoints of its first port get requests.
    pub ready: usize,
    /// The clusters in which its endpoints are published, sorted by name.
    pub clusters: Vec<String>,
    /// What it is declared to be, if it is.
    pub spec: Option<ServiceSpec>,
}

/// One service, and the offset that it is from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceAt {
    /// The log offset.
    pub offset: u64,
    /// The service.
    #[serde(flatten)]
    pub service: ServiceView,
}

/// Every service that is declared or has live workers.
#[must_use]
pub fn views(snapshot: &Snapshot) -> Listing<ServiceView> {
    let services = snapshot.state().services().iter();
    Listing::new(snapshot, services.map(|(name, service)| view(snapshot, name, service)))
}

fn view(snapshot: &Snapshot, name: &ServiceName, service: &Service) -> ServiceView {
    let first = service.ports().next();
    let clusters = || snapshot.state().clusters_of(name);
    ServiceView {
        service: name.to_string(),
        ports: service.ports().map(ToString::to_string).collect(),
        workers: service.workers,
        ready: clusters().map(|(_, cluster)| ready(cluster, first)).sum(),
        clusters: clusters().map(|(name, _)| name.to_string()).collect(),
        spec: service.spec.as_deref().cloned(),
    }
}

/// How many endpoints of this port get requests in a cluster.
fn ready(cluster: &Cluster, port: Option<&PortName>) -> usize {
    let of_port = cluster.members.values().filter(|member| Some(&member.port) == port);
    let published = of_port.filter_map(|member| member.published.as_ref());
    published.filter(|published| published.health == HealthStatus::Healthy).count()
}

/// The service of this name, which must be declared or have live workers.
pub(super) fn known<'a>(
    snapshot: &'a Snapshot,
    text: &str,
) -> Result<(&'a ServiceName, &'a Service), Problem> {
    let name = ServiceName::new(text)?;
    let found = snapshot.state().services().get_key_value(&name);
    found.map(|(name, service)| (name, service.as_ref())).ok_or_else(|| {
        Problem::new(
            StatusCode::NOT_FOUND,
            "unknown_service",
            format!("no service {name} is declared or has live workers"),
            "`foldplane get services` lists those that are known",
        )
    })
}

pub(super) async fn list(State(sources): State<Sources>) -> Json<Listing<ServiceView>> {
    Json(views(&sources.handle.snapshot()))
}

pub(super) async fn get(
    State(sources): State<Sources>,
    Path(service): Path<String>,
) -> Result<Json<ServiceAt>, Problem> {
    let snapshot = sources.handle.snapshot();
    let (name, service) = known(&snapshot, &service)?;
    Ok(Json(ServiceAt { offset: snapshot.offset().get(), service: view(&snapshot, name, service) }))
}

pub(super) async fn declare(
    State(sources): State<Sources>,
    Path(service): Path<String>,
    peer: ConnectInfo<SocketAddr>,
    JsonBody(spec): JsonBody<ServiceSpec>,
) -> Result<Json<OffsetBody>, Problem> {
    let service = ServiceName::new(&service)?;
    obey(&sources, peer, Command::DeclareService { service, spec }).await
}

pub(super) async fn retire(
    State(sources): State<Sources>,
    Path(service): Path<String>,
    peer: ConnectInfo<SocketAddr>,
) -> Result<Json<OffsetBody>, Problem> {
    obey(&sources, peer, Command::RetireService { service: ServiceName::new(&service)? }).await
}

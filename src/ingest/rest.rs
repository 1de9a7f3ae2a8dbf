//! The same over REST, for workers and supervisors without gRPC: a time to live and renewals instead of a connection.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use axum::extract::{ConnectInfo, Path, State};
use axum::http::StatusCode;
use axum::routing::{post, put};
use axum::{Json, Router};
use serde::{Deserialize, Serialize};

use super::convert::health_source;
use super::session::new_session_id;
use crate::command::{Command, PortRequest, Registering, listen, weight};
use crate::engine::{Accepted, Handle};
use crate::events::event::{Lease, Locality, Readiness, RemovalCause, Verdict};
use crate::events::{
    Actor, Generation, HostName, Offset, PortName, ServiceName, WorkerId, WorkerKey, WorkerRef,
};
use crate::problem::{JsonBody, Problem};

/// How long a lease lasts when the registration does not say, in milliseconds: renewed three times as often, a worker
/// that dies is gone within half a minute, and two lost renewals cost nothing.
const TTL_MS_DEFAULT: u32 = 30_000;

/// The routes, relative to the root of the API listener.
pub(super) fn router(handle: Handle) -> Router {
    let worker = "/v1/services/{service}/workers/{id}";
    Router::new()
        .route(worker, put(register).delete(deregister))
        .route(&format!("{worker}/renew"), post(renew))
        .route(&format!("{worker}/ready"), post(ready))
        .route(&format!("{worker}/unready"), post(unready))
        .route(&format!("{worker}/health"), post(report_health))
        .route(&format!("{worker}/drain"), post(drain))
        .with_state(handle)
}

/// Where a worker stands in the path.
#[derive(Debug, Deserialize)]
struct Place {
    service: String,
    id: String,
}

/// What a worker asks for.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RegisterBody {
    host: String,
    #[serde(default)]
    ports: Vec<PortBody>,
    ttl_ms: Option<u32>,
    #[serde(default)]
    readiness: ReadinessBody,
    weight: Option<u32>,
    #[serde(default)]
    priority: u32,
    locality: Option<Locality>,
    #[serde(default)]
    metadata: BTreeMap<String, String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ReadinessBody {
    #[default]
    Assumed,
    Reported,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PortBody {
    name: String,
    number: Option<u32>,
    address: Option<String>,
    path: Option<String>,
}

/// Which registration: what was answered to it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Fence {
    host: String,
    generation: Offset,
}

#[derive(Debug, Deserialize)]
struct Reasoned {
    #[serde(flatten)]
    fence: Fence,
    #[serde(default)]
    reason: String,
}

#[derive(Debug, Deserialize)]
struct DrainBody {
    #[serde(flatten)]
    fence: Fence,
    #[serde(default)]
    reason: String,
    drain_ms: Option<u32>,
}

#[derive(Debug, Deserialize)]
struct HealthBody {
    #[serde(flatten)]
    fence: Fence,
    #[serde(default)]
    source: String,
    verdict: VerdictBody,
    #[serde(default)]
    reason: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum VerdictBody {
    Healthy,
    Degraded,
    Unhealthy,
}

/// Durable, and visible to proxies from here on.
#[derive(Debug, Serialize)]
struct AcceptedBody {
    offset: u64,
}

/// As published.
#[derive(Debug, Serialize)]
struct RegisteredBody {
    offset: u64,
    host: String,
    generation: u64,
    ports: BTreeMap<String, String>,
}

type Answer = Result<Json<AcceptedBody>, Problem>;
type Peer = ConnectInfo<SocketAddr>;

impl Place {
    fn key(&self, host: &str) -> Result<WorkerKey, Problem> {
        Ok(WorkerKey {
            service: ServiceName::new(&self.service)?,
            host: HostName::new(host)?,
            id: WorkerId::new(&self.id)?,
        })
    }

    fn worker(&self, fence: &Fence) -> Result<WorkerRef, Problem> {
        Ok(WorkerRef { key: self.key(&fence.host)?, generation: Generation::at(fence.generation) })
    }
}

async fn submit(handle: &Handle, peer: Peer, command: Command) -> Result<Accepted, Problem> {
    let actor = Actor::Anonymous { peer: peer.0.to_string() };
    Ok(handle.submit(actor, command).await?)
}

async fn obey(handle: &Handle, peer: Peer, command: Command) -> Answer {
    let accepted = submit(handle, peer, command).await?;
    Ok(Json(AcceptedBody { offset: accepted.offset.get() }))
}

async fn register(
    State(handle): State<Handle>,
    Path(place): Path<Place>,
    peer: Peer,
    JsonBody(body): JsonBody<RegisterBody>,
) -> Result<(StatusCode, Json<RegisteredBody>), Problem> {
    let worker = place.key(&body.host)?;
    let before = handle.snapshot().state().workers().get(&worker).map(|live| live.generation);
    let wish = wish(&handle, worker.clone(), body)?;
    let accepted = submit(&handle, peer, Command::Register(wish)).await?;
    let workers = accepted.snapshot.state().workers();
    let live = workers.get(&worker).ok_or_else(|| {
        let detail = format!("{worker} was replaced at once by another registration");
        Problem::new(StatusCode::CONFLICT, "stale_generation", detail, "give each worker its own id")
    })?;
    let endpoints = live.registration.endpoints.iter();
    let registered = RegisteredBody {
        offset: accepted.offset.get(),
        host: worker.host.to_string(),
        generation: live.generation.offset().get(),
        ports: endpoints.map(|endpoint| (endpoint.port.to_string(), endpoint.address.to_string())).collect(),
    };
    let status = if before == Some(live.generation) { StatusCode::OK } else { StatusCode::CREATED };
    Ok((status, Json(registered)))
}

/// A worker that asks again for what it has keeps its registration: its session is the one that it had.
fn wish(handle: &Handle, worker: WorkerKey, body: RegisterBody) -> Result<Registering, Problem> {
    let lease = Lease::Ttl { ttl_ms: body.ttl_ms.unwrap_or(TTL_MS_DEFAULT) };
    let snapshot = handle.snapshot();
    let before = snapshot.state().workers().get(&worker).map(|live| &live.registration);
    let session = before.filter(|before| before.lease == lease).map(|before| before.session.clone());
    Ok(Registering {
        worker,
        ports: body.ports.iter().map(port).collect::<Result<_, _>>()?,
        readiness: match body.readiness {
            ReadinessBody::Assumed => Readiness::Assumed,
            ReadinessBody::Reported => Readiness::Reported,
        },
        weight: body.weight.map(|given| weight("weight", given)).transpose()?,
        priority: body.priority,
        locality: body.locality,
        metadata: body.metadata,
        process: None,
        session: session.unwrap_or_else(new_session_id),
        lease,
    })
}

fn port(port: &PortBody) -> Result<PortRequest, Problem> {
    Ok(PortRequest {
        name: PortName::new(&port.name)?,
        listen: listen(port.number, port.address.as_deref(), port.path.as_deref())?,
    })
}

/// Never answered with success while the worker is not there: an unknown one has to register again
/// (hashicorp/nomad#26424).
async fn renew(
    State(handle): State<Handle>,
    Path(place): Path<Place>,
    peer: Peer,
    JsonBody(fence): JsonBody<Fence>,
) -> Answer {
    obey(&handle, peer, Command::Renew { worker: place.worker(&fence)? }).await
}

async fn ready(
    State(handle): State<Handle>,
    Path(place): Path<Place>,
    peer: Peer,
    JsonBody(fence): JsonBody<Fence>,
) -> Answer {
    obey(&handle, peer, Command::Ready { worker: place.worker(&fence)? }).await
}

async fn unready(
    State(handle): State<Handle>,
    Path(place): Path<Place>,
    peer: Peer,
    JsonBody(body): JsonBody<Reasoned>,
) -> Answer {
    let worker = place.worker(&body.fence)?;
    obey(&handle, peer, Command::Unready { worker, reason: body.reason }).await
}

async fn report_health(
    State(handle): State<Handle>,
    Path(place): Path<Place>,
    peer: Peer,
    JsonBody(body): JsonBody<HealthBody>,
) -> Answer {
    let verdict = match body.verdict {
        VerdictBody::Healthy => Verdict::Healthy,
        VerdictBody::Degraded => Verdict::Degraded,
        VerdictBody::Unhealthy => Verdict::Unhealthy,
    };
    let (worker, source) = (place.worker(&body.fence)?, health_source(&body.source)?);
    obey(&handle, peer, Command::ReportHealth { worker, source, verdict, reason: body.reason }).await
}

async fn drain(
    State(handle): State<Handle>,
    Path(place): Path<Place>,
    peer: Peer,
    JsonBody(body): JsonBody<DrainBody>,
) -> Answer {
    let DrainBody { fence, reason, drain_ms } = body;
    obey(&handle, peer, Command::Drain { worker: place.worker(&fence)?, reason, drain_ms }).await
}

async fn deregister(
    State(handle): State<Handle>,
    Path(place): Path<Place>,
    peer: Peer,
    JsonBody(fence): JsonBody<Fence>,
) -> Answer {
    let worker = place.worker(&fence)?;
    obey(&handle, peer, Command::Remove { worker, cause: RemovalCause::Deregistered }).await
}

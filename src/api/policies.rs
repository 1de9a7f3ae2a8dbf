//! Policies: what decides over endpoints, and what would change with another.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use axum::Json;
use axum::extract::{ConnectInfo, Path, State};
use serde::{Deserialize, Serialize};

use super::Sources;
use super::findings::FindingKind;
use super::obey::{OffsetBody, obey};
use super::views::{self, EndpointView, Listing};
use crate::command::{Command, decide};
use crate::engine::wall_clock;
use crate::events::event::Policy;
use crate::events::{Actor, Envelope, ServiceName};
use crate::problem::{JsonBody, Problem, QueryOf};
use crate::projection::findings::{Finding, findings};
use crate::projection::{HealthStatus, Snapshot};

/// A policy, and the offset that it is from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyView {
    /// The log offset.
    pub offset: u64,
    /// Of which service; absent is of all that have no hook of their own.
    pub service: Option<String>,
    /// Its hooks.
    pub policy: Policy,
}

/// What would change with another policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyPreview {
    /// The log offset that it would follow.
    pub offset: u64,
    /// The endpoints that clients would be told something else of, by worker and port.
    pub changes: Vec<EndpointChange>,
    /// What somebody would have to look at then.
    pub findings: Vec<FindingView>,
}

/// One endpoint, as it is published and as it would be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndpointChange {
    /// Whose it is.
    pub worker: String,
    /// Which of the worker's ports.
    pub port: String,
    /// As it is; absent is not published.
    pub before: Option<Shown>,
    /// As it would be.
    pub after: Option<Shown>,
}

/// How an endpoint is published, as far as a policy decides it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shown {
    /// In which cluster.
    pub cluster: String,
    /// As what.
    pub health: HealthStatus,
}

/// Something that somebody should look at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FindingView {
    /// Its kind, such as `hook_failed`.
    pub kind: String,
    /// About whom.
    pub about: String,
    /// What it is.
    pub detail: String,
}

/// Whether a request is to change anything.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Setting {
    #[serde(default)]
    dry_run: bool,
}

/// What is answered to a policy that is set, or that would be.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Set {
    Done(OffsetBody),
    Preview(PolicyPreview),
}

/// Everything that somebody should look at.
#[must_use]
pub fn findings_of(snapshot: &Snapshot) -> Listing<FindingView> {
    Listing::new(snapshot, findings(snapshot.state()).map(|finding| finding_view(&finding)))
}

fn finding_view(finding: &Finding) -> FindingView {
    let (about, detail) = about(finding);
    FindingView { kind: FindingKind::HookFailed.to_string(), about, detail }
}

/// About whom it is, and what it is.
pub(super) fn about(finding: &Finding) -> (String, String) {
    match finding {
        Finding::HookFailed { worker, port, hook, failure } => {
            (format!("{worker} {port}"), format!("the hook {hook} gives no answer: {failure}"))
        }
    }
}

/// What would change if this command were obeyed now. Nothing is written.
///
/// # Errors
///
/// Why it would be refused.
pub fn preview(snapshot: &Snapshot, command: &Command) -> Result<PolicyPreview, Problem> {
    let now = wall_clock();
    let mut after = snapshot.clone();
    for event in decide(snapshot.state(), command, now)? {
        let offset = after.offset().next();
        let envelope = Envelope { offset, recorded_at: now, actor: Actor::System, correlation: None, event };
        after = after.fold([&envelope]).0;
    }
    let (was, is) = (shown(snapshot), shown(&after));
    let places = was.keys().chain(is.keys()).collect::<std::collections::BTreeSet<_>>();
    let change = |place: &(String, String)| {
        let (before, after) = (was.get(place).cloned(), is.get(place).cloned());
        let (worker, port) = place.clone();
        (before != after).then_some(EndpointChange { worker, port, before, after })
    };
    Ok(PolicyPreview {
        offset: snapshot.offset().get(),
        changes: places.into_iter().filter_map(change).collect(),
        findings: findings_of(&after).items,
    })
}

fn shown(snapshot: &Snapshot) -> BTreeMap<(String, String), Shown> {
    let endpoints = views::endpoints(snapshot, None).items.into_iter();
    let entry = |endpoint: EndpointView| {
        let shown = Shown { cluster: endpoint.cluster, health: endpoint.health };
        ((endpoint.worker, endpoint.port), shown)
    };
    endpoints.map(entry).collect()
}

/// Of which service a path speaks; none is all.
type Of = Option<Path<String>>;

fn service(of: Of) -> Result<Option<ServiceName>, Problem> {
    Ok(of.map(|Path(service)| ServiceName::new(&service)).transpose()?)
}

pub(super) async fn get(State(sources): State<Sources>, of: Of) -> Result<Json<PolicyView>, Problem> {
    let (snapshot, service) = (sources.handle.snapshot(), service(of)?);
    Ok(Json(PolicyView {
        offset: snapshot.offset().get(),
        policy: snapshot.state().policy(service.as_ref()).cloned().unwrap_or_default(),
        service: service.map(|name| name.to_string()),
    }))
}

pub(super) async fn set(
    State(sources): State<Sources>,
    of: Of,
    QueryOf(Setting { dry_run }): QueryOf<Setting>,
    peer: ConnectInfo<SocketAddr>,
    JsonBody(policy): JsonBody<Policy>,
) -> Result<Json<Set>, Problem> {
    let command = Command::SetPolicy { service: service(of)?, policy };
    if dry_run {
        return Ok(Json(Set::Preview(preview(&sources.handle.snapshot(), &command)?)));
    }
    obey(&sources, peer, command).await.map(|Json(done)| Json(Set::Done(done)))
}

pub(super) async fn delete(
    State(sources): State<Sources>,
    of: Of,
    peer: ConnectInfo<SocketAddr>,
) -> Result<Json<OffsetBody>, Problem> {
    obey(&sources, peer, Command::SetPolicy { service: service(of)?, policy: Policy::default() }).await
}

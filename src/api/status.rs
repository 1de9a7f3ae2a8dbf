//! How the control plane is: one document for people, scripts and metrics.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};

use super::Sources;
use super::findings::{Finding, findings};
use super::views;
use crate::engine::Storage;
use crate::projection::HealthStatus;
use crate::projection::state::{RestCause, State as World};
use crate::xds::Ledger;

/// How the control plane is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusView {
    /// The version of the program.
    pub version: String,
    /// The copy of the control plane that serves, new at each start.
    pub replica: Option<String>,
    /// The offset at which its start is recorded.
    pub started: Option<u64>,
    /// The last event that is published.
    pub offset: u64,
    /// The last event that is durable.
    pub durable_offset: u64,
    /// The oldest event that is kept.
    pub oldest_offset: u64,
    /// Why the log cannot be written, while it cannot.
    pub storage_fault: Option<String>,
    /// Why nobody expires, while nobody does.
    pub expiry_held: Option<HoldView>,
    /// How many events made no sense where they stood.
    pub ignored_events: u64,
    /// Services with live workers.
    pub services: usize,
    /// Clusters that are published.
    pub clusters: usize,
    /// Connections, and callers that renew, that speak for workers.
    pub sessions: usize,
    /// Live workers by state.
    pub workers: BTreeMap<String, usize>,
    /// Hosts by state: `up` and `draining`.
    pub hosts: BTreeMap<String, usize>,
    /// Published endpoints by what clients are told.
    pub endpoints: BTreeMap<String, usize>,
    /// Ports of all hosts by use: `held`, `released` and `busy`.
    pub ports: BTreeMap<String, usize>,
    /// Those who follow over xDS.
    pub xds: XdsView,
    /// What somebody should look at.
    pub findings: Vec<Finding>,
}

/// Leases that do not expire for a while.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HoldView {
    /// The offset at which it began.
    pub since: u64,
    /// How many were silent, of how many.
    pub reason: String,
    /// When it ends at the latest, in RFC 3339.
    pub until: String,
}

/// Those who follow over xDS. Totals are since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct XdsView {
    /// Open streams.
    pub streams: usize,
    /// How many events the last of them is behind.
    pub lag_events: u64,
    /// Streams that were opened.
    pub streams_opened: u64,
    /// Messages from clients.
    pub requests: u64,
    /// Messages to clients.
    pub responses: u64,
    /// Responses that clients refused.
    pub rejections: u64,
    /// Refusals that were not recorded, because too many were waiting.
    pub reports_dropped: u64,
    /// Responses above the 4 MiB that clients accept by default.
    pub oversized: u64,
}

/// How it is now.
pub(super) fn view(sources: &Sources) -> StatusView {
    let (handle, ledger) = (&sources.handle, &sources.ledger);
    let snapshot = handle.snapshot();
    let state = snapshot.state();
    let storage = handle.storage().borrow().clone();
    let hold = state.expiry_hold();
    StatusView {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        replica: state.replica().map(|replica| replica.id.to_string()),
        started: state.replica().map(|replica| replica.started.get()),
        offset: snapshot.offset().get(),
        durable_offset: handle.log().head().offset.get(),
        oldest_offset: handle.log().oldest().get(),
        findings: findings(&snapshot, &storage, ledger),
        storage_fault: match storage {
            Storage::Writable => None,
            Storage::Unavailable { reason } => Some(reason),
        },
        expiry_held: hold.map(|hold| HoldView {
            since: hold.since.get(),
            reason: hold.reason.clone(),
            until: hold.until.to_string(),
        }),
        ignored_events: state.anomalies(),
        services: state.services().len(),
        clusters: state.clusters().len(),
        sessions: state.sessions().len(),
        workers: workers(state),
        hosts: hosts(state),
        endpoints: endpoints(state),
        ports: ports(state),
        xds: xds(ledger),
    }
}

pub(super) async fn status(State(sources): State<Sources>) -> Json<StatusView> {
    Json(view(&sources))
}

/// Counts, with a zero for what there is none of, so that a list of names is always whole.
fn count<'a>(
    names: impl IntoIterator<Item = &'a str>,
    found: impl Iterator<Item = &'a str>,
) -> BTreeMap<String, usize> {
    let mut counts: BTreeMap<String, usize> = names.into_iter().map(|name| (name.to_owned(), 0)).collect();
    for name in found {
        *counts.entry(name.to_owned()).or_default() += 1;
    }
    counts
}

fn workers(state: &World) -> BTreeMap<String, usize> {
    count(views::CONDITIONS, state.workers().values().map(|worker| views::condition(worker).0))
}

fn hosts(state: &World) -> BTreeMap<String, usize> {
    let hosts = state.hosts().values();
    count(["up", "draining"], hosts.map(|host| if host.draining.is_some() { "draining" } else { "up" }))
}

fn endpoints(state: &World) -> BTreeMap<String, usize> {
    let members = state.clusters().values().flat_map(|cluster| cluster.members.values());
    let published = members.filter_map(|member| member.published.as_ref());
    let healths = [HealthStatus::Healthy, HealthStatus::Unhealthy, HealthStatus::Draining];
    count(healths.map(HealthStatus::as_str), published.map(|published| published.health.as_str()))
}

fn ports(state: &World) -> BTreeMap<String, usize> {
    let held = state.ports().keys().map(|_| "held");
    let resting = state.resting().values().map(|rest| rest.cause.as_str());
    let names = ["held", RestCause::Released.as_str(), RestCause::Busy.as_str()];
    count(names, held.chain(resting))
}

fn xds(ledger: &Ledger) -> XdsView {
    let streams = ledger.snapshot();
    let totals = ledger.totals();
    XdsView {
        streams: streams.len(),
        lag_events: streams.iter().map(|stream| stream.lag()).max().unwrap_or_default(),
        streams_opened: totals.opened,
        requests: totals.requests,
        responses: totals.responses,
        rejections: totals.rejections,
        reports_dropped: totals.reports_dropped,
        oversized: totals.oversized,
    }
}

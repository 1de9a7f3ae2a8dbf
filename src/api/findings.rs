//! What somebody should look at: one list, made in one place.

use std::fmt;
use std::sync::Arc;

use axum::Json;
use axum::extract::State as Given;
use serde::{Deserialize, Serialize};

use super::views::Listing;
use super::{Sources, policies};
use crate::engine::Storage;
use crate::events::event::{Delivery, LocalityWeighting};
use crate::events::{HostName, ResourceKey, ResourceKind, ServiceName};
use crate::projection::ClusterName;
use crate::projection::resources::Dials;
use crate::projection::state::{Cluster, Host, PortKey, Service, State};
use crate::projection::{self, HealthStatus, Snapshot};
use crate::xds::Ledger;
use crate::xds::ledger::StreamStatus;

/// How many findings of one kind are named. The last one says how many more there are.
const FINDINGS_PER_KIND_MAX: usize = 50;

/// Something that somebody should look at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// What it is.
    pub kind: FindingKind,
    /// How much it matters.
    pub severity: Severity,
    /// Which worker, cluster, host or client; `-` for the whole.
    pub about: String,
    /// What is the case.
    pub detail: String,
    /// What to do.
    pub hint: String,
}

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Something does not work.
    Fault,
    /// Something may not be as it is meant.
    Warning,
    /// Good to know.
    Notice,
}

/// The kinds of findings. Stable: scripts and alerts rely on their text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingKind {
    /// The log cannot be written.
    StorageUnavailable,
    /// A crowd is silent, and nobody expires.
    ExpiryHeld,
    /// A client refuses what it is sent.
    UpdateRejected,
    /// A response was above what clients accept.
    ResponseOversized,
    /// No endpoint of a cluster gets requests.
    NoneReady,
    /// A host has no port left.
    PortsExhausted,
    /// A hook of a policy gives no answer for an endpoint.
    HookFailed,
    /// Events in the log made no sense.
    EventsIgnored,
    /// A worker has no port, so that nobody can be sent to it.
    WithoutEndpoint,
    /// An assignment that an operator applied is served in the place of workers' endpoints.
    EndpointsHidden,
    /// Every endpoint of a cluster is a Unix domain socket, of which gRPC clients are not told.
    SocketsOnly,
    /// A service asks for its endpoints one by one, and cannot have it.
    LedsOff,
}

impl FindingKind {
    /// Every kind, in the order in which they are shown.
    pub const ALL: [Self; 12] = [
        Self::StorageUnavailable,
        Self::ExpiryHeld,
        Self::UpdateRejected,
        Self::ResponseOversized,
        Self::NoneReady,
        Self::PortsExhausted,
        Self::HookFailed,
        Self::EventsIgnored,
        Self::WithoutEndpoint,
        Self::EndpointsHidden,
        Self::SocketsOnly,
        Self::LedsOff,
    ];

    /// Its text.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::StorageUnavailable => "storage_unavailable",
            Self::ExpiryHeld => "expiry_held",
            Self::UpdateRejected => "update_rejected",
            Self::ResponseOversized => "response_oversized",
            Self::NoneReady => "none_ready",
            Self::PortsExhausted => "ports_exhausted",
            Self::HookFailed => "hook_failed",
            Self::EventsIgnored => "events_ignored",
            Self::WithoutEndpoint => "without_endpoint",
            Self::EndpointsHidden => "endpoints_hidden",
            Self::SocketsOnly => "sockets_only",
            Self::LedsOff => "leds_off",
        }
    }

    const fn severity(self) -> Severity {
        match self {
            Self::StorageUnavailable | Self::ExpiryHeld | Self::UpdateRejected => Severity::Fault,
            Self::ResponseOversized
            | Self::NoneReady
            | Self::PortsExhausted
            | Self::HookFailed
            | Self::EventsIgnored => Severity::Warning,
            Self::WithoutEndpoint | Self::EndpointsHidden | Self::SocketsOnly | Self::LedsOff => {
                Severity::Notice
            }
        }
    }

    const fn hint(self) -> &'static str {
        match self {
            Self::StorageUnavailable => "look at the disk; writes come back by themselves",
            Self::ExpiryHeld => "look at the network between the workers and here",
            Self::UpdateRejected => {
                "it goes on with what it accepted last; `foldplane get proxies -o wide` shows more"
            }
            Self::ResponseOversized => "have the client follow over delta, which is sent in parts",
            Self::NoneReady => "`foldplane get workers` shows why",
            Self::PortsExhausted => "report a larger range for the host",
            Self::HookFailed => "until it is mended, what would hold without it holds (docs/policies.md)",
            Self::EventsIgnored => {
                "`foldplane log verify` finds damage; events of another build are left as they are"
            }
            Self::WithoutEndpoint => "nothing, if it is meant to have no port",
            Self::EndpointsHidden => {
                "nothing, if it is meant; `foldplane delete endpoints NAME` shows the workers again"
            }
            Self::SocketsOnly => "nothing, if only Envoys are to reach it; gRPC clients need a port",
            Self::LedsOff => "declare the service without --delivery leds, or without weighted localities",
        }
    }

    fn found(self, about: impl fmt::Display, detail: String) -> Finding {
        let (severity, hint) = (self.severity(), self.hint().to_owned());
        Finding { kind: self, severity, about: about.to_string(), detail, hint }
    }
}

impl fmt::Display for FindingKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Fault => "fault",
            Self::Warning => "warning",
            Self::Notice => "notice",
        })
    }
}

/// Everything that somebody should look at, the worst first.
#[must_use]
pub fn findings(snapshot: &Snapshot, storage: &Storage, ledger: &Ledger) -> Vec<Finding> {
    let state = snapshot.state();
    let mut findings = Vec::new();
    findings.extend(of_storage(storage));
    findings.extend(of_expiry(state));
    findings.extend(shortened(FindingKind::UpdateRejected, rejections(&ledger.snapshot())));
    findings.extend(oversized(ledger));
    findings.extend(shortened(FindingKind::NoneReady, state.clusters().iter().filter_map(none_ready)));
    let exhausted = state.hosts().iter().filter_map(|(name, host)| exhausted(state, name, host));
    findings.extend(shortened(FindingKind::PortsExhausted, exhausted));
    findings
        .extend(shortened(FindingKind::HookFailed, projection::findings::findings(state).map(hook_failed)));
    findings.extend(ignored(state));
    findings.extend(shortened(FindingKind::WithoutEndpoint, without_endpoint(state)));
    let hidden = state.clusters().iter().filter_map(|(name, cluster)| hidden(state, name, cluster));
    findings.extend(shortened(FindingKind::EndpointsHidden, hidden));
    findings.extend(shortened(FindingKind::SocketsOnly, state.clusters().iter().filter_map(sockets_only)));
    findings.extend(shortened(FindingKind::LedsOff, state.services().iter().filter_map(leds_off)));
    findings.sort_by_key(|finding| (finding.severity, finding.kind));
    findings
}

pub(super) async fn list(Given(sources): Given<Sources>) -> Json<Listing<Finding>> {
    let snapshot = sources.handle.snapshot();
    let storage = sources.handle.storage().borrow().clone();
    let items = findings(&snapshot, &storage, &sources.ledger);
    Json(Listing { offset: snapshot.offset().get(), items })
}

/// The first of them, and how many there are beyond.
fn shortened(kind: FindingKind, all: impl IntoIterator<Item = Finding>) -> Vec<Finding> {
    let mut all = all.into_iter();
    let mut named: Vec<Finding> = all.by_ref().take(FINDINGS_PER_KIND_MAX).collect();
    let more = all.count();
    if more > 0 {
        named.push(kind.found('-', format!("and {more} more")));
    }
    named
}

fn of_storage(storage: &Storage) -> Option<Finding> {
    match storage {
        Storage::Writable => None,
        Storage::Unavailable { reason } => {
            Some(FindingKind::StorageUnavailable.found('-', format!("the log cannot be written: {reason}")))
        }
    }
}

fn of_expiry(state: &State) -> Option<Finding> {
    let hold = state.expiry_hold()?;
    let detail = format!("nobody expires until {} at the latest: {}", hold.until, hold.reason);
    Some(FindingKind::ExpiryHeld.found('-', detail))
}

fn rejections(streams: &[StreamStatus]) -> Vec<Finding> {
    let of_stream = |stream: &StreamStatus| -> Vec<Finding> {
        let refused = stream.types.iter().filter_map(|(type_url, status)| {
            let rejection = status.rejection.as_ref()?;
            let names: Vec<String> = rejection.names.iter().map(ToString::to_string).collect();
            let detail = format!("{type_url} {}: {}", names.join(" "), rejection.message);
            Some(FindingKind::UpdateRejected.found(stream.node.id(), detail))
        });
        refused.collect()
    };
    streams.iter().flat_map(of_stream).collect()
}

fn oversized(ledger: &Ledger) -> Option<Finding> {
    let count = ledger.totals().oversized;
    let detail = format!("{count} responses since the start were above the 4 MiB that gRPC clients accept");
    (count > 0).then(|| FindingKind::ResponseOversized.found('-', detail))
}

fn none_ready((name, cluster): (&ClusterName, &Arc<Cluster>)) -> Option<Finding> {
    let published = cluster.members.values().filter_map(|member| member.published.as_ref());
    let ready = published.filter(|published| published.health == HealthStatus::Healthy).count();
    let detail = format!("none of its {} endpoints gets requests", cluster.members.len());
    (ready == 0).then(|| FindingKind::NoneReady.found(name, detail))
}

/// Resting ports come back by themselves, so that only those count that are held.
fn exhausted(state: &State, name: &HostName, host: &Host) -> Option<Finding> {
    let range = host.port_range();
    let port = |number| PortKey { host: name.clone(), number };
    let held = state.ports().range(port(range.first)..=port(range.last)).count();
    let all = usize::from(range.last.saturating_sub(range.first)) + 1;
    let detail = format!("all {all} ports of {range} are held");
    (held >= all).then(|| FindingKind::PortsExhausted.found(name, detail))
}

fn hook_failed(finding: projection::findings::Finding) -> Finding {
    let (about, detail) = policies::about(&finding);
    FindingKind::HookFailed.found(about, detail)
}

fn ignored(state: &State) -> Option<Finding> {
    let count = state.anomalies();
    let detail = format!("{count} events in the log made no sense where they stood, and changed nothing");
    (count > 0).then(|| FindingKind::EventsIgnored.found('-', detail))
}

fn without_endpoint(state: &State) -> impl Iterator<Item = Finding> + '_ {
    let without = state.workers().iter().filter(|(_, worker)| worker.registration.endpoints.is_empty());
    without.map(|(key, _)| FindingKind::WithoutEndpoint.found(key, "it has no port".to_owned()))
}

fn hidden(state: &State, name: &ClusterName, cluster: &Cluster) -> Option<Finding> {
    let key = ResourceKey { kind: ResourceKind::ClusterLoadAssignment, name: name.to_string() };
    let hidden = cluster.members.values().filter(|member| member.published.is_some()).count();
    let detail =
        format!("an assignment that was applied is served in the place of {hidden} endpoints of workers");
    (hidden > 0 && state.applied().contains_key(&key))
        .then(|| FindingKind::EndpointsHidden.found(name, detail))
}

fn sockets_only((name, cluster): (&ClusterName, &Arc<Cluster>)) -> Option<Finding> {
    let published = cluster.members.iter().filter(|(_, member)| member.published.is_some());
    let (sockets, others): (Vec<_>, Vec<_>) =
        published.partition(|(address, _)| !Dials::IpOnly.reaches(address));
    let detail = format!("all of its {} endpoints are Unix domain sockets", sockets.len());
    (!sockets.is_empty() && others.is_empty() && cluster.routed.is_some())
        .then(|| FindingKind::SocketsOnly.found(name, detail))
}

fn leds_off((name, service): (&ServiceName, &Arc<Service>)) -> Option<Finding> {
    let policy = service.policy();
    let detail = "its endpoints come in whole assignments, because its localities are weighted".to_owned();
    (policy.delivery == Delivery::Leds && policy.locality_weighting == LocalityWeighting::On)
        .then(|| FindingKind::LedsOff.found(name, detail))
}

//! Hosts: what they lend, who lives there, and their end.

use std::net::SocketAddr;

use axum::Json;
use axum::extract::{ConnectInfo, Path, State};
use serde::{Deserialize, Serialize};

use super::Sources;
use super::obey::{OffsetBody, obey};
use super::views::Listing;
use crate::command::Command;
use crate::events::HostName;
use crate::events::event::Locality;
use crate::problem::{JsonBody, Problem};
use crate::projection::Snapshot;
use crate::projection::state::{Host, PortKey};

/// A host that reported, or on which workers live.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostView {
    /// Its name.
    pub host: String,
    /// `up` or `draining`.
    pub state: String,
    /// Why it is emptied, while it is.
    pub reason: Option<String>,
    /// Where its workers are reached.
    pub addresses: Vec<String>,
    /// Where it stands.
    pub locality: Locality,
    /// The ports that it hands out, `first-last`.
    pub port_range: String,
    /// Every port that a worker holds, `port worker`.
    pub ports: Vec<HostPortView>,
    /// Ports that are left alone for a while, with why: `released` by their owner, or `busy` with a stranger.
    pub resting: Vec<RestingPortView>,
    /// Who lives there.
    pub workers: Vec<String>,
}

/// A port that a worker holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostPortView {
    /// Its number.
    pub number: u16,
    /// Who holds it.
    pub worker: String,
}

/// A port that something happened to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestingPortView {
    /// Its number.
    pub number: u16,
    /// `released` or `busy`.
    pub cause: String,
    /// Since when, in RFC 3339.
    pub since: String,
}

/// What is asked of a host that is to be emptied.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DrainHostBody {
    /// Why.
    #[serde(default)]
    pub reason: String,
    /// How long requests in flight have, in milliseconds.
    pub drain_ms: Option<u32>,
}

/// Every host that reported, or on which workers live.
#[must_use]
pub fn views(snapshot: &Snapshot) -> Listing<HostView> {
    let hosts = snapshot.state().hosts().iter();
    Listing {
        offset: snapshot.offset().get(),
        items: hosts.map(|(name, host)| view(snapshot, name, host)).collect(),
    }
}

fn view(snapshot: &Snapshot, name: &HostName, host: &Host) -> HostView {
    let every_port = || {
        let port = |number| PortKey { host: name.clone(), number };
        port(0)..=port(u16::MAX)
    };
    let state = snapshot.state();
    let held = state.ports().range(every_port());
    let resting = state.resting().range(every_port());
    let addresses = host.report.as_ref().map(|report| report.addresses.clone());
    HostView {
        host: name.to_string(),
        state: if host.draining.is_some() { "draining".to_owned() } else { "up".to_owned() },
        reason: host.draining.clone(),
        addresses: addresses
            .unwrap_or_else(|| vec![host.address()])
            .iter()
            .map(ToString::to_string)
            .collect(),
        locality: host.locality(),
        port_range: host.port_range().to_string(),
        ports: held
            .map(|(port, worker)| HostPortView { number: port.number, worker: worker.to_string() })
            .collect(),
        resting: resting
            .map(|(port, rest)| RestingPortView {
                number: port.number,
                cause: rest.cause.as_str().to_owned(),
                since: rest.since.to_string(),
            })
            .collect(),
        workers: host.workers.iter().map(ToString::to_string).collect(),
    }
}

pub(super) async fn list(State(sources): State<Sources>) -> Json<Listing<HostView>> {
    Json(views(&sources.handle.snapshot()))
}

pub(super) async fn drain(
    State(sources): State<Sources>,
    Path(host): Path<String>,
    peer: ConnectInfo<SocketAddr>,
    JsonBody(body): JsonBody<DrainHostBody>,
) -> Result<Json<OffsetBody>, Problem> {
    let (host, DrainHostBody { reason, drain_ms }) = (HostName::new(&host)?, body);
    obey(&sources, peer, Command::DrainHost { host, reason, drain_ms }).await
}

pub(super) async fn remove(
    State(sources): State<Sources>,
    Path(host): Path<String>,
    peer: ConnectInfo<SocketAddr>,
) -> Result<Json<OffsetBody>, Problem> {
    obey(&sources, peer, Command::RemoveHost { host: HostName::new(&host)? }).await
}

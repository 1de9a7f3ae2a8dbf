//! `foldplane watch`: what an xDS client is sent, as it is sent.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use clap::{Args, ValueEnum};
use envoy_types::pb::envoy::config::cluster::v3::Cluster;
use envoy_types::pb::envoy::config::core::v3::address::Address;
use envoy_types::pb::envoy::config::core::v3::socket_address::PortSpecifier;
use envoy_types::pb::envoy::config::endpoint::v3::lb_endpoint::HostIdentifier;
use envoy_types::pb::envoy::config::endpoint::v3::{ClusterLoadAssignment, LbEndpoint};
use prost::Message;
use serde::Serialize;

use super::bootstrap::Protocol;
use super::out::{self, Reader};
use super::{Exit, Failure, block_on};
use crate::bootstrap::ServerAddress;
use crate::config::XDS_ADDRESS_DEFAULT;
use crate::projection::resources::TypeUrl;
use crate::xds::client::{Client, ClientError, Held, Update};
use crate::xds::protocol::Variant;

/// The pause before a control plane that went away is tried again.
const RETURN_PAUSE: Duration = Duration::from_secs(1);

/// Follow clusters and their endpoints as a proxy does, and print each change.
///
/// Goes on until it is stopped, and comes back when the control plane was away. What a client is sent again unchanged is
/// not printed.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  foldplane watch                                  everything that a new proxy would be sent, then each change
  foldplane watch web --xds 10.0.0.1:18000         one cluster, at another control plane, whichever it is
  foldplane watch --node-id edge-1                 what this node is shown
  foldplane watch -o jsonl | jq -c 'select(.type == \"EDS\") | .endpoints'

Exit codes: 0 the reader of the output is gone, 1 fault, 2 usage, 5 unreachable at the start.")]
pub(super) struct Watch {
    /// Only these clusters [default: all that the node may see]
    #[arg(value_name = "CLUSTER")]
    clusters: Vec<String>,
    /// Where the control plane serves proxies
    #[arg(long, value_name = "HOST:PORT", env = "FOLDPLANE_XDS", default_value = XDS_ADDRESS_DEFAULT)]
    xds: ServerAddress,
    /// The node as which it presents itself
    #[arg(long, value_name = "NAME", default_value = "foldplane-watch")]
    node_id: String,
    /// How updates are asked for
    #[arg(long, value_enum, default_value_t)]
    protocol: Protocol,
    /// How to print
    #[arg(short, long, value_enum, default_value_t)]
    output: Lines,
}

/// How changes are printed, one a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Lines {
    /// For people
    #[default]
    Table,
    /// For scripts: a JSON document a line
    Jsonl,
}

/// One change.
#[derive(Debug, Serialize)]
struct Row {
    #[serde(rename = "type")]
    type_url: &'static str,
    change: &'static str,
    name: String,
    version: String,
    /// Of an assignment, each endpoint with its health.
    #[serde(skip_serializing_if = "Option::is_none")]
    endpoints: Option<Vec<String>>,
}

impl Watch {
    pub(super) fn run(self) -> Result<(), Failure> {
        block_on(async {
            let uri = format!("http://{}", self.xds);
            let variant = match self.protocol {
                Protocol::Delta => Variant::Delta,
                Protocol::Sotw => Variant::Sotw,
            };
            let client = Client::connect(&uri, &self.node_id, variant).await.map_err(unreachable)?;
            let mut follower = Follower { client, following: BTreeSet::new() };
            let names: Vec<&str> = self.clusters.iter().map(String::as_str).collect();
            follower.client.subscribe(TypeUrl::Cluster, &names).await.map_err(unreachable)?;
            if self.output == Lines::Table && self.print(&[HEADER.map(str::to_owned)])? == Reader::Gone {
                return Ok(());
            }
            loop {
                match follower.next().await {
                    Ok(rows) if self.show(&rows)? == Reader::Gone => return Ok(()),
                    Ok(_) => {}
                    Err(fault) => {
                        out::note(&format!("{fault}; trying again every {} s", RETURN_PAUSE.as_secs()));
                        while follower.client.reconnect(&uri).await.is_err() {
                            tokio::time::sleep(RETURN_PAUSE).await;
                        }
                        out::note("the control plane is back");
                    }
                }
            }
        })
    }

    fn show(&self, rows: &[Row]) -> Result<Reader, Failure> {
        match self.output {
            Lines::Table => self.print(&rows.iter().map(Row::columns).collect::<Vec<_>>()),
            Lines::Jsonl => {
                let line = |row: &Row| serde_json::to_string(row);
                let lines: Result<Vec<_>, _> = rows.iter().map(line).collect();
                let lines = lines.map_err(|fault| Failure::fault("cannot write JSON").because(fault))?;
                out::piece(&out::lines(lines))
            }
        }
    }

    fn print(&self, rows: &[[String; 5]]) -> Result<Reader, Failure> {
        let line = |[kind, change, name, version, endpoints]: &[String; 5]| {
            format!("{kind:<5} {change:<8} {name:<24} {version:<24} {endpoints}").trim_end().to_owned()
        };
        out::piece(&out::lines(rows.iter().map(line)))
    }
}

const HEADER: [&str; 5] = ["TYPE", "CHANGE", "NAME", "VERSION", "ENDPOINTS"];

impl Row {
    fn columns(&self) -> [String; 5] {
        let endpoints = self.endpoints.as_ref().map(|endpoints| match endpoints.as_slice() {
            [] => "none".to_owned(),
            some => some.join(", "),
        });
        let [kind, change] = [self.type_url, self.change].map(str::to_owned);
        [kind, change, self.name.clone(), self.version.clone(), endpoints.unwrap_or_default()]
    }
}

/// A client that wants the assignments of the clusters that it has, as an Envoy does.
struct Follower {
    client: Client,
    following: BTreeSet<String>,
}

impl Follower {
    /// Takes the next update in, and gives what it changed.
    async fn next(&mut self) -> Result<Vec<Row>, ClientError> {
        let update = self.client.next().await?;
        let Some(type_url) = TypeUrl::from_url(&update.type_url) else { return Ok(Vec::new()) };
        let before = self.client.held(type_url);
        self.client.accept(&update).await?;
        let after = self.client.held(type_url);
        if type_url == TypeUrl::Cluster {
            self.follow(&after).await?;
        }
        Ok(rows(type_url, &update, &before, &after))
    }

    async fn follow(&mut self, clusters: &BTreeMap<String, Held>) -> Result<(), ClientError> {
        let wanted: BTreeSet<String> =
            clusters.values().filter_map(|held| assignment(&held.message)).collect();
        let earlier = std::mem::replace(&mut self.following, wanted);
        let added: Vec<&str> = self.following.difference(&earlier).map(String::as_str).collect();
        let gone: Vec<&str> = earlier.difference(&self.following).map(String::as_str).collect();
        if !gone.is_empty() {
            self.client.unsubscribe(TypeUrl::ClusterLoadAssignment, &gone).await?;
        }
        if !added.is_empty() {
            self.client.subscribe(TypeUrl::ClusterLoadAssignment, &added).await?;
        }
        Ok(())
    }
}

/// The assignment from which a cluster takes its endpoints, if it takes them from one.
fn assignment(message: &[u8]) -> Option<String> {
    let cluster = Cluster::decode(message).ok()?;
    let service = cluster.eds_cluster_config?.service_name;
    Some(if service.is_empty() { cluster.name } else { service })
}

fn rows(
    type_url: TypeUrl,
    update: &Update,
    before: &BTreeMap<String, Held>,
    after: &BTreeMap<String, Held>,
) -> Vec<Row> {
    let row = |change, name: &String, held: Option<&Held>| Row {
        type_url: type_url.short(),
        change,
        name: name.clone(),
        version: held.map_or_else(|| update.version.clone(), |held| held.version.clone()),
        endpoints: held.filter(|_| type_url == TypeUrl::ClusterLoadAssignment).map(endpoints),
    };
    let brought = update.resources.iter().filter_map(|(name, held)| match before.get(name) {
        None => Some(row("added", name, Some(held))),
        Some(earlier) if earlier.message != held.message => Some(row("changed", name, Some(held))),
        Some(_) => None,
    });
    let gone = before.keys().filter(|name| !after.contains_key(*name)).map(|name| row("removed", name, None));
    brought.chain(gone).collect()
}

fn endpoints(held: &Held) -> Vec<String> {
    let assignment = ClusterLoadAssignment::decode(held.message.as_slice()).unwrap_or_default();
    assignment.endpoints.iter().flat_map(|group| &group.lb_endpoints).map(endpoint).collect()
}

/// Such as `192.0.2.1:80 HEALTHY`.
fn endpoint(endpoint: &LbEndpoint) -> String {
    let address = match &endpoint.host_identifier {
        Some(HostIdentifier::Endpoint(inner)) => {
            inner.address.as_ref().and_then(|address| address.address.as_ref())
        }
        Some(HostIdentifier::EndpointName(_)) | None => None,
    };
    let place = match address {
        Some(Address::SocketAddress(socket)) => {
            let port = match &socket.port_specifier {
                Some(PortSpecifier::PortValue(port)) => port.to_string(),
                Some(PortSpecifier::NamedPort(name)) => name.clone(),
                None => String::new(),
            };
            let bracketed = socket.address.contains(':');
            if bracketed {
                format!("[{}]:{port}", socket.address)
            } else {
                format!("{}:{port}", socket.address)
            }
        }
        Some(Address::Pipe(pipe)) => format!("unix:{}", pipe.path),
        Some(Address::EnvoyInternalAddress(_)) | None => "?".to_owned(),
    };
    format!("{place} {}", endpoint.health_status().as_str_name())
}

fn unreachable(fault: ClientError) -> Failure {
    Failure::new(Exit::Unreachable, "the control plane cannot be followed")
        .because(fault)
        .hint("--xds names where it serves proxies; `foldplane serve` prints it")
}

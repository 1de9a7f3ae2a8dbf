//! Lists as text, the same whether they come from a running control plane or from a replay.

use super::Failure;
use super::out::{Format, document, lines, table};
use crate::api::findings::Finding;
use crate::api::hosts::HostView;
use crate::api::node_views::NodeViewView;
use crate::api::proxies::{ProxyTypeView, ProxyView};
use crate::api::resources::ResourceView;
use crate::api::services::ServiceView;
use crate::api::views::{EndpointView, Listing, VerdictView, WorkerView};
use crate::api::wait::{BehindTypeView, BehindView, WaitView};
use crate::events::Glob;

pub(super) fn services(listing: &Listing<ServiceView>, format: Format) -> Result<String, Failure> {
    Ok(match format {
        Format::Json | Format::Yaml => document(listing, format)?,
        Format::Text => lines(listing.items.iter().map(|item| &item.service)),
        Format::Table | Format::Wide => table(
            ["SERVICE", "READY", "WORKERS", "PORTS", "CLUSTERS", "DECLARED"],
            listing.items.iter().map(|item| {
                [
                    item.service.clone(),
                    item.ready.to_string(),
                    item.workers.to_string(),
                    item.ports.join(","),
                    item.clusters.join(","),
                    item.spec.as_ref().map(|_| "yes".to_owned()).unwrap_or_default(),
                ]
            }),
        ),
    })
}

pub(super) fn workers(listing: &Listing<WorkerView>, format: Format) -> Result<String, Failure> {
    let short = |item: &WorkerView| [name(item), item.state.clone(), health(item), endpoints_of(item)];
    Ok(match format {
        Format::Json | Format::Yaml => document(listing, format)?,
        Format::Text => lines(listing.items.iter().map(name)),
        Format::Table => table(["WORKER", "STATE", "HEALTH", "ENDPOINTS"], listing.items.iter().map(short)),
        Format::Wide => table(
            ["WORKER", "STATE", "HEALTH", "ENDPOINTS", "GENERATION", "PID", "REGISTERED", "STATUS"],
            listing.items.iter().map(|item| {
                let [name, state, health, endpoints] = short(item);
                let generation = format!("@{}", item.generation);
                let pid = number(item.pid);
                [name, state, health, endpoints, generation, pid, item.registered_at.clone(), status(item)]
            }),
        ),
    })
}

pub(super) fn endpoints(listing: &Listing<EndpointView>, format: Format) -> Result<String, Failure> {
    let short = |item: &EndpointView| {
        [item.cluster.clone(), item.address.clone(), item.health.to_string(), item.worker.clone()]
    };
    Ok(match format {
        Format::Json | Format::Yaml => document(listing, format)?,
        Format::Text => lines(listing.items.iter().map(|item| &item.address)),
        Format::Table => table(["CLUSTER", "ADDRESS", "HEALTH", "WORKER"], listing.items.iter().map(short)),
        Format::Wide => table(
            ["CLUSTER", "ADDRESS", "HEALTH", "WORKER", "PORT", "PRIORITY", "WEIGHT", "ZONE"],
            listing.items.iter().map(|item| {
                let [cluster, address, health, worker] = short(item);
                let (priority, weight) = (item.priority.to_string(), number(item.weight));
                [
                    cluster,
                    address,
                    health,
                    worker,
                    item.port.clone(),
                    priority,
                    weight,
                    item.locality.zone.clone(),
                ]
            }),
        ),
    })
}

/// One line a host; wide is one line a port.
pub(super) fn hosts(listing: &Listing<HostView>, format: Format) -> Result<String, Failure> {
    Ok(match format {
        Format::Json | Format::Yaml => document(listing, format)?,
        Format::Text => lines(listing.items.iter().map(|item| &item.host)),
        Format::Table => table(
            ["HOST", "STATE", "WORKERS", "ADDRESSES", "RANGE", "USED", "RESTING"],
            listing.items.iter().map(|item| {
                [
                    item.host.clone(),
                    item.state.clone(),
                    item.workers.len().to_string(),
                    item.addresses.join(","),
                    item.port_range.clone(),
                    item.ports.len().to_string(),
                    item.resting.len().to_string(),
                ]
            }),
        ),
        Format::Wide => {
            table(["HOST", "PORT", "USE", "BY", "SINCE"], listing.items.iter().flat_map(ports_of))
        }
    })
}

/// One line a view.
pub(super) fn node_views(listing: &Listing<NodeViewView>, format: Format) -> Result<String, Failure> {
    let text = |globs: &[Glob]| globs.iter().map(Glob::as_str).collect::<Vec<_>>().join(",");
    Ok(match format {
        Format::Json | Format::Yaml => document(listing, format)?,
        Format::Text => lines(listing.items.iter().map(|item| &item.view)),
        Format::Table | Format::Wide => table(
            ["VIEW", "IDS", "CLUSTERS", "METADATA", "SERVICES"],
            listing.items.iter().map(|item| {
                let metadata: Vec<_> =
                    item.metadata.iter().map(|(key, value)| format!("{key}={value}")).collect();
                let (ids, clusters) = (text(&item.ids), text(&item.clusters));
                [item.view.clone(), ids, clusters, metadata.join(","), text(&item.services)]
            }),
        ),
    })
}

fn ports_of(host: &HostView) -> impl Iterator<Item = [String; 5]> {
    let held = host.ports.iter().map(|port| {
        let number = port.number.to_string();
        [host.host.clone(), number, "held".to_owned(), port.worker.clone(), String::new()]
    });
    let resting = host.resting.iter().map(|port| {
        [host.host.clone(), port.number.to_string(), port.cause.clone(), String::new(), port.since.clone()]
    });
    held.chain(resting)
}

/// One line a stream; wide is one line a type of a stream.
pub(super) fn proxies(listing: &Listing<ProxyView>, format: Format) -> Result<String, Failure> {
    let rejected = |item: &ProxyTypeView| item.rejected.as_ref().map(|why| why.version.clone());
    Ok(match format {
        Format::Json | Format::Yaml => document(listing, format)?,
        Format::Text => lines(listing.items.iter().map(|item| &item.node)),
        Format::Table => table(
            ["NODE", "PROGRAM", "STREAM", "LAG", "CDS", "EDS", "REJECTED"],
            listing.items.iter().map(|item| {
                let acked = |name: &str| {
                    let of_type = item.types.iter().find(|of_type| of_type.r#type == name);
                    of_type.and_then(|of_type| of_type.acked.clone()).unwrap_or_default()
                };
                let stream = format!("{} {}", item.service, item.variant);
                let rejected = item.types.iter().filter_map(rejected).count().to_string();
                let lag = item.lag.to_string();
                [
                    item.node.clone(),
                    item.user_agent.clone(),
                    stream,
                    lag,
                    acked("CDS"),
                    acked("EDS"),
                    rejected,
                ]
            }),
        ),
        Format::Wide => table(
            ["NODE", "PEER", "VIEWS", "TYPE", "WANTS", "SENT", "ACKED", "REJECTED", "WHEN", "WHY"],
            listing.items.iter().flat_map(|item| item.types.iter().map(move |of_type| (item, of_type))).map(
                |(item, of_type)| {
                    let wants = if of_type.wildcard { "*".to_owned() } else { of_type.names.join(",") };
                    let when = of_type.rejected.as_ref().map(|rejected| rejected.at.clone());
                    let why = of_type.rejected.as_ref().map(|rejected| rejected.message.clone());
                    [
                        item.node.clone(),
                        item.peer.clone().unwrap_or_default(),
                        item.views.join(","),
                        of_type.r#type.clone(),
                        wants,
                        of_type.sent.clone().unwrap_or_default(),
                        of_type.acked.clone().unwrap_or_default(),
                        rejected(of_type).unwrap_or_default(),
                        when.unwrap_or_default(),
                        why.unwrap_or_default(),
                    ]
                },
            ),
        ),
    })
}

/// The offset when everybody has it; else one line a type of a stream that lacks something.
pub(super) fn wait(view: &WaitView, format: Format) -> Result<String, Failure> {
    let rows = || view.streams.iter().flat_map(lacks);
    Ok(match format {
        Format::Json | Format::Yaml => document(view, format)?,
        Format::Text => lines(view.streams.iter().map(|stream| &stream.node)),
        Format::Table | Format::Wide if view.streams.is_empty() && view.outcome == "reached" => {
            format!("@{} on {} streams\n", view.offset, view.reached)
        }
        Format::Table | Format::Wide if view.streams.is_empty() => String::new(),
        Format::Table | Format::Wide => {
            table(["NODE", "PEER", "LAG", "TYPE", "STATE", "HOLDS", "SHOULD", "WHY"], rows())
        }
    })
}

fn lacks(stream: &BehindView) -> Vec<[String; 8]> {
    let (node, peer) = (stream.node.clone(), stream.peer.clone().unwrap_or_default());
    let row = |of_type: Option<&BehindTypeView>| {
        let why = of_type.and_then(|of_type| of_type.rejected.as_ref()).map(|why| why.message.clone());
        [
            node.clone(),
            peer.clone(),
            stream.lag.to_string(),
            of_type.map(|of_type| of_type.r#type.clone()).unwrap_or_default(),
            of_type.map_or_else(|| "silent".to_owned(), |of_type| of_type.state.clone()),
            of_type.and_then(|of_type| of_type.held.clone()).unwrap_or_default(),
            of_type.map(|of_type| of_type.wanted.clone()).unwrap_or_default(),
            why.unwrap_or_default(),
        ]
    };
    if stream.types.is_empty() { vec![row(None)] } else { stream.types.iter().map(Some).map(row).collect() }
}

pub(super) fn findings(listing: &Listing<Finding>, format: Format) -> Result<String, Failure> {
    Ok(match format {
        Format::Json | Format::Yaml => document(listing, format)?,
        Format::Text => lines(listing.items.iter().map(|item| format!("{} {}", item.kind, item.about))),
        Format::Table => finding_table(&listing.items),
        Format::Wide => finding_table_with_hints(&listing.items),
    })
}

/// What somebody should look at.
pub(super) fn finding_table(findings: &[Finding]) -> String {
    table(["SEVERITY", "FINDING", "ABOUT", "DETAIL"], findings.iter().map(finding_row))
}

/// The same, with what to do about each.
pub(super) fn finding_table_with_hints(findings: &[Finding]) -> String {
    let row = |finding: &Finding| {
        let [severity, kind, about, detail] = finding_row(finding);
        [severity, kind, about, detail, finding.hint.clone()]
    };
    table(["SEVERITY", "FINDING", "ABOUT", "DETAIL", "WHAT TO DO"], findings.iter().map(row))
}

fn finding_row(finding: &Finding) -> [String; 4] {
    let Finding { kind, severity, about, detail, .. } = finding;
    [severity.to_string(), kind.to_string(), about.clone(), detail.clone()]
}

/// YAML is the resources themselves, as `apply` takes them.
pub(super) fn resources(listing: &Listing<ResourceView>, format: Format) -> Result<String, Failure> {
    let items = listing.items.iter();
    Ok(match format {
        Format::Json => document(listing, format)?,
        Format::Yaml => {
            let documents: Result<Vec<String>, Failure> = items
                .filter_map(|item| item.resource.as_ref())
                .map(|resource| document(resource, format))
                .collect();
            documents?.join("---\n")
        }
        Format::Text => lines(items.map(|item| format!("{}/{}", item.kind, item.name))),
        Format::Table | Format::Wide => table(
            ["KIND", "NAME", "VERSION", "ORIGIN", "NOTE"],
            items.map(|item| {
                let note = if item.hides_workers { "hides the one that workers make" } else { "" };
                [
                    item.kind.clone(),
                    item.name.clone(),
                    item.version.clone(),
                    item.origin.clone(),
                    note.to_owned(),
                ]
            }),
        ),
    })
}

fn name(worker: &WorkerView) -> String {
    format!("{}/{}@{}", worker.service, worker.id, worker.host)
}

/// Why it is as it is, and what it and others say of it: `the database is away; memory unhealthy: 512 MiB of 512 MiB`.
fn status(worker: &WorkerView) -> String {
    let said = worker.verdicts.iter().filter(|said| said.verdict != "healthy" || !said.reason.is_empty());
    let said =
        said.map(|VerdictView { source, verdict, reason }| match (verdict.as_str(), reason.as_str()) {
            ("healthy", status) => status.to_owned(),
            (verdict, "") => format!("{source} {verdict}"),
            (verdict, reason) => format!("{source} {verdict}: {reason}"),
        });
    worker.reason.clone().into_iter().chain(said).collect::<Vec<_>>().join("; ")
}

fn health(worker: &WorkerView) -> String {
    worker.health.map(|health| health.to_string()).unwrap_or_default()
}

fn endpoints_of(worker: &WorkerView) -> String {
    let ports: Vec<String> =
        worker.endpoints.iter().map(|endpoint| format!("{}={}", endpoint.port, endpoint.address)).collect();
    ports.join(",")
}

fn number(given: Option<u32>) -> String {
    given.map(|number| number.to_string()).unwrap_or_default()
}

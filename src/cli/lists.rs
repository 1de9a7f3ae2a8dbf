//! Lists as text, the same whether they come from a running control plane or from a replay.

use super::Failure;
use super::out::{Format, json, lines, table};
use crate::api::views::{EndpointView, Listing, ServiceView, WorkerView};

pub(super) fn services(listing: &Listing<ServiceView>, format: Format) -> Result<String, Failure> {
    Ok(match format {
        Format::Json => json(listing)?,
        Format::Text => lines(listing.items.iter().map(|item| &item.service)),
        Format::Table | Format::Wide => table(
            ["SERVICE", "READY", "WORKERS", "PORTS", "CLUSTERS"],
            listing.items.iter().map(|item| {
                [
                    item.service.clone(),
                    item.ready.to_string(),
                    item.workers.to_string(),
                    item.ports.join(","),
                    item.clusters.join(","),
                ]
            }),
        ),
    })
}

pub(super) fn workers(listing: &Listing<WorkerView>, format: Format) -> Result<String, Failure> {
    let short = |item: &WorkerView| [name(item), item.state.clone(), health(item), endpoints_of(item)];
    Ok(match format {
        Format::Json => json(listing)?,
        Format::Text => lines(listing.items.iter().map(name)),
        Format::Table => table(["WORKER", "STATE", "HEALTH", "ENDPOINTS"], listing.items.iter().map(short)),
        Format::Wide => table(
            ["WORKER", "STATE", "HEALTH", "ENDPOINTS", "GENERATION", "PID", "REGISTERED", "REASON"],
            listing.items.iter().map(|item| {
                let [name, state, health, endpoints] = short(item);
                let generation = format!("@{}", item.generation);
                let pid = number(item.pid);
                let reason = item.reason.clone().unwrap_or_default();
                [name, state, health, endpoints, generation, pid, item.registered_at.clone(), reason]
            }),
        ),
    })
}

pub(super) fn endpoints(listing: &Listing<EndpointView>, format: Format) -> Result<String, Failure> {
    let short = |item: &EndpointView| {
        [item.cluster.clone(), item.address.clone(), item.health.to_string(), item.worker.clone()]
    };
    Ok(match format {
        Format::Json => json(listing)?,
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

fn name(worker: &WorkerView) -> String {
    format!("{}/{}@{}", worker.service, worker.id, worker.host)
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

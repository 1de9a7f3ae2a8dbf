//! REST polling: the same resources for an Envoy that asks every few seconds instead of keeping a stream.

use std::sync::Arc;

use axum::Json;
use axum::body::Bytes;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use prost::Message;
use serde_json::{Value, json};

use super::Shared;
use super::sight::Sight;
use crate::events::ResourceKind;
use crate::projection::resources::{Resource, TypeUrl};
use crate::transcode;
use crate::xds::protocol::{Names, Polled, poll};
use crate::xds::wire::{SotwMessage, WireRequest};

/// The largest request: a node's description is some 150 kB as JSON, the rest is names.
pub(super) const REQUEST_BYTES_MAX: usize = 4 << 20;

/// What each kind is called in its path.
pub(super) const fn noun(kind: ResourceKind) -> &'static str {
    match kind {
        ResourceKind::Cluster => "clusters",
        ResourceKind::ClusterLoadAssignment => "endpoints",
        ResourceKind::Listener => "listeners",
        ResourceKind::RouteConfiguration => "routes",
    }
}

/// Answers a `DiscoveryRequest` with a `DiscoveryResponse`; with status 304 when its version is that of now.
pub(super) async fn answer((shared, kind): (Arc<Shared>, ResourceKind), body: Bytes) -> Response {
    let request = match read(&body) {
        Ok(request) => request,
        Err(problem) => return (StatusCode::BAD_REQUEST, problem).into_response(),
    };
    let (type_url, version) = (TypeUrl::from(kind), request.version_info.clone());
    let (node, request) = request.read();
    if !request.type_url.is_empty() && request.type_url != type_url.as_str() {
        let problem = format!("this path serves {}, not {:?}\n", type_url.as_str(), request.type_url);
        return (StatusCode::BAD_REQUEST, problem).into_response();
    }
    let names = match request.names {
        Names::Whole(names) => names,
        Names::Edit(edit) => edit.subscribe,
    };
    shared.ledger.count_request();
    let whole = Arc::clone(&shared.resources.borrow());
    let mut sight = Sight::new(Arc::clone(&shared.lenses));
    node.into_iter().for_each(|node| sight.set_node(node));
    let (resources, _views) = sight.look(&whole);
    match poll(type_url, &names, &version, &resources) {
        None => StatusCode::NOT_MODIFIED.into_response(),
        Some(polled) => respond(kind, &polled).inspect(|_| shared.ledger.count_response()).into_response(),
    }
}

fn read(body: &[u8]) -> Result<SotwMessage, String> {
    let hint = "expected an envoy.service.discovery.v3.DiscoveryRequest as JSON";
    let json: Value = serde_json::from_slice(body).map_err(|fault| format!("{fault}: {hint}\n"))?;
    let bytes = transcode::discovery_request(&json).map_err(|invalid| format!("{invalid}: {hint}\n"))?;
    SotwMessage::decode(bytes.as_slice()).map_err(|fault| format!("{fault}: {hint}\n"))
}

fn respond(kind: ResourceKind, polled: &Polled) -> Result<Json<Value>, (StatusCode, String)> {
    let resources: Result<Vec<Value>, _> = polled.resources.iter().map(|found| shown(kind, found)).collect();
    let resources = resources.map_err(|problem| (StatusCode::INTERNAL_SERVER_ERROR, problem))?;
    Ok(Json(json!({
        "version_info": polled.version.to_string(),
        "type_url": TypeUrl::from(kind).as_str(),
        "resources": resources,
    })))
}

fn shown(kind: ResourceKind, resource: &Resource) -> Result<Value, String> {
    transcode::resource_as_json(kind, &resource.message())
        .map_err(|fault| format!("{} {}: {fault}\n", noun(kind), resource.name))
}

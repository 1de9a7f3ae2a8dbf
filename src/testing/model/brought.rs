//! The model of what an operator brings: read from all events each time somebody asks.

use std::collections::BTreeSet;

use envoy_types::pb::envoy::config::cluster::v3::Cluster;
use envoy_types::pb::envoy::config::listener::v3::Listener;
use envoy_types::pb::envoy::config::route::v3::route::Action;
use envoy_types::pb::envoy::config::route::v3::route_action::ClusterSpecifier;
use envoy_types::pb::envoy::config::route::v3::{Route, RouteConfiguration};
use envoy_types::pb::envoy::extensions::filters::network::http_connection_manager::v3::HttpConnectionManager;
use envoy_types::pb::envoy::extensions::filters::network::http_connection_manager::v3::http_connection_manager::RouteSpecifier;
use crate::command::{References, RejectionCode, ResourceChange};
use crate::events::{Envelope, Event, MessageBytes, ResourceKey, ResourceKind};
use crate::projection::Snapshot;
use crate::projection::resources::Dials;
use prost::Message;

use super::applied::applied;
use super::told::told;

/// Whether an operator's own assignment is sent in the place of the one that workers make.
pub fn is_hidden(snapshot: &Snapshot, cluster: &str) -> bool {
    let key = ResourceKey { kind: ResourceKind::ClusterLoadAssignment, name: cluster.to_owned() };
    snapshot.state().applied().contains_key(&key)
}

/// The names under which workers and declared services make resources of this kind.
fn made(events: &[Envelope], kind: ResourceKind) -> BTreeSet<String> {
    let told = told(&without_brought(events), Dials::Everything);
    told.into_keys().filter(|(type_url, _)| *type_url == kind.into()).map(|(_, name)| name).collect()
}

fn without_brought(events: &[Envelope]) -> Vec<Envelope> {
    let brought =
        |event: &Event| matches!(event, Event::ResourceApplied { .. } | Event::ResourceDeleted { .. });
    events.iter().filter(|envelope| !brought(&envelope.event)).cloned().collect()
}

/// What must come of a change.
pub(super) fn expected(
    events: &[Envelope],
    change: &ResourceChange,
) -> Result<Vec<&'static str>, RejectionCode> {
    let before = applied(events);
    let keys = change.apply.iter().map(|resource| &resource.key).chain(&change.delete);
    if keys.clone().collect::<BTreeSet<_>>().len() < keys.count() {
        return Err(RejectionCode::InvalidArgument);
    }
    let mut after = before.clone();
    after.extend(change.apply.iter().map(|resource| (&resource.key, &resource.message)));
    after.retain(|key, _| !change.delete.contains(key));
    let is_missing =
        |key: &ResourceKey| !after.contains_key(key) && !made(events, key.kind).contains(&key.name);
    if change.references == References::Checked {
        if change
            .apply
            .iter()
            .any(|brought| named(&brought.key, &brought.message).is_some_and(|key| is_missing(&key)))
        {
            return Err(RejectionCode::UnknownReference);
        }
        let gone =
            |key: &ResourceKey| change.delete.contains(key) && before.contains_key(key) && is_missing(key);
        let mut kept =
            after.iter().filter(|(key, _)| change.apply.iter().all(|brought| brought.key != ***key));
        if kept.any(|(key, message)| named(key, message).is_some_and(|key| gone(&key))) {
            return Err(RejectionCode::ResourceInUse);
        }
    }
    let news =
        change.apply.iter().filter(|brought| before.get(&brought.key) != Some(&&brought.message)).count();
    let gone = change.delete.iter().filter(|key| before.contains_key(key)).count();
    Ok([vec!["ResourceApplied"; news], vec!["ResourceDeleted"; gone]].concat())
}

/// The one resource that a resource of the small world may name.
fn named(key: &ResourceKey, message: &MessageBytes) -> Option<ResourceKey> {
    let message = message.as_slice();
    let (kind, name) = match key.kind {
        ResourceKind::Cluster => {
            let eds = Cluster::decode(message).unwrap().eds_cluster_config?;
            (ResourceKind::ClusterLoadAssignment, eds.service_name)
        }
        ResourceKind::ClusterLoadAssignment => return None,
        ResourceKind::Listener => {
            let api = Listener::decode(message).unwrap().api_listener?.api_listener?;
            let manager = HttpConnectionManager::decode(api.value.as_slice()).unwrap();
            let Some(RouteSpecifier::Rds(rds)) = manager.route_specifier else { return None };
            (ResourceKind::RouteConfiguration, rds.route_config_name)
        }
        ResourceKind::RouteConfiguration => {
            let mut hosts = RouteConfiguration::decode(message).unwrap().virtual_hosts;
            let Route { action: Some(Action::Route(action)), .. } = hosts.pop()?.routes.pop()? else {
                return None;
            };
            let Some(ClusterSpecifier::Cluster(name)) = action.cluster_specifier else { return None };
            (ResourceKind::Cluster, name)
        }
    };
    Some(ResourceKey { kind, name })
}

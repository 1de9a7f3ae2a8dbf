//! What a resource says: read once on the way in, so that nothing that a client would refuse can reach a response
//! (xds-rules 25).

mod endpoints;
mod references;

use envoy_types::pb::envoy::config::cluster::v3::Cluster;
use envoy_types::pb::envoy::config::cluster::v3::cluster::{ClusterDiscoveryType, DiscoveryType};
use envoy_types::pb::envoy::config::endpoint::v3::ClusterLoadAssignment;
use envoy_types::pb::envoy::config::listener::v3::Listener;
use envoy_types::pb::envoy::config::route::v3::RouteConfiguration;
use prost::Message;

use super::check::{quoted, text};
use super::{Applying, Rejection};
use crate::events::id::NAME_BYTES_MAX;
use crate::events::{ResourceKey, ResourceKind};

use endpoints::Hosts;
pub(super) use references::Reference;

/// The largest message that is taken, in bytes: with its name and what is recorded around it, it is one event of the log
/// ([`EVENT_BYTES_MAX`](crate::events::codec::EVENT_BYTES_MAX)).
pub(super) const RESOURCE_BYTES_MAX: usize = 22 * 1024;

/// Refuses a resource that no client would take, and gives the others that it names.
pub(super) fn check(resource: &Applying) -> Result<Vec<Reference>, Rejection> {
    let Applying { key, message } = resource;
    name(key)?;
    let length = message.as_slice().len();
    if length > RESOURCE_BYTES_MAX {
        return Err(Rejection::invalid(
            format!(
                "{key} has {length} bytes, at most {RESOURCE_BYTES_MAX} are kept in one event of the log"
            ),
            "split it: a route of its own instead of one inside of a listener, fewer virtual hosts, an EDS cluster \
             instead of a long list of endpoints",
        ));
    }
    references(key, message.as_slice())
}

/// The others that a resource names. One that was taken in before was read before.
pub(super) fn references(key: &ResourceKey, message: &[u8]) -> Result<Vec<Reference>, Rejection> {
    match key.kind {
        ResourceKind::Cluster => cluster(key, &decode(key, message)?),
        ResourceKind::ClusterLoadAssignment => {
            let assignment: ClusterLoadAssignment = decode(key, message)?;
            same_name(key, "cluster_name", &assignment.cluster_name)?;
            endpoints::check(key, "endpoints", &assignment, Hosts::Addresses)?;
            Ok(Vec::new())
        }
        ResourceKind::Listener => {
            let listener: Listener = decode(key, message)?;
            same_name(key, "name", &listener.name)?;
            references::of_listener(key, &listener)
        }
        ResourceKind::RouteConfiguration => {
            let route: RouteConfiguration = decode(key, message)?;
            same_name(key, "name", &route.name)?;
            references::of_route(key, "", &route)
        }
    }
}

fn cluster(key: &ResourceKey, cluster: &Cluster) -> Result<Vec<Reference>, Rejection> {
    same_name(key, "name", &cluster.name)?;
    let discovery = match cluster.cluster_discovery_type {
        Some(ClusterDiscoveryType::Type(number)) => DiscoveryType::try_from(number).ok(),
        Some(ClusterDiscoveryType::ClusterType(_)) => None,
        None => Some(DiscoveryType::Static),
    };
    if discovery == Some(DiscoveryType::Eds) {
        return references::of_eds_cluster(key, cluster);
    }
    let hosts = if discovery == Some(DiscoveryType::Static) { Hosts::Addresses } else { Hosts::Names };
    if let Some(assignment) = &cluster.load_assignment {
        endpoints::check(key, "load_assignment.endpoints", assignment, hosts)?;
    } else if discovery == Some(DiscoveryType::Static) {
        return Err(refused(
            key,
            "type",
            "a STATIC cluster needs its endpoints",
            "give load_assignment, or type: EDS with eds_cluster_config: { eds_config: { ads: {} } }",
        ));
    }
    Ok(Vec::new())
}

fn name(key: &ResourceKey) -> Result<(), Rejection> {
    if key.name.is_empty() || key.name == "*" {
        let problem = format!("the name {} means something else to clients", quoted(&key.name));
        return Err(refused(key, "name", &problem, "give it a name of its own"));
    }
    text(&format!("{}: its name", key.kind), &key.name, NAME_BYTES_MAX)
}

fn same_name(key: &ResourceKey, field: &str, name: &str) -> Result<(), Rejection> {
    if key.name == name {
        return Ok(());
    }
    let problem = format!("it says {}, and is applied as {}", quoted(name), quoted(&key.name));
    Err(refused(key, field, &problem, "give both the same name"))
}

fn decode<M: Message + Default>(key: &ResourceKey, message: &[u8]) -> Result<M, Rejection> {
    M::decode(message).map_err(|fault| {
        refused(
            key,
            "message",
            &fault.to_string(),
            "give the encoded message of the type that the kind stands for",
        )
    })
}

/// A refusal that names the resource and the field.
fn refused(key: &ResourceKey, place: &str, problem: &str, hint: &str) -> Rejection {
    Rejection::invalid(
        format!("{}/{}: {place}: {problem}", key.kind, quoted(&key.name).trim_matches('"')),
        hint,
    )
}

//! What clients are told, as lines to compare: by the model, and by the real resources.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU32;

use envoy_types::pb::envoy::config::cluster::v3::Cluster;
use envoy_types::pb::envoy::config::core::v3::address::Address;
use envoy_types::pb::envoy::config::core::v3::socket_address::PortSpecifier;
use envoy_types::pb::envoy::config::endpoint::v3::lb_endpoint::HostIdentifier;
use envoy_types::pb::envoy::config::endpoint::v3::{ClusterLoadAssignment, LbEndpoint};
use envoy_types::pb::google::protobuf::Any;
use foldplane::events::Envelope;
use foldplane::events::event::Locality;
use foldplane::projection::resources::{Resource, Resources, TypeUrl};
use prost::Message;

use crate::dull::{Health, addresses, cluster, lives, locality};

/// The endpoints of every cluster, a line each, in the order in which they are sent.
pub(crate) type Told = BTreeMap<String, Vec<String>>;

struct Entry {
    priority: u32,
    locality: Locality,
    address: SocketAddr,
    health: Health,
    weight: Option<u32>,
}

/// What clients must be told after these events.
pub(crate) fn by_the_model(events: &[Envelope]) -> Told {
    let lives = lives(events);
    let mut clusters: BTreeMap<String, Vec<Entry>> = BTreeMap::new();
    for life in lives.iter().filter(|life| life.ended.is_none()) {
        let registration = life.registration;
        for (endpoint, address) in registration.endpoints.iter().zip(addresses(registration)) {
            let entries = clusters.entry(cluster(&lives, &life.key.service, &endpoint.port)).or_default();
            let own = registration.locality.clone();
            entries.extend(life.health().map(|health| Entry {
                priority: registration.priority,
                locality: own.unwrap_or_else(|| locality(events, &life.key.host)),
                address,
                health,
                weight: life.weight().map(NonZeroU32::get),
            }));
        }
    }
    clusters.into_iter().map(|(name, entries)| (name, lines(entries))).collect()
}

fn lines(mut entries: Vec<Entry>) -> Vec<String> {
    entries.sort_by_key(|entry| (entry.priority, entry.locality.clone(), entry.address));
    let mut priorities: Vec<u32> = entries.iter().map(|entry| entry.priority).collect();
    priorities.dedup();
    let line = |entry: &Entry| {
        let rank = priorities.iter().position(|priority| *priority == entry.priority).unwrap();
        let beside = |other: &&Entry| other.priority == entry.priority && other.locality == entry.locality;
        let healthy = entries.iter().filter(beside).filter(|other| other.health == Health::Healthy);
        let share: u32 = healthy.map(|other| other.weight.unwrap_or(1)).sum();
        let health = match entry.health {
            Health::Healthy => "HEALTHY",
            Health::Unhealthy => "UNHEALTHY",
            Health::Draining => "DRAINING",
        };
        let zone = &entry.locality.zone;
        format!("P{rank} {zone}({}) {} {health} {:?}", share.max(1), entry.address, entry.weight)
    };
    entries.iter().map(line).collect()
}

/// What clients are told by these resources. Fails where they do not fit together.
#[track_caller]
pub(crate) fn by(resources: &Resources) -> Told {
    let clusters = resources.of(TypeUrl::Cluster);
    let assignments = resources.of(TypeUrl::ClusterLoadAssignment);
    assert_eq!(clusters.len(), assignments.len(), "each cluster has one assignment");
    clusters
        .iter()
        .map(|resource| {
            let cluster: Cluster = message(resource);
            assert_eq!(cluster.name, resource.name.as_str());
            let assignment = assignments.get(&cluster.name).expect("each cluster has an assignment");
            let assignment: ClusterLoadAssignment = message(assignment);
            assert_eq!(assignment.cluster_name, cluster.name);
            (cluster.name, lines_of(&assignment))
        })
        .collect()
}

fn message<M: Message + Default>(resource: &Resource) -> M {
    let any = Any::decode(resource.any().clone()).expect("an Any");
    M::decode(any.value.as_slice()).expect("the message that its type says")
}

fn lines_of(assignment: &ClusterLoadAssignment) -> Vec<String> {
    let mut lines = Vec::new();
    for group in &assignment.endpoints {
        let zone = group.locality.as_ref().map_or("", |locality| locality.zone.as_str());
        let share = group.load_balancing_weight.map_or(0, |weight| weight.value);
        for endpoint in &group.lb_endpoints {
            let weight = endpoint.load_balancing_weight.map(|weight| weight.value);
            let health = endpoint.health_status().as_str_name();
            lines.push(format!(
                "P{} {zone}({share}) {} {health} {weight:?}",
                group.priority,
                place(endpoint)
            ));
        }
    }
    lines
}

fn place(endpoint: &LbEndpoint) -> String {
    let Some(HostIdentifier::Endpoint(endpoint)) = &endpoint.host_identifier else { panic!("no endpoint") };
    let Some(Address::SocketAddress(socket)) = endpoint.address.as_ref().and_then(|a| a.address.as_ref())
    else {
        panic!("no socket address")
    };
    let Some(PortSpecifier::PortValue(port)) = socket.port_specifier else { panic!("no port") };
    let address: IpAddr = socket.address.parse().expect("an IP address");
    SocketAddr::new(address, port.try_into().expect("a port")).to_string()
}

//! Resources of an operator's own, which name each other, and which workers make too.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use prost::Message;

use crate::command::{Applying, References, ResourceChange};
use crate::events::{MessageBytes, ResourceKey, ResourceKind};
use crate::projection::resources::builders;

/// The names of both services, and one that no workers make.
fn name() -> impl Strategy<Value = String> {
    select(&["own", "own", "pay", "web"][..]).prop_map(str::to_owned)
}

pub(super) fn key() -> impl Strategy<Value = ResourceKey> {
    (select(&ResourceKind::ALL[..]), name()).prop_map(|(kind, name)| ResourceKey { kind, name })
}

/// A resource that may name another of the second name. Some listeners and routes are the very ones that workers make;
/// clusters hold their endpoints themselves, so that none waits for an assignment that nobody makes.
pub(super) fn applying() -> impl Strategy<Value = Applying> {
    (key(), name(), 1..3_u16).prop_map(|(key, named, port)| resource(key, &named, port))
}

fn resource(key: ResourceKey, named: &str, port: u16) -> Applying {
    let address = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 99)), port);
    let endpoints = builders::load_assignment(&key.name, vec![builders::endpoint(address)]);
    let message = match key.kind {
        ResourceKind::Cluster => {
            let mut cluster = builders::cluster(&key.name);
            (cluster.cluster_discovery_type, cluster.eds_cluster_config) = (None, None);
            cluster.load_assignment = Some(endpoints);
            cluster.encode_to_vec()
        }
        ResourceKind::ClusterLoadAssignment => endpoints.encode_to_vec(),
        ResourceKind::Listener => builders::api_listener(&key.name, named).encode_to_vec(),
        ResourceKind::RouteConfiguration => builders::route(&key.name, named).encode_to_vec(),
    };
    Applying { key, message: MessageBytes::from(message) }
}

/// A route and the cluster to which it leads.
fn pair() -> impl Strategy<Value = Vec<Applying>> {
    (name(), name(), 1..3_u16).prop_map(|(route, cluster, port)| {
        let key = |kind, name: &str| ResourceKey { kind, name: name.to_owned() };
        vec![
            resource(key(ResourceKind::RouteConfiguration, &route), &cluster, port),
            resource(key(ResourceKind::Cluster, &cluster), &cluster, port),
        ]
    })
}

pub(super) fn change() -> impl Strategy<Value = ResourceChange> {
    let references = prop_oneof![Just(References::Checked), Just(References::Unchecked)];
    let (some, none) = (vec(applying(), 1..4), Just(Vec::new()));
    let apply = prop_oneof![some, none, pair()];
    (apply, vec(key(), 0..3), references).prop_map(|(apply, delete, references)| ResourceChange {
        apply,
        delete,
        references,
    })
}

//! EDS: one load assignment.

use std::collections::BTreeMap;

use envoy_types::pb::envoy::config::core::v3 as core;
use envoy_types::pb::envoy::config::endpoint::v3 as pb;
use envoy_types::pb::google::protobuf::UInt32Value;

use super::{Cluster, ClusterName, weights};
use crate::events::event::{EndpointAddress, Locality};
use crate::projection::HealthStatus;
use crate::projection::resources::{Dials, builders};
use crate::projection::state::Published;

/// The published members of one locality, by address.
type Group<'a> = Vec<(&'a EndpointAddress, &'a Published)>;

/// The localities of one priority.
pub(super) type Localities<'a> = BTreeMap<&'a Locality, Group<'a>>;

/// Everything published of a cluster that a client can dial: priorities without holes (envoyproxy/envoy#8088), one entry
/// a locality, sorted by priority, locality and address.
pub(super) fn message(name: &ClusterName, cluster: &Cluster, dials: Dials) -> pb::ClusterLoadAssignment {
    pb::ClusterLoadAssignment {
        cluster_name: name.as_str().to_owned(),
        endpoints: (0..)
            .zip(groups(cluster, dials).values())
            .flat_map(|(rank, group)| localities(rank, group))
            .collect(),
        ..pb::ClusterLoadAssignment::default()
    }
}

/// What is published of a cluster to those who dial so, by priority and locality.
pub(super) fn groups(cluster: &Cluster, dials: Dials) -> BTreeMap<u32, Localities<'_>> {
    let mut priorities: BTreeMap<u32, Localities<'_>> = BTreeMap::new();
    for (address, member) in cluster.members.iter().filter(|(address, _)| dials.reaches(address)) {
        if let Some(published) = &member.published {
            let localities = priorities.entry(published.priority).or_default();
            localities.entry(&published.locality).or_default().push((address, published));
        }
    }
    priorities
}

pub(super) fn locality(locality: &Locality) -> core::Locality {
    core::Locality {
        region: locality.region.clone(),
        zone: locality.zone.clone(),
        sub_zone: locality.sub_zone.clone(),
    }
}

fn localities<'a>(
    priority: u32,
    groups: &'a Localities<'a>,
) -> impl Iterator<Item = pb::LocalityLbEndpoints> + 'a {
    let shares: Vec<u64> = groups.values().map(share).collect();
    groups.iter().zip(weights::fit(&shares)).map(move |((locality, group), weight)| pb::LocalityLbEndpoints {
        locality: Some(self::locality(locality)),
        lb_endpoints: endpoints(group),
        // gRPC ignores a locality without one (xds-rules 26).
        load_balancing_weight: Some(UInt32Value { value: weight }),
        priority,
        ..pb::LocalityLbEndpoints::default()
    })
}

/// What a locality can carry: the weights of its healthy endpoints, so that load follows capacity.
fn share(group: &Group<'_>) -> u64 {
    group
        .iter()
        .filter(|(_, published)| published.health == HealthStatus::Healthy)
        .map(|(_, published)| weight(published))
        .sum()
}

fn weight(published: &Published) -> u64 {
    published.weight.map_or(1, |weight| u64::from(weight.get()))
}

fn endpoints(group: &Group<'_>) -> Vec<pb::LbEndpoint> {
    let given: Vec<u64> = group.iter().map(|(_, published)| weight(published)).collect();
    let fitted = weights::fit(&given);
    group
        .iter()
        .zip(fitted)
        .map(|((address, published), fitted)| endpoint(address, published, fitted))
        .collect()
}

pub(super) fn endpoint(address: &EndpointAddress, published: &Published, weight: u32) -> pb::LbEndpoint {
    pb::LbEndpoint {
        health_status: match published.health {
            HealthStatus::Healthy => core::HealthStatus::Healthy,
            HealthStatus::Degraded => core::HealthStatus::Degraded,
            HealthStatus::Unhealthy => core::HealthStatus::Unhealthy,
            HealthStatus::Draining => core::HealthStatus::Draining,
        }
        .into(),
        load_balancing_weight: published.weight.map(|_| UInt32Value { value: weight }),
        ..match address {
            EndpointAddress::Ip(address) => builders::endpoint(*address),
            EndpointAddress::Unix(path) => builders::pipe_endpoint(path),
        }
    }
}

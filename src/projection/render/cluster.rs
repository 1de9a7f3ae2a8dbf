//! CDS: one cluster.

use envoy_types::pb::envoy::config::cluster::v3 as pb;

use super::ClusterName;
use super::grpc::over_ads;

/// An EDS cluster whose endpoints come over the same aggregated stream.
pub(super) fn message(name: &ClusterName) -> pb::Cluster {
    pb::Cluster {
        name: name.as_str().to_owned(),
        cluster_discovery_type: Some(pb::cluster::ClusterDiscoveryType::Type(
            pb::cluster::DiscoveryType::Eds.into(),
        )),
        eds_cluster_config: Some(pb::cluster::EdsClusterConfig {
            eds_config: Some(over_ads()),
            // xds-rules 28
            service_name: name.as_str().to_owned(),
        }),
        // An endpoint that is removed gets no more requests, even if an operator's health check still passes (xds-rules 28).
        ignore_health_on_host_removal: true,
        ..pb::Cluster::default()
    }
}

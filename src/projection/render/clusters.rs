//! CDS: one cluster.

use envoy_types::pb::envoy::config::cluster::v3 as pb;
use envoy_types::pb::envoy::config::cluster::v3::cluster::common_lb_config::{
    LocalityConfigSpecifier, LocalityWeightedLbConfig,
};
use envoy_types::pb::envoy::config::cluster::v3::cluster::{CommonLbConfig, LbPolicy as PbLbPolicy};
use envoy_types::pb::envoy::r#type::v3::Percent;
use envoy_types::pb::google::protobuf::Duration;

use super::{Cluster, ClusterName};
use crate::events::event::{ClusterPolicy, LbPolicy, LocalityWeighting, Protocol};
use crate::projection::resources::builders;

/// The cluster with what its service is declared to be. What is not declared stays out of the bytes, and so with the
/// client's own defaults.
pub(super) fn message(name: &ClusterName, cluster: &Cluster) -> pb::Cluster {
    let policy = &cluster.policy;
    let mut message = pb::Cluster {
        lb_policy: lb_policy(policy.lb).into(),
        connect_timeout: policy.connect_timeout_ms.map(|ms| milliseconds(ms.get())),
        common_lb_config: common_lb_config(policy),
        ..builders::cluster(name.as_str())
    };
    match cluster.protocol {
        Protocol::Http1 | Protocol::Tcp => {}
        Protocol::Http2 => builders::speak_http2(&mut message),
    }
    message
}

const fn lb_policy(policy: LbPolicy) -> PbLbPolicy {
    match policy {
        LbPolicy::RoundRobin => PbLbPolicy::RoundRobin,
        LbPolicy::LeastRequest => PbLbPolicy::LeastRequest,
        LbPolicy::Random => PbLbPolicy::Random,
        LbPolicy::RingHash => PbLbPolicy::RingHash,
    }
}

fn common_lb_config(policy: &ClusterPolicy) -> Option<CommonLbConfig> {
    let weighted = LocalityConfigSpecifier::LocalityWeightedLbConfig(LocalityWeightedLbConfig::default());
    let config = CommonLbConfig {
        healthy_panic_threshold: policy.panic_threshold.map(|value| Percent { value: value.into() }),
        locality_config_specifier: match policy.locality_weighting {
            LocalityWeighting::Off => None,
            LocalityWeighting::On => Some(weighted),
        },
        ..CommonLbConfig::default()
    };
    (config != CommonLbConfig::default()).then_some(config)
}

fn milliseconds(ms: u32) -> Duration {
    Duration {
        seconds: i64::from(ms / 1000),
        nanos: i32::try_from(ms % 1000 * 1_000_000).unwrap_or_default(),
    }
}

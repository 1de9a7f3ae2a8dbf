//! LDS and RDS for proxyless gRPC: `xds:///service` leads over a listener and a route to the service's cluster.

use envoy_types::pb::envoy::config::core::v3::config_source::ConfigSourceSpecifier;
use envoy_types::pb::envoy::config::core::v3::{AggregatedConfigSource, ApiVersion, ConfigSource};
use envoy_types::pb::envoy::config::listener::v3::{ApiListener, Listener};
use envoy_types::pb::envoy::config::route::v3 as route;
use envoy_types::pb::envoy::extensions::filters::http::router::v3::Router;
use envoy_types::pb::envoy::extensions::filters::network::http_connection_manager::v3 as hcm;
use envoy_types::pb::google::protobuf::Any;
use prost::{Message, Name};

use super::ClusterName;

/// An API listener: only clients that name it are sent it (xds-rules 29).
pub(super) fn listener(name: &ClusterName) -> Listener {
    let manager = hcm::HttpConnectionManager {
        route_specifier: Some(hcm::http_connection_manager::RouteSpecifier::Rds(hcm::Rds {
            route_config_name: name.as_str().to_owned(),
            config_source: Some(over_ads()),
        })),
        http_filters: vec![hcm::HttpFilter {
            name: "envoy.filters.http.router".to_owned(),
            config_type: Some(hcm::http_filter::ConfigType::TypedConfig(packed(&Router::default()))),
            ..hcm::HttpFilter::default()
        }],
        ..hcm::HttpConnectionManager::default()
    };
    Listener {
        name: name.as_str().to_owned(),
        api_listener: Some(ApiListener { api_listener: Some(packed(&manager)) }),
        ..Listener::default()
    }
}

/// Every request goes to the cluster of the same name.
pub(super) fn route(name: &ClusterName) -> route::RouteConfiguration {
    let to_cluster = route::RouteAction {
        cluster_specifier: Some(route::route_action::ClusterSpecifier::Cluster(name.as_str().to_owned())),
        ..route::RouteAction::default()
    };
    let everything = route::RouteMatch {
        path_specifier: Some(route::route_match::PathSpecifier::Prefix(String::new())),
        ..route::RouteMatch::default()
    };
    route::RouteConfiguration {
        name: name.as_str().to_owned(),
        virtual_hosts: vec![route::VirtualHost {
            name: name.as_str().to_owned(),
            domains: vec!["*".to_owned()],
            routes: vec![route::Route {
                r#match: Some(everything),
                action: Some(route::route::Action::Route(to_cluster)),
                ..route::Route::default()
            }],
            ..route::VirtualHost::default()
        }],
        ..route::RouteConfiguration::default()
    }
}

/// The aggregated stream on which the resource itself came.
pub(super) fn over_ads() -> ConfigSource {
    ConfigSource {
        resource_api_version: ApiVersion::V3.into(),
        config_source_specifier: Some(ConfigSourceSpecifier::Ads(AggregatedConfigSource::default())),
        ..ConfigSource::default()
    }
}

fn packed<M: Message + Name>(message: &M) -> Any {
    Any { type_url: M::type_url(), value: message.encode_to_vec() }
}

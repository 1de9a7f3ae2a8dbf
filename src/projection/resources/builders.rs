//! The messages that clients accept, for those who bring resources of their own.
//!
//! Each has what Envoy 1.40 and gRPC insist on (clients reject what lacks it), and is a plain message: change
//! any field before it is encoded.
//!
//! ```
//! use foldplane::events::Offset;
//! use foldplane::projection::resources::{Resources, TypeUrl, builders};
//!
//! // All that an Envoy or `xds:///web` needs to reach one address.
//! let mut next = Resources::default().builder(Offset::new(1));
//! let mut cluster = builders::cluster("web");
//! builders::speak_http2(&mut cluster);
//! next.put("web", &cluster);
//! let endpoint = builders::endpoint("192.0.2.1:8080".parse()?);
//! next.put("web", &builders::load_assignment("web", vec![endpoint]));
//! next.put("web", &builders::api_listener("web", "web"));
//! next.put("web", &builders::route("web", "web"));
//!
//! let resources = next.build();
//! let assignment = resources.of(TypeUrl::ClusterLoadAssignment).get("web").expect("it was put");
//! assert_eq!(assignment.version.offset, Offset::new(1));
//! # Ok::<(), std::net::AddrParseError>(())
//! ```

use std::net::SocketAddr;

use envoy_types::pb::envoy::config::cluster::v3::Cluster;
use envoy_types::pb::envoy::config::cluster::v3::cluster::{
    ClusterDiscoveryType, DiscoveryType, EdsClusterConfig,
};
use envoy_types::pb::envoy::config::core::v3::config_source::ConfigSourceSpecifier;
use envoy_types::pb::envoy::config::core::v3::socket_address::PortSpecifier;
use envoy_types::pb::envoy::config::core::v3::{
    self as core, AggregatedConfigSource, ApiVersion, ConfigSource, Locality,
};
use envoy_types::pb::envoy::config::endpoint::v3::lb_endpoint::HostIdentifier;
use envoy_types::pb::envoy::config::endpoint::v3::locality_lb_endpoints::LbConfig;
use envoy_types::pb::envoy::config::endpoint::v3::{
    ClusterLoadAssignment, Endpoint, LbEndpoint, LedsClusterLocalityConfig, LocalityLbEndpoints,
};
use envoy_types::pb::envoy::config::listener::v3::{ApiListener, Listener};
use envoy_types::pb::envoy::config::route::v3 as pb;
use envoy_types::pb::envoy::extensions::filters::http::router::v3::Router;
use envoy_types::pb::envoy::extensions::filters::network::http_connection_manager::v3 as hcm;
use envoy_types::pb::envoy::extensions::upstreams::http::v3::HttpProtocolOptions;
use envoy_types::pb::envoy::extensions::upstreams::http::v3::http_protocol_options::explicit_http_config::ProtocolConfig;
use envoy_types::pb::envoy::extensions::upstreams::http::v3::http_protocol_options::{
    ExplicitHttpConfig, UpstreamProtocolOptions,
};
use envoy_types::pb::google::protobuf::{Any, UInt32Value};
use prost::{Message, Name};

use crate::events::SocketPath;

/// A cluster whose endpoints are the load assignment of the same name, on the same aggregated stream.
#[must_use]
pub fn cluster(name: &str) -> Cluster {
    Cluster {
        name: name.to_owned(),
        cluster_discovery_type: Some(ClusterDiscoveryType::Type(DiscoveryType::Eds.into())),
        eds_cluster_config: Some(EdsClusterConfig {
            eds_config: Some(over_ads()),
            // xds-rules 28
            service_name: name.to_owned(),
        }),
        // An endpoint that is removed gets no more requests, even if an operator's health check still passes (xds-rules 28).
        ignore_health_on_host_removal: true,
        ..Cluster::default()
    }
}

/// Lets Envoy speak HTTP/2 to the endpoints of a cluster, as gRPC servers do.
pub fn speak_http2(cluster: &mut Cluster) {
    let http2 = ProtocolConfig::Http2ProtocolOptions(core::Http2ProtocolOptions::default());
    let options = HttpProtocolOptions {
        upstream_protocol_options: Some(UpstreamProtocolOptions::ExplicitHttpConfig(ExplicitHttpConfig {
            protocol_config: Some(http2),
        })),
        ..HttpProtocolOptions::default()
    };
    // The only entry: a map of more has no single encoding.
    cluster.typed_extension_protocol_options =
        [("envoy.extensions.upstreams.http.v3.HttpProtocolOptions".to_owned(), packed(&options))].into();
}

/// The endpoints of the cluster `name`, in one locality. Without endpoints the cluster is empty.
#[must_use]
pub fn load_assignment(name: &str, endpoints: Vec<LbEndpoint>) -> ClusterLoadAssignment {
    let locality = LocalityLbEndpoints {
        // gRPC refuses an assignment without a locality, and ignores a locality without a weight (xds-rules 26).
        locality: Some(Locality::default()),
        load_balancing_weight: Some(UInt32Value { value: 1 }),
        lb_endpoints: endpoints,
        ..LocalityLbEndpoints::default()
    };
    let is_empty = locality.lb_endpoints.is_empty();
    ClusterLoadAssignment {
        cluster_name: name.to_owned(),
        endpoints: if is_empty { Vec::new() } else { vec![locality] },
        ..ClusterLoadAssignment::default()
    }
}

/// What the name of every collection of endpoints begins with.
pub const COLLECTIONS: &str = "xdstp://foldplane/envoy.config.endpoint.v3.LbEndpoint/";

/// The endpoints of one locality, which the collection of this name holds, on the same aggregated delta stream
/// (xds-rules 35).
#[must_use]
pub fn collection(name: &str, locality: Locality, priority: u32) -> LocalityLbEndpoints {
    let source =
        LedsClusterLocalityConfig { leds_config: Some(over_ads()), leds_collection_name: name.to_owned() };
    LocalityLbEndpoints {
        locality: Some(locality),
        priority,
        lb_config: Some(LbConfig::LedsClusterLocalityConfig(source)),
        ..LocalityLbEndpoints::default()
    }
}

/// An endpoint that is taken to be healthy.
#[must_use]
pub fn endpoint(address: SocketAddr) -> LbEndpoint {
    endpoint_at(socket_address(address))
}

/// An endpoint at a Unix domain socket, which is taken to be healthy. Envoy dials it; no gRPC client can.
#[must_use]
pub fn pipe_endpoint(path: &SocketPath) -> LbEndpoint {
    let pipe = core::Pipe { path: path.to_string(), ..core::Pipe::default() };
    endpoint_at(core::Address { address: Some(core::address::Address::Pipe(pipe)) })
}

fn endpoint_at(address: core::Address) -> LbEndpoint {
    let endpoint = Endpoint { address: Some(address), ..Endpoint::default() };
    LbEndpoint { host_identifier: Some(HostIdentifier::Endpoint(endpoint)), ..LbEndpoint::default() }
}

/// An address: IPv6 without brackets (xds-rules 26).
#[must_use]
pub fn socket_address(address: SocketAddr) -> core::Address {
    core::Address {
        address: Some(core::address::Address::SocketAddress(core::SocketAddress {
            address: address.ip().to_string(),
            port_specifier: Some(PortSpecifier::PortValue(u32::from(address.port()))),
            ..core::SocketAddress::default()
        })),
    }
}

/// Where `xds:///name` leads for proxyless gRPC: to the route of the name `route`. Only clients that name it are
/// sent it (xds-rules 29).
#[must_use]
pub fn api_listener(name: &str, route: &str) -> Listener {
    let manager = hcm::HttpConnectionManager {
        route_specifier: Some(hcm::http_connection_manager::RouteSpecifier::Rds(hcm::Rds {
            route_config_name: route.to_owned(),
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
        name: name.to_owned(),
        api_listener: Some(ApiListener { api_listener: Some(packed(&manager)) }),
        ..Listener::default()
    }
}

/// A route that leads every request to one cluster.
#[must_use]
pub fn route(name: &str, cluster: &str) -> pb::RouteConfiguration {
    let to_cluster = pb::RouteAction {
        cluster_specifier: Some(pb::route_action::ClusterSpecifier::Cluster(cluster.to_owned())),
        ..pb::RouteAction::default()
    };
    let everything = pb::RouteMatch {
        path_specifier: Some(pb::route_match::PathSpecifier::Prefix(String::new())),
        ..pb::RouteMatch::default()
    };
    pb::RouteConfiguration {
        name: name.to_owned(),
        virtual_hosts: vec![pb::VirtualHost {
            name: name.to_owned(),
            domains: vec!["*".to_owned()],
            routes: vec![pb::Route {
                r#match: Some(everything),
                action: Some(pb::route::Action::Route(to_cluster)),
                ..pb::Route::default()
            }],
            ..pb::VirtualHost::default()
        }],
        ..pb::RouteConfiguration::default()
    }
}

/// The aggregated stream on which the resource itself came.
#[must_use]
pub fn over_ads() -> ConfigSource {
    ConfigSource {
        resource_api_version: ApiVersion::V3.into(),
        config_source_specifier: Some(ConfigSourceSpecifier::Ads(AggregatedConfigSource::default())),
        ..ConfigSource::default()
    }
}

fn packed<M: Message + Name>(message: &M) -> Any {
    Any { type_url: M::type_url(), value: message.encode_to_vec() }
}

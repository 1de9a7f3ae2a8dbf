//! Other ways in which an Envoy subscribes: one stream a type, and clusters on demand.

use std::net::SocketAddr;
use std::time::Instant;

use envoy_types::pb::envoy::config::core::v3::api_config_source::ApiType;
use envoy_types::pb::envoy::config::core::v3::config_source::ConfigSourceSpecifier;
use envoy_types::pb::envoy::config::core::v3::grpc_service::{EnvoyGrpc, TargetSpecifier};
use envoy_types::pb::envoy::config::core::v3::{ApiConfigSource, ApiVersion, ConfigSource, GrpcService};
use envoy_types::pb::google::protobuf::Duration as PbDuration;
use foldplane::projection::resources::{ResourcesBuilder, TypeUrl, builders};
use foldplane::xds::protocol::Served;

use crate::envoy::{Proxy, WARMING_MAX, free_address};
use crate::server::{Server, Upstreams, put_endpoints, put_service};

/// Where a proxy gets its clusters from.
enum Source {
    /// A stream of their own, of this kind.
    Separate(&'static str),
    /// The aggregated stream, when a request needs one.
    OnDemand,
    /// Polling over REST.
    Polled,
}

/// Starts an Envoy that leads every request to the cluster that its host names.
async fn start(control_plane: SocketAddr, source: &Source) -> Proxy {
    let (admin, listener) = (free_address(), free_address());
    let grpc = "grpc_services: [{envoy_grpc: {cluster_name: xds}}]";
    let (dynamic, filter) = match source {
        Source::Separate(kind) => (
            format!(
                "cds_config: {{resource_api_version: V3, api_config_source: {{api_type: {kind}, \
                 transport_api_version: V3, set_node_on_first_message_only: true, {grpc}}}}}"
            ),
            "",
        ),
        Source::Polled => (
            "cds_config: {resource_api_version: V3, api_config_source: {api_type: REST, \
             transport_api_version: V3, cluster_names: [xds], refresh_delay: 0.1s}}"
                .to_owned(),
            "",
        ),
        Source::OnDemand => (
            format!(
                "ads_config: {{api_type: DELTA_GRPC, transport_api_version: V3, \
                 set_node_on_first_message_only: true, {grpc}}}"
            ),
            "- name: envoy.filters.http.on_demand
            typed_config:
              '@type': type.googleapis.com/envoy.extensions.filters.http.on_demand.v3.OnDemand
              odcds: {source: {ads: {}, resource_api_version: V3}, timeout: 5s}",
        ),
    };
    let socket = |address: SocketAddr| {
        format!("{{socket_address: {{address: {}, port_value: {}}}}}", address.ip(), address.port())
    };
    let (admin_address, listener_address, server) = (socket(admin), socket(listener), socket(control_plane));
    let config = format!(
        "
node: {{id: proxy-1, cluster: edge}}
admin: {{address: {admin_address}}}
dynamic_resources: {{{dynamic}}}
static_resources:
  listeners:
  - name: in
    address: {listener_address}
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          '@type': type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: in
          http_filters:
          {filter}
          - name: envoy.filters.http.router
            typed_config: {{'@type': type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}}
          route_config:
            validate_clusters: false
            virtual_hosts:
            - {{name: v, domains: ['*'], routes: [{{match: {{prefix: /}}, route: {{cluster_header: ':authority'}}}}]}}
  clusters:
  - name: xds
    type: STATIC
    typed_extension_protocol_options:
      envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
        '@type': type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
        explicit_http_config: {{http2_protocol_options: {{}}}}
    load_assignment:
      cluster_name: xds
      endpoints: [{{lb_endpoints: [{{endpoint: {{address: {server}}}}}]}}]
"
    );
    Proxy::start_with(&config, admin, listener).await
}

/// A cluster whose endpoints come over a stream of their own.
fn put_separate(next: &mut ResourcesBuilder, name: &str, api_type: ApiType, milliseconds: i32) {
    let service = GrpcService {
        target_specifier: Some(TargetSpecifier::EnvoyGrpc(EnvoyGrpc {
            cluster_name: "xds".into(),
            ..EnvoyGrpc::default()
        })),
        ..GrpcService::default()
    };
    let source = ApiConfigSource {
        api_type: api_type.into(),
        grpc_services: vec![service],
        set_node_on_first_message_only: true,
        ..ApiConfigSource::default()
    };
    put_from(next, name, source, milliseconds);
}

/// A cluster whose endpoints are polled.
fn put_polled(next: &mut ResourcesBuilder, name: &str, milliseconds: i32) {
    let source = ApiConfigSource {
        api_type: ApiType::Rest.into(),
        cluster_names: vec!["xds".into()],
        refresh_delay: Some(PbDuration { seconds: 0, nanos: 100_000_000 }),
        ..ApiConfigSource::default()
    };
    put_from(next, name, source, milliseconds);
}

/// A cluster whose endpoints come from `source`; another connect timeout is another cluster.
fn put_from(next: &mut ResourcesBuilder, name: &str, source: ApiConfigSource, milliseconds: i32) {
    let source = ApiConfigSource { transport_api_version: ApiVersion::V3.into(), ..source };
    let mut cluster = builders::cluster(name);
    cluster.connect_timeout = Some(PbDuration { seconds: 1, nanos: milliseconds * 1_000_000 });
    cluster.eds_cluster_config.as_mut().unwrap().eds_config = Some(ConfigSource {
        resource_api_version: ApiVersion::V3.into(),
        config_source_specifier: Some(ConfigSourceSpecifier::ApiConfigSource(source)),
        ..ConfigSource::default()
    });
    next.put(name, &cluster);
}

#[tokio::test(flavor = "multi_thread")]
async fn rule_22_where_each_cluster_has_a_stream_of_its_own() {
    for (kind, api_type) in [("DELTA_GRPC", ApiType::DeltaGrpc), ("GRPC", ApiType::Grpc)] {
        let (mut upstreams, server) = (Upstreams::default(), Server::start().await);
        let (one, two) = (upstreams.start("one").await, upstreams.start("two").await);
        server.change(|next| {
            for (name, address) in [("pay", one), ("web", two)] {
                put_separate(next, name, api_type, 1);
                put_endpoints(next, name, &[address]);
            }
        });
        let proxy = start(server.address, &Source::Separate(kind)).await;
        proxy.answers("pay", "one").await;
        proxy.answers("web", "two").await;
        let served: Vec<_> = server.ledger.snapshot().iter().map(|stream| stream.served).collect();
        let of = |served_type| served.iter().filter(|served| **served == Served::Only(served_type)).count();
        assert_eq!((of(TypeUrl::Cluster), of(TypeUrl::ClusterLoadAssignment)), (1, 2));

        // A changed cluster opens a new stream for its endpoints, and its old one is reset.
        let load = proxy.load("web");
        let changes: [&dyn Fn(&mut ResourcesBuilder); 4] = [
            &|next| put_separate(next, "web", api_type, 2),
            &|next| put_endpoints(next, "web", &[one, two]),
            &|next| {
                put_separate(next, "web", api_type, 3);
                put_endpoints(next, "web", &[two]);
            },
            &|next| {
                put_separate(next, "web", api_type, 4);
                next.take(TypeUrl::Cluster, "pay");
                next.take(TypeUrl::ClusterLoadAssignment, "pay");
            },
        ];
        for change in changes {
            server.change(change);
            load.run(50).await;
            let start = Instant::now();
            while proxy.statistic("cluster_manager.warming_clusters").await > 0 {
                assert!(start.elapsed() < WARMING_MAX, "{kind}: warming takes longer");
            }
        }
        server.change(|next| put_endpoints(next, "web", &[one]));
        proxy.answers("web", "one").await;
        assert_eq!(load.end().await, Vec::<String>::new(), "{kind}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rule_33_clusters_on_demand() {
    let (mut upstreams, server) = (Upstreams::default(), Server::start().await);
    let one = upstreams.start("one").await;
    server.change(|next| {
        put_service(next, "web", &[one]);
        put_service(next, "other", &[one]);
    });
    let proxy = start(server.address, &Source::OnDemand).await;
    assert_eq!(proxy.ask("web").await, "one");
    // Only what was asked for is there.
    let clusters = &server.ledger.snapshot()[0].types[&TypeUrl::Cluster];
    assert!(!clusters.subscription.is_wildcard());
    assert_eq!(proxy.statistic("cluster_manager.active_clusters").await, 2);

    // An unknown one is refused at once, and remembered: Envoy does not ask again.
    let start = Instant::now();
    assert_eq!(proxy.ask("later").await, "status 503");
    assert!(start.elapsed().as_secs() < 4, "it waited for the filter's timeout");
    server.change(|next| put_service(next, "later", &[one]));
    proxy.answers("later", "one").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_envoy_that_polls_follows_what_changes() {
    let (mut upstreams, server) = (Upstreams::default(), Server::start().await);
    let (one, two) = (upstreams.start("one").await, upstreams.start("two").await);
    server.change(|next| {
        put_polled(next, "web", 1);
        put_endpoints(next, "web", &[one]);
    });
    let proxy = start(server.address, &Source::Polled).await;
    proxy.answers("web", "one").await;

    let load = proxy.load("web");
    server.change(|next| put_endpoints(next, "web", &[two]));
    proxy.answers("web", "two").await;
    server.change(|next| put_polled(next, "web", 2));
    load.run(50).await;
    server.change(|next| {
        put_polled(next, "pay", 1);
        put_endpoints(next, "pay", &[one]);
    });
    proxy.answers("pay", "one").await;
    assert_eq!(load.end().await, Vec::<String>::new());

    server.change(|next| {
        next.take(TypeUrl::Cluster, "pay");
        next.take(TypeUrl::ClusterLoadAssignment, "pay");
    });
    proxy.answers("pay", "status 503").await;
    assert!(server.ledger.snapshot().is_empty(), "it opened a stream");
    // Most of its questions are answered with "as before".
    let updates = proxy.statistic("cluster_manager.cds.update_success").await;
    assert!(updates < 10, "{updates} updates for four versions");
}

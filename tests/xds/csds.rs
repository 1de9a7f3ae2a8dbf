//! What a control plane says of its clients in the protocol's own words.

use std::time::Duration;

use envoy_types::pb::envoy::admin::v3::ClientResourceStatus;
use envoy_types::pb::envoy::service::status::v3::client_status_discovery_service_client::ClientStatusDiscoveryServiceClient;
use envoy_types::pb::envoy::service::status::v3::{ClientConfig, ClientStatusRequest};
use envoy_types::pb::envoy::r#type::matcher::v3::string_matcher::MatchPattern;
use envoy_types::pb::envoy::r#type::matcher::v3::{NodeMatcher, StringMatcher};
use foldplane::projection::resources::TypeUrl;
use foldplane::xds::protocol::Variant;

use crate::server::{Server, put_endpoints, put_service};
use crate::wire::connect;

/// Every resource of every client, in words.
fn words(configs: &[ClientConfig]) -> Vec<String> {
    let word = |config: &ClientConfig| {
        let node = config.node.as_ref().unwrap().id.clone();
        let resource =
            move |found: &envoy_types::pb::envoy::service::status::v3::client_config::GenericXdsConfig| {
                let short = TypeUrl::from_url(&found.type_url).unwrap().short();
                let status = ClientResourceStatus::try_from(found.client_status).unwrap().as_str_name();
                let why =
                    found.error_state.as_ref().map(|error| format!(" {}", error.details)).unwrap_or_default();
                format!("{node} {short} {} {status}{why}", found.name)
            };
        config.generic_xds_configs.iter().map(resource).collect::<Vec<_>>()
    };
    configs.iter().flat_map(word).collect()
}

#[tokio::test]
async fn each_resource_has_the_status_that_its_client_gave_it() {
    let server = Server::start().await;
    server.change(|next| {
        put_service(next, "good", &["192.0.2.1:80".parse().unwrap()]);
        put_endpoints(next, "bad", &["192.0.2.1:80".parse().unwrap()]);
    });
    let mut client = connect(&server, Variant::Delta).await;
    client.subscribe(TypeUrl::Cluster, &[]).await.unwrap();
    let clusters = client.next().await.unwrap();
    client.subscribe(TypeUrl::ClusterLoadAssignment, &["bad"]).await.unwrap();
    let bad = client.next().await.unwrap();
    client.reject(&bad, "no good").await.unwrap();
    client.subscribe(TypeUrl::ClusterLoadAssignment, &["good", "none"]).await.unwrap();
    let good = client.next().await.unwrap();
    client.accept(&good).await.unwrap();

    let uri = format!("http://{}", server.address);
    let mut csds = ClientStatusDiscoveryServiceClient::connect(uri).await.unwrap();
    let expected = [
        "node-1 CDS good REQUESTED",
        "node-1 EDS bad NACKED no good (code 13)",
        "node-1 EDS good ACKED",
        "node-1 EDS none DOES_NOT_EXIST",
    ];
    let start = std::time::Instant::now();
    loop {
        let answer = csds.fetch_client_status(ClientStatusRequest::default()).await.unwrap().into_inner();
        let found = words(&answer.config);
        if found == expected {
            let content = answer.config[0].generic_xds_configs[0].xds_config.as_ref().unwrap();
            assert_eq!(content.value, clusters.resources["good"].message);
            break;
        }
        assert!(start.elapsed() < Duration::from_secs(10), "{found:#?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }

    let matching = |pattern| {
        let node_id = Some(StringMatcher { match_pattern: Some(pattern), ..StringMatcher::default() });
        let node_matchers = vec![NodeMatcher { node_id, ..NodeMatcher::default() }];
        ClientStatusRequest {
            node_matchers,
            exclude_resource_contents: true,
            ..ClientStatusRequest::default()
        }
    };
    for (pattern, clients) in [
        (MatchPattern::Exact("node-1".into()), 1),
        (MatchPattern::Prefix("node".into()), 1),
        (MatchPattern::Suffix("-2".into()), 0),
    ] {
        let answer = csds.fetch_client_status(matching(pattern)).await.unwrap().into_inner();
        assert_eq!(answer.config.len(), clients);
    }
    let refused =
        csds.fetch_client_status(matching(MatchPattern::SafeRegex(Default::default()))).await.unwrap_err();
    assert_eq!(refused.code(), tonic::Code::InvalidArgument);
}

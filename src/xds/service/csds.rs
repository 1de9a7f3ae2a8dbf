//! CSDS: tells, in the protocol's own words, what each client was sent, accepted and refused.

use std::pin::Pin;

use envoy_types::pb::envoy::admin::v3::{ClientResourceStatus, UpdateFailureState};
use envoy_types::pb::envoy::config::core::v3::Node as NodeMessage;
use envoy_types::pb::envoy::service::status::v3::client_config::GenericXdsConfig;
use envoy_types::pb::envoy::service::status::v3::client_status_discovery_service_server::ClientStatusDiscoveryService;
use envoy_types::pb::envoy::service::status::v3::{
    ClientConfig, ClientStatusRequest, ClientStatusResponse, ConfigStatus,
};
use envoy_types::pb::envoy::r#type::matcher::v3::string_matcher::MatchPattern;
use envoy_types::pb::envoy::r#type::matcher::v3::{NodeMatcher, StringMatcher};
use envoy_types::pb::google::protobuf::Any;
use futures_util::{Stream, StreamExt};
use prost::Message;
use tonic::{Request, Response, Status, Streaming};

use crate::projection::resources::{Resource, TypeUrl};
use crate::xds::Ledger;
use crate::xds::ledger::StreamStatus;
use crate::xds::protocol::TypeStatus;

/// The service. It reads the ledger and nothing else.
#[derive(Clone, Debug)]
pub(super) struct Csds(pub(super) Ledger);

type Answers = Pin<Box<dyn Stream<Item = Result<ClientStatusResponse, Status>> + Send>>;

#[tonic::async_trait]
impl ClientStatusDiscoveryService for Csds {
    type StreamClientStatusStream = Answers;

    async fn stream_client_status(
        &self,
        request: Request<Streaming<ClientStatusRequest>>,
    ) -> Result<Response<Answers>, Status> {
        let ledger = self.0.clone();
        let answers = request.into_inner().map(move |request| answer(&ledger, &request?));
        Ok(Response::new(Box::pin(answers)))
    }

    async fn fetch_client_status(
        &self,
        request: Request<ClientStatusRequest>,
    ) -> Result<Response<ClientStatusResponse>, Status> {
        answer(&self.0, request.get_ref()).map(Response::new)
    }
}

fn answer(ledger: &Ledger, request: &ClientStatusRequest) -> Result<ClientStatusResponse, Status> {
    let contents = if request.exclude_resource_contents { Contents::Left } else { Contents::Included };
    let mut config = Vec::new();
    for stream in ledger.snapshot() {
        if matches(&request.node_matchers, stream.node.id())? {
            config.push(client(&stream, contents));
        }
    }
    Ok(ClientStatusResponse { config })
}

/// Whether the resources themselves are wanted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Contents {
    Included,
    Left,
}

fn matches(matchers: &[NodeMatcher], id: &str) -> Result<bool, Status> {
    if matchers.is_empty() {
        return Ok(true);
    }
    for matcher in matchers {
        if !matcher.node_metadatas.is_empty() {
            return Err(Status::invalid_argument("match nodes by node_id: metadata is not looked at"));
        }
        if matcher.node_id.as_ref().map_or(Ok(true), |pattern| matches_id(pattern, id))? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn matches_id(matcher: &StringMatcher, id: &str) -> Result<bool, Status> {
    let fold = |text: &str| if matcher.ignore_case { text.to_lowercase() } else { text.to_owned() };
    let id = fold(id);
    Ok(match &matcher.match_pattern {
        Some(MatchPattern::Exact(text)) => id == fold(text),
        Some(MatchPattern::Prefix(text)) => id.starts_with(&fold(text)),
        Some(MatchPattern::Suffix(text)) => id.ends_with(&fold(text)),
        Some(MatchPattern::Contains(text)) => id.contains(&fold(text)),
        Some(MatchPattern::SafeRegex(_) | MatchPattern::Custom(_)) | None => {
            return Err(Status::invalid_argument("match node_id by exact, prefix, suffix or contains"));
        }
    })
}

fn client(stream: &StreamStatus, contents: Contents) -> ClientConfig {
    let node = NodeMessage {
        id: stream.node.id().to_owned(),
        cluster: stream.node.cluster().to_owned(),
        user_agent_name: stream.node.user_agent().to_owned(),
        ..NodeMessage::default()
    };
    let of_type = |(type_url, status): (&TypeUrl, &TypeStatus)| configs(stream, *type_url, status, contents);
    ClientConfig {
        node: Some(node),
        generic_xds_configs: stream.types.iter().flat_map(of_type).collect(),
        client_scope: stream.stream.to_string(),
        ..ClientConfig::default()
    }
}

fn configs(
    stream: &StreamStatus,
    type_url: TypeUrl,
    status: &TypeStatus,
    contents: Contents,
) -> Vec<GenericXdsConfig> {
    let world = stream.world(type_url);
    let mut configs: Vec<_> =
        status.subscription.select(world).map(|found| present(type_url, status, found, contents)).collect();
    let missing = status.subscription.names().iter().filter(|name| world.get(name.as_str()).is_none());
    configs.extend(missing.map(|name| GenericXdsConfig {
        type_url: type_url.as_str().to_owned(),
        name: name.to_string(),
        config_status: ConfigStatus::NotSent.into(),
        client_status: ClientResourceStatus::DoesNotExist.into(),
        ..GenericXdsConfig::default()
    }));
    configs
}

fn present(
    type_url: TypeUrl,
    status: &TypeStatus,
    resource: &Resource,
    contents: Contents,
) -> GenericXdsConfig {
    let sent = |found: &std::sync::Arc<Resource>| found.name == resource.name;
    let in_flight = status.in_flight.as_ref().is_some_and(|response| response.resources.iter().any(sent));
    let refused = status.rejected.get(&resource.name).filter(|version| **version == resource.version);
    let (config_status, client_status) = if refused.is_some() {
        (ConfigStatus::Error, ClientResourceStatus::Nacked)
    } else if in_flight || status.owed.contains(&resource.name) {
        (ConfigStatus::Stale, ClientResourceStatus::Requested)
    } else {
        (ConfigStatus::Synced, ClientResourceStatus::Acked)
    };
    GenericXdsConfig {
        type_url: type_url.as_str().to_owned(),
        name: resource.name.to_string(),
        version_info: resource.version.to_string(),
        xds_config: (contents == Contents::Included).then(|| content(resource)),
        config_status: config_status.into(),
        client_status: client_status.into(),
        error_state: refused.map(|version| UpdateFailureState {
            details: status
                .rejection
                .as_ref()
                .map(|rejection| rejection.message.to_string())
                .unwrap_or_default(),
            version_info: version.to_string(),
            ..UpdateFailureState::default()
        }),
        ..GenericXdsConfig::default()
    }
}

fn content(resource: &Resource) -> Any {
    Any::decode(resource.any().as_ref()).unwrap_or_default()
}

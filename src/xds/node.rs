//! Who a client says it is.

use std::sync::Arc;

use envoy_types::pb::google::protobuf::{Struct, Value, value::Kind};
use prost::Message as _;
use serde_json::Value as Json;

use super::wire::NodeMessage;
use crate::events::event::Locality;
use crate::projection::resources::Dials;

/// A client's own description of itself: a label, never a credential (xds-rules 36). Cheap to clone.
///
/// Of what Envoy sends, only this is kept: its list of extensions alone would be 210 kB a stream (xds-rules 32).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Node(Arc<Fields>);

#[derive(Debug, Default, PartialEq)]
struct Fields {
    id: String,
    cluster: String,
    locality: Locality,
    metadata: Json,
    user_agent: String,
}

/// The longest text of a node that is kept, in bytes: that of a name.
const TEXT_BYTES_MAX: usize = 253;

/// The largest metadata that is kept. Views match on it, so that it is small in practice; a larger one is dropped.
const METADATA_BYTES_MAX: usize = 16 << 10;

/// How deep metadata may nest. Deeper parts are dropped.
const METADATA_DEPTH_MAX: usize = 16;

impl Node {
    /// The id, by which people know it.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.0.id
    }

    /// The cluster of proxies that it belongs to.
    #[must_use]
    pub fn cluster(&self) -> &str {
        &self.0.cluster
    }

    /// Where it stands.
    #[must_use]
    pub fn locality(&self) -> &Locality {
        &self.0.locality
    }

    /// What it tells about itself, as JSON: `null` when nothing.
    #[must_use]
    pub fn metadata(&self) -> &Json {
        &self.0.metadata
    }

    /// The program and its version, such as `envoy 1.40.0`.
    #[must_use]
    pub fn user_agent(&self) -> &str {
        &self.0.user_agent
    }

    /// To what it can connect. Every gRPC client calls itself `gRPC`, and a language: `gRPC C-core`, `gRPC Go`,
    /// `gRPC Java`, `gRPC Node Pure JS`.
    #[must_use]
    pub fn dials(&self) -> Dials {
        if self.user_agent().starts_with("gRPC") { Dials::IpOnly } else { Dials::Everything }
    }

    pub(super) fn from_message(message: NodeMessage) -> Self {
        let user_agent = cut(&user_agent(&message));
        let locality = message.locality.unwrap_or_default();
        Self(Arc::new(Fields {
            user_agent,
            id: cut(&message.id),
            cluster: cut(&message.cluster),
            locality: Locality {
                region: cut(&locality.region),
                zone: cut(&locality.zone),
                sub_zone: cut(&locality.sub_zone),
            },
            metadata: message.metadata.map_or(Json::Null, metadata),
        }))
    }
}

fn user_agent(message: &NodeMessage) -> String {
    let build = message.user_agent_build_version.as_ref().and_then(|build| build.version);
    let version = build.map_or_else(
        || message.user_agent_version.clone(),
        |version| format!("{}.{}.{}", version.major_number, version.minor_number, version.patch),
    );
    format!("{} {version}", message.user_agent_name).trim().to_owned()
}

fn cut(text: &str) -> String {
    text.get(..text.floor_char_boundary(TEXT_BYTES_MAX)).unwrap_or_default().to_owned()
}

fn metadata(message: Struct) -> Json {
    if message.encoded_len() > METADATA_BYTES_MAX {
        return Json::Null;
    }
    json_object(message, METADATA_DEPTH_MAX)
}

fn json_object(message: Struct, depth: usize) -> Json {
    Json::Object(message.fields.into_iter().map(|(key, value)| (key, json(value, depth))).collect())
}

fn json(value: Value, depth: usize) -> Json {
    let Some(depth) = depth.checked_sub(1) else { return Json::Null };
    match value.kind {
        None | Some(Kind::NullValue(_)) => Json::Null,
        Some(Kind::NumberValue(number)) => number.into(),
        Some(Kind::StringValue(text)) => text.into(),
        Some(Kind::BoolValue(flag)) => flag.into(),
        Some(Kind::StructValue(message)) => json_object(message, depth),
        Some(Kind::ListValue(list)) => list.values.into_iter().map(|value| json(value, depth)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::wire::SotwMessage;
    use envoy_types::pb::envoy::config::core::v3::{Extension, Node as FullNode};
    use envoy_types::pb::envoy::service::discovery::v3::DiscoveryRequest;

    use super::*;

    #[test]
    fn of_a_node_only_what_is_used_is_kept() {
        // xds-rules 32
        let fields = [("zone".to_owned(), Value { kind: Some(Kind::StringValue("a".into())) })];
        let node = FullNode {
            id: "proxy-1".into(),
            cluster: "edge".into(),
            user_agent_name: "envoy".into(),
            metadata: Some(Struct { fields: fields.into() }),
            extensions: vec![Extension::default(); 516],
            ..FullNode::default()
        };
        let request = DiscoveryRequest { node: Some(node), ..DiscoveryRequest::default() };
        let read = SotwMessage::decode(request.encode_to_vec().as_slice()).unwrap().node.unwrap();
        let node = Node::from_message(read);
        assert_eq!((node.id(), node.cluster(), node.user_agent()), ("proxy-1", "edge", "envoy"));
        assert_eq!(node.metadata(), &serde_json::json!({"zone": "a"}));
    }

    #[test]
    fn a_node_cannot_fill_the_memory() {
        let fields = [("big".to_owned(), Value { kind: Some(Kind::StringValue("x".repeat(20_000))) })];
        let node = Node::from_message(NodeMessage {
            id: "é".repeat(300),
            metadata: Some(Struct { fields: fields.into() }),
            ..NodeMessage::default()
        });
        assert_eq!(node.id().len(), 252);
        assert_eq!(node.metadata(), &Json::Null);
    }
}

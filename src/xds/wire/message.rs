//! Requests, as far as they are read.
//!
//! These are the protocol's own messages with only the fields that are used. The others, above all the 60 kB of
//! extensions in each Envoy's node, are skipped while decoding and never take memory (xds-rules 32).

use std::collections::BTreeMap;

use envoy_types::pb::envoy::config::core::v3::{BuildVersion, Locality};
use envoy_types::pb::google::protobuf::Struct;
use prost::Message;

use crate::xds::node::Node;
use crate::xds::protocol::{Edit, Names, Request};

/// `envoy.config.core.v3.Node`.
#[derive(Clone, PartialEq, Message)]
pub(in crate::xds) struct NodeMessage {
    #[prost(string, tag = "1")]
    pub(in crate::xds) id: String,
    #[prost(string, tag = "2")]
    pub(in crate::xds) cluster: String,
    #[prost(message, optional, tag = "3")]
    pub(in crate::xds) metadata: Option<Struct>,
    #[prost(message, optional, tag = "4")]
    pub(in crate::xds) locality: Option<Locality>,
    #[prost(string, tag = "6")]
    pub(in crate::xds) user_agent_name: String,
    #[prost(string, tag = "7")]
    pub(in crate::xds) user_agent_version: String,
    #[prost(message, optional, tag = "8")]
    pub(in crate::xds) user_agent_build_version: Option<BuildVersion>,
}

/// `google.rpc.Status`.
#[derive(Clone, PartialEq, Message)]
pub(in crate::xds) struct ErrorMessage {
    #[prost(int32, tag = "1")]
    code: i32,
    #[prost(string, tag = "2")]
    message: String,
}

/// `envoy.service.discovery.v3.ResourceLocator`.
#[derive(Clone, PartialEq, Message)]
pub(in crate::xds) struct LocatorMessage {
    #[prost(string, tag = "1")]
    name: String,
}

/// `envoy.service.discovery.v3.DiscoveryRequest`.
#[derive(Clone, PartialEq, Message)]
pub(in crate::xds) struct SotwMessage {
    #[prost(string, tag = "1")]
    pub(in crate::xds) version_info: String,
    #[prost(message, optional, tag = "2")]
    pub(in crate::xds) node: Option<NodeMessage>,
    #[prost(string, repeated, tag = "3")]
    pub(in crate::xds) names: Vec<String>,
    #[prost(string, tag = "4")]
    pub(in crate::xds) type_url: String,
    #[prost(string, tag = "5")]
    pub(in crate::xds) nonce: String,
    #[prost(message, optional, tag = "6")]
    pub(in crate::xds) error: Option<ErrorMessage>,
    #[prost(message, repeated, tag = "7")]
    pub(in crate::xds) locators: Vec<LocatorMessage>,
}

/// `envoy.service.discovery.v3.DeltaDiscoveryRequest`.
#[derive(Clone, PartialEq, Message)]
pub(in crate::xds) struct DeltaMessage {
    #[prost(message, optional, tag = "1")]
    pub(in crate::xds) node: Option<NodeMessage>,
    #[prost(string, tag = "2")]
    pub(in crate::xds) type_url: String,
    #[prost(string, repeated, tag = "3")]
    pub(in crate::xds) subscribe: Vec<String>,
    #[prost(string, repeated, tag = "4")]
    pub(in crate::xds) unsubscribe: Vec<String>,
    #[prost(btree_map = "string, string", tag = "5")]
    pub(in crate::xds) known: BTreeMap<String, String>,
    #[prost(string, tag = "6")]
    pub(in crate::xds) nonce: String,
    #[prost(message, optional, tag = "7")]
    pub(in crate::xds) error: Option<ErrorMessage>,
    #[prost(message, repeated, tag = "8")]
    pub(in crate::xds) subscribe_locators: Vec<LocatorMessage>,
    #[prost(message, repeated, tag = "9")]
    pub(in crate::xds) unsubscribe_locators: Vec<LocatorMessage>,
}

/// A message of either variant.
pub(in crate::xds) trait WireRequest: Message + Default + 'static {
    /// What it says, and who says it where that is in it.
    fn read(self) -> (Option<Node>, Request);
}

impl WireRequest for SotwMessage {
    fn read(self) -> (Option<Node>, Request) {
        let names = with_locators(self.names, self.locators);
        let request = Request {
            type_url: self.type_url,
            nonce: self.nonce,
            error: self.error.map(text),
            names: Names::Whole(names),
        };
        (self.node.map(Node::from_message), request)
    }
}

impl WireRequest for DeltaMessage {
    fn read(self) -> (Option<Node>, Request) {
        let edit = Edit {
            subscribe: with_locators(self.subscribe, self.subscribe_locators),
            unsubscribe: with_locators(self.unsubscribe, self.unsubscribe_locators),
            known: self.known,
        };
        let request = Request {
            type_url: self.type_url,
            nonce: self.nonce,
            error: self.error.map(text),
            names: Names::Edit(edit),
        };
        (self.node.map(Node::from_message), request)
    }
}

/// Locators without dynamic parameters are another spelling of names.
fn with_locators(mut names: Vec<String>, locators: Vec<LocatorMessage>) -> Vec<String> {
    names.extend(locators.into_iter().map(|locator| locator.name));
    names
}

fn text(error: ErrorMessage) -> String {
    format!("{} (code {})", error.message, error.code)
}

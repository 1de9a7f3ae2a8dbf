//! One encoded resource, its bytes shared by every stream.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use envoy_types::pb::google::protobuf::Any;
use prost::Message as _;
use prost::encoding::{WireType, encode_key, encode_varint, encoded_len_varint, key_len};

use super::links::{Links, Reach};
use super::{ContentDigest, TypeUrl, Version};
use crate::events::Offset;

/// The name of a resource, unique within its type.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResourceName(Arc<str>);

impl ResourceName {
    /// This text as a name. Any text may be asked for, so nothing is checked.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self(text.into())
    }

    /// Its text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What the names of all its members begin with, where this is the name of a collection.
    #[must_use]
    pub fn members(&self) -> Option<&str> {
        self.0.strip_suffix('*').filter(|prefix| prefix.ends_with('/'))
    }
}

impl fmt::Display for ResourceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl Borrow<str> for ResourceName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl From<&str> for ResourceName {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

/// One resource, encoded once.
///
/// Kept as the three pieces from which both variants of the protocol are put together without copying:
/// the `Any` and the two small headers that go before it, each a whole `resources` field (number 2) of its
/// response message.
#[derive(Clone, Debug)]
pub struct Resource {
    /// Its name.
    pub name: ResourceName,
    /// Its version.
    pub version: Version,
    any: Bytes,
    sotw_header: Bytes,
    delta_header: Bytes,
    links: Links,
}

/// The number of the repeated `resources` field, the same in `DiscoveryResponse` and `DeltaDiscoveryResponse`.
const RESOURCES_FIELD: u32 = 2;

impl Resource {
    /// Encodes a message of a served type, whose content last changed at `offset`.
    ///
    /// Messages with more than one entry in a protobuf map have no single encoding: keep maps out of them.
    #[must_use]
    pub fn encode<M: prost::Message + Served>(name: &str, offset: Offset, message: &M) -> Self {
        Self::new(M::TYPE_URL, ResourceName::new(name), offset, &message.encode_to_vec())
    }

    /// Wraps an encoded message of type `type_url`, whose content last changed at `offset`.
    #[must_use]
    pub fn new(type_url: TypeUrl, name: ResourceName, offset: Offset, message: &[u8]) -> Self {
        let any = encode_any(type_url, message);
        let version = Version { offset, digest: ContentDigest::of(&any) };
        let sotw_header = length_delimited(RESOURCES_FIELD, any.len());
        let delta_header = delta_header(&name, version, any.len());
        let links = Links::of(type_url, &name, message);
        Self { name, version, any, sotw_header, delta_header, links }
    }

    /// The encoded `google.protobuf.Any`.
    #[must_use]
    pub fn any(&self) -> &Bytes {
        &self.any
    }

    /// Its encoded message.
    #[must_use]
    pub fn message(&self) -> Vec<u8> {
        // An `Any` of ours, and so a whole one.
        Any::decode(self.any.as_ref()).unwrap_or_default().value
    }

    /// The pieces that, put one after the other, are this resource's field of a `DiscoveryResponse`.
    #[must_use]
    pub fn sotw_field(&self) -> [Bytes; 2] {
        [self.sotw_header.clone(), self.any.clone()]
    }

    /// The pieces that, put one after the other, are this resource's field of a `DeltaDiscoveryResponse`.
    #[must_use]
    pub fn delta_field(&self) -> [Bytes; 2] {
        [self.delta_header.clone(), self.any.clone()]
    }

    /// Who is sent it.
    #[must_use]
    pub const fn reach(&self) -> Reach {
        self.links.reach
    }

    /// The load assignment from which this cluster takes its endpoints; nothing for other resources.
    #[must_use]
    pub const fn assignment(&self) -> Option<&ResourceName> {
        self.links.assignment.as_ref()
    }

    /// The collection that this endpoint is in, by the name that a client gives to have all of it; nothing for other
    /// resources.
    #[must_use]
    pub const fn collection(&self) -> Option<&ResourceName> {
        self.links.collection.as_ref()
    }

    /// How many bytes either field takes, at most.
    #[must_use]
    pub fn field_bytes(&self) -> usize {
        self.delta_header.len() + self.any.len()
    }
}

/// A message type that is served as resources.
pub trait Served {
    /// Its type.
    const TYPE_URL: TypeUrl;
}

impl Served for envoy_types::pb::envoy::config::cluster::v3::Cluster {
    const TYPE_URL: TypeUrl = TypeUrl::Cluster;
}

impl Served for envoy_types::pb::envoy::config::endpoint::v3::ClusterLoadAssignment {
    const TYPE_URL: TypeUrl = TypeUrl::ClusterLoadAssignment;
}

impl Served for envoy_types::pb::envoy::config::endpoint::v3::LbEndpoint {
    const TYPE_URL: TypeUrl = TypeUrl::LbEndpoint;
}

impl Served for envoy_types::pb::envoy::config::listener::v3::Listener {
    const TYPE_URL: TypeUrl = TypeUrl::Listener;
}

impl Served for envoy_types::pb::envoy::config::route::v3::RouteConfiguration {
    const TYPE_URL: TypeUrl = TypeUrl::RouteConfiguration;
}

impl PartialEq for Resource {
    /// Equal versions mean equal bytes.
    fn eq(&self, other: &Self) -> bool {
        self.version == other.version && self.name == other.name
    }
}

impl Eq for Resource {}

fn encode_any(type_url: TypeUrl, message: &[u8]) -> Bytes {
    let mut any = BytesMut::new();
    put_field(&mut any, 1, type_url.as_str().as_bytes());
    put_field(&mut any, 2, message);
    any.freeze()
}

/// `Resource{version: 1, resource: 2, name: 3}` as a field, up to where the `Any` goes: protobuf allows fields in
/// any order, so the `Any` is put last.
fn delta_header(name: &ResourceName, version: Version, any_bytes: usize) -> Bytes {
    let mut inner = BytesMut::new();
    put_field(&mut inner, 3, name.as_str().as_bytes());
    put_field(&mut inner, 1, version.to_string().as_bytes());
    inner.put(length_delimited(2, any_bytes));
    let mut header = BytesMut::from(length_delimited(RESOURCES_FIELD, inner.len() + any_bytes).as_ref());
    header.put(inner);
    header.freeze()
}

fn put_field(buffer: &mut BytesMut, field: u32, content: &[u8]) {
    buffer.put(length_delimited(field, content.len()));
    buffer.put(content);
}

fn length_delimited(field: u32, length: usize) -> Bytes {
    let length = length as u64;
    let mut header = BytesMut::with_capacity(key_len(field) + encoded_len_varint(length));
    encode_key(field, WireType::LengthDelimited, &mut header);
    encode_varint(length, &mut header);
    header.freeze()
}

#[cfg(test)]
mod tests {
    use envoy_types::pb::envoy::config::cluster::v3::Cluster;
    use envoy_types::pb::envoy::service::discovery::v3::{DeltaDiscoveryResponse, DiscoveryResponse};
    use prost::Message;

    use super::*;

    #[test]
    fn the_pieces_are_fields_of_both_responses() {
        let cluster = Cluster { name: "web".into(), ..Cluster::default() };
        let resource =
            Resource::new(TypeUrl::Cluster, "web".into(), Offset::new(7), &cluster.encode_to_vec());

        let sotw = DiscoveryResponse::decode(resource.sotw_field().concat().as_slice()).unwrap();
        assert_eq!(sotw.resources[0].type_url, TypeUrl::Cluster.as_str());
        assert_eq!(Cluster::decode(sotw.resources[0].value.as_slice()).unwrap(), cluster);

        let delta = DeltaDiscoveryResponse::decode(resource.delta_field().concat().as_slice()).unwrap();
        assert_eq!(delta.resources[0].name, "web");
        assert_eq!(delta.resources[0].version, resource.version.to_string());
        assert_eq!(delta.resources[0].resource.as_ref(), Some(&sotw.resources[0]));
    }
}

//! What is sent: shared resources under a small header.

use std::sync::Arc;

use crate::projection::resources::{Resource, ResourceName, TypeUrl, Version};

/// No response is larger where it can be split: gRPC clients reset a stream that sends more than 4 MiB, come back,
/// and get the same again (xds-rules 23). What is left to 4 MiB is for the header.
pub const RESPONSE_BYTES_MAX: usize = (4 << 20) - (16 << 10);

/// The type that a response is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResponseType {
    /// One that is served.
    Served(TypeUrl),
    /// One that is not, answered with nothing so that its client need not wait (xds-rules 13).
    Unserved(Arc<str>),
}

impl ResponseType {
    /// The URL as it stands on the wire.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Served(type_url) => type_url.as_str(),
            Self::Unserved(url) => url,
        }
    }
}

/// One message to a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// What it is about.
    pub type_url: ResponseType,
    /// Its number on this stream, which the client's answer repeats.
    pub nonce: String,
    /// The version of the whole set.
    pub version: Version,
    /// New and changed resources, or all of them, as type and variant demand.
    pub resources: Vec<Arc<Resource>>,
    /// Delta only: names that the client must drop, or that do not exist.
    pub removed: Vec<ResourceName>,
}

impl Response {
    /// How many bytes its resources and names take.
    #[must_use]
    pub fn content_bytes(&self) -> usize {
        let resources: usize = self.resources.iter().map(|resource| resource.field_bytes()).sum();
        let removed: usize = self.removed.iter().map(name_bytes).sum();
        resources + removed
    }
}

/// What a name takes in `removed_resources`, at most: key, length and text.
pub(super) fn name_bytes(name: &ResourceName) -> usize {
    const KEY_AND_LENGTH: usize = 6;
    name.as_str().len() + KEY_AND_LENGTH
}

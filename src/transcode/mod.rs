//! ENVOY'S JSON: resources as people write them and Envoy prints them, to the bytes that are served, and back.
//!
//! This is the JSON mapping of protobuf: `@type` beside the fields of what an `Any` holds, field names in snake_case or
//! lowerCamelCase, durations such as `0.25s`. The messages that are known are those of `descriptors.bin`, which
//! `tests/xds/descriptors.rs` makes from the protos of our own messages.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

mod canonical;
mod read;
mod write;

use std::sync::LazyLock;

use prost_reflect::{DescriptorPool, MessageDescriptor};

pub use read::{Invalid, Written, discovery_request, resource};
pub use write::{Unreadable, resource_as_json};

use crate::events::ResourceKind;
use crate::projection::resources::TypeUrl;

/// Every message that is known.
static POOL: LazyLock<DescriptorPool> = LazyLock::new(|| {
    DescriptorPool::decode(&include_bytes!("descriptors.bin")[..]).expect("a test holds that they are whole")
});

/// What a resource of this kind is made of.
fn descriptor(kind: ResourceKind) -> MessageDescriptor {
    let name = TypeUrl::from(kind).message_name();
    POOL.get_message_by_name(name).expect("a test holds that each served type is among them")
}

#[cfg(test)]
mod tests;

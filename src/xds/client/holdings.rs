//! What a client wants and holds of one type.

use std::collections::{BTreeMap, BTreeSet};

use envoy_types::pb::envoy::service::discovery::v3::{DeltaDiscoveryResponse, DiscoveryResponse};
use envoy_types::pb::google::protobuf::Any;
use prost::Message;

/// A resource as a client has it.
#[derive(Clone, Debug, PartialEq)]
pub struct Held {
    /// Its version: its own in delta, that of the set in state of the world.
    pub version: String,
    /// The encoded message.
    pub message: Vec<u8>,
}

/// One response.
#[derive(Clone, Debug, PartialEq)]
pub struct Update {
    /// What it is about.
    pub type_url: String,
    /// The version of the whole set.
    pub version: String,
    /// What the answer repeats.
    pub nonce: String,
    /// What it brings, by name.
    pub resources: BTreeMap<String, Held>,
    /// What it takes away.
    pub removed: Vec<String>,
    /// How large it is, in bytes.
    pub bytes: usize,
}

/// Every served type has its name in its first field.
#[derive(Clone, PartialEq, Message)]
struct Named {
    #[prost(string, tag = "1")]
    name: String,
}

impl From<DiscoveryResponse> for Update {
    fn from(response: DiscoveryResponse) -> Self {
        let bytes = response.encoded_len();
        let version = response.version_info;
        let named = |any: Any| {
            let name = Named::decode(any.value.as_slice()).unwrap_or_default().name;
            (name, Held { version: version.clone(), message: any.value })
        };
        Self {
            resources: response.resources.into_iter().map(named).collect(),
            type_url: response.type_url,
            nonce: response.nonce,
            removed: Vec::new(),
            version,
            bytes,
        }
    }
}

impl From<DeltaDiscoveryResponse> for Update {
    fn from(response: DeltaDiscoveryResponse) -> Self {
        let bytes = response.encoded_len();
        let resources = response.resources.into_iter().map(|resource| {
            let message = resource.resource.unwrap_or_default().value;
            (resource.name, Held { version: resource.version, message })
        });
        Self {
            resources: resources.collect(),
            type_url: response.type_url,
            version: response.system_version_info,
            nonce: response.nonce,
            removed: response.removed_resources,
            bytes,
        }
    }
}

/// What the absence of a resource means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    /// It is gone.
    Whole,
    /// Nothing.
    Parts,
}

#[derive(Debug, Default)]
pub(super) struct Holdings {
    wanted: BTreeSet<String>,
    pub(super) held: BTreeMap<String, Held>,
    pub(super) version: String,
    pub(super) nonce: String,
}

impl Holdings {
    pub(super) fn want(&mut self, names: &[String]) {
        self.wanted.extend(names.iter().cloned());
    }

    pub(super) fn leave(&mut self, names: &[String]) {
        self.wanted.retain(|name| !names.contains(name));
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.wanted.iter().cloned().collect()
    }

    /// Starts a new stream: gives the names to ask for, and what is held, by version.
    pub(super) fn reopened(&mut self) -> (Vec<String>, BTreeMap<String, String>) {
        self.nonce.clear();
        let versions = self.held.iter().map(|(name, held)| (name.clone(), held.version.clone()));
        (self.names(), versions.collect())
    }

    /// Takes in an update.
    pub(super) fn take(&mut self, update: &Update, reading: Reading) {
        if reading == Reading::Whole {
            self.held.clear();
        }
        self.held.extend(update.resources.clone());
        for name in &update.removed {
            self.held.remove(name);
        }
        self.version.clone_from(&update.version);
        self.nonce.clone_from(&update.nonce);
    }
}

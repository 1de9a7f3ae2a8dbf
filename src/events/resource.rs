//! Resources that an operator brings: which they are, and their bytes. Variants are appended, never moved.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A kind of resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ResourceKind {
    /// A group of endpoints, and how to talk to them.
    Cluster,
    /// The endpoints of a cluster.
    ClusterLoadAssignment,
    /// Where a proxy listens, or what a proxyless client asks for.
    Listener,
    /// Which requests go to which cluster.
    RouteConfiguration,
}

impl ResourceKind {
    /// Every kind.
    pub const ALL: [Self; 4] =
        [Self::Cluster, Self::ClusterLoadAssignment, Self::Listener, Self::RouteConfiguration];

    /// The word that people use.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Cluster => "cluster",
            Self::ClusterLoadAssignment => "endpoints",
            Self::Listener => "listener",
            Self::RouteConfiguration => "route",
        }
    }

    /// The three letters of its service, which people use as well.
    const fn service(self) -> &'static str {
        match self {
            Self::Cluster => "cds",
            Self::ClusterLoadAssignment => "eds",
            Self::Listener => "lds",
            Self::RouteConfiguration => "rds",
        }
    }
}

impl fmt::Display for ResourceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A word that is no kind of resource.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no kind of resource: give cluster, endpoints, listener or route")]
pub struct InvalidKind(String);

impl FromStr for ResourceKind {
    type Err = InvalidKind;

    /// `cluster`, `clusters` and `CDS` are the same.
    fn from_str(text: &str) -> Result<Self, InvalidKind> {
        let word = text.to_ascii_lowercase();
        let singular = word.strip_suffix('s').unwrap_or(&word);
        let means = |kind: &Self| {
            kind.as_str().strip_suffix('s').unwrap_or(kind.as_str()) == singular || kind.service() == word
        };
        Self::ALL.into_iter().find(means).ok_or_else(|| InvalidKind(text.chars().take(40).collect()))
    }
}

/// Which resource: names are unique within a kind. Printed `cluster/web`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ResourceKey {
    /// Of which kind.
    pub kind: ResourceKind,
    /// Its name.
    pub name: String,
}

impl fmt::Display for ResourceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.kind, self.name)
    }
}

/// The encoded message of a resource, exactly as it is served. Cheap to clone; base64 where people read it.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageBytes(Arc<[u8]>);

impl MessageBytes {
    /// The bytes.
    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        &self.0
    }
}

impl From<Vec<u8>> for MessageBytes {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes.into())
    }
}

impl fmt::Debug for MessageBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MessageBytes({})", BASE64_STANDARD.encode(&self.0))
    }
}

impl Serialize for MessageBytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            serializer.serialize_str(&BASE64_STANDARD.encode(&self.0))
        } else {
            self.0.serialize(serializer)
        }
    }
}

impl<'de> Deserialize<'de> for MessageBytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if !deserializer.is_human_readable() {
            return Vec::deserialize(deserializer).map(Self::from);
        }
        let text = String::deserialize(deserializer)?;
        BASE64_STANDARD.decode(text).map(Self::from).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_has_a_few_spellings_and_no_others() {
        for (text, kind) in [
            ("cluster", ResourceKind::Cluster),
            ("Clusters", ResourceKind::Cluster),
            ("EDS", ResourceKind::ClusterLoadAssignment),
            ("endpoint", ResourceKind::ClusterLoadAssignment),
            ("endpoints", ResourceKind::ClusterLoadAssignment),
            ("lds", ResourceKind::Listener),
            ("routes", ResourceKind::RouteConfiguration),
        ] {
            assert_eq!(text.parse(), Ok(kind), "{text}");
        }
        for text in ["", "s", "secret", "cd", "clusterss"] {
            assert!(text.parse::<ResourceKind>().is_err(), "{text}");
        }
    }

    #[test]
    fn bytes_are_text_for_people() {
        let bytes = MessageBytes::from(vec![0, 255, 16]);
        let text = serde_json::to_string(&bytes).unwrap();
        assert_eq!(text, "\"AP8Q\"");
        assert_eq!(serde_json::from_str::<MessageBytes>(&text).unwrap(), bytes);
        assert!(serde_json::from_str::<MessageBytes>("\"?\"").is_err());
    }
}

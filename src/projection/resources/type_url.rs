//! The resource types, in the order in which they are sent.

use std::fmt;

use crate::events::ResourceKind;

/// A resource type that is served. The order is make-before-break: new clusters, their endpoints, listeners,
/// routes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TypeUrl {
    /// CDS.
    Cluster,
    /// EDS.
    ClusterLoadAssignment,
    /// LEDS: the endpoints of an assignment one by one. In delta only.
    LbEndpoint,
    /// LDS.
    Listener,
    /// RDS.
    RouteConfiguration,
}

/// What every URL of a type starts with.
const HOST: &str = "type.googleapis.com/";

impl TypeUrl {
    /// Every type, in send order.
    pub const ALL: [Self; 5] = [
        Self::Cluster,
        Self::ClusterLoadAssignment,
        Self::LbEndpoint,
        Self::Listener,
        Self::RouteConfiguration,
    ];

    /// The URL as it stands on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Cluster => "type.googleapis.com/envoy.config.cluster.v3.Cluster",
            Self::ClusterLoadAssignment => {
                "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"
            }
            Self::LbEndpoint => "type.googleapis.com/envoy.config.endpoint.v3.LbEndpoint",
            Self::Listener => "type.googleapis.com/envoy.config.listener.v3.Listener",
            Self::RouteConfiguration => "type.googleapis.com/envoy.config.route.v3.RouteConfiguration",
        }
    }

    /// The type with this URL, if it is served.
    #[must_use]
    pub fn from_url(url: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.as_str() == url)
    }

    /// The name of its message, with its package.
    #[must_use]
    pub const fn message_name(self) -> &'static str {
        self.as_str().split_at(HOST.len()).1
    }

    /// The short name that people use: `CDS`, `EDS`, `LEDS`, `LDS`, `RDS`.
    #[must_use]
    pub const fn short(self) -> &'static str {
        match self {
            Self::Cluster => "CDS",
            Self::ClusterLoadAssignment => "EDS",
            Self::LbEndpoint => "LEDS",
            Self::Listener => "LDS",
            Self::RouteConfiguration => "RDS",
        }
    }

    /// Whether a client may ask for all resources of this type without naming them (xds-rules 12).
    #[must_use]
    pub const fn has_wildcard(self) -> bool {
        matches!(self, Self::Cluster | Self::Listener)
    }
}

impl From<ResourceKind> for TypeUrl {
    fn from(kind: ResourceKind) -> Self {
        match kind {
            ResourceKind::Cluster => Self::Cluster,
            ResourceKind::ClusterLoadAssignment => Self::ClusterLoadAssignment,
            ResourceKind::Listener => Self::Listener,
            ResourceKind::RouteConfiguration => Self::RouteConfiguration,
        }
    }
}

impl fmt::Display for TypeUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.short())
    }
}

//! The two variants of the protocol.

use crate::projection::resources::{ResourceSet, Resources, TypeUrl};

/// Which of the two variants of the protocol a stream speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Variant {
    /// State of the world.
    Sotw,
    /// Delta, also called incremental.
    Delta,
}

impl Variant {
    /// Whether this type is served in it. Collections are followed in delta only (xds-rules 35).
    pub(super) const fn has(self, type_url: TypeUrl) -> bool {
        match (self, type_url) {
            (Self::Sotw, TypeUrl::LbEndpoint) => false,
            (
                Self::Sotw | Self::Delta,
                TypeUrl::Cluster
                | TypeUrl::ClusterLoadAssignment
                | TypeUrl::LbEndpoint
                | TypeUrl::Listener
                | TypeUrl::RouteConfiguration,
            ) => true,
        }
    }

    /// The resources of a type as streams of this variant get them.
    #[must_use]
    pub fn of(self, resources: &Resources, type_url: TypeUrl) -> &ResourceSet {
        match self {
            Self::Sotw => resources.of(type_url),
            Self::Delta => resources.delta_of(type_url),
        }
    }
}

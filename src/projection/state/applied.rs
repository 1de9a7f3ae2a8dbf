//! What an operator brought.

use serde::{Deserialize, Serialize};

use crate::events::{MessageBytes, Offset};
use crate::projection::resources::TypeUrl;

/// A resource that an operator applied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Applied {
    /// What clients are sent.
    pub message: MessageBytes,
    /// Where what clients are sent under this name last changed: the offset of its version.
    pub changed: Offset,
}

/// A resource made from workers came back from behind one that an operator applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restored {
    /// Where it came back.
    pub at: Offset,
    /// Where what clients are sent under this name last changed, as long as it has not changed since.
    pub changed: Offset,
}

/// Where the resources of each type last changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::projection) struct LastChanges {
    clusters: Offset,
    assignments: Offset,
    collections: Offset,
    listeners: Offset,
    routes: Offset,
}

impl LastChanges {
    pub(in crate::projection) const fn of(&self, type_url: TypeUrl) -> Offset {
        match type_url {
            TypeUrl::Cluster => self.clusters,
            TypeUrl::ClusterLoadAssignment => self.assignments,
            TypeUrl::LbEndpoint => self.collections,
            TypeUrl::Listener => self.listeners,
            TypeUrl::RouteConfiguration => self.routes,
        }
    }

    /// A resource of this type changed at `offset`; an older one says nothing new.
    pub(in crate::projection) fn advance(&mut self, type_url: TypeUrl, offset: Offset) {
        let last = match type_url {
            TypeUrl::Cluster => &mut self.clusters,
            TypeUrl::ClusterLoadAssignment => &mut self.assignments,
            TypeUrl::LbEndpoint => &mut self.collections,
            TypeUrl::Listener => &mut self.listeners,
            TypeUrl::RouteConfiguration => &mut self.routes,
        };
        *last = offset.max(*last);
    }
}

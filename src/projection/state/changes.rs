//! Where what clients are told last changed.

use serde::{Deserialize, Serialize};

use crate::events::Offset;
use crate::events::event::EndpointAddress;
use crate::projection::resources::{Dials, TypeUrl};

/// Where something that clients are told last changed, as those see it who dial everything, and those who do not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changes {
    everything: Offset,
    ip_only: Offset,
}

impl Changes {
    /// There, for all.
    #[must_use]
    pub const fn at(offset: Offset) -> Self {
        Self { everything: offset, ip_only: offset }
    }

    /// Where it changed for those who dial so.
    #[must_use]
    pub const fn of(self, dials: Dials) -> Offset {
        match dials {
            Dials::Everything => self.everything,
            Dials::IpOnly => self.ip_only,
        }
    }

    /// What `change` makes of each.
    pub(in crate::projection) fn map(self, change: impl Fn(Dials, Offset) -> Offset) -> Self {
        Self {
            everything: change(Dials::Everything, self.everything),
            ip_only: change(Dials::IpOnly, self.ip_only),
        }
    }

    /// What is told of an endpoint at this address changed at `offset`.
    pub(in crate::projection) fn touch(&mut self, address: &EndpointAddress, offset: Offset) {
        *self = self.map(|dials, last| if dials.reaches(address) { offset.max(last) } else { last });
    }

    /// It changed there; an older change says nothing new.
    fn advance(&mut self, other: Self) {
        *self = self.map(|dials, last| other.of(dials).max(last));
    }
}

/// Where the resources of each type last changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::projection) struct LastChanges {
    clusters: Changes,
    assignments: Changes,
    collections: Changes,
    listeners: Changes,
    routes: Changes,
}

impl LastChanges {
    pub(in crate::projection) const fn of(&self, type_url: TypeUrl) -> Changes {
        match type_url {
            TypeUrl::Cluster => self.clusters,
            TypeUrl::ClusterLoadAssignment => self.assignments,
            TypeUrl::LbEndpoint => self.collections,
            TypeUrl::Listener => self.listeners,
            TypeUrl::RouteConfiguration => self.routes,
        }
    }

    /// A resource of this type changed there; an older change says nothing new.
    pub(in crate::projection) fn advance(&mut self, type_url: TypeUrl, changes: Changes) {
        let last = match type_url {
            TypeUrl::Cluster => &mut self.clusters,
            TypeUrl::ClusterLoadAssignment => &mut self.assignments,
            TypeUrl::LbEndpoint => &mut self.collections,
            TypeUrl::Listener => &mut self.listeners,
            TypeUrl::RouteConfiguration => &mut self.routes,
        };
        last.advance(changes);
    }
}

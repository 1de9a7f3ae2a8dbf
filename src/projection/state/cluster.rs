//! What is published under one cluster name.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use imbl::OrdMap;
use serde::{Deserialize, Serialize};

use super::Changes;
use crate::events::event::{ClusterPolicy, EndpointAddress, Locality, Protocol};
use crate::events::{Offset, PortName, ResourceKind, ServiceName, WorkerKey};
use crate::projection::HealthStatus;

/// A cluster lives as long as a live worker has an endpoint for it, published or not; one of a declared port, as long
/// as the declaration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cluster {
    /// Which service.
    pub service: ServiceName,
    /// The ports whose endpoints are in it, with how many of each.
    pub ports: BTreeMap<PortName, u32>,
    /// What is spoken there.
    pub protocol: Protocol,
    /// How clients are to use it.
    pub policy: ClusterPolicy,
    /// Where it appeared, or its own attributes last changed: the offset of its CDS version.
    pub changed: Offset,
    /// Where the way to it for proxyless gRPC appeared, if there is one: the offset of its LDS and RDS versions.
    pub routed: Option<Offset>,
    /// Where what is published of its members last changed: the offset of its EDS version.
    pub endpoints_changed: Changes,
    /// Where its collections began, if delta streams get its endpoints one by one: a part of their names. They begin anew
    /// with each change of the cluster and each start of the control plane (xds-rules 35).
    pub collection: Option<Offset>,
    /// How many endpoints have left since then.
    pub departed: u32,
    /// Where the priorities and localities of what is published last changed.
    pub groups_changed: Offset,
    /// Its members by address, so that none can be listed twice (grpc/grpc-go#5710).
    pub members: OrdMap<EndpointAddress, Member>,
}

impl Cluster {
    /// Where the resource of this kind that is made of it last changed, if there is one.
    #[must_use]
    pub fn last_change(&self, kind: ResourceKind) -> Option<Changes> {
        match kind {
            ResourceKind::Cluster => Some(Changes::at(self.changed)),
            ResourceKind::ClusterLoadAssignment => Some(self.endpoints_changed),
            ResourceKind::Listener | ResourceKind::RouteConfiguration => self.routed.map(Changes::at),
        }
    }

    /// Whether a member listens where not every client can dial. They sort behind all others.
    pub(in crate::projection) fn has_paths(&self) -> bool {
        self.members.get_max().is_some_and(|(address, _)| matches!(address, EndpointAddress::Unix(_)))
    }
}

/// One address of a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// Whose it is.
    pub worker: WorkerKey,
    /// Which of the worker's ports it is.
    pub port: PortName,
    /// What clients are told of it, if anything.
    pub published: Option<Published>,
    /// Where that last changed.
    pub changed: Offset,
}

/// Everything that clients are told of an endpoint beside its address.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Published {
    /// 0 is used first.
    pub priority: u32,
    /// Where it stands.
    pub locality: Locality,
    /// Whether it should get requests.
    pub health: HealthStatus,
    /// Its share of the load within its locality.
    pub weight: Option<NonZeroU32>,
}

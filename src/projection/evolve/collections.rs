//! When collections of endpoints change, and when they begin anew (xds-rules 35).

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::events::event::{ClusterPolicy, Delivery, Locality, LocalityWeighting};
use crate::events::{Offset, ResourceKey, ResourceKind};
use crate::projection::ClusterName;
use crate::projection::resources::TypeUrl;
use crate::projection::state::{Changes, Cluster, Published, State};

/// How many endpoints may leave a collection before it begins anew: they are told to everybody who comes.
const DEPARTED_MAX: u32 = 4096;

/// The priorities and localities of what is published.
pub(super) type Groups = BTreeSet<(u32, Locality)>;

/// Whether delta streams get endpoints one by one. Not where localities are weighted: their weights are made of their
/// endpoints, and the assignment would change with each of them.
pub(super) fn is_collected(policy: &ClusterPolicy) -> bool {
    policy.delivery == Delivery::Leds && policy.locality_weighting == LocalityWeighting::Off
}

/// How the endpoints of a cluster are grouped, where it has collections.
pub(super) fn groups(cluster: &Cluster) -> Option<Groups> {
    cluster.collection?;
    let published = cluster.members.values().filter_map(|member| member.published.as_ref());
    Some(published.map(|published| (published.priority, published.locality.clone())).collect())
}

/// Takes in that clients are told something else of one endpoint, of which they were told `was`.
pub(super) fn note(cluster: &mut Cluster, grouped: Option<&Groups>, was: Option<&Published>, offset: Offset) {
    if grouped != groups(cluster).as_ref() {
        cluster.groups_changed = offset;
    }
    cluster.departed = cluster.departed.saturating_add(u32::from(was.is_some()));
    if cluster.departed > DEPARTED_MAX {
        begin(cluster, offset);
    }
}

/// The collections of a cluster begin anew, or for the first time.
pub(super) fn begin(cluster: &mut Cluster, offset: Offset) {
    cluster.collection = Some(offset);
    cluster.departed = 0;
}

/// All collections begin anew.
pub(super) fn begin_all(state: &mut State) {
    let offset = state.offset;
    let collected = state.clusters.iter().filter(|(_, cluster)| cluster.collection.is_some());
    let names: Vec<ClusterName> = collected.map(|(name, _)| name.clone()).collect();
    for name in names {
        if let Some(cluster) = state.clusters.get_mut(name.as_str()) {
            begin(Arc::make_mut(cluster), offset);
            if !state.applied.contains_key(&assignment_of(name.as_str())) {
                state.changed.advance(TypeUrl::LbEndpoint, Changes::at(offset));
            }
        }
    }
}

/// An operator applied an assignment, or took it away: it hides the collections of the cluster, which begin anew behind it.
pub(super) fn uncover(state: &mut State, name: &str) {
    let offset = state.offset;
    if let Some(cluster) = state.clusters.get_mut(name).filter(|cluster| cluster.collection.is_some()) {
        begin(Arc::make_mut(cluster), offset);
        state.changed.advance(TypeUrl::LbEndpoint, Changes::at(offset));
    }
}

fn assignment_of(name: &str) -> ResourceKey {
    ResourceKey { kind: ResourceKind::ClusterLoadAssignment, name: name.to_owned() }
}

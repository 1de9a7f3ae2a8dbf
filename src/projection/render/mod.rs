//! From a state to what clients are sent. The same state gives the same bytes, everywhere and for ever.

mod clusters;
mod collections;
mod endpoints;
mod weights;

use std::sync::Arc;

use imbl::ordmap::DiffItem;

use super::resources::{NodeViews, Resource, ResourceName, Resources, ResourcesBuilder, TypeUrl, builders};
use super::state::{Cluster, ClusterName, State};
use crate::events::Offset;

/// The types that lead proxyless gRPC to a cluster.
const WAYS: [TypeUrl; 2] = [TypeUrl::Listener, TypeUrl::RouteConfiguration];

/// The resources of `next`, made from those of `earlier`. Costs what changed between the two.
pub(super) fn render(earlier: (&State, &Resources), next: &State) -> Resources {
    let (earlier_state, earlier_resources) = earlier;
    let mut resources = earlier_resources.builder(next.offset());
    for item in earlier_state.clusters().diff(next.clusters()) {
        match item {
            DiffItem::Add(name, cluster) => {
                put_collections(&mut resources, name, (None, Some(cluster)), next);
                put_cluster(&mut resources, name, cluster);
                put_way(&mut resources, name, cluster.routed);
                put_endpoints(&mut resources, name, cluster);
            }
            DiffItem::Update { old: (_, old), new: (name, cluster) } => {
                put_collections(&mut resources, name, (Some(old), Some(cluster)), next);
                if old.changed != cluster.changed {
                    put_cluster(&mut resources, name, cluster);
                }
                match (old.routed, cluster.routed) {
                    (Some(_), None) => take_way(&mut resources, name, next.routes_changed()),
                    (earlier, now) if earlier != now => put_way(&mut resources, name, now),
                    (Some(_) | None, _) => {}
                }
                if old.endpoints_changed != cluster.endpoints_changed {
                    put_endpoints(&mut resources, name, cluster);
                }
            }
            DiffItem::Remove(name, old) => {
                put_collections(&mut resources, name, (Some(old), None), next);
                take_way(&mut resources, name, next.routes_changed());
                let name = ResourceName::new(name.as_str());
                resources.of(TypeUrl::Cluster).remove(&name, next.clusters_changed());
                resources.of(TypeUrl::ClusterLoadAssignment).remove(&name, next.endpoints_changed());
            }
        }
    }
    resources.of(TypeUrl::Cluster).changed_at(next.clusters_changed());
    for type_url in WAYS {
        resources.of(type_url).changed_at(next.routes_changed());
    }
    if earlier_state.views_changed() != next.views_changed() {
        resources.set_views(NodeViews::new(next.views_changed(), next.views().clone()));
    }
    resources.of(TypeUrl::ClusterLoadAssignment).changed_at(next.endpoints_changed());
    resources.of(TypeUrl::LbEndpoint).changed_at(next.collections_changed());
    resources.build()
}

/// The endpoints of a cluster one by one, where they are or were delivered so.
fn put_collections(
    resources: &mut ResourcesBuilder,
    name: &ClusterName,
    (old, new): (Option<&Arc<Cluster>>, Option<&Arc<Cluster>>),
    next: &State,
) {
    let (old, new) = (old.map(AsRef::as_ref), new.map(AsRef::as_ref));
    if [old, new].into_iter().flatten().any(|cluster| cluster.collection.is_some()) {
        collections::update(resources, name, (old, new), next.collections_changed());
    }
}

fn put_cluster(resources: &mut ResourcesBuilder, name: &ClusterName, cluster: &Cluster) {
    let resource = Resource::encode(name.as_str(), cluster.changed, &clusters::message(name, cluster));
    resources.of(TypeUrl::Cluster).insert(resource);
}

/// The way to a cluster that proxyless gRPC takes.
fn put_way(resources: &mut ResourcesBuilder, name: &ClusterName, routed: Option<Offset>) {
    let (Some(offset), text) = (routed, name.as_str()) else { return };
    let listener = Resource::encode(text, offset, &builders::api_listener(text, text));
    resources.of(TypeUrl::Listener).insert(listener);
    let route = Resource::encode(text, offset, &builders::route(text, text));
    resources.of(TypeUrl::RouteConfiguration).insert(route);
}

fn take_way(resources: &mut ResourcesBuilder, name: &ClusterName, offset: Offset) {
    for type_url in WAYS {
        resources.of(type_url).remove(&ResourceName::new(name.as_str()), offset);
    }
}

fn put_endpoints(resources: &mut ResourcesBuilder, name: &ClusterName, cluster: &Cluster) {
    let message = endpoints::message(name, cluster);
    resources.of(TypeUrl::ClusterLoadAssignment).insert(Resource::encode(
        name.as_str(),
        cluster.endpoints_changed,
        &message,
    ));
}

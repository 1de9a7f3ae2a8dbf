//! From a state to what clients are sent. The same state gives the same bytes, everywhere and for ever.

mod endpoints;
mod weights;

use imbl::ordmap::DiffItem;

use super::resources::{Resource, ResourceName, Resources, ResourcesBuilder, TypeUrl, builders};
use super::state::{Cluster, ClusterName, State};

/// The types of which each cluster has a resource that comes, changes and goes with it.
const WITH_THE_CLUSTER: [TypeUrl; 3] = [TypeUrl::Cluster, TypeUrl::Listener, TypeUrl::RouteConfiguration];

/// The resources of `next`, made from those of `earlier`. Costs what changed between the two.
pub(super) fn render(earlier: (&State, &Resources), next: &State) -> Resources {
    let (earlier_state, earlier_resources) = earlier;
    let mut resources = earlier_resources.builder(next.offset());
    for item in earlier_state.clusters().diff(next.clusters()) {
        match item {
            DiffItem::Add(name, cluster) => {
                put_cluster(&mut resources, name, cluster);
                put_endpoints(&mut resources, name, cluster);
            }
            DiffItem::Update { old: (_, old), new: (name, cluster) } => {
                if old.changed != cluster.changed {
                    put_cluster(&mut resources, name, cluster);
                }
                if old.endpoints_changed != cluster.endpoints_changed {
                    put_endpoints(&mut resources, name, cluster);
                }
            }
            DiffItem::Remove(name, _) => {
                let name = ResourceName::new(name.as_str());
                for type_url in WITH_THE_CLUSTER {
                    resources.of(type_url).remove(&name, next.clusters_changed());
                }
                resources.of(TypeUrl::ClusterLoadAssignment).remove(&name, next.endpoints_changed());
            }
        }
    }
    for type_url in WITH_THE_CLUSTER {
        resources.of(type_url).changed_at(next.clusters_changed());
    }
    resources.of(TypeUrl::ClusterLoadAssignment).changed_at(next.endpoints_changed());
    resources.build()
}

/// A cluster and the way to it that proxyless gRPC takes.
fn put_cluster(resources: &mut ResourcesBuilder, name: &ClusterName, cluster: &Cluster) {
    let (text, offset) = (name.as_str(), cluster.changed);
    resources.of(TypeUrl::Cluster).insert(Resource::encode(text, offset, &builders::cluster(text)));
    resources.of(TypeUrl::Listener).insert(Resource::encode(
        text,
        offset,
        &builders::api_listener(text, text),
    ));
    resources.of(TypeUrl::RouteConfiguration).insert(Resource::encode(
        text,
        offset,
        &builders::route(text, text),
    ));
}

fn put_endpoints(resources: &mut ResourcesBuilder, name: &ClusterName, cluster: &Cluster) {
    let message = endpoints::message(name, cluster);
    resources.of(TypeUrl::ClusterLoadAssignment).insert(Resource::encode(
        name.as_str(),
        cluster.endpoints_changed,
        &message,
    ));
}

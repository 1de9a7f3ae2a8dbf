//! From a state to what clients are sent. The same state gives the same bytes, everywhere and for ever.

mod clusters;
mod collections;
mod endpoints;
mod weights;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use imbl::ordmap::DiffItem;
use prost::Message;

use super::ClusterName;
use super::resources::{NodeViews, Resource, ResourceName, Resources, ResourcesBuilder, TypeUrl, builders};
use super::state::{Cluster, State};
use crate::events::{Offset, ResourceKey, ResourceKind};

/// The kinds that lead proxyless gRPC to a cluster.
pub(super) const WAYS: [ResourceKind; 2] = [ResourceKind::Listener, ResourceKind::RouteConfiguration];

/// What clients are sent under one name.
pub(super) struct Published<'a> {
    pub(super) message: Cow<'a, [u8]>,
    /// The offset of its version.
    pub(super) changed: Offset,
}

/// What clients are sent under this name: what an operator applied, or else what is made of workers.
pub(super) fn published<'a>(state: &'a State, key: &ResourceKey) -> Option<Published<'a>> {
    match state.applied().get(key) {
        Some(applied) => {
            Some(Published { message: applied.message.as_slice().into(), changed: applied.changed })
        }
        None => rendered(state, key),
    }
}

/// What is made of workers under this name.
pub(super) fn rendered(state: &State, key: &ResourceKey) -> Option<Published<'static>> {
    let (name, cluster) = state.clusters().get_key_value(key.name.as_str())?;
    let changed = cluster.last_change(key.kind)?;
    let restored = state.restored.get(key).filter(|restored| changed <= restored.at);
    let changed = restored.map_or(changed, |restored| restored.changed);
    Some(Published { message: message(key.kind, name, cluster).into(), changed })
}

/// A cluster, its endpoints, and the way to it that proxyless gRPC takes.
fn message(kind: ResourceKind, name: &ClusterName, cluster: &Cluster) -> Vec<u8> {
    let text = name.as_str();
    match kind {
        ResourceKind::Cluster => clusters::message(name, cluster).encode_to_vec(),
        ResourceKind::ClusterLoadAssignment => endpoints::message(name, cluster).encode_to_vec(),
        ResourceKind::Listener => builders::api_listener(text, text).encode_to_vec(),
        ResourceKind::RouteConfiguration => builders::route(text, text).encode_to_vec(),
    }
}

/// The resources of `next`, made from those of `earlier`. Costs what changed between the two.
pub(super) fn render(earlier: (&State, &Resources), next: &State) -> Resources {
    let (earlier_state, earlier_resources) = earlier;
    let mut resources = earlier_resources.builder(next.offset());
    let mut collected = BTreeSet::new();
    for item in earlier_state.clusters().diff(next.clusters()) {
        let (name, old, new) = match item {
            DiffItem::Add(name, new) => (name, None, Some(new)),
            DiffItem::Update { old: (_, old), new: (name, new) } => (name, Some(old), Some(new)),
            DiffItem::Remove(name, old) => (name, Some(old), None),
        };
        collected.insert(name.as_str());
        for kind in ResourceKind::ALL {
            let offset =
                |cluster: Option<&Arc<Cluster>>| cluster.and_then(|cluster| cluster.last_change(kind));
            if offset(old) != offset(new) {
                let key = ResourceKey { kind, name: name.as_str().to_owned() };
                refresh(&mut resources, next, &key);
            }
        }
    }
    let applied = earlier_state.applied().diff(next.applied()).map(key_of);
    // Of what was applied and deleted since, only this is left.
    let restored = earlier_state.restored.diff(&next.restored).map(key_of);
    for key in applied.chain(restored) {
        refresh(&mut resources, next, key);
        collected.insert(&key.name);
    }
    for name in collected {
        put_collections(&mut resources, name, earlier_state, next);
    }
    for type_url in TypeUrl::ALL {
        resources.of(type_url).changed_at(next.changed(type_url));
    }
    if earlier_state.views_changed() != next.views_changed() {
        resources.set_views(NodeViews::new(next.views_changed(), next.views().clone()));
    }
    resources.build()
}

/// The endpoints of a cluster one by one, where they are or were delivered so.
fn put_collections(resources: &mut ResourcesBuilder, name: &str, earlier: &State, next: &State) {
    let (old, new) = (collected(earlier, name), collected(next, name));
    let clusters = [&old, &new];
    if clusters.into_iter().flatten().any(|(_, cluster)| cluster.collection.is_some())
        && let Some((name, _)) = old.as_ref().or(new.as_ref())
    {
        let (old, new) =
            (old.as_ref().map(|(_, old)| old.as_ref()), new.as_ref().map(|(_, new)| new.as_ref()));
        collections::update(resources, name, (old, new), next.changed(TypeUrl::LbEndpoint));
    }
}

/// A cluster as its collections have it: behind an assignment that an operator applied there are none.
fn collected<'a>(state: &'a State, name: &str) -> Option<(&'a ClusterName, Cow<'a, Cluster>)> {
    let (found, cluster) = state.clusters().get_key_value(name)?;
    let key = ResourceKey { kind: ResourceKind::ClusterLoadAssignment, name: name.to_owned() };
    let is_hidden = cluster.collection.is_some() && state.applied().contains_key(&key);
    let hidden = || Cluster { collection: None, ..cluster.as_ref().clone() };
    Some((found, if is_hidden { Cow::Owned(hidden()) } else { Cow::Borrowed(cluster.as_ref()) }))
}

fn key_of<'a, V>(item: DiffItem<'a, 'a, ResourceKey, V>) -> &'a ResourceKey {
    match item {
        DiffItem::Add(key, _) | DiffItem::Update { new: (key, _), .. } | DiffItem::Remove(key, _) => key,
    }
}

/// Brings what is sent under one name up to date.
fn refresh(resources: &mut ResourcesBuilder, state: &State, key: &ResourceKey) {
    let type_url = TypeUrl::from(key.kind);
    let name = ResourceName::new(&key.name);
    match published(state, key) {
        None => resources.of(type_url).remove(&name, state.changed(type_url)),
        Some(Published { message, changed }) => {
            let resource = Resource::new(type_url, name, changed, &message);
            let set = resources.of(type_url);
            if set.get(&key.name).is_none_or(|sent| sent.version != resource.version) {
                set.insert(resource);
            }
        }
    }
}

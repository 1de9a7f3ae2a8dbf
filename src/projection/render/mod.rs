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
use super::resources::{
    Dials, NodeViews, Resource, ResourceName, Resources, ResourcesBuilder, TypeUrl, builders,
};
use super::state::{Changes, Cluster, State};
use crate::events::{Offset, ResourceKey, ResourceKind};

/// The kinds that lead proxyless gRPC to a cluster.
pub(super) const WAYS: [ResourceKind; 2] = [ResourceKind::Listener, ResourceKind::RouteConfiguration];

/// What clients are sent under one name.
pub(super) struct Published<'a> {
    pub(super) message: Cow<'a, [u8]>,
    /// The offset of its version.
    pub(super) changed: Offset,
}

/// What clients that dial so are sent under this name: what an operator applied, or else what is made of workers.
pub(super) fn published<'a>(state: &'a State, key: &ResourceKey, dials: Dials) -> Option<Published<'a>> {
    match state.applied().get(key) {
        Some(applied) => {
            Some(Published { message: applied.message.as_slice().into(), changed: applied.changed.of(dials) })
        }
        None => rendered(state, key, dials),
    }
}

/// What is made of workers under this name.
pub(super) fn rendered(state: &State, key: &ResourceKey, dials: Dials) -> Option<Published<'static>> {
    let (name, cluster) = state.clusters().get_key_value(key.name.as_str())?;
    let changed = last_rendered(state, key)?.of(dials);
    Some(Published { message: message(key.kind, name, cluster, dials).into(), changed })
}

/// Where what clients are sent under this name last changed.
fn last_published(state: &State, key: &ResourceKey) -> Option<Changes> {
    let applied = state.applied().get(key).map(|applied| applied.changed);
    applied.or_else(|| last_rendered(state, key))
}

/// The same of what is made of workers: later than its own last change, where an operator's resource hid it then.
fn last_rendered(state: &State, key: &ResourceKey) -> Option<Changes> {
    let changes = state.clusters().get(key.name.as_str())?.last_change(key.kind)?;
    let restored = state.restored.get(key);
    Some(changes.map(|dials, changed| {
        let restored = restored.filter(|restored| changed <= restored.at);
        restored.map_or(changed, |restored| restored.changed.of(dials))
    }))
}

/// A cluster, its endpoints, and the way to it that proxyless gRPC takes.
fn message(kind: ResourceKind, name: &ClusterName, cluster: &Cluster, dials: Dials) -> Vec<u8> {
    let text = name.as_str();
    match kind {
        ResourceKind::Cluster => clusters::message(name, cluster).encode_to_vec(),
        ResourceKind::ClusterLoadAssignment => endpoints::message(name, cluster, dials).encode_to_vec(),
        ResourceKind::Listener => builders::api_listener(text, text).encode_to_vec(),
        ResourceKind::RouteConfiguration => builders::route(text, text).encode_to_vec(),
    }
}

/// The resources of `next`, made from those of `earlier`. Costs what changed between the two.
pub(super) fn render(earlier: (&State, &Resources), next: &State) -> Resources {
    let (earlier_state, earlier_resources) = earlier;
    let mut resources = earlier_resources.builder(next.offset());
    let mut touched = BTreeSet::new();
    for item in earlier_state.clusters().diff(next.clusters()) {
        let (name, old, new) = match item {
            DiffItem::Add(name, new) => (name, None, Some(new)),
            DiffItem::Update { old: (_, old), new: (name, new) } => (name, Some(old), Some(new)),
            DiffItem::Remove(name, old) => (name, Some(old), None),
        };
        touched.insert(name.as_str());
        for kind in ResourceKind::ALL {
            let changes =
                |cluster: Option<&Arc<Cluster>>| cluster.and_then(|cluster| cluster.last_change(kind));
            if changes(old) != changes(new) {
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
        touched.insert(&key.name);
    }
    for name in touched {
        put_collections(&mut resources, name, earlier_state, next);
        put_for_ip(&mut resources, name, next);
    }
    for type_url in TypeUrl::ALL {
        resources.of(type_url).changed_at(next.changed(type_url).of(Dials::Everything));
    }
    resources.for_ip().changed_at(next.changed(TypeUrl::ClusterLoadAssignment).of(Dials::IpOnly));
    if earlier_state.views_changed() != next.views_changed() {
        resources.set_views(NodeViews::new(next.views_changed(), next.views().clone()));
    }
    resources.build()
}

/// The assignment of this name for clients that dial IP addresses only, where it is not that of all others.
fn put_for_ip(resources: &mut ResourcesBuilder, name: &str, state: &State) {
    let key = ResourceKey { kind: ResourceKind::ClusterLoadAssignment, name: name.to_owned() };
    let made = state.clusters().get(name).filter(|_| !state.applied().contains_key(&key));
    let has_paths = made.is_some_and(|cluster| cluster.has_paths());
    // The same bytes are another version where they came about elsewhere.
    let differs = |last: &Changes| has_paths || last.of(Dials::IpOnly) != last.of(Dials::Everything);
    let Some(last) = last_published(state, &key).filter(differs) else {
        return resources.for_ip().take(name);
    };
    let is_sent = resources.for_ip().version(name).is_some_and(|sent| sent.offset == last.of(Dials::IpOnly));
    if let Some(Published { message, changed }) = published(state, &key, Dials::IpOnly).filter(|_| !is_sent) {
        let name = ResourceName::new(name);
        resources.for_ip().put(Resource::new(TypeUrl::ClusterLoadAssignment, name, changed, &message));
    }
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
        collections::update(
            resources,
            name,
            (old, new),
            next.changed(TypeUrl::LbEndpoint).of(Dials::Everything),
        );
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
    match published(state, key, Dials::Everything) {
        None => resources.of(type_url).remove(&name, state.changed(type_url).of(Dials::Everything)),
        Some(Published { message, changed }) => {
            let resource = Resource::new(type_url, name, changed, &message);
            let set = resources.of(type_url);
            if set.get(&key.name).is_none_or(|sent| sent.version != resource.version) {
                set.insert(resource);
            }
        }
    }
}

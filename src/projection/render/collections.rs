//! LEDS: endpoints one by one, in collections of one locality each.

use envoy_types::pb::envoy::config::endpoint::v3 as pb;
use imbl::ordmap::DiffItem;

use super::{Cluster, ClusterName, endpoints};
use crate::events::Offset;
use crate::events::event::{EndpointAddress, Locality};
use crate::projection::resources::builders::{COLLECTIONS, collection};
use crate::projection::resources::{ContentDigest, Dials, Resource, ResourceName, ResourcesBuilder, TypeUrl};
use crate::projection::state::{Member, Published};

/// The largest weight of an endpoint: a client adds up those of a locality, and refuses a sum beyond 32 bits.
const WEIGHT_MAX: u32 = 1 << 16;

/// Brings the collections of a cluster from what `old` says to what `new` says.
pub(super) fn update(
    resources: &mut ResourcesBuilder,
    name: &ClusterName,
    (old, new): (Option<&Cluster>, Option<&Cluster>),
    offset: Offset,
) {
    let began = |cluster: Option<&Cluster>| cluster.and_then(|cluster| cluster.collection);
    if began(old) != began(new) {
        for (address, member) in old.iter().flat_map(|old| &old.members) {
            take(resources, name, (began(old), address, member), offset);
        }
        resources.of(TypeUrl::LbEndpoint).forget_departed(&format!("{COLLECTIONS}{name}/"));
        for (address, member) in new.iter().flat_map(|new| &new.members) {
            put(resources, name, (began(new), address, member));
        }
    } else if let (Some(old), Some(new)) = (old, new) {
        for item in old.members.diff(&new.members) {
            let (before, now) = match item {
                DiffItem::Add(address, member) => (None, Some((new.collection, address, member))),
                DiffItem::Remove(address, member) => (Some((old.collection, address, member)), None),
                DiffItem::Update { old: (address, before), new: (_, now) } => {
                    (Some((old.collection, address, before)), Some((new.collection, address, now)))
                }
            };
            if before.map(|entry| entry_name(name, entry)) != now.map(|entry| entry_name(name, entry)) {
                before.into_iter().for_each(|entry| depart(resources, name, entry, offset));
            }
            now.into_iter().for_each(|entry| put(resources, name, entry));
        }
    }
    assignment(resources, name, new);
}

/// A member, and where the collections of its cluster began.
type Entry<'a> = (Option<Offset>, &'a EndpointAddress, &'a Member);

fn take(resources: &mut ResourcesBuilder, name: &ClusterName, entry: Entry<'_>, offset: Offset) {
    if let Some(endpoint) = entry_name(name, entry) {
        resources.of(TypeUrl::LbEndpoint).remove(&ResourceName::new(&endpoint), offset);
    }
}

/// As [`take`], of a collection that goes on.
fn depart(resources: &mut ResourcesBuilder, name: &ClusterName, entry: Entry<'_>, offset: Offset) {
    if let Some(endpoint) = entry_name(name, entry) {
        resources.of(TypeUrl::LbEndpoint).depart(&ResourceName::new(&endpoint), offset);
    }
}

fn put(resources: &mut ResourcesBuilder, name: &ClusterName, entry: Entry<'_>) {
    let (Some(began), address, Member { published: Some(published), changed, .. }) = entry else { return };
    let Some(endpoint) = entry_name(name, entry) else { return };
    let weight = published.weight.map_or(1, |weight| weight.get().min(WEIGHT_MAX));
    let message = endpoints::endpoint(address, published, weight);
    resources.of(TypeUrl::LbEndpoint).insert(Resource::encode(&endpoint, began.max(*changed), &message));
}

/// The name of an endpoint that is published in a collection.
fn entry_name(name: &ClusterName, (began, address, member): Entry<'_>) -> Option<String> {
    let prefix = prefix(name, began?, member.published.as_ref()?);
    Some(match address {
        EndpointAddress::Ip(address) => format!("{prefix}{}_{}", address.ip(), address.port()),
        // A slash would make it a member of another collection.
        EndpointAddress::Unix(path) => {
            format!("{prefix}unix_{}", ContentDigest::of(path.as_str().as_bytes()))
        }
    })
}

fn prefix(name: &ClusterName, began: Offset, published: &Published) -> String {
    let Published { priority, locality: Locality { region, zone, sub_zone }, .. } = published;
    let place = ContentDigest::of(format!("{region}\0{zone}\0{sub_zone}").as_bytes());
    format!("{COLLECTIONS}{name}/{}-{priority}-{place}/", began.get())
}

/// The assignment that names the collections.
fn assignment(resources: &mut ResourcesBuilder, name: &ClusterName, cluster: Option<&Cluster>) {
    let Some((cluster, began)) = cluster.and_then(|cluster| Some((cluster, cluster.collection?))) else {
        return resources.for_delta().take(name.as_str());
    };
    let groups = endpoints::groups(cluster, Dials::Everything);
    let of_priority = |(rank, group): (u32, &endpoints::Localities<'_>)| {
        let first = group.values().filter_map(|group| group.first());
        let name = |published: &Published| format!("{}*", prefix(name, began, published));
        first
            .map(|(_, published)| {
                collection(&name(published), endpoints::locality(&published.locality), rank)
            })
            .collect::<Vec<pb::LocalityLbEndpoints>>()
    };
    let message = pb::ClusterLoadAssignment {
        cluster_name: name.as_str().to_owned(),
        endpoints: (0..).zip(groups.values()).flat_map(of_priority).collect(),
        ..pb::ClusterLoadAssignment::default()
    };
    let offset = began.max(cluster.groups_changed);
    resources.for_delta().put(Resource::encode(name.as_str(), offset, &message));
}

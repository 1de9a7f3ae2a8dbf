//! All resources of one type, and of all types, at one offset.

use std::sync::Arc;

use imbl::ordmap::DiffItem;
use imbl::{OrdMap, OrdSet};

use super::{Dials, NodeViews, Resource, ResourceName, Served, SetDigest, TypeUrl, Variation, Version};
use crate::events::Offset;

/// All resources of one type. Cheap to clone: clones share their structure.
#[derive(Clone, Debug, Default)]
pub struct ResourceSet {
    offset: Offset,
    digest: SetDigest,
    by_name: OrdMap<ResourceName, Arc<Resource>>,
    departed: OrdSet<ResourceName>,
}

/// How one resource differs between two sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// New, or with another version.
    Upsert(Arc<Resource>),
    /// No longer there.
    Removed(ResourceName),
}

impl ResourceSet {
    /// The version of the whole: the last event that changed any member, and a digest over names and versions.
    #[must_use]
    pub fn version(&self) -> Version {
        Version { offset: self.offset, digest: self.digest.content() }
    }

    /// The resource with this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Arc<Resource>> {
        self.by_name.get(name)
    }

    /// Every resource, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.by_name.values()
    }

    /// The members of the collection with this name, sorted by name; none where it is no such name.
    pub fn collection<'a>(&'a self, name: &'a ResourceName) -> impl Iterator<Item = &'a Arc<Resource>> {
        let members = name.members().into_iter().flat_map(|prefix| {
            let behind = self.by_name.range(ResourceName::new(prefix)..).map(|(_, resource)| resource);
            behind.take_while(move |resource| resource.name.as_str().starts_with(prefix))
        });
        members.filter(move |resource| resource.collection() == Some(name))
    }

    /// Those that left the collection with this name since it began, sorted. Envoy says nothing of what it holds of a
    /// collection when it comes back, and keeps what it is not told of.
    pub fn departed<'a>(&'a self, name: &'a ResourceName) -> impl Iterator<Item = &'a ResourceName> {
        let begin = |prefix: &'a str| {
            let behind = self.departed.range(ResourceName::new(prefix)..);
            behind.take_while(move |name| name.as_str().starts_with(prefix))
        };
        name.members().into_iter().flat_map(begin)
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// Every resource by name, for a caller that keeps a copy: clones share their structure.
    #[must_use]
    pub fn by_name(&self) -> &OrdMap<ResourceName, Arc<Resource>> {
        &self.by_name
    }

    /// What leads from `earlier` to this set, sorted by name. Costs what changed: what the two share is skipped.
    pub fn changes_since<'a>(&'a self, earlier: &'a Self) -> impl Iterator<Item = Change> + 'a {
        changes(&earlier.by_name, &self.by_name)
    }

    /// Puts a resource in, whose content changed at its version's offset.
    pub fn insert(&mut self, resource: Resource) {
        self.put(Arc::new(resource));
    }

    /// As [`ResourceSet::insert`], of a resource that is shared with another set.
    pub fn put(&mut self, resource: Arc<Resource>) {
        self.offset = self.offset.max(resource.version.offset);
        self.digest.insert(&resource.name, resource.version);
        self.departed.remove(&resource.name);
        if let Some(old) = self.by_name.insert(resource.name.clone(), resource) {
            self.digest.remove(&old.name, old.version);
        }
    }

    /// Takes a resource out, by an event at `offset`.
    pub fn remove(&mut self, name: &ResourceName, offset: Offset) {
        if let Some(old) = self.by_name.remove(name) {
            self.offset = self.offset.max(offset);
            self.digest.remove(&old.name, old.version);
        }
    }

    /// Takes a resource out of a collection that goes on, by an event at `offset`.
    pub fn depart(&mut self, name: &ResourceName, offset: Offset) {
        self.remove(name, offset);
        self.departed.insert(name.clone());
    }

    /// Forgets who left the collections whose names begin with this.
    pub fn forget_departed(&mut self, prefix: &str) {
        let known = std::mem::take(&mut self.departed);
        self.departed = known.into_iter().filter(|name| !name.as_str().starts_with(prefix)).collect();
    }

    /// As of another set, of which this one shows a part.
    pub(super) fn depart_as(&mut self, other: &Self) {
        self.departed = other.departed.clone();
    }

    /// Marks that an event at `offset` changed the set.
    pub fn changed_at(&mut self, offset: Offset) {
        self.offset = self.offset.max(offset);
    }
}

/// What leads from one map of resources to another, sorted by name; costs what changed.
pub(super) fn changes<'a>(
    earlier: &'a OrdMap<ResourceName, Arc<Resource>>,
    later: &'a OrdMap<ResourceName, Arc<Resource>>,
) -> impl Iterator<Item = Change> + 'a {
    earlier.diff(later).map(|item| match item {
        DiffItem::Add(_, resource) | DiffItem::Update { new: (_, resource), .. } => {
            Change::Upsert(Arc::clone(resource))
        }
        DiffItem::Remove(name, _) => Change::Removed(name.clone()),
    })
}

/// The resources of every type at one offset.
#[derive(Clone, Debug, Default)]
pub struct Resources {
    offset: Offset,
    views: Arc<NodeViews>,
    sets: [ResourceSet; TypeUrl::ALL.len()],
    /// Assignments for delta streams: some name collections in place of their endpoints.
    for_delta: Variation,
    /// Assignments for clients that dial IP addresses only.
    for_ip: Variation,
}

impl Resources {
    /// Starts from these resources, towards those at `offset`.
    #[must_use]
    pub fn builder(&self, offset: Offset) -> ResourcesBuilder {
        ResourcesBuilder { next: Self { offset, ..self.clone() }, earlier: self.clone() }
    }

    /// The log offset that these resources show.
    #[must_use]
    pub const fn offset(&self) -> Offset {
        self.offset
    }

    /// The resources of one type as delta streams get them: their assignments may name collections, which no other
    /// variant and no gRPC client can follow (xds-rules 35).
    #[must_use]
    pub fn delta_of(&self, type_url: TypeUrl) -> &ResourceSet {
        match type_url {
            TypeUrl::ClusterLoadAssignment => self.for_delta.all(),
            TypeUrl::Cluster | TypeUrl::LbEndpoint | TypeUrl::Listener | TypeUrl::RouteConfiguration => {
                self.of(type_url)
            }
        }
    }

    /// Which node sees what of them.
    #[must_use]
    pub const fn views(&self) -> &Arc<NodeViews> {
        &self.views
    }

    /// These resources as those see them who dial so: what they cannot use is not there.
    #[must_use]
    pub fn dialled(self: &Arc<Self>, dials: Dials) -> Arc<Self> {
        match dials {
            Dials::Everything => Arc::clone(self),
            Dials::IpOnly => {
                let mut seen = Self::clone(self);
                let assignments = self.for_ip.all().clone();
                // No gRPC client follows collections either.
                seen.for_delta = Variation::none_of(assignments.clone());
                let [_, shown, ..] = &mut seen.sets;
                *shown = assignments;
                Arc::new(seen)
            }
        }
    }

    /// The resources of one type.
    #[must_use]
    pub fn of(&self, type_url: TypeUrl) -> &ResourceSet {
        let [clusters, assignments, endpoints, listeners, routes] = &self.sets;
        match type_url {
            TypeUrl::Cluster => clusters,
            TypeUrl::ClusterLoadAssignment => assignments,
            TypeUrl::LbEndpoint => endpoints,
            TypeUrl::Listener => listeners,
            TypeUrl::RouteConfiguration => routes,
        }
    }
}

/// Makes the next [`Resources`] from the last.
#[derive(Debug)]
pub struct ResourcesBuilder {
    next: Resources,
    earlier: Resources,
}

impl ResourcesBuilder {
    /// The set to change.
    pub fn of(&mut self, type_url: TypeUrl) -> &mut ResourceSet {
        let [clusters, assignments, endpoints, listeners, routes] = &mut self.next.sets;
        match type_url {
            TypeUrl::Cluster => clusters,
            TypeUrl::ClusterLoadAssignment => assignments,
            TypeUrl::LbEndpoint => endpoints,
            TypeUrl::Listener => listeners,
            TypeUrl::RouteConfiguration => routes,
        }
    }

    /// Says which node sees what. Without views every node sees everything.
    pub fn set_views(&mut self, views: NodeViews) {
        self.next.views = Arc::new(views);
    }

    /// Puts a message in, as changed by the event at this builder's offset. One with the bytes that are there keeps
    /// its version, so that nobody is sent it again (xds-rules 2).
    pub fn put<M: prost::Message + Served>(&mut self, name: &str, message: &M) {
        let resource = Resource::encode(name, self.next.offset, message);
        let set = self.of(M::TYPE_URL);
        let same = set.get(name).is_some_and(|held| held.version.digest == resource.version.digest);
        if !same {
            set.insert(resource);
        }
    }

    /// Takes a resource out, by the event at this builder's offset.
    pub fn take(&mut self, type_url: TypeUrl, name: &str) {
        let offset = self.next.offset;
        self.of(type_url).remove(&ResourceName::new(name), offset);
    }

    /// The assignments that delta streams get in the place of others.
    pub const fn for_delta(&mut self) -> &mut Variation {
        &mut self.next.for_delta
    }

    /// The assignments that clients which dial IP addresses only get in the place of others.
    pub const fn for_ip(&mut self) -> &mut Variation {
        &mut self.next.for_ip
    }

    /// Delta streams get in the place of others what they get of these.
    pub(super) fn vary_as(&mut self, other: &Resources) {
        self.next.for_delta.put_as(&other.for_delta);
    }

    /// The finished resources.
    #[must_use]
    pub fn build(self) -> Resources {
        let Self { mut next, earlier } = self;
        let (before, now) =
            (earlier.of(TypeUrl::ClusterLoadAssignment), next.of(TypeUrl::ClusterLoadAssignment).clone());
        next.for_ip.follow(&earlier.for_ip, before, &now);
        // What comes back from a collection is older than the collection was.
        let endpoints = next.of(TypeUrl::LbEndpoint).version().offset;
        next.for_delta.changed_at(now.version().offset.max(endpoints));
        next.for_delta.follow(&earlier.for_delta, before, &now);
        next
    }
}

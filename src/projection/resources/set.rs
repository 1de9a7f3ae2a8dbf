//! All resources of one type, and of all types, at one offset.

use std::sync::Arc;

use imbl::OrdMap;
use imbl::ordmap::DiffItem;

use super::{NodeViews, Resource, ResourceName, Served, SetDigest, TypeUrl, Version};
use crate::events::Offset;

/// All resources of one type. Cheap to clone: clones share their structure.
#[derive(Clone, Debug, Default)]
pub struct ResourceSet {
    offset: Offset,
    digest: SetDigest,
    by_name: OrdMap<ResourceName, Arc<Resource>>,
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
}

impl Resources {
    /// Starts from these resources, towards those at `offset`.
    #[must_use]
    pub fn builder(&self, offset: Offset) -> ResourcesBuilder {
        ResourcesBuilder(Self { offset, ..self.clone() })
    }

    /// The log offset that these resources show.
    #[must_use]
    pub const fn offset(&self) -> Offset {
        self.offset
    }

    /// Which node sees what of them.
    #[must_use]
    pub const fn views(&self) -> &Arc<NodeViews> {
        &self.views
    }

    /// The resources of one type.
    #[must_use]
    pub fn of(&self, type_url: TypeUrl) -> &ResourceSet {
        let [clusters, endpoints, listeners, routes] = &self.sets;
        match type_url {
            TypeUrl::Cluster => clusters,
            TypeUrl::ClusterLoadAssignment => endpoints,
            TypeUrl::Listener => listeners,
            TypeUrl::RouteConfiguration => routes,
        }
    }
}

/// Makes the next [`Resources`] from the last.
#[derive(Debug)]
pub struct ResourcesBuilder(Resources);

impl ResourcesBuilder {
    /// The set to change.
    pub fn of(&mut self, type_url: TypeUrl) -> &mut ResourceSet {
        let [clusters, endpoints, listeners, routes] = &mut self.0.sets;
        match type_url {
            TypeUrl::Cluster => clusters,
            TypeUrl::ClusterLoadAssignment => endpoints,
            TypeUrl::Listener => listeners,
            TypeUrl::RouteConfiguration => routes,
        }
    }

    /// Says which node sees what. Without views every node sees everything.
    pub fn set_views(&mut self, views: NodeViews) {
        self.0.views = Arc::new(views);
    }

    /// Puts a message in, as changed by the event at this builder's offset. One with the bytes that are there keeps
    /// its version, so that nobody is sent it again (xds-rules 2).
    pub fn put<M: prost::Message + Served>(&mut self, name: &str, message: &M) {
        let resource = Resource::encode(name, self.0.offset, message);
        let set = self.of(M::TYPE_URL);
        let same = set.get(name).is_some_and(|held| held.version.digest == resource.version.digest);
        if !same {
            set.insert(resource);
        }
    }

    /// Takes a resource out, by the event at this builder's offset.
    pub fn take(&mut self, type_url: TypeUrl, name: &str) {
        let offset = self.0.offset;
        self.of(type_url).remove(&ResourceName::new(name), offset);
    }

    /// The finished resources.
    #[must_use]
    pub fn build(self) -> Resources {
        self.0
    }
}

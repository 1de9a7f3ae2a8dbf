//! The resources of one type for those who cannot use all of them as they are.

use std::sync::Arc;

use imbl::OrdMap;

use super::set::changes;
use super::{Change, Resource, ResourceName, ResourceSet, Version};
use crate::events::Offset;

/// The resources of one type, with others in the place of some. Cheap to clone.
///
/// One that is in place of another is so while there is another of its name.
#[derive(Clone, Debug, Default)]
pub struct Variation {
    /// Where it last changed, if not where that changed of which it is one.
    changed: Option<Offset>,
    instead: OrdMap<ResourceName, Arc<Resource>>,
    all: ResourceSet,
}

impl Variation {
    /// Every resource, those in the place of others among them.
    pub(super) const fn all(&self) -> &ResourceSet {
        &self.all
    }

    /// The version of what is in the place of this one, if anything is.
    #[must_use]
    pub fn version(&self, name: &str) -> Option<Version> {
        self.instead.get(name).map(|resource| resource.version)
    }

    /// Puts this resource in the place of the one of its name.
    pub fn put(&mut self, resource: Resource) {
        self.instead.insert(resource.name.clone(), Arc::new(resource));
    }

    /// Lets the one of this name be as it is.
    pub fn take(&mut self, name: &str) {
        self.instead.remove(name);
    }

    /// What another has in the place of some.
    pub(super) fn put_as(&mut self, other: &Self) {
        self.instead = other.instead.clone();
    }

    /// That of these, with nothing in the place of any.
    pub(super) fn none_of(all: ResourceSet) -> Self {
        Self { changed: None, instead: OrdMap::new(), all }
    }

    /// Says where it last changed. Unless this is said, it is where that changed of which it is a variation.
    pub const fn changed_at(&mut self, offset: Offset) {
        self.changed = Some(offset);
    }

    /// Brings it up to date: it was `earlier`, that of `before`, and is that of `now`. Costs what changed.
    pub(super) fn follow(&mut self, earlier: &Self, before: &ResourceSet, now: &ResourceSet) {
        let last = self.changed.unwrap_or(now.version().offset);
        let changed = changes(before.by_name(), now.by_name());
        let instead = self.instead.clone();
        for change in changed.chain(changes(&earlier.instead, &instead)) {
            let name = match change {
                Change::Upsert(resource) => resource.name.clone(),
                Change::Removed(name) => name,
            };
            match (now.get(name.as_str()), instead.get(&name)) {
                (Some(_), Some(resource)) | (Some(resource), None) => self.all.put(Arc::clone(resource)),
                (None, _) => self.all.remove(&name, last),
            }
        }
        self.all.changed_at(last);
    }
}

//! What one type of one stream still has to be told.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use imbl::OrdSet;

use crate::projection::resources::{Resource, ResourceName};

/// What still has to be said.
#[derive(Clone, Debug, Default)]
pub(super) struct Owed {
    /// A response is due even if nothing is in it (xds-rules 6).
    pub(super) answer: bool,
    /// A set that was refused has lost a member: the rest may be good without it, unless that was said already.
    pub(super) rest: bool,
    names: OrdSet<ResourceName>,
    /// Where a response that was full ended, so that names early in the alphabet cannot starve the others.
    cursor: Option<ResourceName>,
    leaving: BTreeMap<ResourceName, Leaving>,
    apart: VecDeque<Vec<ResourceName>>,
}

/// A resource that no longer exists and that the client may still use.
#[derive(Clone, Debug)]
pub(super) struct Leaving {
    /// As the client last knew it; nothing once the client was told to empty it, or where it is from another stream.
    pub(super) last: Option<Arc<Resource>>,
    /// When it left.
    pub(super) since: Duration,
}

/// Which removals may go out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Release {
    /// Nothing that could still name them is on its way.
    All,
    /// Only those that have waited long enough: since this moment or earlier.
    Since(Option<Duration>),
}

impl Release {
    fn allows(self, leaving: &Leaving) -> bool {
        match self {
            Self::All => true,
            Self::Since(moment) => moment.is_some_and(|moment| leaving.since <= moment),
        }
    }
}

impl Owed {
    /// The client must be told what this name stands for now.
    pub(super) fn want(&mut self, name: ResourceName) {
        self.leaving.remove(&name);
        self.forget_apart(&name);
        self.names.insert(name);
    }

    /// The client must be told that this is gone.
    pub(super) fn gone(&mut self, name: ResourceName, last: Option<Arc<Resource>>, now: Duration) {
        self.names.remove(&name);
        self.leaving.entry(name).or_insert(Leaving { last, since: now });
    }

    /// The client no longer cares.
    pub(super) fn forget(&mut self, name: &ResourceName) {
        self.names.remove(name);
        self.leaving.remove(name);
        if let Some(members) = name.members() {
            let known = std::mem::take(&mut self.names);
            self.names = known.into_iter().filter(|name| !name.as_str().starts_with(members)).collect();
            self.leaving.retain(|name, _| !name.as_str().starts_with(members));
        }
    }

    /// This is not tried apart any more: it is sent for another reason, or was refused by itself, and would come again
    /// unchanged (xds-rules 18).
    pub(super) fn forget_apart(&mut self, name: &ResourceName) {
        self.apart.iter_mut().for_each(|group| group.retain(|member| member != name));
    }

    /// Sends these again in two halves, to find which of them was refused.
    pub(super) fn send_apart(&mut self, names: &[ResourceName]) {
        let (first, second) = names.split_at(names.len() / 2);
        for half in [second, first] {
            if !half.is_empty() {
                self.apart.push_front(half.to_vec());
            }
        }
    }

    pub(super) const fn names(&self) -> &OrdSet<ResourceName> {
        &self.names
    }

    /// Takes the next name to tell of.
    pub(super) fn pop(&mut self) -> Option<ResourceName> {
        let after = self.cursor.as_ref().and_then(|cursor| self.names.range(cursor.clone()..).next());
        let name = after.or_else(|| self.names.get_min())?.clone();
        self.names.remove(&name);
        Some(name)
    }

    /// Puts a name back that did not fit; the next response starts with it.
    pub(super) fn put_back(&mut self, name: ResourceName) {
        self.cursor = Some(name.clone());
        self.names.insert(name);
    }

    /// Takes all names.
    pub(super) fn take_names(&mut self) -> OrdSet<ResourceName> {
        self.cursor = None;
        std::mem::take(&mut self.names)
    }

    pub(super) fn pop_apart(&mut self) -> Option<Vec<ResourceName>> {
        self.apart.pop_front()
    }

    /// Takes the removals that may go out, sorted by name.
    pub(super) fn take_leaving(&mut self, release: Release) -> BTreeMap<ResourceName, Leaving> {
        let (released, kept) =
            std::mem::take(&mut self.leaving).into_iter().partition(|(_, leaving)| release.allows(leaving));
        self.leaving = kept;
        released
    }

    pub(super) fn put_back_leaving(&mut self, name: ResourceName, leaving: Leaving) {
        self.leaving.insert(name, leaving);
    }

    /// What is on its way out and still has to be kept up.
    pub(super) fn kept(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.leaving.values().filter_map(|leaving| leaving.last.as_ref())
    }

    /// Whether anything but removals is due.
    pub(super) fn has_news(&self) -> bool {
        self.answer || self.rest || !self.names.is_empty() || !self.apart.is_empty()
    }

    /// Whether nothing is due but the rest of a refused set.
    pub(super) fn is_only_rest(&self, release: Release) -> bool {
        self.rest && !self.answer && self.names.is_empty() && !self.can_release(release)
    }

    pub(super) fn is_leaving(&self, name: &ResourceName) -> bool {
        self.leaving.contains_key(name)
    }

    pub(super) fn has_leaving(&self) -> bool {
        !self.leaving.is_empty()
    }

    pub(super) fn can_release(&self, release: Release) -> bool {
        self.leaving.values().any(|leaving| release.allows(leaving))
    }

    pub(super) fn is_empty(&self) -> bool {
        !self.has_news() && !self.has_leaving()
    }

    /// Since when the longest-waiting removal waits.
    pub(super) fn leaving_since(&self) -> Option<Duration> {
        self.leaving.values().map(|leaving| leaving.since).min()
    }
}

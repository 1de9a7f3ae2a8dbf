//! What a stream wants of one type: names, everything, or both.

use std::sync::Arc;

use imbl::OrdSet;

use super::request::Edit;
use crate::projection::resources::{Reach, Resource, ResourceName, ResourceSet, TypeUrl};

/// How many names that do not exist a stream may hold, a type. They come from request headers where Envoy subscribes on
/// demand, so they are an attacker's to choose; and they must be remembered, because Envoy asks once (xds-rules 33).
/// Far above what an honest client waits for, and at [`NAME_BYTES_MAX`] no more than some megabytes.
pub const UNKNOWN_NAMES_MAX: usize = 16_384;

/// The longest name that is remembered. Ours have at most 253 bytes; `xdstp:` names carry more.
pub const NAME_BYTES_MAX: usize = 512;

/// The name that means everything.
const WILDCARD: &str = "*";

/// What a stream wants of one type. Cheap to clone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subscription {
    wildcard: Wildcard,
    names: OrdSet<ResourceName>,
}

/// Wildcard is a state of the stream, not an empty set (xds-rules 12, envoyproxy/envoy#16861).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Wildcard {
    /// Nothing was asked yet.
    #[default]
    Undecided,
    /// Nothing was ever named, which means everything.
    Legacy,
    /// `*` was named.
    Explicit,
    /// Names were given, or `*` was left.
    Off,
}

/// What a message changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Edited {
    /// Names to answer.
    pub(super) entered: Vec<ResourceName>,
    /// Names to forget.
    pub(super) left: Vec<ResourceName>,
    /// Whether everything is wanted now that was not before.
    pub(super) wildcard: WildcardEdit,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum WildcardEdit {
    #[default]
    Same,
    Gained,
}

impl Subscription {
    /// Whether everything is wanted.
    #[must_use]
    pub const fn is_wildcard(&self) -> bool {
        match self.wildcard {
            Wildcard::Legacy | Wildcard::Explicit => true,
            Wildcard::Undecided | Wildcard::Off => false,
        }
    }

    /// The names that were given, sorted, without `*`.
    #[must_use]
    pub const fn names(&self) -> &OrdSet<ResourceName> {
        &self.names
    }

    /// Whether this resource is wanted.
    #[must_use]
    pub fn covers(&self, resource: &Resource) -> bool {
        let by_wildcard = self.is_wildcard() && resource.reach() == Reach::Wildcard;
        let with_others = || resource.collection().is_some_and(|collection| self.names.contains(collection));
        by_wildcard || self.names.contains(&resource.name) || with_others()
    }

    /// The wanted resources that exist, sorted by name.
    pub fn select<'a>(&'a self, world: &'a ResourceSet) -> Box<dyn Iterator<Item = &'a Arc<Resource>> + 'a> {
        if self.is_wildcard() {
            Box::new(world.iter().filter(|resource| self.covers(resource)))
        } else {
            Box::new(
                self.names
                    .iter()
                    .flat_map(|name| world.get(name.as_str()).into_iter().chain(world.collection(name))),
            )
        }
    }

    /// State of the world: the message holds the whole set. Names entering are answered, whatever nonce and version
    /// came with them (xds-rules 7).
    pub(super) fn replace(&mut self, type_url: TypeUrl, names: &[String], world: &ResourceSet) -> Edited {
        let was_wildcard = self.is_wildcard();
        self.wildcard = self.wildcard_after(type_url, names);
        let mut edited = Edited::default();
        let mut next = OrdSet::new();
        let mut room = Room::new(names.len(), world);
        for name in names.iter().filter(|name| !self.is_star(type_url, name)) {
            let (name, known) = match self.names.get(name.as_str()) {
                Some(name) => (name.clone(), true),
                None => (ResourceName::new(name), false),
            };
            // A name that cannot be remembered would enter again with every message: it is not answered.
            if !room.admits(&name) {
                continue;
            }
            next.insert(name.clone());
            if !known {
                edited.entered.push(name);
            }
        }
        edited.left = self.names.iter().filter(|name| !next.contains(*name)).cloned().collect();
        self.names = next;
        edited.wildcard = self.gained(was_wildcard);
        edited
    }

    /// Delta: the message edits the set. Every subscribed name is answered, also one that was there (xds-rules 8).
    pub(super) fn edit(&mut self, type_url: TypeUrl, edit: &Edit, world: &ResourceSet) -> Edited {
        let was_wildcard = self.is_wildcard();
        if self.wildcard == Wildcard::Undecided {
            let legacy = type_url.has_wildcard() && edit.subscribe.is_empty();
            self.wildcard = if legacy { Wildcard::Legacy } else { Wildcard::Off };
        }
        let mut edited = Edited::default();
        // A name in both lists ends up subscribed, and answered.
        self.unsubscribe(type_url, &edit.unsubscribe, &mut edited);
        self.subscribe(type_url, &edit.subscribe, world, &mut edited);
        edited.wildcard = self.gained(was_wildcard);
        edited
    }

    fn subscribe(&mut self, type_url: TypeUrl, names: &[String], world: &ResourceSet, edited: &mut Edited) {
        let mut room = Room::new(self.names.len() + names.len(), world);
        if room.counts {
            self.names.iter().for_each(|name| {
                room.admits(name);
            });
        }
        for text in names {
            if self.is_star(type_url, text) {
                self.wildcard = Wildcard::Explicit;
                continue;
            }
            let name = ResourceName::new(text);
            if self.names.contains(&name) || room.admits(&name) {
                self.names.insert(name.clone());
            }
            edited.entered.push(name);
        }
    }

    fn unsubscribe(&mut self, type_url: TypeUrl, names: &[String], edited: &mut Edited) {
        for text in names {
            if self.is_star(type_url, text) {
                self.wildcard = Wildcard::Off;
            } else if let Some(name) = self.names.remove(text.as_str()) {
                edited.left.push(name);
            }
        }
    }

    fn wildcard_after(&self, type_url: TypeUrl, names: &[String]) -> Wildcard {
        if names.iter().any(|name| self.is_star(type_url, name)) {
            return Wildcard::Explicit;
        }
        match self.wildcard {
            Wildcard::Undecided | Wildcard::Legacy if names.is_empty() && type_url.has_wildcard() => {
                Wildcard::Legacy
            }
            Wildcard::Undecided | Wildcard::Legacy | Wildcard::Explicit | Wildcard::Off => Wildcard::Off,
        }
    }

    fn is_star(&self, type_url: TypeUrl, name: &str) -> bool {
        type_url.has_wildcard() && name == WILDCARD
    }

    const fn gained(&self, was_wildcard: bool) -> WildcardEdit {
        if self.is_wildcard() && !was_wildcard { WildcardEdit::Gained } else { WildcardEdit::Same }
    }
}

/// How many more unknown names may be remembered.
struct Room<'a> {
    world: &'a ResourceSet,
    unknown: usize,
    /// Below the limit nothing needs counting.
    counts: bool,
}

impl<'a> Room<'a> {
    const fn new(names: usize, world: &'a ResourceSet) -> Self {
        Self { world, unknown: 0, counts: names > UNKNOWN_NAMES_MAX }
    }

    fn admits(&mut self, name: &ResourceName) -> bool {
        if name.as_str().len() > NAME_BYTES_MAX {
            return false;
        }
        if !self.counts || self.world.get(name.as_str()).is_some() {
            return true;
        }
        self.unknown += 1;
        self.unknown <= UNKNOWN_NAMES_MAX
    }
}

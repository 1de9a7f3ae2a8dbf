//! What an operator wants of resources: all of a change, or nothing.

use std::collections::BTreeMap;

use super::{Event, Rejection, RejectionCode, State};
use crate::command::content::{self, Reference};
use crate::command::{Applying, References, ResourceChange};
use crate::events::ResourceKey;

/// The most resources in one change: it is one batch of the log, and is looked at while everybody else waits.
pub const CHANGE_RESOURCES_MAX: usize = 256;

/// The most resources that may be applied at a time: each is held in memory and read again when others are deleted. What
/// comes in larger numbers are workers, which need none.
pub const APPLIED_RESOURCES_MAX: usize = 4096;

/// Takes in the change.
pub(super) fn change(state: &State, change: &ResourceChange) -> Result<Vec<Event>, Rejection> {
    let after = After::new(state, change)?;
    let mut events = Vec::new();
    for resource in &change.apply {
        let found = content::check(resource)?;
        if change.references == References::Checked {
            after.check_named(&resource.key, &found)?;
        }
        let known = state.applied().get(&resource.key);
        if known.is_none_or(|known| known.message != resource.message) {
            let (resource, message) = (resource.key.clone(), resource.message.clone());
            events.push(Event::ResourceApplied { resource, message });
        }
    }
    if change.references == References::Checked {
        after.check_needed(&change.delete)?;
    }
    let held = change.delete.iter().filter(|key| state.applied().contains_key(*key));
    events.extend(held.map(|key| Event::ResourceDeleted { resource: key.clone() }));
    Ok(events)
}

/// What there will be.
struct After<'a> {
    state: &'a State,
    /// What the change makes of each resource that it is about: its message, or nothing.
    changed: BTreeMap<&'a ResourceKey, Option<&'a Applying>>,
}

impl<'a> After<'a> {
    fn new(state: &'a State, change: &'a ResourceChange) -> Result<Self, Rejection> {
        let applied = change.apply.iter().map(|resource| (&resource.key, Some(resource)));
        let deleted = change.delete.iter().map(|key| (key, None));
        let mut changed = BTreeMap::new();
        for (key, becomes) in applied.chain(deleted) {
            if changed.insert(key, becomes).is_some() {
                let hint = "name each resource once: it can be one thing only";
                return Err(Rejection::invalid(format!("{key} is in the change twice"), hint));
            }
        }
        if changed.len() > CHANGE_RESOURCES_MAX {
            return Err(Rejection::invalid(
                format!(
                    "{} resources are given, at most {CHANGE_RESOURCES_MAX} are taken at a time",
                    changed.len()
                ),
                "split the change: first what others name, then those others",
            ));
        }
        let more =
            change.apply.iter().filter(|resource| !state.applied().contains_key(&resource.key)).count();
        if state.applied().len() + more > APPLIED_RESOURCES_MAX {
            return Err(Rejection::invalid(
                format!("more than {APPLIED_RESOURCES_MAX} resources would be applied"),
                "delete what is not used (`foldplane get resources`), or let workers register what is many",
            ));
        }
        Ok(Self { state, changed })
    }

    fn exists(&self, key: &ResourceKey) -> bool {
        match self.changed.get(key) {
            Some(Some(_)) => true,
            Some(None) => self.state.workers_make(key),
            None => self.state.applied().contains_key(key) || self.state.workers_make(key),
        }
    }

    /// Refuses a resource that names what will not be there: Envoy refuses a listener with such a route, and answers 503
    /// for any other.
    fn check_named(&self, by: &ResourceKey, named: &[Reference]) -> Result<(), Rejection> {
        match named.iter().find(|reference| !self.exists(&reference.to)) {
            None => Ok(()),
            Some(Reference { place, to }) => Err(Rejection::new(
                RejectionCode::UnknownReference,
                format!("{by}: {place}: there is no {to}"),
                "apply it in the same change, or allow it to be missing (--allow-missing) until its workers come",
            )),
        }
    }

    /// Refuses to delete what another applied resource names.
    fn check_needed(&self, deleted: &[ResourceKey]) -> Result<(), Rejection> {
        let gone = |key: &&ResourceKey| self.state.applied().contains_key(*key) && !self.exists(key);
        let gone: Vec<&ResourceKey> = deleted.iter().filter(gone).collect();
        if gone.is_empty() {
            return Ok(());
        }
        let kept = self.state.applied().iter().filter(|(key, _)| !self.changed.contains_key(key));
        for (by, applied) in kept {
            let named = content::references(by, applied.message.as_slice()).unwrap_or_default();
            if let Some(reference) = named.iter().find(|reference| gone.contains(&&reference.to)) {
                return Err(Rejection::new(
                    RejectionCode::ResourceInUse,
                    format!("{} is named by {by}: {}", reference.to, reference.place),
                    "delete or change that one in the same change, or allow it to be missing (--allow-missing)",
                ));
            }
        }
        Ok(())
    }
}

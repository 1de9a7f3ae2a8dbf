//! What an operator has applied.

use std::collections::BTreeMap;

use crate::events::{Envelope, Event, MessageBytes, ResourceKey};

/// What is applied.
pub(super) fn applied(events: &[Envelope]) -> BTreeMap<&ResourceKey, &MessageBytes> {
    let mut applied = BTreeMap::new();
    for envelope in events {
        match &envelope.event {
            Event::ResourceApplied { resource, message } => drop(applied.insert(resource, message)),
            Event::ResourceDeleted { resource } => drop(applied.remove(resource)),
            _ => {}
        }
    }
    applied
}

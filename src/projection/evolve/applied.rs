//! Resources that an operator brings and takes away. What was applied is served in the place of what workers make under
//! the same name.

use std::sync::Arc;

use super::{Anomaly, collections};
use crate::events::{MessageBytes, ResourceKey, ResourceKind};
use crate::projection::render::{published, rendered};
use crate::projection::state::{Applied, Changes, Restored, State};

/// Takes in a resource.
pub(super) fn apply(state: &mut State, key: &ResourceKey, message: &MessageBytes) {
    let changed = Changes::at(state.offset).map(|dials, now| {
        let before = published(state, key, dials);
        before.filter(|before| before.message == message.as_slice()).map_or(now, |same| same.changed)
    });
    state.changed.advance(key.kind.into(), changed);
    state.restored.remove(key);
    let earlier = state.applied.insert(key.clone(), Arc::new(Applied { message: message.clone(), changed }));
    if earlier.is_none() {
        uncover_collections(state, key);
    }
}

/// Takes a resource away; what workers make under its name is served again.
pub(super) fn delete(state: &mut State, key: &ResourceKey) -> Result<(), Anomaly> {
    let applied = state.applied.remove(key).ok_or(Anomaly::NotApplied)?;
    let changed = Changes::at(state.offset).map(|dials, now| {
        let after = rendered(state, key, dials);
        let same = after.is_some_and(|after| after.message == applied.message.as_slice());
        if same { applied.changed.of(dials) } else { now }
    });
    state.changed.advance(key.kind.into(), changed);
    if state.workers_make(key) {
        state.restored.insert(key.clone(), Restored { at: state.offset, changed });
    }
    uncover_collections(state, key);
    Ok(())
}

/// An assignment hides the endpoints one by one as well.
fn uncover_collections(state: &mut State, key: &ResourceKey) {
    match key.kind {
        ResourceKind::ClusterLoadAssignment => collections::uncover(state, &key.name),
        ResourceKind::Cluster | ResourceKind::Listener | ResourceKind::RouteConfiguration => {}
    }
}

//! Resources that an operator brings and takes away. What was applied is served in the place of what workers make under
//! the same name.

use std::sync::Arc;

use super::{Anomaly, collections};
use crate::events::{MessageBytes, ResourceKey, ResourceKind};
use crate::projection::render::{published, rendered};
use crate::projection::state::{Applied, Restored, State};

/// Takes in a resource.
pub(super) fn apply(state: &mut State, key: &ResourceKey, message: &MessageBytes) {
    let before = published(state, key);
    let same = before.filter(|before| before.message == message.as_slice());
    let changed = same.map_or(state.offset, |same| same.changed);
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
    let after = rendered(state, key);
    let same = after.as_ref().is_some_and(|after| after.message == applied.message.as_slice());
    let changed = if same { applied.changed } else { state.offset };
    state.changed.advance(key.kind.into(), changed);
    if after.is_some() {
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

//! Findings: what somebody should look at, worked out from the state.

use super::hooks::{Hook, HookFailure};
use super::state::State;
use crate::events::{PortName, WorkerKey};

/// Something that works, and not as somebody meant it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// A hook gives no answer for an endpoint, for which holds what would hold without it.
    HookFailed {
        /// Whose endpoint.
        worker: WorkerKey,
        /// Which of its ports.
        port: PortName,
        /// Which hook.
        hook: Hook,
        /// Why.
        failure: HookFailure,
    },
}

/// Everything that somebody should look at, sorted by whom it is about.
pub fn findings(state: &State) -> impl Iterator<Item = Finding> + '_ {
    state.failures().iter().flat_map(|(worker, failed)| {
        failed.iter().map(|failed| Finding::HookFailed {
            worker: worker.clone(),
            port: failed.port.clone(),
            hook: failed.hook,
            failure: failed.failure.clone(),
        })
    })
}

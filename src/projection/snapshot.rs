//! State and resources at one offset: what is published.

use std::fmt;
use std::sync::Arc;

use super::render::render;
use super::resources::Resources;
use super::state::State;
use super::{Outcome, evolve};
use crate::events::{Envelope, Offset};

/// The state at an offset, and what clients are sent of it. Immutable, and cheap to make from the one before.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    state: State,
    resources: Arc<Resources>,
}

impl Snapshot {
    /// The snapshot of a state that was folded elsewhere, rendered from nothing.
    #[must_use]
    pub fn of(state: State) -> Self {
        Self::default().advance(state)
    }

    /// The snapshot of a later state. Costs what changed.
    #[must_use]
    pub fn advance(&self, state: State) -> Self {
        let resources = Arc::new(render((&self.state, &self.resources), &state));
        Self { state, resources }
    }

    /// The snapshot after these events, with what each of them did.
    pub fn fold<'a>(&self, events: impl IntoIterator<Item = &'a Envelope>) -> (Self, Vec<Outcome>) {
        let mut state = self.state.clone();
        let outcomes = events.into_iter().map(|envelope| evolve(&mut state, envelope)).collect();
        (self.advance(state), outcomes)
    }

    /// The last event that it shows.
    #[must_use]
    pub const fn offset(&self) -> Offset {
        self.state.offset()
    }

    /// What is true.
    #[must_use]
    pub const fn state(&self) -> &State {
        &self.state
    }

    /// What clients are sent.
    #[must_use]
    pub const fn resources(&self) -> &Arc<Resources> {
        &self.resources
    }
}

/// A digest of a whole state: two folds that agree on it agree on everything.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct StateDigest([u8; 32]);

impl StateDigest {
    /// The BLAKE3 hash of the state's serialized form, in which every map is sorted.
    #[must_use]
    pub fn of(state: &State) -> Self {
        let mut hasher = blake3::Hasher::new();
        bincode::serde::encode_into_std_write(state, &mut hasher, bincode::config::standard())
            .expect("hashing never fails, and a state holds nothing that cannot be serialized");
        Self(*hasher.finalize().as_bytes())
    }
}

impl fmt::Display for StateDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for StateDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

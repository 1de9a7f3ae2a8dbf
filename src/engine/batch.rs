//! One batch: wishes decided in order against one state. Pure.

use crate::command::{Command, Rejection, decide};
use crate::events::codec::check_size;
use crate::events::{Actor, CorrelationId, Envelope, Offset, Timestamp};
use crate::projection::state::State;
use crate::projection::{Outcome, evolve};

/// Wishes decided, and the facts that they make; nothing of it is true before it is durable.
#[derive(Debug)]
pub struct Batch {
    state: State,
    now: Timestamp,
    events: Vec<Envelope>,
}

impl Batch {
    /// An empty batch on top of a state, at wall time `now`.
    #[must_use]
    pub const fn new(state: State, now: Timestamp) -> Self {
        Self { state, now, events: Vec::new() }
    }

    /// Decides one more wish, on top of those before it, and gives the offset from which what was asked holds.
    ///
    /// # Errors
    ///
    /// The reason why it was refused; the batch is as it was.
    pub fn push(
        &mut self,
        command: &Command,
        actor: &Actor,
        correlation: Option<&CorrelationId>,
    ) -> Result<Offset, Rejection> {
        let before = self.state.clone();
        let kept = self.events.len();
        for event in decide(&self.state, command, self.now)? {
            let envelope = Envelope {
                offset: self.state.offset().next(),
                recorded_at: self.now,
                actor: actor.clone(),
                correlation: correlation.cloned(),
                event,
            };
            // The log refuses a batch whole, so one wish that is too large must not reach it.
            if let Err(refused) = check_size(&envelope) {
                self.events.truncate(kept);
                self.state = before;
                let hint = "shorten its texts, or give fewer labels and ports";
                return Err(Rejection::invalid(refused.to_string(), hint));
            }
            let outcome = evolve(&mut self.state, &envelope);
            debug_assert_eq!(outcome, Outcome::Folded, "decided what cannot be folded: {envelope:?}");
            self.events.push(envelope);
        }
        Ok(self.state.offset())
    }

    /// What must be durable before the state may be published.
    #[must_use]
    pub fn events(&self) -> &[Envelope] {
        &self.events
    }

    /// The facts, and the state after them.
    #[must_use]
    pub fn finish(self) -> (Vec<Envelope>, State) {
        (self.events, self.state)
    }
}

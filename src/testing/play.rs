//! From steps to the log that they leave.

use super::Step;
use crate::command::decide;
use crate::events::{Actor, Envelope, Timestamp};
use crate::projection::evolve;
use crate::projection::state::State;

/// When the first step is made: any time will do, if it is always the same.
const START_MS: u64 = 1_767_225_600_000;

/// The log of a control plane in which these steps were made, one after the other. Refused ones leave nothing.
#[must_use]
pub fn play(steps: &[Step]) -> Vec<Envelope> {
    let mut log = Vec::new();
    let mut state = State::default();
    let mut now_ms = START_MS;
    for step in steps {
        now_ms += step.after_ms;
        let live = |key: &_| state.workers().get(key).map(|worker| worker.generation);
        let command = step.wanted.command(live);
        let recorded_at = Timestamp::from_millis(now_ms);
        for event in decide(&state, &command, recorded_at).unwrap_or_default() {
            let envelope = Envelope {
                offset: state.offset().next(),
                recorded_at,
                actor: Actor::System,
                correlation: None,
                event,
            };
            evolve(&mut state, &envelope);
            log.push(envelope);
        }
    }
    log
}

//! A control plane without its shells: steps in, a log and what is published out.

use super::Step;
use crate::command::{Command, Rejection, decide};
use crate::events::{Actor, Envelope, Timestamp};
use crate::projection::Snapshot;

/// When the first step is made: any time will do, if it is always the same.
const START_MS: u64 = 1_767_225_600_000;

/// Everything that is durable and published after some steps.
#[derive(Clone, Debug)]
pub struct World {
    /// Every event so far.
    pub log: Vec<Envelope>,
    /// What is true and what is published.
    pub snapshot: Snapshot,
    now_ms: u64,
}

impl Default for World {
    fn default() -> Self {
        Self { log: Vec::new(), snapshot: Snapshot::default(), now_ms: START_MS }
    }
}

impl World {
    /// One that begins with this, such as under hooks of one's own.
    #[must_use]
    pub fn under(snapshot: Snapshot) -> Self {
        Self { snapshot, ..Self::default() }
    }

    /// Makes a step. Its events are durable and published one by one.
    ///
    /// # Errors
    ///
    /// Why it was refused; then nothing has changed but the time.
    pub fn step(&mut self, step: &Step) -> Result<(), Rejection> {
        self.now_ms = self.now_ms.saturating_add(step.after_ms);
        let state = self.snapshot.state();
        self.command(&step.wanted.command(state))
    }

    /// Does what is commanded, now. Its events are durable and published one by one.
    ///
    /// # Errors
    ///
    /// Why it was refused; then nothing has changed.
    pub fn command(&mut self, command: &Command) -> Result<(), Rejection> {
        let recorded_at = Timestamp::from_millis(self.now_ms);
        for event in decide(self.snapshot.state(), command, recorded_at)? {
            let offset = self.snapshot.offset().next();
            let envelope = Envelope { offset, recorded_at, actor: Actor::System, correlation: None, event };
            self.snapshot = self.snapshot.fold([&envelope]).0;
            self.log.push(envelope);
        }
        Ok(())
    }
}

/// The log that these steps leave. Refused ones leave nothing.
#[must_use]
pub fn play(steps: &[Step]) -> Vec<Envelope> {
    let mut world = World::default();
    for step in steps {
        // A refusal is an outcome like any other here.
        let _refused = world.step(step);
    }
    world.log
}

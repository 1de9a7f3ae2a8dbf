//! What is due when. Time becomes commands here; the fold never reads a clock. Pure: the monotonic time since start,
//! in milliseconds, is an argument.

use std::collections::BTreeMap;

use crate::command::Command;
use crate::events::event::{Lease, RemovalCause};
use crate::events::{Envelope, Event, WorkerKey, WorkerRef};
use crate::projection::state::{Link, Phase, State, Worker};

/// How patient the control plane is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How long workers have to come back after our own start, in milliseconds from the opening of the doors.
    pub rejoin_grace_ms: u64,
}

impl Default for Settings {
    /// Half a minute: longer than any client's reconnect back-off in our own agent (10 s at most).
    fn default() -> Self {
        Self { rejoin_grace_ms: 30_000 }
    }
}

/// Commands by the time at which they are due.
#[derive(Debug, Default)]
pub struct Timers {
    due: BTreeMap<(u64, u64), Command>,
    count: u64,
}

impl Timers {
    /// Runs `command` once `now_ms` has reached `at_ms`.
    pub fn schedule(&mut self, at_ms: u64, command: Command) {
        self.count += 1;
        self.due.insert((at_ms, self.count), command);
    }

    /// When the next command is due.
    #[must_use]
    pub fn next_ms(&self) -> Option<u64> {
        self.due.first_key_value().map(|((at_ms, _), _)| *at_ms)
    }

    /// Takes out what is due, in order.
    pub fn take_due(&mut self, now_ms: u64) -> Vec<Command> {
        let later = self.due.split_off(&(now_ms.saturating_add(1), 0));
        std::mem::replace(&mut self.due, later).into_values().collect()
    }

    /// Starts the clocks of a state that was just opened. Each gets its whole time again: how long nobody watched
    /// is not known by a monotonic clock.
    pub fn resume(&mut self, now_ms: u64, state: &State) {
        for (key, worker) in state.workers() {
            let reference = WorkerRef { key: key.clone(), generation: worker.generation };
            if let Phase::Draining { drain_ms, .. } = worker.phase {
                self.drain(now_ms, reference.clone(), drain_ms);
            }
            if matches!(worker.link, Link::Disconnected { .. }) {
                self.grace(now_ms, reference, worker);
            }
        }
    }

    /// Starts the clocks of an event that has just become durable; `state` is the state after it.
    pub fn observe(&mut self, now_ms: u64, envelope: &Envelope, state: &State) {
        match &envelope.event {
            Event::WorkerDraining { worker, drain_ms, .. } => self.drain(now_ms, worker.clone(), *drain_ms),
            Event::WorkerDisconnected { worker, .. } => {
                if let Ok(live) = state.current(worker) {
                    self.grace(now_ms, worker.clone(), live);
                }
            }
            Event::ReplicaStarted { .. }
            | Event::HostReported { .. }
            | Event::WorkerRegistered { .. }
            | Event::WorkerReady { .. }
            | Event::WorkerUnready { .. }
            | Event::WorkerReconnected { .. }
            | Event::WorkerRemoved { .. }
            | Event::UpdateRejected { .. }
            | Event::WorkerHealthReported { .. }
            | Event::WorkerReweighted { .. }
            | Event::HostDraining { .. }
            | Event::HostRemoved { .. }
            | Event::PortBusy { .. } => {}
        }
    }

    fn drain(&mut self, now_ms: u64, worker: WorkerRef, drain_ms: u32) {
        let at_ms = now_ms.saturating_add(u64::from(drain_ms));
        self.schedule(at_ms, Command::Remove { worker, cause: RemovalCause::Drained });
    }

    fn grace(&mut self, now_ms: u64, worker: WorkerRef, live: &Worker) {
        let Lease::Session { disconnect_grace_ms } = live.registration.lease;
        self.schedule(now_ms.saturating_add(u64::from(disconnect_grace_ms)), Command::EndGrace { worker });
    }
}

/// Which worker a due command is about, for the record.
#[must_use]
pub(super) fn subject(command: &Command) -> Option<&WorkerKey> {
    match command {
        Command::Remove { worker, .. }
        | Command::EndGrace { worker }
        | Command::Rejoin { worker, .. }
        | Command::Ready { worker }
        | Command::Unready { worker, .. }
        | Command::Drain { worker, .. }
        | Command::ReportHealth { worker, .. }
        | Command::Reweight { worker, .. } => Some(&worker.key),
        Command::Register(wish) => Some(&wish.worker),
        Command::StartReplica { .. }
        | Command::ReportHost { .. }
        | Command::ReportBusyPort { .. }
        | Command::DrainHost { .. }
        | Command::RemoveHost { .. }
        | Command::CloseSession { .. }
        | Command::EndRejoin
        | Command::RecordRejection { .. } => None,
    }
}

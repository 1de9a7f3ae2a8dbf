//! What is due when. Time becomes commands here; the fold never reads a clock. Pure: the monotonic time since start,
//! in milliseconds, is an argument.

use std::collections::{BTreeMap, BTreeSet};

use crate::command::Command;
use crate::events::event::RemovalCause;
use crate::events::{Envelope, Event, Generation, WorkerKey, WorkerRef};
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
    /// When the lease of each worker ends that renews it.
    leases: BTreeMap<WorkerRef, u64>,
    /// The same by time, so that only what ends is looked at.
    lease_ends: BTreeSet<(u64, WorkerRef)>,
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
        let command = self.due.first_key_value().map(|((at_ms, _), _)| *at_ms);
        let lease = self.lease_ends.first().map(|(at_ms, _)| *at_ms);
        command.into_iter().chain(lease).min()
    }

    /// Takes out what is due, in order.
    pub fn take_due(&mut self, now_ms: u64) -> Vec<Command> {
        let later = self.due.split_off(&(now_ms.saturating_add(1), 0));
        let mut due: Vec<Command> = std::mem::replace(&mut self.due, later).into_values().collect();
        while let Some((_, worker)) = self.lease_ends.first().filter(|(at_ms, _)| *at_ms <= now_ms).cloned() {
            self.end_lease(&worker);
            due.push(Command::ExpireLease { worker });
        }
        due
    }

    /// A renewal was heard: the lease lasts its whole time again. Heard renewals come before whatever is due, so that
    /// one that we were late to read is not overtaken by its own expiry (etcd-io/etcd#15247).
    pub fn renew(&mut self, now_ms: u64, worker: &WorkerRef, state: &State) {
        let ttl_ms = state.current(worker).ok().and_then(|live| live.registration.lease.ttl_ms());
        if let Some(ttl_ms) = ttl_ms {
            self.begin_lease(now_ms, worker.clone(), ttl_ms);
        }
    }

    fn begin_lease(&mut self, now_ms: u64, worker: WorkerRef, ttl_ms: u32) {
        self.end_lease(&worker);
        let at_ms = now_ms.saturating_add(u64::from(ttl_ms));
        self.lease_ends.insert((at_ms, worker.clone()));
        self.leases.insert(worker, at_ms);
    }

    fn end_lease(&mut self, worker: &WorkerRef) {
        if let Some(at_ms) = self.leases.remove(worker) {
            self.lease_ends.remove(&(at_ms, worker.clone()));
        }
    }

    /// Starts the clocks of a state that was just opened. Each gets its whole time again: how long nobody watched
    /// is not known by a monotonic clock.
    pub fn resume(&mut self, now_ms: u64, state: &State) {
        for (key, worker) in state.workers() {
            let reference = WorkerRef { key: key.clone(), generation: worker.generation };
            if let Some(ttl_ms) = worker.registration.lease.ttl_ms() {
                self.begin_lease(now_ms, reference.clone(), ttl_ms);
            }
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
            Event::WorkerRegistered { worker, registration } => {
                if let Some(ttl_ms) = registration.lease.ttl_ms() {
                    let generation = Generation::at(envelope.offset);
                    self.begin_lease(now_ms, WorkerRef { key: worker.clone(), generation }, ttl_ms);
                }
            }
            Event::WorkerRemoved { worker, .. } => self.end_lease(worker),
            Event::ReplicaStarted { .. }
            | Event::HostReported { .. }
            | Event::WorkerReady { .. }
            | Event::WorkerUnready { .. }
            | Event::WorkerReconnected { .. }
            | Event::UpdateRejected { .. }
            | Event::WorkerHealthReported { .. }
            | Event::WorkerReweighted { .. }
            | Event::HostDraining { .. }
            | Event::HostRemoved { .. }
            | Event::PortBusy { .. }
            | Event::ServiceDeclared { .. }
            | Event::ServiceRetired { .. }
            | Event::NodeViewSet { .. }
            | Event::NodeViewRemoved { .. }
            | Event::PolicyChanged { .. } => {}
        }
    }

    fn drain(&mut self, now_ms: u64, worker: WorkerRef, drain_ms: u32) {
        let at_ms = now_ms.saturating_add(u64::from(drain_ms));
        self.schedule(at_ms, Command::Remove { worker, cause: RemovalCause::Drained });
    }

    fn grace(&mut self, now_ms: u64, worker: WorkerRef, live: &Worker) {
        let grace_ms = live.registration.lease.disconnect_grace_ms().unwrap_or_default();
        self.schedule(now_ms.saturating_add(u64::from(grace_ms)), Command::EndGrace { worker });
    }
}

/// Which worker a due command is about, for the record.
#[must_use]
pub(super) fn subject(command: &Command) -> Option<&WorkerKey> {
    match command {
        Command::Remove { worker, .. }
        | Command::EndGrace { worker }
        | Command::Renew { worker }
        | Command::ExpireLease { worker }
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
        | Command::DeclareService { .. }
        | Command::RetireService { .. }
        | Command::SetPolicy { .. }
        | Command::CloseSession { .. }
        | Command::EndRejoin
        | Command::SetView { .. }
        | Command::RemoveView { .. }
        | Command::RecordRejection { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::{HostName, Offset, ServiceName, WorkerId};

    fn worker(id: &str) -> WorkerRef {
        let key = WorkerKey {
            service: ServiceName::new("web").unwrap(),
            host: HostName::new("h1").unwrap(),
            id: WorkerId::new(id).unwrap(),
        };
        WorkerRef { key, generation: Generation::at(Offset::new(1)) }
    }

    #[test]
    fn what_is_due_comes_in_order_and_once() {
        let mut timers = Timers::default();
        timers.schedule(20, Command::EndGrace { worker: worker("b") });
        timers.schedule(10, Command::EndGrace { worker: worker("a") });
        timers.schedule(30, Command::EndRejoin);
        assert_eq!(timers.next_ms(), Some(10));
        let due = timers.take_due(20);
        let expected = [worker("a"), worker("b")].map(|worker| Command::EndGrace { worker });
        assert_eq!(due, expected);
        assert_eq!(timers.take_due(29), []);
        assert_eq!(timers.take_due(30), [Command::EndRejoin]);
    }

    // etcd-io/etcd#15247
    #[test]
    fn a_renewal_gives_a_lease_its_whole_time_again() {
        let mut timers = Timers::default();
        timers.begin_lease(0, worker("a"), 100);
        timers.begin_lease(0, worker("b"), 100);
        timers.begin_lease(90, worker("a"), 100);
        assert_eq!(timers.take_due(150), [Command::ExpireLease { worker: worker("b") }]);
        assert_eq!(timers.next_ms(), Some(190));
        timers.end_lease(&worker("a"));
        assert_eq!(timers.next_ms(), None);
    }
}

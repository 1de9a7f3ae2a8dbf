//! What is due when. Time becomes commands here; the fold never reads a clock. Pure: the monotonic time since start,
//! in milliseconds, is an argument.

use std::collections::{BTreeMap, BTreeSet};

use super::leases::Leases;
use crate::command::{Command, HOLD_MS_MAX};
use crate::events::event::{DisconnectCause, RemovalCause};
use crate::events::{Envelope, Event, Generation, Offset, Timestamp, WorkerKey, WorkerRef};
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

/// How long a worker whose connection fell silent is waited for at least, in milliseconds: peers are pinged as often, so
/// that a whole network that fails is seen to have failed before the first one of it is removed.
const SILENCE_GRACE_MS: u32 = 30_000;

/// How often it is looked whether a silent crowd is heard again, in milliseconds.
const REVIEW_EVERY_MS: u64 = 5_000;

/// How long commands that were not written wait, in milliseconds; the writer tries again as often.
const RETRY_MS: u64 = 1_000;

/// What is to be done once its time has come.
#[derive(Clone, Debug)]
enum Due {
    /// A drain is over.
    Drained(WorkerRef),
    /// What is overdue is to be removed, if it is not held.
    Overdue,
    /// A crowd may be heard again.
    Review(Offset),
    /// Expiry has been held for long enough.
    EndHold(Offset),
}

/// What is due when.
#[derive(Debug, Default)]
pub struct Timers {
    due: BTreeMap<(u64, u64), Due>,
    count: u64,
    /// Who has to be heard from: those that renew, those whose connection fell silent, those that were there before our start.
    silence: Leases,
    /// Whose connection was closed, and who may come back.
    graces: Leases,
    /// Who should have been heard from, and is there still: held, or not written yet.
    overdue: BTreeSet<WorkerRef>,
    log: Log,
    settings: Settings,
}

/// Whether somebody who comes back can be written down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Log {
    #[default]
    Writable,
    /// No: nobody's time is over before it can.
    Failing,
}

impl Timers {
    /// The clocks of a state that was just opened, at wall time `wall`. Each gets its whole time again: how long nobody
    /// watched is not known by a monotonic clock.
    #[must_use]
    pub fn resume(settings: Settings, wall: Timestamp, state: &State) -> Self {
        let mut timers = Self { settings, ..Self::default() };
        for (worker, live) in references(state) {
            if let Phase::Draining { drain_ms, .. } = live.phase {
                timers.drain(0, worker.clone(), drain_ms);
            }
            timers.wait_for(0, worker, live);
        }
        if let Some(hold) = state.expiry_hold() {
            // A restart does not make a hold longer. A clock that was set can make it shorter, which harms nobody: each
            // has its whole time again.
            let left_ms = hold.until.as_millis().saturating_sub(wall.as_millis()).min(HOLD_MS_MAX);
            timers.hold(0, hold.since, left_ms);
        }
        timers
    }

    /// Workers can reach us from now on: whoever was there before our start has to be heard from. Those that renew have
    /// their own clock, which began anew.
    pub fn doors_are_open(&mut self, now_ms: u64, state: &State) {
        for (worker, live) in references(state) {
            if live.link == Link::AwaitingRejoin && live.registration.lease.ttl_ms().is_none() {
                self.silence.begin(now_ms, worker, self.settings.rejoin_grace_ms);
            }
        }
    }

    fn schedule(&mut self, at_ms: u64, due: Due) {
        self.count += 1;
        self.due.insert((at_ms, self.count), due);
    }

    /// When something is due next.
    #[must_use]
    pub fn next_ms(&self) -> Option<u64> {
        let due = self.due.first_key_value().map(|((at_ms, _), _)| *at_ms);
        let ends = match self.log {
            Log::Writable => [self.silence.next_ms(), self.graces.next_ms()],
            Log::Failing => [None, None],
        };
        ends.into_iter().chain([due]).flatten().min()
    }

    /// Takes out what is due; who is silent comes last. `state` is what is true now.
    pub fn take_due(&mut self, now_ms: u64, state: &State) -> Vec<Command> {
        let (ended, silent) = match self.log {
            Log::Writable => (self.graces.take_ended(now_ms), self.silence.take_silent(now_ms)),
            Log::Failing => (BTreeSet::new(), BTreeSet::new()),
        };
        let mut commands: Vec<Command> =
            ended.into_iter().map(|worker| Command::EndGrace { worker }).collect();
        let mut expires = !silent.is_empty();
        self.overdue.extend(silent);
        let later = self.due.split_off(&(now_ms.saturating_add(1), 0));
        for due in std::mem::replace(&mut self.due, later).into_values() {
            match due {
                Due::Drained(worker) => {
                    commands.push(Command::Remove { worker, cause: RemovalCause::Drained });
                }
                Due::Overdue => expires = true,
                Due::Review(since) => commands.extend(self.review(now_ms, since, state)),
                Due::EndHold(since) if self.log == Log::Failing => {
                    self.schedule(now_ms.saturating_add(RETRY_MS), Due::EndHold(since));
                }
                Due::EndHold(since) => {
                    commands.push(Command::EndHold { since, overdue: self.overdue.clone() });
                }
            }
        }
        // While expiry is held there is nothing to decide: who is overdue is asked for when the hold ends.
        let can_expire = self.log == Log::Writable && state.expiry_hold().is_none();
        if expires && can_expire && !self.overdue.is_empty() {
            let (overdue, quiet) = (self.overdue.clone(), self.silence.quiet(now_ms));
            commands.push(Command::ExpireSilent { overdue, quiet });
        }
        commands
    }

    fn review(&mut self, now_ms: u64, since: Offset, state: &State) -> Option<Command> {
        if state.expiry_hold().is_none_or(|hold| hold.since != since) {
            return None;
        }
        self.schedule(now_ms.saturating_add(REVIEW_EVERY_MS), Due::Review(since));
        let mut quiet = self.silence.quiet(now_ms);
        quiet.extend(self.overdue.iter().cloned());
        // Who was silent before our start has not been heard since.
        let awaited = references(state).filter(|(_, live)| live.link == Link::AwaitingRejoin);
        quiet.extend(awaited.map(|(worker, _)| worker));
        Some(Command::ReviewHold { since, quiet })
    }

    /// The log cannot be written: who wants to come back is turned away, and nobody's time is over meanwhile.
    pub const fn log_fails(&mut self) {
        self.log = Log::Failing;
    }

    /// The log can be written. If it could not before, each has its whole time again: who tried to come back could not.
    pub fn log_works(&mut self, now_ms: u64, state: &State) {
        if std::mem::take(&mut self.log) == Log::Failing {
            self.graces.begin_all(now_ms);
            self.silence.begin_all(now_ms);
            self.wait_again(now_ms, state);
        }
    }

    /// Whether a command that could not be written is not kept: who is silent is asked for anew, since somebody may be
    /// heard meanwhile (etcd-io/etcd#15247).
    pub fn takes_back(&mut self, now_ms: u64, command: &Command, state: &State) -> bool {
        let at_ms = now_ms.saturating_add(RETRY_MS);
        if let (Command::EndGrace { worker }, Log::Failing) = (command, self.log) {
            if let Ok(live) = state.current(worker) {
                self.wait_for(now_ms, worker.clone(), live);
            }
            return true;
        }
        if let Command::ExpireSilent { .. } = command {
            self.schedule(at_ms, Due::Overdue);
            return true;
        }
        if let Command::EndHold { since, .. } = command {
            self.schedule(at_ms, Due::EndHold(*since));
            return true;
        }
        // The next one comes by itself.
        matches!(command, Command::ReviewHold { .. })
    }

    /// A renewal was heard: the lease lasts its whole time again. Heard renewals come before whatever is due, so that
    /// one that we were late to read is not overtaken by its own expiry (etcd-io/etcd#15247).
    pub fn renew(&mut self, now_ms: u64, worker: &WorkerRef, state: &State) {
        let ttl_ms = state.current(worker).ok().and_then(|live| live.registration.lease.ttl_ms());
        if let Some(ttl_ms) = ttl_ms {
            self.overdue.remove(worker);
            self.silence.begin(now_ms, worker.clone(), u64::from(ttl_ms));
        }
    }

    /// Starts the clocks of an event that has just become durable; `state` is the state after it.
    pub fn observe(&mut self, now_ms: u64, envelope: &Envelope, state: &State) {
        match &envelope.event {
            Event::WorkerDraining { worker, drain_ms, .. } => self.drain(now_ms, worker.clone(), *drain_ms),
            Event::WorkerDisconnected { worker, .. } => {
                if let Ok(live) = state.current(worker) {
                    self.wait_for(now_ms, worker.clone(), live);
                }
            }
            Event::WorkerRegistered { worker, .. } => {
                let worker = WorkerRef { key: worker.clone(), generation: Generation::at(envelope.offset) };
                if let Ok(live) = state.current(&worker) {
                    self.wait_for(now_ms, worker, live);
                }
            }
            Event::WorkerReconnected { worker, .. } => {
                self.forget(worker);
                self.renew(now_ms, worker, state);
            }
            Event::WorkerRemoved { worker, .. } => self.forget(worker),
            Event::ExpiryHeld { .. } => self.hold(now_ms, envelope.offset, HOLD_MS_MAX),
            Event::ExpiryReleased { .. } => self.wait_again(now_ms, state),
            Event::ReplicaStarted { .. }
            | Event::HostReported { .. }
            | Event::WorkerReady { .. }
            | Event::WorkerUnready { .. }
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
            | Event::PolicyChanged { .. }
            | Event::ResourceApplied { .. }
            | Event::ResourceDeleted { .. } => {}
        }
    }

    fn drain(&mut self, now_ms: u64, worker: WorkerRef, drain_ms: u32) {
        self.schedule(now_ms.saturating_add(u64::from(drain_ms)), Due::Drained(worker));
    }

    fn hold(&mut self, now_ms: u64, since: Offset, for_ms: u64) {
        self.schedule(now_ms.saturating_add(for_ms), Due::EndHold(since));
        self.schedule(now_ms.saturating_add(REVIEW_EVERY_MS), Due::Review(since));
    }

    /// Whoever was held has its whole time again.
    fn wait_again(&mut self, now_ms: u64, state: &State) {
        for worker in std::mem::take(&mut self.overdue) {
            let Ok(live) = state.current(&worker) else { continue };
            if live.link == Link::AwaitingRejoin && live.registration.lease.ttl_ms().is_none() {
                self.silence.begin(now_ms, worker, self.settings.rejoin_grace_ms);
            } else {
                self.wait_for(now_ms, worker, live);
            }
        }
    }

    /// Waits for a sign of life, where one is due.
    fn wait_for(&mut self, now_ms: u64, worker: WorkerRef, live: &Worker) {
        let grace_ms = live.registration.lease.disconnect_grace_ms().unwrap_or_default();
        match (&live.link, live.registration.lease.ttl_ms()) {
            (Link::Disconnected { cause: DisconnectCause::Closed }, _) => {
                self.silence.end(&worker);
                self.graces.begin(now_ms, worker, u64::from(grace_ms));
            }
            (Link::Disconnected { cause: DisconnectCause::Silent }, _) => {
                self.silence.begin(now_ms, worker, u64::from(grace_ms.max(SILENCE_GRACE_MS)));
            }
            (Link::Connected { .. } | Link::AwaitingRejoin, Some(ttl_ms)) => {
                self.silence.begin(now_ms, worker, u64::from(ttl_ms));
            }
            (Link::Connected { .. } | Link::AwaitingRejoin, None) => {}
        }
    }

    /// Nothing is waited for any more: it spoke, or it is gone.
    fn forget(&mut self, worker: &WorkerRef) {
        self.overdue.remove(worker);
        self.silence.end(worker);
        self.graces.end(worker);
    }
}

fn references(state: &State) -> impl Iterator<Item = (WorkerRef, &Worker)> {
    let reference = |key: &WorkerKey, generation| WorkerRef { key: key.clone(), generation };
    state.workers().iter().map(move |(key, live)| (reference(key, live.generation), live.as_ref()))
}

/// Which worker a due command is about, for the record.
#[must_use]
pub(super) fn subject(command: &Command) -> Option<&WorkerKey> {
    match command {
        Command::Remove { worker, .. }
        | Command::EndGrace { worker }
        | Command::Renew { worker }
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
        | Command::SetView { .. }
        | Command::RemoveView { .. }
        | Command::ExpireSilent { .. }
        | Command::ReviewHold { .. }
        | Command::EndHold { .. }
        | Command::RecordRejection { .. }
        | Command::ChangeResources(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::{HostName, ServiceName, WorkerId};

    fn worker(id: &str) -> WorkerRef {
        let key = WorkerKey {
            service: ServiceName::new("web").unwrap(),
            host: HostName::new("h1").unwrap(),
            id: WorkerId::new(id).unwrap(),
        };
        WorkerRef { key, generation: Generation::at(Offset::new(1)) }
    }

    fn drained(id: &str) -> Command {
        Command::Remove { worker: worker(id), cause: RemovalCause::Drained }
    }

    #[test]
    fn what_is_due_comes_in_order_and_once() {
        let (mut timers, state) = (Timers::default(), State::default());
        timers.drain(0, worker("b"), 20);
        timers.drain(0, worker("a"), 10);
        timers.drain(0, worker("c"), 30);
        assert_eq!(timers.next_ms(), Some(10));
        assert_eq!(timers.take_due(20, &state), [drained("a"), drained("b")]);
        assert_eq!(timers.take_due(29, &state), []);
        assert_eq!(timers.take_due(30, &state), [drained("c")]);
    }

    // etcd-io/etcd#15247
    #[test]
    fn who_speaks_has_its_whole_time_again() {
        let (mut timers, state) = (Timers::default(), State::default());
        timers.silence.begin(0, worker("a"), 100);
        timers.silence.begin(0, worker("b"), 100);
        timers.silence.begin(90, worker("a"), 100);
        let (overdue, quiet) = (BTreeSet::from([worker("b")]), BTreeSet::new());
        assert_eq!(timers.take_due(139, &state), [Command::ExpireSilent { overdue, quiet }]);
        assert_eq!(timers.next_ms(), Some(190));
        timers.forget(&worker("a"));
        assert_eq!(timers.next_ms(), None);
    }

    #[test]
    fn what_could_not_be_written_is_asked_anew_of_those_who_are_still_silent() {
        let (mut timers, state) = (Timers::default(), State::default());
        timers.silence.begin(0, worker("a"), 100);
        timers.silence.begin(0, worker("b"), 100);
        let command = timers.take_due(100, &state).remove(0);
        assert!(timers.takes_back(100, &command, &state));
        timers.forget(&worker("a"));
        let (overdue, quiet) = (BTreeSet::from([worker("b")]), BTreeSet::new());
        assert_eq!(timers.take_due(1100, &state), [Command::ExpireSilent { overdue, quiet }]);
    }
}

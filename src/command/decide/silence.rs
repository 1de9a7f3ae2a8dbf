//! Who is not heard from any more: a worker that is gone expires, and a crowd that falls silent at once is not taken for dead.

use std::collections::BTreeSet;
use std::fmt;

use super::{Event, State, Worker, reference};
use crate::events::event::{DisconnectCause, RemovalCause};
use crate::events::{HostName, Offset, Timestamp, WorkerRef};
use crate::projection::state::Link;

/// How long expiry is held at most, in milliseconds: long enough for a switch to start again and for people to look, short
/// enough that endpoints which are really dead do not stay for an afternoon.
pub const HOLD_MS_MAX: u64 = 300_000;

/// From how many live leases on silence can be that of a crowd: of fewer, half is soon a coincidence.
pub const CROWD_LEASES_MIN: usize = 10;

/// On how many hosts a crowd is silent: the workers of one host fall silent together when that host dies.
pub const CROWD_HOSTS_MIN: usize = 2;

/// Removes whose time is over, unless so many are silent that the fault is more likely in the network or here.
pub(super) fn expire(
    state: &State,
    overdue: &BTreeSet<WorkerRef>,
    quiet: &BTreeSet<WorkerRef>,
    now: Timestamp,
) -> Vec<Event> {
    let removals = removals(state, overdue);
    if state.expiry_hold().is_some() || removals.is_empty() {
        return Vec::new();
    }
    let silence = Silence::of(state, overdue.union(quiet));
    if silence.is_of_a_crowd() {
        let until = Timestamp::from_millis(now.as_millis().saturating_add(HOLD_MS_MAX));
        return vec![Event::ExpiryHeld { reason: silence.to_string(), until }];
    }
    removals
}

/// Lets leases expire again once most of them are heard from. Nobody is removed: each has its whole time again.
pub(super) fn review(state: &State, since: Offset, quiet: &BTreeSet<WorkerRef>) -> Vec<Event> {
    let silence = Silence::of(state, quiet.iter());
    if !is_held_since(state, since) || silence.is_of_a_crowd() {
        return Vec::new();
    }
    vec![Event::ExpiryReleased { reason: silence.to_string() }]
}

/// Lets leases expire again although most of them are silent, and removes whose time is over, so that they are not held a
/// second time.
pub(super) fn end_hold(state: &State, since: Offset, overdue: &BTreeSet<WorkerRef>) -> Vec<Event> {
    if !is_held_since(state, since) {
        return Vec::new();
    }
    let reason = format!("it was held for {} s", HOLD_MS_MAX / 1000);
    let mut events = vec![Event::ExpiryReleased { reason }];
    events.extend(removals(state, overdue));
    events
}

fn is_held_since(state: &State, since: Offset) -> bool {
    state.expiry_hold().is_some_and(|hold| hold.since == since)
}

fn removals(state: &State, overdue: &BTreeSet<WorkerRef>) -> Vec<Event> {
    let silent = |worker: &WorkerRef| {
        let cause = cause_of_silence(state.current(worker).ok()?)?;
        Some(Event::WorkerRemoved { worker: worker.clone(), cause })
    };
    overdue.iter().filter_map(silent).collect()
}

/// As what a worker expires that is not heard from; nothing when silence is not what it would die of.
fn cause_of_silence(worker: &Worker) -> Option<RemovalCause> {
    let is_renewed = worker.registration.lease.ttl_ms().is_some();
    match &worker.link {
        // A closed connection is proof of death, and is not held back.
        Link::Disconnected { cause: DisconnectCause::Closed } => None,
        Link::Disconnected { cause: cause @ DisconnectCause::Silent } => {
            Some(RemovalCause::Disconnected(*cause))
        }
        Link::Connected { .. } | Link::AwaitingRejoin if is_renewed => Some(RemovalCause::LeaseExpired),
        Link::AwaitingRejoin => Some(RemovalCause::DidNotRejoin),
        Link::Connected { .. } => None,
    }
}

/// How many live leases are silent, of how many.
struct Silence {
    silent: usize,
    hosts: usize,
    live: usize,
}

impl Silence {
    /// Whose connection fell silent is known here; of the others the timers know.
    fn of<'a>(state: &State, known_to_timers: impl Iterator<Item = &'a WorkerRef>) -> Self {
        let is_silent =
            |worker: &&WorkerRef| state.current(worker).is_ok_and(|live| cause_of_silence(live).is_some());
        let mut silent: BTreeSet<WorkerRef> = known_to_timers.filter(is_silent).cloned().collect();
        let mut live = 0;
        for (key, worker) in state.workers() {
            match worker.link {
                Link::Disconnected { cause: DisconnectCause::Closed } => continue,
                Link::Disconnected { cause: DisconnectCause::Silent } => {
                    silent.insert(reference(key, worker));
                }
                Link::Connected { .. } | Link::AwaitingRejoin => {}
            }
            live += 1;
        }
        let hosts: BTreeSet<&HostName> = silent.iter().map(|worker| &worker.key.host).collect();
        Self { silent: silent.len(), hosts: hosts.len(), live }
    }

    fn is_of_a_crowd(&self) -> bool {
        self.live >= CROWD_LEASES_MIN && self.silent * 2 > self.live && self.hosts >= CROWD_HOSTS_MIN
    }
}

impl fmt::Display for Silence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { silent, hosts, live } = self;
        write!(f, "{silent} of {live} live leases are silent, on {hosts} hosts")
    }
}

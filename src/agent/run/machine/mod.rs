//! The agent as a pure machine: what happens to the child, the session and the clock goes in, what to do comes
//! out. It reads no clock and touches no process.

mod admission;
mod health;
mod step;
mod stop;

use std::time::Duration;

use nix::sys::signal::Signal;

pub(super) use step::{Effect, Input, Timer};
use stop::{FAULT, UNREACHABLE};

use crate::agent::backoff::Backoff;
use crate::agent::client::{Ticket, Wish};
use crate::proto;

use super::assignment::Assignment;
use super::ending::Ending;
use super::monitor::Monitors;
use super::reports::Reports;
use super::{Plan, ReadyBy};
use health::Words;

/// After how long without a sign that the child can serve the user is told so.
const READY_SLOW: Duration = Duration::from_secs(10);

/// How often the child is measured: often enough to act on, rarely enough to cost nothing.
const MEASURE_EVERY: Duration = Duration::from_secs(1);

/// The first wait before the child is started again.
const RESTART_FIRST: Duration = Duration::from_millis(200);

/// The longest wait before the child is started again.
const RESTART_LONGEST: Duration = Duration::from_secs(30);

/// How long a child must serve for its next failure to count as the first.
const RESTART_FORGIVEN: Duration = Duration::from_secs(30);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Waits for ports.
    Registering,
    /// The child runs and cannot serve yet.
    Starting,
    /// The child serves.
    Serving,
    /// Requests in flight come to their end.
    Draining,
    /// The child was asked to stop.
    Stopping,
    /// Between two children.
    Resting,
    /// The child is gone, and the goodbye is on its way.
    Leaving,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Link {
    /// The first attempt is under way.
    Untried,
    /// The last attempt failed, or the session was lost.
    Away,
    /// The session is open.
    Open,
}

/// Whether the control plane holds the worker, as far as is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    Held,
    Gone,
}

/// One agent.
#[derive(Debug)]
pub(super) struct Machine {
    plan: Plan,
    process: Option<proto::Process>,
    ticket: Ticket,
    assignment: Option<Assignment>,
    phase: Phase,
    link: Link,
    standing: Standing,
    port_attempts: u32,
    restart: Backoff,
    monitors: Monitors,
    words: Words,
    reports: Reports,
    /// How often in a row the child ended before it had lasted.
    ends: u32,
    /// Whether the user knows that there is no limit to watch a share of.
    limit_missed: bool,
    /// The exit code, where it is not the child's own.
    verdict: Option<u8>,
    code: u8,
    effects: Vec<Effect>,
}

impl Machine {
    /// An agent that carries out the plan. The seed scatters its waits.
    pub(super) fn new(plan: Plan, process: Option<proto::Process>, seed: u64) -> Self {
        Self {
            process,
            ticket: Ticket(1),
            assignment: None,
            phase: Phase::Registering,
            link: Link::Untried,
            standing: Standing::Held,
            port_attempts: 0,
            monitors: Monitors::new(plan.thresholds),
            words: Words::default(),
            reports: Reports::default(),
            ends: 0,
            limit_missed: false,
            plan,
            restart: Backoff::new(RESTART_FIRST, RESTART_LONGEST, seed),
            verdict: None,
            code: 0,
            effects: Vec::new(),
        }
    }

    /// One thing happened.
    pub(super) fn handle(&mut self, input: Input) -> Vec<Effect> {
        match input {
            Input::Started => self.started(),
            Input::Notice(notice) => self.noticed(notice),
            Input::PortsFree => self.spawn(),
            Input::PortTaken(port) => self.port_taken(port),
            Input::SocketTaken(path) => self.socket_taken(&path),
            Input::Spawned => self.spawned(),
            Input::NotSpawned(ending) | Input::Exited(ending) => self.exited(&ending),
            Input::CanServe => self.can_serve(),
            Input::Measured(sample) => self.measured(sample),
            Input::Told(tidings) => self.told_all(tidings),
            Input::Stop(signal) => self.stop(signal),
            Input::Pass(signal) => self.give(Effect::Signal(signal)),
            Input::Rang(timer) => self.rang(timer),
        }
        std::mem::take(&mut self.effects)
    }

    fn started(&mut self) {
        if let Some(wait) = self.plan.wait {
            self.give(Effect::Arm(Timer::Welcome, wait));
        }
        self.add();
    }

    fn add(&mut self) {
        let register = self.plan.register(self.process.clone());
        self.standing = Standing::Held;
        self.give(Effect::Add(self.ticket, register));
    }

    fn spawn(&mut self) {
        if let Some(assignment) = self.assignment.clone() {
            self.give(Effect::Spawn(assignment));
        }
    }

    fn spawned(&mut self) {
        self.phase = Phase::Starting;
        let Some(assignment) = self.assignment.clone() else { return };
        if self.monitors.measures() {
            self.give(Effect::Arm(Timer::Measure, MEASURE_EVERY));
        }
        match self.plan.ready {
            ReadyBy::Now => return self.can_serve(),
            ReadyBy::Listening | ReadyBy::Answering(_) => self.give(Effect::Watch(assignment)),
            ReadyBy::Telling => {}
        }
        self.give(Effect::Arm(Timer::ReadySlow, READY_SLOW.min(self.plan.ready_within)));
        self.give(Effect::Arm(Timer::Ready, self.plan.ready_within));
    }

    fn can_serve(&mut self) {
        if self.phase == Phase::Starting {
            self.phase = Phase::Serving;
            self.forget_readiness();
            self.give(Effect::Arm(Timer::Forgiven, RESTART_FORGIVEN));
            self.give(Effect::Wish(self.ticket, Wish::Ready));
            self.watch_for_life();
        }
    }

    fn forget_readiness(&mut self) {
        self.give(Effect::Unwatch);
        self.give(Effect::Disarm(Timer::ReadySlow));
        self.give(Effect::Disarm(Timer::Ready));
    }

    fn exited(&mut self, ending: &Ending) {
        // What the child left behind in its group would hold its ports.
        self.give(Effect::Signal(Signal::SIGTERM));
        self.forget_readiness();
        self.say_farewell();
        for timer in [Timer::Forgiven, Timer::Watchdog, Timer::Measure, Timer::Stop] {
            self.give(Effect::Disarm(timer));
        }
        match self.phase {
            Phase::Starting | Phase::Serving if ending.restarts(self.plan.restart) => {
                return self.rest(ending);
            }
            // Registering and resting: it could not be started, and would not be a moment later.
            Phase::Registering | Phase::Resting | Phase::Starting | Phase::Serving => {
                self.say(format!("the worker {ending}"));
            }
            // Its end was asked for.
            Phase::Draining | Phase::Stopping | Phase::Leaving => {}
        }
        self.leave(self.verdict.unwrap_or_else(|| ending.code()), ending.status());
    }

    fn rest(&mut self, ending: &Ending) {
        let wait = self.restart.next_delay();
        self.phase = Phase::Resting;
        self.code = ending.code();
        self.say(format!("the worker {ending}; starting it again in {} ms", wait.as_millis()));
        self.give(Effect::Wish(self.ticket, Wish::Unready { reason: format!("{ending}; restarting") }));
        self.ended_again(ending);
        self.forget_opinions();
        self.give(Effect::Arm(Timer::Restart, wait));
    }

    fn rang(&mut self, timer: Timer) {
        match timer {
            Timer::Welcome => {
                self.say(format!("gave up waiting for the control plane at {}", self.plan.server));
                self.leave(UNREACHABLE, None);
            }
            Timer::ReadySlow => {
                let sign = match &self.plan.ready {
                    ReadyBy::Now | ReadyBy::Listening => "listens on all its ports".to_owned(),
                    ReadyBy::Telling => "says READY=1 to NOTIFY_SOCKET".to_owned(),
                    ReadyBy::Answering(path) => format!("answers GET {path} with success"),
                };
                self.say(format!("waiting for the worker: it gets requests once it {sign}"));
            }
            Timer::Ready => {
                let within = self.plan.ready_within;
                self.say(format!("the worker was not ready within {within:?}; stopping it"));
                self.verdict = Some(FAULT);
                self.stop_child(Signal::SIGTERM);
            }
            Timer::Measure => {
                self.give(Effect::Measure);
                self.give(Effect::Arm(Timer::Measure, MEASURE_EVERY));
            }
            Timer::Watchdog => self.abort_child(),
            Timer::Drain => self.stop_child(Signal::SIGTERM),
            Timer::Stop => {
                let within = self.plan.stop_within;
                self.say(format!("the worker did not stop within {within:?}; killing it"));
                self.give(Effect::Signal(Signal::SIGKILL));
            }
            Timer::Restart => {
                self.give(Effect::Signal(Signal::SIGKILL));
                self.spawn();
            }
            Timer::Forgiven => self.lasted(),
            Timer::Reports => self.reports_rested(),
            Timer::Status => self.status_may_be_told(),
            Timer::Farewell => self.give(Effect::Finish(self.code)),
        }
    }

    fn say(&mut self, text: impl Into<String>) {
        self.give(Effect::Say(text.into()));
    }

    fn give(&mut self, effect: Effect) {
        self.effects.push(effect);
    }
}

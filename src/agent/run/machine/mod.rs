//! The agent as a pure machine: what happens to the child, the session and the clock goes in, what to do comes
//! out. It reads no clock and touches no process.

mod admission;
mod step;
mod stop;

use std::time::Duration;

use nix::sys::signal::Signal;

pub(super) use step::{Effect, Input, Timer};
use stop::{FAULT, UNREACHABLE};

use crate::agent::backoff::Backoff;
use crate::agent::client::{Opinion, Ticket, Wish};
use crate::proto;

use super::assignment::Assignment;
use super::ending::Ending;
use super::monitor::{Monitors, Sample};
use super::notify::Tiding;
use super::{Plan, ReadyBy};

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
            Input::Spawned => self.spawned(),
            Input::NotSpawned(ending) | Input::Exited(ending) => self.exited(&ending),
            Input::CanServe => self.can_serve(),
            Input::Measured(sample) => self.measured(sample),
            Input::Told(tidings) => tidings.into_iter().for_each(|tiding| self.told(tiding)),
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
        if self.monitors.are_wanted() {
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

    fn told(&mut self, tiding: Tiding) {
        match (tiding, self.phase) {
            (Tiding::Status(text), _) => self.say(format!("the worker says: {text}")),
            (Tiding::Ready, Phase::Starting) if self.plan.ready == ReadyBy::Telling => self.can_serve(),
            (Tiding::Ready, Phase::Serving) => self.give(Effect::Wish(self.ticket, Wish::Ready)),
            (Tiding::Unready(reason), Phase::Serving) => {
                self.say(format!("the worker cannot serve now: {reason}"));
                self.give(Effect::Wish(self.ticket, Wish::Unready { reason }));
            }
            (Tiding::Stopping, Phase::Serving) => self.drain("the worker is about to end".to_owned()),
            (Tiding::Alive, Phase::Serving) => self.watch_for_life(),
            // Before it can serve and after it was asked to end nothing of this changes anything.
            (Tiding::Ready | Tiding::Unready(_) | Tiding::Stopping | Tiding::Alive, _) => {}
        }
    }

    fn watch_for_life(&mut self) {
        if let Some(every) = self.plan.watchdog {
            self.give(Effect::Arm(Timer::Watchdog, every));
        }
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

    fn measured(&mut self, sample: Sample) {
        match self.phase {
            Phase::Starting | Phase::Serving | Phase::Draining => {
                let changes = self.monitors.observe(sample);
                self.judge(changes);
            }
            Phase::Registering | Phase::Stopping | Phase::Resting | Phase::Leaving => {}
        }
    }

    fn judge(&mut self, changes: Vec<(&'static str, Opinion)>) {
        for (source, opinion) in changes {
            let Opinion { verdict, reason } = &opinion;
            self.say(format!("{source}: {} {reason}", verdict.as_str_name()));
            self.give(Effect::Judge(self.ticket, source, opinion));
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
        let changes = self.monitors.forget();
        self.judge(changes);
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
            Timer::Forgiven => self.restart.reset(),
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

//! The agent's last steps: drain, ask, kill, say goodbye.

use std::time::Duration;

use nix::sys::signal::Signal;

use crate::agent::client::{Departure, Wish};
use crate::agent::run::ending::Ending;
use crate::proto::exit::Status;

use super::{Effect, Link, Machine, Phase, Standing, Timer};

/// How long the goodbye may take once the child is gone: the session's end says the same.
const FAREWELL_MAX: Duration = Duration::from_secs(2);

/// Exit code of a fault.
pub(super) const FAULT: u8 = 1;

/// Exit code when the control plane does not let us.
const DENIED: u8 = 4;

/// Exit code when there is no control plane.
pub(super) const UNREACHABLE: u8 = 5;

/// The exit code of an agent whose registration was refused.
pub(super) fn exit_of_refusal(code: &str) -> u8 {
    if code == "permission_denied" { DENIED } else { FAULT }
}

impl Machine {
    pub(super) fn stop(&mut self, signal: Signal) {
        match self.phase {
            Phase::Registering | Phase::Resting => self.leave(Ending::Killed(signal as i32).code(), None),
            Phase::Serving if self.link == Link::Open && !self.plan.drain.is_zero() => {
                self.say("draining; another signal stops the worker at once");
                self.drain(format!("the agent got {signal}"));
            }
            Phase::Starting | Phase::Serving | Phase::Draining => self.stop_child(signal),
            Phase::Stopping => {
                self.say("killing the worker");
                self.give(Effect::Signal(Signal::SIGKILL));
            }
            Phase::Leaving => self.give(Effect::Finish(self.code)),
        }
    }

    pub(super) fn drain(&mut self, reason: String) {
        let drain_ms = u32::try_from(self.plan.drain.as_millis()).unwrap_or(u32::MAX);
        self.give(Effect::Wish(self.ticket, Wish::Draining { reason, drain_ms }));
        self.await_drain(self.plan.drain);
    }

    pub(super) fn told_to_drain(&mut self, drain_ms: u32) {
        match self.phase {
            Phase::Starting | Phase::Serving => {
                self.say(format!("the control plane drains this worker for {drain_ms} ms"));
                self.await_drain(Duration::from_millis(drain_ms.into()));
            }
            Phase::Resting => self.leave(self.code, None),
            Phase::Registering | Phase::Draining | Phase::Stopping | Phase::Leaving => {}
        }
    }

    fn await_drain(&mut self, drain: Duration) {
        self.phase = Phase::Draining;
        self.forget_readiness();
        self.give(Effect::Arm(Timer::Drain, drain));
    }

    /// The child shows no sign of life. It gets no more requests, and ends as one that failed.
    pub(super) fn abort_child(&mut self) {
        self.say("the worker missed its watchdog; aborting it");
        let reason = "no sign of life within its watchdog's time".to_owned();
        self.give(Effect::Wish(self.ticket, Wish::Unready { reason }));
        self.give(Effect::Signal(Signal::SIGABRT));
        self.give(Effect::Arm(Timer::Stop, self.plan.stop_within));
    }

    pub(super) fn stop_child(&mut self, signal: Signal) {
        self.phase = Phase::Stopping;
        self.forget_readiness();
        for timer in [Timer::Drain, Timer::Watchdog] {
            self.give(Effect::Disarm(timer));
        }
        self.give(Effect::Signal(signal));
        self.give(Effect::Arm(Timer::Stop, self.plan.stop_within));
    }

    pub(super) fn gone(&mut self, cause: &Departure) {
        self.standing = Standing::Gone;
        let cause = match cause {
            Departure::Wished => "it was asked to",
            Departure::Stopped { cause } => cause,
            Departure::Replaced => "another worker registered under its name",
        };
        match self.phase {
            Phase::Leaving => self.give(Effect::Finish(self.code)),
            Phase::Registering | Phase::Resting => {
                self.say(format!("the control plane removed this worker: {cause}"));
                self.leave(FAULT, None);
            }
            Phase::Starting | Phase::Serving | Phase::Draining => {
                self.say(format!("the control plane removed this worker: {cause}; stopping it"));
                self.stop_child(Signal::SIGTERM);
            }
            Phase::Stopping => {}
        }
    }

    /// There is no child any more: say goodbye, then end.
    pub(super) fn leave(&mut self, code: u8, exit: Option<Status>) {
        self.phase = Phase::Leaving;
        self.code = code;
        for timer in [Timer::Welcome, Timer::Drain, Timer::Stop, Timer::Restart] {
            self.give(Effect::Disarm(timer));
        }
        match self.standing {
            Standing::Gone => self.give(Effect::Finish(code)),
            Standing::Held => {
                self.give(Effect::Wish(self.ticket, Wish::Gone { exit }));
                self.give(Effect::Arm(Timer::Farewell, FAREWELL_MAX));
            }
        }
    }
}

//! The words of the agent's machine: what can happen, and what it can want done.

use std::path::PathBuf;
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::agent::client::{Notice, Opinion, Ticket, Wish};
use crate::agent::run::assignment::Assignment;
use crate::agent::run::ending::Ending;
use crate::agent::run::monitor::Sample;
use crate::agent::run::tiding::Tiding;
use crate::proto;

/// What happens.
#[derive(Clone, Debug)]
pub(in crate::agent::run) enum Input {
    /// The agent starts.
    Started,
    /// The session says something.
    Notice(Notice),
    /// All assigned ports can be bound.
    PortsFree,
    /// A stranger sits on this one.
    PortTaken(u16),
    /// Somebody else listens on the socket at this path.
    SocketTaken(PathBuf),
    /// The child runs.
    Spawned,
    /// It cannot be run.
    NotSpawned(Ending),
    /// The child can serve.
    CanServe,
    /// The child was measured.
    Measured(Sample),
    /// The child says something.
    Told(Vec<Tiding>),
    /// The child is gone.
    Exited(Ending),
    /// Somebody wants the agent to stop.
    Stop(Signal),
    /// A signal that is the child's business.
    Pass(Signal),
    /// A timer that was armed went off.
    Rang(Timer),
}

/// What to do.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::agent::run) enum Effect {
    /// Hand a worker to the session.
    Add(Ticket, proto::Register),
    /// Tell the session what is wanted.
    Wish(Ticket, Wish),
    /// Tell the control plane that a stranger sits on this port.
    ReportBusy(u16),
    /// Pass on what a source thinks.
    Judge(Ticket, String, Opinion),
    /// Try to bind the ports.
    TestPorts(Assignment),
    /// Start the child.
    Spawn(Assignment),
    /// Watch for the sign that the child can serve.
    Watch(Assignment),
    /// Measure the child and its descendants.
    Measure,
    /// Stop watching.
    Unwatch,
    /// Send the child's group a signal.
    Signal(Signal),
    /// Set a timer, instead of an earlier one of this kind.
    Arm(Timer, Duration),
    /// Forget a timer.
    Disarm(Timer),
    /// Tell the user.
    Say(String),
    /// End with this exit code.
    Finish(u8),
}

/// What the agent waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::agent::run) enum Timer {
    /// A control plane that answers.
    Welcome,
    /// A child that can serve, before the user is told.
    ReadySlow,
    /// A child that can serve, at all.
    Ready,
    /// The next measurement.
    Measure,
    /// A sign of life of the child.
    Watchdog,
    /// The end of requests in flight.
    Drain,
    /// The end of a child that was asked to stop.
    Stop,
    /// The time to start the child again.
    Restart,
    /// The time from which on a failure is a new one.
    Forgiven,
    /// What changed since a source was last told of.
    Reports,
    /// A status that is newer than the one that was told.
    Status,
    /// The answer to the goodbye.
    Farewell,
}

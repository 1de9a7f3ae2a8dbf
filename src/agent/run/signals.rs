//! Signals that the agent gets: some ask it to stop, the others are the child's business.

use std::io;

use nix::sys::signal::Signal;
use tokio::signal::unix::{self, SignalKind};

use super::machine::Input;

/// All signals that are caught.
pub(super) struct Signals {
    terminate: unix::Signal,
    interrupt: unix::Signal,
    hangup: unix::Signal,
    quit: unix::Signal,
    user1: unix::Signal,
    user2: unix::Signal,
}

impl Signals {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self {
            terminate: unix::signal(SignalKind::terminate())?,
            interrupt: unix::signal(SignalKind::interrupt())?,
            hangup: unix::signal(SignalKind::hangup())?,
            quit: unix::signal(SignalKind::quit())?,
            user1: unix::signal(SignalKind::user_defined1())?,
            user2: unix::signal(SignalKind::user_defined2())?,
        })
    }

    pub(super) async fn next(&mut self) -> Input {
        tokio::select! {
            _ = self.terminate.recv() => Input::Stop(Signal::SIGTERM),
            _ = self.interrupt.recv() => Input::Stop(Signal::SIGINT),
            _ = self.hangup.recv() => Input::Pass(Signal::SIGHUP),
            _ = self.quit.recv() => Input::Pass(Signal::SIGQUIT),
            _ = self.user1.recv() => Input::Pass(Signal::SIGUSR1),
            _ = self.user2.recv() => Input::Pass(Signal::SIGUSR2),
        }
    }
}

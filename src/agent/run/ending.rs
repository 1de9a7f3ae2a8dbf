//! How a child ended.

use std::fmt;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use nix::sys::signal::Signal;

use crate::proto::exit::Status;

use super::Restart;

/// What shells add to the number of the signal that killed a process.
const KILLED_BASE: i32 = 128;

/// What shells, `env` and `timeout` return for a program that is there and cannot be run.
const NOT_RUNNABLE: u8 = 126;

/// And for one that is not there.
const NOT_FOUND: u8 = 127;

/// How a child ended, or why there never was one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    Exited(i32),
    /// By a signal, given by its number: real-time signals have no name.
    Killed(i32),
    /// It never ran.
    NotRun {
        code: u8,
        problem: String,
    },
}

impl Ending {
    pub(super) fn of(status: ExitStatus) -> Self {
        match (status.code(), status.signal()) {
            (Some(code), _) => Self::Exited(code),
            (None, signal) => Self::Killed(signal.unwrap_or(Signal::SIGKILL as i32)),
        }
    }

    pub(super) fn not_run(program: &str, error: &io::Error) -> Self {
        let code = if error.kind() == io::ErrorKind::NotFound { NOT_FOUND } else { NOT_RUNNABLE };
        Self::NotRun { code, problem: format!("cannot run {program:?}: {error}") }
    }

    /// The exit code that a shell would give.
    pub(super) fn code(&self) -> u8 {
        let code = match self {
            Self::Exited(code) => *code,
            Self::Killed(signal) => KILLED_BASE + signal,
            Self::NotRun { code, .. } => i32::from(*code),
        };
        // A process's exit code is one byte; anything else is a fault.
        u8::try_from(code).unwrap_or(u8::MAX)
    }

    /// Whether the child is to be started again after this.
    pub(super) fn restarts(&self, policy: Restart) -> bool {
        match policy {
            Restart::Never => false,
            Restart::OnFailure => self.code() != 0,
            Restart::Always => true,
        }
    }

    /// As the control plane is told.
    pub(super) fn status(&self) -> Option<Status> {
        match self {
            Self::Exited(code) => Some(Status::Code(*code)),
            Self::Killed(signal) => Some(Status::Signal(*signal)),
            Self::NotRun { code, .. } => Some(Status::Code(i32::from(*code))),
        }
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited(code) => write!(f, "exited with code {code}"),
            Self::Killed(number) => match Signal::try_from(*number) {
                Ok(signal) => write!(f, "was killed by {signal}"),
                Err(_) => write!(f, "was killed by signal {number}"),
            },
            Self::NotRun { problem, .. } => write!(f, "never ran: {problem}"),
        }
    }
}

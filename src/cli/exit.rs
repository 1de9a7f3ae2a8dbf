//! Exit codes, for scripts.

use std::process::ExitCode;

/// What the process's end says to scripts. Stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// It is done.
    Done,
    /// Something failed.
    Fault,
    /// The command line or the configuration is wrong.
    Usage,
    /// What was asked for does not exist, or none of it is ready.
    NotFound,
    /// The control plane refused.
    Denied,
    /// The control plane cannot be reached.
    Unreachable,
    /// The log is damaged.
    Damaged,
}

impl Exit {
    /// Its number.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Fault => 1,
            Self::Usage => 2,
            Self::NotFound => 3,
            Self::Denied => 4,
            Self::Unreachable => 5,
            Self::Damaged => 6,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        exit.code().into()
    }
}

//! How a command fails: one clear error, a hint, and an exit code.

use std::error::Error;
use std::process::ExitCode;

use super::Exit;
use crate::events::log::LogError;

/// Why a command could not do what was asked.
#[derive(Debug)]
pub struct Failure {
    exit: Exit,
    message: String,
    causes: Vec<String>,
    hint: Option<String>,
}

impl Failure {
    /// A failure with this exit code and message.
    pub fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: message.into(), causes: Vec::new(), hint: None }
    }

    /// Something failed.
    pub fn fault(message: impl Into<String>) -> Self {
        Self::new(Exit::Fault, message)
    }

    /// The command line or the configuration is wrong.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, message)
    }

    /// What to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// What it came from, down to the first cause.
    #[must_use]
    pub fn because(mut self, source: impl Error) -> Self {
        self.causes.push(source.to_string());
        let mut cause = source.source();
        while let Some(error) = cause {
            self.causes.push(error.to_string());
            cause = error.source();
        }
        self
    }

    /// Says on stderr what, why and what to do, and gives the exit code.
    #[must_use]
    pub fn report(&self) -> ExitCode {
        let mut text = format!("error: {}", self.message);
        for cause in &self.causes {
            text.push_str("\n  because: ");
            text.push_str(cause);
        }
        if let Some(hint) = &self.hint {
            text.push_str("\n  hint: ");
            text.push_str(hint);
        }
        super::out::note(&text);
        self.exit.into()
    }
}

impl From<LogError> for Failure {
    fn from(fault: LogError) -> Self {
        let (exit, hint) = match &fault {
            LogError::Damaged { .. } => (
                Exit::Damaged,
                "`foldplane log verify` shows the extent, `foldplane log repair` copies what is whole",
            ),
            LogError::Newer { .. } => {
                (Exit::Fault, "use the version of foldplane that wrote it, or a newer one")
            }
            LogError::Missing { .. } => {
                (Exit::NotFound, "name the data folder of a control plane, or --server to read a running one")
            }
            LogError::Gone { .. } => (Exit::NotFound, "start from the oldest that is kept"),
            LogError::InUse { .. } => {
                (Exit::Fault, "stop that process, name another folder, or read it over its --server address")
            }
            LogError::Store { .. } | LogError::Full { .. } => (
                Exit::Fault,
                "check that the folder can be written and has space, or name another with --data-dir",
            ),
            LogError::Conflict { .. } | LogError::NeedsRecovery | LogError::Body(_) => {
                (Exit::Fault, "nothing was written")
            }
        };
        match fault.source() {
            None => Self::new(exit, fault.to_string()),
            Some(cause) => Self::new(exit, fault.to_string()).because(cause),
        }
        .hint(hint)
    }
}

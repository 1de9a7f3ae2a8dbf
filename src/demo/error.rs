//! What can go wrong in the demo.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// How long a change may take before the demo gives up. Changes take milliseconds; a busy machine gets far more.
pub(super) const CHANGE_LIMIT: Duration = Duration::from_secs(20);

/// Why the demo ended early.
#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    /// A folder or file of the demo could not be used.
    #[error("cannot write {}: {source}", path.display())]
    Folder {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The output is gone.
    #[error("cannot print: {0}")]
    Print(#[from] io::Error),
    /// A child could not be started.
    #[error("cannot start {name}: {source}")]
    Start {
        /// Which.
        name: String,
        /// Why.
        source: io::Error,
    },
    /// A child ended that should have gone on.
    #[error("{name} ended with {status}{log}")]
    Ended {
        /// Which.
        name: String,
        /// How.
        status: String,
        /// The end of its log, indented.
        log: String,
    },
    /// A child did not end in time.
    #[error("{name} has not ended after {} s{log}", limit.as_secs())]
    Hangs {
        /// Which.
        name: String,
        /// How long it had.
        limit: Duration,
        /// The end of its log, indented.
        log: String,
    },
    /// Something did not come about in time.
    #[error("{what} did not happen within {} s{detail}", limit.as_secs())]
    Late {
        /// What was waited for.
        what: String,
        /// How long.
        limit: Duration,
        /// What was seen instead, with its own punctuation.
        detail: String,
    },
    /// No port is free.
    #[error("no port from {first} to {last} is free on 127.0.0.1")]
    NoPort {
        /// The lowest.
        first: u32,
        /// The highest.
        last: u32,
    },
    /// The bootstrap of an Envoy has no admin page or no listener.
    #[error("{name} has no admin page or no listener to be watched by")]
    Doors {
        /// Which Envoy.
        name: String,
    },
    /// A person ended it before its last scene.
    #[error("interrupted before the last scene")]
    Interrupted,
    /// The demo's worker cannot serve.
    #[error("cannot serve on {address}: {source}")]
    Serve {
        /// Where.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// Envoy's admin page did not answer.
    #[error("Envoy's admin page {path} does not answer: {source}")]
    Admin {
        /// Which page.
        path: String,
        /// Why.
        source: reqwest::Error,
    },
    /// The control plane did not answer.
    #[error("{url} does not answer: {source}")]
    Api {
        /// What was asked.
        url: String,
        /// Why.
        source: reqwest::Error,
    },
    /// A worker of the demo is not there.
    #[error("worker {worker} has not answered yet, or was never started")]
    NoAgent {
        /// Which.
        worker: String,
    },
    /// A command of Foldplane failed, or printed something else than it should.
    #[error("`foldplane {command}` {outcome}")]
    Command {
        /// Its arguments.
        command: String,
        /// What happened.
        outcome: String,
    },
    /// Everything ran, and something that must hold did not.
    #[error("{} of the things that must hold did not:{}", problems.len(), problems.iter().map(|problem| format!("\n  - {problem}")).collect::<String>())]
    Broken {
        /// Each in a sentence.
        problems: Vec<String>,
    },
}

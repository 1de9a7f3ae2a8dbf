//! The hidden subcommand that `foldplane run` starts its child through: it dies with its agent.

use std::ffi::OsString;

use clap::Args;

use super::{Exit, out};
use crate::agent;

/// What the agent calls it.
pub(super) const NAME: &str = "launch-child";

/// Become the program, and die with the agent.
#[derive(Debug, Args)]
pub(super) struct Launch {
    /// The agent's process id
    agent: u32,
    /// The program and its arguments
    #[arg(required = true, last = true)]
    command: Vec<OsString>,
}

impl Launch {
    pub(super) fn run(self) -> std::process::ExitCode {
        let (code, problem) = agent::launch(self.agent, &self.command);
        out::note(&format!("foldplane: the worker {problem}"));
        if code == 0 { Exit::Fault.into() } else { code.into() }
    }
}

//! THE AGENT: `foldplane run` puts one child process behind every proxy, through the public worker protocol.
//!
//! The room is a client like any other: it knows the protocol's types and nothing of the rooms behind the
//! door. [`client`] is the session, for one worker or for a supervisor's many; [`run()`] is the agent on top of it.
//! What is decided is decided in two pure machines; the shells around them hold the sockets and the process.

mod backoff;
pub mod client;
#[doc = include_str!("../../docs/worker-contract.md")]
pub mod contract {}
mod run;

pub use run::{
    Launcher, Lends, MemoryMax, Plan, PlannedPlace, PlannedPort, ReadyBy, Restart, RunError, Say, Thresholds,
    launch, run,
};

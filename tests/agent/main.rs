//! `foldplane run` with real processes against a real control plane: what the log says is the outcome.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "a test fails by panicking; its helpers are no test functions to the lint"
)]

mod away;
mod churn;
mod clock;
mod end;
mod health;
mod host;
mod identity;
mod leased;
mod long;
mod ports;
mod ready;
mod rolling;
mod session;
mod silence;
mod sockets;
#[path = "../support/mod.rs"]
mod support;
mod world;

#[path = "../../examples/supervisor.rs"]
#[allow(dead_code, unreachable_pub, reason = "its main function is for people")]
mod supervisor;

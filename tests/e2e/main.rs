//! Everything together: a real control plane, real workers and a real Envoy with real requests.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a test fails by panicking; its helpers are no test functions to the lint; it measures real time"
)]

#[path = "../support/mod.rs"]
mod support;

mod absence;
mod bad_calls;
mod bad_input;
mod bootstrap;
mod death;
mod degrade;
mod demo;
mod doors;
mod grpc;
mod hosts;
mod leds;
mod policies;
mod refusals;
mod replay;
mod resources;
mod rest;
mod rest_verbs;
mod restarts;
mod seed;
mod services;
mod status;
mod views;
mod wait;
mod watch;
mod weight;

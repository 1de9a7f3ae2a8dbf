//! The xDS server: every rule on the pure machine, and again with real clients.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "tests are a shell, and a helper that fails must say so at once"
)]

mod envoy;
mod flood;
mod garbage;
mod grpc;
mod identity;
mod script;
mod server;

mod answers;
mod collections;
mod conformance;
mod csds;
mod descriptors;
mod dull_client;
mod interleave;
mod last_good;
mod limits;
mod load;
mod order;
mod polling;
mod pushing;
mod refusals;
mod standing;
mod views;
mod wildcard;
mod wire;
mod with_envoy;
mod with_envoy_otherwise;
mod with_envoy_refusing;
mod with_grpc;

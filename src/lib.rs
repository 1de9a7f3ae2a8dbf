//! Foldplane: an endpoint control plane for Envoy and gRPC that is a fold over a durable log.

pub mod agent;
pub mod api;
pub mod bootstrap;
pub mod cli;
pub mod command;
pub mod config;
pub mod demo;
pub mod engine;
pub mod events;
pub mod ingest;
pub mod listen;
pub mod problem;
pub mod projection;
pub mod proto;
pub mod provision;
pub mod serve;
pub mod telemetry;
#[cfg(feature = "testing")]
pub mod testing;
pub mod transcode;
pub mod xds;

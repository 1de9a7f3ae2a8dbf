//! The worker protocol, generated from `proto/foldplane/worker/v1/worker.proto`: what the door for workers
//! and its callers share, and the only thing that they share.

#![allow(
    missing_docs,
    unreachable_pub,
    clippy::all,
    clippy::allow_attributes_without_reason,
    reason = "generated from a documented .proto"
)]

tonic::include_proto!("foldplane.worker.v1");

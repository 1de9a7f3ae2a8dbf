//! THE DOOR FOR WORKERS: the gRPC session in which workers and supervisors report.

/// The worker protocol, generated from `proto/foldplane/worker/v1/worker.proto`.
pub mod proto {
    #![allow(
        missing_docs,
        unreachable_pub,
        clippy::all,
        clippy::allow_attributes_without_reason,
        reason = "generated from a documented .proto"
    )]
    tonic::include_proto!("foldplane.worker.v1");
}

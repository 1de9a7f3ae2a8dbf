//! FACTS: what happened, in the past tense, with full ids; how facts become bytes; where they are kept.
//!
//! Nothing here but [`log`] does IO, and nothing here reads a clock.

pub mod codec;
pub mod event;
pub mod id;
pub mod log;
pub mod view;

mod chain;
mod describe;
mod envelope;
mod glob;
mod offset;
mod parts;
mod policy;
mod resource;
mod service;
mod socket_path;

pub use chain::{ChainHash, Head, InvalidChainHash};
pub use envelope::{Actor, CorrelationId, Envelope, Timestamp};
pub use event::Event;
pub use glob::{Glob, InvalidGlob};
pub use id::{
    HostName, InvalidName, PortName, ReplicaId, ServiceName, SessionId, ViewName, WorkerId, WorkerKey,
    WorkerRef,
};
pub use offset::{Generation, InvalidOffset, Offset};
pub use resource::{InvalidKind, MessageBytes, ResourceKey, ResourceKind};
pub use socket_path::{InvalidSocketPath, SOCKET_PATH_BYTES_MAX, SocketPath};

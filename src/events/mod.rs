//! FACTS: what happened, in the past tense, with full ids; how facts become bytes; where they are kept.
//!
//! Nothing here but [`log`] does IO, and nothing here reads a clock.

pub mod event;
pub mod id;
pub mod log;

mod envelope;
mod offset;

pub use envelope::{Actor, CorrelationId, Envelope, Timestamp};
pub use event::Event;
pub use id::{
    HostName, InvalidName, PortName, ReplicaId, ServiceName, SessionId, WorkerId, WorkerKey, WorkerRef,
};
pub use offset::{Generation, InvalidOffset, Offset};

//! Bytes on the wire: messages that skip what is not used, and responses made of shared pieces.

mod frame;
mod message;

pub(super) use frame::Frame;
pub(super) use message::{DeltaMessage, NodeMessage, SotwMessage, WireRequest};

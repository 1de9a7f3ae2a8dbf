//! What an operator brought.

use serde::{Deserialize, Serialize};

use super::Changes;
use crate::events::{MessageBytes, Offset};

/// A resource that an operator applied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Applied {
    /// What clients are sent.
    pub message: MessageBytes,
    /// Where what clients are sent under this name last changed: the offset of its version.
    pub changed: Changes,
}

/// A resource made from workers came back from behind one that an operator applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restored {
    /// Where it came back.
    pub at: Offset,
    /// Where what clients are sent under this name last changed, as long as it has not changed since.
    pub changed: Changes,
}

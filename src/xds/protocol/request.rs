//! What a client says, whichever variant of the protocol carried it.

use std::collections::BTreeMap;

/// One message from a client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// The type that it is about, as it stood on the wire.
    pub type_url: String,
    /// The response that it answers; empty in the first message about a type.
    pub nonce: String,
    /// Why it refused that response. Its presence, and nothing else, makes the message a NACK (xds-rules 4).
    pub error: Option<String>,
    /// What it wants from now on.
    pub names: Names,
}

/// What a client wants from now on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Names {
    /// State of the world: each message holds the whole set.
    Whole(Vec<String>),
    /// Delta: each message edits the set.
    Edit(Edit),
}

impl Default for Names {
    fn default() -> Self {
        Self::Whole(Vec::new())
    }
}

/// A change to the set of a delta stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Edit {
    /// Names that it wants, each of which is answered.
    pub subscribe: Vec<String>,
    /// Names that it no longer wants.
    pub unsubscribe: Vec<String>,
    /// What it holds from an earlier stream, by name and version. Read in the first message about a type only.
    pub known: BTreeMap<String, String>,
}

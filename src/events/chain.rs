//! The hash chain that binds every event to all events before it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::Offset;

/// The end of a log: the last durable offset, and the hash that chains every event up to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// The last event's place; [`Offset::ZERO`] in an empty log.
    pub offset: Offset,
    /// The hash of the last event, chained with all before it; zero in an empty log.
    pub chain: ChainHash,
}

impl Head {
    /// The head after one more event, whose body was encoded under the schema version `schema`.
    ///
    /// The chain is over events and not over blocks: how a log groups its events changes no hash, so an
    /// import, a compaction or a replica with other batches ends in the same chain.
    #[must_use]
    pub fn link(self, schema: u16, body: &[u8]) -> Self {
        let offset = self.offset.next();
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.chain.0);
        hasher.update(&offset.get().to_be_bytes());
        hasher.update(&schema.to_be_bytes());
        hasher.update(body);
        Self { offset, chain: ChainHash(*hasher.finalize().as_bytes()) }
    }
}

impl fmt::Display for Head {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (chain {})", self.offset, self.chain)
    }
}

/// A link of the hash chain: BLAKE3, so that a lost, altered or reordered event is found.
#[derive(Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ChainHash(pub [u8; 32]);

impl fmt::Display for ChainHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ChainHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Text that is no chain hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a chain hash is 64 hexadecimal digits")]
pub struct InvalidChainHash;

impl FromStr for ChainHash {
    type Err = InvalidChainHash;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        blake3::Hash::from_hex(text).map(|hash| Self(*hash.as_bytes())).map_err(|_| InvalidChainHash)
    }
}

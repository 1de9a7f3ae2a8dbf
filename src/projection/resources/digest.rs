//! Digests of one resource and of a set of them.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{ResourceName, Version};

/// The first 64 bits of the BLAKE3 hash of a resource's bytes, printed as 16 hexadecimal digits.
///
/// It stands beside an offset, so it only has to tell apart contents that claim the same offset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ContentDigest(u64);

impl ContentDigest {
    /// The digest of these bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self::leading(blake3::hash(bytes).as_bytes())
    }

    fn leading(hash: &[u8; 32]) -> Self {
        let [a, b, c, d, e, f, g, h, ..] = *hash;
        Self(u64::from_be_bytes([a, b, c, d, e, f, g, h]))
    }
}

impl fmt::Display for ContentDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl FromStr for ContentDigest {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        u64::from_str_radix(text, 16).map(Self)
    }
}

/// A digest of a set of (name, version), kept up to date in constant time a change.
///
/// It is the sum, modulo 2^128, of a BLAKE3 hash of each member: order does not matter, and a member that leaves
/// is subtracted. Finding two sets with one sum needs chosen hashes; members are our own renderings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SetDigest(u128);

impl SetDigest {
    /// Takes a member in.
    pub fn insert(&mut self, name: &ResourceName, version: Version) {
        self.0 = self.0.wrapping_add(member(name, version));
    }

    /// Takes a member out.
    pub fn remove(&mut self, name: &ResourceName, version: Version) {
        self.0 = self.0.wrapping_sub(member(name, version));
    }

    /// The digest to print.
    #[must_use]
    pub fn content(self) -> ContentDigest {
        ContentDigest::of(&self.0.to_be_bytes())
    }
}

fn member(name: &ResourceName, version: Version) -> u128 {
    let mut hasher = blake3::Hasher::new();
    hasher.update(version.to_string().as_bytes());
    // A version never holds a zero byte, so that the pair reads in one way only.
    hasher.update(&[0]);
    hasher.update(name.as_str().as_bytes());
    let mut first = [0; 16];
    hasher.finalize_xof().fill(&mut first);
    u128::from_be_bytes(first)
}

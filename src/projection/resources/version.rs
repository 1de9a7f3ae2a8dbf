//! Version strings: an offset for people, a digest for the truth.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::ContentDigest;
use crate::events::Offset;

/// `<offset>-<digest>`: the offset of the last event that changed the content, and a digest of the content.
///
/// Equal versions mean equal bytes, also across restarts, replicas, restored backups and changed
/// rendering code (xds-rules 1). At most 32 characters.
///
/// ```
/// use foldplane::projection::resources::Version;
/// let version: Version = "42-00000000000000ff".parse().unwrap();
/// assert_eq!(version.offset.get(), 42);
/// assert_eq!(version.to_string(), "42-00000000000000ff");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Version {
    /// The last event that changed the content.
    pub offset: Offset,
    /// The content.
    pub digest: ContentDigest,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.offset.get(), self.digest)
    }
}

/// Text that is no version of ours. A client that presents one has something that we never sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a version: expected <offset>-<16 hexadecimal digits>")]
pub struct InvalidVersion;

impl FromStr for Version {
    type Err = InvalidVersion;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (offset, digest) = text.split_once('-').ok_or(InvalidVersion)?;
        let version = Self {
            offset: offset.parse().map_err(|_| InvalidVersion)?,
            digest: digest.parse().map_err(|_| InvalidVersion)?,
        };
        // One version has one spelling: `007-…` and `@7-…` are not ours.
        (version.to_string() == text).then_some(version).ok_or(InvalidVersion)
    }
}

//! What is recorded around an event: where, when, by whom.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Event, Offset};

/// Wall time in milliseconds since 1970-01-01T00:00:00Z, recorded for people. No decision reads it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(u64);

impl Timestamp {
    /// The time `milliseconds` after the Unix epoch.
    #[must_use]
    pub const fn from_millis(milliseconds: u64) -> Self {
        Self(milliseconds)
    }

    /// The time `span` later.
    #[must_use]
    pub fn plus(self, span: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(span.as_millis()).unwrap_or(u64::MAX)))
    }

    /// Milliseconds since the Unix epoch.
    #[must_use]
    pub const fn as_millis(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Timestamp {
    /// RFC 3339 in UTC with milliseconds; a time past the year 9999 is printed as its number of milliseconds.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match i64::try_from(self.0).map(jiff::Timestamp::from_millisecond) {
            Ok(Ok(time)) => write!(f, "{time:.3}"),
            _ => write!(f, "{}ms", self.0),
        }
    }
}

/// On whose behalf an event was recorded.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Actor {
    /// The control plane itself: timers and starts.
    System,
    /// A peer that proved nothing about itself; `peer` is its address, or how it came in.
    Anonymous {
        /// Such as `127.0.0.1:51234` or `cli`.
        peer: String,
    },
    /// An authenticated principal.
    Principal {
        /// Its name, never its credential.
        name: String,
    },
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System => f.write_str("system"),
            Self::Anonymous { peer } => write!(f, "anonymous({peer})"),
            Self::Principal { name } => f.write_str(name),
        }
    }
}

/// Ties the events of one wish together, and to the caller's own records.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CorrelationId(pub String);

/// An event as the log holds it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Envelope {
    /// Its place.
    pub offset: Offset,
    /// When it was decided, by this machine's wall clock.
    pub recorded_at: Timestamp,
    /// On whose behalf.
    pub actor: Actor,
    /// What ties it to other events, where there is something.
    pub correlation: Option<CorrelationId>,
    /// The fact.
    pub event: Event,
}

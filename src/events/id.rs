//! Names and ids, checked once where they enter.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::Generation;

/// The longest name that xDS clients and DNS-minded people accept, in bytes (xds-rules 25).
pub const NAME_BYTES_MAX: usize = 253;

/// The longest port name, in bytes: a DNS label, as in Kubernetes and SRV records.
pub const PORT_NAME_BYTES_MAX: usize = 63;

/// A name that was refused, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind} {shown}: {problem}")]
pub struct InvalidName {
    /// What the name was for, such as "service name".
    pub kind: &'static str,
    shown: String,
    problem: NameProblem,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum NameProblem {
    #[error("a name must not be empty")]
    Empty,
    #[error("it has {length} bytes, at most {max} are allowed")]
    TooLong { length: usize, max: usize },
    #[error("it must start with a letter or a digit")]
    Start,
    #[error("the character {0:?} is not allowed: use letters, digits, '-', '_' and '.'")]
    Character(char),
}

fn check(kind: &'static str, text: &str, max: usize) -> Result<(), InvalidName> {
    let problem = if text.is_empty() {
        Some(NameProblem::Empty)
    } else if text.len() > max {
        Some(NameProblem::TooLong { length: text.len(), max })
    } else if let Some(bad) =
        text.chars().find(|c| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')))
    {
        Some(NameProblem::Character(bad))
    } else {
        (!text.starts_with(|c: char| c.is_ascii_alphanumeric())).then_some(NameProblem::Start)
    };
    match problem {
        None => Ok(()),
        Some(problem) => Err(InvalidName { kind, shown: shorten(text), problem }),
    }
}

/// The text as an error may show it: quoted, escaped, and never longer than a line.
fn shorten(text: &str) -> String {
    const SHOWN_CHARS_MAX: usize = 40;
    let mut shown: String = text.escape_debug().take(SHOWN_CHARS_MAX).collect();
    if text.escape_debug().count() > SHOWN_CHARS_MAX {
        shown.push('…');
    }
    format!("\"{shown}\"")
}

/// Makes a name of the text where it lies: a replay reads millions of them, and a copy of each would cost as much again.
struct NameVisitor<T> {
    kind: &'static str,
    new: fn(&str) -> Result<T, InvalidName>,
}

impl<T> Visitor<'_> for NameVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a {}", self.kind)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        (self.new)(text).map_err(E::custom)
    }
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $kind:literal, $max:expr) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// The checked name.
            ///
            /// # Errors
            ///
            /// [`InvalidName`] when it is empty, too long, or holds anything but letters, digits, `-`, `_` and `.`.
            pub fn new(text: &str) -> Result<Self, InvalidName> {
                check($kind, text, $max).map(|()| Self(text.into()))
            }

            /// Its text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl FromStr for $name {
            type Err = InvalidName;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Self::new(text)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_str(NameVisitor { kind: $kind, new: Self::new })
            }
        }
    };
}

name! {
    /// What workers serve and clients ask for; the name of its first cluster.
    ServiceName, "service name", NAME_BYTES_MAX
}
name! {
    /// One running instance of a service on one host, as the worker calls itself.
    WorkerId, "worker id", NAME_BYTES_MAX
}
name! {
    /// A machine, container or pod that lends ports to workers.
    HostName, "host name", NAME_BYTES_MAX
}
name! {
    /// What a worker calls one of its ports, such as `http` or `grpc`.
    PortName, "port name", PORT_NAME_BYTES_MAX
}
name! {
    /// One live connection that speaks for workers.
    SessionId, "session id", NAME_BYTES_MAX
}
name! {
    /// One running copy of Foldplane, new at each start.
    ReplicaId, "replica id", NAME_BYTES_MAX
}

name! {
    /// What people call a view of nodes.
    ViewName, "view name", NAME_BYTES_MAX
}

/// Which worker: an instance of a service on a host. Printed `service/id@host`.
///
/// The host is part of the key, so that one id on two hosts is two workers (hashicorp/consul#8930).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct WorkerKey {
    /// What it serves.
    pub service: ServiceName,
    /// Where it runs.
    pub host: HostName,
    /// What it calls itself.
    pub id: WorkerId,
}

impl WorkerKey {
    /// The key that sorts before every worker of this service, for range queries.
    pub(crate) fn first_of(service: ServiceName) -> Self {
        Self { service, host: HostName("".into()), id: WorkerId("".into()) }
    }
}

impl fmt::Display for WorkerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}@{}", self.service, self.id, self.host)
    }
}

/// Which registration of which worker: what every later fact and wish names, so that none of them
/// can reach a newer registration of the same key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct WorkerRef {
    /// The worker.
    pub key: WorkerKey,
    /// Its registration.
    pub generation: Generation,
}

impl fmt::Display for WorkerRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} generation {}", self.key, self.generation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refused(text: &str, reason: &str) {
        let message = ServiceName::new(text).unwrap_err().to_string();
        assert!(message.contains(reason), "{message}");
    }

    #[test]
    fn names_that_would_poison_a_response_are_refused() {
        refused("", "must not be empty");
        refused(&"a".repeat(254), "254 bytes, at most 253");
        refused("a\nb", "'\\n' is not allowed");
        refused("*", "'*' is not allowed");
        refused("a:b", "':' is not allowed");
        refused("-a", "must start with a letter or a digit");
        assert!(ServiceName::new(&"a".repeat(253)).is_ok());
    }

    #[test]
    fn a_refusal_never_shows_more_than_a_line() {
        let message = ServiceName::new(&"\u{1}".repeat(10_000)).unwrap_err().to_string();
        assert!(message.len() < 200, "{message}");
        assert!(!message.contains('\u{1}'));
    }
}

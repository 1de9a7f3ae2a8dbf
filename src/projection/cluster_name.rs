//! The names of clusters: whose service they are of can be read off them.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::events::id::NAME_BYTES_MAX;
use crate::events::{PortName, ServiceName};

/// How much of a name that is no good a failure shows: a line.
const SHOWN_CHARS_MAX: usize = 60;

/// A name that is not for a service to give.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{shown}\" is not {service} or {service}: with names of ports behind it")]
pub(crate) struct ForeignName {
    shown: String,
    service: ServiceName,
}

/// The name of a cluster and of its load assignment.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ClusterName(String);

impl ClusterName {
    /// The cluster of a service's first port.
    #[must_use]
    pub fn of_service(service: &ServiceName) -> Self {
        Self(service.as_str().to_owned())
    }

    /// The cluster of another port.
    #[must_use]
    pub fn of_port(service: &ServiceName, port: &PortName) -> Self {
        Self(format!("{service}:{port}"))
    }

    /// The cluster of a service that a hook names: the service's own, or one whose name begins with it and a colon,
    /// so that no service ever has an endpoint in another's cluster.
    pub(crate) fn within(service: &ServiceName, name: String) -> Result<Self, ForeignName> {
        let rest = name.strip_prefix(service.as_str()).unwrap_or(":");
        let is_label = |label: &str| PortName::new(label).is_ok();
        let fits =
            rest.is_empty() || rest.strip_prefix(':').is_some_and(|rest| rest.split(':').all(is_label));
        if fits && name.len() <= NAME_BYTES_MAX {
            return Ok(Self(name));
        }
        let shown: String = name.escape_debug().take(SHOWN_CHARS_MAX).collect();
        Err(ForeignName { shown, service: service.clone() })
    }

    /// What sorts before the clusters of a service's other ports, for range queries.
    pub(crate) fn before_ports_of(service: &ServiceName) -> Self {
        Self(format!("{service}:"))
    }

    /// Its text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::borrow::Borrow<str> for ClusterName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ClusterName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

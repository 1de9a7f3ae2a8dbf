//! What decides which endpoints are published, where, and how. Its JSON is the body of REST and of files; its fields are
//! in the bytes of the log: they are never moved.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Hooks as expressions in CEL, each absent where nothing is decided anew (docs/policies.md).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Policy {
    /// Whether an endpoint is published: a truth value.
    pub include: Option<String>,
    /// In which cluster: the service's name, or that and a colon and more.
    pub cluster: Option<String>,
    /// As what: `HEALTHY`, `DEGRADED`, `UNHEALTHY` or `ABSENT`.
    pub health: Option<String>,
}

impl Policy {
    /// Whether it decides nothing.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.include.is_none() && self.cluster.is_none() && self.health.is_none()
    }
}

impl fmt::Display for Policy {
    /// `include cluster`: which hooks it has.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hooks = [("include", &self.include), ("cluster", &self.cluster), ("health", &self.health)];
        let mut names = hooks.iter().filter(|(_, hook)| hook.is_some()).map(|(name, _)| *name);
        f.write_str(names.next().unwrap_or("none"))?;
        names.try_for_each(|name| write!(f, " {name}"))
    }
}

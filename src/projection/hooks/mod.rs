//! Hooks: what decides whether, where and as what an endpoint is published. Asked anew with each event that is about its
//! worker, and with each change of a policy.

mod decision;
mod expression;
mod facts;
mod policy;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub(super) use decision::decide;
pub use facts::{EndpointFacts, Monitors, Place};
pub use policy::{CompiledPolicy, InvalidPolicy};

use super::{ClusterName, HealthStatus};

/// One of the three decisions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Hook {
    /// Whether the endpoint is published.
    Include,
    /// In which cluster.
    Cluster,
    /// As what.
    Health,
}

impl Hook {
    /// Every hook, in the order in which they are asked.
    pub const ALL: [Self; 3] = [Self::Include, Self::Cluster, Self::Health];

    /// Its name, as it is written in policies.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Include => "include",
            Self::Cluster => "cluster",
            Self::Health => "health",
        }
    }
}

impl fmt::Display for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Why a hook gave no answer for an endpoint: the answer without it holds for that one, and the failure is shown.
///
/// Its text is part of the state. It must be the same whenever the same is asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{0}")]
pub struct HookFailure(pub String);

/// Hooks as code, for a program that uses the library: what decides where no policy in the log does.
///
/// A replay gives the same resources only with the same hooks. They must be pure: an answer follows from the facts
/// alone. [`name`](Self::name) tells one version of them from another, and is saved with each state, so that a
/// saved state that other hooks have made is not used.
///
/// ```
/// use std::sync::Arc;
/// use foldplane::projection::hooks::{EndpointFacts, HookFailure, Hooks};
/// use foldplane::projection::state::State;
///
/// /// Endpoints of hosts that are named so are for tests.
/// #[derive(Debug)]
/// struct NoTestHosts;
///
/// impl Hooks for NoTestHosts {
///     fn name(&self) -> &str {
///         "no-test-hosts 1"
///     }
///
///     fn include(&self, endpoint: &EndpointFacts<'_>) -> Result<bool, HookFailure> {
///         Ok(!endpoint.host.starts_with("test-"))
///     }
/// }
///
/// let state = State::with_hooks(Arc::new(NoTestHosts));
/// assert_eq!(state.hooks_name(), "no-test-hosts 1");
/// ```
pub trait Hooks: fmt::Debug + Send + Sync {
    /// Another one whenever an answer may be another.
    fn name(&self) -> &str;

    /// Whether the endpoint is published.
    ///
    /// # Errors
    ///
    /// When it cannot be said: then it is.
    fn include(&self, _endpoint: &EndpointFacts<'_>) -> Result<bool, HookFailure> {
        Ok(true)
    }

    /// In which cluster: the service's own, or one whose name begins with it and a colon.
    ///
    /// # Errors
    ///
    /// When it cannot be said: then in `default`, the service's own for its first port, `service:port` for the others.
    fn cluster(&self, _endpoint: &EndpointFacts<'_>, default: &ClusterName) -> Result<String, HookFailure> {
        Ok(default.as_str().to_owned())
    }

    /// As what; nothing keeps it out. Not asked of what drains or was never ready.
    ///
    /// # Errors
    ///
    /// When it cannot be said: then as `default`.
    fn health(
        &self,
        _endpoint: &EndpointFacts<'_>,
        default: Option<HealthStatus>,
    ) -> Result<Option<HealthStatus>, HookFailure> {
        Ok(default)
    }
}

/// The hooks of the program around a state, if it has any. They are not saved, their name is.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Around {
    pub(super) name: String,
    #[serde(skip)]
    pub(super) hooks: Option<Arc<dyn Hooks>>,
}

impl PartialEq for Around {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Around {}

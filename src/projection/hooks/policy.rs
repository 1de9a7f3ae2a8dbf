//! A policy whose expressions are ready to be asked.

use std::fmt;

use cel::Value;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::expression::Expression;
use super::{EndpointFacts, Hook, HookFailure};
use crate::events::event::Policy;
use crate::projection::ClusterName;
use crate::projection::HealthStatus;

/// A hook of a policy that is no good.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{hook}: {reason}")]
pub struct InvalidPolicy {
    /// Which hook.
    pub hook: Hook,
    /// What is wrong with it.
    pub reason: String,
}

/// A policy, compiled once for all the endpoints that it is asked about. Saved and compared as its text.
pub struct CompiledPolicy {
    source: Policy,
    include: Option<Result<Expression, String>>,
    cluster: Option<Result<Expression, String>>,
    health: Option<Result<Expression, String>>,
}

impl CompiledPolicy {
    /// Compiles a policy. What this build does not take fails for each endpoint, as a log may hold it all the same.
    #[must_use]
    pub fn new(source: Policy) -> Self {
        let compile = |text: &Option<String>| text.as_deref().map(Expression::compile);
        let [include, cluster, health] = [&source.include, &source.cluster, &source.health].map(compile);
        Self { source, include, cluster, health }
    }

    /// Refuses a policy with an expression that is no good.
    ///
    /// # Errors
    ///
    /// The first of them.
    pub fn check(source: &Policy) -> Result<(), InvalidPolicy> {
        let compiled = Self::new(source.clone());
        Hook::ALL.into_iter().try_for_each(|hook| match compiled.hook(hook) {
            Some(Err(reason)) => Err(InvalidPolicy { hook, reason: reason.clone() }),
            Some(Ok(_)) | None => Ok(()),
        })
    }

    /// Its text.
    #[must_use]
    pub const fn source(&self) -> &Policy {
        &self.source
    }

    pub(super) const fn has(&self, hook: Hook) -> bool {
        self.hook(hook).is_some()
    }

    const fn hook(&self, hook: Hook) -> Option<&Result<Expression, String>> {
        match hook {
            Hook::Include => self.include.as_ref(),
            Hook::Cluster => self.cluster.as_ref(),
            Hook::Health => self.health.as_ref(),
        }
    }

    fn ask<D: Serialize>(
        &self,
        hook: Hook,
        endpoint: &EndpointFacts<'_>,
        default: D,
    ) -> Result<Value, HookFailure> {
        match self.hook(hook) {
            Some(Ok(expression)) => expression.ask(endpoint, default),
            Some(Err(reason)) => Err(HookFailure(reason.clone())),
            None => Err(HookFailure(format!("there is no hook {hook}"))),
        }
    }

    pub(super) fn include(&self, endpoint: &EndpointFacts<'_>, default: bool) -> Result<bool, HookFailure> {
        let answer = self.ask(Hook::Include, endpoint, default)?;
        let Value::Bool(included) = answer else { return Err(unfit("true or false", &answer)) };
        Ok(included)
    }

    pub(super) fn cluster(
        &self,
        endpoint: &EndpointFacts<'_>,
        default: &ClusterName,
    ) -> Result<String, HookFailure> {
        let answer = self.ask(Hook::Cluster, endpoint, default.as_str())?;
        let Value::String(name) = answer else { return Err(unfit("the name of a cluster", &answer)) };
        Ok(name.as_ref().clone())
    }

    pub(super) fn health(
        &self,
        endpoint: &EndpointFacts<'_>,
        default: Option<HealthStatus>,
    ) -> Result<Option<HealthStatus>, HookFailure> {
        const ABSENT: &str = "ABSENT";
        let answer = self.ask(Hook::Health, endpoint, default.map_or(ABSENT, HealthStatus::as_str))?;
        let statuses = [HealthStatus::Healthy, HealthStatus::Degraded, HealthStatus::Unhealthy];
        if let Value::String(text) = &answer {
            if text.as_str() == ABSENT {
                return Ok(None);
            }
            if let Some(status) = statuses.into_iter().find(|status| status.as_str() == text.as_str()) {
                return Ok(Some(status));
            }
        }
        Err(unfit("HEALTHY, DEGRADED, UNHEALTHY or ABSENT", &answer))
    }
}

/// An answer of the wrong kind. Only text is shown of it: it is short enough, and has one form.
fn unfit(wanted: &str, answer: &Value) -> HookFailure {
    const SHOWN_CHARS_MAX: usize = 60;
    let shown = if let Value::String(text) = answer {
        let text: String = text.escape_debug().take(SHOWN_CHARS_MAX).collect();
        format!("\"{text}\"")
    } else {
        format!("of the type {}", answer.type_of())
    };
    HookFailure(format!("its answer is {shown}, and not {wanted}"))
}

impl fmt::Debug for CompiledPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.source.fmt(f)
    }
}

impl PartialEq for CompiledPolicy {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source
    }
}

impl Eq for CompiledPolicy {}

impl Serialize for CompiledPolicy {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.source.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for CompiledPolicy {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Policy::deserialize(deserializer).map(Self::new)
    }
}

//! The layers: a service's own hook, else the one for all, else the program's own, else what always decides.

use super::{CompiledPolicy, EndpointFacts, Hook, HookFailure};
use crate::events::WorkerKey;
use crate::events::event::{ClusterPolicy, Endpoint, Locality};
use crate::projection::ClusterName;
use crate::projection::HealthStatus;
use crate::projection::publication::health;
use crate::projection::state::{State, Worker};

/// What is decided of one endpoint.
#[derive(Debug)]
pub(in crate::projection) struct Decision {
    /// In which cluster it is.
    pub(in crate::projection) cluster: ClusterName,
    /// As what it is published; nothing keeps it out.
    pub(in crate::projection) health: Option<HealthStatus>,
    /// Which hooks gave no answer, and why.
    pub(in crate::projection) failures: Vec<(Hook, HookFailure)>,
}

/// Decides over one endpoint of a worker that stands at `locality`.
pub(in crate::projection) fn decide(
    state: &State,
    key: &WorkerKey,
    worker: &Worker,
    locality: &Locality,
    endpoint: &Endpoint,
) -> Decision {
    let plain = Decision {
        cluster: state.cluster_name(&key.service, &endpoint.port),
        health: health(worker, &state.policy_of(&key.service)),
        failures: Vec::new(),
    };
    let layers = Layers::of(state, key);
    if layers.are_empty() {
        return plain;
    }
    let facts = EndpointFacts::of(key, worker, locality, endpoint);
    layers.decide(plain, &facts, key, worker)
}

struct Layers<'a> {
    state: &'a State,
    own: Option<&'a CompiledPolicy>,
    for_all: Option<&'a CompiledPolicy>,
}

impl<'a> Layers<'a> {
    fn of(state: &'a State, key: &WorkerKey) -> Self {
        let policy = |service| state.policies.get(&service).map(AsRef::as_ref);
        let none = state.policies.is_empty();
        let own = if none { None } else { policy(Some(key.service.clone())) };
        Self { state, own, for_all: if none { None } else { policy(None) } }
    }

    const fn are_empty(&self) -> bool {
        self.own.is_none() && self.for_all.is_none() && self.state.around.hooks.is_none()
    }

    fn with(&self, hook: Hook) -> Option<&'a CompiledPolicy> {
        [self.own, self.for_all].into_iter().flatten().find(|policy| policy.has(hook))
    }

    fn decide(
        &self,
        mut decision: Decision,
        facts: &EndpointFacts<'_>,
        key: &WorkerKey,
        worker: &Worker,
    ) -> Decision {
        let around = self.state.around.hooks.as_deref();
        let Decision { cluster, health, failures } = &mut decision;
        let mut included = true;
        if let Some(hooks) = around {
            settle(failures, Hook::Include, hooks.include(facts), &mut included);
        }
        if let Some(policy) = self.with(Hook::Include) {
            settle(failures, Hook::Include, policy.include(facts, included), &mut included);
        }

        let own = |name: String| {
            ClusterName::within(&key.service, name).map_err(|foreign| HookFailure(foreign.to_string()))
        };
        if let Some(hooks) = around {
            settle(failures, Hook::Cluster, hooks.cluster(facts, cluster).and_then(own), cluster);
        }
        if let Some(policy) = self.with(Hook::Cluster) {
            settle(failures, Hook::Cluster, policy.cluster(facts, cluster).and_then(own), cluster);
        }

        if is_open(worker) {
            if let Some(hooks) = around {
                settle(failures, Hook::Health, hooks.health(facts, *health).and_then(serving), health);
            }
            if let Some(policy) = self.with(Hook::Health) {
                settle(failures, Hook::Health, policy.health(facts, *health), health);
            }
        }
        if !included {
            *health = None;
        }
        decision
    }
}

/// What drains or was never ready is so whatever anybody wants: a policy must not bring it in.
fn is_open(worker: &Worker) -> bool {
    match health(worker, &ClusterPolicy::default()) {
        None | Some(HealthStatus::Draining) => false,
        Some(HealthStatus::Healthy | HealthStatus::Degraded | HealthStatus::Unhealthy) => true,
    }
}

/// Takes an answer; a failure leaves what held before it.
fn settle<T>(
    failures: &mut Vec<(Hook, HookFailure)>,
    hook: Hook,
    answer: Result<T, HookFailure>,
    held: &mut T,
) {
    match answer {
        Ok(given) => *held = given,
        Err(failure) => failures.push((hook, failure)),
    }
}

/// Draining has an end, which only the worker's own drain has.
fn serving(health: Option<HealthStatus>) -> Result<Option<HealthStatus>, HookFailure> {
    match health {
        Some(HealthStatus::Draining) => Err(HookFailure("only a worker that drains is DRAINING".to_owned())),
        Some(HealthStatus::Healthy | HealthStatus::Degraded | HealthStatus::Unhealthy) | None => Ok(health),
    }
}

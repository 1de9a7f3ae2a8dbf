//! A policy of one's own, tested with Foldplane's generators: admin ports are nobody's business, and whoever is said to be less
//! than well gets no requests.
//!
//! ```console
//! $ cargo test --example property_test_my_policy
//! $ cargo run --example property_test_my_policy                 # how it is set
//! $ cargo run --example property_test_my_policy -- my.jsonl     # what it publishes at the end of a log that was exported
//! ```
//!
//! It is written twice, as hooks of a program that has Foldplane as its library and as expressions that `foldplane policy set`
//! takes, and the two are held against each other. To test a policy of your own, copy this file into a crate that has `foldplane`
//! with the feature `testing` and `proptest`, and write [`Careful`] and [`expressions`] anew.
#![allow(clippy::print_stdout, reason = "an example that prints what it found")]

use std::process::ExitCode;
use std::sync::Arc;

use foldplane::api::views;
use foldplane::events::event::Policy;
use foldplane::projection::hooks::{EndpointFacts, HookFailure, Hooks};
use foldplane::projection::state::State;
use foldplane::projection::{HealthStatus, Snapshot};
use foldplane::testing::corpus;

/// The policy as hooks.
#[derive(Debug)]
struct Careful;

impl Hooks for Careful {
    fn name(&self) -> &str {
        "careful 1"
    }

    fn include(&self, endpoint: &EndpointFacts<'_>) -> Result<bool, HookFailure> {
        Ok(endpoint.endpoint.port != "admin")
    }

    fn health(
        &self,
        endpoint: &EndpointFacts<'_>,
        default: Option<HealthStatus>,
    ) -> Result<Option<HealthStatus>, HookFailure> {
        let is_well = endpoint.verdict == "healthy";
        Ok(if is_well { default } else { default.map(|_| HealthStatus::Unhealthy) })
    }
}

/// The same as expressions.
fn expressions() -> Policy {
    Policy {
        include: Some("worker.endpoint.port != 'admin'".to_owned()),
        cluster: None,
        health: Some("worker.verdict == 'healthy' || default == 'ABSENT' ? default : 'UNHEALTHY'".to_owned()),
    }
}

/// The beginning of a log under these hooks.
fn under_hooks() -> Snapshot {
    Snapshot::of(State::with_hooks(Arc::new(Careful)))
}

/// What is published, a line an endpoint.
fn published(snapshot: &Snapshot) -> Vec<String> {
    let listing = views::endpoints(snapshot, None);
    let line = |item: &views::EndpointView| {
        format!("{} {} {} {} {}", item.cluster, item.port, item.address, item.health, item.worker)
    };
    listing.items.iter().map(line).collect()
}

/// Says how the policy is set; with a log, what is published at its end under the policy.
fn main() -> ExitCode {
    let Some(path) = std::env::args().nth(1) else {
        let Policy { include, health, .. } = expressions();
        let (include, health) = (include.unwrap_or_default(), health.unwrap_or_default());
        println!("foldplane policy set --include \"{include}\" --health \"{health}\"");
        return ExitCode::SUCCESS;
    };
    let read = std::fs::read_to_string(&path).map_err(|error| error.to_string());
    match read.and_then(|lines| corpus(&lines).map_err(|error| error.to_string())) {
        Ok(log) => {
            let (snapshot, _) = under_hooks().fold(&log);
            published(&snapshot).iter().for_each(|line| println!("{line}"));
            ExitCode::SUCCESS
        }
        Err(error) => {
            println!("{path}: {error}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use foldplane::command::Command;
    use foldplane::events::event::Verdict;
    use foldplane::testing::{Step, Wanted, World, steps};
    use proptest::prelude::*;

    use super::*;

    /// Whatever happens, without policies that others set.
    fn happenings() -> impl Strategy<Value = Vec<Step>> {
        let of_others = |step: &Step| matches!(step.wanted, Wanted::SetPolicy { .. });
        steps(1..60).prop_map(move |steps| steps.into_iter().filter(|step| !of_others(step)).collect())
    }

    proptest! {
        #[test]
        fn it_publishes_no_admin_port_and_nobody_who_is_not_well_as_healthy(steps in happenings()) {
            let mut world = World::under(under_hooks());
            for step in &steps {
                let _refused = world.step(step);
                let state = world.snapshot.state();
                for item in views::endpoints(&world.snapshot, None).items {
                    prop_assert_ne!(&item.port, "admin");
                    let mut workers = state.workers().iter();
                    let (_, worker) = workers.find(|(key, _)| key.to_string() == item.worker).unwrap();
                    let is_well = worker.verdict() == Verdict::Healthy;
                    prop_assert!(is_well || item.health != HealthStatus::Healthy, "{item:?}");
                }
            }
        }

        #[test]
        fn hooks_and_expressions_publish_the_same(steps in happenings()) {
            let (mut hooked, mut expressed) = (World::under(under_hooks()), World::default());
            expressed.command(&Command::SetPolicy { service: None, policy: expressions() }).unwrap();
            for step in &steps {
                let _refused = (hooked.step(step), expressed.step(step));
                prop_assert_eq!(published(&hooked.snapshot), published(&expressed.snapshot));
            }
        }
    }

    #[test]
    fn the_policy_is_taken_when_it_is_set() {
        let set = Command::SetPolicy { service: None, policy: expressions() };
        World::default().command(&set).unwrap();
    }
}

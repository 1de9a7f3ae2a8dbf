//! Policies of their day, and hooks of a program: a replay decides as it was decided then.

use std::sync::Arc;

use foldplane::events::event::Policy;
use foldplane::events::{Envelope, Event};
use foldplane::projection::ClusterName;
use foldplane::projection::checkpoint::{self, CheckpointError};
use foldplane::projection::hooks::{EndpointFacts, HookFailure, Hooks};
use foldplane::projection::state::State;
use foldplane::projection::{HealthStatus, Snapshot};
use foldplane::testing::{play, steps};
use proptest::prelude::*;
use proptest::strategy::ValueTree;

use crate::replay::bytes;

/// Endpoints of one host are elsewhere, and another has none.
#[derive(Debug)]
struct ByHost;

impl Hooks for ByHost {
    fn name(&self) -> &str {
        "by-host 1"
    }

    fn include(&self, endpoint: &EndpointFacts<'_>) -> Result<bool, HookFailure> {
        Ok(endpoint.host != "h3")
    }

    fn cluster(&self, endpoint: &EndpointFacts<'_>, default: &ClusterName) -> Result<String, HookFailure> {
        match endpoint.host {
            "h1" => Ok(format!("{default}:near")),
            "h2" => Err(HookFailure("nobody knows where h2 is".to_owned())),
            _ => Ok(default.to_string()),
        }
    }

    fn health(
        &self,
        endpoint: &EndpointFacts<'_>,
        default: Option<HealthStatus>,
    ) -> Result<Option<HealthStatus>, HookFailure> {
        Ok(if endpoint.verdict == "degraded" { Some(HealthStatus::Degraded) } else { default })
    }
}

fn start() -> Snapshot {
    Snapshot::of(State::with_hooks(Arc::new(ByHost)))
}

/// Published after every event.
fn live(start: Snapshot, log: &[Envelope]) -> Vec<Snapshot> {
    let next = |last: &mut Snapshot, envelope| {
        *last = last.fold([envelope]).0;
        Some(last.clone())
    };
    log.iter().scan(start, next).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn an_old_offset_has_the_policy_of_its_day(steps in steps(1..50), at in any::<prop::sample::Index>()) {
        let log = play(&steps);
        prop_assume!(!log.is_empty());
        for begin in [Snapshot::default, start] {
            let live = live(begin(), &log);
            let at = at.index(log.len());
            // Whatever policy came later, what was told at an offset is told again.
            let replayed = begin().fold(&log[..=at]).0;
            prop_assert_eq!(bytes(replayed.resources()), bytes(live[at].resources()));
        }
    }

    #[test]
    fn a_saved_state_goes_on_with_its_own_hooks_only(steps in steps(1..50), at in any::<prop::sample::Index>()) {
        let log = play(&steps);
        let (before, after) = log.split_at(at.index(log.len() + 1));
        let whole = start().fold(&log).0;
        let saved = checkpoint::encode(start().fold(before).0.state());
        let with = State::with_hooks(Arc::new(ByHost));
        let went_on = Snapshot::of(checkpoint::decode_onto(&saved, with).unwrap()).fold(after).0;
        prop_assert_eq!(went_on.state(), whole.state());
        prop_assert_eq!(bytes(went_on.resources()), bytes(whole.resources()));
        let other = matches!(checkpoint::decode(&saved), Err(CheckpointError::OtherHooks { .. }));
        prop_assert!(other, "a state is used that other hooks have made");
    }
}

/// The hooks of the program are what the hooks of the log build on.
#[test]
fn a_policy_builds_on_the_hooks_of_the_program() {
    let mut reached = 0;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    for _ in 0..100 {
        let log = play(&steps(20..40).new_tree(&mut runner).unwrap().current());
        let mut last = start().fold(&log).0;
        let service = last.state().services().keys().next().cloned();
        let policy = Policy { cluster: Some("default + ':own'".to_owned()), ..Policy::default() };
        let offset = last.offset().next();
        let Some(envelope) = log.last().cloned() else { continue };
        last =
            last.fold([&Envelope { offset, event: Event::PolicyChanged { service, policy }, ..envelope }]).0;
        reached += last.state().clusters().keys().filter(|name| name.as_str().ends_with(":near:own")).count();
    }
    assert!(reached > 0);
}

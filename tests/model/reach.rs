//! The generators reach every event and every refusal: a property over nothing proves nothing.

use std::collections::BTreeSet;

use foldplane::command::decide;
use foldplane::events::{Actor, Envelope, Timestamp};
use foldplane::projection::state::State;
use foldplane::projection::{Outcome, evolve};
use foldplane::testing::{crowd, events, steps};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;

/// So many runs of a fixed seed.
const RUNS: usize = 200;

/// Every reason for a refusal that a generated run can meet.
const REFUSALS: [&str; 12] = [
    "address_taken",
    "draining",
    "host_draining",
    "invalid_argument",
    "not_declared",
    "port_taken",
    "ports_exhausted",
    "resource_in_use",
    "stale_generation",
    "unknown_host",
    "unknown_reference",
    "unknown_worker",
];

fn samples<S: Strategy>(strategy: &S) -> Vec<S::Value> {
    let mut runner = TestRunner::deterministic();
    (0..RUNS).map(|_| strategy.new_tree(&mut runner).unwrap().current()).collect()
}

#[test]
fn steps_lead_to_every_event_and_every_refusal() {
    let (mut made, mut refused) = (BTreeSet::new(), BTreeSet::new());
    let runs = samples(&steps(40..60)).into_iter().chain(samples(&crowd()));
    for run in runs {
        let (mut state, mut now_ms) = (State::default(), 0);
        for step in run {
            now_ms += step.after_ms;
            let recorded_at = Timestamp::from_millis(now_ms);
            let command = step.wanted.command(&state);
            match decide(&state, &command, recorded_at) {
                Err(rejection) => drop(refused.insert(rejection.code.as_str())),
                Ok(events) => {
                    for event in events {
                        made.insert(event.name());
                        let offset = state.offset().next();
                        let actor = Actor::System;
                        evolve(
                            &mut state,
                            &Envelope { offset, recorded_at, actor, correlation: None, event },
                        );
                    }
                }
            }
        }
    }
    assert_eq!(
        Vec::from_iter(made),
        [
            "ExpiryHeld",
            "ExpiryReleased",
            "HostDraining",
            "HostRemoved",
            "HostReported",
            "NodeViewRemoved",
            "NodeViewSet",
            "PolicyChanged",
            "PortBusy",
            "ReplicaStarted",
            "ResourceApplied",
            "ResourceDeleted",
            "ServiceDeclared",
            "ServiceRetired",
            "UpdateRejected",
            "WorkerDisconnected",
            "WorkerDraining",
            "WorkerHealthReported",
            "WorkerReady",
            "WorkerReconnected",
            "WorkerRegistered",
            "WorkerRemoved",
            "WorkerReweighted",
            "WorkerUnready"
        ]
    );
    assert_eq!(Vec::from_iter(refused), REFUSALS);
}

#[test]
fn events_without_sense_lead_to_every_anomaly() {
    let mut outcomes = BTreeSet::new();
    for run in samples(&events(30..50)) {
        let mut state = State::default();
        outcomes.extend(run.iter().map(|envelope| match evolve(&mut state, envelope) {
            Outcome::Ignored(anomaly) => anomaly.to_string(),
            outcome => format!("{outcome:?}"),
        }));
    }
    assert_eq!(
        Vec::from_iter(outcomes),
        [
            "Folded",
            "another registration has taken the worker's key",
            "another worker holds one of its addresses or ports",
            "no such resource was applied",
            "no such worker lives",
            "the worker is draining",
            "the worker's key is taken",
            "there is no such view",
            "workers live on the host",
            "workers of the service live"
        ]
    );
}

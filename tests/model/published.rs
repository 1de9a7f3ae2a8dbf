//! What is published is one thing, through whatever door it is looked at.
#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "one test compares real times")]

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use foldplane::api::views;
use foldplane::command::{Command, Listen, PortRequest, Registering};
use foldplane::events::event::{HealthSource, Lease, Policy, Readiness, Verdict};
use foldplane::events::{Actor, Envelope, Event, PortName, SessionId, Timestamp, WorkerKey, WorkerRef};
use foldplane::projection::resources::{Dials, TypeUrl};
use foldplane::projection::state::State;
use foldplane::projection::{HealthStatus, Outcome, Snapshot, evolve};
use foldplane::testing::model::{is_hidden, told_by};
use foldplane::testing::{play, steps};
use proptest::prelude::*;

/// The addresses of workers that get requests, as xDS has them.
fn ready_over_xds(snapshot: &Snapshot) -> BTreeSet<String> {
    let told = told_by(snapshot.resources(), Dials::Everything);
    let of_workers = |(type_url, name): &(TypeUrl, String)| {
        *type_url == TypeUrl::ClusterLoadAssignment && !is_hidden(snapshot, name)
    };
    let lines = told.iter().filter(|(key, _)| of_workers(key)).flat_map(|(_, lines)| lines);
    let ready = lines.filter(|line| line.contains(" HEALTHY "));
    ready.filter_map(|line| line.split(' ').nth(2).map(str::to_owned)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    // kubernetes/kubernetes#125619, kubernetes/kubernetes#117193 (F28)
    #[test]
    fn f28_rest_and_xds_agree_on_who_is_ready_at_every_offset(steps in steps(1..60)) {
        let mut snapshot = Snapshot::default();
        for envelope in &play(&steps) {
            snapshot = snapshot.fold([envelope]).0;
            let endpoints = views::endpoints(&snapshot, None).items;
            let ready = |health: HealthStatus| health == HealthStatus::Healthy;
            let sent = endpoints.iter().filter(|e| ready(e.health) && !is_hidden(&snapshot, &e.cluster));
            let over_rest: BTreeSet<String> = sent.map(|e| e.address.clone()).collect();
            prop_assert_eq!(over_rest, ready_over_xds(&snapshot));
            for worker in views::workers(&snapshot, None).items {
                let Some(first) = worker.endpoints.first() else { continue };
                let published = endpoints.iter().find(|e| e.address == first.address).map(|e| e.health);
                prop_assert_eq!(published, worker.health, "{}", worker.id);
            }
        }
    }
}

/// A control plane of workers of one service, without its shells.
#[derive(Default)]
struct Plane {
    state: State,
}

impl Plane {
    fn obey(&mut self, command: &Command) {
        let recorded_at = Timestamp::from_millis(1_000);
        for event in foldplane::command::decide(&self.state, command, recorded_at).unwrap() {
            self.happen(event);
        }
    }

    fn happen(&mut self, event: Event) {
        let (offset, recorded_at) = (self.state.offset().next(), Timestamp::from_millis(1_000));
        let envelope = Envelope { offset, recorded_at, actor: Actor::System, correlation: None, event };
        assert_eq!(evolve(&mut self.state, &envelope), Outcome::Folded);
    }

    fn register(&mut self, id: &str, session: &str, readiness: Readiness) -> WorkerRef {
        let worker = WorkerKey {
            service: "web".parse().unwrap(),
            host: "h1".parse().unwrap(),
            id: id.parse().unwrap(),
        };
        let port = PortRequest {
            name: PortName::new("http").unwrap(),
            listen: Listen::Port { number: None, address: None },
        };
        let lease = Lease::Session { disconnect_grace_ms: 0 };
        self.obey(&Command::Register(Registering {
            ports: vec![port],
            readiness,
            metadata: [("track".to_owned(), "stable".to_owned())].into(),
            ..Registering::new(worker.clone(), SessionId::new(session).unwrap(), lease)
        }));
        let generation = self.state.workers()[&worker].generation;
        WorkerRef { key: worker, generation }
    }

    fn ready(&self) -> usize {
        ready_over_xds(&Snapshot::of(self.state.clone())).len()
    }
}

// hashicorp/consul#341, hashicorp/consul#2268 (F30)
#[test]
fn f30_nobody_is_in_the_pool_before_its_first_ready_whatever_a_policy_says() {
    let mut plane = Plane::default();
    let policy = Policy { health: Some("'HEALTHY'".to_owned()), ..Policy::default() };
    plane.obey(&Command::SetPolicy { service: None, policy });
    let first = plane.register("w1", "s1", Readiness::Reported);
    assert_eq!(plane.ready(), 0);
    plane.obey(&Command::Ready { worker: first });
    assert_eq!(plane.ready(), 1);
    let second = plane.register("w1", "s2", Readiness::Reported);
    assert_eq!(plane.ready(), 0, "an installation of another process does not inherit the state");
    plane.obey(&Command::Ready { worker: second });
    assert_eq!(plane.ready(), 1);
}

/// How long some verdicts take among so many workers, under a policy with all three hooks.
fn time_of_verdicts(workers: usize) -> Duration {
    const VERDICTS: u64 = 300;
    let mut plane = Plane::default();
    let policy = Policy {
        include: Some("worker.metadata.track != 'trial'".to_owned()),
        cluster: Some("worker.metadata.track == 'canary' ? default + ':canary' : default".to_owned()),
        health: Some("worker.verdict == 'degraded' ? 'UNHEALTHY' : default".to_owned()),
    };
    let all: Vec<WorkerRef> =
        (0..workers).map(|index| plane.register(&format!("w{index}"), "s1", Readiness::Assumed)).collect();
    plane.obey(&Command::SetPolicy { service: None, policy });
    let begun = Instant::now();
    for (turn, worker) in (0..VERDICTS).zip(all.iter().cycle()) {
        let verdict = if turn % 2 == 0 { Verdict::Degraded } else { Verdict::Healthy };
        let (worker, source) = (worker.clone(), HealthSource::Memory);
        plane.happen(Event::WorkerHealthReported { worker, source, verdict, reason: turn.to_string() });
    }
    begun.elapsed()
}

/// A policy is asked about the worker that an event is about, and not about all: thirty times as many workers would cost
/// thirty times as much.
#[test]
fn one_event_costs_one_worker() {
    let best = |workers| (0..5).map(|_| time_of_verdicts(workers)).min().unwrap();
    let (few, many) = (best(30), best(900));
    assert!(many < few * 6, "{few:?} among 30 workers, {many:?} among 900");
}

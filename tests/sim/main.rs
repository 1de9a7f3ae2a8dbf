//! The real engine, fold and stream machines under a virtual clock, from one seed: a disk that fails, is full or loses its
//! power, proxies that refuse, stall and reconnect, workers that lie. First with faults, then without; then everything
//! must come to rest.
//!
//! `FOLDPLANE_SIM_SEEDS=1000..9000 cargo test --test sim seeds` runs other seeds than those of the commit. A failure prints
//! its seed, the command that repeats it, and the shortest list of acts that still fails.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "all of this is a test, though most of it stands outside of the test functions"
)]

mod kept;
mod simulator;

use std::ops::Range;

use simulator::acts::Scenario;
use simulator::reached::Reached;
use simulator::run::run;
use simulator::seeds::{commit, try_seed};

/// What sixty runs must come by.
const MUST_BE_REACHED: [&str; 30] = [
    "acknowledged",
    "refused",
    "unavailable",
    "responses",
    "a caller that goes away",
    "wall clock set back",
    "writes fail",
    "syncs fail",
    "disk full",
    "power cut",
    "power cut at a start",
    "a proxy refuses",
    "a proxy is late",
    "a proxy stalls",
    "a proxy's connection is lost",
    "a proxy restarts",
    "a worker's connection is lost",
    "a worker lies",
    "HostDraining",
    "HostRemoved",
    "HostReported",
    "PortBusy",
    "ReplicaStarted",
    "UpdateRejected",
    "WorkerDisconnected",
    "WorkerDraining",
    "WorkerHealthReported",
    "WorkerReconnected",
    "WorkerRemoved",
    "WorkerReweighted",
];

/// So many fresh seeds does an ordinary run try.
const SEEDS: u64 = 200;

/// The seeds that are asked for, or fresh ones: each commit has its own, which are the same wherever it is tried.
fn seeds() -> Range<u64> {
    let Ok(text) = std::env::var("FOLDPLANE_SIM_SEEDS") else {
        let first = u64::from_str_radix(&commit(), 16).unwrap_or_default();
        return first..first + SEEDS;
    };
    let (first, end) = text.split_once("..").expect("FOLDPLANE_SIM_SEEDS is written FIRST..END");
    first.parse().expect("a number")..end.parse().expect("a number")
}

/// Half of the seeds, so that two threads share them.
fn try_every_other(seeds: Range<u64>) {
    println!("FOLDPLANE_SIM_SEEDS={}..{}", seeds.start, seeds.end);
    for seed in seeds.step_by(2) {
        if let Err(failure) = try_seed(seed) {
            panic!("{failure}");
        }
    }
}

#[test]
fn even_seeds_with_faults_lose_nothing_and_without_them_come_to_rest() {
    try_every_other(seeds());
}

#[test]
fn odd_seeds_with_faults_lose_nothing_and_without_them_come_to_rest() {
    let Range { start, end } = seeds();
    try_every_other(start + 1..end);
}

#[test]
fn one_seed_gives_one_trace() {
    for seed in 0..10 {
        assert_eq!(run(&Scenario::of(seed)), run(&Scenario::of(seed)), "seed {seed}");
    }
}

#[test]
fn the_seeds_reach_every_kind_of_act_answer_and_event() {
    let mut reached = Reached::default();
    (0..60).for_each(|seed| reached += &run(&Scenario::of(seed)).reached);
    println!("{reached}");
    for what in MUST_BE_REACHED {
        assert!(reached.times(what) > 3, "only {}: {what}", reached.times(what));
    }
}

//! The real engine, log, fold and stream machines under a virtual clock, from one seed: failing writes, crashes before and
//! after a write, clients that refuse, stall and reconnect. First with faults, then without; then everything must come to rest.
//!
//! `FOLDPLANE_SIM_SEEDS=1000..9000 cargo test --test sim` runs other seeds than the default ones. A failure prints its seed, the
//! command that repeats it, and the shortest list of acts that still fails.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "all of this is a test, though most of it stands outside of the test functions"
)]

mod acts;
mod disk;
mod kept;
mod run;
mod site;

use std::cell::Cell;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

use acts::{Act, acts};

/// The seeds of an ordinary run.
const SEEDS: Range<u64> = 0..200;

/// So many tries to make a failing run shorter.
const SHRINKS_MAX: usize = 400;

fn seeds() -> Range<u64> {
    let Ok(text) = std::env::var("FOLDPLANE_SIM_SEEDS") else { return SEEDS };
    let (first, end) = text.split_once("..").expect("FOLDPLANE_SIM_SEEDS is written FIRST..END");
    first.parse().expect("a number")..end.parse().expect("a number")
}

thread_local! {
    /// Whether panics of this thread are expected, and are not to be printed.
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Panics are printed as ever, but for those of runs, of which only the last one matters.
fn keep_runs_quiet() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let print = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !QUIET.get() {
                print(panic);
            }
        }));
    });
}

/// What makes these acts fail, if they do.
fn fault(acts: &[Act]) -> Option<String> {
    keep_runs_quiet();
    QUIET.set(true);
    let outcome = catch_unwind(AssertUnwindSafe(|| run::run(acts)));
    QUIET.set(false);
    outcome.err().map(|panic| match panic.downcast::<String>() {
        Ok(text) => *text,
        Err(panic) => panic.downcast_ref::<&str>().map_or("a panic", |text| *text).to_owned(),
    })
}

/// The acts without those that the failure does not need.
fn shrink(mut acts: Vec<Act>) -> Vec<Act> {
    let (mut size, mut tries) = (acts.len() / 2, 0);
    while size > 0 && tries < SHRINKS_MAX {
        let mut at = 0;
        while at < acts.len() && tries < SHRINKS_MAX {
            tries += 1;
            let end = (at + size).min(acts.len());
            let fewer: Vec<Act> = acts.iter().take(at).chain(acts.iter().skip(end)).cloned().collect();
            if fault(&fewer).is_some() { acts = fewer } else { at = end }
        }
        size /= 2;
    }
    acts
}

#[test]
fn with_faults_nothing_is_lost_and_without_them_everything_comes_to_rest() {
    for seed in seeds() {
        if fault(&acts(seed)).is_some() {
            let acts = shrink(acts(seed));
            let reason = fault(&acts).unwrap_or_default();
            panic!(
                "seed {seed}: {reason}\nagain: FOLDPLANE_SIM_SEEDS={seed}..{} cargo test --test sim\n{}",
                seed + 1,
                acts.iter().map(|act| format!("{act:?}\n")).collect::<String>()
            );
        }
    }
}

#[test]
fn one_seed_gives_one_trace() {
    for seed in 0..10 {
        assert_eq!(run::run(&acts(seed)), run::run(&acts(seed)), "seed {seed}");
    }
}

#[test]
fn the_seeds_reach_every_kind_of_act_and_answer() {
    let mut reached = run::Reached::default();
    (0..40).for_each(|seed| reached += run::run(&acts(seed)).reached);
    let run::Reached { acknowledged, refused, unavailable, crashes, removed, responses } = reached;
    for (count, what) in [
        (acknowledged, "acknowledged"),
        (refused, "refused"),
        (unavailable, "unavailable"),
        (crashes, "crashes"),
        (removed, "removed by a timer"),
        (responses, "responses"),
    ] {
        assert!(count > 20, "only {count}: {what}");
    }
}

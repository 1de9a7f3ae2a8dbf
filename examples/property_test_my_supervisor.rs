//! A supervisor's own rule, tested with Foldplane's generators: at most two workers of a service serve on one host.
//!
//! ```console
//! $ cargo test --example property_test_my_supervisor
//! $ foldplane log export --scrub --to my.jsonl     # a real log as one more case
//! $ cargo run --example property_test_my_supervisor -- my.jsonl
//! ```
//!
//! To test a rule of your own, copy this file into a crate that has `foldplane` with the feature `testing` and `proptest`, and
//! write [`wishes`] anew. What the tests ask of it is asked of any rule: it comes to rest, it holds then, and it takes no
//! more than it must.
#![allow(clippy::print_stdout, reason = "an example that prints what it found")]

use std::collections::BTreeMap;
use std::process::ExitCode;

use foldplane::command::Command;
use foldplane::events::{HostName, ServiceName, WorkerRef};
use foldplane::projection::state::{Phase, State};
use foldplane::testing::{corpus, replay};

/// How many workers of one service may serve on one host: with more, the loss of a host is the loss of the service.
const WORKERS_ON_ONE_HOST_MAX: usize = 2;

/// Who serves, by service and host, the oldest registration first.
fn serving(state: &State) -> BTreeMap<(ServiceName, HostName), Vec<WorkerRef>> {
    let mut groups: BTreeMap<_, Vec<WorkerRef>> = BTreeMap::new();
    for (key, worker) in state.workers() {
        if !matches!(worker.phase, Phase::Draining { .. }) {
            let reference = WorkerRef { key: key.clone(), generation: worker.generation };
            groups.entry((key.service.clone(), key.host.clone())).or_default().push(reference);
        }
    }
    groups.values_mut().for_each(|workers| workers.sort_by_key(|worker| worker.generation));
    groups
}

/// What the rule wants in this state: the youngest of those that are too many are drained.
fn wishes(state: &State) -> Vec<Command> {
    let too_many = serving(state).into_values().flat_map(|workers| {
        let first = workers.len().min(WORKERS_ON_ONE_HOST_MAX);
        workers.into_iter().skip(first)
    });
    let reason = "too many on one host".to_owned();
    too_many.map(|worker| Command::Drain { worker, reason: reason.clone(), drain_ms: None }).collect()
}

/// Says where the rule would have acted in a log that was exported.
fn main() -> ExitCode {
    let Some(path) = std::env::args().nth(1) else {
        println!("name a log that `foldplane log export` wrote, or run the tests");
        return ExitCode::from(2);
    };
    let log = match std::fs::read_to_string(&path).map(|lines| corpus(&lines)) {
        Ok(Ok(log)) => log,
        Ok(Err(error)) => {
            println!("{path}: {error}");
            return ExitCode::FAILURE;
        }
        Err(error) => {
            println!("{path}: {error}");
            return ExitCode::FAILURE;
        }
    };
    replay(&log, |snapshot| {
        let wishes = wishes(snapshot.state());
        if !wishes.is_empty() {
            println!("{}: {} workers are too many", snapshot.offset(), wishes.len());
        }
    });
    ExitCode::SUCCESS
}

#[cfg(test)]
mod tests {
    use foldplane::testing::{World, steps};
    use proptest::prelude::*;

    use super::*;

    /// The rule acts until it has nothing left to wish.
    fn obey(world: &mut World) {
        for command in wishes(world.snapshot.state()) {
            world.command(&command).expect("a live worker can be drained");
        }
        assert_eq!(wishes(world.snapshot.state()), [], "the rule does not come to rest");
    }

    proptest! {
        #[test]
        fn the_rule_holds_whatever_happened(steps in steps(1..60)) {
            let mut world = World::default();
            for step in &steps {
                let _refused = world.step(step);
                let before = serving(world.snapshot.state());
                obey(&mut world);
                let after = serving(world.snapshot.state());
                prop_assert!(after.values().all(|workers| workers.len() <= WORKERS_ON_ONE_HOST_MAX));
                // It takes no more than it must: where there were few, all are left, and of many as many as may be.
                for (group, workers) in &before {
                    let left = after.get(group).map_or(0, Vec::len);
                    prop_assert_eq!(left, workers.len().min(WORKERS_ON_ONE_HOST_MAX));
                }
            }
        }
    }

    #[test]
    fn a_log_that_was_kept_is_a_case_too() {
        let lines = include_str!("../tests/testdata/worlds/one-life/log.jsonl");
        replay(&corpus(lines).unwrap(), |snapshot| assert_eq!(wishes(snapshot.state()), []));
    }
}

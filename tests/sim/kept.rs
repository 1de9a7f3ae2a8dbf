//! What the simulator has found, kept as short lists of acts.

use std::collections::BTreeMap;

use foldplane::command::Registering;
use foldplane::events::event::{Lease, Readiness};
use foldplane::events::{Event, HostName, ServiceName, SessionId, WorkerId, WorkerKey};
use foldplane::testing::{Aim, Step, Wanted};

use crate::simulator::acts::{Act, Options, Scenario};
use crate::simulator::disk::Health;
use crate::simulator::run::{Trace, run};

fn worker(id: &str) -> WorkerKey {
    WorkerKey {
        service: ServiceName::new("web").unwrap(),
        host: HostName::new("h1").unwrap(),
        id: WorkerId::new(id).unwrap(),
    }
}

fn wish(wanted: Wanted) -> Act {
    Act::Wish(vec![Step { after_ms: 0, wanted }])
}

fn play(acts: Vec<Act>) -> Trace {
    run(&Scenario { seed: 0, options: Options::default(), acts })
}

fn register(id: &str) -> Act {
    wish(Wanted::Register(Registering {
        worker: worker(id),
        ports: Vec::new(),
        readiness: Readiness::Assumed,
        weight: None,
        priority: 0,
        locality: None,
        metadata: BTreeMap::new(),
        process: None,
        session: SessionId::new("s1").unwrap(),
        lease: Lease::Session { disconnect_grace_ms: 0 },
    }))
}

/// A drain ended while the log could not be written. Somebody's wish was the first to find that it could be again, and
/// the removal that was owed was forgotten: the worker drained for ever.
#[test]
fn what_is_owed_is_not_forgotten_when_a_wish_finds_that_the_log_works_again() {
    let drain = wish(Wanted::Drain { worker: worker("1"), aim: Aim::Live, drain_ms: Some(1_000) });
    let trace = play(vec![
        register("1"),
        drain,
        Act::Disk(Health::RefusesWrites),
        Act::Wait(1_000),
        Act::Disk(Health::Healthy),
        register("2"),
    ]);
    let gone =
        |event: &Event| matches!(event, Event::WorkerRemoved { worker, .. } if worker.key.id.as_str() == "1");
    assert!(trace.log.iter().any(|envelope| gone(&envelope.event)));
}

//! What the simulator has found, kept as short lists of acts.

use foldplane::command::Registering;
use foldplane::events::event::Lease;
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
    admit(worker(id), Lease::Session { disconnect_grace_ms: 0 })
}

fn admit(worker: WorkerKey, lease: Lease) -> Act {
    wish(Wanted::Register(Registering::new(worker, SessionId::new("s1").unwrap(), lease)))
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

/// A whole network falls silent. A crash does not make the hold longer, and nobody goes before it is over.
#[test]
fn a_crowd_is_held_through_a_crash_for_five_minutes_and_no_longer() {
    let host = |number: u64| HostName::new(&format!("h{}", number % 2)).unwrap();
    let member = |number: u64| WorkerKey { host: host(number), ..worker(&format!("c{number}")) };
    let mut acts: Vec<Act> =
        (0..12).map(|number| admit(member(number), Lease::Ttl { ttl_ms: 20_000 })).collect();
    acts.extend([Act::Wait(21_000), Act::Cut { after: 0, again: None, wishes: vec![] }]);
    acts.extend(std::iter::repeat_n(Act::Wait(10_000), 32));
    let trace = play(acts);
    let times = |name: &str| -> Vec<u64> {
        let named = trace.log.iter().filter(|envelope| envelope.event.name() == name);
        named.map(|envelope| envelope.recorded_at.as_millis()).collect()
    };
    let (held, released) = (times("ExpiryHeld"), times("ExpiryReleased"));
    assert_eq!((held.len(), released.len()), (1, 1));
    assert!((300_000..=310_000).contains(&(released[0] - held[0])), "{held:?} {released:?}");
    assert_eq!(times("WorkerRemoved"), vec![released[0]; 12]);
}

/// A worker came back within its grace and lost its connection again. The clock of the first grace went on, and removed it
/// in the middle of the second.
#[test]
fn a_second_grace_is_not_cut_short_by_the_first() {
    let waits = [1_241, 1_711, 1_779].map(Act::Wait);
    let acts = [Act::Disconnect(0)].into_iter().chain(waits).chain([Act::Disconnect(0)]);
    play(acts.collect());
}

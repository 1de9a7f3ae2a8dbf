//! Live, replayed, and continued from a saved state: the same state and the same bytes under the same versions.

use foldplane::events::Envelope;
use foldplane::projection::resources::{Resources, TypeUrl};
use foldplane::projection::state::State;
use foldplane::projection::{Snapshot, StateDigest, checkpoint, evolve};
use foldplane::testing::{events, play, steps};
use proptest::prelude::*;

/// Everything that a client could tell apart.
pub(crate) fn bytes(resources: &Resources) -> Vec<(String, String, Vec<u8>)> {
    let mut all = Vec::new();
    for type_url in TypeUrl::ALL {
        let set = resources.of(type_url);
        all.push((type_url.to_string(), set.version().to_string(), Vec::new()));
        all.extend(set.iter().map(|resource| {
            (resource.name.to_string(), resource.version.to_string(), resource.any().to_vec())
        }));
    }
    all
}

/// Published after every event.
fn live(log: &[Envelope]) -> Snapshot {
    log.iter().fold(Snapshot::default(), |snapshot, envelope| snapshot.fold([envelope]).0)
}

/// Published after batches of this size.
fn in_batches(log: &[Envelope], size: usize) -> Snapshot {
    log.chunks(size).fold(Snapshot::default(), |snapshot, batch| snapshot.fold(batch).0)
}

/// Folded to its end, then rendered from nothing.
fn replayed(log: &[Envelope]) -> Snapshot {
    let mut state = State::default();
    for envelope in log {
        evolve(&mut state, envelope);
    }
    Snapshot::of(state)
}

/// Saved as bytes after the first events, read back, and folded to the end.
fn continued(log: &[Envelope], saved_after: usize) -> Snapshot {
    let (before, after) = log.split_at(saved_after);
    let state = checkpoint::decode(&checkpoint::encode(replayed(before).state())).unwrap();
    Snapshot::of(state).fold(after).0
}

#[track_caller]
fn check(log: &[Envelope], size: usize, saved_after: usize) {
    let expected = live(log);
    let others = [in_batches(log, size), replayed(log), continued(log, saved_after)];
    for (other, how) in others.iter().zip(["in batches", "replayed", "from a saved state"]) {
        assert_eq!(StateDigest::of(other.state()), StateDigest::of(expected.state()), "{how}");
        assert_eq!(bytes(other.resources()), bytes(expected.resources()), "{how}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn live_is_replay_is_saved_state_and_tail(
        steps in steps(1..60),
        size in 2..9_usize,
        at in any::<prop::sample::Index>(),
    ) {
        let log = play(&steps);
        check(&log, size, at.index(log.len() + 1));
    }

    #[test]
    fn so_it_is_for_events_that_make_no_sense(
        log in events(1..60),
        size in 2..9_usize,
        at in any::<prop::sample::Index>(),
    ) {
        check(&log, size, at.index(log.len() + 1));
    }
}

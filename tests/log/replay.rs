//! A saved state and the events after it give what all events give: the same bytes under the same versions.

use std::fs;

use foldplane::events::log::{
    CHECKPOINTS_KEPT, Checkpoints, EventLog, LogReader, MemoryLog, Retention, SledLog, SledOptions,
};
use foldplane::events::{Envelope, Offset};
use foldplane::projection::state::State;
use foldplane::projection::{Snapshot, StateDigest, checkpoint, evolve};
use proptest::prelude::*;
use tempfile::tempdir;

use crate::world::{check_holds, envelopes, fill, lives};

/// The state after `start` and every event of the log behind it.
fn fold(start: State, log: &dyn LogReader) -> State {
    let mut state = start;
    for envelope in log.read(state.offset().next()).unwrap() {
        evolve(&mut state, &envelope.unwrap());
    }
    state
}

/// What a start makes of a log: the newest saved state that can be used, and the events after it.
fn start(log: &dyn LogReader, checkpoints: &Checkpoints) -> (Offset, State) {
    let saved = checkpoints.newest(log, checkpoint::decode).unwrap();
    let (from, state) = saved.map_or_else(Default::default, |(head, state)| (head.offset, state));
    (from, fold(state, log))
}

/// Saves the state at the head.
fn save(log: &dyn LogReader, checkpoints: &Checkpoints, state: &State) {
    let head = log.head_at(state.offset()).unwrap();
    checkpoints.save(head, &checkpoint::encode(state)).unwrap();
}

#[track_caller]
fn check_same(found: &State, expected: &State) {
    assert_eq!(StateDigest::of(found), StateDigest::of(expected));
    let (found, expected) = (Snapshot::of(found.clone()), Snapshot::of(expected.clone()));
    assert_eq!(format!("{:?}", found.resources()), format!("{:?}", expected.resources()));
}

/// What happens to a log in the long run.
#[derive(Clone, Debug)]
enum Step {
    Append(u64),
    Save,
    Restart,
    Retain,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (1_u64..60).prop_map(Step::Append),
        2 => Just(Step::Save),
        2 => Just(Step::Restart),
        1 => Just(Step::Retain),
    ];
    prop::collection::vec(step, 1..20)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn saved_state_and_tail_is_replay_is_live(steps in steps(), seed in any::<u64>()) {
        let events: Vec<Envelope> = lives(seed, 1_200);
        let dir = tempdir().unwrap();
        let options = SledOptions { segment_events: 40, reserve_bytes: 0, ..SledOptions::default() };
        let mut log = SledLog::open(dir.path(), options).unwrap();
        let mut live = State::default();
        for step in steps {
            let head = log.head().offset.get() as usize;
            match step {
                Step::Append(count) => {
                    let batch = &events[head..head + count as usize];
                    log.append(batch).unwrap();
                    batch.iter().for_each(|envelope| { evolve(&mut live, envelope); });
                }
                Step::Save => save(&log, &log.checkpoints(), &live),
                Step::Restart => {
                    drop(log);
                    log = SledLog::open(dir.path(), options).unwrap();
                    live = start(&log, &log.checkpoints()).1;
                }
                Step::Retain => {
                    let saved = log.checkpoints().offsets().unwrap();
                    if saved.len() == CHECKPOINTS_KEPT {
                        log.truncate_before(saved[0].next()).unwrap();
                    }
                }
            }
            let replayed = fold(State::default(), &MemoryLog::with_events(&events[..log.head().offset.get() as usize]).unwrap());
            check_same(&live, &replayed);
        }
        check_same(&start(&log, &log.checkpoints()).1, &live);
    }
}

// etcd-io/etcd#13967 (F50)
#[test]
fn f50_a_bad_saved_state_is_skipped_and_the_one_before_it_is_used() {
    let dir = tempdir().unwrap();
    let mut log = SledLog::open(dir.path(), SledOptions::default()).unwrap();
    for end in [100, 200, 300] {
        fill(&mut log, end, 10);
        save(&log, &log.checkpoints(), &fold(State::default(), &log));
    }
    fill(&mut log, 320, 10);
    let checkpoints = log.checkpoints();
    assert_eq!(checkpoints.offsets().unwrap(), [Offset::new(200), Offset::new(300)]);
    let expected = fold(State::default(), &log);
    let (from, found) = start(&log, &checkpoints);
    assert_eq!(from, Offset::new(300));
    check_same(&found, &expected);

    let newest = dir.path().join("checkpoints/00000000000000000300");
    let good = fs::read(&newest).unwrap();
    for place in [0, 4, 14, 30, 60, good.len() / 2, good.len() - 1] {
        let mut bad = good.clone();
        bad[place] ^= 1;
        fs::write(&newest, bad).unwrap();
        let (from, found) = start(&log, &checkpoints);
        assert_eq!(from, Offset::new(200), "byte {place}");
        check_same(&found, &expected);
    }
    // A stop between writing and renaming, and one between renaming and removing the oldest.
    fs::write(&newest, &good).unwrap();
    fs::write(dir.path().join("checkpoints/00000000000000000310.new"), &good[..40]).unwrap();
    fs::copy(&newest, dir.path().join("checkpoints/00000000000000000100")).unwrap();
    assert_eq!(start(&log, &checkpoints).0, Offset::new(300));
}

#[test]
fn a_state_saved_from_other_events_is_not_believed() {
    let (one, other) = (tempdir().unwrap(), tempdir().unwrap());
    let mut log = SledLog::open(one.path(), SledOptions::default()).unwrap();
    fill(&mut log, 100, 10);
    save(&log, &log.checkpoints(), &fold(State::default(), &log));
    let mut log = SledLog::open(other.path(), SledOptions::default()).unwrap();
    log.append(&lives(1, 100)).unwrap();
    assert_eq!(start(&log, &Checkpoints::of(one.path())).0, Offset::ZERO);
}

// etcd-io/etcd#8668, cilium/cilium#3011 (F51)
#[test]
fn f51_retention_goes_by_age_and_size_and_stops_at_the_saved_states() {
    let kept = |retention: Retention, save_at: &[u64]| {
        let dir = tempdir().unwrap();
        let options =
            SledOptions { segment_events: 50, retention, reserve_bytes: 0, ..SledOptions::default() };
        let mut log = SledLog::open(dir.path(), options).unwrap();
        for end in (50..=500).step_by(50) {
            fill(&mut log, end, 50);
            if save_at.contains(&end) {
                save(&log, &log.checkpoints(), &start(&log, &log.checkpoints()).1);
            }
        }
        let oldest = log.oldest().get();
        check_holds(&log, oldest, 500);
        assert!(matches!(
            log.read(Offset::new(oldest - 1)).err(),
            None | Some(foldplane::events::log::LogError::Gone { .. })
        ));
        drop(log);
        let log = SledLog::open(dir.path(), options).unwrap();
        check_holds(&log, oldest, 500);
        assert_eq!(start(&log, &log.checkpoints()).1.offset(), Offset::new(500));
        oldest
    };
    // The events of these tests are a millisecond apart.
    let age = |age_ms| Retention { age_ms: Some(age_ms), bytes: None };
    let bytes = Retention { age_ms: None, bytes: Some(100_000) };
    assert_eq!(kept(Retention::default(), &[100, 200, 300]), 1);
    assert_eq!(kept(age(240), &[]), 1, "without saved states nothing goes");
    assert_eq!(kept(age(240), &[200]), 1, "one saved state is not enough");
    assert_eq!(kept(age(240), &[100, 200, 300, 400]), 201);
    assert_eq!(kept(age(240), &[100, 150]), 101, "what the older state needs is kept");
    let by_size = kept(bytes, &[200, 250, 300, 350, 400]);
    assert!(by_size > 1 && by_size <= 351, "{by_size}");
}

#[test]
fn f50_an_event_that_is_folded_twice_changes_nothing() {
    let mut state = fold(State::default(), &MemoryLog::with_events(&envelopes(1, 50)).unwrap());
    let digest = StateDigest::of(&state);
    for envelope in envelopes(1, 50) {
        evolve(&mut state, &envelope);
    }
    assert_eq!(StateDigest::of(&state), digest);
}

#[test]
fn the_layout_of_a_saved_state_is_pinned() {
    let state = fold(State::default(), &MemoryLog::with_events(&lives(7, 300)).unwrap());
    let bytes = checkpoint::encode(&state);
    assert_eq!(StateDigest::of(&checkpoint::decode(&bytes).unwrap()), StateDigest::of(&state));
    assert!(checkpoint::decode(&bytes[..bytes.len() - 1]).is_err());
    // When this changes, LAYOUT in src/projection/checkpoint.rs goes up by one.
    expect_test::expect!["d82f61f1d3ffb22cd6b3f94eba74447b35dc207cae5aa6e0f4b7b66a91ca7c41"]
        .assert_eq(&blake3::hash(&bytes).to_hex());
}

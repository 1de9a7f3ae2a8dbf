//! Killed at any moment, the log loses nothing that was acknowledged.

use std::thread::sleep;
use std::time::Duration;

use foldplane::events::log::{EventLog, LogReader, SledLog, SledOptions};
use tempfile::tempdir;

use crate::child::Writer;
use crate::world::{check_holds, envelopes, number_of, read_all};

// nats-io/nats-server#7564, spacejam/sled#1533, spacejam/sled#1527 (F45, F46)
#[test]
fn f45_f46_killed_again_and_again_it_opens_every_time_and_lost_nothing() {
    let rounds = number_of("FOLDPLANE_KILL_ROUNDS", 20);
    let dir = tempdir().unwrap();
    let mut head = 0;
    for round in 0..rounds {
        let mut writer = Writer::start(dir.path(), u64::MAX);
        let first = writer.next().expect("a writer writes until it is killed");
        assert!(first > head, "round {round}: @{first} was acknowledged twice");
        sleep(Duration::from_millis(round * 7 % 53));
        let acknowledged = writer.kill().unwrap_or(first);

        let log = SledLog::open(dir.path(), SledOptions::default()).unwrap();
        let found = log.head().offset.get();
        assert!(
            found >= acknowledged,
            "round {round}: @{acknowledged} was acknowledged, @{found} is the end"
        );
        assert!(read_all(&log, head + 1).unwrap() == envelopes(head + 1, found), "round {round}");
        head = found;
    }
    let log = SledLog::open(dir.path(), SledOptions::default()).unwrap();
    check_holds(&log, 1, head);
    println!("{rounds} rounds, {head} events, none lost");
}

// etcd-io/etcd#13967 (F50): a stop between any two steps of making a log or a segment
#[test]
fn a_creation_that_did_not_get_far_is_begun_again() {
    let made = tempdir().unwrap();
    drop(SledLog::open(made.path(), SledOptions::default()).unwrap());
    let steps: [&[&str]; 5] = [
        &["FORMAT", "witness", "segments", "LOCK"],
        &["FORMAT", "witness", "segments/00000000000000000001/header", "segments/00000000000000000001/db"],
        &["FORMAT", "witness", "segments/00000000000000000001/header"],
        &["FORMAT", "witness"],
        &["FORMAT"],
    ];
    for missing in steps {
        let dir = tempdir().unwrap();
        crate::world::copy(made.path(), dir.path());
        std::fs::remove_file(dir.path().join("reserve")).unwrap();
        for name in missing {
            let path = dir.path().join(name);
            if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) }.unwrap();
        }
        std::fs::write(dir.path().join("FORMAT.new"), "foldp").unwrap();
        let mut log = SledLog::open(dir.path(), SledOptions::default()).unwrap();
        log.append(&envelopes(1, 3)).unwrap();
        check_holds(&log, 1, 3);
    }
}

#[test]
fn a_segment_whose_creation_did_not_get_far_is_begun_again() {
    let dir = tempdir().unwrap();
    let options = SledOptions { segment_events: 10, ..SledOptions::default() };
    let mut log = SledLog::open(dir.path(), options).unwrap();
    log.append(&envelopes(1, 10)).unwrap();
    std::fs::create_dir(dir.path().join("segments/00000000000000000011")).unwrap();
    std::fs::write(dir.path().join("segments/00000000000000000011/db"), "half").unwrap();
    drop(log);
    let mut log = SledLog::open(dir.path(), options).unwrap();
    check_holds(&log, 1, 10);
    std::fs::create_dir(dir.path().join("segments/00000000000000000011")).unwrap();
    log.append(&envelopes(11, 12)).unwrap();
    check_holds(&log, 1, 12);
}

//! The durable log in everyday use.

use foldplane::events::Offset;
use foldplane::events::log::{EventLog, LogError, LogReader, MemoryLog, SledLog, SledOptions, open_reader};
use tempfile::tempdir;

use crate::world::{check_holds, envelope, envelopes, every_file, fill, read_all};

/// Segments so small that a few hundred events fill one.
pub(crate) fn small() -> SledOptions {
    SledOptions { segment_events: 150, ..SledOptions::default() }
}

#[test]
fn what_was_appended_is_there_after_reopening() {
    let dir = tempdir().unwrap();
    let dir = dir.path().join("deep/below");
    let mut log = SledLog::open(&dir, SledOptions::default()).unwrap();
    assert!(read_all(&log, 1).unwrap().is_empty());
    fill(&mut log, 1_000, 7);
    check_holds(&log, 1, 1_000);
    let head = log.head();
    drop(log);
    let mut log = SledLog::open(&dir, SledOptions::default()).unwrap();
    assert_eq!(log.head(), head);
    check_holds(&log, 1, 1_000);
    fill(&mut log, 1_100, 100);
    check_holds(&log, 1, 1_100);
}

#[test]
fn the_chain_does_not_depend_on_how_events_were_grouped() {
    let dir = tempdir().unwrap();
    let mut log = SledLog::open(dir.path(), small()).unwrap();
    fill(&mut log, 900, 13);
    let memory = MemoryLog::with_events(&envelopes(1, 900)).unwrap();
    assert_eq!(log.head(), memory.head());
}

#[test]
fn reading_starts_anywhere_and_crosses_segments() {
    let dir = tempdir().unwrap();
    let mut log = SledLog::open(dir.path(), small()).unwrap();
    fill(&mut log, 700, 10);
    let segments = std::fs::read_dir(dir.path().join("segments")).unwrap().count();
    assert!(segments >= 3, "{segments} segments");
    for from in [1, 2, 9, 10, 11, 12, 255, 256, 257, 699, 700, 701, 5_000] {
        let found = read_all(&log, from).unwrap();
        assert!(found == envelopes(from, 700), "from @{from}");
    }
    drop(log);
    let log = SledLog::open(dir.path(), small()).unwrap();
    check_holds(&log, 1, 700);
}

#[test]
fn a_batch_that_does_not_follow_is_refused_and_the_log_goes_on() {
    let dir = tempdir().unwrap();
    let mut log = SledLog::open(dir.path(), small()).unwrap();
    fill(&mut log, 5, 5);
    assert!(matches!(log.append(&envelopes(5, 6)), Err(LogError::Conflict { .. })));
    let mut large = envelope(6);
    large.event = foldplane::events::Event::ReplicaStarted {
        replica: foldplane::events::ReplicaId::new("r").unwrap(),
        version: "x".repeat(30_000),
    };
    assert!(matches!(log.append(&[large]), Err(LogError::Body(_))));
    fill(&mut log, 6, 1);
    check_holds(&log, 1, 6);
}

#[test]
fn retention_removes_whole_segments_and_reading_below_is_gone() {
    let dir = tempdir().unwrap();
    let mut log = SledLog::open(dir.path(), small()).unwrap();
    fill(&mut log, 900, 10);
    let reader = log.reader();
    let mut under_way = reader.read(Offset::new(1)).unwrap();
    under_way.next().unwrap().unwrap();
    let oldest = log.truncate_before(Offset::new(500)).unwrap();
    assert!(oldest > Offset::new(1) && oldest <= Offset::new(500), "{oldest}");
    assert!(matches!(read_all(&log, 1), Err(LogError::Gone { .. })));
    check_holds(&*reader, oldest.get(), 900);
    drop(under_way);
    drop((reader, log));
    let mut log = SledLog::open(dir.path(), small()).unwrap();
    assert_eq!(log.oldest(), oldest);
    check_holds(&log, oldest.get(), 900);
    assert_eq!(log.truncate_before(Offset::new(9_999)).unwrap(), log.oldest());
    fill(&mut log, 950, 10);
    check_holds(&log, log.oldest().get(), 950);
}

#[test]
fn a_second_opener_is_told_who_has_it() {
    let dir = tempdir().unwrap();
    let _log = SledLog::open(dir.path(), small()).unwrap();
    let error = SledLog::open(dir.path(), small()).unwrap_err();
    assert!(matches!(error, LogError::InUse { .. }));
    assert!(error.to_string().contains(&format!("process {}", std::process::id())), "{error}");
}

#[test]
fn a_stopped_server_is_read_without_a_trace_and_a_running_one_is_not_read() {
    let dir = tempdir().unwrap();
    let none = open_reader(dir.path()).unwrap_err().to_string();
    assert!(none.contains("holds no log"), "{none}");
    let mut log = SledLog::open(dir.path(), small()).unwrap();
    fill(&mut log, 500, 10);
    assert!(matches!(open_reader(dir.path()), Err(LogError::InUse { .. })));
    drop(log);
    let before = every_file(dir.path());
    let log = open_reader(dir.path()).unwrap();
    check_holds(&log, 1, 500);
    check_holds(&open_reader(dir.path()).unwrap(), 1, 500);
    assert!(matches!(SledLog::open(dir.path(), small()), Err(LogError::InUse { .. })));
    drop(log);
    assert!(every_file(dir.path()) == before, "reading changed a file");
}

// spacejam/sled#661, cometbft/tendermint-rs#769 (F48)
#[test]
fn f48_keys_sort_like_offsets() {
    let dir = tempdir().unwrap();
    let mut log = SledLog::open(dir.path(), SledOptions::default()).unwrap();
    fill(&mut log, 300, 1);
    fill(&mut log, 70_000, 500);
    let offsets: Vec<u64> = read_all(&log, 1).unwrap().iter().map(|event| event.offset.get()).collect();
    assert!(offsets.iter().copied().eq(1..=70_000));
    let range: Vec<u64> =
        log.read(Offset::new(250)).unwrap().take(10).map(|event| event.unwrap().offset.get()).collect();
    assert_eq!(range, (250..260).collect::<Vec<_>>());
    assert_eq!(std::fs::read_dir(dir.path().join("segments/00000000000000000001/blobs")).unwrap().count(), 0);
}

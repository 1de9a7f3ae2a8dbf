//! Each benchmark of the log in a small size, so that none rots.

use tempfile::tempdir;

use crate::work;
use crate::world::lives;

#[test]
fn appends_beside_a_plain_file_leave_the_chain_of_their_events() {
    let dir = tempdir().unwrap();
    let measured = work::appends(dir.path(), 16, 8);
    assert_eq!((measured.log.len(), measured.floor.len()), (8, 8));
    let expected = foldplane::events::log::MemoryLog::with_events(&lives(16, 128)).unwrap();
    assert_eq!(measured.head, foldplane::events::log::LogReader::head(&expected));
    let p50 = work::Appends::p50_us(&measured.log);
    assert!(p50 > 0.0 && work::Appends::per_second(&measured.log, 16) > 0.0);
}

#[test]
fn replay_and_start_end_in_the_same_state() {
    let dir = tempdir().unwrap();
    work::fill(dir.path(), 3_000, 256);
    let (rate, replayed) = work::replay(dir.path());
    let (_, started) = work::start(dir.path());
    assert!(rate > 0.0);
    assert_eq!(replayed, started);
}

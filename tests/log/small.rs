//! Each benchmark of the log in a small size, so that none rots.

use tempfile::tempdir;

use crate::saving;
use crate::work;
use crate::world::lives;

#[test]
fn appends_beside_a_plain_file_leave_the_chain_of_their_events() {
    let dir = tempdir().unwrap();
    let measured = work::appends(dir.path(), 16, 8);
    assert_eq!((measured.log.len(), measured.floor.len()), (8, 8));
    let expected = foldplane::events::log::MemoryLog::with_events(&lives(16, 128)).unwrap();
    assert_eq!(measured.head, foldplane::events::log::LogReader::head(&expected));
    let p50 = work::quantile_us(&measured.log, 50);
    assert!(p50 > 0.0 && work::Appends::per_second(&measured.log, 16) > 0.0);
}

#[test]
fn replay_and_start_end_in_the_same_state() {
    let dir = tempdir().unwrap();
    work::fill(dir.path(), 3_000, 256);
    let replayed = work::replay(dir.path());
    let (_, started) = work::start(dir.path());
    assert!(replayed.read > 0.0 && replayed.on_one_thread > 0.0 && replayed.replay > 0.0);
    assert_eq!(replayed.state, started);
}

#[test]
fn a_state_is_saved_beside_the_writer_and_not_in_its_way() {
    let dir = tempdir().unwrap();
    let waits = saving::waits(dir.path(), 10_000, 4);
    let [p50_saving, p50_quiet] = [&waits.saving, &waits.quiet].map(|waits| work::quantile_us(waits, 50));
    let share = |round: &saving::Round| round.longest.as_secs_f64() / round.took.as_secs_f64();
    let least = waits.rounds.iter().map(share).fold(f64::INFINITY, f64::min);
    println!("p50 {p50_saving:.0} us, {p50_quiet:.0} us without; the longest of a saving: {least:.2} of it");
    // A writer that waits for a saving, or does it, waits for all of it each time.
    assert!(least < 0.5, "a wish waited for {least:.2} of every saving");
    assert!(p50_saving < 4.0 * p50_quiet + 1_000.0, "{p50_saving:.0} us against {p50_quiet:.0} us");
}

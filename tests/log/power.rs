//! A power cut: what had not reached the disk is gone. What was acknowledged had.
//!
//! The log lies on ext4 on a loop device over an image file. While the writer waits, the image is copied: that is
//! what a cut at this moment leaves, because what is only in the page cache of the mounted file system is not in
//! the image. The copy is mounted, the log in it opened and compared with what was acknowledged.

use std::fs;
use std::path::Path;

use foldplane::events::log::{EventLog, LogError, LogReader, SledLog, SledOptions};
use tempfile::tempdir;

use crate::degrade::append_until_refused;
use crate::disk::{Disk, run};
use crate::world::{Chance, envelopes, fill, number_of, read_all};

/// What a cut at this moment leaves, as a new image.
fn cut(image: &Path, copy: &Path) {
    fs::copy(image, copy).unwrap();
}

// nats-io/nats-server#7564, spacejam/sled#654 (F45)
#[test]
fn f45_a_power_cut_loses_nothing_that_was_acknowledged() {
    let rounds = number_of("FOLDPLANE_POWER_ROUNDS", 6);
    let images = tempdir().unwrap();
    let (image, copy) = (images.path().join("disk"), images.path().join("after-the-cut"));
    Disk::format(&image, "has_journal");
    let disk = Disk::mount(&image);
    let options = SledOptions { segment_events: 900, reserve_bytes: 1 << 20, ..SledOptions::default() };
    let mut log = SledLog::open(&disk.log(), options).unwrap();
    let mut chance = Chance::new(rounds);
    for round in 0..rounds {
        let acknowledged = log.head().offset.get() + 1 + chance.below(700);
        fill(&mut log, acknowledged, 1 + chance.below(60));
        if chance.below(3) == 0 {
            drop(log);
            log = SledLog::open(&disk.log(), options).unwrap();
        }
        cut(&image, &copy);
        let after = Disk::mount(&copy);
        let found =
            SledLog::open(&after.log(), options).unwrap_or_else(|error| panic!("round {round}: {error}"));
        assert_eq!(found.head(), log.head(), "round {round}");
        assert!(read_all(&found, 1).unwrap() == envelopes(1, acknowledged), "round {round}");
        drop(found);
    }
    println!("{rounds} power cuts, {} events, none lost", log.head().offset);
    drop(log);
}

#[test]
fn a_disk_that_returns_errors_refuses_writes_and_heals_without_a_restart() {
    let images = tempdir().unwrap();
    let image = images.path().join("disk");
    // Without a journal, whose errors would make the file system read-only for good.
    Disk::format(&image, "^has_journal");
    let disk = Disk::mount(&image);
    let options = SledOptions { reserve_bytes: 0, ..SledOptions::default() };
    let mut log = SledLog::open(&disk.log(), options).unwrap();
    fill(&mut log, 500, 10);

    disk.break_down();
    let refused = append_until_refused(&mut log);
    assert!(matches!(refused, LogError::Store { .. }), "{refused}");
    let cause = std::error::Error::source(&refused).map(ToString::to_string).unwrap_or_default();
    assert!(cause.contains("Input/output error"), "{cause}");
    let durable = log.head();
    let next = durable.offset.get() + 1;
    assert!(matches!(log.append(&envelopes(next, next)), Err(LogError::NeedsRecovery)));
    assert!(log.recover().is_err(), "the disk is still broken");
    assert_eq!(log.head(), durable);

    disk.mend();
    // An error that the system owes from before is told once more.
    let recovered = (0..5).any(|_| log.recover().is_ok());
    assert!(recovered, "{:?}", log.recover());
    fill(&mut log, next + 300, 7);
    let head = log.head();
    drop(log);
    let log = SledLog::open(&disk.log(), options).unwrap();
    assert_eq!(log.head(), head);
    assert!(read_all(&log, 1).unwrap() == envelopes(1, head.offset.get()));
}

/// The harness itself: without the sync after each flush, a cut does lose acknowledged events.
#[test]
fn f45_the_harness_finds_what_sled_alone_loses() {
    let images = tempdir().unwrap();
    let (image, copy) = (images.path().join("disk"), images.path().join("after-the-cut"));
    Disk::format(&image, "has_journal");
    let disk = Disk::mount(&image);
    let config = || sled::Config::new().flush_every_ms(None);
    let store = config().path(disk.log()).open().unwrap();
    run("sync", &["-f", &disk.log().display().to_string()]);
    for offset in 1_u64..=200 {
        store.insert(offset.to_be_bytes(), b"an event".as_slice()).unwrap();
        store.flush().unwrap();
    }
    cut(&image, &copy);
    let after = Disk::mount(&copy);
    let left = config().path(after.log()).open().map_or(0, |store| store.len());
    assert!(left < 200, "all 200 flushed values were left: the harness would not notice a missing sync");
}

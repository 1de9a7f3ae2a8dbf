//! A store that fails: what is refused, what goes on, and how it comes back.
//!
//! The tests mount small file systems of their own and need root for it.

use std::fs;

use foldplane::events::Envelope;
use foldplane::events::log::{EventLog, LogError, LogReader, SledLog, SledOptions};
use tempfile::tempdir;

use crate::disk::Mount;
use crate::world::{check_holds, envelope, envelopes, every_event, fill, read_all};

fn removal(offset: u64) -> Envelope {
    of_kind("WorkerRemoved", offset)
}

fn of_kind(name: &str, offset: u64) -> Envelope {
    let found = every_event().into_iter().find(|event| event.name() == name);
    Envelope { event: found.unwrap(), ..envelope(offset) }
}

/// Appends until the log refuses, and gives the refusal.
pub(crate) fn append_until_refused(log: &mut SledLog) -> LogError {
    loop {
        let first = log.head().offset.get() + 1;
        if let Err(error) = log.append(&envelopes(first, first + 499)) {
            return error;
        }
    }
}

// apache/couchdb#3576, strongloop/strong-pm#368, openvstorage/alba#573 (F53)
#[test]
fn f53_a_full_disk_refuses_writes_but_removals_and_heals_without_a_restart() {
    let disk = Mount::tmpfs(32);
    let dir = disk.path().join("log");
    let mut log = SledLog::open(&dir, SledOptions::default()).unwrap();
    fill(&mut log, 1_000, 50);
    let ballast = disk.path().join("ballast");
    fs::write(&ballast, vec![1; 14 << 20]).unwrap();

    let refused = append_until_refused(&mut log);
    assert!(refused.to_string().contains("cannot"), "{refused}");
    let durable = log.head().offset.get();
    check_holds(&log, 1, durable);
    assert!(matches!(log.append(&[envelope(durable + 1)]), Err(LogError::NeedsRecovery)));

    // The reserve lets removals in, and nothing else.
    log.recover().unwrap();
    let full = log.append(&[of_kind("WorkerRegistered", durable + 1)]).unwrap_err();
    assert!(matches!(full, LogError::Full { .. }), "{full}");
    log.append(&[removal(durable + 1)]).unwrap();
    let reader = log.reader();
    assert_eq!(read_all(&*reader, durable + 1).unwrap(), [removal(durable + 1)]);

    fs::remove_file(&ballast).unwrap();
    log.append(&[of_kind("WorkerRegistered", durable + 2)]).unwrap();
    let head = log.head();
    drop((reader, log));
    let log = SledLog::open(&dir, SledOptions::default()).unwrap();
    assert_eq!(log.head(), head);
    assert!(read_all(&log, 1).unwrap()[..durable as usize] == envelopes(1, durable));
}

#[test]
fn f53_a_start_on_a_full_disk_uses_the_reserve() {
    let disk = Mount::tmpfs(20);
    let dir = disk.path().join("log");
    let mut log = SledLog::open(&dir, SledOptions::default()).unwrap();
    fill(&mut log, 1_000, 50);
    drop(log);
    disk.fill(&disk.path().join("ballast"));
    let mut log = SledLog::open(&dir, SledOptions::default()).unwrap();
    check_holds(&log, 1, 1_000);
    log.append(&[removal(1_001)]).unwrap();
}

#[test]
fn a_folder_that_cannot_be_written_is_named() {
    let disk = Mount::tmpfs(32);
    let dir = disk.path().join("log");
    let mut log = SledLog::open(&dir, SledOptions::default()).unwrap();
    fill(&mut log, 10, 5);
    drop(log);
    disk.make_read_only();
    let error = SledLog::open(&dir, SledOptions::default()).unwrap_err();
    assert!(error.to_string().contains(&format!("cannot open {}", dir.display())), "{error}");
    check_holds(&foldplane::events::log::open_reader(&dir).unwrap(), 1, 10);
    let elsewhere = SledLog::open(&disk.path().join("new"), SledOptions::default()).unwrap_err();
    assert!(elsewhere.to_string().contains("cannot create the folder"), "{elsewhere}");
}

#[test]
fn a_newer_folder_a_strange_folder_and_a_folder_without_its_format_are_refused() {
    let dir = tempdir().unwrap();
    let mut log = SledLog::open(dir.path(), SledOptions::default()).unwrap();
    fill(&mut log, 10, 5);
    drop(log);
    let format = dir.path().join("FORMAT");
    fs::write(&format, "foldplane log, format 2\n").unwrap();
    let newer = SledLog::open(dir.path(), SledOptions::default()).unwrap_err().to_string();
    assert!(newer.contains("newer version (format 2); this one reads up to 1"), "{newer}");
    fs::remove_file(&format).unwrap();
    let without = SledLog::open(dir.path(), SledOptions::default()).unwrap_err().to_string();
    assert!(without.contains("`FORMAT` is missing"), "{without}");
    let strange = tempdir().unwrap();
    fs::write(strange.path().join("thesis.tex"), "x").unwrap();
    let strange = SledLog::open(strange.path(), SledOptions::default()).unwrap_err().to_string();
    assert!(strange.contains("a folder of its own"), "{strange}");
}

#[test]
fn a_segment_that_is_missing_is_named() {
    let options = SledOptions { segment_events: 50, ..SledOptions::default() };
    for missing in ["00000000000000000001", "00000000000000000051", "00000000000000000151"] {
        let dir = tempdir().unwrap();
        let mut log = SledLog::open(dir.path(), options).unwrap();
        fill(&mut log, 200, 50);
        drop(log);
        fs::remove_dir_all(dir.path().join("segments").join(missing)).unwrap();
        let error = SledLog::open(dir.path(), options).unwrap_err().to_string();
        assert!(error.contains("segments/"), "{missing}: {error}");
    }
}

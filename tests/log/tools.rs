//! The tools: what verify finds, what repair keeps, and that copies are the same log.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use expect_test::expect;
use foldplane::engine::{self, Opened};
use foldplane::events::codec::{Block, BlockBuilder, encode_blocks, encode_body};
use foldplane::events::log::{
    EventLog, LinesError, LogError, LogReader, SledLog, SledOptions, Texts, copy_log, export, import,
    open_reader, verify,
};
use foldplane::events::{Head, Offset};
use foldplane::projection::state::State;
use foldplane::projection::{StateDigest, checkpoint, evolve};
use tempfile::{TempDir, tempdir};

use crate::world::{check_holds, envelope, envelopes, every_file, fill, lives, read_all};

fn options() -> SledOptions {
    SledOptions { segment_events: 100, reserve_bytes: 0, ..SledOptions::default() }
}

/// A closed log of 250 events in three segments.
fn sample() -> TempDir {
    let dir = tempdir().unwrap();
    let mut log = SledLog::open(dir.path(), options()).unwrap();
    fill(&mut log, 250, 10);
    dir
}

/// Changes the blocks of the segment that starts at `first`, behind the log's back.
fn tamper(dir: &Path, first: u64, change: impl FnOnce(&sled::Db)) {
    let path = dir.join(format!("segments/{first:020}"));
    let config = sled::Config::new().path(path).segment_size(2 << 20).flush_every_ms(None);
    // A child that another test starts at this moment may hold the lock until it runs.
    let opened = (0..100).find_map(|_| {
        let opened = config.open();
        if opened.is_err() {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        opened.ok()
    });
    let store = opened.expect("the lock is free within two seconds");
    change(&store);
    store.flush().unwrap();
}

fn key(offset: u64) -> [u8; 8] {
    offset.to_be_bytes()
}

/// The head of the sample at `offset`.
fn head_at(offset: u64) -> Head {
    encode_blocks(Head::default(), &envelopes(1, offset)).unwrap().last().unwrap().head
}

fn foldplane(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_foldplane")).arg("log").args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Checks that the log is found to be whole up to `good`, and that one of the findings says `expected`.
#[track_caller]
fn check_finds(dir: &Path, good: u64, expected: &str) {
    let before = every_file(dir);
    let mut seen = 0;
    let found = verify(dir, |envelope, head| {
        assert_eq!(envelope.offset, head.offset);
        seen += 1;
    })
    .unwrap();
    assert_eq!((found.good.offset.get(), seen), (good, good), "{:?}", found.findings);
    let said = found.findings.iter().any(|finding| finding.message.contains(expected));
    assert!(said, "{:?}", found.findings);
    assert!(every_file(dir) == before, "verify changed a file");
}

#[test]
fn a_sound_log_is_verified_whole() {
    let dir = sample();
    let found = verify(dir.path(), |_, _| {}).unwrap();
    assert!(found.findings.is_empty(), "{:?}", found.findings);
    assert_eq!((found.good, found.segments, found.lost()), (head_at(250), 3, None));
    let said = foldplane(&["verify", &dir.path().display().to_string()]);
    assert_eq!(said.status.code(), Some(0), "{}", text(&said.stderr));
    assert!(text(&said.stdout).contains("events    @1 to @250, all whole"), "{}", text(&said.stdout));
}

// nats-io/nats-server#7549 (F47)
#[test]
fn f47_a_lost_an_altered_and_a_moved_block_are_found_with_their_offsets() {
    let dir = sample();
    tamper(dir.path(), 101, |store| drop(store.remove(key(141)).unwrap()));
    check_finds(dir.path(), 140, "the events from @141 to @150 are missing");

    let dir = sample();
    let other = encode_blocks(head_at(40), &lives(3, 50)[40..]).unwrap();
    tamper(dir.path(), 1, |store| drop(store.insert(key(41), other[0].bytes.as_slice()).unwrap()));
    check_finds(dir.path(), 50, "@51: the hash chain is broken");

    let dir = sample();
    tamper(dir.path(), 1, |store| {
        let moved = store.get(key(61)).unwrap().unwrap();
        store.insert(key(71), moved).unwrap();
    });
    check_finds(dir.path(), 70, "it starts at @61, expected is @71");

    let dir = sample();
    tamper(dir.path(), 201, |store| drop(store.remove(key(241)).unwrap()));
    check_finds(dir.path(), 240, "events up to @250 were acknowledged");
    let error = SledLog::open(dir.path(), options()).unwrap_err().to_string();
    assert!(error.contains("events up to @250 were acknowledged, but the log ends at @240"), "{error}");
    assert!(error.contains("--truncate-from @241"), "{error}");
}

// bincode-org/bincode#642, cberner/redb#935 (F49)
#[test]
fn f49_an_event_of_a_newer_version_stops_reading_at_its_offset() {
    let dir = sample();
    let mut builder = BlockBuilder::after(head_at(250));
    builder.push(250, &encode_body(&envelope(251)).unwrap().bytes);
    let Block { bytes, .. } = builder.finish().remove(0);
    tamper(dir.path(), 201, |store| drop(store.insert(key(251), bytes).unwrap()));
    let log = SledLog::open(dir.path(), options()).unwrap();
    let error = read_all(&log, 1).unwrap_err();
    assert!(matches!(error, LogError::Newer { found: 250, .. }), "{error}");
    assert!(error.to_string().contains("@251 was written by a newer version"), "{error}");
}

// kurrent-io/KurrentDB#2187, #2807, #5005 (F52)
#[test]
fn f52_an_event_that_makes_no_sense_is_counted_live_and_on_replay_and_one_without_meaning_stops_at_its_offset()
 {
    let dir = sample();
    let mut live = State::default();
    for envelope in envelopes(1, 250) {
        evolve(&mut live, &envelope);
    }
    let log = SledLog::open(dir.path(), options()).unwrap();
    let (once, again) = (replay(&log), replay(&log));
    assert_eq!(StateDigest::of(once.snapshot.state()), StateDigest::of(&live));
    assert!(!once.anomalies.is_empty());
    assert_eq!(format!("{:?}", once.anomalies), format!("{:?}", again.anomalies));
    drop(log);

    // A kind of event that does not exist, and bytes that are none.
    let mut unknown = encode_body(&envelope(250)).unwrap().bytes;
    unknown[9 + 17 + 1] = 200;
    for body in [unknown, vec![0xAB; 64]] {
        let dir = sample();
        let mut builder = BlockBuilder::after(head_at(250));
        builder.push(1, &body);
        let Block { bytes, .. } = builder.finish().remove(0);
        tamper(dir.path(), 201, |store| drop(store.insert(key(251), bytes).unwrap()));
        let log = SledLog::open(dir.path(), options()).unwrap();
        let error = engine::open(&log, State::default(), None).unwrap_err().to_string();
        assert!(error.contains("@251: the bytes are no event of schema version 1"), "{error}");
    }
}

fn replay(log: &SledLog) -> Opened {
    engine::open(log, State::default(), None).unwrap()
}

#[test]
fn repair_shows_the_loss_first_and_never_touches_the_original() {
    let dir = sample();
    tamper(dir.path(), 101, |store| drop(store.remove(key(141)).unwrap()));
    let before = every_file(dir.path());
    let place = dir.path().display().to_string();
    let target = tempdir().unwrap();
    let to = target.path().join("repaired").display().to_string();

    let damaged = foldplane(&["verify", &place]);
    assert_eq!(damaged.status.code(), Some(6), "{}", text(&damaged.stderr));
    let shown = foldplane(&["repair", &place]);
    assert_eq!(shown.status.code(), Some(0));
    assert!(
        text(&shown.stdout).contains("kept      @1 to @140\nlost      @141 to @250"),
        "{}",
        text(&shown.stdout)
    );
    assert!(text(&shown.stderr).contains("nothing was changed"));
    let far = foldplane(&["repair", &place, "--truncate-from", "@200", "--to", &to]);
    assert_eq!(far.status.code(), Some(2), "{}", text(&far.stderr));

    let done = foldplane(&["repair", &place, "--to", &to]);
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    assert!(every_file(dir.path()) == before, "repair changed the original");
    let mut log = SledLog::open(Path::new(&to), options()).unwrap();
    check_holds(&log, 1, 140);
    assert_eq!(log.head(), head_at(140));
    fill(&mut log, 160, 10);
    check_holds(&log, 1, 160);
    let again = foldplane(&["repair", &place, "--to", &to]);
    assert_ne!(again.status.code(), Some(0), "a log was overwritten");
}

#[test]
fn export_and_import_give_the_same_chain_and_notice_a_changed_line() {
    let dir = sample();
    let log = open_reader(dir.path()).unwrap();
    let mut lines = Vec::new();
    export(&log, &mut lines, Texts::Kept, |_| {}).unwrap();
    let target = tempdir().unwrap();
    let to = target.path().join("imported");
    let head = import(&mut lines.as_slice(), &to, options(), |_| {}).unwrap();
    assert_eq!(head, head_at(250));
    check_holds(&SledLog::open(&to, options()).unwrap(), 1, 250);

    let changed = text(&lines).replacen("warming its cache", "warming its cash", 1);
    let elsewhere = target.path().join("changed");
    let error = import(&mut changed.as_bytes(), &elsewhere, options(), |_| {}).unwrap_err();
    assert!(matches!(error, LinesError::Altered { .. }), "{error}");
    let half: String = text(&lines).lines().take(100).map(|line| format!("{line}\n")).collect();
    let error = import(&mut half.as_bytes(), &target.path().join("half"), options(), |_| {}).unwrap_err();
    assert!(error.to_string().contains("where the log ends is missing"), "{error}");
    for unfinished in ["changed", "half"] {
        let error = SledLog::open(&target.path().join(unfinished), options()).unwrap_err();
        assert!(matches!(error, LogError::Damaged { .. }), "half an import was taken for a log");
    }
    let short = text(&lines)
        .lines()
        .filter(|line| !line.contains("\"offset\":77,"))
        .fold(String::new(), |lines, line| lines + line + "\n");
    let error = import(&mut short.as_bytes(), &target.path().join("short"), options(), |_| {}).unwrap_err();
    assert_eq!(error.to_string(), "line 78: the event is at @78, expected is @77");
}

/// A replacement looks like this, and so nothing else may be left.
fn is_replaced(text: &str) -> bool {
    let numbered = text.rsplit_once('-').is_some_and(|(_, number)| number.parse::<u32>().is_ok());
    let address = ["10.", "fd00:", "[fd00:", "127.0.0.1:"].iter().any(|start| text.starts_with(start));
    numbered || address || text.is_empty()
}

/// Every text in an event.
fn texts(value: &serde_json::Value, found: &mut Vec<String>) {
    match value {
        serde_json::Value::String(text) => found.push(text.clone()),
        serde_json::Value::Array(values) => values.iter().for_each(|value| texts(value, found)),
        serde_json::Value::Object(fields) => fields.values().for_each(|value| texts(value, found)),
        serde_json::Value::Null | serde_json::Value::Bool(_) | serde_json::Value::Number(_) => {}
    }
}

#[test]
fn a_scrubbed_export_says_of_nobody_and_is_a_log_in_which_the_same_happened() {
    let dir = sample();
    let log = open_reader(dir.path()).unwrap();
    let mut lines = Vec::new();
    let head = export(&log, &mut lines, Texts::Scrubbed, |_| {}).unwrap();
    let to = dir.path().join("imported");
    assert_eq!(import(&mut lines.as_slice(), &to, options(), |_| {}).unwrap(), head);
    let scrubbed = read_all(&SledLog::open(&to, options()).unwrap(), 1).unwrap();
    let (mut ours, mut real, mut other) = (BTreeSet::new(), State::default(), State::default());
    for (before, after) in read_all(&log, 1).unwrap().iter().zip(&scrubbed) {
        assert_eq!((before.event.name(), before.recorded_at), (after.event.name(), after.recorded_at));
        assert_eq!(evolve(&mut real, before), evolve(&mut other, after), "{after:?}");
        let mut left = Vec::new();
        texts(&serde_json::to_value(after).unwrap(), &mut left);
        ours.extend(left.into_iter().filter(|text| !is_replaced(text)));
    }
    // Words of our own, one by one: a text that is somebody's must never be added here.
    expect![[r#"
        0.1.0
        7-0011223344556677
        Listener
        Reported
        Silent
        Unhealthy
        absent
        degraded
        http2
        leds
        on
        ring_hash
        tcp
        type.googleapis.com/envoy.config.cluster.v3.Cluster"#]]
    .assert_eq(&Vec::from_iter(ours).join("\n"));
}

#[test]
fn compact_keeps_the_chain_and_the_saved_states_in_fewer_blocks() {
    let dir = tempdir().unwrap();
    let mut log = SledLog::open(dir.path(), options()).unwrap();
    fill(&mut log, 250, 1);
    let state = read_all(&log, 1).unwrap()[..200].iter().fold(State::default(), |mut state, envelope| {
        evolve(&mut state, envelope);
        state
    });
    log.checkpoints().save(log.head_at(Offset::new(200)).unwrap(), &checkpoint::encode(&state)).unwrap();
    log.checkpoints().save(log.head_at(Offset::new(240)).unwrap(), &checkpoint::encode(&state)).unwrap();
    log.truncate_before(Offset::new(150)).unwrap();
    let head = log.head();
    drop(log);
    let target = tempdir().unwrap();
    let to = target.path().join("compact");
    assert_eq!(copy_log(dir.path(), &to, None, |_| {}).unwrap(), head);
    let log = SledLog::open(&to, options()).unwrap();
    assert_eq!(log.oldest(), Offset::new(101));
    check_holds(&log, 101, 250);
    assert_eq!(log.checkpoints().offsets().unwrap(), [Offset::new(200), Offset::new(240)]);
    drop(log);
    tamper(&to, 101, |store| assert!(store.len() < 5, "{} blocks", store.len()));

    // The state saved at @240 is that of @200: verify compares each with what the events give.
    let said = foldplane(&["verify", &to.display().to_string()]);
    assert_eq!(said.status.code(), Some(6));
    let out = text(&said.stdout);
    assert!(out.contains("the state saved at @240: the events give another one"), "{out}");
    assert!(!out.contains("@200:"), "{out}");
}

#[test]
fn the_tools_that_only_look_say_what_is_there() {
    let dir = sample();
    let place = dir.path().display().to_string();
    let tail = text(&foldplane(&["tail", "-n", "2", &place]).stdout);
    assert_eq!(tail.lines().count(), 2);
    assert!(tail.starts_with("@249 ") && tail.contains("\n@250 "), "{tail}");
    let stats = text(&foldplane(&["stats", &place]).stdout);
    assert!(stats.contains("events    @1 to @250") && stats.contains("segment   from @201"), "{stats}");
    let lines = foldplane(&["export", &place]).stdout;
    assert_eq!(text(&lines).lines().count(), 252);
    fs::remove_dir_all(dir.path().join("segments")).unwrap();
    let missing = foldplane(&["stats", &place]);
    assert_ne!(missing.status.code(), Some(0));
}

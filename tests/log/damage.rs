//! Flipped bytes and cut files: each is harmless, or an error that names the place.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use foldplane::events::Envelope;
use foldplane::events::log::{LogError, SledLog, SledOptions};
use tempfile::{TempDir, tempdir};

use crate::child::Writer;
use crate::world::{Chance, copy, envelopes, every_file, fill, number_of, read_all};

/// What became of a log that was damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    /// Everything is there.
    Harmless,
    /// Opening said what is wrong.
    RefusedAtOpen,
    /// Reading said what is wrong.
    RefusedWhileReading,
}

/// How a file is damaged.
#[derive(Clone, Copy, Debug)]
enum Damage {
    Flip,
    Cut,
}

/// A data folder of three segments, closed or left by a killed writer.
struct Sample {
    dir: TempDir,
    events: Vec<Envelope>,
}

fn closed() -> Sample {
    let dir = tempdir().unwrap();
    let options = SledOptions { segment_events: 150, ..SledOptions::default() };
    let mut log = SledLog::open(dir.path(), options).unwrap();
    fill(&mut log, 400, 5);
    drop(log);
    Sample { dir, events: envelopes(1, 400) }
}

fn killed() -> Sample {
    let dir = tempdir().unwrap();
    let mut writer = Writer::start(dir.path(), u64::MAX);
    while writer.next().is_some_and(|offset| offset < 7_000) {}
    writer.kill();
    let looked_at = tempdir().unwrap();
    copy(dir.path(), looked_at.path());
    let events = read_all(&SledLog::open(looked_at.path(), SledOptions::default()).unwrap(), 1).unwrap();
    assert!(events == envelopes(1, events.len() as u64));
    Sample { dir, events }
}

fn damage(path: &Path, damage: Damage, chance: &mut Chance) -> String {
    let mut bytes = std::fs::read(path).unwrap();
    // sled fills the rest of its file with zeroes: most of the damage should hit what means something.
    let used = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    let place = chance.below((used + 64).min(bytes.len()) as u64) as usize;
    let done = match damage {
        Damage::Flip => {
            let bit = chance.below(8);
            bytes[place] ^= 1 << bit;
            format!("bit {bit} of byte {place}")
        }
        Damage::Cut => {
            bytes.truncate(place);
            format!("cut at {place}")
        }
    };
    std::fs::write(path, bytes).unwrap();
    done
}

fn outcome(dir: &Path, events: &[Envelope]) -> (Outcome, Option<LogError>) {
    let log = match SledLog::open(dir, SledOptions::default()) {
        Ok(log) => log,
        Err(error) => return (Outcome::RefusedAtOpen, Some(error)),
    };
    match read_all(&log, 1) {
        Ok(found) => {
            assert!(found.len() >= events.len(), "silent loss: {} of {} are left", found.len(), events.len());
            assert!(found == events, "an event was altered");
            (Outcome::Harmless, None)
        }
        Err(error) => (Outcome::RefusedWhileReading, Some(error)),
    }
}

/// Damages a copy `rounds` times, and checks what comes of it; gives the table.
fn check(sample: &Sample, kind: Damage, rounds: u64, seed: u64) -> BTreeMap<(String, Outcome), u64> {
    let files: Vec<PathBuf> = every_file(sample.dir.path())
        .into_iter()
        .filter(|(_, bytes)| !bytes.is_empty())
        .map(|(path, _)| path)
        .collect();
    let mut chance = Chance::new(seed);
    let mut table = BTreeMap::new();
    for round in 0..rounds {
        let file = &files[(round % files.len() as u64) as usize];
        let dir = tempdir().unwrap();
        copy(sample.dir.path(), dir.path());
        let what = format!("{} {}", file.display(), damage(&dir.path().join(file), kind, &mut chance));
        let result = catch_unwind(AssertUnwindSafe(|| outcome(dir.path(), &sample.events)));
        let (outcome, error) =
            result.unwrap_or_else(|_| panic!("{what}: see above; seed {seed} round {round}"));
        if let Some(error) = error {
            let message = error.to_string();
            let named = message.contains(&dir.path().display().to_string());
            assert!(named, "{what}: the error names no place: {message}");
        }
        let name = file.file_name().unwrap().to_string_lossy();
        let name = name.split('.').next().unwrap_or_default().to_owned();
        *table.entry((name, outcome)).or_default() += 1;
    }
    table
}

// nats-io/nats-server#7549, spacejam/sled#1533, spacejam/sled#1166 (F46, F47)
#[test]
fn f47_no_flip_and_no_cut_loses_or_alters_an_event_in_silence() {
    let rounds = number_of("FOLDPLANE_DAMAGE_ROUNDS", 40);
    println!("{:<10} {:<8} {:<12} {:<22} {:>6}", "sample", "damage", "file", "outcome", "times");
    for (name, sample) in [("closed", closed()), ("killed", killed())] {
        for (seed, kind) in [(11, Damage::Flip), (12, Damage::Cut)] {
            for ((file, outcome), times) in check(&sample, kind, rounds / 2, seed) {
                let (kind, outcome) = (format!("{kind:?}"), format!("{outcome:?}"));
                println!("{name:<10} {kind:<8} {file:<12} {outcome:<22} {times:>6}");
            }
        }
    }
}

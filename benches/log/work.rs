//! What the benchmarks of the log do, in any size. The tests run each of them in a small one, so that none rots.

use std::fs::File;
use std::hint::black_box;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use foldplane::engine;
use foldplane::events::codec::encode_blocks;
use foldplane::events::log::{EventLog, LogReader, SledLog, SledOptions};
use foldplane::events::{Envelope, Head, Offset};
use foldplane::projection::state::State;
use foldplane::projection::{StateDigest, checkpoint, evolve};

use crate::world::lives;

/// How long each durable append took, beside a plain file that is written and synced with the same bytes.
pub(crate) struct Appends {
    pub(crate) log: Vec<Duration>,
    pub(crate) floor: Vec<Duration>,
    pub(crate) head: Head,
}

/// Appends `rounds` batches of `waiting` events, each followed by the plain write of the same blocks.
pub(crate) fn appends(dir: &Path, waiting: u64, rounds: u64) -> Appends {
    let mut log = SledLog::open(&dir.join("log"), SledOptions::default()).unwrap();
    let mut plain = File::create(dir.join("plain")).unwrap();
    let events = lives(waiting, waiting * rounds);
    let (mut times, mut floor) = (Vec::new(), Vec::new());
    for batch in events.chunks(usize::try_from(waiting).unwrap()) {
        let blocks = encode_blocks(log.head(), batch).unwrap();
        floor.push(timed(|| {
            for block in &blocks {
                plain.write_all(&block.bytes).unwrap();
            }
            plain.sync_data().unwrap();
        }));
        times.push(timed(|| log.append(batch).unwrap()));
    }
    Appends { log: times, floor, head: log.head() }
}

/// What so many percent of the times do not exceed, in microseconds.
pub(crate) fn quantile_us(times: &[Duration], percent: usize) -> f64 {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    sorted[sorted.len() * percent / 100].as_secs_f64() * 1e6
}

impl Appends {
    /// Events a second over all rounds.
    pub(crate) fn per_second(times: &[Duration], waiting: u64) -> f64 {
        let total: Duration = times.iter().sum();
        waiting as f64 * times.len() as f64 / total.as_secs_f64()
    }
}

fn timed(work: impl FnOnce()) -> Duration {
    let begun = Instant::now();
    work();
    begun.elapsed()
}

/// Fills a log with `count` events, `batch` at a time, and saves the state a thousand events before its end.
pub(crate) fn fill(dir: &Path, count: u64, batch: u64) {
    let mut log = SledLog::open(dir, SledOptions::default()).unwrap();
    let mut state = State::default();
    let saved_at = count - count.min(1_000);
    let parts = Parts { at: 0, count, batch };
    for part in parts {
        log.append(&part).unwrap();
        for envelope in &part {
            if envelope.offset.get() <= saved_at {
                evolve(&mut state, envelope);
            }
        }
    }
    if saved_at > 0 {
        let head = log.head_at(Offset::new(saved_at)).unwrap();
        log.checkpoints().save(head, &checkpoint::encode(&state)).unwrap();
    }
}

/// The events of a long log in batches, made from one short life that is lived again and again.
struct Parts {
    at: u64,
    count: u64,
    batch: u64,
}

impl Iterator for Parts {
    type Item = Vec<Envelope>;

    fn next(&mut self) -> Option<Vec<Envelope>> {
        let take = self.batch.min(self.count - self.at);
        let first = self.at;
        self.at += take;
        (take > 0).then(|| {
            let events = lives(first, take);
            events
                .into_iter()
                .map(|event| Envelope { offset: Offset::new(first + event.offset.get()), ..event })
                .collect()
        })
    }
}

/// Events a second over a whole log, and the digest of the state.
pub(crate) struct Replayed {
    /// Read, checked and decoded.
    pub(crate) read: f64,
    /// And folded, on the same thread.
    pub(crate) on_one_thread: f64,
    /// As a start does it: one thread reads ahead of the other, which folds.
    pub(crate) replay: f64,
    pub(crate) state: StateDigest,
}

/// Reads a whole log three times.
pub(crate) fn replay(dir: &Path) -> Replayed {
    let log = SledLog::open(dir, SledOptions::default()).unwrap();
    let events = log.head().offset.get();
    let rate = |took: Duration| events as f64 / took.as_secs_f64();
    let every = || log.read(Offset::new(1)).unwrap().map(Result::unwrap);
    let read = timed(|| every().for_each(|envelope| drop(black_box(envelope))));
    let mut state = State::default();
    let on_one_thread = timed(|| every().for_each(|envelope| _ = evolve(&mut state, &envelope)));
    let mut opened = None;
    let replay = timed(|| opened = engine::open(&log, State::default(), None).ok());
    let digest = StateDigest::of(opened.unwrap().snapshot.state());
    assert_eq!(digest, StateDigest::of(&state));
    Replayed { read: rate(read), on_one_thread: rate(on_one_thread), replay: rate(replay), state: digest }
}

/// Opens a log, takes up the saved state and folds what comes after: the time, and the digest of the state.
pub(crate) fn start(dir: &Path) -> (Duration, StateDigest) {
    let begun = Instant::now();
    let log = SledLog::open(dir, SledOptions::default()).unwrap();
    let (_, state) = engine::saved_state(&log, &log.checkpoints()).unwrap();
    let opened = engine::open(&log, state, None).unwrap();
    let took = begun.elapsed();
    assert!(opened.folded <= 1_000);
    (took, StateDigest::of(opened.snapshot.state()))
}

//! The control plane's wall clock is set while it works: what is due is due by a clock that nobody can set.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "these tests measure time by the clock that nobody sets"
)]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use nix::sys::signal::Signal;
use serde_json::json;
use tempfile::TempDir;

use crate::world::{Agent, Server};

/// A clock that can be set for one program, and the folder that holds it.
struct Clock {
    folder: TempDir,
}

impl Clock {
    fn new() -> Self {
        let clock = Self { folder: TempDir::new().unwrap() };
        let source: PathBuf =
            [env!("CARGO_MANIFEST_DIR"), "tests", "agent", "workers", "clock.c"].iter().collect();
        // The linker that Rust needs is a C compiler.
        let built =
            Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(clock.library()).arg(source).status();
        assert!(built.expect("these tests need a C compiler: install cc").success());
        clock.set(0);
        clock
    }

    fn library(&self) -> PathBuf {
        self.folder.path().join("clock.so")
    }

    fn offset(&self) -> PathBuf {
        self.folder.path().join("offset")
    }

    /// Moves it from the machine's by so many seconds. Renamed into place, so that it is never read half.
    fn set(&self, seconds: i64) {
        let next = self.folder.path().join("next");
        std::fs::write(&next, seconds.to_string()).unwrap();
        std::fs::rename(next, self.offset()).unwrap();
    }

    fn environment(&self) -> Vec<(&'static str, String)> {
        let text = |path: &Path| path.to_str().unwrap().to_owned();
        vec![("LD_PRELOAD", text(&self.library())), ("FOLDPLANE_TEST_CLOCK", text(&self.offset()))]
    }
}

const HOUR: i64 = 3600;

const GRACE: Duration = Duration::from_secs(2);
const TTL: Duration = Duration::from_secs(3);

/// What may come on top on a busy machine, and is far from an hour.
const SLACK: Duration = Duration::from_secs(20);

/// A worker that keeps its place for a grace when its agent is gone.
fn patient(server: &Server, id: &str) -> Agent {
    let options = ["--service", "jobs", "--id", id, "--disconnect-grace", "2", "--drain", "2"];
    let agent = server.agent(&options, &["sleep", "600"]);
    server.wait_for(&format!("WorkerReady jobs/{id}@h"));
    agent
}

/// A worker that never renews its lease.
async fn lease(server: &Server, id: &str) {
    let url = format!("{}/v1/services/jobs/workers/{id}", server.url());
    let ttl_ms = TTL.as_millis();
    let body = json!({"host": "h", "ttl_ms": u64::try_from(ttl_ms).unwrap()});
    let answer = reqwest::Client::new().put(url).json(&body).send().await.unwrap();
    assert!(answer.status().is_success(), "{answer:?}");
}

/// Waits for an event, which must not come before `least` has passed since `since`.
#[track_caller]
fn due(server: &Server, words: &str, since: Instant, least: Duration) {
    server.wait_for(words);
    let took = since.elapsed();
    assert!(took >= least, "{words} came after {took:?} already");
    assert!(took < least + SLACK, "{words} came after {took:?} only");
}

/// A lease, a grace and a drain begin; then the clock is set.
async fn what_is_due_stays_due(seconds: i64) {
    let clock = Clock::new();
    let server = tokio::task::block_in_place(|| Server::start_in(clock.environment()));
    let (patient_a, patient_b) = (patient(&server, "a"), patient(&server, "b"));
    let leased = Instant::now();
    lease(&server, "c").await;
    patient_a.signal(Signal::SIGKILL);
    let killed = Instant::now();
    server.wait_for("WorkerDisconnected jobs/a@h");
    patient_b.signal(Signal::SIGTERM);
    let drained = Instant::now();
    let before = server.wait_for("WorkerDraining jobs/b@h");
    clock.set(seconds);
    due(&server, "WorkerRemoved jobs/a@h disconnected", killed, GRACE);
    due(&server, "WorkerRemoved jobs/b@h", drained, GRACE);
    due(&server, "WorkerRemoved jobs/c@h lease expired", leased, TTL);
    let after = server.wait_for("WorkerRemoved jobs/c@h");
    // The record shows what the clock showed.
    let recorded = |line: &str| line.split_whitespace().nth(1).unwrap().parse::<Timestamp>().unwrap();
    let moved = recorded(&after).as_second() - recorded(&before).as_second();
    assert!((moved - seconds).abs() < 60, "the clock moved by {moved} s");
}

// etcd-io/etcd#12291 (F31)
#[tokio::test(flavor = "multi_thread")]
async fn f31_a_clock_that_is_set_forward_by_an_hour_ends_nothing_early() {
    what_is_due_stays_due(HOUR).await;
}

// etcd-io/etcd#12291 (F31)
#[tokio::test(flavor = "multi_thread")]
async fn f31_a_clock_that_is_set_back_by_an_hour_ends_everything_in_time() {
    what_is_due_stays_due(-HOUR).await;
}

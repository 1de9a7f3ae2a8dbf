//! A writer in a process of its own, so that it can be killed: this test binary, started again.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use foldplane::events::log::{EventLog, LogReader, SledLog, SledOptions};

use crate::world::envelopes;

const DIR: &str = "FOLDPLANE_TEST_WRITER_DIR";
const UNTIL: &str = "FOLDPLANE_TEST_WRITER_UNTIL";

/// A running writer, killed when this is dropped.
pub(crate) struct Writer {
    child: Child,
    said: BufReader<ChildStdout>,
}

impl Writer {
    /// Starts a process that appends to the log in `dir` up to the offset `until`, and says each
    /// acknowledged offset on its own line.
    pub(crate) fn start(dir: &Path, until: u64) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child::a_writer_says_what_is_acknowledged", "--nocapture"])
            .env(DIR, dir)
            .env(UNTIL, until.to_string())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let said = BufReader::new(child.stdout.take().unwrap());
        Self { child, said }
    }

    /// The next acknowledged offset; nothing when the writer has ended.
    pub(crate) fn next(&mut self) -> Option<u64> {
        loop {
            let mut line = String::new();
            if self.said.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            if let Some(offset) = line.strip_prefix("acknowledged ").and_then(|rest| rest.strip_suffix('\n'))
            {
                return Some(offset.parse().unwrap());
            }
        }
    }

    /// Kills it at once, and says the last offset that it acknowledged.
    pub(crate) fn kill(mut self) -> Option<u64> {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        let mut last = None;
        while let Some(offset) = self.next() {
            last = Some(offset);
        }
        last
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Appends batches of changing size, each acknowledged once it is durable.
fn write(dir: &Path, until: u64) {
    let options = SledOptions { segment_events: 3_000, ..SledOptions::default() };
    let mut log = SledLog::open(dir, options).unwrap();
    let mut out = std::io::stdout().lock();
    while log.head().offset.get() < until {
        let first = log.head().offset.get() + 1;
        let batch = [1, 1, 2, 40, 1, 300][usize::try_from(first % 6).unwrap()];
        let last = until.min(first + batch - 1);
        log.append(&envelopes(first, last)).unwrap();
        writeln!(out, "acknowledged {last}").unwrap();
        out.flush().unwrap();
    }
}

/// What the other process runs; by itself, a short look at whether the writer does what the other tests rely on.
#[test]
fn a_writer_says_what_is_acknowledged() {
    if let (Ok(dir), Ok(until)) = (std::env::var(DIR), std::env::var(UNTIL)) {
        return write(Path::new(&dir), until.parse().unwrap());
    }
    let dir = tempfile::tempdir().unwrap();
    let mut writer = Writer::start(dir.path(), 500);
    let mut last = 0;
    while let Some(offset) = writer.next() {
        assert!(offset > last);
        last = offset;
    }
    assert_eq!(last, 500);
}

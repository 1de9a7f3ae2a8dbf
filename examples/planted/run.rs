//! One run of tests in the copy, with a limit.

use std::fs::{self, File};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

/// How often it is asked whether the tests have ended: fine enough for a time in tenths of a second.
const ASKED_EVERY: Duration = Duration::from_millis(20);

/// How a run ended.
pub(crate) struct Outcome {
    /// The tests that failed.
    pub(crate) failed: Vec<String>,
    /// How long they ran, without the build.
    pub(crate) took: Duration,
    /// Whether they were stopped at the limit.
    pub(crate) stopped: bool,
}

/// Builds the tests, and then runs them for at most `limit`.
pub(crate) fn tests(copy: &Path, arguments: &str, limit: Duration) -> anyhow::Result<Outcome> {
    let log = copy.with_extension("log");
    // A filter is no argument of the build.
    let target: Vec<&str> = arguments.split_whitespace().take(2).collect();
    let mut build = cargo(copy, &log)?;
    if !build.args(&target).arg("--no-run").status()?.success() {
        bail!("the tests cannot be built:\n{}", fs::read_to_string(&log)?);
    }
    let begun = Instant::now();
    let mut running = cargo(copy, &log)?.args(arguments.split_whitespace()).process_group(0).spawn()?;
    let stopped = loop {
        match running.try_wait()? {
            Some(_) => break false,
            None if begun.elapsed() >= limit => break true,
            None => std::thread::sleep(ASKED_EVERY),
        }
    };
    if stopped {
        // Cargo and the tests that it started.
        killpg(Pid::from_raw(i32::try_from(running.id())?), Signal::SIGKILL)?;
        running.wait()?;
    }
    let said = fs::read_to_string(&log)?;
    let failed = said.lines().filter_map(|line| line.strip_prefix("test ")?.strip_suffix(" ... FAILED"));
    Ok(Outcome { failed: failed.map(str::to_owned).collect(), took: begun.elapsed(), stopped })
}

/// `cargo test` in the copy. What it builds lies beside it, so that no program of the tree is replaced by one with a fault. It
/// writes to a file, which never fills up.
fn cargo(copy: &Path, log: &Path) -> anyhow::Result<Command> {
    let out = File::create(log).with_context(|| format!("cannot write {}", log.display()))?;
    let mut command = Command::new(env!("CARGO"));
    command
        .current_dir(copy)
        .env("CARGO_TARGET_DIR", copy.with_file_name("target"))
        .arg("test")
        .stdin(Stdio::null())
        .stderr(out.try_clone()?)
        .stdout(out);
    Ok(command)
}

//! Child processes that never outlive the demo.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::process::{Child, Command};

use super::DemoError;

/// How many of the last lines of a child's log are shown when it ends too early.
const LOG_LINES_SHOWN: usize = 8;

/// How long a dropped child may take to be gone: the kernel does it in a millisecond; one that is stuck in the kernel
/// is left to it.
const KILL_LIMIT: Duration = Duration::from_secs(2);

/// How often it is looked for.
const KILL_POLL: Duration = Duration::from_millis(1);

/// A child in a process group of its own, with its output in a file. Dropping it kills the group.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    group: Pid,
    log: PathBuf,
}

impl Process {
    /// Starts a command, its program first; what it prints goes to `NAME.log` in `logs`, behind what is there.
    ///
    /// Dropping kills the process group, but a process that is itself killed with SIGKILL drops nothing. Commands that
    /// must not outlive even that begin with a launcher, see [`Demo::launcher`](super::Demo::launcher).
    ///
    /// # Errors
    ///
    /// [`DemoError::Start`] when it cannot be started, [`DemoError::Folder`] when its log cannot be written.
    pub fn start<S: AsRef<OsStr>>(name: &str, command: &[S], logs: &Path) -> Result<Self, DemoError> {
        let failed = |source| DemoError::Start { name: name.to_owned(), source };
        let (program, arguments) =
            command.split_first().ok_or_else(|| failed(io::ErrorKind::InvalidInput.into()))?;
        let log = logs.join(format!("{name}.log"));
        let (output, errors) =
            open_log(&log).map_err(|source| DemoError::Folder { path: log.clone(), source })?;
        let child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors)
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(failed)?;
        let id = child
            .id()
            .and_then(|id| i32::try_from(id).ok())
            .expect("a child that was just started has an id");
        Ok(Self { name: name.to_owned(), child, group: Pid::from_raw(id), log })
    }

    /// What it is called in messages.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> i32 {
        self.group.as_raw()
    }

    /// An error that shows the end of its log, if it has ended.
    ///
    /// # Errors
    ///
    /// [`DemoError::Ended`] when it has.
    pub fn still_runs(&mut self) -> Result<(), DemoError> {
        match self.child.try_wait() {
            Ok(None) => Ok(()),
            Ok(Some(status)) => Err(DemoError::Ended {
                name: self.name.clone(),
                status: status.to_string(),
                log: self.last_lines(),
            }),
            Err(source) => Err(DemoError::Start { name: self.name.clone(), source }),
        }
    }

    /// Sends a signal to the process and its group. One that is gone already is no error.
    pub fn signal(&self, signal: Signal) {
        let _ = killpg(self.group, signal);
    }

    /// Waits for its end, at most this long.
    ///
    /// # Errors
    ///
    /// [`DemoError::Hangs`] when it has not ended by then.
    pub async fn ended(&mut self, limit: Duration) -> Result<ExitStatus, DemoError> {
        match tokio::time::timeout(limit, self.child.wait()).await {
            Ok(Ok(status)) => Ok(status),
            Ok(Err(source)) => Err(DemoError::Start { name: self.name.clone(), source }),
            Err(_) => Err(DemoError::Hangs { name: self.name.clone(), limit, log: self.last_lines() }),
        }
    }

    /// Kills it with SIGKILL and waits until it is gone.
    ///
    /// # Errors
    ///
    /// [`DemoError::Hangs`] when even that does not end it within `limit`.
    pub async fn kill(&mut self, limit: Duration) -> Result<ExitStatus, DemoError> {
        self.signal(Signal::SIGKILL);
        self.ended(limit).await
    }

    /// The file with all that it printed.
    #[must_use]
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// The end of its log, indented.
    #[must_use]
    pub fn last_lines(&self) -> String {
        let text = fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let skipped = text.lines().count().saturating_sub(LOG_LINES_SHOWN);
        text.lines().skip(skipped).map(|line| format!("\n    {line}")).collect()
    }
}

impl Drop for Process {
    /// Kills the group, because the child may have children, and waits, so that nothing writes any more where it wrote.
    fn drop(&mut self) {
        if !matches!(self.child.try_wait(), Ok(None)) {
            return;
        }
        self.signal(Signal::SIGKILL);
        let start = Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) && start.elapsed() < KILL_LIMIT {
            std::thread::sleep(KILL_POLL);
        }
    }
}

fn open_log(path: &Path) -> io::Result<(File, File)> {
    let file = File::options().create(true).append(true).open(path)?;
    Ok((file.try_clone()?, file))
}

//! The child process and its group.

use std::ffi::OsString;
use std::future::pending;
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep};

use super::ending::Ending;
use super::kin;

/// How often an emptying group is looked at: no signal tells of the end of a grandchild.
const GROUP_LOOK: Duration = Duration::from_millis(20);

/// What the agent's own supervisor tells the agent, and would mislead the child: systemd's watchdog wants signs of life from
/// the process with that id.
const NOT_FOR_CHILDREN: [&str; 2] = ["WATCHDOG_PID", "WATCHDOG_USEC"];

/// How children are started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Launcher {
    /// As they are. A killed agent leaves its child behind.
    Direct,
    /// By this program, which calls [`launch`](super::launch()) when it is given these arguments, the agent's process id and the
    /// command. On Linux the child dies with the agent.
    Through(PathBuf, Vec<OsString>),
}

/// The child, if there is one, and the group that it leads.
#[derive(Debug)]
pub(super) struct Family {
    launcher: Launcher,
    child: Option<Child>,
    group: Option<Pid>,
}

impl Family {
    pub(super) fn new(launcher: Launcher) -> Self {
        Self { launcher, child: None, group: None }
    }

    /// Starts the child. Must be called on the thread that lives as long as the agent: Linux counts the end of the
    /// thread that forked as the end of the parent.
    pub(super) fn spawn(
        &mut self,
        command: &[OsString],
        environment: Vec<(String, OsString)>,
    ) -> Result<(), Ending> {
        let program = command.first().cloned().unwrap_or_default();
        let shown = program.to_string_lossy();
        // Looked up here as well, so that a program that is missing is told from one that ends with 127.
        which::which(&program).map_err(|_| {
            Ending::not_run(&shown, &io::Error::new(io::ErrorKind::NotFound, "there is no such program"))
        })?;
        let mut command = self.command(command);
        for name in NOT_FOR_CHILDREN {
            command.env_remove(name);
        }
        let started = command.envs(environment).spawn();
        let child = started.map_err(|error| Ending::not_run(&shown, &error))?;
        self.group = child.id().and_then(|id| i32::try_from(id).ok()).map(Pid::from_raw);
        self.child = Some(child);
        Ok(())
    }

    fn command(&self, command: &[OsString]) -> Command {
        let words: Vec<OsString> = match &self.launcher {
            Launcher::Direct => command.to_vec(),
            Launcher::Through(program, arguments) => {
                let agent = OsString::from(std::process::id().to_string());
                let first = [program.as_os_str().to_owned()].into_iter().chain(arguments.iter().cloned());
                first.chain([agent, "--".into()]).chain(command.iter().cloned()).collect()
            }
        };
        let mut words = words.into_iter();
        let mut started = Command::new(words.next().unwrap_or_default());
        started.args(words).process_group(0);
        // A terminal stops a process that reads from it in the background, which a group of its own is.
        if io::stdin().is_terminal() {
            started.stdin(Stdio::null());
        }
        started
    }

    /// The child's process id, while there is a child.
    pub(super) fn child(&self) -> Option<u32> {
        self.child.as_ref().and_then(Child::id)
    }

    /// Waits for the child's end; for ever if there is none.
    pub(super) async fn ended(&mut self) -> Ending {
        let Some(child) = &mut self.child else { return pending().await };
        let ended = child.wait().await;
        self.child = None;
        match ended {
            Ok(status) => Ending::of(status),
            Err(error) => Ending::not_run("the child", &error),
        }
    }

    /// Sends the whole group a signal. Nobody left to get it is no fault.
    pub(super) fn signal(&self, signal: Signal) {
        let Some(group) = self.group else { return };
        match killpg(group, signal) {
            Ok(()) | Err(Errno::ESRCH) => {}
            Err(error) => tracing::warn!(%group, %signal, %error, "the worker's group cannot be signalled"),
        }
    }

    /// Waits until nobody of the group is left, and kills who is there after `within`.
    pub(super) async fn disband(&mut self, within: Duration) {
        let deadline = Instant::now() + within;
        while self.is_populated() {
            if Instant::now() >= deadline {
                return self.signal(Signal::SIGKILL);
            }
            sleep(GROUP_LOOK).await;
        }
    }

    fn is_populated(&self) -> bool {
        let exists = |group: &Pid| killpg(*group, None) != Err(Errno::ESRCH);
        self.group.filter(exists).is_some_and(|group| kin::group_runs(group.as_raw()))
    }
}

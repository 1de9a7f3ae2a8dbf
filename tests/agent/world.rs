//! A control plane and agents as processes of their own, and waiting for what the log says.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "these tests wait for processes, and measure how long they take"
)]

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use foldplane::agent::client::{Client, Config, Notice};
use foldplane::demo::ports::free_address;
use foldplane::proto;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

/// How long anything may take on a busy machine.
const WITHIN: Duration = Duration::from_secs(20);

/// More than any test here needs.
const PORTS_PER_SERVER: u16 = 12;

const LOOK: Duration = Duration::from_millis(20);

/// A control plane on a free port, with its log in a folder of its own.
pub(crate) struct Server {
    process: Option<Child>,
    folder: TempDir,
    api: String,
    options: Vec<String>,
    environment: Vec<(&'static str, String)>,
    ports: Block,
}

impl Server {
    pub(crate) fn start() -> Self {
        Self::start_with(&[])
    }

    pub(crate) fn start_with(options: &[&str]) -> Self {
        let options = options.iter().map(ToString::to_string).collect();
        let mut server = Self::absent(options);
        server.restart();
        server.lend_own_ports();
        server
    }

    /// One that finds these variables in its environment.
    pub(crate) fn start_in(environment: Vec<(&'static str, String)>) -> Self {
        let mut server = Self::absent(Vec::new());
        server.environment = environment;
        server.restart();
        server.lend_own_ports();
        server
    }

    /// An address at which there is no control plane yet.
    pub(crate) fn absent(options: Vec<String>) -> Self {
        // Not one of the kernel's ports for outgoing connections: an agent that tries again and again to reach a control plane
        // that is away would in the end be connected with itself.
        let api = free_address().unwrap().to_string();
        Self {
            process: None,
            folder: TempDir::new().unwrap(),
            api,
            options,
            environment: Vec::new(),
            ports: Block::take(),
        }
    }

    pub(crate) fn restart(&mut self) {
        let mut process = foldplane()
            .args(["serve", "--xds", "127.0.0.1:0", "--api", &self.api, "--data-dir"])
            .arg(self.folder.path())
            .args(&self.options)
            .env("RUST_LOG", "warn")
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let api = lines.map_while(Result::ok).find(|line| line.starts_with("api "));
        assert!(api.is_some(), "the control plane did not start");
        self.process = Some(process);
    }

    /// Servers of tests that run at the same time know nothing of each other, so each gets ports of its own.
    fn lend_own_ports(&self) {
        let (first, last) = self.ports();
        let host = proto::ReportHost {
            host: "h".to_owned(),
            addresses: vec!["127.0.0.1".to_owned()],
            port_first: first.into(),
            port_last: last.into(),
            locality: None,
        };
        let config = Config { server: self.url(), host: Some(host), seed: 1 };
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async {
            let mut client = Client::start(&config).unwrap();
            assert_eq!(client.next().await, Some(Notice::Connected));
            self.wait_for("HostReported");
        });
    }

    /// The first and the last of the ports that are its own.
    pub(crate) fn ports(&self) -> (u16, u16) {
        (self.ports.first, self.ports.first + PORTS_PER_SERVER - 1)
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(pid(self.process.as_ref().unwrap().id()), signal).unwrap();
    }

    /// Stops it in order, and waits for its end.
    pub(crate) fn stop(&mut self) {
        self.signal(Signal::SIGTERM);
        let mut process = self.process.take().unwrap();
        let ended = eventually(|| process.try_wait().unwrap());
        assert_eq!(ended.expect("the control plane did not end").code(), Some(0));
    }

    pub(crate) fn kill(&mut self) {
        let mut process = self.process.take().unwrap();
        process.kill().unwrap();
        process.wait().unwrap();
    }

    /// Where its log is.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.api)
    }

    /// An agent of this server's host `h`, before its `--`.
    pub(crate) fn agent(&self, options: &[&str], command: &[&str]) -> Agent {
        Agent::start(&mut self.run(options, command))
    }

    fn run(&self, options: &[&str], command: &[&str]) -> Command {
        let mut agent = foldplane();
        agent.env("FOLDPLANE_SERVER", self.url());
        agent.args(["run", "--host", "h"]).args(options).arg("--").args(command);
        agent
    }

    /// One that finds these variables in its environment.
    pub(crate) fn agent_in(&self, environment: &[(&str, &str)], options: &[&str], command: &[&str]) -> Agent {
        Agent::start(self.run(options, command).envs(environment.iter().copied()))
    }

    /// What a command that asks this server prints.
    pub(crate) fn get(&self, arguments: &[&str]) -> String {
        let output = foldplane().arg("get").args(arguments).args(["--server", &self.url()]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// One whose child reads what [`Agent::input`] writes.
    pub(crate) fn agent_with_input(&self, options: &[&str], command: &[&str]) -> Agent {
        Agent::start(self.run(options, command).stdin(Stdio::piped()))
    }

    /// The events of the log, one a line.
    pub(crate) fn log(&self) -> String {
        let dump = foldplane().args(["log", "dump", "--server", &self.url()]).output().unwrap();
        String::from_utf8(dump.stdout).unwrap()
    }

    /// The first event whose line holds all of these words.
    #[track_caller]
    pub(crate) fn wait_for(&self, words: &str) -> String {
        let mut log = String::new();
        let found = eventually(|| {
            log = self.log();
            log.lines().find(|line| words.split(' ').all(|word| line.contains(word))).map(str::to_owned)
        });
        found.unwrap_or_else(|| panic!("no event with {words:?} in\n{log}"))
    }

    /// Waits until these are the events about a worker.
    #[track_caller]
    pub(crate) fn wait_for_story(&self, id: &str, expected: &[&str]) {
        let told = eventually(|| (self.story(id) == expected).then_some(()));
        told.unwrap_or_else(|| panic!("expected {expected:?} in\n{}", self.log()));
    }

    /// The names of the events about a worker, in order.
    pub(crate) fn story(&self, id: &str) -> Vec<String> {
        let about = format!("/{id}@h");
        let log = self.log();
        let lines = log.lines().filter(|line| line.contains(&about));
        lines.filter_map(|line| line.split_whitespace().nth(2).map(str::to_owned)).collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(mut process) = self.process.take() {
            let _gone = process.kill();
            let _reaped = process.wait();
        }
    }
}

/// One `foldplane run`.
pub(crate) struct Agent {
    process: Child,
    /// Kept open: a child that writes into a closed pipe ends.
    stdout: BufReader<ChildStdout>,
}

impl Agent {
    fn start(command: &mut Command) -> Self {
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let stdout = BufReader::new(process.stdout.take().unwrap());
        Self { process, stdout }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(pid(self.process.id()), signal).unwrap();
    }

    /// The next line that the child writes.
    pub(crate) fn child_line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        line.trim().to_owned()
    }

    pub(crate) fn input(&mut self, text: &str) {
        self.process.stdin.as_mut().unwrap().write_all(text.as_bytes()).unwrap();
    }

    /// The exit status, in time or not at all.
    #[track_caller]
    pub(crate) fn ended(&mut self) -> ExitStatus {
        eventually(|| self.process.try_wait().unwrap()).expect("the agent did not end")
    }

    /// What it told the user, once it has ended.
    pub(crate) fn said(&mut self) -> String {
        let mut text = String::new();
        self.process.stderr.take().unwrap().read_to_string(&mut text).unwrap();
        text
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _gone = self.process.kill();
        let _reaped = self.process.wait();
    }
}

/// Ports that no other test gets, also none of another run on this machine, and on which nobody sits. Two that hand out the
/// same ports both find one free that both are about to use, and the test that loses fails without a fault.
struct Block {
    first: u16,
    _lock: File,
}

impl Block {
    fn take() -> Self {
        // Up to 26,000, from where on demos lend theirs.
        const BLOCKS: u16 = 500;
        static NEXT: AtomicU16 = AtomicU16::new(0);
        let folder = std::env::temp_dir().join("foldplane-test-ports");
        std::fs::create_dir_all(&folder).unwrap();
        // Runs that overlap start at different places.
        let offset = u16::try_from(std::process::id() % u32::from(BLOCKS)).unwrap();
        loop {
            let block = (offset + NEXT.fetch_add(1, Ordering::Relaxed)) % BLOCKS;
            let lock = File::create(folder.join(block.to_string())).unwrap();
            let first = 20_000 + block * PORTS_PER_SERVER;
            let free = |port: u16| TcpListener::bind(("0.0.0.0", port)).is_ok();
            if lock.try_lock().is_ok() && (first..first + PORTS_PER_SERVER).all(free) {
                return Self { first, _lock: lock };
            }
        }
    }
}

fn foldplane() -> Command {
    Command::new(env!("CARGO_BIN_EXE_foldplane"))
}

/// The command of a worker from `tests/agent/workers`.
pub(crate) fn worker(name: &str) -> String {
    let path: PathBuf = [env!("CARGO_MANIFEST_DIR"), "tests", "agent", "workers", name].iter().collect();
    path.to_str().unwrap().to_owned()
}

pub(crate) fn pid(id: u32) -> Pid {
    Pid::from_raw(id.try_into().unwrap())
}

/// Whether a process runs; one that waits to be reaped does not.
pub(crate) fn runs(id: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    !stat.is_empty() && !stat.contains(") Z ")
}

/// Waits for something.
pub(crate) fn eventually<T>(mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let start = Instant::now();
    while start.elapsed() < WITHIN {
        if let Some(found) = look() {
            return Some(found);
        }
        sleep(LOOK);
    }
    None
}

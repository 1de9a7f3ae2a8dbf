//! The `foldplane` commands that the demo asks, as a user would.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, SystemTime};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::process::Command;

use super::DemoError;

/// How long a command may take: it is done in a fraction of a second; a busy machine gets a hundred times that.
const COMMAND_LIMIT: Duration = Duration::from_secs(30);

/// The program, and the control plane that it asks.
#[derive(Clone, Debug)]
pub(super) struct Foldplane {
    program: String,
    server: String,
}

/// One event as the log recorded it.
#[derive(Clone, Debug)]
pub(super) struct Recorded {
    pub(super) offset: u64,
    pub(super) at: SystemTime,
    /// Such as `WorkerReady`.
    pub(super) name: String,
    /// As `log dump` prints it.
    pub(super) line: String,
}

/// What a fold of the log came to.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct Folded {
    pub(super) offset: u64,
    pub(super) state_digest: String,
    pub(super) versions: Vec<Version>,
}

/// The version of one resource, or of a whole type (`*`).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct Version {
    pub(super) r#type: String,
    pub(super) name: String,
    pub(super) version: String,
}

/// What `replay -o json` prints, as far as it is looked at.
#[derive(Debug, Deserialize)]
struct Replayed {
    state: Folded,
    endpoints: Endpoints,
}

#[derive(Debug, Deserialize)]
struct Endpoints {
    items: Vec<serde::de::IgnoredAny>,
}

#[derive(Deserialize)]
struct Envelope {
    offset: u64,
    recorded_at: u64,
    event: serde_json::Map<String, serde_json::Value>,
}

/// What `get workers -o json` prints, as far as it is looked at.
#[derive(Deserialize)]
struct Workers {
    items: Vec<Worker>,
}

#[derive(Deserialize)]
struct Worker {
    id: String,
    state: String,
}

/// What `get proxies -o json` prints, as far as it is looked at.
#[derive(Deserialize)]
struct Proxies {
    items: Vec<ProxyItem>,
}

#[derive(Deserialize)]
struct ProxyItem {
    types: Vec<Accepted>,
}

/// Which version of a type a proxy has accepted (ACK), if any.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Accepted {
    pub(super) r#type: String,
    pub(super) acked: Option<String>,
}

impl Foldplane {
    pub(super) fn new(program: &Path, server: String) -> Self {
        Self { program: program.to_string_lossy().into_owned(), server }
    }

    pub(super) fn program(&self) -> &str {
        &self.program
    }

    /// The URL of the control plane's API.
    pub(super) fn server(&self) -> &str {
        &self.server
    }

    /// Every event from `from` on.
    pub(super) async fn events(&self, from: u64) -> Result<Vec<Recorded>, DemoError> {
        let from = from.to_string();
        let dump = ["log", "dump", "--from", &from, "--server", &self.server, "-o"];
        let lines = self.run(&[&dump[..], &["text"]].concat()).await?;
        let records = self.run(&[&dump[..], &["json"]].concat()).await?;
        let pairs = records.lines().zip(lines.lines());
        pairs.map(|(record, line)| self.recorded(record, line)).collect()
    }

    fn recorded(&self, record: &str, line: &str) -> Result<Recorded, DemoError> {
        let envelope: Envelope = self.decode(&["log", "dump"], record)?;
        Ok(Recorded {
            offset: envelope.offset,
            at: SystemTime::UNIX_EPOCH + Duration::from_millis(envelope.recorded_at),
            name: envelope.event.into_iter().next().map(|(name, _)| name).unwrap_or_default(),
            line: line.to_owned(),
        })
    }

    /// The workers that are alive, with their states.
    pub(super) async fn workers(&self) -> Result<Vec<(String, String)>, DemoError> {
        let command = ["get", "workers", "--server", &self.server, "-o", "json"];
        let workers: Workers = self.decode(&command, &self.run(&command).await?)?;
        Ok(workers.items.into_iter().map(|worker| (worker.id, worker.state)).collect())
    }

    /// What every proxy has accepted of each type that it follows.
    pub(super) async fn accepted(&self) -> Result<Vec<Accepted>, DemoError> {
        let command = ["get", "proxies", "--server", &self.server, "-o", "json"];
        let proxies: Proxies = self.decode(&command, &self.run(&command).await?)?;
        Ok(proxies.items.into_iter().flat_map(|proxy| proxy.types).collect())
    }

    /// What the log of the running control plane folds to, by a process of its own, up to `until`.
    pub(super) async fn replay_running(&self, until: u64) -> Result<Folded, DemoError> {
        Ok(self.replay(&["--server", &self.server], until).await?.state)
    }

    /// How many endpoints were published at an offset of the past.
    pub(super) async fn endpoints_at(&self, until: u64) -> Result<usize, DemoError> {
        Ok(self.replay(&["--server", &self.server], until).await?.endpoints.items.len())
    }

    /// What a log on disk folds to.
    pub(super) async fn replay_folder(&self, data: &Path, until: u64) -> Result<Folded, DemoError> {
        Ok(self.replay(&[&data.to_string_lossy()], until).await?.state)
    }

    async fn replay(&self, source: &[&str], until: u64) -> Result<Replayed, DemoError> {
        let until = until.to_string();
        let command = [&["replay"], source, &["--until", &until, "-o", "json"]].concat();
        self.decode(&command, &self.run(&command).await?)
    }

    async fn run(&self, arguments: &[&str]) -> Result<String, DemoError> {
        let mut command = Command::new(&self.program);
        command.args(arguments).stdin(Stdio::null()).kill_on_drop(true);
        let failed = |outcome: String| DemoError::Command { command: arguments.join(" "), outcome };
        match tokio::time::timeout(COMMAND_LIMIT, command.output()).await {
            Err(_) => Err(failed(format!("took longer than {} s", COMMAND_LIMIT.as_secs()))),
            Ok(Err(fault)) => Err(failed(format!("could not be started: {fault}"))),
            Ok(Ok(output)) if output.status.success() => {
                Ok(String::from_utf8_lossy(&output.stdout).into_owned())
            }
            Ok(Ok(output)) => {
                let errors = String::from_utf8_lossy(&output.stderr);
                Err(failed(format!("ended with {}: {}", output.status, errors.trim())))
            }
        }
    }

    fn decode<T: DeserializeOwned>(&self, command: &[&str], text: &str) -> Result<T, DemoError> {
        serde_json::from_str(text).map_err(|fault| DemoError::Command {
            command: command.join(" "),
            outcome: format!("printed something else than expected: {fault}"),
        })
    }
}

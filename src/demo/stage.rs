//! Everything that plays: the control plane, Envoy, the workers and their folder.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use super::commands::{Folded, Foldplane, Recorded};
use super::error::CHANGE_LIMIT;
use super::lending::{HOST, lend};
use super::load::{Load, Share};
use super::narration::{LiveLine, Narrator};
use super::ports::free_address;
use super::process::Process;
use super::proxy::{Proxy, Seen};
use super::{Demo, DemoError};
use crate::bootstrap::{EnvoyBootstrap, Label, ServerAddress, XdsVariant};

/// The service of the demo.
pub(super) const SERVICE: &str = "shop";

/// How often a control plane that starts is asked whether it is ready.
const READY_POLL: Duration = Duration::from_millis(10);

/// How often the line of numbers changes on a terminal, and elsewhere.
const LIVE_PERIOD: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(10));

/// The seconds that a draining worker has for requests in flight.
const DRAIN_SECONDS: &str = "1";

/// Who plays. Fields are dropped in this order: clients first, the folder last.
#[derive(Debug)]
pub(super) struct Stage {
    pub(super) agents: BTreeMap<&'static str, Process>,
    pub(super) proxy: Proxy,
    pub(super) server: Process,
    pub(super) cli: Foldplane,
    /// Where the log says that the killed worker went.
    pub(super) death: Option<u64>,
    /// From a recorded event to Envoy's having it.
    pub(super) latencies: Vec<Duration>,
    launcher: Vec<String>,
    doors: Doors,
    client: reqwest::Client,
    shown: u64,
    folder: TempDir,
}

/// Where the control plane listens; the same before and after its restart.
#[derive(Clone, Copy, Debug)]
struct Doors {
    xds: std::net::SocketAddr,
    api: std::net::SocketAddr,
}

impl Stage {
    /// A control plane that is ready and an Envoy that follows it.
    pub(super) async fn set(demo: &Demo) -> Result<Self, DemoError> {
        let folder = tempfile::Builder::new()
            .prefix("foldplane-demo-")
            .tempdir()
            .map_err(|source| DemoError::Folder { path: std::env::temp_dir(), source })?;
        let doors = Doors { xds: free_address()?, api: free_address()? };
        let cli = Foldplane::new(&demo.program, format!("http://{}", doors.api));
        let launcher = demo.launcher.clone();
        let server = start_server(&cli, &launcher, doors, folder.path())?;
        let words: Vec<&str> = launcher.iter().map(String::as_str).collect();
        let proxy = Proxy::start(&demo.envoy, &bootstrap(doors)?, &words, folder.path()).await?;
        let client = reqwest::Client::builder().no_proxy().build();
        let client = client.map_err(|source| DemoError::Api { url: cli.server().to_owned(), source })?;
        let (agents, death, latencies) = (BTreeMap::new(), None, Vec::new());
        let mut stage =
            Self { agents, proxy, server, cli, death, latencies, launcher, doors, client, shown: 0, folder };
        stage.server_ready().await?;
        lend(&stage.cli).await?;
        Ok(stage)
    }

    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Where the log is.
    pub(super) fn data(&self) -> PathBuf {
        data(self.folder.path())
    }

    pub(super) fn start_load(&self) -> Load {
        Load::start(self.proxy.listener, SERVICE)
    }

    /// Starts the control plane again, after it ended.
    pub(super) async fn restart_server(&mut self) -> Result<(), DemoError> {
        self.server = start_server(&self.cli, &self.launcher, self.doors, self.folder.path())?;
        self.server_ready().await
    }

    async fn server_ready(&mut self) -> Result<(), DemoError> {
        let start = Instant::now();
        let url = format!("{}/readyz", self.cli.server());
        loop {
            let answer = self.client.get(&url).send().await.and_then(reqwest::Response::error_for_status);
            let Err(fault) = answer else { return Ok(()) };
            self.server.still_runs()?;
            if start.elapsed() > CHANGE_LIMIT {
                let what = "the start of the control plane".to_owned();
                return Err(DemoError::Late { what, limit: CHANGE_LIMIT, detail: format!(": {fault}") });
            }
            tokio::time::sleep(READY_POLL).await;
        }
    }

    /// Starts a worker under `foldplane run`, as a user would.
    pub(super) fn start_worker(&mut self, id: &'static str) -> Result<(), DemoError> {
        let (program, server) = (self.cli.program(), self.cli.server());
        let options = ["run", "--service", SERVICE, "--id", id, "--port", "http", "--host", HOST];
        let worker = ["--drain", DRAIN_SECONDS, "--server", server, "--", program, "demo-worker"];
        let launcher = self.launcher.iter().map(String::as_str);
        let command: Vec<&str> = launcher.chain([program]).chain(options).chain(worker).collect();
        let agent = Process::start(&format!("worker-{id}"), &command, self.folder.path())?;
        self.agents.insert(id, agent);
        Ok(())
    }

    /// The agent of a worker.
    pub(super) fn agent(&mut self, id: &str) -> Result<&mut Process, DemoError> {
        self.agents.get_mut(id).ok_or_else(|| DemoError::NoAgent { worker: id.to_owned() })
    }

    /// The ends of the workers' logs.
    pub(super) fn worker_logs(&self) -> String {
        let logs = self.agents.values().map(|agent| format!("\n  {}:{}", agent.name(), agent.last_lines()));
        logs.collect()
    }

    /// What the running control plane says of itself.
    pub(super) async fn live(&self) -> Result<Folded, DemoError> {
        let url = format!("{}/v1/state", self.cli.server());
        let failed = |source| DemoError::Api { url: url.clone(), source };
        self.client.get(&url).send().await.map_err(failed)?.json().await.map_err(failed)
    }

    /// Shows the events since the last time.
    pub(super) async fn show_events(&mut self, narrator: &mut Narrator) -> Result<Vec<Recorded>, DemoError> {
        let events = self.cli.events(self.shown + 1).await?;
        for event in &events {
            narrator.event(&event.line)?;
            self.shown = self.shown.max(event.offset);
        }
        Ok(events)
    }

    /// Notes the time from the last event of a kind to when Envoy was seen to have it.
    pub(super) fn measure(&mut self, events: &[Recorded], name: &str, seen: Seen) -> String {
        let Some(event) = events.iter().rev().find(|event| event.name == name) else {
            return format!("no {name} was recorded");
        };
        let latency = seen.wall.duration_since(event.at).unwrap_or_default();
        self.latencies.push(latency);
        format!("Envoy has @{} {} ms after it was recorded", event.offset, latency.as_millis())
    }

    /// Shows numbers until a person has had enough.
    pub(super) async fn watch(
        &mut self,
        load: &Load,
        narrator: &mut Narrator,
        interrupt: &CancellationToken,
    ) -> Result<(), DemoError> {
        let period = match narrator.live() {
            LiveLine::Rewritten => LIVE_PERIOD.0,
            LiveLine::Appended => LIVE_PERIOD.1,
        };
        let mut last = load.tally();
        loop {
            let started = Instant::now();
            if interrupt.run_until_cancelled(tokio::time::sleep(period)).await.is_none() {
                return Ok(narrator.say("")?);
            }
            self.server.still_runs()?;
            self.proxy.process.still_runs()?;
            let tally = load.tally();
            let share = tally.since(&last);
            let rate = share.requests() as f64 / started.elapsed().as_secs_f64();
            narrator.now(&format!(
                "{rate:>4.0} requests/s · {} · {} in total",
                shares(&share),
                tally.answered()
            ))?;
            last = tally;
        }
    }

    /// Asks the control plane to end, and waits until it has.
    pub(super) async fn stop_server(&mut self) -> Result<std::process::ExitStatus, DemoError> {
        self.server.signal(Signal::SIGTERM);
        self.server.ended(CHANGE_LIMIT).await
    }
}

/// `a 33 % · b 33 % · c 33 % · 0 failed`.
pub(super) fn shares(share: &Share) -> String {
    let total = share.requests().max(1);
    let workers = share.workers.iter().map(|(name, count)| format!("{name} {} %", count * 100 / total));
    workers.chain([format!("{} failed", share.failed)]).collect::<Vec<_>>().join(" · ")
}

fn data(folder: &Path) -> PathBuf {
    folder.join("data")
}

fn start_server(
    cli: &Foldplane,
    launcher: &[String],
    doors: Doors,
    folder: &Path,
) -> Result<Process, DemoError> {
    let (xds, api, data) = (doors.xds.to_string(), doors.api.to_string(), data(folder));
    let data = data.to_string_lossy();
    let serve = [cli.program(), "serve", "--data-dir", &data, "--xds", &xds, "--api", &api];
    let command: Vec<&str> = launcher.iter().map(String::as_str).chain(serve).collect();
    Process::start("control-plane", &command, folder)
}

fn bootstrap(doors: Doors) -> Result<EnvoyBootstrap, DemoError> {
    let label = |text: &str| text.parse::<Label>().expect("a short word is a label");
    Ok(EnvoyBootstrap {
        node_id: label("demo"),
        node_cluster: label("demo"),
        control_plane: ServerAddress::Ip(doors.xds),
        variant: XdsVariant::Delta,
        admin: Some(free_address()?),
        listener: Some(free_address()?),
        routes: Vec::new(),
    })
}

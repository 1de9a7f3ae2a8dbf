//! `foldplane run`: a worker behind every proxy.

mod lending;
mod values;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::net::IpAddr;
use std::num::{NonZeroU32, NonZeroU64};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::fetch::Server;
use super::{Failure, block_on, out};
use crate::agent::{self, Launcher, MemoryMax, Plan, PlannedPort, ReadyBy, Thresholds};
use crate::events::{HostName, ServiceName, WorkerId};
use lending::Lending;
use values::{address, cpus, label, memory, port, ready, seconds};

/// Run a program as a worker of a service.
///
/// Asks the control plane for the program's ports, starts it, makes it known to every proxy once it listens, and takes it
/// out within milliseconds of its end. On SIGTERM or Ctrl-C the worker is drained first; a second signal stops it at
/// once, a third kills it. The program runs on while the control plane is away.
///
/// The program finds PORT (the first port), PORT_<NAME>, HOST, FOLDPLANE_SERVICE, FOLDPLANE_WORKER and
/// FOLDPLANE_GENERATION in its environment; {port}, {port:NAME}, {host}, {service} and {worker} in its arguments
/// are filled in.
///
/// It may report to NOTIFY_SOCKET, as with systemd-notify: READY=1, STOPPING=1, WATCHDOG=1, STATUS=text,
/// X_FOLDPLANE_UNREADY=reason, X_FOLDPLANE_HEALTH=unhealthy: reason (or degraded, healthy; X_FOLDPLANE_HEALTH_DB for a
/// part called db), and X_FOLDPLANE_METRICS=requests_active=3 requests_total=40 connections_active=2 connections_total=9.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  foldplane run --service web --port http -- ./server
  foldplane run --service web --port http -- python3 -m http.server {port}
  foldplane run --service api --port grpc=9090 --port admin --restart on-failure -- ./api --admin={port:admin}
  foldplane run --service web --port http=/run/web.sock -- gunicorn --bind unix:{port} web:app
  foldplane run --service web --port http --memory-max 80% --requests-max 200 --restart always -- ./server
  foldplane run --service web --port http --interface eth0 --port-range 21000-21999 --zone eu-1a -- ./server
  foldplane run --service jobs --ready notify --watchdog 10 -- ./consumer

Exit code: the program's own; 128 and the signal's number if it was killed; 126 or 127 if it cannot be run; 1 for a fault,
2 usage, 4 denied, 5 if --wait is over and there is no control plane.")]
pub(super) struct Run {
    /// The service that the program is a worker of
    #[arg(long, short, value_name = "NAME")]
    service: ServiceName,
    /// What this worker calls itself [default: a new name]
    #[arg(long, value_name = "NAME")]
    id: Option<WorkerId>,
    /// The host whose ports it takes [default: this machine's name]
    #[arg(long, value_name = "NAME", env = "FOLDPLANE_HOST")]
    host: Option<HostName>,
    /// A port that it needs; the first is the service's own. With a number, that one and no other; with an absolute path,
    /// the Unix domain socket there, of which Envoys are told and gRPC clients are not
    #[arg(long, short, value_name = "NAME[=NUMBER|=PATH]", value_parser = port)]
    port: Vec<PlannedPort>,
    #[command(flatten)]
    lending: Lending,
    /// Where it listens, if not on the host's first address
    #[arg(long, value_name = "IP", value_parser = address)]
    address: Option<IpAddr>,
    /// Its share of the load
    #[arg(long, value_name = "N")]
    weight: Option<NonZeroU32>,
    /// A label
    #[arg(long, value_name = "KEY=VALUE", value_parser = label)]
    metadata: Vec<(String, String)>,
    /// When it can serve [default: port if it has one, else now]
    ///
    /// now: once it runs; port: once it listens on all its ports; notify: once it sends READY=1 to NOTIFY_SOCKET
    /// (sd_notify); http:PATH: once GET PATH on its first port succeeds, asked until then only.
    #[arg(long, value_name = "now|port|notify|http:PATH", value_parser = ready)]
    ready: Option<ReadyBy>,
    /// How long it may take until it can serve, in seconds; then it is stopped
    #[arg(long, value_name = "SECONDS", default_value = "300", value_parser = seconds)]
    ready_within: Duration,
    /// How often it has to send WATCHDOG=1 to NOTIFY_SOCKET, in seconds; if it does not, it is aborted
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    watchdog: Option<Duration>,
    /// The memory from which on it is unhealthy: a size such as 512M for it and its descendants, or a share such as 80% of
    /// its control group's limit (Linux)
    #[arg(long, value_name = "SIZE|PERCENT%", value_parser = memory)]
    memory_max: Option<MemoryMax>,
    /// The processors that it and its descendants keep busy over 5 s from which on it is degraded, such as 1.5 (Linux)
    #[arg(long, value_name = "CPUS", value_parser = cpus)]
    cpu_max: Option<f64>,
    /// The requests at one time from which on it is degraded, where it tells (requests_active)
    #[arg(long, value_name = "N")]
    requests_max: Option<NonZeroU64>,
    /// The open connections from which on it is degraded, where it tells (connections_active)
    #[arg(long, value_name = "N")]
    connections_max: Option<NonZeroU64>,
    /// How long requests in flight have before it is asked to stop, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = seconds)]
    drain: Duration,
    /// How long it may take to stop, in seconds; then it is killed
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = seconds)]
    stop_within: Duration,
    /// Whether to start it again when it ends
    #[arg(long, value_name = "WHEN", default_value = "never")]
    restart: Restart,
    /// How long it keeps its place when its agent's connection is lost, in seconds; meanwhile it is UNHEALTHY
    #[arg(long, value_name = "SECONDS", default_value = "0", value_parser = seconds)]
    disconnect_grace: Duration,
    /// How long to wait for the control plane at the start, in seconds [default: for ever]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    wait: Option<Duration>,
    #[command(flatten)]
    server: Server,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Restart {
    /// The agent ends with it
    Never,
    /// Unless it ended with code 0
    OnFailure,
    /// Whatever its end was
    Always,
}

impl Run {
    pub(super) fn run(self) -> Result<ExitCode, Failure> {
        let plan = self.plan()?;
        let program = std::env::current_exe()
            .map_err(|fault| Failure::fault("cannot find the foldplane program itself").because(fault))?;
        let launcher = Launcher::Through(program, vec![super::launch::NAME.into()]);
        let say = Box::new(|line: &str| out::note(&format!("foldplane: {line}")));
        let (_, seed) = uuid::Uuid::now_v7().as_u64_pair();
        let work = async { agent::run(plan, launcher, seed, say).await.map_err(failure) };
        block_on(work).map(ExitCode::from)
    }

    fn plan(self) -> Result<Plan, Failure> {
        check_variables(&self.port)?;
        let ready = match self.ready {
            Some(ReadyBy::Listening | ReadyBy::Answering(_)) if self.port.is_empty() => {
                return Err(Failure::usage("this --ready needs a --port").hint("give one, or --ready now"));
            }
            Some(sign) => sign,
            None if self.port.is_empty() => ReadyBy::Now,
            None => ReadyBy::Listening,
        };
        let restart = match self.restart {
            Restart::Never => agent::Restart::Never,
            Restart::OnFailure => agent::Restart::OnFailure,
            Restart::Always => agent::Restart::Always,
        };
        Ok(Plan {
            id: self.id.map_or_else(new_id, |id| id.to_string()),
            host: self.host.map_or_else(this_host, Ok)?.to_string(),
            lends: self.lending.lends()?,
            service: self.service.to_string(),
            ports: self.port,
            address: self.address,
            weight: self.weight.map(NonZeroU32::get),
            metadata: self.metadata.into_iter().collect::<BTreeMap<_, _>>(),
            server: self.server.server,
            ready,
            ready_within: self.ready_within,
            watchdog: self.watchdog,
            thresholds: Thresholds {
                memory: self.memory_max,
                cpus: self.cpu_max,
                requests: self.requests_max.map(NonZeroU64::get),
                connections: self.connections_max.map(NonZeroU64::get),
            },
            drain: self.drain,
            stop_within: self.stop_within,
            restart,
            disconnect_grace: self.disconnect_grace,
            wait: self.wait,
            command: self.command,
        })
    }
}

fn failure(error: agent::RunError) -> Failure {
    match error {
        agent::RunError::Server(_) => Failure::usage(error.to_string()).hint("give a URL with --server"),
        agent::RunError::Signals(source) => Failure::fault("signals cannot be caught").because(source),
        agent::RunError::Mailbox(source) => {
            Failure::fault("the socket for the worker's reports cannot be made").because(source)
        }
    }
}

/// Two ports whose names differ in nothing that an environment variable can show would hide one another.
fn check_variables(ports: &[PlannedPort]) -> Result<(), Failure> {
    let mut seen = BTreeSet::new();
    match ports.iter().map(PlannedPort::variable).find(|variable| !seen.insert(variable.clone())) {
        None => Ok(()),
        Some(twice) => Err(Failure::usage(format!("two ports would be handed over as {twice}"))
            .hint("give them names that differ in letters or digits")),
    }
}

/// A name that no other worker has: the random part of a UUID, cut to what people can still compare.
fn new_id() -> String {
    const ID_CHARS: usize = 12;
    let random = uuid::Uuid::now_v7().simple().to_string();
    random.chars().skip(random.len() - ID_CHARS).collect()
}

fn this_host() -> Result<HostName, Failure> {
    let name = nix::unistd::gethostname().map_err(|fault| {
        Failure::fault("cannot read this machine's name").because(fault).hint("give one with --host")
    })?;
    HostName::new(&name.to_string_lossy())
        .map_err(|invalid| Failure::usage(invalid.to_string()).hint("give one with --host"))
}

